#!/bin/sh
# What nvcc must be told about kernels that run on a GPU, and no emulation asks for. Speaks TAP.
# usage: tests/structure/test_kernels.sh [TREE]
cd "${1:-$(dirname "$0")/../..}" || exit 1
. tests/structure/report.sh
# Without it a kernel may take 255 registers a thread, and is refused where a block of 512 threads finds 128.
result "every kernel says how many threads a block of it has" "$(sources kernels/cuda tests/cuda/smoke tests/rigs tests/bench | xargs awk '
    /__global__/ { kernel = FILENAME ":" FNR; if (/__launch_bounds__/) kernel = ""; next }
    kernel != "" { if (!/__launch_bounds__/) print "  " kernel; kernel = "" }')"
exit $status
