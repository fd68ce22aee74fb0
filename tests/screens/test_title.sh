#!/bin/sh
# The title of a trace from a GPU: its device's name stands where there is room, is never cut in a word, and leaves the
# state and the policy their places in a narrow one.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

cp -r tests/screens/traces/del "$WORK/gpu"
sed -e 's/"backend":[^,]*,/"backend": "cuda",/' \
    -e 's/"isa":[^,]*,/"isa": "NVIDIA RTX 6000 Ada Generation, Q5_K held as F16",/' \
    tests/screens/traces/del/run.json >"$WORK/gpu/run.json"
printf ':wait idle\n:save-screen screen.txt\n:quit\n' >"$WORK/title.script"

title_at() { # WxH: the first line of the screen
    terminal "$1" "$PROGRAM replay --script $WORK/title.script $WORK/gpu"
    ended
    head -n 1 "$WORK/run/screen.txt"
}

title_at 200x60 >"$WORK/wide"
check "a wide title names the GPU" grep -q 'NVIDIA RTX 6000 Ada Generation' "$WORK/wide"
check "and not how it holds the model" sh -c "! grep -q 'held as' '$WORK/wide'"
for size in 120x36 100x30 80x24; do
    title_at $size >"$WORK/title"
    check "at $size the policy and the state are there" grep -q 'policy del.*replay' "$WORK/title"
    check "and the GPU's name whole or not at all" sh -c \
        "! grep -q NVIDIA '$WORK/title' || grep -q 'Ada Generation' '$WORK/title'"
done
exit $STATUS
