#!/bin/sh
# In these rooms no file is called, directly or indirectly, by a file that it calls. Reads the objects of a build.
# Prints TAP.
# usage: BUILD=… tests/structure/test_circles.sh [ROOM …]
cd "$(dirname "$0")/../.." || exit 1
. tests/structure/report.sh
[ $# -gt 0 ] || set -- engine/session engine/model/arch engine/model/lora traces tui/app
for room; do
    calls=$(for source in "$room"/*.c; do
        nm -g "${BUILD:-build}/obj/${source%.c}.o" | sed "s|^|$(basename "$source" .c) |"
    done | awk '
        NF == 4 { defined[$4] = $1 }
        NF == 3 { used[$1 " " $3] = 1 }
        END { for (u in used) { split(u, part, " "); if (part[2] in defined) print part[1], defined[part[2]] } }')
    result "the objects of $room call one another" \
        "$([ -n "$calls" ] || echo "  no calls were read")"
    result "the objects of $room call one another in no circle" "$(echo "$calls" | tsort 2>&1 >/dev/null | sed 's/^/  /')"
done
exit $status
