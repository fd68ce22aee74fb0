#!/bin/sh
# The pictures of the tour are true: the commands of each one are run, and the screen shows what the tour describes. The
# commands are in the documents below, beside the pictures that docs/make_screenshots.py makes of them.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
. tests/screens/lib.sh
TOUR="docs/tour.md docs/tour-drafting.md"

picture() { # file: what its comment says
    awk -v name="$1" '/^<!-- picture / { on = $3 == name; next } /^-->/ { on = 0 } on' $TOUR
}
shown_as_said() { # file, size
    picture "$1" >"$WORK/said"
    { grep '^:' "$WORK/said"; echo ':save-screen screen.txt'; echo ':quit'; } >"$WORK/script"
    command=$(head -n 1 "$WORK/said" | sed "s|^build/specscope|$PROGRAM|; s# \(models\|tests\)/# $ROOT/\1/#g")
    terminal "$2" "$command --script $WORK/script"
    exits 0 || return 1
    sed -n 's/^sees //p' "$WORK/said" >"$WORK/sees"
    [ -s "$WORK/sees" ] || { echo "nothing is said to be seen"; return 1; }
    while read -r pattern; do
        grep -q -- "$pattern" "$WORK/run/screen.txt" || { echo "not there: $pattern"; cat "$WORK/run/screen.txt"; return 1; }
    done <"$WORK/sees"
}
for file in $(sed -n 's/^<!-- picture \([^ ]*\) .*/\1/p' $TOUR); do
    size=$(sed -n "s|^<!-- picture $file \(.*\)|\1|p" $TOUR)
    check "$file shows what the tour describes" shown_as_said "$file" "$size"
    check "the tour links $file, which exists" sh -c "[ -s docs/$file ] && cat $TOUR | grep -q ']($file)'"
done
# The commands of the pictures, and those that the tour prints with options; the speed and the length of a run may
# differ.
plain() { sed -n 's/ --pace 0//; s/ --once//; s/ -n [0-9]*//; /^build\/specscope.* -/p' | sort -u; }
cat $TOUR | awk '/^<!-- / { on = 1 } /^-->/ { on = 0 } on' | plain >"$WORK/drawn"
cat $TOUR | awk '/^<!-- / { on = 1 } !on; /^-->/ { on = 0 }' | plain >"$WORK/printed"
check "each command that the tour prints makes a picture" \
    sh -c "test -s '$WORK/printed' && comm -13 '$WORK/drawn' '$WORK/printed' | tee '$WORK/other' && ! test -s '$WORK/other'"
check "the tour has thirteen pictures" [ "$(cat $TOUR | grep -c '^<!-- picture ')" -ge 13 ]

echo "1..$N"
exit $STATUS
