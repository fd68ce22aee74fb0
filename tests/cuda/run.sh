#!/bin/sh
# The CUDA backend on a real GPU: `make test-cuda` (the first ten minutes, first.sh) and `make bench-cuda` (bench.sh).
# usage: tests/cuda/run.sh BUILD test|bench
# Needs the driver and built programs, because nothing is compiled here. A step whose program is missing is reported as
# not run. BUILD may be a kit (`make cuda-kit`), which also has the shared libraries, for a machine with only the
# driver: run `./first` there.
#
# CUDA_LIMIT=S: seconds for all steps. STEP_LIMIT=S: seconds for each step, instead of its own limit. FROM=N: omits the
# steps before the Nth. KEEP_GOING=1: `test` continues after a failed step. GPU=N: another GPU than 0. LOGS=DIR: the
# folder of logs; summary.txt is the printed text, all.txt all logs.
# DRAFT, SYNTHETIC, SHAPE, TYPES, MIXTURE, N, PROGRAMS, FLOORS, BENCH: arguments of steps; SMOKE=tiny|real|whole: the
# size of the smoke test.
set -u
if [ $# -ne 2 ] || ! BUILD=$(cd "$1" 2>/dev/null && pwd); then
    echo "usage: tests/cuda/run.sh BUILD test|bench" >&2
    exit 2
fi
WHAT=$2
cd "$(dirname "$0")/../.." || exit 1
S=$BUILD/specscope
LOG=${LOGS:-$BUILD/cuda-logs}
LIMIT=${CUDA_LIMIT:-570}
START=${BEGAN:-$(date +%s)}
mkdir -p "$LOG" && LOG=$(cd "$LOG" && pwd) || exit 1
if [ -z "${SUMMED:-}" ]; then # runs itself, and stores the output in summary.txt, too
    exec 4>&1
    status=$({ { SUMMED=1 BEGAN=$START sh tests/cuda/run.sh "$BUILD" "$WHAT" 2>&1; echo $? >&3; } | tee "$LOG/summary.txt" >&4; } 3>&1)
    exit "$status"
fi
export LC_ALL=C.UTF-8 BUILD
export SPECSCOPE_CUDA_PLUGIN="${SPECSCOPE_CUDA_PLUGIN:-$BUILD/specscope-cuda.so}"
[ -n "${GPU:-}" ] && export CUDA_VISIBLE_DEVICES="$GPU"
for bin in /usr/local/cuda/bin /usr/local/cuda-*/bin /usr/local/nvidia/bin; do # compute-sanitizer, nvidia-smi
    [ -d "$bin" ] && PATH=$PATH:$bin
done
libraries= # LD_LIBRARY_PATH of our programs; it must not affect other programs
if [ -d "$BUILD/lib" ]; then # a kit
    libraries=$BUILD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export PATH="$PATH:$BUILD/bin:$BUILD/compute-sanitizer" TERMINFO_DIRS="${TERMINFO_DIRS:-}:$BUILD/terminfo"
fi
DRAFT=${DRAFT:-models/fables-draft-q8_0.gguf}
SHAPE=${SHAPE:-Llama-2-7B}
EXIT=${EXIT:-8} # layer of the synthetic model after which its hidden states change little
TYPES=${TYPES-f16 q8_0 q4_0 q4_k q6_k}
SYNTHETIC=${SYNTHETIC:-$SHAPE:f16,12,0.75}
N=${N:-300}
PROGRAMS=${PROGRAMS-cuda_backend cuda_queue cuda_feed cuda_long_paths invariance context_property golden_families lossless_matrix}
BENCH=${BENCH-1} # empty: no figures
FROM=${FROM:-1}

left() { # seconds
    echo $((LIMIT - ($(date +%s) - START)))
}

limited() { # program: runs it in the remaining time of its step; SIGKILL follows SIGTERM after 5 seconds
    seconds=$((until - $(date +%s) + 1))
    timeout -k 5 "$((seconds > 1 ? seconds : 1))" env ${libraries:+"LD_LIBRARY_PATH=$libraries"} "$@"
}

# cuBLASLt is half a gigabyte and not in a kit. Its plug-in searches the place where it was built; then this script
# searches the toolkit and Python's packages.
find_cublas() {
    needed=$(env ${libraries:+"LD_LIBRARY_PATH=$libraries"} ldd "$BUILD/specscope-cublas.so" 2>/dev/null | awk '/cublasLt.*not found/ { print $1 }')
    [ -z "$needed" ] && return 0
    for folder in /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /opt/cuda/lib64 \
        $(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null)/nvidia/*/lib; do
        if [ -e "$folder/$needed" ]; then
            libraries=${libraries:-${LD_LIBRARY_PATH:-}}:$folder
            return 0
        fi
    done
    return 1
}

nth=0
passed=0
failed=0
missed=0
next=     # the first step that was left out because no time was left
stopping= # set: the first step that fails ends the run
optional= # set: a failure of this step does not end the run, because no step depends on it
look=     # where to look if the step fails
show=     # sed expression that selects the lines of the log to print if the step passes
wants=    # files that the step needs

not_run() { # sentence, why
    missed=$((missed + 1))
    printf 'not run %2d %s (%s)\n' "$nth" "$1" "$2"
}

# Runs a failed step again with a synchronisation after every launch, which names the launch.
name_launch() { # log, seconds, command
    again=${1%.log}_again.log
    most=${STEP_LIMIT:-$2}
    shift 2
    [ "$(left)" -lt "$most" ] && most=$(left)
    if [ "$most" -le 5 ]; then
        echo "        no time is left to run it again with a wait after each launch (SPECSCOPE_CUDA_SYNC=1)"
        return
    fi
    until=$(($(date +%s) + most))
    SPECSCOPE_CUDA_SYNC=1
    export SPECSCOPE_CUDA_SYNC
    "$@" >"$again" 2>&1 </dev/null
    status=$?
    unset SPECSCOPE_CUDA_SYNC
    if grep -q '^specscope-cuda: the launch that failed' "$again"; then
        grep -A 1 '^specscope-cuda: the launch that failed' "$again" | head -n 2 | sed 's/^/        /'
    elif [ "$status" -eq 0 ]; then
        echo "        with a wait after each launch it does not fail: a wait is missing, or the failure is random"
    else
        echo "        again with a wait after each launch: exit status $status, and no launch failed"
    fi
    echo "        log of the second run: $again"
}

went_wrong() { # sentence, seconds it had, log, exit status, command
    sentence=$1
    most=$2
    log=$3
    status=$4
    shift 4
    failed=$((failed + 1))
    printf 'NOT OK  %2d %s (exit status %d, %d s)\n' "$nth" "$sentence" "$status" "$(($(date +%s) - began))"
    tail -n 25 "$log" | cut -c1-300 | sed 's/^/        /'
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        echo "        it took longer than $most s"
        [ -n "$optional" ] || name_launch "$log" 40 "$@" # in case a kernel hangs
    elif [ -z "$optional" ]; then
        name_launch "$log" 120 "$@"
    fi
    [ -n "$look" ] && echo "        look at: $look"
    echo "        log: $log"
    if [ -n "$stopping" ] && [ -z "$optional" ]; then
        echo "what comes rests on it and is not run (KEEP_GOING=1: all the same; FROM=$((nth + 1)): from there on)"
        summary
    fi
}

step() { # sentence, seconds at most, command
    sentence=$1
    most=${STEP_LIMIT:-$2}
    shift 2
    nth=$((nth + 1))
    lacking=
    for file in $wants; do
        [ -e "$file" ] || lacking="$lacking ${file#"$BUILD"/}"
    done
    [ "$(left)" -lt "$most" ] && most=$(left)
    if [ "$nth" -lt "$FROM" ]; then
        :
    elif [ -n "$lacking" ]; then
        not_run "$sentence" "not here:$lacking"
    elif [ "$most" -le 5 ]; then
        not_run "$sentence" "no time left"
        next=${next:-$nth}
    else
        began=$(date +%s)
        log=$LOG/$(echo "$sentence" | tr -c 'a-zA-Z0-9\n' _).log
        until=$((began + most))
        "$@" >"$log" 2>&1 </dev/null
        status=$?
        { echo "==== $nth $sentence: exit status $status" && cat "$log"; } >>"$LOG/all.txt"
        if [ "$status" -eq 0 ]; then
            passed=$((passed + 1))
            printf 'ok      %2d %s (%d s)\n' "$nth" "$sentence" "$(($(date +%s) - began))"
            [ -n "$show" ] && sed -n "$show" "$log" | sed 's/^/        /'
        else
            went_wrong "$sentence" "$most" "$log" "$status" "$@"
        fi
    fi
    show=
    optional=
}

summary() { # prints the result and exits
    echo "logs: $LOG (all.txt has them all)"
    [ -n "$next" ] && echo "there was no time for all steps; the rest: FROM=$next make $WHAT-cuda"
    echo "$passed passed, $failed failed, $missed not run ($(($(date +%s) - START)) s)"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

[ "$FROM" -gt 1 ] || : >"$LOG/all.txt"
if [ ! -e "$SPECSCOPE_CUDA_PLUGIN" ]; then
    echo "$SPECSCOPE_CUDA_PLUGIN is not here: make cuda, or a kit of make cuda-kit" >&2
    exit 1
fi
. tests/cuda/bench.sh
[ "$FROM" -gt 1 ] || forget_figures
case $WHAT in
test) . tests/cuda/first.sh && first_minutes ;;
bench) bench_all ;;
*) echo "usage: tests/cuda/run.sh BUILD test|bench" >&2; exit 2 ;;
esac
summary
