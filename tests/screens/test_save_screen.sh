#!/bin/sh
# :save-screen with colours shows what it shows without.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

cat >"$WORK/save.script" <<'E2'
:goto 8
:wait idle
:save-screen screen.txt
:save-screen screen.ans
:save-screen screen.svg
:quit
E2
terminal 100x30 "$PROGRAM replay --script $WORK/save.script $ROOT/tests/screens/traces/turned"
check "the screen is saved three times" exits 0
cd "$WORK/run" || exit 1
escape=$(printf '\033')
sed -e "s/$escape\[[0-9;]*m//g" -e 's/ *$//' screen.ans >plain.txt
check ".ans without its colours is the text" diff -u screen.txt plain.txt
check "and has colours" grep -q "$escape\[0;[0-9;]*38;2;" screen.ans
if command -v python3 >/dev/null 2>&1; then
    check ".svg has the words of the text" python3 -c 'import re, sys, xml.etree.ElementTree as x
texts = [(float(e.get("y")), float(e.get("x")), e.text or "") for e in x.parse("screen.svg").iter() if e.tag.endswith("text")]
rows = {}
for y, _, t in sorted(texts):
    rows[y] = rows.get(y, "") + t
squeeze = lambda s: re.sub(r"\s", "", s)
sys.exit(squeeze("".join(rows[y] for y in sorted(rows))) != squeeze(open("screen.txt", encoding="utf-8").read()))'
else
    check ".svg is whole" grep -q '</svg>' screen.svg
fi
exit $STATUS
