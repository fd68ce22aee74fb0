#!/bin/sh
# Fuzzes every target for so many seconds. usage: tests/fuzz/run.sh BUILD SECONDS   What crashes stays in BUILD/crashes.
set -eu
cd "$(dirname "$0")/../.."
BUILD=$1
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac # targets that run the app work elsewhere
SECONDS_EACH=$2
SEED=${SPECSCOPE_SEED:-$(date +%s)}
mkdir -p "$BUILD/crashes" "$BUILD/corpus"
sh tests/fuzz/seeds.sh "$BUILD" "$BUILD/seeds"
status=0
total=0
for target in tests/fuzz/fuzz_*.c; do
    name=$(basename "$target" .c)
    mkdir -p "$BUILD/corpus/$name"
    echo "$name, $SECONDS_EACH s, seed $SEED"
    if "$BUILD/fuzz/$name" -help=1 2>&1 | grep -q libFuzzer; then
        "$BUILD/fuzz/$name" -max_total_time="$SECONDS_EACH" -seed="$SEED" -max_len=131072 -artifact_prefix="$BUILD/crashes/$name-" \
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
