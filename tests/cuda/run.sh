#!/bin/sh
# The CUDA backend on a real GPU: `make test-cuda` and `make bench-cuda`, the most important first, each within ten
# minutes. usage: tests/cuda/run.sh BUILD test|bench
# Needs the driver, and what was built: nothing is compiled here. BUILD may be a kit (`make cuda-kit`), which has the
# shared libraries too, for a machine that has the driver and nothing else.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=$1
WHAT=$2
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
S=$BUILD/specscope
LOG=$BUILD/cuda-logs
LIMIT=${CUDA_LIMIT:-570} # seconds for all of it
START=$(date +%s)
mkdir -p "$LOG"
export LC_ALL=C.UTF-8 BUILD
export SPECSCOPE_CUDA_PLUGIN="${SPECSCOPE_CUDA_PLUGIN:-$BUILD/specscope-cuda.so}"
if [ -d "$BUILD/lib" ]; then # a kit
    export LD_LIBRARY_PATH="$BUILD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PATH="$PATH:$BUILD/bin"
    export TERMINFO_DIRS="${TERMINFO_DIRS:-}:$BUILD/terminfo"
fi
MODEL=${MODEL:-models/fables-q8_0.gguf}
PLANTED=${PLANTED:-TinyLlama-1.1B:q8_0,8,0.75 Llama-2-7B:f16,12,0.75}

left() { # seconds
    echo $((LIMIT - ($(date +%s) - START)))
}

limited() { # a program, for as long as its step may still take
    timeout "$((until - $(date +%s) + 1))" "$@"
}

passed=0
failed=0
step() { # sentence, seconds at most, command
    sentence=$1
    most=$2
    shift 2
    [ "$(left)" -lt "$most" ] && most=$(left)
    if [ "$most" -le 5 ]; then
        echo "not run: $sentence (no time left)"
        return 0
    fi
    began=$(date +%s)
    log=$LOG/$(echo "$sentence" | tr -c 'a-zA-Z0-9\n' _).log
    until=$(($(date +%s) + most))
    if "$@" >"$log" 2>&1 </dev/null; then
        passed=$((passed + 1))
        echo "ok      $sentence ($(($(date +%s) - began)) s)"
    else
        status=$?
        failed=$((failed + 1))
        echo "NOT OK  $sentence (exit status $status, $(($(date +%s) - began)) s)"
        tail -n 25 "$log" | sed 's/^/        /'
    fi
}

generate() { # output, options: the ids that come
    out=$1
    shift
    limited "$S" run --backend cuda -n 96 --ignore-eos --json "$out" "$@" >/dev/null 2>"$out.err" ||
        { cat "$out.err"; return 1; }
    tr -d '\n' <"$out" | sed 's/.*"token_ids":[^[]*\[\([^]]*\)\].*/\1/' >"$out.ids"
    [ -s "$out.ids" ]
}

same_twice() { # options
    generate "$LOG/first" "$@" && generate "$LOG/second" "$@" && cmp "$LOG/first.ids" "$LOG/second.ids"
}

lossless() { # options: all policies with their defaults
    generate "$LOG/ar" --policy ar "$@" || return 1
    for policy in $("$S" --list-policies | sed -n 's/^\([a-z][a-z0-9]*\) .*/\1/p'); do
        generate "$LOG/$policy" --policy "$policy" "$@" || { echo "$policy failed"; return 1; }
        cmp "$LOG/ar.ids" "$LOG/$policy.ids" || { echo "$policy is not lossless"; return 1; }
        echo "$policy: the same 96 tokens"
    done
}

test_all() {
    step "the bundled model generates" 60 limited "$S" run --backend cuda -n 32 "$MODEL"
    step "the same tokens twice in a row" 60 same_twice "$MODEL"
    step "steps agree with definitions" 120 limited "$BUILD/tests/test_cuda_backend"
    step "results come with wait, and not before" 120 limited "$BUILD/tests/test_cuda_queue"
    step "all policies are lossless on the bundled model" 90 lossless "$MODEL"
    step "a row's bits are its own" 120 limited "$BUILD/tests/test_invariance"
    step "random programs" 120 limited "$BUILD/tests/test_context_property"
    if command -v compute-sanitizer >/dev/null 2>&1; then
        for tool in memcheck racecheck synccheck; do
            step "compute-sanitizer $tool is clean" 120 limited compute-sanitizer --tool "$tool" --error-exitcode 9 \
                "$S" run --backend cuda -n 6 "$MODEL"
        done
    else
        echo "not run: compute-sanitizer is not here"
    fi
    step "the lossless matrix" 180 limited "$BUILD/tests/test_lossless_matrix"
    for model in $PLANTED; do
        step "all policies are lossless on planted $model" 120 lossless --synth "$model"
    done
    echo "logs: $LOG"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

case $WHAT in
test) test_all ;;
bench) . tests/cuda/bench.sh && bench_all ;;
*) echo "usage: tests/cuda/run.sh BUILD test|bench" >&2; exit 2 ;;
esac
