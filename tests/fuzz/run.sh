#!/bin/sh
# Fuzzes every target for SECONDS. usage: tests/fuzz/run.sh BUILD SECONDS   BUILD/crashes contains the inputs that
# crashed.
set -eu
cd "$(dirname "$0")/../.."
BUILD=$1
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac # targets that run the app work elsewhere
SECONDS_EACH=$2
SEED=${SPECSCOPE_SEED:-$(date +%s)}
mkdir -p "$BUILD/crashes" "$BUILD/corpus"
# Short allocation stacks and a small quarantine double the executions, and freed memory is still watched for long.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:malloc_context_size=2:quarantine_size_mb=8:thread_local_quarantine_size_kb=64:max_malloc_fill_size=256}"
export OMP_NUM_THREADS=1
# Targets skip longer inputs than these, or only take longer with them.
most() {
    case $1 in
    fuzz_words | fuzz_keys | fuzz_packed) echo 512 ;;
    fuzz_commands) echo 2048 ;;
    fuzz_config | fuzz_preset | fuzz_script) echo 4096 ;;
    fuzz_accept_head | fuzz_hf_config | fuzz_safetensors) echo 8192 ;;
    fuzz_chat | fuzz_server_answers | fuzz_sse | fuzz_sv_profile | fuzz_texts | fuzz_theme | fuzz_trace) echo 16384 ;;
    *) echo 131072 ;;
    esac
}
sh tests/fuzz/seeds.sh "$BUILD" "$BUILD/seeds"
status=0
total=0
for target in tests/fuzz/fuzz_*.c; do
    name=$(basename "$target" .c)
    mkdir -p "$BUILD/corpus/$name"
    echo "$name, $SECONDS_EACH s, seed $SEED"
    if "$BUILD/fuzz/$name" -help=1 2>&1 | grep -q libFuzzer; then
        "$BUILD/fuzz/$name" -max_total_time="$SECONDS_EACH" -seed="$SEED" -max_len="$(most "$name")" -artifact_prefix="$BUILD/crashes/$name-" \
            "$BUILD/corpus/$name" "$BUILD/seeds/$name" >"$BUILD/crashes/$name.log" 2>&1 || { status=1; tail -n 20 "$BUILD/crashes/$name.log"; }
        runs=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$BUILD/crashes/$name.log")
        echo "  ${runs:-?} executions"
        total=$((total + ${runs:-0}))
    else
        "$BUILD/fuzz/$name" -seconds "$SECONDS_EACH" -seed "$SEED" "$BUILD/seeds/$name"/* || status=1
    fi
done
[ $total -eq 0 ] || echo "$total executions in all; what crashed is in $BUILD/crashes, the corpus in $BUILD/corpus"
exit $status
