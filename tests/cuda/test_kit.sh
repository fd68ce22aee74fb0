#!/bin/sh
# The kit of `make cuda-kit` is complete: a kit of the emulated backend, unpacked elsewhere, passes the first ten
# minutes on a GPU without this tree. A step that fails names the launch and ends the kit.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
EMULATED=$BUILD/tests/specscope-cuda-emulated.so
if [ ! -f "$EMULATED" ] || ! command -v strip >/dev/null 2>&1; then
    skip "the kit is complete" "there is no emulated GPU, or no strip"
    finish
fi
KIT=$TMP/elsewhere/cuda-kit
cp "$BUILD/tests/test_cuda_smoke" "$TMP/gpu_smoke"
if [ -n "${SPECSCOPE_LONG:-}" ]; then
    programs="cuda_queue cuda_feed cuda_backend cuda_long_paths invariance context_property golden_families lossless_matrix"
else
    programs=cuda_queue
fi
STRIP=no
case $BUILD in *sanitize*) ;; *) STRIP= ;; esac
export STRIP
check "kit.sh makes a kit" tests/cuda/kit.sh "$KIT" "$BUILD/specscope" "$TMP/gpu_smoke" "$BUILD/emulated/gpu_floors" "$EMULATED" \
    "$BUILD/tests/test_cuda_tokens" $(printf "$BUILD/tests/test_%s " $programs)
mkdir "$TMP/home"
printf '#!/bin/sh\necho "sanitized: $*"; while [ "$1" != run ]; do program=$1; shift; done; exec "$program" "$@"\n' >"$TMP/compute-sanitizer"
chmod +x "$TMP/compute-sanitizer"

first() { # environment: runs the kit
    (cd "$TMP/elsewhere" && exec env -i PATH="$TMP:/usr/bin:/bin" HOME="$TMP/home" TERM=dumb OMP_WAIT_POLICY=passive CUDA_LIMIT=3000 STEP_LIMIT=2900 \
        SPECSCOPE_CUDA_BLOCKS=2 SPECSCOPE_CUDA_PLUGIN="$KIT/build/tests/specscope-cuda-emulated.so" SMOKE=tiny SHAPE=tiny TYPES= SYNTHETIC=tiny:q8_0,4,0.75 N=2 FLOORS="0 1 2" \
        PROGRAMS="$programs" BENCH= DRAFT=models/fables-draft-q8_0.gguf ${SPECSCOPE_LONG:+SPECSCOPE_LONG=1} "$@" sh cuda-kit/first) \
        >"$TMP/out" 2>&1
    status=$?
}
went() { # sentence of a step that must have passed
    grep -q "^ok *[0-9]* $1" "$TMP/out"
}
first
check "the kit's program passes" [ "$status" -eq 0 ]
for sentence in "facts of the machine" "instructions, barriers, products" "the bundled model's tokens" "cuda_queue" \
    "compute-sanitizer initcheck" "floors" "all policies are lossless on synthetic tiny"; do
    check "the kit's program reports the step: $sentence" went "$sentence"
done
check "the kit prints the facts of the machine" grep -q 'multiprocessors  *3' "$TMP/out"
check "the kit prints the smoke test's figures" grep -q 'off by .* the same bits' "$TMP/out"
check "the kit prints how many passed" grep -q '^[0-9]* passed, 0 failed' "$TMP/out"
check "the kit contains the libraries" sh -c "ls '$KIT'/build/lib/libncursesw.so* '$KIT'/build/lib/libcmocka.so*"
check "the kit stores its output" cmp -s "$TMP/out" "$KIT/build/cuda-logs/summary.txt"
check "the kit stores the log of every step in one file" sh -c "grep -q '^==== 1 facts' '$KIT/build/cuda-logs/all.txt' && grep -q '^sanitized: --tool initcheck' '$KIT/build/cuda-logs/all.txt'"
check "the kit names steps whose programs are not there" grep -q '^not run .*training_on_gpu, by cuBLASLt (not here: specscope-cublas.so' "$TMP/out"
rm "$TMP/compute-sanitizer"
# On this clock no time is left as soon as the smoke test writes to its log.
rm -r "$KIT/build/cuda-logs"
printf '#!/bin/sh\ncat "%s"/instructions*.log 2>/dev/null | grep -q . && echo 9000 || echo 0\n' "$KIT/build/cuda-logs" >"$TMP/date"
chmod +x "$TMP/date"
first FROM=2 PROGRAMS=
rm "$TMP/date"
check "the kit with FROM leaves a step out" sh -c "! grep -q 'facts of the machine' '$TMP/out'"
check "the kit finishes a step that began in time" went "instructions, barriers, products"
check "the kit reports that it does not run a step because no time is left" grep -q "^not run  3 the bundled model's tokens.*(no time left)" "$TMP/out"
check "the kit prints the command for the remaining steps" grep -q 'the rest: FROM=3 make test-cuda' "$TMP/out"
first EMULATED_CUDA_FAIL=20 EMULATED_CUDA_FAIL_KIND=launch
check "the kit ends with a failure if a step fails" [ "$status" -ne 0 ]
check "the kit ends after one failure" grep -q '^[0-9]* passed, 1 failed' "$TMP/out"
check "the kit names the launch that failed" grep -q 'the launch that failed is [a-z_]*, [0-9]* blocks of' "$TMP/out"
check "the kit names the place to look at" grep -q 'look at: ' "$TMP/out"

