#!/bin/sh
# A policy uses what it learned for the next prompts, and the time of its learning passes is printed after the speed.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

MODEL=$TMP/deep.gguf # whose draft, with all that is skipped, is seldom right
"$BUILD/tests/tinymodel" "$MODEL" --seed 3 --layers 9 --calm-after 3 --calm 0.5 >/dev/null || exit 1
SEARCH="--policy swift --set window=8 --set target=1 --set patience=10000 --set skip_ratio=0.6 --ignore-eos" # one that goes on
printf '{"turns": ["hello"]}\n{"turns": ["again"]}\n' >"$TMP/prompts.txt"

works "run ends a search in the first prompt of a list" run $SEARCH --set max_steps=5 -n 60 --prompts "$TMP/prompts.txt" --json "$TMP/prompts.json" "$MODEL"
[ -n "$HAVE_PYTHON" ] && check "run uses what a search learned in the first prompt for the second" json_holds "$TMP/prompts.json" '[r["learning_s"] > 0 for r in j["results"]] == [True, False]'
works "run writes the time of learning passes as JSON" run $SEARCH -n 60 -p hello --json "$TMP/run.json" "$MODEL"
works "bench writes the time of learning passes as JSON" bench $SEARCH -n 60 --repeat 2 -p hello --json "$TMP/bench.json" "$MODEL"
check "bench prints speeds without learning passes and with them" grep -q '^policy *tokens/s *x ar *from *to *all in ' "$TMP/out"
check "bench prints the share of time of learning passes" grep -q '^time .* learned$' "$TMP/out"
works "a run with learning passes prints both speeds" run $SEARCH -n 60 -p hello "$MODEL"
check "run prints its speed with learning passes on stderr" grep -Eq '^swift: .* tokens/s \([0-9.]+ all in\), ' "$TMP/err"
works "a run without learning passes works" run --policy layerskip -n 20 -p hello "$MODEL"
check "a run without learning passes prints one speed" sh -c "! grep -q 'all in' '$TMP/err'"
if [ -n "$HAVE_PYTHON" ]; then
    check "the JSON of run has both speeds, and their ratio is that of the times" python3 - "$TMP/run.json" "$TMP/bench.json" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
lanes = {r["policy"]: r for r in json.load(open(sys.argv[2]))["results"]}
for r in run, lanes["swift"]:
    assert r["learning_s"] > 0 and 0 < r["learning_share"] < 1 and r["tok_per_s_all_in"] < r["tok_per_s"], r
    assert abs(r["tok_per_s_all_in"] * (r["decode_s"] + r["learning_s"]) / r["emitted"] - 1) < 1e-6
assert lanes["swift"]["speedup_all_in"] < lanes["swift"]["speedup"]
assert lanes["ar"]["learning_s"] == 0 and lanes["ar"]["tok_per_s_all_in"] == lanes["ar"]["tok_per_s"]
PY
fi
finish
