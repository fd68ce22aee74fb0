#!/bin/sh
# Prompts as turns of a dialogue, and vocabularies without a model.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

prompt_ids() { # trace folder
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        $column["source"] == "prompt" { print $column["token_id"] }' "$1/tokens.csv"
}

CHAT=$TMP/chat.gguf
"$BUILD/tests/tinymodel" "$CHAT" --chat-template "{% for m in messages %}<|im_start|>{{ m.role }}{% endfor %}" >/dev/null
printf '<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n' |
    "$PROGRAM" tokenize --special "$CHAT" >"$TMP/turn"
printf 'hello' | "$PROGRAM" tokenize --special "$CHAT" >"$TMP/plain"

works "--system makes the prompt a turn" run --system "Be kind." -p hello -n 2 --trace "$TMP/turned" "$CHAT"
prompt_ids "$TMP/turned" >"$TMP/ids"
check "as the model's template has it" cmp "$TMP/turn" "$TMP/ids"
works "without --chat it is text" run -p hello -n 2 --trace "$TMP/untold" "$CHAT"
prompt_ids "$TMP/untold" >"$TMP/ids"
check "and nothing but text" cmp "$TMP/plain" "$TMP/ids"
works "bench takes --chat" bench --chat -n 2 --repeat 1 -p hello "$CHAT"

works "a model without a template goes on" run --chat -p hello -n 2 "$TINY"
check "and says so" grep -q 'without a chat template' "$TMP/err"
"$BUILD/tests/tinymodel" "$CHAT" --chat-template "{{ strange }}" >/dev/null
works "a template that isn't known is no obstacle" run --chat -p hello -n 2 "$CHAT"
check "and is spoken of" grep -q 'not a known one' "$TMP/err"

# ---- vocabularies ----
for family in llama-bpe qwen2 gpt2 spm; do
    golden=tests/golden/tokenizers/$family
    printf 'Once upon a time, 2024: caf\303\251\n' >"$TMP/text"
    "$PROGRAM" tokenize "$golden" <"$TMP/text" >"$TMP/folder"
    "$PROGRAM" tokenize "$golden/tokenizer.json" <"$TMP/text" >"$TMP/json"
    "$PROGRAM" tokenize "$golden/vocab.gguf" <"$TMP/text" >"$TMP/gguf"
    check "$family: a folder has the ids of its tokenizer.json" cmp "$TMP/folder" "$TMP/json"
    check "$family: and of the same vocabulary in GGUF" cmp "$TMP/folder" "$TMP/gguf"
    "$PROGRAM" tokenize --decode "$golden" <"$TMP/folder" >"$TMP/back"
    check "$family: they are the text's" cmp "$TMP/text" "$TMP/back"
    check "$family: there are some" [ "$(wc -l <"$TMP/folder")" -gt 5 ]
done
mkdir "$TMP/empty"
refuses "a folder without a tokenizer is refused" 1 'tokenizer.json' tokenize "$TMP/empty"
printf '{"model": {"type": "Unigram", "vocab": [["a", -1.5]]}}' >"$TMP/unigram.json"
refuses "another kind of tokenizer is named" 1 "'Unigram' is not supported" tokenize "$TMP/unigram.json"
printf '[' >"$TMP/broken.json"
refuses "broken JSON is refused" 1 'no JSON object' tokenize "$TMP/broken.json"
finish
