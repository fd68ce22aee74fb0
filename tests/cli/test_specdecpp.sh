#!/bin/sh
# specdecpp and its acceptance head: a short training, finding by name or path, refusals, messages if it is missing.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

pair=$TMP/pair-q8_0.gguf draft=$TMP/pair-draft-q8_0.gguf other=$TMP/other.gguf
found=$TMP/pair-draft-q8_0.accept.safetensors head=$TMP/head.safetensors
cp "$TINY" "$pair"
"$BUILD/tests/tinymodel" "$draft" --layers 4 --first-layers 1 --calm-after 1 --calm 0.1 --sharpness 8 >/dev/null || exit 1
"$BUILD/tests/tinymodel" "$other" --layers 2 --seed 8 >/dev/null || exit 1
cat docs/methods.md docs/forecasts.md | head -c 20000 >"$TMP/text"
says() { # file, pattern
    grep -Eq "$2" "$TMP/$1"
}
text_of() { # arguments of run
    "$PROGRAM" run -n 40 --ignore-eos -p "a b" "$@" 2>/dev/null
}
drafts() { # arguments of run: how many drafts each round had
    rm -rf "$TMP/trace"
    specscope run -n 40 --ignore-eos -p "a b" --policy specdecpp --trace "$TMP/trace" "$@"
    python3 -c "
import csv
print(*sorted({r['stop_reason'] + r['drafted'] for r in csv.DictReader(open('$TMP/trace/rounds.csv')) if r['stop_reason'] != 'budget'}))"
}

refuses "specdecpp without a draft model is refused" 2 "policy specdecpp needs a draft model" run --policy specdecpp -n 4 "$TINY"
refuses "specdecpp without an acceptance head is refused" 2 "policy specdecpp needs an acceptance head: give one with --accept FILE" \
    run --policy specdecpp -n 4 --draft self:1 "$TINY"
works "bench works without an acceptance head" bench -n 4 --repeat 1 -p a "$pair"
check "bench prints no line for specdecpp without a head" sh -c "! grep -q '^specdecpp' '$TMP/out'"

works "train accept writes an acceptance head" train accept --model "$pair" --text "$TMP/text" --tokens 600 --response 16 --prompt-tokens 12 \
    --blocks 1 --passes 2 --out "$head"
works "specdecpp accepts an acceptance head" run -n 40 --policy specdecpp --accept "$head" --trace "$TMP/trace" "$pair"
check "the trace names the acceptance head" grep -q '"path":.*head.safetensors"' "$TMP/trace/run.json"
check "specdecpp prints no note about a given head" sh -c "! grep -q head '$TMP/err'"
check "specdecpp generates ar's text" [ "$(text_of --policy specdecpp --accept "$head" "$pair")" = "$(text_of --policy ar "$pair")" ]
check "specdecpp with h=0 drafts as few tokens as it may" [ "$(drafts --accept "$head" --set h=0 --set min=3 "$pair")" = "h3" ]
check "specdecpp with h=1 drafts as many tokens as it may" [ "$(drafts --accept "$head" --set h=1 --set max=6 "$pair")" = "max6" ]
check "the trace of specdecpp has p̂" grep -Eq ',"p",5,0?\.[0-9]+' "$TMP/trace/series.csv"
check "the trace of specdecpp has the probability of a rejection, and h" grep -Eq ',"stop",1,1$' "$TMP/trace/series.csv"

cp "$head" "$found"
works "specdecpp finds the head in the draft model's folder by its name" run -n 8 --policy specdecpp "$pair"
works "info describes a draft model with a head" info --draft "$draft" "$pair"
check "info prints the head's memory" says out 'beside it an acceptance head .D = 1., which takes [0-9.]+ KiB'
refuses "--accept none ignores the head in the draft model's folder" 2 "needs an acceptance head" run --policy specdecpp --draft "$draft" --accept none -n 8 "$pair"
works "bench has specdecpp among all policies where a head is found" bench -n 4 --repeat 1 -p a --draft "$draft" "$pair"
check "bench prints a line for specdecpp" says out '^specdecpp'
check "bench with specdecpp is lossless" sh -c "! grep -q 'no: token' '$TMP/out'"
works "bench sweeps h" bench -n 8 --repeat 1 -p "a b" --policy specdecpp --grid h=0.1:0.9:0.4 --csv "$TMP/csv" "$pair"
check "bench prints a line for each h" [ "$(grep -c '^specdecpp' "$TMP/csv")" -eq 3 ]

refuses "another draft model's head is refused" 1 "trained for another file of tiny, with other weights" \
    run --policy specdecpp --draft "$other" --accept "$head" -n 4 "$pair"
refuses "a file that is no acceptance head is refused" 1 "README.md" run --policy specdecpp --accept README.md -n 4 "$pair"
refuses "an acceptance head that does not exist is refused" 1 "nowhere" run --policy specdecpp --accept "$TMP/nowhere" -n 4 "$pair"
cp README.md "$found"
specscope run --policy sd -n 4 "$pair"
check "specdecpp names a found file that is no head" says err 'without the acceptance head beside the draft model: '
check "a found file that is no head does not affect sd" [ "$status" -eq 0 ]
cp "$head" "$found"
works "a head that was trained for another target runs" run -n 4 --policy specdecpp --draft "$draft" "$other"
check "specdecpp notes that a head was trained for another target" says err 'the acceptance head learned what another target accepts: tiny'
works "--list-policies works" run --list-policies
check "--list-policies prints both needs of specdecpp" sh -c "grep -A2 '^specdecpp' '$TMP/out' | grep -c '    needs ' | grep -qx 2"
finish
