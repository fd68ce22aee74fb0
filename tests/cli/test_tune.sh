#!/bin/sh
# tune: a race of settings over prompts. The winner depends on the machine; the test checks what is printed, saved and refused.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

works "a race ends with a winner" tune -n 24 --policy ngram --policy sd --draft self:2 --time 1s --json "$TMP/race.json" --save best "$TINY"
check "the table has plain decoding and both policies" sh -c "grep -q ' ar' '$TMP/out' && grep -q ' sd' '$TMP/out' && grep -q ' ngram' '$TMP/out'"
check "the winner was measured on prompts that took no part" grep -q '^On 10 held-out prompts:$' "$TMP/out"
check "with a verdict" grep -Eq '(faster than|slower than|within noise of) plain decoding$' "$TMP/out"
check "the command of the winner is printed, with the models" grep -q "^specscope --policy .* --draft self:2 $TINY\$" "$TMP/out"
check "so are those of other engines" sh -c "grep -q '^llama.cpp [0-9.]*: ' '$TMP/out' && grep -q '^vLLM [0-9.]*: ' '$TMP/out'"
if [ -n "$HAVE_PYTHON" ]; then
    check "the JSON has all settings, and a verdict on the first" python3 - "$TMP/race.json" <<'PY'
import json, sys
race = json.load(open(sys.argv[1]))["settings"]
assert [s["policy"] for s in race].count("ar") == 1 and {"ngram", "sd"} < {s["policy"] for s in race}
assert "verdict" in race[0] or race[0]["policy"] == "ar"
assert all(s["set"] for s in race if s["policy"] != "ar")
PY
fi
works "the preset is one" run --preset best --draft self:2 -n 8 -p hello "$TINY"
works "sampled text can be raced, too" tune -n 24 --temp 1 --policy ngram --time 1s "$TINY"
refuses "a time without a number" 2 'a time such as 90s, 5m or 1h' tune --time soon "$TINY"
printf '{"turns": ["a"]}\n{"turns": ["b"]}\n' >"$TMP/two.jsonl"
refuses "fewer than six prompts" 2 'at least 6 prompts, and there are 2' tune --prompts "$TMP/two.jsonl" "$TINY"
refuses "an unknown policy" 2 'is not known' tune --policy nothing "$TINY"
finish
