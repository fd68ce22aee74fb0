#!/bin/sh
# `make test-cuda` and `make bench-cuda`: builds what can be built here, or takes a kit (`make cuda-kit`) in BUILD that
# the driver can run, and runs run.sh. Time on a machine with a GPU is expensive: programs that were built elsewhere
# from the same sources are not built again, and the kernels' own tests run even if a library is missing.
# usage: tests/cuda/here.sh BUILD test|bench
# make sets the variables MAKE; NVCC, which may be empty; CODE, the architectures to build for; ALL, the files to build;
# ALONE, those of them that need only nvcc and cc. SIGNS lists files of which at least one exists if there is a GPU.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=$1
WHAT=$2
BEGAN=$(date +%s) # CUDA_LIMIT includes the time of the build
seen=
for sign in ${SIGNS-/dev/nvidia0 /dev/nvidiactl /dev/dxg /dev/nvgpu}; do
    [ -e "$sign" ] && seen=1
done
if [ -z "$seen" ]; then
    echo "there is no NVIDIA GPU here to test" >&2
    exit 1
fi
LOGS=${LOGS:-$BUILD/cuda-logs}
export BEGAN LOGS
for archive in "$BUILD"/cuda-kit*.tar.xz "$BUILD"/cuda-kit*.tar.gz; do
    kit=${archive%.tar.?z}
    if [ -f "$archive" ] && [ ! "$kit/made-of" -nt "$archive" ]; then
        rm -rf "$kit"
        { tar -C "$BUILD" -xf "$archive" || python3 -m tarfile -e "$archive" "$BUILD"; } && touch "$kit/made-of"
    fi
done
# A driver runs programs of its own major version of CUDA and of earlier ones.
DRIVER=${DRIVER-$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' | head -n 1)}
OWN=$(tests/cuda/made_of.sh)
KIT= # a kit that was made from these sources, else any kit that the driver can run
for kit in "$BUILD"/cuda-kit*/; do
    [ -f "$kit/made-of" ] || continue
    kit=${kit%/}
    cuda=$(sed -n 's/^CUDA //p' "$kit/made-of")
    if [ -n "$cuda" ] && [ -n "$DRIVER" ] && [ "${cuda%%.*}" -gt "${DRIVER%%.*}" ]; then
        echo "the kit in $kit was made with CUDA $cuda, and the driver is for CUDA $DRIVER; \`make cuda-kit\` with an nvcc of CUDA ${DRIVER%%.*}"
    elif [ "$(head -n 1 "$kit/made-of")" = "$OWN" ]; then
        KIT=$kit
        break
    else
        KIT=${KIT:-$kit}
    fi
done

build() { # files
    $MAKE --no-print-directory ${CODE:+CUDA_CODE="$CODE"} "$@"
}
packages() {
    APT_LIMIT=${APT_LIMIT:-30} .ci/deps build test
}
run() { # folder
    exec tests/cuda/run.sh "$1" "$WHAT"
}

if [ -n "$KIT" ] && [ "$(head -n 1 "$KIT/made-of")" = "$OWN" ]; then
    echo "uses the kit in $KIT, which was made from these sources"
    run "$KIT/build"
fi
# shellcheck disable=SC2086 # lists of files
if [ -n "$NVCC" ] && packages; then
    build $ALL || exit 1
    run "$BUILD"
elif [ -n "$KIT" ]; then
    echo "uses the kit in $KIT, which was made from other sources"
    run "$KIT/build"
elif [ -n "$NVCC" ]; then
    echo "steps that need these packages are not run; to run them, make a kit on a machine with the packages (\`make cuda-kit\`) and copy it to $BUILD"
    build $ALONE || exit 1
fi
run "$BUILD"
