#!/bin/sh
# The CUDA backend on a real GPU: `make test-cuda` (the first ten minutes, first.sh) and `make bench-cuda` (bench.sh).
# usage: tests/cuda/run.sh BUILD test|bench
# Needs the driver, and what was built: nothing is compiled here. BUILD may be a kit (`make cuda-kit`), which has the
# shared libraries too, for a machine that has the driver and nothing else: `./first` there.
#
# CUDA_LIMIT=S: seconds for all of it. KEEP_GOING=1: a step that fails does not end `test`. GPU=N: another GPU than 0.
# DRAFT, PLANTED, SHAPE, TYPES, N, PROGRAMS, FLOORS, BENCH: what steps are run with; SMOKE=tiny|real|whole: how much the
# smoke test takes.
set -u
if [ $# -ne 2 ] || ! BUILD=$(cd "$1" 2>/dev/null && pwd); then
    echo "usage: tests/cuda/run.sh BUILD test|bench" >&2
    exit 2
fi
WHAT=$2
cd "$(dirname "$0")/../.." || exit 1
S=$BUILD/specscope
LOG=$BUILD/cuda-logs
LIMIT=${CUDA_LIMIT:-570}
START=$(date +%s)
mkdir -p "$LOG"
export LC_ALL=C.UTF-8 BUILD
export SPECSCOPE_CUDA_PLUGIN="${SPECSCOPE_CUDA_PLUGIN:-$BUILD/specscope-cuda.so}"
[ -n "${GPU:-}" ] && export CUDA_VISIBLE_DEVICES="$GPU"
if [ -d "$BUILD/lib" ]; then # a kit
    export LD_LIBRARY_PATH="$BUILD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PATH="$PATH:$BUILD/bin:$BUILD/compute-sanitizer"
    export TERMINFO_DIRS="${TERMINFO_DIRS:-}:$BUILD/terminfo"
fi
DRAFT=${DRAFT:-models/fables-draft-q8_0.gguf}
SHAPE=${SHAPE:-Llama-2-7B}
EXIT=${EXIT:-8} # the planted model's layer after which little changes
TYPES=${TYPES-f16 q8_0}
PLANTED=${PLANTED:-$SHAPE:f16,12,0.75}
N=${N:-300}
PROGRAMS=${PROGRAMS-cuda_backend cuda_queue cuda_long_paths invariance context_property golden_families lossless_matrix}
BENCH=${BENCH-1} # empty: without the figures

left() { # seconds
    echo $((LIMIT - ($(date +%s) - START)))
}

limited() { # a program, for as long as its step may still take
    timeout "$((until - $(date +%s) + 1))" "$@"
}

passed=0
failed=0
stopping= # set: the first step that fails ends all
look=     # where to look when the step fails
show=     # what of its log is worth reading when it does not: an expression of sed's

# A step that failed, once more with a synchronisation behind every launch: the launch is named.
name_launch() { # log, command
    again=${1%.log}_again.log
    shift
    until=$(($(date +%s) + 120))
    SPECSCOPE_CUDA_SYNC=1
    export SPECSCOPE_CUDA_SYNC
    "$@" >"$again" 2>&1 </dev/null
    status=$?
    unset SPECSCOPE_CUDA_SYNC
    if grep -q '^specscope-cuda: the launch that failed' "$again"; then
        grep -A 1 '^specscope-cuda: the launch that failed' "$again" | head -n 2 | sed 's/^/        /'
    elif [ "$status" -eq 0 ]; then
        echo "        with every launch waited for it does not fail: something is not waited for, or it is chance"
    else
        echo "        again with every launch waited for: exit status $status, and no launch failed by itself"
    fi
    echo "        log of that: $again"
}

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
        [ -n "$show" ] && sed -n "$show" "$log" | sed 's/^/        /'
    else
        status=$?
        failed=$((failed + 1))
        echo "NOT OK  $sentence (exit status $status, $(($(date +%s) - began)) s)"
        tail -n 25 "$log" | sed 's/^/        /'
        [ "$status" -eq 124 ] && echo "        it took longer than $most s"
        name_launch "$log" "$@"
        [ -n "$look" ] && echo "        look at: $look"
        echo "        log: $log"
        [ -n "$stopping" ] && summary
    fi
    show=
}

summary() { # and the end
    echo "logs: $LOG"
    echo "$passed passed, $failed failed ($(($(date +%s) - START)) s)"
    [ "$failed" -eq 0 ]
    exit
}

. tests/cuda/bench.sh
case $WHAT in
test) . tests/cuda/first.sh && first_minutes ;;
bench) forget_figures && bench_all ;;
*) echo "usage: tests/cuda/run.sh BUILD test|bench" >&2; exit 2 ;;
esac
summary
