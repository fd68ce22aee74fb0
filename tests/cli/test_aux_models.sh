#!/bin/sh
# Draft models: finding by name, giving a path, comparison, refusals; what run, bench, info, traces and --list-policies
# print about them.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

draft=$TMP/small.gguf other=$TMP/other.gguf pair=$TMP/pair-q8_0.gguf
tiny() { # file, arguments
    "$BUILD/tests/tinymodel" "$@" >/dev/null || exit 1
}
tiny "$draft" --layers 4 --first-layers 1 --calm-after 1 --calm 0.1 --sharpness 8
tiny "$other" --layers 1 --nasty
cp "$TINY" "$pair"
cp "$draft" "$TMP/pair-draft-q8_0.gguf"
cp "$other" "$TMP/pair-companion-q8_0.gguf"
says() { # file, pattern
    grep -Eq "$2" "$TMP/$1"
}
text_of() { # arguments of run
    "$PROGRAM" run -n 40 --ignore-eos -p "a b" "$@" 2>/dev/null
}

refuses "sd without a draft model is refused" 2 "policy sd needs a draft model: give one with --draft PATH or --draft self:E" \
    run --policy sd -n 4 "$TINY"
refuses "a draft of more layers than the model has is refused" 2 "self:4: a layer from 1 to 3 is wanted" run --policy sd --draft self:4 "$TINY"
refuses "a draft layer that is no number is refused" 2 "self:x" run --policy sd --draft self:x "$TINY"
refuses "another vocabulary is refused by the token" 2 "different vocabularies: token 259 " \
    run --policy sd --draft "$other" "$TINY"
refuses "a companion with another vocabulary is refused by the token" 2 "different vocabularies: token 259 " run --companion "$other" "$TINY"
refuses "a draft model that is not there is refused" 1 "none.gguf" run --draft "$TMP/none.gguf" "$TINY"

check "sd generates ar's text" [ "$(text_of --policy sd --draft "$draft" "$TINY")" = "$(text_of --policy ar "$TINY")" ]
check "sd with the model's own first layer generates ar's text" [ "$(text_of --policy sd --draft self:1 "$TINY")" = "$(text_of --policy ar "$TINY")" ]

works "a draft model is found by its name" run -n 8 --policy sd --set k=3 --trace "$TMP/trace" --json "$TMP/j" "$pair"
check "run names the draft model that it found beside the model" says err 'the draft model is .*pair-draft-q8_0.gguf, found beside the model'
check "the results contain the draft model that was found" says j '"draft":.*"tiny"'
check "the trace contains the draft model's path, name and hash" sh -c "tr -d '\n\t' <'$TMP/trace/run.json' | grep -q '\"draft\":{\"path\":\".*pair-draft-q8_0.gguf\",\"name\":\"tiny\",\"hash\":\"[0-9a-f]*\"'"
works "a draft model is not looked up for a policy that needs none" run -n 4 --policy ar "$pair"
check "run prints nothing about a draft model that it does not need" sh -c "! grep -q found '$TMP/err'"
refuses "--draft none leaves out the draft model beside the model" 2 "needs a draft model" run --policy sd --draft none "$pair"
cp "$other" "$TMP/pair-draft-q8_0.gguf"
specscope run -n 4 --policy sd "$pair"
check "a draft model beside the model that doesn't fit is named" says err 'without the draft model beside it: .*different vocabularies'
check "sd without a fitting draft model ends with status 2" [ "$status" -eq 2 ]

works "info compares two models" info --draft "$draft" "$TINY"
check "info gives the draft model's size as a share of the model's" says out '^draft +tiny: 1 layer of width 64, .* of the model.s'
check "info gives the bytes of a draft model's layer" says out 'a layer has 1.000 of the bytes'
check "info counts the tokens that two vocabularies share" says out '320 tokens are the same'
works "info compares a model with a draft model of another vocabulary" info --draft "$other" "$TINY"
check "info names the first token that differs between two vocabularies" says out 'token 259'
works "info compares two models as JSON" info --json --draft "$draft" "$TINY"
check "info's JSON reports that the vocabularies are the same" says out '"same_vocabulary":.*true'

cp "$TINY" "$TMP/couple-Q8_0.gguf"
"$BUILD/tests/tinymodel" "$TMP/couple-draft-Q8_0.gguf" --layers 4 --first-layers 2 --calm-after 1 --calm 0.1 --sharpness 8 >/dev/null
works "the draft model beside the model is found for the second setting of --versus" run -n 8 -p hello --policy ar --versus 'sd k=2' "$TMP/couple-Q8_0.gguf"
works "--list-policies prints what a policy needs" run --list-policies
check "--list-policies prints which policies need a draft model" says out '^    needs a draft model'

works "bench sweeps sd's knob" bench -n 8 --repeat 1 -p "a b" --policy sd --grid k=2:4:1 --draft "$draft" --csv "$TMP/csv" "$TINY"
check "the CSV of a swept knob has a line for each point" [ "$(grep -c '^sd' "$TMP/csv")" -eq 3 ]
check "every point of sd's sweep is lossless" sh -c "! grep -q 'no: token' '$TMP/out'"
works "bench without a draft model leaves sd out" bench -n 4 --repeat 1 -p a "$TINY"
check "bench prints no line for a policy that lacks its draft model" sh -c "! grep -q '^sd' '$TMP/out'"
finish
