#!/bin/sh
# specscope diff: compares two traces. The results are compared with the traces' own tables; refusals.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

TRACES=tests/screens/traces
prints() { grep -q -e "$1" "$TMP/out"; }

refuses "diff without a trace is refused" 2 'which traces' diff
refuses "diff with one trace of one sequence is refused" 2 'which other trace' diff $TRACES/del
refuses "diff of three traces is refused" 2 'two traces' diff $TRACES/del $TRACES/swift $TRACES/sd
refuses "diff of a trace that is not there is refused" 1 'No such file' diff $TRACES/del "$TMP/none"
refuses "diff of a run that is not there is refused" 2 'run 9' diff $TRACES/del $TRACES/swift --run 9
refuses "diff of a sequence that is not there is refused" 2 'sequence 7' diff $TRACES/batch $TRACES/batch --seq 7
refuses "diff of one sequence with nothing is refused" 2 'second trace' diff $TRACES/batch --seq 1
refuses "diff --json into a file that cannot be written is refused" 1 "$TMP/none" diff $TRACES/del $TRACES/swift --json "$TMP/none/file"

works "diff compares two policies on one prompt" diff $TRACES/swift $TRACES/del
check "diff prints both policies" prints '^policy  *swift  *del$'
check "diff prints a dash for a knob that one policy has not" prints '^omega ω  *–  *0.95$'
check "diff prints equal values once" prints '^head  *lens  *the same$'
check "diff prints measures with standard errors" prints '^tokens/round  *2.810 ±0.273  *3.545 ±1.030  *no clear difference$'
check "diff gives speeds of runs at different times no verdict" prints '^tokens/s  *[0-9.]* ±[0-9.]*  *[0-9.]* ±[0-9.]*  *not compared$'
check "diff prints when both runs started" prints '^started  *20'
check "diff calls neither of two runs at different times faster" sh -c "! grep -q 'faster\|slower' '$TMP/out'"
check "diff compares the texts" prints '^texts: the same for 40 tokens, as far as both go$'
check "all of diff's table is ASCII with LC_ALL=C" sh -c "LC_ALL=C '$PROGRAM' diff $TRACES/swift $TRACES/del >'$TMP/plain' && ! LC_ALL=C grep -q '[^ -~]' '$TMP/plain'"
check "diff's table has as many columns in ASCII" grep -q '^tokens/round  *2.810+-0.273  *3.545+-1.030  *no clear difference$' "$TMP/plain"
works "diff compares a trace with itself" diff $TRACES/turned $TRACES/turned
check "a trace has the same measures as itself" prints '^tokens/round .* the same$'
works "diff compares two sequences of a batch" diff $TRACES/batch
check "two sequences of a batch are numbered from 1" prints '^sequence  *1  *2$'

# Runs of the same settings have the same counts, and other settings have other counts. Times do not matter.
for run in same again; do
    specscope run --policy layerskip -n 40 -p 'one two three' --trace "$TMP/$run" "$TINY"
done
specscope run --policy layerskip --set gamma=1 --ignore-eos -n 40 -p 'one two three' --trace "$TMP/short" "$TINY"
specscope run --policy layerskip --set gamma=32 --temp 3 --ignore-eos -n 120 -p 'one two three' --trace "$TMP/long" "$TINY"
works "diff compares two runs of one setting" diff "$TMP/same" "$TMP/again"
check "two runs of one setting have the same counts and no difference" sh -c "grep -q '^tokens/round .* the same$' '$TMP/out' && ! grep -q 'B [0-9×]\|A [0-9]*%' '$TMP/out'"
works "diff compares two settings" diff "$TMP/short" "$TMP/same"
check "a clear difference of counts has its size" prints '^tokens/round .*B [0-9]*% ±[0-9]* more$'
works "diff compares drafts of one token and of thirty-two" diff "$TMP/short" "$TMP/long"
check "a large difference is printed as a factor" prints '^drafts discarded per token .*B ×[0-9]* ±'

# Texts that differ from some position on.
for seed in 1 2; do
    specscope run --policy layerskip --temp 1 --seed $seed -n 40 -p 'one two three' --trace "$TMP/seed$seed" --json "$TMP/$seed.json" "$TINY"
done
works "diff compares two seeds" diff "$TMP/seed1" "$TMP/seed2"
check "diff prints where two texts first differ" prints '^texts: they part at token [0-9]*, position [0-9]*, after '
check "diff prints how both texts continue" prints '^  B continues: .'
if [ -n "$HAVE_PYTHON" ]; then
    works "diff --json writes JSON" diff "$TMP/seed1" "$TMP/seed2" --json "$TMP/diff.json"
    cat >"$TMP/check.py" <<'END'
