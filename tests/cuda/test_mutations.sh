#!/bin/sh
# Omissions of single barriers, fences and the like in the kernels are noticed (tests/cuda/mutations.sh): some of one test program, and with
# SPECSCOPE_LONG=1 all of them, as in the table of tests/cuda/mutations.md.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
if [ ! -f "$BUILD/tests/races/specscope-cuda-emulated.so" ]; then
    skip "each removal is noticed" "there is no $BUILD/tests/races/specscope-cuda-emulated.so"
    finish
fi
if [ -z "${SPECSCOPE_LONG:-}" ]; then
    seed=$(date +%s)
    export SPECSCOPE_MUTATION_PROGRAMS="races/test_cuda_head_statistics races/test_cuda_overlap races/test_cuda_steps"
    check "three removals of each program are noticed, seed $seed" tests/cuda/mutations.sh "$BUILD" 3 "$seed"
else
    tests/cuda/mutations.sh "$BUILD" >"$TMP/table" 2>"$TMP/err"
    check "each removal is noticed, or has a stated reason" [ $? -eq 0 ]
    grep '^|' tests/cuda/mutations.md | sort >"$TMP/documented"
    sort "$TMP/table" >"$TMP/sorted"
    check "tests/cuda/mutations.md has the table (UPDATE=1 tests/cuda/mutations.sh $BUILD writes it)" cmp "$TMP/sorted" "$TMP/documented"
fi
finish
