#!/bin/sh
# Training for the model's own first layers as draft and companion, and generating with the trained files.
. tests/cli/checks.sh
model=$TMP/model.gguf text=$TMP/text head_file=$TMP/accept.safetensors profile=$TMP/profile.json
"$BUILD/tests/tinymodel" "$model" --layers 6 --calm-after 1 --calm 0.1 --sharpness 8 >/dev/null || exit 1
"$BUILD/tests/tinymodel" "$TMP/other.gguf" --layers 1 --calm-after 1 --calm 0.1 --sharpness 8 >/dev/null || exit 1
cat docs/methods.md docs/forecasts.md | head -c 20000 >"$text"
says() { # file, pattern
    grep -Eq "$2" "$TMP/$1"
}
text_of() { # arguments of run
    "$PROGRAM" run -n 60 --ignore-eos -p "a b" "$@" "$model" 2>/dev/null
}
same_text() { # arguments of run: the same as autoregressive decoding
    [ -n "$(text_of --policy ar)" ] && [ "$(text_of "$@")" = "$(text_of --policy ar)" ]
}
train() { # accept or profile, arguments
    what=$1
    shift
    specscope train "$what" --model "$model" --text "$text" --tokens 600 --response 16 --prompt-tokens 12 --temp 0 "$@"
}

train accept --draft self:2 --blocks 1 --passes 2 --out "$head_file"
check "train accept trains a head of the model's first layers" [ "$status" -eq 0 ]
check "train accept names the model's first layers" says out 'acceptance head of self:2 for tiny'
check "the head's file names the model's first layers" grep -aq '"draft":"self:2".*"draft_layers":"2"' "$head_file"
works "specdecpp drafts with a head of the model's first layers" run -n 20 --policy specdecpp --draft self:2 --accept "$head_file" "$model"
check "specdecpp prints no warning about the head of its own layers" [ "$(grep -c . "$TMP/err")" -le 2 ]
for set in h=0 h=0.5 h=1; do
    check "specdecpp with $set generates ar's text" same_text --policy specdecpp --draft self:2 --accept "$head_file" --set $set
done
refuses "a head of other layers is refused" 1 "trained for another draft model (self:2; this is self:3)" \
    run --policy specdecpp --draft self:3 --accept "$head_file" "$model"
refuses "a head of the model's layers is refused for another draft model" 1 "trained for another draft model (self:2" \
    run --policy specdecpp --draft "$TMP/other.gguf" --accept "$head_file" "$model"

train profile --draft self:1 --companion self:3 --out "$profile"
check "train profile works with the model's first layers and with some more" [ "$status" -eq 0 ]
check "train profile names both numbers of layers" says out 'profile of tiny, self:1 and self:3'
works "sv runs with a profile of the model's layers" run -n 40 --policy sv --draft self:1 --companion self:3 --profile "$profile" --trace "$TMP/trace" "$model"
check "sv looks up cells of a profile of the model's layers" grep -q ',"cell",' "$TMP/trace/series.csv"
for set in row_cost=0 row_cost=0.3 verify=all; do
    check "sv with $set generates ar's text" same_text --policy sv --draft self:1 --companion self:3 --profile "$profile" --set $set
done
refuses "a profile of another depth of the draft is refused" 2 "of another draft model, self:1" \
    run --policy sv --draft self:2 --companion self:3 --profile "$profile" "$model"
refuses "a profile of another depth of the companion is refused" 2 "of another companion model, self:3" \
    run --policy sv --draft self:1 --companion self:4 --profile "$profile" "$model"

refuses "a draft of layers that the model lacks is refused" 2 "a layer from 1 to 5 is wanted" \
    train accept --model "$model" --draft self:6 --text "$text" --out "$TMP/x"
refuses "a draft of the model's layers without a model is refused" 2 "MODEL is missing: which model drafts" \
    train accept --model "$model" --draft none --text "$text" --out "$TMP/x"
finish