group "figures and their goals"
figures() { # us of a token, 8 rows' time, probes' part, quotient, lossless, slowdown
    mkdir -p "$TMP/log"
    echo '{"device": "GPU", "copy_gb_s": 3000.0, "read_gb_s": 3100.0, "mma_tflop_s": 600.0}' >"$TMP/log/floors.json"
    printf '{"verify_rows": {"1": 1, "8": %s}, "probe_all_over_verify_8": %s, "tree_8_over_verify_8": 1.05, "rows_before": 1024, "verify_1_us": %s}\n' "$2" "$3" "$1" >"$TMP/log/steps-f16.json"
    printf '| f16, 0.75 | layerskip | 300.0 | 1.50 | 1.55 | %s | 0.75 | %s |\n| f16, 0.75 | specbound | 300.0 | 1.50 | 1.55 | 0.97 | 0.75 | yes |\n' \
        "$4" "$5" >"$TMP/log/speedups-f16-0.75"
    printf '| `--probe policy` | 0.2 ± 0.1%% | 3 ms | 1%% |\n| `--probe all` | %s ± 0.1%% | 3 ms | 9%% |\n' "$6" >"$TMP/log/scope.md"
    (LOG=$TMP/log TYPES="f16 q8_0" BUILD=$KIT/build S=$PROGRAM && . tests/cuda/bench.sh && report_goals) >"$TMP/out" 2>&1
}
figures 5000 1.10 0.05 0.95 yes 0.9
check "the kit reports figures that are reached as met" [ "$(grep -c '| met |$' "$TMP/out")" -eq 8 ]
check "the kit reports figures that were not measured" [ "$(grep -c '| not measured |$' "$TMP/out")" -eq 4 ]
check "the kit compares all bytes of a token, keys and values too, with the read bandwidth" grep -q '^| a token, f16: of the read bandwidth | at least 85 % | 88.7 % | met |$' "$TMP/out"
figures 5400 1.20 0.07 0.91 NO 1.1
check "the kit reports figures that are not reached as missed" [ "$(grep -c '| \*\*missed\*\* |$' "$TMP/out")" -eq 6 ]

group "what is built, and what is taken from a kit"
here() { # environment: prints what `make test-cuda` would do, with a make that builds nothing and a run.sh that runs nothing
    rm -rf "$TMP/tree" && mkdir -p "$TMP/tree/.ci" "$TMP/tree/tests/cuda" "$TMP/tree/build"
    cp tests/cuda/here.sh tests/cuda/made_of.sh "$TMP/tree/tests/cuda/"
    printf '#!/bin/sh\nexit ${PACKAGES:-0}\n' >"$TMP/tree/.ci/deps"
    printf '#!/bin/sh\necho "makes $*"\n' >"$TMP/make"
    printf '#!/bin/sh\necho "runs $*"\n' >"$TMP/tree/tests/cuda/run.sh"
    chmod +x "$TMP/tree/.ci/deps" "$TMP/make" "$TMP/tree/tests/cuda/run.sh"
    if [ -n "${OF:-}" ]; then
        mkdir -p "$TMP/packed/cuda-kit/build"
        { if [ "$OF" = these ]; then "$TMP/tree/tests/cuda/made_of.sh"; else echo others; fi; echo "CUDA 13.0"; } >"$TMP/packed/cuda-kit/made-of" 2>"$TMP/err"
        tar -C "$TMP/packed" -cJf "$TMP/tree/build/cuda-kit.tar.xz" cuda-kit
    fi
    env SIGNS="${SIGNS-$TMP}" DRIVER="${DRIVER-13.1}" MAKE="$TMP/make" CODE=sm_90 ALL="a b" ALONE=a "$@" sh "$TMP/tree/tests/cuda/here.sh" build test >"$TMP/out" 2>"$TMP/err"
}
said() { # lines
    printf '%s\n' "$@" | cmp -s - "$TMP/out"
}
OF=
SIGNS=$TMP/none
here NVCC=nvcc PACKAGES=0
check "here.sh builds nothing without a GPU" [ ! -s "$TMP/out" ]
check "here.sh reports a missing GPU" grep -q '^there is no NVIDIA GPU here to test$' "$TMP/err"
unset SIGNS
here NVCC=nvcc PACKAGES=0
check "here.sh builds all programs where all libraries are installed" said "makes --no-print-directory CUDA_CODE=sm_90 a b" "runs build test"
here NVCC=nvcc PACKAGES=1
check "here.sh builds the parts without libraries where libraries are missing" grep -q '^makes .* CUDA_CODE=sm_90 a$' "$TMP/out"
OF=others
here NVCC=nvcc PACKAGES=0
check "here.sh takes no kit of other sources if it can build one" said "makes --no-print-directory CUDA_CODE=sm_90 a b" "runs build test"
here NVCC=nvcc PACKAGES=1
check "here.sh takes a kit of other sources where nothing can be built" grep -q '^runs build/cuda-kit/build test$' "$TMP/out"
OF=these
here NVCC=nvcc PACKAGES=0
check "here.sh always takes a kit of the same sources" said "uses the kit in build/cuda-kit, which was made from these sources" "runs build/cuda-kit/build test"
DRIVER=12.4
here NVCC=nvcc PACKAGES=0
check "here.sh takes no kit of a later CUDA than the driver's" grep -q '^the kit in build/cuda-kit was made with CUDA 13.0, and the driver is for CUDA 12.4;' "$TMP/out"
check "here.sh builds with the local nvcc in place of a kit of a later CUDA" sh -c "sed 1d '$TMP/out' | tr '\n' ' ' | grep -q '^makes --no-print-directory CUDA_CODE=sm_90 a b runs build test $'"
finish
