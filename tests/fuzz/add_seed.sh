#!/bin/sh
# Adds an input to the seeds of a fuzz target. usage: tests/fuzz/add_seed.sh TARGET TITLE FILE
# tests/fuzz/seeds/TARGET.txt then has the title, a line that describes what the input found, and its bytes as printf's
# escapes.
set -eu
seeds=$(dirname "$0")/seeds/$1.txt
[ -e "$(dirname "$0")/$1.c" ] || { echo "add_seed.sh: $1 is no fuzz target" >&2; exit 2; }
case $2 in
'' | [\ .]* | */* | *'
'*) echo "add_seed.sh: a title is the name of a file: a line without '/' that does not begin with ' ' or '.'" >&2; exit 2 ;;
esac
! grep -qxF -e "$2" "$seeds" 2>/dev/null || { echo "add_seed.sh: $seeds has a seed with this title" >&2; exit 2; }
bytes=$(od -An -v -tu1 "$3")
[ ! -s "$seeds" ] || echo >>"$seeds"
{ printf '%s\n' "$2" "$bytes"; } | awk '
    function end() { sub(/ $/, "\\040", line); if (line != "") print "    " line; line = "" }
    NR == 1 { print; next }
    { for (i = 1; i <= NF; i++) {
        c = $i == 10 ? "\\n" : $i == 37 ? "%%" : $i == 92 ? "\\\\" : $i < 32 || $i > 126 ? sprintf("\\%03o", $i) : sprintf("%c", $i + 0)
        if (length(line c) > 116) end()
        line = line c
        if ($i == 10) end() } }
    END { end() }' >>"$seeds"
