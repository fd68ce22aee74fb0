#!/bin/sh
# The tests of the CUDA backend on nvcc's own code (tests/cuda/ptx): for an old and a new architecture, with the GPU that it is for.
# `make test-ptx` builds what they need and runs this with SPECSCOPE_PTX=1; PTX_TESTS="test_cuda_head …" takes some. What the translator
# refuses is tried without.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
export CMOCKA_MESSAGE_OUTPUT=STDOUT OMP_WAIT_POLICY=passive
LINKED="test_cuda_smoke test_cuda_head test_cuda_head_statistics test_cuda_overlap test_cuda_synthetic test_cuda_sampling test_cuda_verify
    test_cuda_waiting"
PLUGGED="test_cuda_backend test_cuda_queue test_cuda_tokens test_cuda_prompts test_cuda_long_paths test_trained_heads test_invariance
    test_context_property test_golden_families test_lossless_matrix"

finds_nothing() { # program
    "$@" >"$TMP/out" 2>"$TMP/err" && ! grep -q '^emulated GPU' "$TMP/err"
}
wanted() { # test
    case " ${PTX_TESTS:-$1} " in *" $1 "*) ;; *) false ;; esac
}

refuses_to_translate() { # what is said, lines of a kernel's body …
    said=$1
    shift
    {
        printf '.version 9.0\n.target sm_90\n.address_size 64\n.entry k(.param .align 4 .b8 a[8])\n{\n.reg .b32 %%r<9>; .reg .b64 %%rd<9>; .reg .f32 %%f<9>;\n'
        printf '%s\n' "$@"
        printf 'ret;\n}\n'
    } >"$TMP/k.ptx"
    ! python3 -B tests/cuda/ptx/translate.py "$TMP/k.ptx" -o "$TMP/k.cc" 2>"$TMP/err" && grep -qF "$said" "$TMP/err"
}
if command -v python3 >/dev/null; then
    check "an instruction that is not known is named" refuses_to_translate 'line 7: wgmma.fence.sync.aligned: is not known' 'wgmma.fence.sync.aligned;'
    check "a modifier that is not known is" refuses_to_translate 'add.sat.u32: is not known' 'add.sat.u32 %r1, %r2, %r3;'
    check "a register of the wrong size is" refuses_to_translate '%rd2 has 8 bytes where 4 belong' 'add.u32 %r1, %rd2, %r3;'
    check "a parameter beyond the kernel's is" refuses_to_translate '4 bytes at 8 of the 8 that a has' 'ld.param.u32 %r1, [a+8];'
    check "a parameter across its alignment is" refuses_to_translate 'aligned to 4' 'ld.param.u64 %rd1, [a];'
    check "a label that is nowhere is" refuses_to_translate '$nowhere is nowhere' 'bra $nowhere;'
    check "a function that nobody has is" refuses_to_translate "elsewhere is nobody's" 'call elsewhere;'
else
    skip "what the translator does not know it names" "there is no python3"
fi
if [ -z "${SPECSCOPE_PTX:-}" ]; then
    skip "nvcc's code passes the tests" "make test-ptx runs it, where nvcc is"
    finish
fi
for arch in sm_80 sm_90; do
    programs=$BUILD/tests/ptx/$arch
    export SPECSCOPE_CUDA_PLUGIN="$programs/specscope-cuda-emulated.so" EMULATED_CUDA_CAPABILITY="${arch#sm_}"
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
    check "what is broken on purpose is noticed in $arch" tests/cuda/ptx_mutations.sh "$BUILD" $arch
done
finish
