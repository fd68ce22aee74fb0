#!/bin/sh
# No verdict depends on measured time: the tests of sessions, policies and screens pass with a clock that is distorted
# at random (clock_shim.c). A long test; SPECSCOPE_SEED repeats one.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
SEED=${SPECSCOPE_SEED:-1}
echo "# seed $SEED"
if [ -z "${SPECSCOPE_LONG:-}" ]; then
    skip "the tests pass under a distorted clock" "make test-long runs them"
    finish
fi
case $BUILD in */sanitize*)
    skip "the tests pass under a distorted clock" "a sanitizer's library must be the first"
    finish ;;
esac
passes() { # command
    env -u SPECSCOPE_LONG CLOCK_SEED="$SEED" LD_PRELOAD="$(realpath "$BUILD/tests/clock_shim.so")" "$@" >"$TMP/log" 2>&1 ||
        { grep -v '^ok ' "$TMP/log"; false; }
}
for source in tests/unit/session/test_*.c tests/unit/policies/test_*.c tests/unit/events/test_*.c tests/unit/measure/test_*.c tests/unit/tune/test_*.c; do
    test=$(basename "$source" .c)
    check "$test passes under a distorted clock" passes "$BUILD/tests/$test"
done
for script in tests/screens/test_*.sh; do
    check "$script passes under a distorted clock" passes sh "$script passes under a distorted clock"
done
finish
