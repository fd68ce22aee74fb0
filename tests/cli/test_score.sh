#!/bin/sh
# score: forecasts of drafters on finished texts. Speeds depend on the machine; the test checks what is printed, saved
# and refused.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

for i in 1 2 3 4 5 6; do
    echo "{\"category\": \"$((i % 2))\", \"prompt\": \"The fox number $i\", \"completion\": \" met a bear in the wood. The fox met a bear in the wood, and the bear met the fox in the wood.\"}"
done >"$TMP/six.jsonl"
head -n 2 "$TMP/six.jsonl" >"$TMP/two.jsonl"
echo '{"prompt": "no answer"}' >>"$TMP/six.jsonl"
works "score works" score --texts "$TMP/six.jsonl" --json "$TMP/score.json" --csv "$TMP/score.csv"
check "score prints how much it read, and whose texts they are" sh -c "grep -q '^6 conversations · [0-9]* tokens read' '$TMP/out' && grep -q 'tokens are this model.s own' '$TMP/out'"
check "score counts conversations without an answer" grep -q 'six.jsonl: 1 conversation without an answer' "$TMP/err"
check "score has a row with an interval for drafts from the text" grep -Eq '^ +[0-9.]+ +[0-9.]+ to [0-9.]+ +[0-9.]+ ± [0-9.]+ +[0-9]+  (exact|estimated)  .*' "$TMP/out"
check "score has a row for the block drafter without its Markov head, and for that with it" sh -c "grep -q ' dflash fables-block' '$TMP/out' && grep -q ' dspark fables-block' '$TMP/out'"
check "score names each drafter that was not scored, with the reason" sh -c "sed -n '/^not scored:/,/^x ar/p' '$TMP/out' | grep -Eq '^  [a-z_0-9]+.*: .'"
check "score has tables by category and by the number of sequences" sh -c "grep -q '^x ar by category:' '$TMP/out' && grep -Eq '^ +here +1 +2 +4 +8 +16 +32 +64$' '$TMP/out'"
check "score names one setting to use, and commands of other engines only for one that is clearly faster" \
    sh -c "grep -q '^  $PROGRAM run --policy ' '$TMP/out' && ! { grep -q '^No drafter is clearly faster' '$TMP/out' && grep -q '^transformers ' '$TMP/out'; }"
check "score's lines have at most 100 columns, except for commands" sh -c "! grep -v '^  ' '$TMP/out' | grep -E '^.{101}'"
if [ -n "$HAVE_PYTHON" ]; then
    check "score's JSON and CSV have the same rows, one of which is the best of each drafter" python3 - "$TMP/score.json" "$TMP/score.csv" <<'PY'
import csv, json, sys
j = json.load(open(sys.argv[1]))
rows = [r for r in j["rows"] if r["kind"] != "not scored"]
assert j["conversations"] == j["of"] == 6 and {c["name"] for c in j["categories"]} == {"0", "1"}, j
assert rows and all(r["why"] for r in j["rows"] if r["kind"] == "not scored")
drafters = {(r["policy"], r["drafter"]) for r in rows}
assert sorted((r["policy"], r["drafter"]) for r in rows if r["best"]) == sorted(drafters)
lines = [l for l in csv.DictReader(open(sys.argv[2], newline="")) if l["category"] == l["depth"] == ""]
assert [(l["policy"], l["kind"]) for l in lines] == [(r["policy"], r["kind"]) for r in j["rows"]]
assert all(abs(float(l["speedup"]) - r["speedup"]) < 1e-6 for l, r in zip(lines, j["rows"]) if l["speedup"])
PY
fi
for i in 1 2 3; do # models of other bytes, so that none counts as listed twice
    mkdir -p "$TMP/drafts"
    python3 tests/servers/damage_gguf.py models/fables-draft-q8_0.gguf "$TMP/drafts/$i.gguf"
    python3 -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(-1, 2); f.write(bytes([int(sys.argv[2])]))' "$TMP/drafts/$i.gguf" $i
