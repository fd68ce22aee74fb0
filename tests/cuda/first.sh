# Sourced by run.sh: the steps of the first ten minutes on a GPU, the most elementary first. A step that fails ends the
# run and prints which files to look at, because later steps depend on it. No step depends on the optional ones.

facts() {
    limited "$BUILD/gpu_smoke" facts || return 1
    if command -v nvidia-smi >/dev/null 2>&1; then
        nvidia-smi --query-gpu=name,driver_version,pstate,clocks.sm,clocks.mem,power.limit,ecc.mode.current,temperature.gpu \
            --format=csv,noheader || true
    fi
}

smoke() {
    limited "$BUILD/gpu_smoke" ${SMOKE:-}
}

few_blocks() { # test program: runs it with three blocks, so that a block has several strips even of small shapes
    limited env SPECSCOPE_CUDA_BLOCKS=3 "$@"
}

sanitize() { # tool
    limited compute-sanitizer --tool "$1" --error-exitcode 9 --print-limit 20 "$S" run --backend cuda -n 2 --ignore-eos "$DRAFT"
}

lossless() { # synthetic model: compares $N tokens of each policy with autoregressive decoding
    csv=$LOG/lossless.csv
    limited "$S" bench --backend cuda --synth "$1" -p "Once upon a time" -n "$N" --repeat 1 --ignore-eos --csv "$csv" || return 1
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        { n++; if ($c["lossless"] == "NO") { print $c["policy"] " is not lossless"; bad = 1 } }
        END { exit bad || n < 2 }' "$csv"
}

test_programs() {
    for program in $PROGRAMS; do
        wants=$BUILD/tests/test_$program
        look="tests/unit/*/test_$program.c, the test that failed; SPECSCOPE_SEED=N repeats it"
        step "$program" 90 limited "$wants"
    done
    for program in $PROGRAMS; do
        case $program in cuda_backend | cuda_long_paths | invariance) ;; *) continue ;; esac
        wants=$BUILD/tests/test_$program
        look="code that depends on the number of blocks: strips in turn (matmul.cuh), jobs (attention.cuh), until_parts (forward_steps.cuh)"
        step "$program with three blocks" 90 few_blocks "$wants"
    done
}

by_cublas() {
    wants="$BUILD/specscope-cublas.so $BUILD/tests/test_training_on_gpu"
    look="kernels/cuda/products.c"
    if [ ! -e "$BUILD/specscope-cublas.so" ] || find_cublas; then
        optional=1 step "training_on_gpu, by cuBLASLt" 60 limited "$BUILD/tests/test_training_on_gpu"
    else
        nth=$((nth + 1))
        not_run "training_on_gpu, by cuBLASLt" "the library is missing"
    fi
}

sanitized() {
    wants="$S $DRAFT"
    for tool in memcheck racecheck synccheck initcheck; do
        look="the kernel and line that compute-sanitizer prints"
        if command -v compute-sanitizer >/dev/null 2>&1; then
            optional=1 step "compute-sanitizer $tool is clean" 60 sanitize $tool
        else
            nth=$((nth + 1))
            not_run "compute-sanitizer $tool is clean" "it is part of the CUDA toolkit"
        fi
    done
}

first_minutes() {
    [ -z "${KEEP_GOING:-}" ] && stopping=1
    wants=$BUILD/gpu_smoke
    show=p look="the driver (nvidia-smi), and the requirements in docs/cuda.md"
    step "facts of the machine" 150 facts # the driver may have to translate
    show='s/^not ok/&/p; s/^ok [0-9]* - /  /p; s/^# /      /p' look="the last check: its file in tests/cuda/smoke, and kernels/cuda/device/ptx.cuh"
    step "instructions, barriers, products, attention and the head agree with their definitions" 150 smoke
    wants=$BUILD/tests/test_cuda_tokens
    show='s/^# //p' look="kernels/cuda/device/forward.cu, head.cu: the smoke test does not test the order of their steps"
    step "the bundled model's tokens equal the CPU's, except for near ties" 60 limited "$wants"
    test_programs
    wants=$BUILD/gpu_floors
    look="other programs that use the GPU"
    show=p step "floors" 60 floors
    wants=$S
    for type in $TYPES; do
        look="sh tests/cuda/phases.sh FILE, after a run with SPECSCOPE_CUDA_PROFILE=FILE"
        show=p step "steps at the end of a context of 1024, $type" 60 steps_of "$type" -c 1024
    done
    for model in $SYNTHETIC; do
        look="the policy that failed: compare specscope run --backend cuda --synth $model --policy NAME with --policy ar"
        step "all policies are lossless on synthetic $model, $N tokens" 150 lossless "$model"
    done
    by_cublas
    sanitized
    [ -n "$BENCH" ] && bench_all
}
