#!/bin/sh
# Draft models: finding by name, giving a path, comparison, refusals; what run, bench, info, traces and --list-policies print about them.
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

refuses "sd wants a draft model" 2 "policy sd needs a draft model: give one with --draft PATH or --draft self:E" \
    run --policy sd -n 4 "$TINY"
refuses "layers are the model's" 2 "self:4: a layer from 1 to 3 is wanted" run --policy sd --draft self:4 "$TINY"
refuses "and numbers" 2 "self:x" run --policy sd --draft self:x "$TINY"
refuses "another vocabulary is refused by the token" 2 "different vocabularies: token 259 " \
    run --policy sd --draft "$other" "$TINY"
refuses "so is a companion's" 2 "different vocabularies: token 259 " run --companion "$other" "$TINY"
refuses "a missing file is named" 1 "none.gguf" run --draft "$TMP/none.gguf" "$TINY"

check "sd generates ar's text" [ "$(text_of --policy sd --draft "$draft" "$TINY")" = "$(text_of --policy ar "$TINY")" ]
check "self:1, too" [ "$(text_of --policy sd --draft self:1 "$TINY")" = "$(text_of --policy ar "$TINY")" ]

works "a draft model is found by its name" run -n 8 --policy sd --set k=3 --trace "$TMP/trace" --json "$TMP/j" "$pair"
check "which is reported" says err 'the draft model is .*pair-draft-q8_0.gguf, found beside the model'
check "it is in the results" says j '"draft":.*"tiny"'
check "and in the trace" sh -c "tr -d '\n\t' <'$TMP/trace/run.json' | grep -q '\"draft\":{\"path\":\".*pair-draft-q8_0.gguf\",\"name\":\"tiny\",\"hash\":\"[0-9a-f]*\"'"
works "it is not looked up without need" run -n 4 --policy ar "$pair"
check "and nothing is printed" sh -c "! grep -q found '$TMP/err'"
refuses "--draft none leaves it out" 2 "needs a draft model" run --policy sd --draft none "$pair"
cp "$other" "$TMP/pair-draft-q8_0.gguf"
specscope run -n 4 --policy sd "$pair"
check "one that doesn't fit is passed over" says err 'without the draft model beside it: .*different vocabularies'
check "and missed" [ "$status" -eq 2 ]

works "info compares two models" info --draft "$draft" "$TINY"
check "by size" says out '^draft +tiny: 1 layer of width 64, .* of the model.s'
check "by bytes" says out 'a layer has 1.000 of the bytes'
check "by vocabulary" says out '320 tokens are the same'
works "different vocabularies are a finding" info --draft "$other" "$TINY"
check "by the token" says out 'token 259'
works "info as JSON has it, too" info --json --draft "$draft" "$TINY"
check "with the same figures" says out '"same_vocabulary":.*true'

works "--list-policies prints what a policy needs" run --list-policies
check "a draft model" says out '^    needs a draft model'

works "bench sweeps sd's knob" bench -n 8 --repeat 1 -p "a b" --policy sd --grid k=2:4:1 --draft "$draft" --csv "$TMP/csv" "$TINY"
check "a line for each point" [ "$(grep -c '^sd' "$TMP/csv")" -eq 3 ]
check "all lossless" sh -c "! grep -q 'no: token' '$TMP/out'"
works "bench without a draft model leaves sd out" bench -n 4 --repeat 1 -p a "$TINY"
check "quietly" sh -c "! grep -q '^sd' '$TMP/out'"
finish