import csv, json, sys
tmp = sys.argv[1]
d = json.load(open(tmp + "/diff.json"))
a, b = (json.load(open(f"{tmp}/{seed}.json"))["token_ids"] for seed in (1, 2))
same = next(i for i in range(len(a)) if a[i] != b[i])
assert d["texts"]["same_tokens"] == same, (d["texts"], same)
measures = {m["name"]: m for m in d["measures"]}
for side, seed in (("a", 1), ("b", 2)):
    rounds = list(csv.DictReader(open(f"{tmp}/seed{seed}/rounds.csv")))
    y = [int(r["emitted"]) for r in rounds]
    for name, x in (("tok_per_s", [(int(r["draft_us"]) + int(r["verify_us"])) * 1e-6 for r in rounds]),
                    ("tokens_per_round", [1] * len(rounds))):
        n, ratio = len(y), sum(y) / sum(x)
        se = (sum((p - ratio * q) ** 2 for p, q in zip(y, x)) / (n * (n - 1))) ** .5 / (sum(x) / n)
        m = measures[name]
        assert abs(m[side] / ratio - 1) < 1e-6 and abs(m[side + "_se"] - se) < 1e-6 * ratio, (name, m, ratio, se)
END
    check "diff's JSON has the traces' numbers, by the ratio estimator" python3 "$TMP/check.py" "$TMP"
else
    skip "diff --json writes JSON" "no python3"
fi

# Two settings in one run, and in its trace.
works "run --versus runs two settings" run --policy layerskip --versus 'layerskip gamma=2' -n 40 -p 'one two three' --trace "$TMP/two" --json "$TMP/two.json" "$TINY"
cp "$TMP/err" "$TMP/both"
check "run --versus prints both settings with their uncertainty" grep -q '^layerskip gamma=2: [0-9.]* ±[0-9.]* tokens/s, ' "$TMP/both"
check "run --versus reports that the texts are the same" grep -q 'the texts are the same for 40 tokens; end: tokens$' "$TMP/both"
cp "$TMP/out" "$TMP/text"
check "run --versus prints ASCII with LC_ALL=C" sh -c "LC_ALL=C '$PROGRAM' run --policy layerskip --versus ar -n 12 -p 'one two three' '$TINY' >/dev/null 2>'$TMP/plain' && ! LC_ALL=C grep -q '[^ -~]' '$TMP/plain'"
check "run --versus prints ± as +- in ASCII" grep -q '^layerskip: [0-9.]*+-[0-9.]* tokens/s, .* modelled [0-9.]*x$' "$TMP/plain"
works "run --versus runs a policy that drafts nothing" run --policy layerskip --versus ar -n 12 -p 'one two three' "$TINY"
check "run --versus prints a dash for the acceptance of ar" grep -q '^ar: .* tokens/round, acceptance –, modelled ' "$TMP/err"
works "run prints ar's text" run --policy ar -n 40 -p 'one two three' "$TINY"
check "the text of run --versus is ar's" cmp "$TMP/out" "$TMP/text"
works "diff reads a trace of two settings" diff "$TMP/two"
check "diff compares speeds of two settings that ran in turns" sh -c "grep -q '^tokens/s .*\(no clear difference\|[AB] [0-9]*% faster (\|[AB] ×\)' '$TMP/out'"
check "diff prints the knob of each of two settings" prints '^gamma γ  *5  *2$'
check "diff reports that two settings have the same text" prints '^texts: the same for 40 tokens'
if [ -n "$HAVE_PYTHON" ]; then
    check "run --versus writes both settings and the same text as JSON" json_holds "$TMP/two.json" 'len(j["settings"]) == 2 and j["sequences"][0]["token_ids"] == j["sequences"][1]["token_ids"] and j["settings"][1]["tok_per_s_se"] > 0 and j["comparison"]["segments"] > 1 and j["comparison"]["low"] <= j["comparison"]["speed_ratio"] <= j["comparison"]["high"]'
    specscope diff "$TMP/two" --json "$TMP/turns.json"
    check "run --versus and diff print the same comparison of speeds" python3 -c "
import json
run = json.load(open('$TMP/two.json'))['comparison']
diff = next(m for m in json.load(open('$TMP/turns.json'))['measures'] if m['name'] == 'tok_per_s')
assert all(abs(diff[k] - run[k]) < 1e-9 for k in ('speed_ratio', 'low', 'high')), (run, diff)"
fi
refuses "--versus with an unknown policy is refused" 2 "no policy 'joy'" run --versus 'joy' "$TINY"
refuses "--versus with a knob that its policy has not is refused" 2 'has no knob' run --versus 'layerskip joy=1' "$TINY"
refuses "--versus with a knob without a value is refused" 2 'KNOB=VALUE' run --versus 'layerskip gamma' "$TINY"
refuses "--versus without a setting is refused" 2 'which setting' run --versus '' "$TINY"
refuses "--versus with a batch is refused" 2 'this is a batch' run --batch 2 --versus layerskip "$TINY"

# On the screen: refusals are printed before the terminal changes.
refuses "diff --scope without a terminal is refused" 2 'terminal' diff $TRACES/del $TRACES/swift --scope
refuses "diff --script without --scope is refused" 2 'with --scope' diff $TRACES/del $TRACES/swift --script x
refuses "diff --json with --scope is refused" 2 'one at a time' diff $TRACES/del $TRACES/swift --scope --json -
finish
