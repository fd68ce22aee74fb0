#!/bin/sh
# specscope run: text on stdout, one summary line on stderr, results as JSON.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

works "run generates with the bundled model and default settings" run -n 12
check "run prints the text on stdout" [ -s "$TMP/out" ]
check "run prints one summary line on stderr" [ "$(wc -l <"$TMP/err")" -eq 1 ]
check "the summary of run names the policy, the speed and the reason of the end" \
    grep -Eq '^[a-z]+: 12 tokens, [0-9.]+ tokens/s, .*end: tokens$' "$TMP/err"

works "run accepts a model file" run -n 9 -p hello "$TINY"
works "run accepts options after the model" run "$TINY" -n 9 -p hello
works "run accepts -p twice" run "$TINY" -n 9 -p goodbye -p hello
specscope run -n 9 -p hello "$TINY" && cp "$TMP/out" "$TMP/first"
specscope run -n 9 -p hello "$TINY"
check "the same command gives the same text" cmp -s "$TMP/out" "$TMP/first"
printf 'hello\n' >"$TMP/prompt"
works "a prompt is read from a file" run -n 9 -f "$TMP/prompt" "$TINY"
check "a prompt from a file gives the same text as on the command line" cmp -s "$TMP/out" "$TMP/first"
printf 'hello' | "$PROGRAM" run -n 9 -f - "$TINY" >"$TMP/out" 2>"$TMP/err"
check "run -f - reads standard input" cmp -s "$TMP/out" "$TMP/first"
works "run -n 1 generates the token of the prefill alone" run -n 1 -p hello "$TINY"
works "run accepts a prompt of one token" run -n 4 -p "" "$TINY"
works "run ends where the context is full" run -n 0 -c 24 --ignore-eos -p hello "$TINY"
check "the summary reports that the context was full" grep -q 'end: context$' "$TMP/err"
works "run reads invalid UTF-8 in a prompt as bytes" run -n 4 -p "$(printf 'a\377\300b')" "$TINY"
works "run reads escape sequences in a prompt as text" run -n 4 -p "$(printf '\033[2J\007')" "$TINY"
works "run reads half a character at the end of a prompt as bytes" run -n 4 -p "$(printf 'caf\303')" "$TINY"

works "run without a policy chooses one" run -n 100 --ignore-eos -p hello --json "$TMP/chosen.json" --trace "$TMP/chosen" "$TINY"
check "run begins with plain decoding if the model has neither heads nor a draft model" \
    grep -q '"policy":.*"ar"' "$TMP/chosen/run.json"
check "run prints its choice in a line after the summary" grep -Eq 'clearly faster by forecast|plain decoding by forecast' "$TMP/err"
check "the JSON result has the choice" grep -q '"choice":.*by forecast' "$TMP/chosen.json"
check "the trace has the choice as a control" grep -q 'choice.*by forecast' "$TMP/chosen/controls.csv"
works "run accepts --policy auto" run -n 9 -p hello --policy auto "$TINY"
check "a run of few tokens makes no choice" sh -c "! grep -q 'by forecast' '$TMP/err'"
works "run --set without a policy sets knobs of specbound" run -n 9 -p hello --set tau=0.4 "$TINY"
check "the summary names specbound, whose knobs were set" grep -q '^specbound: ' "$TMP/err"

aux_of_tiny
for policy in $(policies_of_tiny); do
    works "run --policy $policy works" run -n 40 --ignore-eos --policy "$policy" $AUX \
        --json "$TMP/$policy.json" -p hello "$TINY"
    [ "$policy" = ar ] && continue
    [ -n "$HAVE_PYTHON" ] || continue
    check "run --policy $policy generates ar's text" python3 -c \
        'import json, sys; a, b = (json.load(open(f)) for f in sys.argv[1:]); sys.exit(a["token_ids"] != b["token_ids"])' \
        "$TMP/ar.json" "$TMP/$policy.json"
done

for name in model backend isa policy params token_ids end rounds drafted verified accepted emitted acceptance_rate \
    per_token_acceptance tokens_per_round etpl layers_loaded heads_loaded modelled_speedup prompt_tokens prefill_s decode_s tok_per_s; do
    check "the JSON result has $name" grep -q "\"$name\":" "$TMP/ar.json"
done
works "run --json - works" run -n 30 --ignore-eos --set tau=0.3 --temp 0.7 --top-k 5 --top-p 0.9 \
    --seed 18446744073709551615 --json - "$TINY"