done
cp models/fables-eagle-q8_0.gguf "$TMP/drafts/head.gguf"
works "score --drafts scores several draft models" score --texts "$TMP/six.jsonl" --time 1s --drafts "$TMP/drafts" --json "$TMP/drafts.json"
check "score --drafts drops no draft model and no policy" sh -c "[ \$(tr ',{' '\n\n' <'$TMP/drafts.json' | grep -c '\"drafter\":.*drafts/[123]') -ge 12 ] && grep -q 'sv .*drafts/3' '$TMP/out'"
check "score --drafts skips feature drafters with a reason of their own" grep -q '1 that only --draft takes (EAGLE-3 heads, block drafters)' "$TMP/err"
works "score --policy scores that policy" score --texts "$TMP/six.jsonl" --policy ngram "$TINY"
check "score --policy scores no other one" sh -c "grep -q ngram '$TMP/out' && ! grep -Eq 'layerskip|sd' '$TMP/out'"
works "score --set scores a further setting of that policy" score --texts "$TMP/six.jsonl" --policy ngram --set n_max=7 --set k=11 "$TINY"
check "score --policy prints all settings that it scored" grep -Eq 'ngram n_max=7 k=11$' "$TMP/out"
refuses "score --set without a policy is refused" 2 'name it with --policy' score --texts "$TMP/two.jsonl" --set k=2 "$TINY"
works "run records a trace" run -n 40 --ignore-eos -p 'The fox met' --trace "$TMP/trace" "$TINY"
works "score reads a trace" score --texts "$TMP/trace" --policy ngram "$TINY"
check "a trace of one run is one conversation, of the model's own tokens" sh -c "grep -q '^1 conversation ' '$TMP/out' && grep -q '^100.0% of' '$TMP/out'"
refuses "score without texts is refused" 2 'which texts? --texts FILE' score
refuses "score of a missing file is refused" 1 'nonesuch.*No such file' score --texts "$TMP/nonesuch"
printf '{"prompt": "a", "completion": "b"}\n\n{"prompt": "a\n' >"$TMP/bad.jsonl"
refuses "score of a line that is not JSON is refused" 2 'bad.jsonl:3: not JSON' score --texts "$TMP/bad.jsonl"
echo '{"prompt": "a"}' >"$TMP/none.jsonl"
refuses "score of texts without an answer is refused" 2 'none.jsonl: no answer in it' score --texts "$TMP/none.jsonl"
refuses "score with a context that is too short is refused" 2 'fits into the context of 2 tokens; raise --ctx' score --texts "$TMP/two.jsonl" -c 2 "$TINY"

group "a race"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
    echo "{\"prompt\": \"The bear number $i\", \"completion\": \" met a fox. The bear met a fox, and the fox met a bear in the wood.\"}"
done >"$TMP/race.jsonl"
works "tune --texts races the settings that score best" tune --texts "$TMP/race.jsonl" --policy ngram -n 16 --ignore-eos --time 20s "$TINY"
check "tune --texts scores one half of the conversations" grep -Eq '^specscope: 7 conversations scored in .*; the race has the [1-4] fastest' "$TMP/err"
check "tune --texts races these settings and plain decoding only" sh -c "grep -Eq '^[2-5] settings raced' '$TMP/out' && ! grep -Eq '^ +[0-9]+ .* (suffix|sd|layerskip)' '$TMP/out'"
refuses "tune --texts with too few prompts is refused" 2 'needs at least 6 prompts, and there are 1' tune --texts "$TMP/two.jsonl" "$TINY"

group "Ctrl-C"
i=0
while [ $i -lt 400 ]; do
    head -n 6 "$TMP/six.jsonl"
    i=$((i + 1))
done >"$TMP/long.jsonl"
in_terminal "'$PROGRAM' score --texts '$TMP/long.jsonl' --policy ngram --json '$TMP/far.json' >'$TMP/out' & echo \$! >'$TMP/pid'; wait \$!; echo \$? >'$TMP/rc'" &
shown=$!
wait_until grep -Eq '[1-9][0-9]* of 2400 conversations' "$TMP/screen"
kill -INT "$(cat "$TMP/pid")"
wait $shown
check "score shows its progress on a terminal, and ends with status 130" grep -qx 130 "$TMP/rc"
check "an interrupted score prints the result so far" sh -c "grep -q '^stopped after [1-9][0-9]* of 2400 conversations' '$TMP/out' && grep -q '\"stopped\":.*true' '$TMP/far.json'"
works "score with too little time reads some conversations" score --texts "$TMP/race.jsonl" --policy ngram --time 0.0001s "$TINY"
check "score says how many conversations it has read" grep -q '^stopped after 3 of 14 conversations' "$TMP/out"
finish
