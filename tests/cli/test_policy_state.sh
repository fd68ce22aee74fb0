#!/bin/sh
# What a policy learns goes from prompt to prompt, and through --policy-state from command to command; what learning it
# took is told beside the speed.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

state() { # of swift's search, the value of a key
    sed -n "s/^\t\"$1\":\t\(.*\),$/\1/p" "$TMP"/state/swift-*.json
}
MODEL=$TMP/deep.gguf # whose draft, with all that is skipped, is seldom right
"$BUILD/tests/tinymodel" "$MODEL" --seed 3 --layers 9 --calm-after 3 --calm 0.5 >/dev/null || exit 1
SEARCH="--policy swift --set window=8 --set target=1 --set patience=10000 --set skip_ratio=0.6 --ignore-eos" # one that goes on
printf '{"turns": ["hello"]}\n{"turns": ["again"]}\n' >"$TMP/prompts.txt"
mkdir "$TMP/state"

works "a search is kept in a folder" run $SEARCH -n 60 -p hello --policy-state "$TMP/state" --json "$TMP/run.json" "$MODEL"
check "in one file, the model's" sh -c "[ \$(ls '$TMP/state' | wc -l) -eq 1 ]"
first=$(state steps)
works "the next command finds it" run $SEARCH -n 60 -p hello --policy-state "$TMP/state" "$MODEL"
check "and goes on there" [ "$(state steps)" -gt "$first" ]
rm "$TMP"/state/*
works "one search serves several prompts" run $SEARCH -n 60 --prompts "$TMP/prompts.txt" --policy-state "$TMP/state" "$MODEL"
check "it went on at the second" [ "$(state steps)" -gt "$first" ]
rm "$TMP"/state/*
works "of bench too" bench $SEARCH -n 60 --repeat 2 -p hello --policy-state "$TMP/state" --json "$TMP/bench.json" "$MODEL"
check "it went on in the second pass" [ "$(state steps)" -gt "$first" ]
check "the table has speeds without learning passes and with them" grep -q '^policy *tokens/s *x ar *from *to *all in ' "$TMP/out"
check "and what share of the time they took" grep -q '^time .* learned$' "$TMP/out"
works "a run with learning passes says both speeds" run $SEARCH -n 60 -p hello "$MODEL"
check "on stderr" grep -Eq '^swift: .* tokens/s \([0-9.]+ all in\), ' "$TMP/err"
works "one without says one" run --policy layerskip -n 20 -p hello "$MODEL"
check "and no more" sh -c "! grep -q 'all in' '$TMP/err'"
if [ -n "$HAVE_PYTHON" ]; then
    check "results say both" python3 - "$TMP/run.json" "$TMP/bench.json" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
lanes = {r["policy"]: r for r in json.load(open(sys.argv[2]))["results"]}
for r in run, lanes["swift"]:
    assert r["aside_s"] > 0 and 0 < r["aside_share"] < 1 and r["tok_per_s_all_in"] < r["tok_per_s"], r
    assert abs(r["tok_per_s_all_in"] * (r["decode_s"] + r["aside_s"]) / r["emitted"] - 1) < 1e-6
assert lanes["swift"]["speedup_all_in"] < lanes["swift"]["speedup"]
assert lanes["ar"]["aside_s"] == 0 and lanes["ar"]["tok_per_s_all_in"] == lanes["ar"]["tok_per_s"]
PY
fi

file=$(ls "$TMP"/state/swift-*.json)
echo '{"switches": 14, "steps": 12, "matchness": 0.75, "skipped": [0, 1, 2, 3, 7, 8, 9, 13]}' >"$file"
works "what an older version kept is read" run $SEARCH -n 60 -p hello --policy-state "$TMP/state" "$MODEL"
check "and gone on with" [ "$(state steps)" -gt 12 ]
echo nonsense >"$file"
refuses "a broken file is refused" 1 'not a saved search; delete it' run $SEARCH -n 9 -p hello --policy-state "$TMP/state" "$MODEL"
specscope run $SEARCH -n 60 -p hello --policy-state "$TMP/no/such/folder" "$MODEL"
check "a folder that is not there fails the work" [ "$status" -ne 0 ]
check "and is named" grep -q "$TMP/no/such/folder" "$TMP/err"
finish
