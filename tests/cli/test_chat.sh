#!/bin/sh
# Prompts as turns of a dialogue, and vocabularies without a model.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

prompt_ids() { # trace folder
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        $column["source"] == "prompt" { print $column["token_id"] }' "$1/tokens.csv"
}

# Checks that the run's prompt has the tokens of this text.
began_with() { # trace folder, text in $TMP/text
    "$PROGRAM" tokenize "$CHAT" <"$TMP/text" >"$TMP/turn"
    prompt_ids "$1" >"$TMP/ids"
    [ -s "$TMP/turn" ] && cmp -s "$TMP/turn" "$TMP/ids"
}
with_template() { "$BUILD/tests/tinymodel" "$CHAT" --chat-template "$1" >/dev/null; }

CHAT=$TMP/chat.gguf
with_template "{% for m in messages %}<|im_start|>{{ m.role }}
{{ m['content'] | trim }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"
printf '<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n' >"$TMP/text"
works "--system makes the prompt a turn" run --system "Be kind." -p ' hello' -n 2 --trace "$TMP/turned" "$CHAT"
check "a turn of --system is written as the model's template has it" began_with "$TMP/turned"
works "--chat-var sets a variable of the template" run --chat-var enable_thinking=false -p hello -n 2 --trace "$TMP/var" "$CHAT"
printf '<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n<think></think>' >"$TMP/text"
check "the template sees the value of --chat-var" began_with "$TMP/var"
works "info reads the template" info "$CHAT"
check "info prints the template's length" grep -Eq '^chat +a template of [0-9]+ bytes$' "$TMP/out"
works "run without --chat takes the prompt as text" run -p hello -n 2 --trace "$TMP/untold" "$CHAT"
printf 'hello' >"$TMP/text"
check "a prompt without --chat has no tokens of the template" began_with "$TMP/untold"
check "run says that the model's chat template is not used" grep -q 'has a chat template, which is not used: --chat' "$TMP/err"
works "run --chat uses the model's template" run --chat -p hello -n 2 "$CHAT"
check "run says nothing of a template that is used" sh -c "! grep -q 'chat template' '$TMP/err'"
works "a model with a template is tuned" tune -n 4 --policy ngram --ignore-eos --time 5s --trace "$TMP/tuned" "$CHAT"
check "tune says that its prompts are chat messages" grep -q "prompts go through the model's chat template, as with --chat" "$TMP/err"
check "tune's command has --chat" grep -q "^  $PROGRAM --policy .* --chat $CHAT\$" "$TMP/out"
check "tune's run is one with --chat" grep -q '"chat":[[:space:]]*true' "$TMP/tuned/run.json"
works "bench takes --chat" bench --chat -n 2 --repeat 1 -p hello "$CHAT"

group "control tokens as plain text"
ends() { # trace folder: how many tokens of the prompt are </s>, which is id 2
    prompt_ids "$1" | grep -c '^2$'
}
with_template "{% for m in messages %}[{{ m.content }}]{{ eos_token }}{% endfor %}"
works "a message may spell a control token" run --chat -p 'a</s>b' -n 2 --trace "$TMP/spelled" "$CHAT"
check "a control token in a message stays text" [ "$(ends "$TMP/spelled")" = 1 ]
works "--system may spell a control token" run --system '</s>' -p 'a</s>b' -n 2 --trace "$TMP/system" "$CHAT"
check "a control token in the system's message stays text" [ "$(ends "$TMP/system")" = 2 ]
works "run --chat-special works" run --chat-special -p 'a</s>b' -n 2 --trace "$TMP/allowed" "$CHAT"
check "--chat-special makes a control token of the message's text" [ "$(ends "$TMP/allowed")" = 2 ]
works "run without --chat reads control tokens in the prompt" run -p 'a</s>b' -n 2 --trace "$TMP/raw" "$CHAT"
printf 'a</s>b' >"$TMP/text"
check "a prompt without --chat has the control tokens that tokenize reads" began_with "$TMP/raw"
printf 'a</s>b' | "$PROGRAM" tokenize --no-special "$CHAT" >"$TMP/unspecial"
check "--no-special makes tokenize read control tokens as text" sh -c "! grep -q '^2\$' '$TMP/unspecial'"

works "a model without a template continues" run --chat -p hello -n 2 "$TINY"
check "run reports that a model has no chat template" grep -q 'without a chat template' "$TMP/err"
works "info reads a model without a template" info "$TINY"
check "info reports that a model has no chat template" grep -Eq '^chat +no template$' "$TMP/out"

group "one BOS"
with_template "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"
works "a template writes BOS" run --chat -p hello -n 2 --trace "$TMP/bos" "$CHAT"
printf 'hello</s>' >"$TMP/text" # tokenize puts a BOS in front
check "a prompt has one BOS where the template writes it" began_with "$TMP/bos"

group "tools, dates, other templates"
with_template "{% for t in tools %}{{ t.function.name }}({{ t.function.parameters | tojson }});{% endfor %}{{ messages[0].content }}"
printf '[{"type": "function", "function": {"name": "add", "parameters": {"b": 1.0, "a": null}}}]' >"$TMP/tools.json"
works "tools are described" run --tools "$TMP/tools.json" -p hello -n 2 --trace "$TMP/tools" "$CHAT"
printf 'add({"b": 1.0, "a": null});hello' >"$TMP/text"
check "tools keep the order of their entries and the digits of their numbers" began_with "$TMP/tools"
printf '{"a": }' >"$TMP/broken.json"
refuses "tools that are no JSON are refused" 2 'tools: line 1 is not JSON' run --tools "$TMP/broken.json" -p hello "$CHAT"
printf '{"a": 1}' >"$TMP/broken.json"
refuses "tools that are no JSON list are refused" 2 'tools: a JSON list is needed' run --tools "$TMP/broken.json" -p hello "$CHAT"
with_template "{{ strftime_now('%d %b %Y, %H:%M, a %A') }}"
works "a date can be given" run --chat-date 2024-02-29 -p hello -n 2 --trace "$TMP/dated" "$CHAT"
printf '29 Feb 2024, 00:00, a Thursday' >"$TMP/text"
check "the template writes the given date in English" began_with "$TMP/dated"
works "a time can be given with the date" run --chat-date "2026-12-31 23:59" -p hello -n 2 --trace "$TMP/timed" "$CHAT"
printf '31 Dec 2026, 23:59, a Thursday' >"$TMP/text"
check "the template writes the given time" began_with "$TMP/timed"
refuses "an impossible date is refused" 2 'chat-date 2025-02-29: a day is wanted' run --chat-date 2025-02-29 -p hello "$CHAT"
printf '[{{ messages[-1].content }}]\n' >"$TMP/mine.jinja"
works "--chat-template reads a template from a file" run --chat-template "$TMP/mine.jinja" -p hello -n 2 --trace "$TMP/mine" "$CHAT"
printf '[hello]' >"$TMP/text"
check "a template from a file replaces the model's" began_with "$TMP/mine"
refuses "a named template that the model does not have is refused" 2 "no chat template 'rag', but: default" run --chat-template rag -p hello "$CHAT"
refuses "a named template is refused if the model has none" 2 "no chat template 'nope', and none of another name" run --chat-template nope -p hello "$TINY"
refuses "a line break in the JSON of a variable is refused" 2 'a line break in a value' run --chat-var "a=
b" -p hello "$CHAT"
if [ -n "$HAVE_PYTHON" ]; then
    works "a run records its options" run --chat-var a=1 --chat-var 'b="x y"' --tools "$TMP/tools.json" --chat-date 2026-12-31 \
        --chat-template "$TMP/mine.jinja" -p hello -n 2 --trace "$TMP/asked" "$CHAT"
    check "the trace contains the template's variables and the date" json_holds "$TMP/asked/run.json" '[j["asked"]["chat_vars"], j["asked"]["chat_date"]] == ["a=1\\x0ab=\"x y\"", "2026-12-31 00:00"]'
    check "the trace contains the files of tools and template" json_holds "$TMP/asked/run.json" '"tools.json" in j["asked"]["tools"] and "mine.jinja" in j["asked"]["chat_template"]'
fi
refuses "--chat-var without a value is refused" 2 'NAME=VALUE is wanted' run --chat-var thinking -p hello "$CHAT"

group "templates that are refused"
with_template "{{ messages }}
{% do messages.append(1) %}"
refuses "a template with an unknown statement is refused" 1 "the chat template, line 2: the statement 'do' is not supported; without --chat" \
    run --chat -p hello "$CHAT"
works "info reads a template that cannot be run" info "$CHAT"
check "info gives the reason why a template cannot be run" grep -q "bytes, which can't be run: the chat template, line 2: the statement 'do'" "$TMP/out"
if [ -n "$HAVE_PYTHON" ]; then
    works "info --json reads a template that cannot be run" info --json "$CHAT"
    check "info --json gives the reason why a template cannot be run" json_holds "$TMP/out" '"line 2" in j["chat"] and j["chat_template_bytes"] == 42'
fi
with_template "{% if messages[0].role == 'system' %}
{{ raise_exception('System role not supported') }}{% endif %}{{ messages[0].content }}"
refuses "a template's own refusal is passed on" 1 'line 2: it says: System role not supported' run --system Be -p hello "$CHAT"
works "a template that refuses some roles runs with the others" run --chat -p hello -n 2 --trace "$TMP/alone" "$CHAT"
printf 'hello' >"$TMP/text"
check "a template that refuses some roles writes the others" began_with "$TMP/alone"
with_template "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
refuses "a template that never ends is stopped" 1 'line 1: it \(takes too many steps\|needs more memory\)' run --chat -p hello "$CHAT"

group "a folder's templates"
folder=$TMP/hf
cp -rL tests/golden/models/llama "$folder"
mkdir -p "$folder/additional_chat_templates"
printf 'hello {{ bos_token }}' >"$folder/chat_template.jinja"
printf 'tools {{ tools | length }}' >"$folder/additional_chat_templates/tool_use.jinja"
CHAT=$folder
works "info reads a folder's templates" info "$folder"
check "info prints the length of the folder's default template" grep -Eq '^chat +a template of 21 bytes$' "$TMP/out"
check "info prints the names of the folder's other templates" grep -Eq "^ +a template of 26 bytes, 'tool_use'$" "$TMP/out"
works "tools take the folder's template for tools" run --tools "$TMP/tools.json" -p hello -n 2 --trace "$TMP/used" "$folder"
printf 'tools 1' >"$TMP/text"
check "a run with tools has the text of the template for tools" began_with "$TMP/used"
works "--chat-template overrides the template for tools" run --tools "$TMP/tools.json" --chat-template default -p hello -n 2 --trace "$TMP/plain" "$folder"
printf 'hello <s>' >"$TMP/text"
check "a run with --chat-template has the text of the named template" began_with "$TMP/plain"

group "vocabularies"
for family in llama-bpe qwen2 gpt2 spm; do
    golden=tests/golden/tokenizers/$family
    printf 'Once upon a time, 2024: caf\303\251\n' >"$TMP/text"
    "$PROGRAM" tokenize "$golden" <"$TMP/text" >"$TMP/folder"
    "$PROGRAM" tokenize "$golden/tokenizer.json" <"$TMP/text" >"$TMP/json"
    "$PROGRAM" tokenize "$golden/vocab.gguf" <"$TMP/text" >"$TMP/gguf"
    check "$family: a folder has the ids of its tokenizer.json" cmp "$TMP/folder" "$TMP/json"
    check "$family: a folder has the ids of the same vocabulary in GGUF" cmp "$TMP/folder" "$TMP/gguf"
    "$PROGRAM" tokenize --decode "$golden" <"$TMP/folder" >"$TMP/back"
    check "$family: decoded ids give the text again" cmp "$TMP/text" "$TMP/back"
    check "$family: the text has more than 5 ids" [ "$(wc -l <"$TMP/folder")" -gt 5 ]
done
mkdir "$TMP/empty"
refuses "a folder without a tokenizer is refused" 1 'tokenizer.json' tokenize "$TMP/empty"
printf '{"model": {"type": "WordLevel", "vocab": {"a": 1}}}' >"$TMP/words.json"
refuses "a folder with another kind of tokenizer is refused" 1 "'WordLevel' is not supported" tokenize "$TMP/words.json"
said='messages=[{"role": "user", "content": "Knock"}, {"role": "assistant", "content": "Who?"}]'
printf '{%% for m in messages %%}[{{ m.role }}: {{ m.content }}]{%% endfor %%}{{ bos_token }}' >"$TMP/turns.jinja"
"$PROGRAM" run -n 2 --chat-template "$TMP/turns.jinja" --system S --chat-var "$said" -p Me --trace "$TMP/turns" >"$TMP/out" 2>"$TMP/err"
check "earlier turns precede the prompt" grep -q 'chat_vars.*messages=' "$TMP/turns/run.json"
refuses "earlier turns that are no list are refused" 2 'messages: a JSON list is needed' run -n 2 --chat-template "$TMP/turns.jinja" --chat-var messages=5 -p Me
cp tests/golden/tokenizers/model-unigram/tokenizer.model "$TMP/pieces.model"
printf 'Once upon a time' | "$PROGRAM" tokenize "$TMP/pieces.model" >"$TMP/file"
printf 'Once upon a time' | "$PROGRAM" tokenize tests/golden/tokenizers/model-unigram/tokenizer.model >"$TMP/folder"
check "tokenize reads a tokenizer.model and the folder of one alike" cmp "$TMP/file" "$TMP/folder"
check "tokenize prints more than 4 ids by a tokenizer.model" [ "$(wc -l <"$TMP/file")" -gt 4 ]
printf '[' >"$TMP/broken.json"
refuses "broken JSON is refused" 1 'no JSON object' tokenize "$TMP/broken.json"
finish
