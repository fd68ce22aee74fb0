#!/bin/sh
# Faults outside the program: failing calls, kills at random instants, damaged files, random input. The short test draws
# a sample and prints its seed, which SPECSCOPE_SEED repeats. With SPECSCOPE_LONG=1 every call of every command fails
# once, which takes an hour or two. docs/testing.md describes it.
BUILD=${BUILD:-build}
SEED=${SPECSCOPE_SEED:-2}
LONG=${SPECSCOPE_LONG:-}
n=0
status=0
holds() { # sentence, command
    sentence=$1
    shift
    n=$((n + 1))
    if "$@"; then
        echo "ok $n - $sentence"
    else
        status=1
        echo "not ok $n - $sentence"
    fi
}
either() { # for how long: short, long
    if [ -n "$LONG" ]; then echo "$2"; else echo "$1"; fi
}

sentence="whichever call fails, commands end with one line or the same result"
case $BUILD in
*sanitize*) # whose allocator stands where ours would
    n=1
    echo "ok 1 - $sentence # SKIP a sanitizer's allocator is in the way" ;;
*)
    # shellcheck disable=SC2046 # options
    holds "$sentence" "$BUILD/tests/faults" "$BUILD" $(either "--faults 120 --seed $SEED" "") ;;
esac
holds "a run that is killed at any instant leaves files that can be read" "$BUILD/tests/kills" "$BUILD" --kills "$(either 12 1000)" --seed "$SEED"
holds "replay reads damaged traces, or refuses them in one line" "$BUILD/tests/damage" "$BUILD" --cases "$(either 40 10000)" --seed "$SEED"
for i in $(either 1 "1 2 3"); do
    holds "the scope survives random keys, mouse events and resizes" "$BUILD/tests/monkey" "$BUILD" --events "$(either 3000 100000)" --seed "$((SEED + i))"
done
echo "1..$n"
exit $status