if [ -n "$HAVE_PYTHON" ]; then
    cp "$TMP/out" "$TMP/j.json"
    check "run --json - prints nothing but JSON on stdout" json_holds "$TMP/j.json" 'isinstance(j, dict)'
    check "token_ids in the JSON result has all generated tokens" json_holds "$TMP/j.json" 'len(j["token_ids"]) == 30'
    check "the JSON result's rounds emit all tokens but the prefill's" json_holds "$TMP/j.json" 'j["emitted"] == 29'
    check "the JSON result's loaded layers are those of drafts and verification" json_holds "$TMP/j.json" \
        '0 <= j["accepted"] <= j["verified"] <= j["drafted"] and j["emitted"] <= j["accepted"] + j["rounds"]'
    check "the JSON result counts loads" json_holds "$TMP/j.json" 'abs(j["etpl"] - j["emitted"] / j["layers_loaded"]) < 1e-9'
    check "params in the JSON result has the settings, and the seed to its last digit" json_holds "$TMP/j.json" \
        'j["params"]["tau"] == "0.3" and j["params"]["seed"] == "18446744073709551615" and j["params"]["top_k"] == 5'
    printf '{"turns": ["hello"]}\n\n{"turns": ["one", "two"], "category": "x"}\n' >"$TMP/prompts.jsonl"
    works "run --prompts runs several prompts one after another" run -n 5 --ignore-eos --prompts "$TMP/prompts.jsonl" \
        --json "$TMP/many.json" "$TINY"
    check "each prompt of a list has its result" json_holds "$TMP/many.json" 'len(j["results"]) == 2'
fi
sampled() { # seed; leaves the result without its clocks in $TMP/sampled.SEED
    specscope run -n 30 --ignore-eos --temp 1 --seed "$1" --json - "$TINY"
    grep -v -e decode_s -e prefill_s -e tok_per_s -e _share "$TMP/out" >"$TMP/sampled"
}
sampled 7 && cp "$TMP/sampled" "$TMP/seven" && sampled 7
check "the same seed draws the same tokens" cmp -s "$TMP/seven" "$TMP/sampled"
sampled 8
check "another seed draws other tokens" sh -c "! cmp -s '$TMP/seven' '$TMP/sampled'"
for threads in 1 2 3; do
    specscope run -n 30 --ignore-eos --threads $threads -p hello --json - "$TINY"
    tr -d '\n\t ' <"$TMP/out" | grep -o '"token_ids":[^]]*' >"$TMP/ids.$threads"
done
check "the number of threads changes no token" sh -c "cmp '$TMP/ids.1' '$TMP/ids.2' && cmp '$TMP/ids.1' '$TMP/ids.3'"
refuses "the tests' check backend is not in the program" 2 "backend 'check' is not known" run -n 3 --backend check "$TINY"
works "run --exact works" run -n 8 --exact -p hello "$TINY"
works "run --isa reference works" run -n 8 --isa reference -p hello "$TINY"

"$PROGRAM" run -n 40 --ignore-eos -p hello "$TINY" 2>"$TMP/err" | head -c 1 >/dev/null
check "run reports in one line that the reader of stdout is gone" sh -c "[ \$(wc -l <'$TMP/err') -le 2 ]"
if [ -e /dev/full ]; then
    "$PROGRAM" run -n 40 --ignore-eos -p hello "$TINY" >/dev/full 2>"$TMP/err"
    status=$?
    check "run with stdout on a full disk exits with status 1" [ "$status" -eq 1 ]
    check "run with stdout on a full disk reports it" grep -q '^specscope: stdout: No space' "$TMP/err"
    "$PROGRAM" run --help >/dev/full 2>"$TMP/err"
    check "--help with stdout on a full disk exits with status 1" [ $? -eq 1 ]
    specscope run -n 4 --json /dev/full "$TINY"
    check "run --json on a full disk exits with status 1" [ "$status" -eq 1 ]
    check "run --json on a full disk reports it" grep -q '^specscope: /dev/full: No space' "$TMP/err"
fi
printf 'specscope token counts 1\nvocabulary 320\n300 9\n7 1\n' >"$TMP/counts"
specscope run -n 12 -p hello --policy layerskip --set draft_vocab=64 "$TINY" && cp "$TMP/out" "$TMP/first"
works "run takes a file of token counts" run -n 12 -p hello --policy layerskip --set draft_vocab=64 \
    --vocab-counts "$TMP/counts" --trace "$TMP/counted" "$TINY"
check "another draft vocabulary gives the same text" cmp -s "$TMP/out" "$TMP/first"
check "run.json has the file of counts" grep -q '"path":.*counts"' "$TMP/counted/run.json"
refuses "counts of another vocabulary are refused" 2 'for a vocabulary of 320 tokens, not of 2048' run -n 1 --vocab-counts "$TMP/counts"
refuses "a file that has no counts is refused" 1 ':1: not a file of token counts' run -n 1 --vocab-counts "$TMP/first" "$TINY"
finish
