#!/bin/sh
# nvcc chooses the expected opcodes where blocks depend on each other (opcodes.py). It takes minutes and belongs to
# `make test-long`.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
if [ -z "${SPECSCOPE_LONG:-}" ]; then
    skip "nvcc compiles each function to its opcodes" "make test-long checks it"
elif command -v "${NVCC:-nvcc}" >/dev/null && [ -n "$HAVE_PYTHON" ]; then
    check "nvcc compiles each function to its opcodes" python3 -B tests/cuda/opcodes.py
else
    skip "nvcc compiles each function to its opcodes" "there is no nvcc or no python3"
fi
finish
