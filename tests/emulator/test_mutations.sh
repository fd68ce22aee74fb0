#!/bin/sh
# A check notices each removed barrier, fence or wait of the CUDA backend (mutations/run.sh). The short test tries three
# mutations of one program. SPECSCOPE_LONG=1 tries all, and compares the result with mutations/table.md.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
if [ ! -f "$BUILD/tests/races/specscope-cuda-emulated.so" ]; then
    skip "the checker notices each removal" "there is no $BUILD/tests/races/specscope-cuda-emulated.so"
    finish
fi
if [ -z "${SPECSCOPE_LONG:-}" ]; then
    seed=${SPECSCOPE_SEED:-1}
    export SPECSCOPE_MUTATION_PROGRAMS=races/test_cuda_head_statistics # the quickest one with barriers, scopes and classes of loads
    check "the checker notices six removals of a program (seed $seed)" tests/emulator/mutations/run.sh "$BUILD" 6 "$seed"
else
    tests/emulator/mutations/run.sh "$BUILD" >"$TMP/table" 2>"$TMP/err"
    check "the checker notices each removal, or the table gives a reason" [ $? -eq 0 ]
    grep '^|' tests/emulator/mutations/table.md | sort >"$TMP/documented"
    sort "$TMP/table" >"$TMP/sorted"
    check "tests/emulator/mutations/table.md has the table (UPDATE=1 tests/emulator/mutations/run.sh $BUILD writes it)" cmp "$TMP/sorted" "$TMP/documented"
fi
finish
