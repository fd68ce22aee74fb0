#!/bin/sh
# specscope train heads: usage, short trainings on a text and on answers, interruption.
. tests/cli/checks.sh
text=$TMP/text
out_file=$TMP/heads.safetensors
cat docs/methods.md docs/forecasts.md | head -c 20000 >"$text"
echo short >"$TMP/short"

refuses "train without a kind is refused" 2 "train heads" train
refuses "train without --out is refused" 2 "out" train heads --text "$text"
refuses "train of an unknown kind is refused" 2 "affine and full" train heads --text "$text" --out "$out_file" --kind cubic
refuses "train with an empty batch is refused" 2 "batch" train heads --text "$text" --out "$out_file" --batch 0

specscope train heads --text "$TMP/none" --out "$out_file" --model "$TINY"
check "train with a text that is not there exits with status 1" [ "$status" -eq 1 ]
specscope train heads --text "$TMP/short" --out "$out_file" --model "$TINY"
check "train with a text of less than two windows exits with status 1" [ "$status" -eq 1 ]
check "a training that fails writes nothing" [ ! -e "$out_file" ]

specscope train heads --text "$text" --out "$out_file" --model "$TINY" --tokens 2000 --batch 64 --window 64
check "a short training ends well" [ "$status" -eq 0 ]
check "a short training reports every layer but the last" [ "$(grep -c '%.*%' "$TMP/out")" -eq 3 ]
check "the trained file names the model" grep -aq '"model_hash"' "$out_file"
specscope train heads --text "$text" --out "$out_file" --model "$TINY" --tokens 2000 --window 64 --kind full
check "train heads --kind full works" [ "$status" -eq 0 ]
specscope train heads --text "$text" --out "$out_file" --model "$TINY" --tokens 500 --window 64 --layers 1:3:2 --draft-vocab 64
check "train heads --layers trains these layers" [ "$(awk '$1 ~ /^[0-9]+$/ { printf "%s ", $1 }' "$TMP/out")" = "1 3 " ]
check "the file of some layers lists them and the draft vocabulary" grep -aq '"layers":"1,3","draft_vocab":"64"' "$out_file"
check "the counts that order the draft vocabulary are beside the heads" [ "$(head -1 "$out_file.counts")" = "specscope token counts 1" ]
specscope run -n 8 --policy layerskip --set exit_layer=1 --heads "$out_file" -p "Three mice" "$TINY"
check "heads of some layers are used" [ "$status" -eq 0 ]
refuses "train heads for the last layer is refused" 2 "layers from 1 to 3" train heads --text "$text" --out "$out_file" --model "$TINY" --layers 2,4
for i in 1 2 3 4; do echo "{\"turns\": [\"Write a story about $i mice\"]}"; done >"$TMP/prompts.jsonl"
specscope train heads --prompts "$TMP/prompts.jsonl" --out "$out_file" --model "$TINY" --tokens 30 --response 20 --at-once 2
check "train heads --prompts trains on the model's answers" [ "$status" -eq 0 ]
check "the answers end when there are enough tokens" grep -q "^answers .*100%  40 tokens" "$TMP/err"
refuses "train heads with a text and prompts is refused" 2 "give one of them" train heads --text "$text" --prompts "$TMP/prompts.jsonl" --out "$out_file"
specscope train heads --text "$text" --out "$TMP/nowhere/h" --model "$TINY" --tokens 500 --window 64
check "train into a folder that is not there exits with status 1" [ "$status" -eq 1 ]

rm -f "$out_file"
"$PROGRAM" train heads --text "$text" --out "$out_file" --model "$TINY" --tokens 1000000000 --window 64 >"$TMP/out" 2>"$TMP/err" &
pid=$!
wait_until test -s "$out_file"
kill -TERM $pid
wait $pid
check "a training that a signal stops exits with that signal's status" [ $? -eq 143 ]
check "an interrupted training leaves a whole file" grep -aq '"model_hash"' "$out_file"
check "an interrupted training reports what it keeps" grep -q 'interrupted; the best heads so far are in the file$' "$TMP/err"
check "an interrupted training writes no other file" [ "$(echo "$out_file"*)" = "$out_file $out_file.counts" ]
# 1,024 threads take 700 GiB
[ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null)" -gt 600 ] 2>/dev/null ||
    refuses "training that takes more memory than is available is refused before it begins" 1 "of memory are available; use --kind affine" \
        train heads --model models/fables-q8_0.gguf --text "$text" --out "$TMP/large" --kind full -t 1024 --batch 65536
refuses "train into a place that is no regular file is refused at once" 1 "not a regular file" train heads --text "$text" --out /dev/null
finish
