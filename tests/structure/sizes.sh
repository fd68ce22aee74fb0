#!/bin/sh
# You can hold a file in your head: no file over 400 lines and no function over 60. Speaks TAP. A file that is one table
# may be longer: it is named here.
cd "${1:-$(dirname "$0")/../..}" || exit 1
TABLES="tests/cuda/emulation/include/cuda_runtime.h"
status=0
result() { # sentence, what is wrong (none: all is well)
    if [ -z "$2" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        echo "$2"
        status=1
    fi
}
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    sources=$(git ls-files -co --exclude-standard -- '*.c' '*.h' '*.cc' '*.cu' '*.cuh')
else
    sources=$(find . -name build -prune -o -regex '.*\.\(c\|h\|cc\|cu\|cuh\)' -print)
fi
result "no file has more than 400 lines" \
    "$(for f in $sources; do [ -f "$f" ] && echo "$TABLES" | grep -qvw "$f" && awk -v f="$f" 'END { if (NR > 400) print "  " f ": " NR " lines" }' "$f"; done)"
# A function's body begins with a "{" in the first column, or with one at the end of a line that begins there, and ends
# with a "}" in the first column: so clang-format has it. The line of its name counts.
result "no function has more than 60 lines" "$(echo "$sources" | xargs awk '
    FNR == 1 { from = 0 }
    /^\{$/ { from = FNR; name = last }
    /^\}/ { if (from && FNR - from + 2 > 60) print "  " FILENAME ":" from ": " name " has " FNR - from + 2 " lines"; from = 0 }
    /^[a-z_A-Z]/ { last = $0; sub(/\(.*/, "", last) }')"
exit $status
