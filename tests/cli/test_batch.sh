#!/bin/sh
# Several sequences: each has the text that it has alone. Tests the order of texts, results, the trace, the table of
# bench, and refusals.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
aux_of_tiny

for i in 1 2 3 4 5; do
    printf '{"turns": ["%s of them"]}\n' "$(seq -s' ' "$i")"
done >"$TMP/prompts.jsonl"
"$PROGRAM" run --ignore-eos -n 1 --seed 7 --batch 3 --json "$TMP/seeds.json" "$TINY" >"$TMP/out" 2>/dev/null
alone() { # sequence, arguments of run
    seed=$(grep -o '"seed":[^,}]*' "$TMP/seeds.json" | sed -n "$(($1 + 2))s/[^0-9]//gp") # the first is the batch's
    shift
    "$PROGRAM" run --ignore-eos -n 20 --seed "$seed" "$@" "$TINY" 2>/dev/null
}
together() {
    "$PROGRAM" run --ignore-eos -n 20 --seed 7 "$@" "$TINY" 2>"$TMP/err"
}

for policy in ar layerskip specbound sd specdecpp sv; do
    temperature=0.8
    [ $policy != sv ] || temperature=0 # how much sv verifies hangs on the clock; sampled tokens hang on that
    together --policy $policy $AUX --temp $temperature -p 'a b' --batch 3 >"$TMP/out"
    for i in 0 1 2; do alone $i --policy $policy $AUX --temp $temperature -p 'a b'; done >"$TMP/alone"
    check "$policy generates in a batch of three the text that each sequence has alone" cmp "$TMP/out" "$TMP/alone"
done
check "the summary of a batch counts all sequences" grep -q '^sv: 3 sequences, 60 tokens, .*; end: batch$' "$TMP/err"

for seed in 7 8 9; do
    "$PROGRAM" run --ignore-eos -n 20 --temp 1.5 -p 'a b' --batch 6 --seed $seed "$TINY" 2>/dev/null
done | sort >"$TMP/out"
sort -u "$TMP/out" >"$TMP/once"
check "batches of neighbouring seeds have no sequence in common" cmp "$TMP/out" "$TMP/once"

together --batch 2 --prompts "$TMP/prompts.jsonl" >"$TMP/out"
"$PROGRAM" run --ignore-eos -n 20 --prompts "$TMP/prompts.jsonl" "$TINY" >"$TMP/alone" 2>/dev/null
check "run --batch 2 prints the texts of five prompts in their order" cmp "$TMP/out" "$TMP/alone"
together --batch "$TMP/prompts.jsonl" >"$TMP/out"
check "--batch FILE runs the prompts of the file at once" cmp "$TMP/out" "$TMP/alone"

specscope run --ignore-eos -n 6 --batch 2 --prompts "$TMP/prompts.jsonl" --json "$TMP/json" --trace "$TMP/trace" "$TINY"
check "the JSON of a batch has the tokens and the end of each sequence" python3 -c "
import json
j = json.load(open('$TMP/json'))
assert j['params']['batch'] == 2 and j['end'] == 'batch' and 'token_ids' not in j
assert [len(s['token_ids']) for s in j['sequences']] == [6] * 5 and {s['end'] for s in j['sequences']} == {'tokens'}"
check "the trace of a batch contains the numbers of sequences and prompts" python3 -c "
import json
run = json.load(open('$TMP/trace/run.json'))
assert (run['sequences'], run['prompts']) == (2, 5)"
check "rounds.csv of a batch has lines of each sequence" sh -c "cut -d, -f4 '$TMP/trace/rounds.csv' | sort -u | tr '\n' ' ' | grep -q '^0 1 2 3 4 seq'"
check "controls.csv of a batch has the begin and the end of each prompt" sh -c "
    [ \$(grep -c ',\"joined\",' '$TMP/trace/controls.csv') = 5 ] && [ \$(grep -c ',\"left\",' '$TMP/trace/controls.csv') = 5 ]"
specscope run -n 4 -p a --trace "$TMP/single" "$TINY"
check "a run of one sequence has no joined or left in its trace" sh -c "! grep -Eq '\"(joined|left)\"' '$TMP/single/controls.csv'"

works "bench runs batches" bench --ignore-eos -n 10 --repeat 1 --policy sd --policy sv $AUX --prompts "$TMP/prompts.jsonl" \
    --batch 4 --json "$TMP/bench.json" --csv "$TMP/bench.csv" "$TINY"
check "bench compares the text of every sequence with ar's" python3 -c "
import json
results = json.load(open('$TMP/bench.json'))['results']
assert [len(r['token_ids']) for r in results] == [5] * 3 and {r['lossless'] for r in results} == {'yes'}"
check "the CSV of bench contains the batch size" sh -c "'$PROGRAM' bench -n 4 --repeat 1 --policy sd $AUX -p a --batch 3 '$TINY' 2>/dev/null | grep -q '1 prompt 3 at a time'"

# The modelled speedup is one against ar with the same batch, in every command.
together --policy ar --batch 4 -p a >"$TMP/out"
check "bench gives ar in a batch the modelled speedup 1 and no acceptance" grep -q 'acceptance –, .* modelled 1.00×' "$TMP/err"
together --policy layerskip --batch 3 -p a --temp 0.8 --json "$TMP/json" --trace "$TMP/shared" >"$TMP/out"
"$PROGRAM" bench --ignore-eos -n 20 --seed 7 --repeat 2 --policy layerskip -p a --batch 3 --temp 0.8 --csv "$TMP/csv" "$TINY" >"$TMP/out" 2>&1
specscope diff "$TMP/shared" "$TMP/shared" --json "$TMP/diff.json"
check "bench, run and diff give a batch the same modelled speedup" python3 -c "
import csv, json
run = json.load(open('$TMP/json'))['modelled_speedup']
ar, layerskip = (float(r['modelled_speedup']) for r in csv.DictReader(open('$TMP/csv')))
first = next(m['a'] for m in json.load(open('$TMP/diff.json'))['measures'] if m['name'] == 'modelled_speedup')
assert abs(ar - 1) < 1e-6 and abs(layerskip / run - 1) < 1e-6, (ar, layerskip, run)
assert 0.7 < first / run < 1.4, (first, run)"

for bad in 0 65 4096; do
    refuses "--batch $bad is refused" 2 "1 to 64 sequences" run --batch $bad "$TINY"
done
refuses "--batch with a file that is not there is refused" 1 "none.jsonl" run --batch "$TMP/none.jsonl" "$TINY"
printf '{"turns": ["a"]}\n{"turns": ["%s"]}\n' "$(seq -s' ' 200)" >"$TMP/long.jsonl"
refuses "a batch with a prompt that is too long is refused" 2 "prompt 2: the prompt has" run --batch 2 --prompts "$TMP/long.jsonl" -c 64 "$TINY"
refuses "a batch whose contexts do not fit in memory is refused" 1 "memory are available" run --batch 64 -c 16000000 "$TINY"
finish
