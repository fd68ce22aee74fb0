#!/bin/sh
# Speculative Verification: its profile is trained, found or given; messages if it is missing or of other models.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

model=$TMP/trio-q8_0.gguf draft=$TMP/trio-draft-q8_0.gguf companion=$TMP/trio-companion-q8_0.gguf
profile=$TMP/trio-q8_0.profile.json
tiny() { # file, arguments
    "$BUILD/tests/tinymodel" "$@" >/dev/null || exit 1
}
tiny "$model" --layers 4 --calm-after 1 --calm 0.1 --sharpness 8
tiny "$draft" --layers 4 --first-layers 1 --calm-after 1 --calm 0.1 --sharpness 8
tiny "$companion" --layers 4 --first-layers 2 --calm-after 1 --calm 0.1 --sharpness 8
cat tests/golden/prose.txt tests/golden/make_models_golden.py | head -c 20000 >"$TMP/text"
says() { # file, pattern
    grep -Eq "$2" "$TMP/$1"
}
text_of() { # arguments of run
    "$PROGRAM" run -n 40 --ignore-eos -p "a b" "$@" 2>/dev/null
}

refuses "sv without a draft model is refused" 2 "policy sv needs a draft model: give one with --draft" run --policy sv --draft none --companion none "$model"
refuses "sv without a companion is refused" 2 "policy sv needs a companion model: give one with --companion" \
    run --policy sv --draft "$draft" --companion none "$model"
refuses "sv without a profile is refused" 2 "policy sv needs a profile of the three models: give one with --profile FILE" \
    run --policy sv --draft "$draft" --companion "$companion" "$model"
refuses "sv with a profile that is not there is refused" 1 "none.json" run --policy sv --profile "$TMP/none.json" "$model"

works "train profile writes a profile" train profile --model "$model" --text "$TMP/text" --tokens 600 --response 16 --prompt-tokens 12 \
    --temp 0 --out "$profile"
works "sv finds the profile beside the model by its name" run -n 40 --policy sv --set row_cost=0.3 --trace "$TMP/trace" -p "a b" --ignore-eos "$model"
check "the trace of sv names the profile" grep -q '"path":.*trio-q8_0.profile.json"' "$TMP/trace/run.json"
works "run --probe all probes all layers of all three models" run -n 40 --policy sv --probe all --trace "$TMP/layers" -p "a b" --ignore-eos "$model"
check "layers.csv contains the model of each layer" [ "$(cut -d, -f7 "$TMP/layers/layers.csv" | sort -u | tr '\n' ' ')" = " companion draft model " ]
check "sv cuts drafts" awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["verified"] < $at["drafted"] { n++ } END { exit n == 0 }' "$TMP/trace/rounds.csv"
for key in s a p cell gamma cut goodput latency table; do
    check "the trace of sv has $key" grep -q ",\"$key\"," "$TMP/trace/series.csv"
done
check "the trace of sv gives drafts that were not verified no verdict" grep -q 'draft,.*,,$' "$TMP/trace/tokens.csv"
for set in row_cost=0 row_cost=0.2 window=12 cap=1 verify=all; do
    check "sv with $set generates ar's text" [ "$(text_of --policy sv --set $set "$model")" = "$(text_of --policy ar "$model")" ]
done
specscope run -n 4 --policy sv --temp 0.7 "$model"
check "sv reports a temperature that is not the profile's" says err 'profile is of temperature 0'
specscope run -n 4 --policy sd --temp 0.7 "$model"
check "sd reports no temperature of a profile" sh -c "! grep -q profile '$TMP/err'"
works "bench measures sv" bench -n 8 --repeat 1 -p "a b" --policy sv --policy sd --csv "$TMP/csv" "$model"
check "bench with sv is lossless" sh -c "! grep -q 'no: token' '$TMP/out'"

refuses "a profile of another draft model is refused" 2 "is the profile of another draft model, tiny" \
    run --policy sv --draft "$companion" --companion "$companion" --profile "$profile" "$model"
refuses "a profile of another target is refused" 2 "is the profile of another file of tiny, with other weights" \
    run --policy sv --draft "$draft" --companion "$companion" --profile "$profile" "$companion"
specscope run -n 4 --policy sv --draft "$companion" "$model"
check "sv names a found profile of another draft model" says err 'without the profile beside the model: .*another draft model'
check "sv without a fitting profile ends with status 2" [ "$status" -eq 2 ]
check "sv without a fitting profile gives the reason" says err 'policy sv needs a profile: .* is the profile of another draft model'

# --quantize q8_0 changes only tensors of other types.
hash_of() { # trace
    grep -o '"hash":[^,]*' "$1/run.json" | head -n 1
}
specscope run -n 1 --trace "$TMP/plain" models/fables-q8_0.gguf
specscope run -n 1 --trace "$TMP/quantized" --quantize q8_0 models/fables-q8_0.gguf
check "--quantize q8_0 leaves a file in Q8_0 the model that it is" [ "$(hash_of "$TMP/plain")" = "$(hash_of "$TMP/quantized")" ]
specscope run -n 4 --policy sv --quantize q8_0 models/fables-q8_0.gguf
check "sv uses the heads, draft and profile in the folder of a model in Q8_0" sh -c "[ $status -eq 0 ] && ! grep -q 'without' '$TMP/err'"
specscope run -n 4 --policy sv --quantize q8_0 "$model"
check "--quantize reports in one line that weights of a trained model change" says err 'profile of tiny without --quantize, which changes its weights'
refuses "--profile none ignores the profile beside the model" 2 "needs a profile" \
    run --policy sv --draft "$draft" --companion "$companion" --profile none "$model"
works "--list-policies works" run --list-policies
check "--list-policies prints sv's knobs" says out '^    row_cost '
finish
