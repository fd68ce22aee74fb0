#!/bin/sh
# The tests of the CUDA backend pass on emulated GPUs with 20 and 40 multiprocessors. Otherwise they run with 3. They
# take minutes and belong to `make test-long`.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
if [ -z "${SPECSCOPE_LONG:-}" ]; then
    skip "the backend's tests pass with 20 and 40 multiprocessors" "make test-long checks them"
    finish
fi
export SPECSCOPE_CUDA_PLUGIN="$BUILD/tests/specscope-cuda-emulated.so" OMP_WAIT_POLICY=passive
for blocks in 20 40; do
    for test in test_cuda_backend test_cuda_tokens test_cuda_long_paths test_context_property; do
        check "$test passes with $blocks multiprocessors" env EMULATED_CUDA_BLOCKS="$blocks" "$BUILD/tests/$test"
    done
done
finish
