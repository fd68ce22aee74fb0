#!/bin/sh
# tune: a race of settings over prompts. The winner depends on the machine; the test checks what is printed, saved and
# refused.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

for i in 1 2 3 4 5 6 7 8 9; do
    echo "{\"category\": \"$((i % 3))\", \"turns\": [\"number $i\"]}"
done >"$TMP/nine.jsonl"
tasks_are_forty() {
    test "$(wc -l <models/prompts-tasks.jsonl)" -eq 40 || return 1
    for category in questions summaries 'code edits' translation; do
        test "$(grep -c "\"category\": \"$category\"" models/prompts-tasks.jsonl)" -eq 10 || return 1
    done
}
check "the bundled list of prompts for other models has ten tasks of each of four categories" tasks_are_forty
head -6 "$TMP/nine.jsonl" >"$TMP/six.jsonl"
works "tune runs a race" tune -n 24 --policy ngram --policy sd --draft self:2 --ignore-eos --time 2m --prompts "$TMP/nine.jsonl" --json "$TMP/race.json" --csv "$TMP/race.csv" --save best "$TINY"
ranked() { # every setting of the race has a row, in the order of ranks, or is counted below the table, and one setting is named for use
    awk '/ settings raced in / { raced = $1 } $1 == rank + 1 && $2 ~ /^[0-9.]+$/ { rank++ } $1 == "..." { rank += $2 } /^To use / { named++ }
        END { exit !(raced > 0 && rank == raced && named == 1) }' "$TMP/out"
}
check "tune ranks every setting and names one winner" ranked
check "tune's table has plain decoding and both policies" sh -c "grep -q ' ar' '$TMP/out' && grep -q ' sd' '$TMP/out' && grep -q ' ngram' '$TMP/out'"
check "tune measures the winner on prompts that took no part" grep -Eq '^On [0-9]+ held-out prompts, which took no part in the race:$' "$TMP/out"
check "tune prints a verdict" grep -Eq '(faster than|slower than|within noise of) plain decoding$' "$TMP/out"
check "tune prints the command of the winner, with the models" grep -q "^  $PROGRAM --policy .* --draft self:2 $TINY\$" "$TMP/out"
check "tune prints the command of the preset" grep -q "^  $PROGRAM --preset best --draft self:2 $TINY\$" "$TMP/out"
check "tune explains the rule by which it drops settings" grep -q '^dropped: from heat 3 on, .* by a paired test' "$TMP/out"
check "tune prints the GGUF file in llama.cpp's command alone" sh -c "! grep -Eq '(vllm serve|--model-path|from_pretrained\(.)[^H]*\.gguf' '$TMP/out' && { ! grep -q HF_FOLDER '$TMP/out' || grep -q '^HF_FOLDER, .* Hugging Face folders, in place of the GGUF files$' '$TMP/out'; }"
other_engines() {
    if grep -q '^No setting is clearly faster' "$TMP/out"; then
        ! grep -Eq '^(llama.cpp|vLLM) [0-9.]*: ' "$TMP/out"
    else
        grep -q '^llama.cpp [0-9.]*: ' "$TMP/out" && grep -q '^vLLM [0-9.]*: ' "$TMP/out"
    fi
}
check "tune prints commands of other engines only if a setting is clearly faster" other_engines
if [ -n "$HAVE_PYTHON" ]; then
    check "tune's JSON and CSV have all settings, a verdict on the first, and categories" python3 - "$TMP/race.json" "$TMP/race.csv" <<'PY'
import csv, json, sys
race = json.load(open(sys.argv[1]))["settings"]
assert [s["policy"] for s in race].count("ar") == 1 and {"ngram", "sd"} < {s["policy"] for s in race}
assert "verdict" in race[0] or race[0]["policy"] == "ar"
assert all(s["set"] for s in race if s["policy"] != "ar")
assert all(int(s["set"]["n_min"]) <= int(s["set"]["n_max"]) for s in race if s["policy"] == "ngram")
lines = list(csv.DictReader(open(sys.argv[2], newline="")))
whole = [l for l in lines if l["category"] == ""]
assert [(l["policy"], int(l["rank"])) for l in whole] == [(s["policy"], i + 1) for i, s in enumerate(race)]
assert all(abs(float(l["times_ar"]) - s["times_ar"]) < 1e-6 for l, s in zip(whole, race))
assert (whole[0]["verdict"] != "") == ("verdict" in race[0])
# a category with one prompt has a speed, which lies between those of the setting's other prompts
same = {l["category"]: l["times_ar"] for l in lines if l["rank"] == "1" and l["category"] != ""}
assert same.keys() == race[0]["categories"].keys(), race[0]
assert all(x == "" or abs(float(x) - race[0]["categories"][c]["times_ar"]) < 1e-6 for c, x in same.items()), race[0]
of = [float(l["times_ar"]) for l in lines if l["rank"] == "1" and l["category"] != "" and l["times_ar"] != ""]
assert len(of) > 1 and min(of) <= float(whole[0]["times_ar"]) <= max(of), of
PY
    check "tune recommends a setting only if it is clearly faster on held-out prompts, and else gives the reason" python3 - "$TMP/race.json" "$TMP/out" <<'PY'
