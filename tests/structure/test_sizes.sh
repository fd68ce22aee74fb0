#!/bin/sh
# No file has more than 800 lines, and no function more than 60. Prints TAP.
# usage: tests/structure/test_sizes.sh [TREE]
cd "${1:-$(dirname "$0")/../..}" || exit 1
. tests/structure/report.sh
TABLES="tests/emulator/include/cuda_runtime.h" # a file that is one table may be longer
result "no file has more than 800 lines" \
    "$(sources . | grep -vxF "$TABLES" | xargs wc -l | awk '$1 > 800 && $2 != "total" { print "  " $2 ": " $1 " lines" }')"
# As clang-format has it, a function's body lies between a "{" and a "}" that have a line's first column to themselves.
# The line of its name counts.
result "no function has more than 60 lines" "$(sources . | xargs awk '
    FNR == 1 { from = 0 }
    /^\{$/ { from = FNR; name = last }
    /^\}/ { if (from && FNR - from + 2 > 60) print "  " FILENAME ":" from ": " name " has " FNR - from + 2 " lines"; from = 0 }
    /^[a-z_A-Z]/ { last = $0; sub(/\(.*/, "", last) }')"
exit $status
