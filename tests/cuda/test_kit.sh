#!/bin/sh
# The kit of `make cuda-kit` is whole: made of the emulated backend, unpacked elsewhere, it goes through the first ten
# minutes on a GPU with nothing of this tree; and a step that fails names the launch and ends it.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
EMULATED=$BUILD/tests/specscope-cuda-emulated.so
if [ ! -f "$EMULATED" ] || ! command -v strip >/dev/null 2>&1; then
    skip "the kit is whole" "there is no emulated GPU, or no strip"
    finish
fi
KIT=$TMP/elsewhere/cuda-kit
cp "$BUILD/tests/test_cuda_smoke" "$TMP/gpu_smoke"
if [ -n "${SPECSCOPE_LONG:-}" ]; then
    programs="cuda_queue cuda_backend cuda_long_paths invariance context_property golden_families lossless_matrix"
else
    programs=cuda_queue
fi
STRIP=no
case $BUILD in *sanitize*) ;; *) STRIP= ;; esac
export STRIP
check "a kit is made" tests/cuda/kit.sh "$KIT" "$BUILD/specscope" "$TMP/gpu_smoke" "$BUILD/emulated/gpu_floors" "$EMULATED" \
    "$BUILD/tests/test_cuda_tokens" $(printf "$BUILD/tests/test_%s " $programs)
mkdir "$TMP/home"
printf '#!/bin/sh\necho "sanitized: $*"; while [ "$1" != run ]; do program=$1; shift; done; exec "$program" "$@"\n' >"$TMP/compute-sanitizer"
chmod +x "$TMP/compute-sanitizer"

first() { # more of the environment
    (cd "$TMP/elsewhere" && exec env -i PATH="$TMP:/usr/bin:/bin" HOME="$TMP/home" TERM=dumb OMP_WAIT_POLICY=passive CUDA_LIMIT=900 \
        SPECSCOPE_CUDA_PLUGIN="$KIT/build/tests/specscope-cuda-emulated.so" SMOKE=tiny SHAPE=tiny TYPES= PLANTED=tiny:q8_0,4,0.75 N=4 FLOORS="0 1 2" \
        PROGRAMS="$programs" BENCH= DRAFT=models/fables-draft-q8_0.gguf ${SPECSCOPE_LONG:+SPECSCOPE_LONG=1} "$@" sh cuda-kit/first) \
        >"$TMP/out" 2>&1
    status=$?
}
went() { # sentence of a step
    grep -q "^ok      $1" "$TMP/out"
}
first
check "all of it passes" [ "$status" -eq 0 ]
for sentence in "facts of the machine" "instructions, barriers, products" "the bundled model's tokens" "cuda_queue" \
    "compute-sanitizer initcheck" "floors" "all policies are lossless on planted tiny"; do
    check "it went through: $sentence" went "$sentence"
done
check "facts are told" grep -q 'multiprocessors  *3' "$TMP/out"
check "so is what the smoke test measured" grep -q 'off by .* the same bits' "$TMP/out"
check "and how many passed" grep -q '^[0-9]* passed, 0 failed' "$TMP/out"
check "libraries came along" sh -c "ls '$KIT'/build/lib/libncursesw.so* '$KIT'/build/lib/libcmocka.so*"
rm "$TMP/compute-sanitizer"
first EMULATED_CUDA_FAIL=20 EMULATED_CUDA_FAIL_KIND=launch
check "a step that fails ends it" [ "$status" -ne 0 ]
check "after one failure" grep -q '^[0-9]* passed, 1 failed' "$TMP/out"
check "with the launch named" grep -q 'the launch that failed is [a-z_]*, [0-9]* blocks of' "$TMP/out"
check "and what to look at" grep -q 'look at: ' "$TMP/out"
finish
