#!/bin/sh
# Compares decoding beside busy processes with the number of threads that the program chooses and with fixed numbers.
# Prints medians of interleaved runs in tokens/s. usage: tests/bench/busy.sh BUILD [MODEL]
set -eu
S=$1/specscope
MODEL=${2:-}
N=$(getconf _NPROCESSORS_ONLN)
WORK=$(mktemp -d)
busy=
trap '[ -z "$busy" ] || kill $busy; rm -rf "$WORK"' EXIT
trap 'exit 1' INT TERM

speed() { # file, options: adds the speed of a run
    file=$1
    shift
    # shellcheck disable=SC2086 # the bundled model is no word
    "$S" run --policy ar --ignore-eos -n 600 -p 'Three mice sat on a wall.' "$@" --json - $MODEL 2>/dev/null |
        sed -n 's/^.*"tok_per_s":[^0-9]*\([0-9.]*\).*/\1/p' | tail -n 1 >>"$WORK/$file"
}
median() {
    sort -n "$WORK/$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

printf '%-16s %10s %10s %10s %18s\n' 'busy processes' 'chosen' '-t 1' "-t $N" 'chosen / best'
for load in 0 1 "$N"; do
    busy=
    i=0
    while [ $i -lt "$load" ]; do
        sh -c 'while :; do :; done' &
        busy="$busy $!"
        i=$((i + 1))
    done
    rm -f "$WORK"/*
    for _ in 1 2 3 4 5 6 7 8 9; do
        speed chosen
        speed one -t 1
        speed all -t "$N"
    done
    # shellcheck disable=SC2086 # several
    [ -z "$busy" ] || kill $busy
    busy=
    echo "$load $(median chosen) $(median one) $(median all)" |
        awk '{ best = $3 > $4 ? $3 : $4; printf "%-16s %10.0f %10.0f %10.0f %18.2f\n", $1, $2, $3, $4, $2 / best }'
done
