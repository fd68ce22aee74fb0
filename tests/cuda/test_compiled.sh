#!/bin/sh
# The kernels as compilers translate them: the CUDA backend's tests on emulated GPUs of 20 and 40 multiprocessors (otherwise they have 3),
# and the opcodes that nvcc chooses where blocks depend on each other (opcodes.py). Both take minutes and belong to `make test-long`.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
if [ -z "${SPECSCOPE_LONG:-}" ]; then
    skip "kernels on larger GPUs, and nvcc's opcodes" "make test-long checks them"
    finish
fi
export SPECSCOPE_CUDA_PLUGIN="$BUILD/tests/specscope-cuda-emulated.so" OMP_WAIT_POLICY=passive
for blocks in 20 40; do
    for test in test_cuda_backend test_cuda_tokens test_cuda_long_paths test_context_property; do
        check "$test passes with $blocks multiprocessors" env EMULATED_CUDA_BLOCKS="$blocks" "$BUILD/tests/$test"
    done
done
if command -v "${NVCC:-nvcc}" >/dev/null && [ -n "$HAVE_PYTHON" ]; then
    check "nvcc compiles each function to its opcodes" python3 -B tests/cuda/opcodes.py
else
    skip "nvcc compiles each function to its opcodes" "there is no nvcc or no python3"
fi
finish
