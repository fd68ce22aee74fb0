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
works "info reads the template" info "$CHAT"
check "and names the format" grep -Eq '^chat +ChatML, a template of [0-9]+ bytes$' "$TMP/out"
works "without --chat it is text" run -p hello -n 2 --trace "$TMP/untold" "$CHAT"
prompt_ids "$TMP/untold" >"$TMP/ids"
check "and nothing but text" cmp "$TMP/plain" "$TMP/ids"
works "bench takes --chat" bench --chat -n 2 --repeat 1 -p hello "$CHAT"

works "a model without a template goes on" run --chat -p hello -n 2 "$TINY"
check "and says so" grep -q 'without a chat template' "$TMP/err"
"$BUILD/tests/tinymodel" "$CHAT" --chat-template "{{ strange }}" >/dev/null
works "a template that isn't known is no obstacle" run --chat -p hello -n 2 "$CHAT"
check "and is spoken of" grep -q 'not a known one' "$TMP/err"
works "info reads a strange template" info "$CHAT"
check "and says that it isn't known" grep -Eq '^chat +a template of 13 bytes that is not a known one$' "$TMP/out"
works "info reads a model without a template" info "$TINY"
check "and says that there is none" grep -Eq '^chat +no template$' "$TMP/out"
if [ -n "$HAVE_PYTHON" ]; then
    works "info --json has the format" info --json "$CHAT"
    check "none where it isn't known" json_holds "$TMP/out" 'j["chat"] == "none" and j["chat_template_bytes"] == 13'
fi

"$BUILD/tests/tinymodel" "$CHAT" --chat-template '<|start_header_id|>{% set date_string = "26 Jul 2024" %}
    {{ "Cutting Knowledge Date: December 2023\n" }}{{ "Today Date: " + date_string }}' >/dev/null
printf '%s\n\n' '<|start_header_id|>system<|end_header_id|>' >"$TMP/text"
printf 'Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>' >>"$TMP/text"
printf '%s\n\n' '<|start_header_id|>user<|end_header_id|>' >>"$TMP/text"
printf '%s\n\n' 'hello<|eot_id|><|start_header_id|>assistant<|end_header_id|>' >>"$TMP/text"
"$PROGRAM" tokenize --special "$CHAT" <"$TMP/text" >"$TMP/turn"
works "Llama 3.1's template wants dates" run --chat -p hello -n 2 --trace "$TMP/dated" "$CHAT"
prompt_ids "$TMP/dated" >"$TMP/ids"
check "and gets them" cmp "$TMP/turn" "$TMP/ids"

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
