#!/bin/sh
# Calls that fail: of memory, files and threads, the nth of a run. usage: tests/faults/test_faults.sh   Short: drawn at
# random for some seconds; with SPECSCOPE_LONG=1 every call of every command, which takes an hour.
BUILD=${BUILD:-build}
SEED=${SPECSCOPE_SEED:-$(date +%s)}
case $BUILD in
*sanitize*)
    echo "ok 1 - every fault ends with one line or the same result # SKIP a sanitizer's allocator stands in the way"
    exit 0 ;;
esac
how="--seconds 8 --seed $SEED"
[ -n "${SPECSCOPE_LONG:-}" ] && how=
# shellcheck disable=SC2086 # options
if "$BUILD/tests/faults" "$BUILD" $how; then
    echo "ok 1 - every fault ends with one line or the same result"
else
    echo "not ok 1 - every fault ends with one line or the same result"
    exit 1
fi
