#!/bin/sh
# Runs every test and ends with "N passed, N failed". usage: tests/run.sh BUILD [long]
# A unit test program speaks TAP (cmocka); a shell test prints "ok …" and "not ok …" lines itself. A program that ends
# badly without saying which test failed counts as one failure.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=$1
LONG=${2:-}
export BUILD
unset MAKEFLAGS MFLAGS MAKEOVERRIDES # of the make that runs this: tests that call make mean their own
export CMOCKA_MESSAGE_OUTPUT=TAP
export OMP_WAIT_POLICY=passive # two cores, several threads: idle ones must not spin
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}
export TSAN_OPTIONS="${TSAN_OPTIONS:-allocator_may_return_null=1}" # as without it: what cannot be had is refused
[ -n "$LONG" ] && export SPECSCOPE_LONG=1
LOG=$BUILD/test-logs
mkdir -p "$LOG"
tally() { # name, log, exit status, when it began (seconds)
    skipped=$(grep -Ec '^(not )?ok .*# SKIP' "$2") # passed nothing, failed nothing; cmocka says "not ok"
    ok=$(grep '^ok ' "$2" | grep -cv '# SKIP')
    bad=$(grep '^not ok ' "$2" | grep -cv '# SKIP')
    [ "$3" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1
    [ $((ok + bad + skipped)) -eq 0 ] && bad=1 # a program without tests is a mistake
    echo "$ok $bad" >>"$LOG/counts"
    printf '%-28s %4d passed %3d failed %4d s%s\n' "$1" "$ok" "$bad" $(($(date +%s) - $4)) "$([ "$skipped" -eq 0 ] || echo " ($skipped skipped)")"
    sed -n 's/^ok [0-9]* - \(.*\) # SKIP \(.*\)/    skipped: \1: \2/p' "$2"
    if [ "$bad" -gt 0 ]; then
        grep -v '^ok ' "$2" | tail -n 30 | sed 's/^/    /'
        echo "    (all of it: $2, exit status $3)"
    fi
}

programs() { # those that nobody has taken yet
    for program in "$BUILD"/tests/test_*; do
        [ -x "$program" ] || continue
        name=${program##*/}
        mkdir "$LOG/taken/$name" 2>/dev/null || continue
        began=$(date +%s)
        "$program" >"$LOG/$name.log" 2>&1 </dev/null
        status=$?
        report=$(tally "$name" "$LOG/$name.log" $status "$began")
        echo "$report"
    done
}
scripts() { # files
    for script; do
        [ -e "$script" ] || continue
        name=${script#tests/}
        log=$LOG/$(echo "$name" | tr / -).log
        began=$(date +%s)
        sh "$script" >"$log" 2>&1 </dev/null
        status=$?
        report=$(tally "$name" "$log" $status "$began")
        echo "$report"
    done
}

# Scripts wait most of the time, those of screens for terminals: programs run meanwhile, and whoever is done with scripts takes programs.
: >"$LOG/counts"
rm -rf "$LOG/taken"
mkdir "$LOG/taken"
{ scripts tests/screens/test_*.sh; programs; } &
# shellcheck disable=SC2046 # names without spaces
{ scripts $(printf '%s\n' tests/*/test_*.sh | grep -v '^tests/screens/'); programs; } &
programs
wait
passed=$(awk '{ n += $1 } END { print n + 0 }' "$LOG/counts")
failed=$(awk '{ n += $2 } END { print n + 0 }' "$LOG/counts")
echo "logs: $LOG"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
