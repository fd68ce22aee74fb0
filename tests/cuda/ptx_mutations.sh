#!/bin/sh
# What g++'s build of the kernels can't see, broken on purpose in a copy of the sources, is noticed where nvcc's code runs (tests/cuda/ptx): the
# order of an instruction's operands, its constraints, types, the size of shared memory. usage: tests/cuda/ptx_mutations.sh BUILD [sm_90]
# Needs what `make test-ptx` builds; prints a line a mutation, and ends with 1 if one went unnoticed.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=$1
ARCH=${2:-sm_90}
OBJECTS=$BUILD/ptx/$ARCH
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
trap 'exit 1' INT TERM
INCLUDES="-I$TMP/tree/tests/cuda/ptx/include -I$TMP/tree/tests/cuda/emulation/include -I$TMP/tree"
CXX="${CXX:-g++} -std=c++17 -D_GNU_SOURCE -ffp-contract=off -fno-strict-aliasing -fPIC -fvisibility=hidden -w -pthread $INCLUDES"
unnoticed=0

# The smoke test with one of its files made anew, of the changed sources.
build() { # name of the file
    (cd "$TMP/tree" && "${NVCC:-/usr/local/cuda/bin/nvcc}" -ptx -std=c++17 -I. -fmad=false -O3 -lineinfo -Xcompiler -fopenmp -arch="$ARCH" -o "$TMP/$1.ptx" "tests/cuda/smoke/$1.cu" &&
        python3 -B tests/cuda/ptx/translate.py "$TMP/$1.ptx" -o "$TMP/$1.cc" --host "$TMP/$1.host.cc" --source "tests/cuda/smoke/$1.cu" &&
        $CXX -O1 -c "$TMP/$1.cc" -o "$TMP/$1.o" && $CXX -O0 -include cuda_runtime.h -c "$TMP/$1.host.cc" -o "$TMP/$1.host.o") || return 1
    others=$(find "$OBJECTS/tests/cuda/smoke" -name '*.o' ! -name "$1.o" ! -name "$1.host.o")
    # shellcheck disable=SC2086 # names without spaces
    $CXX -fopenmp -o "$TMP/smoke" $others "$TMP/$1.o" "$TMP/$1.host.o" "$BUILD/obj/tests/rigs/prediction_definition.o" \
        "$BUILD/obj/kernels/cpu/sampling.o" "$OBJECTS/libptx.a" -lm
}

mutate() { # what, smoke test's file, changed file, sed's command
    rm -rf "$TMP/tree"
    mkdir -p "$TMP/tree/tests"
    cp -r kernels "$TMP/tree"
    cp -r tests/cuda tests/rigs "$TMP/tree/tests"
    [ -z "$4" ] || sed -i "$4" "$TMP/tree/$3"
    if [ -n "$4" ] && cmp -s "$3" "$TMP/tree/$3"; then
        echo "there is nothing to change for: $1"
        unnoticed=1
    elif ! build "$2" >"$TMP/said" 2>&1; then
        if grep -q '^[^ ]*\.ptx: ' "$TMP/said"; then
            echo "refused: $1: $(grep -m1 -a '\.ptx: ' "$TMP/said" | sed "s|$TMP/||g")"
        else
            echo "not built: $1: $(grep -m1 -a . "$TMP/said")"
            unnoticed=1
        fi
    elif EMULATED_CUDA_CAPABILITY=${ARCH#sm_} OMP_WAIT_POLICY=passive CMOCKA_MESSAGE_OUTPUT=TAP "$TMP/smoke" >"$TMP/said" 2>&1; then
        [ -z "$4" ] && echo "as it is: passes" && return
        echo "UNNOTICED: $1"
        unnoticed=1
    elif [ -z "$4" ]; then
        echo "as it is, it fails: $(grep -m1 -a '^not ok\|^emulated GPU' "$TMP/said")"
        unnoticed=1
    else
        echo "noticed: $1: $(grep -m1 -a '^emulated GPU' "$TMP/said" || grep -m1 -a '^not ok' "$TMP/said")"
    fi
}

P=kernels/cuda/device/ptx.cuh
mutate "nothing" instructions $P ""
mutate "a pair's halves change places" instructions $P '/cvt.rn.f16x2.f32/s/"f"(high), "f"(low)/"f"(low), "f"(high)/'
mutate "bfloat16s are halves" instructions $P 's/cvt.rn.bf16x2.f32/cvt.rn.f16x2.f32/'
mutate "rounded towards zero" instructions $P 's/cvt.rn.f16.f32/cvt.rz.f16.f32/'
mutate "bytes come from the other word" instructions $P 's/0x4140/0x0504/'
mutate "an offset is taken away from the wrong one" instructions $P 's/: "=r"(\*high) : "r"(b), "r"(offset)/: "=r"(*high) : "r"(offset), "r"(b)/'
mutate "what is not taken is not kept" instructions $P '/ld.global.nc.v2.u32/,/: "l"/s/"+r"/"=r"/g'
mutate "the condition is turned round" instructions $P 's/@take ld.global.nc.u32/@!take ld.global.nc.u32/'
mutate "words of a load change places" instructions $P '/ld.global.nc.L1::no_allocate/s/{%0, %1, %2, %3}/{%1, %0, %2, %3}/'
mutate "a load is of twice its size" instructions $P 's/@take ld.global.nc.v2.u32 {%0, %1}, \[%2\]/@take ld.global.nc.v2.u32 {%0, %1}, [%2+4]/'
mutate "a matrix's rows change places" matrices $P '/^mma_f16/,/^}/s/"r"(a\[0\]), "r"(a\[1\])/"r"(a[1]), "r"(a[0])/'
mutate "b's columns change places" matrices $P '/^mma_bf16/,/^}/s/"r"(b0), "r"(b1)/"r"(b1), "r"(b0)/'
mutate "sums are not sums" matrices $P '/^mma_f16/,/^}/s/"+f"/"=f"/g'
mutate "shared memory is a little too small" products tests/rigs/cuda_product.h 's/a, PRODUCT_SHARED);/a, PRODUCT_SHARED - 64);/'
exit $unnoticed
