#!/bin/sh
# Attributes of GPU kernels that nvcc needs and the emulation does not check. Prints TAP.
# usage: tests/structure/test_kernels.sh [TREE]
cd "${1:-$(dirname "$0")/../..}" || exit 1
. tests/structure/report.sh
# Without launch bounds a kernel may use 255 registers per thread, and a block of 512 threads has only 128.
result "every kernel says how many threads a block of it has" "$(sources kernels/cuda/device tests/cuda/smoke tests/rigs tests/bench | xargs awk '
    /__global__/ { kernel = FILENAME ":" FNR; if (/__launch_bounds__/) kernel = ""; next }
    kernel != "" { if (!/__launch_bounds__/) print "  " kernel; kernel = "" }')"
# nvcc knows which functions are the device's, and g++, which compiles the smoke test for the emulation, does not. Its
# front end alone, for host code: a second a file.
refused() {
    work=$(mktemp -d)
    files=tests/cuda/smoke/products.cu
    [ -z "${SPECSCOPE_LONG:-}" ] || files=$(echo tests/cuda/smoke/*.cu tests/bench/gpu_floors.cu)
    for file in $files; do
        TMPDIR=$work nvcc --dryrun -std=c++17 -I. -DCUDA_CODE='"sm_90"' -gencode arch=compute_90,code=sm_90 -c -o "$work/out" "$file" 2>&1 |
            sed -n 's/^#[$] //; /^PATH=/p; /^gcc .* -E /p; /^cudafe++ /{p;q;}' >"$work/front"
        if grep -q '^cudafe++ ' "$work/front"; then sh -e "$work/front" 2>&1 || echo "  $file"; fi
    done
    rm -rf "$work"
}
if command -v nvcc >/dev/null 2>&1; then
    result "nvcc takes the host's side of what runs on a GPU" "$(refused | head -n 20)"
else
    echo "ok - nvcc takes the host's side of what runs on a GPU # SKIP there is no nvcc"
fi
exit $status
