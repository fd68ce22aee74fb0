#!/bin/sh
# specscope train heads: usage, a short training, interruption.
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
check "an interrupted training writes no other file" [ "$(echo "$out_file"*)" = "$out_file" ]
# 1,024 threads take 700 GiB
[ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null)" -gt 600 ] 2>/dev/null ||
    refuses "training that takes more memory than is available is refused before it begins" 1 "of memory are available; use --kind affine" \
        train heads --model models/fables-q8_0.gguf --text "$text" --out "$TMP/large" --kind full -t 1024 --batch 65536
refuses "train into a place that is no regular file is refused at once" 1 "not a regular file" train heads --text "$text" --out /dev/null
finish
