#!/bin/sh
# Dependencies point one way: every #include of the program agrees with the table of rooms in docs/design.md. A folder
# within a room's folder is part of the room, if it has no line of its own. Prints TAP.
# usage: tests/structure/test_rooms.sh [TREE]   (another tree, to see that the test can fail)
cd "${1:-$(dirname "$0")/../..}" || exit 1
. tests/structure/report.sh

# prints each room of the table and the rooms that it may include
table=$(sed -n '/^## Rooms/,/^## /s/^| `\([^`]*\)` |[^|]*|\(.*\)|$/\1 \2/p' docs/design.md | tr -d '`,–')
# shellcheck disable=SC2046 # a list
files=$(sources $(echo "$table" | sed 's,[ /].*,,' | sort -u))
includes=$(echo "$files" | xargs grep -Ho '^[ ]*#[ ]*include "[^"]*"' |
    sed 's/:[ ]*#[ ]*include "/ /; s/"$//')

result "the table has rooms, and the rooms have includes" \
    "$([ "$(echo "$table" | wc -l)" -ge 15 ] && [ "$(echo "$includes" | wc -l)" -ge 500 ] || echo "read $(echo "$table" | wc -l) rooms, $(echo "$includes" | wc -l) includes")"
result "every room of the table is a folder with sources" \
    "$(echo "$table" | while read -r room rest; do ls "$room"/*.[ch] >/dev/null 2>&1 || echo "  $room: there is no such room"; done)"
ROOM_OF='
    function room_of(path) {
        while (sub(/\/[^\/]*$/, "", path)) if (path in may) return path
        return ""
    }'
result "every source is in a room" "$(printf '%s\n--\n%s\n' "$table" "$files" | awk "$ROOM_OF"'
    $0 == "--" { files = 1; next }
    !files { may[$1] = 1; next }
    room_of($0) == "" { print "  " $0 ": its folder is not in the table of docs/design.md" }')"
result "no room includes what it may not" "$(printf '%s\n--\n%s\n' "$table" "$includes" | awk "$ROOM_OF"'
    function reaches(from, to,    list, n, i) {
        if (from == to) return 1
        n = split(may[from], list, " ")
        for (i = 1; i <= n; i++) if (reaches(list[i], to)) return 1
        return 0
    }
    $0 == "--" { edges = 1; next }
    !edges { room = $1; $1 = ""; may[room] = $0; next }
    index($2, "/") == 0 { if ($2 !~ /\.inc$/) print "  " $1 ": \"" $2 "\" is written without its room"; next }
    { if (!reaches(room_of($1), room_of($2))) print "  " $1 " may not include " $2 }')"
result "the table has no circles" "$(echo "$table" | awk '
    { room = $1; order[NR] = room; $1 = ""; may[room] = $0 }
    function visit(room,    list, n, i) {
        if (state[room] == 1) { print "  a circle goes through " room; return }
        if (state[room] == 2) return
        state[room] = 1
        n = split(may[room], list, " ")
        for (i = 1; i <= n; i++) { if (!(list[i] in may)) print "  " room " lists " list[i] ", which is no room"; visit(list[i]) }
        state[room] = 2
    }
    END { for (i = 1; i <= NR; i++) visit(order[i]) }')"
# A source and its header are one node. Two files of different folders that reach each other are a circle.
result "no files of two folders include each other in a circle" "$(echo "$includes" | awk '
    function node(path) { sub(/\.[a-z]*$/, "", path); return path }
    function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
    { from = node($1); to = node($2); if (from != to && !((from, to) in seen)) { seen[from, to] = 1; edges[from] = edges[from] " " to } }
    function reach(from, start,    list, n, i) {
        n = split(edges[from], list, " ")
        for (i = 1; i <= n; i++) {
            if (list[i] == start && folder(from) != folder(start)) print "  " from " includes " start ", from which it is reached"
            if (!((start, list[i]) in reached)) { reached[start, list[i]] = 1; reach(list[i], start) }
        }
    }
    END { for (from in edges) reach(from, from) }' | sort)"
exit $status
