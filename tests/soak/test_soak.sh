#!/bin/sh
# Runs a few cases of the soak (make soak MINUTES=n runs more), and checks that it finds planted faults.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
unset SPECSCOPE_CUDA_PLUGIN # an emulated GPU, if it was built
SOAK=$BUILD/tests/soak
SEED=${SPECSCOPE_SEED:-14}
CASES=3
[ -n "${SPECSCOPE_LONG:-}" ] && CASES=200

"$SOAK" --cases $CASES --seed "$SEED" >"$TMP/out" 2>"$TMP/err"
status=$?
sed 's/^/# /' "$TMP/out"
check "$CASES cases drawn by seed $SEED have the text of autoregressive decoding" [ $status -eq 0 ]
check "the soak compares greedy tokens" grep -Eq '^# [1-9][0-9]+ greedy tokens compared .*: 0 differences$' "$TMP/out"

"$SOAK" --cases 1 --seed 14 --spoil >"$TMP/out" 2>"$TMP/err"
status=$?
check "the soak notices a changed token of the reference" [ $status -eq 1 ]
check "the soak names a changed token by its place" grep -q 'is [0-9]*, autoregressive decoding gives [0-9]*' "$TMP/err"
check "the soak counts a changed token" grep -q ': 1 differences$' "$TMP/out"
again=$(sed -n 's/^soak: repeat it by: //p' "$TMP/err")
mv "$TMP/err" "$TMP/first"
$again >"$TMP/out" 2>"$TMP/err"
check "the command that the soak prints finds the same difference" diff "$TMP/first" "$TMP/err"
finish
