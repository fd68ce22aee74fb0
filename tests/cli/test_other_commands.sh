#!/bin/sh
# specscope bench, info, tokenize.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

group "bench"
aux_of_tiny
works "bench compares all policies" bench -n 12 --repeat 1 $AUX --json "$TMP/bench.json" "$TINY"
for policy in $(policies_of_tiny); do
    check "bench's table has $policy, found lossless" grep -Eq "^$policy .* yes *\$" "$TMP/out"
done
if [ -n "$HAVE_PYTHON" ]; then
    check "bench's JSON has a result for each policy" json_holds "$TMP/bench.json" \
        'len(j["results"]) == len({r["policy"] for r in j["results"]}) > 3'
    check "all policies of bench generate ar's text" json_holds "$TMP/bench.json" \
        'all(r["token_ids"] == j["results"][0]["token_ids"] for r in j["results"])'
    check "bench gives ar the speedup 1" json_holds "$TMP/bench.json" 'j["results"][0]["speedup"] == 1'
fi
works "bench works without ar among the policies" bench -n 12 --repeat 1 -p hello --policy layerskip --json - "$TINY"
check "bench adds ar in the first line" sh -c "grep '\"policy\"' '$TMP/out' | head -n 1 | grep -q '\"ar\"'"
works "bench --set sets a knob in the policies that have it" bench -n 12 --repeat 1 -p hello --policy layerskip --policy specbound \
    --set gamma=2 "$TINY"
refuses "bench --set with a knob of no policy is refused" 2 'none of these policies' bench -n 4 --repeat 1 -p hello --policy ar \
    --set gamma=2 "$TINY"
refuses "bench --set with a bad value is refused" 2 'gamma = 99' bench -n 4 --repeat 1 -p hello --set gamma=99 "$TINY"
works "bench measures sampling without comparing texts" bench -n 12 --repeat 1 -p hello --temp 1 "$TINY"
works "bench measures one token" bench -n 1 --repeat 1 -p hello "$TINY"
works "bench --steps measures steps" bench --steps --json "$TMP/steps.json" "$TINY"
works "bench --steps measures steps at the end of a longer context" bench --steps -c 400 "$TINY"
check "bench --steps reports how many rows precede" grep -q 'after 336 rows' "$TMP/out"
check "bench --steps writes JSON" [ -s "$TMP/steps.json" ]
check "forecasts are compared with measured speedups" "$BUILD/tests/forecasts" -n 12 --repeat 2 --ignore-eos -p 'a b' \
    --csv "$TMP/forecast.csv" --json "$TMP/forecast.json" "$TINY"
check "more than 59 settings are compared with their forecasts" [ "$(grep -c . "$TMP/forecast.csv")" -gt 60 ]
check "each compared setting has a forecast and a measurement" \
    awk -F, 'NR > 1 && !($3 > 0 && $4 > 0 && $6 > 0 && $7 > 0) { bad = 1 } END { exit bad }' "$TMP/forecast.csv"
check "the noise of the compared settings is measured" awk -F, 'NR > 1 { sum += $5 * $5 } END { exit !(sum > 0) }' "$TMP/forecast.csv"
check "the JSON of the comparison has the quantiles of errors" grep -q '"median_off":.*[0-9]' "$TMP/forecast.json"
check "the JSON of the comparison has the quantiles of the noise" grep -q '"noise_median":.*[0-9]' "$TMP/forecast.json"
works "bench --speed measures a model with an adapter" bench --speed -n 1 --lora tests/golden/lora/llama.gguf tests/golden/models/llama
works "bench --speed measures the model" bench --speed -n 8 --json "$TMP/speed.json" "$TINY"
check "bench --speed prints a table" grep -Eq '^decoding +8 tokens +[0-9.]+ tokens/s' "$TMP/out"
if [ -n "$HAVE_PYTHON" ]; then
    check "bench --speed writes JSON" json_holds "$TMP/speed.json" \
        'j["decoded_tokens"] == 8 and min(j["load_s"], j["prompt_tok_per_s"], j["decode_tok_per_s"]) > 0'
fi
works "bench --speed measures within a small context" bench --speed -n 100 -c 8 --repeat 1 "$TINY"
check "bench --speed measures as many tokens as fit" grep -Eq '^decoding +8 tokens' "$TMP/out"
refuses "bench with no passes is refused" 2 'repeat' bench --repeat 0 -p hello "$TINY"

"$PROGRAM" bench -n 400 --repeat 1000 -c 500 --ignore-eos "$TINY" >"$TMP/out" 2>"$TMP/err" &
pid=$!
catches_interruptions() { # the program, and not the shell that is to become it
    [ "/proc/$pid/exe" -ef "$PROGRAM" ] && grep -q '^SigCgt:.*[2367abef]$' "/proc/$pid/status"
}
wait_until catches_interruptions
kill -INT $pid
wait $pid
status=$?
check "SIGINT ends a benchmark with status 130" [ "$status" -eq 130 ]

group "info"
works "info describes a model" info "$TINY"
check "info prints the number of layers" grep -Eq ' 4 layers,' "$TMP/out"
works "info describes the bundled model" info
works "info --json is JSON" info --json "$TINY"
[ -n "$HAVE_PYTHON" ] && check "info --json has the number of layers" json_holds "$TMP/out" 'j["layers"] == 4'

group "tokenize"
printf 'Once upon a time\n\tcaf\303\251 \360\237\230\200' >"$TMP/text"
"$PROGRAM" tokenize <"$TMP/text" >"$TMP/ids" 2>"$TMP/err"
check "tokenize prints ids, one a line" sh -c "grep -Evc '^[0-9]+\$' '$TMP/ids' | grep -qx 0"
"$PROGRAM" tokenize --decode <"$TMP/ids" >"$TMP/out" 2>"$TMP/err"
check "tokenize --decode gives the text back" cmp -s "$TMP/text" "$TMP/out"
printf 'caf\303 \377\300' >"$TMP/text"
"$PROGRAM" tokenize <"$TMP/text" | "$PROGRAM" tokenize --decode >"$TMP/out" 2>"$TMP/err"
check "tokenize --decode gives broken UTF-8 back as it was" cmp -s "$TMP/text" "$TMP/out"
printf '1 2 three' | "$PROGRAM" tokenize --decode >"$TMP/out" 2>"$TMP/err"
status=$?
check "tokenize --decode refuses a word in place of an id" refused_as 1
printf '999999999' | "$PROGRAM" tokenize --decode >"$TMP/out" 2>"$TMP/err"
status=$?
check "tokenize --decode refuses an id after the end of the vocabulary" refused_as 1
"$PROGRAM" tokenize </dev/null >"$TMP/out" 2>"$TMP/err"
check "tokenize accepts an empty text" [ $? -eq 0 ]
finish
