#!/bin/sh
# :save-screen with colours shows the same text as without.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

cat >"$WORK/save.script" <<'E2'
:goto 8
:wait idle
:save-screen screen.txt
:save-screen screen.svg
:quit
E2
cat >"$WORK/again.script" <<'E2'
:save-screen screen.txt
:save-screen screen.txt
:save-screen screen.svg
:save-screen screen.svg
:quit
E2
for where in '160x48 C.UTF-8' '160x48 C' '40x10 C.UTF-8' '40x10 C'; do
    terminal "${where% *}" "LC_ALL=${where#* } $PROGRAM replay --script $WORK/again.script $ROOT/tests/screens/traces/turned"
    check ":save-screen replaces a saved screen, $where" exits 0
done
for ending in txt svg; do
    echo 'my notes' >"$WORK/notes.$ending"
    printf ':save-screen %s\n:quit\n' "$WORK/notes.$ending" >"$WORK/notes.script"
    terminal 100x30 "$PROGRAM replay --script $WORK/notes.script $ROOT/tests/screens/traces/turned"
    check ":save-screen does not replace another file, .$ending" exits 2
    check "the refusal of :save-screen names the file that is not replaced, .$ending" grep -q "notes.$ending: is not replaced" "$WORK/run/err"
    check ":save-screen leaves a file that it does not replace unchanged, .$ending" grep -qx 'my notes' "$WORK/notes.$ending"
done
terminal 100x30 "$PROGRAM replay --script $WORK/save.script $ROOT/tests/screens/traces/turned"
check ":save-screen saves the screen as text and as SVG" exits 0
cd "$WORK/run" || exit 1
if command -v python3 >/dev/null 2>&1; then
    check "the saved .svg has the words of the saved text" python3 -c 'import re, sys, xml.etree.ElementTree as x
texts = [(float(e.get("y")), float(e.get("x")), e.text or "") for e in x.parse("screen.svg").iter() if e.tag.endswith("text")]
rows = {}
for y, _, t in sorted(texts):
    rows[y] = rows.get(y, "") + t
squeeze = lambda s: re.sub(r"\s", "", s)
sys.exit(squeeze("".join(rows[y] for y in sorted(rows))) != squeeze(open("screen.txt", encoding="utf-8").read()))'
else
    check "the saved .svg is complete" grep -q '</svg>' screen.svg
fi
exit $STATUS
