#!/bin/sh
# The tests of the CUDA backend on nvcc's own code (tests/cuda/ptx): for an old and a new architecture, with the GPU that it is for.
# `make test-ptx` builds what they need and runs this; without that there is nothing to run. PTX_TESTS="test_cuda_head …" takes some.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
export CMOCKA_MESSAGE_OUTPUT=STDOUT OMP_WAIT_POLICY=passive
LINKED="test_cuda_smoke test_cuda_head test_cuda_head_statistics test_cuda_overlap test_cuda_planted test_cuda_sampling test_cuda_verify
    test_cuda_waiting"
PLUGGED="test_cuda_backend test_cuda_queue test_cuda_tokens test_cuda_prompts test_cuda_long_paths test_trained_heads test_invariance
    test_context_property test_golden_families test_lossless_matrix"

finds_nothing() { # program
    "$@" >"$TMP/out" 2>"$TMP/err" && ! grep -q '^emulated GPU' "$TMP/err"
}
wanted() { # test
    case " ${PTX_TESTS:-$1} " in *" $1 "*) ;; *) false ;; esac
}

for arch in sm_80 sm_90; do
    programs=$BUILD/tests/ptx/$arch
    export SPECSCOPE_CUDA_PLUGIN="$programs/specscope-cuda-emulated.so" EMULATED_CUDA_CAPABILITY="${arch#sm_}"
    if [ ! -f "$SPECSCOPE_CUDA_PLUGIN" ]; then
        skip "nvcc's code for $arch passes the tests" "make test-ptx builds it, where nvcc is"
        continue
    fi
    for test in $LINKED; do
        wanted "$test" && check "nvcc's code for $arch passes $test" finds_nothing "$programs/$test"
    done
    for test in $PLUGGED; do
        wanted "$test" && check "nvcc's code for $arch passes $test" finds_nothing "$BUILD/tests/$test"
    done
    [ -n "${PTX_TESTS:-}" ] && continue
    for approximate in exact low high mixed; do
        export EMULATED_PTX_APPROX=$approximate
        for model in "$TINY" tests/golden/families/glm4_moe-groups; do
            "$PROGRAM" run -n 6 --ignore-eos --backend cuda --policy ar -p 'hello there' "$model" >"$TMP/plain" 2>/dev/null
            check "and speculates without loss where approximations are $approximate: ${model##*/}" finds_nothing "$PROGRAM" run -n 6 \
                --ignore-eos --backend cuda --policy layerskip -p 'hello there' "$model"
            check "… the same text" cmp "$TMP/out" "$TMP/plain"
        done
    done
    unset EMULATED_PTX_APPROX
done
finish
