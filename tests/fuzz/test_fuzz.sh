#!/bin/sh
# A short, repeatable run of every fuzz target (the plain driver), as part of make test.
BUILD=${BUILD:-build}
SEEDS=$(mktemp -d)
trap 'rm -rf "$SEEDS"' EXIT INT TERM
sh tests/fuzz/seeds.sh "$BUILD" "$SEEDS" || { echo "not ok 1 - seeds for fuzzing"; exit 1; }
n=0
status=0
for target in tests/fuzz/fuzz_*.c; do
    name=$(basename "$target" .c)
    n=$((n + 1))
    case $name in
    fuzz_keys | fuzz_commands) usual=25 ;; # a whole app each
    fuzz_files | fuzz_places | fuzz_trace) usual=4000 ;;
    *) usual=12000 ;;
    esac
    if timeout 1200 "$BUILD/fuzz/$name" -mutate "${FUZZ_MUTATIONS:-$usual}" -seed "${SPECSCOPE_SEED:-1}" "$SEEDS/$name"/* 2>&1; then
        echo "ok $n - $name survives mutated inputs"
    else
        echo "not ok $n - $name survives mutated inputs"
        status=1
    fi
done
exit $status
