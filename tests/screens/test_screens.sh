#!/bin/sh
# Every case replays a committed trace by a script of ':' commands in a terminal of each size that it names, and
# compares `:save-screen` with the expected screen byte for byte. UPDATE=1 writes the expected screens instead.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

for case in ${CASES:-tests/screens/cases/*.script}; do
    name=$(basename "$case" .script)
    trace=$(sed -n 's/^# trace //p' "$case")
    for size in $(sed -n 's/^# sizes //p' "$case"); do
        expected=$ROOT/tests/screens/expected/$name-$size.txt
        terminal "$size" "$PROGRAM replay --script $ROOT/$case $ROOT/tests/screens/traces/$trace"
        ended
        if [ -n "${UPDATE:-}" ] && [ -s "$WORK/run/screen.txt" ]; then
            cp "$WORK/run/screen.txt" "$expected"
        fi
        check "screen $name at $size is as expected" diff -u "$expected" "$WORK/run/screen.txt"
        [ "$(cat "$WORK/run/status" 2>/dev/null)" = 0 ] || { bad "$name at $size ends well"; cat "$WORK/run/err"; }
    done
done
exit $STATUS
