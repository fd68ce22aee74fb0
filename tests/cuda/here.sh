#!/bin/sh
# `make test-cuda` and `make bench-cuda`: builds what can be built here, or takes a kit (`make cuda-kit`) that lies in BUILD,
# and has run.sh run it. Minutes count on a machine with a GPU: what was built elsewhere of these sources is not built again,
# and where a library is missing the kernels' own tests run all the same.
# usage: tests/cuda/here.sh BUILD test|bench
# From make: MAKE; NVCC, which may be empty; CODE, the GPUs to build for; ALL, what is built; ALONE, what of it needs nvcc and cc
# alone; SIGNS, files of which one is there where a GPU is.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=$1
WHAT=$2
KIT=$BUILD/cuda-kit
BEGAN=$(date +%s) # building is part of the minutes
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
for archive in "$KIT.tar.xz" "$KIT.tar.gz"; do
    if [ -f "$archive" ] && [ ! "$KIT/made-of" -nt "$archive" ]; then
        rm -rf "$KIT"
        { tar -C "$BUILD" -xf "$archive" || python3 -m tarfile -e "$archive" "$BUILD"; } && touch "$KIT/made-of"
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

if [ -f "$KIT/made-of" ] && [ "$(cat "$KIT/made-of")" = "$(tests/cuda/made_of.sh)" ]; then
    echo "of the kit in $KIT, which was made of these sources"
    run "$KIT/build"
fi
# shellcheck disable=SC2086 # lists of files
if [ -n "$NVCC" ] && packages; then
    build $ALL || exit 1
    run "$BUILD"
elif [ -f "$KIT/made-of" ]; then
    echo "of the kit in $KIT, which was made of other sources than these"
    run "$KIT/build"
elif [ -n "$NVCC" ]; then
    echo "what needs those packages is not run here; \`make cuda-kit\` on a machine that has them, and $KIT.tar.xz brought here, is all of it"
    build $ALONE || exit 1
fi
run "$BUILD"
