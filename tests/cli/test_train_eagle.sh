#!/bin/sh
# specscope train eagle: usage, a short training from a text and from prompts, both formats of files, interruption.
. tests/cli/checks.sh
model=$TMP/model.gguf text=$TMP/text head=$TMP/head.gguf
"$BUILD/tests/tinymodel" "$model" --layers 6 --sharpness 8 >/dev/null || exit 1
"$BUILD/tests/tinymodel" "$TMP/flat.gguf" --layers 2 >/dev/null || exit 1
cat docs/methods.md docs/forecasts.md | head -c 20000 >"$text"
printf '{"turns": ["%s"]}\n' "a b" "b c" "c d" "d e" "a c" "b d" >"$TMP/prompts.jsonl"
text_of() { # arguments of run
    "$PROGRAM" run -n 60 --ignore-eos -p "a b" "$@" "$model" 2>/dev/null
}
same_text() { # arguments of run: the same as autoregressive decoding
    [ -n "$(text_of --policy ar)" ] && [ "$(text_of "$@")" = "$(text_of --policy ar)" ]
}
train() { # arguments
    specscope train eagle --model "$model" --draft-vocab 200 --tokens 600 --batch 64 "$@"
}

refuses "train eagle without a text is refused" 2 "--text FILE is missing" train eagle --out "$head"
refuses "train eagle without --out is refused" 2 "--out FILE is missing" train eagle --text "$text"
refuses "train eagle with two lengths is refused" 2 "give one of them" train eagle --text "$text" --out "$head" --tokens 5 --minutes 1
refuses "train eagle for a model of two layers is refused" 1 "has 2 layers, but an EAGLE-3 head reads three of its target" \
    train eagle --model "$TMP/flat.gguf" --text "$text" --out "$head"
refuses "train eagle does not replace a model" 2 "does not hold an EAGLE-3 head" train eagle --model "$model" --text "$text" --out "$model"
refuses "train eagle does not replace a text by a folder" 2 "is a file; name a new folder" train eagle --model "$model" --text "$text" --out "$text"
refuses "train eagle from a text of one window is refused" 1 "two windows of 511 are the least" train eagle --model "$model" --text "$TMP/prompts.jsonl" --out "$head"
check "a training that fails writes nothing" [ ! -e "$head" ]

train --text "$text" --window 64 --out "$head"
check "a short training from a text ends well" [ "$status" -eq 0 ]
check "a training prints an estimate before it begins" grep -q 'training on 600 tokens takes about' "$TMP/err"
check "a training reports the acceptance of three drafts" [ "$(grep -c '^draft [123] .*%' "$TMP/out")" -eq 3 ]
check "a head in GGUF drafts and keeps ar's text" same_text --policy eagle --draft "$head"
check "a head in GGUF drafts a tree and keeps ar's text" same_text --policy eagle --draft "$head" --set topk=3
works "info describes the trained head" info "$model" --draft "$head"
train --prompts "$TMP/prompts.jsonl" --response 24 --out "$head"
check "a short training from prompts replaces the head" [ "$status" -eq 0 ]
train --text "$text" --window 64 --out "$TMP/folder"
check "a short training writes a folder" [ "$status" -eq 0 ]
check "a head in a folder drafts and keeps ar's text" same_text --policy eagle --draft "$TMP/folder"
train --text "$text" --window 64 --out "$TMP/folder"
check "a training replaces the head in its folder" [ "$status" -eq 0 ]

rm -f "$head"
"$PROGRAM" train eagle --model "$model" --text "$text" --window 64 --out "$head" --draft-vocab 200 --tokens 100000 >"$TMP/out" 2>"$TMP/err" &
pid=$!
wait_until test -s "$head"
kill -TERM $pid
wait $pid
check "a training that a signal stops exits with that signal's status" [ $? -eq 143 ]
check "an interrupted training reports what it keeps" grep -q 'interrupted; the best head so far is in the file$' "$TMP/err"
check "the head of an interrupted training drafts" same_text --policy eagle --draft "$head"
check "an interrupted training writes no other file" [ "$(echo "$head"*)" = "$head" ]
finish
