#!/bin/sh
# The race checker (races/) finds nothing in tests of the CUDA backend: neither between threads of a kernel, nor between
# streams, nor between them and the host. SPECSCOPE_LONG=1 runs all programs, and more orders of threads.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
RACES=$BUILD/tests/races
if [ ! -f "$RACES/specscope-cuda-emulated.so" ]; then
    skip "nothing races in the CUDA backend" "there is no $RACES/specscope-cuda-emulated.so"
    finish
fi
export SPECSCOPE_CUDA_PLUGIN="$RACES/specscope-cuda-emulated.so" CMOCKA_MESSAGE_OUTPUT=STDOUT OMP_WAIT_POLICY=passive

finds_nothing() { # program
    "$@" >"$TMP/out" 2>"$TMP/err" && ! grep -q '^emulated GPU' "$TMP/err" && ! grep -q 'Running 0 test' "$TMP/out"
}

SEED=${SPECSCOPE_SEED:-3}
SHORT=test_cuda_head_statistics
SOME= # program/tests
LONG="test_cuda_steps test_cuda_verify test_cuda_head test_cuda_products test_cuda_sampling test_cuda_overlap test_cuda_synthetic"
BACKEND_TESTS=
LONG_OF_PLUGIN="test_cuda_queue test_cuda_feed test_cuda_long_paths test_trained_heads test_draft_rows test_training_on_gpu
    test_invariance test_context_property"
if [ -z "${SPECSCOPE_LONG:-}" ]; then
    LONG='' LONG_OF_PLUGIN='' BACKEND_TESTS='test_predictions_*'
    SOME="test_cuda_steps/test_rows_* test_cuda_steps/test_a_row_* test_cuda_steps/test_experts_* test_cuda_verify/test_a_round_*"
    echo "# seed $SEED"
    case $((SEED % 4)) in # one pair of the longer tests
    0) SOME="$SOME test_cuda_steps/test_attention_is_* test_cuda_verify/test_greedy_*" ;;
    1) SOME="$SOME test_cuda_steps/test_attention_over_* test_cuda_verify/test_sampled_walks_*" ;;
    2) SOME="$SOME test_cuda_steps/test_attention_is_* test_cuda_verify/test_rounds_*" ;;
    3) SOME="$SOME test_cuda_steps/test_attention_over_* test_cuda_verify/test_sampled_verification_*" ;;
    esac
    set -f # the programs expand the patterns
fi
for test in $SHORT $LONG; do
    check "nothing races in $test" finds_nothing "$RACES/$test"
done
for tests in $SOME; do
    check "nothing races in ${tests%/*}: ${tests#*/}" finds_nothing "$RACES/${tests%/*}" "${tests#*/}"
done
# The short test leaves most tests of test_cuda_backend to the two runs of the program below.
check "nothing races in the plug-in under test_cuda_backend" finds_nothing "$BUILD/tests/test_cuda_backend" \
    ${BACKEND_TESTS:+"$BACKEND_TESTS"}
for test in $LONG_OF_PLUGIN; do
    check "nothing races in the plug-in under $test" finds_nothing "$BUILD/tests/$test"
done
for order in 0 "$SEED" ${SPECSCOPE_LONG:+1 2 3}; do
    export EMULATED_CUDA_SEED="$order"
    SPECSCOPE_CUDA_PROFILE=
    [ "$order" -ne 0 ] || SPECSCOPE_CUDA_PROFILE=$TMP/phases # profiles with checked accesses, too
    export SPECSCOPE_CUDA_PROFILE
    check "nothing races in a run of the program, in order $order" finds_nothing "$PROGRAM" run -n 4 --ignore-eos --backend cuda \
        --policy layerskip -p 'hello there' "$TINY"
    [ "$order" -eq 0 ] || [ -n "${SPECSCOPE_LONG:-}" ] || continue
    check "nothing races in a run of a mixture of experts, in order $order" finds_nothing "$PROGRAM" run -n 3 --ignore-eos --backend cuda --policy layerskip -p hi \
        tests/golden/families/glm4_moe-groups
done
finish