import json, sys
race, text = json.load(open(sys.argv[1]))["settings"], open(sys.argv[2]).read()
[fastest] = [s for s in race if s["fastest"]]
held = [s for s in race if s.get("held_out_times_ar") and s["policy"] != "ar"]
best = max(held, key=lambda s: s["held_out_times_ar"])
clear = any(s["held_out_low"] > 1 for s in held)
if clear:
    number = "%.2f x ar on held-out prompts, %.2f to %.2f" % tuple(fastest["held_out_" + k] for k in ("times_ar", "low", "high"))
    assert f"To use the fastest setting ({number}):" in text, number
else:
    assert best["held_out_times_ar"] <= 1 or fastest is best
    assert "To use plain decoding:" in text and "To use the fastest" not in text and "llama-server" not in text
    assert ", the fastest one, emits " in text and " tokens in the time of " in text
assert clear != ("No setting is clearly faster than plain decoding here" in text), held
assert clear == bool(json.load(open(sys.argv[1]))["engines"]) or clear
PY
fi
works "tune --trace works" tune -n 8 --policy sd --policy ngram --draft self:2 --ignore-eos --trace "$TMP/race" "$TINY"
has_race() { # trace
    grep -q '"policy","ar","ngram"' "$1/controls.csv" && grep -q ',"k",' "$1/controls.csv" && test "$(grep -c ',"run",' "$1/controls.csv")" -gt 30
}
check "tune's trace has its settings and runs" has_race "$TMP/race"
works "run --preset works with the winner's preset" run --preset best --draft self:2 -n 8 -p hello "$TINY"
works "tune races sampled text" tune -n 24 --temp 1 --policy ngram --ignore-eos --time 2m --prompts "$TMP/nine.jsonl" "$TINY"
check "tune's command after a sampled race samples" grep -q "^  $PROGRAM --policy .* --temp 1 --top-k 0 --top-p 1 $TINY\$" "$TMP/out"
refuses "tune with a time that is no number is refused" 2 'a time such as 90s, 5m or 1h' tune --time soon "$TINY"
refuses "tune with a time that is too short is refused" 2 'cannot race in 1s: at .* tokens/s and .* s for a prompt a heat of two settings needs about [0-9]*[sm]; give more time' tune --time 0.0001s "$TINY"
works "tune works with two held-out prompts" tune -n 8 --policy ngram --ignore-eos --time 2m --prompts "$TMP/six.jsonl" "$TINY"
check "tune prints no interval for two held-out prompts" grep -q '^ *[0-9.]*  too few prompts  ngram' "$TMP/out"
printf '{"turns": ["a"]}\n{"turns": ["b"]}\n' >"$TMP/two.jsonl"
refuses "tune with fewer than six prompts is refused" 2 'at least 6 prompts, and there are 2' tune --prompts "$TMP/two.jsonl" "$TINY"
refuses "tune with an unknown policy is refused" 2 'is not known' tune --policy nothing "$TINY"
mkdir -p "$TMP/drafts/below" "$HOME/.cache/huggingface/hub/models--org--pair/refs" "$HOME/.cache/huggingface/hub/models--org--pair/snapshots/c"
for layers in 1 2; do
    "$BUILD/tests/tinymodel" "$TMP/drafts/below/$layers.gguf" --layers 4 --first-layers $layers --calm-after 1 --calm 0.1 --sharpness 8 >/dev/null
done
cp "$TINY" "$TMP/drafts/target.gguf"
"$BUILD/tests/tinymodel" "$TMP/drafts/other.gguf" --layers 1 --vocab 300 --no-space-prefix >/dev/null
head -c 1000 "$TINY" >"$TMP/drafts/broken.gguf"
works "tune takes each smaller model of a folder with the target's vocabulary as a draft model" tune -n 24 --ignore-eos --policy sd --drafts "$TMP/drafts" --time 60s \
    --json "$TMP/drafts.json" "$TINY"
check "tune counts models that are no draft models by reason" \
    grep -q ': 2 draft models; skipped: 1 not readable, 1 with another vocabulary, 1 not smaller than the target$' "$TMP/err"
check "tune's table has both draft models" sh -c "grep -q 'with $TMP/drafts/below/1.gguf' '$TMP/out' && grep -q 'with $TMP/drafts/below/2.gguf' '$TMP/out'"
check "tune's JSON names the draft models" sh -c "grep -q '\"draft\":.*below/1.gguf' '$TMP/drafts.json' && grep -q '\"draft\":.*below/2.gguf' '$TMP/drafts.json'"
cp "$TMP/drafts/below/2.gguf" "$HOME/.cache/huggingface/hub/models--org--pair/snapshots/c/pair.gguf"
echo c >"$HOME/.cache/huggingface/hub/models--org--pair/refs/main"
works "tune finds draft models in a cache" tune -n 24 --ignore-eos --policy sd --drafts hf --time 60s "$TINY"
check "tune's table names draft models as the cache does" grep -q 'with hf:org/pair:pair.gguf' "$TMP/out"
refuses "tune with a folder of drafts that does not exist is refused" 2 'no such folder' tune --drafts "$TMP/nowhere" "$TINY"
"$PROGRAM" tune -n 32 --time 1h --trace "$TMP/cut" >"$TMP/out" 2>"$TMP/err" &
PID=$!
until_heats() { test "$(grep -c ',"run",' "$TMP/cut/controls.csv" 2>/dev/null)" -gt 70; }
wait_until until_heats
kill -INT $PID
wait $PID
check "an interrupted tune exits with status 130" test $? -eq 130
check "an interrupted tune prints the standings so far" sh -c "grep -q ' settings raced in [1-9][0-9]* heat' '$TMP/out' && grep -q '^interrupted: nothing was measured' '$TMP/out'"
finish
