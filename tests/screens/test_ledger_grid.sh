#!/bin/sh
# Five changes of τ on the bundled model, with a run each: the ledger's rows are the points of `bench --grid`. Counts
# are compared to the last digit shown. Times are only checked for consistency, because the best setting on a busy
# machine cannot be known beforehand.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

PROMPT='Three mice sat on a wall,'
{
    echo ':wait end'
    for tau in 0.3 0.4 0.5 0.6 0.7; do
        printf ':set tau %s\n:restart\n:wait end\n:wait idle\n' $tau
    done
    printf ':panel ledger\n:zoom\n:save-screen timed.txt\n:key c\n:save-screen modelled.txt\n:baseline\n:wait idle\n:save-screen baseline.txt\n'
    printf ':key c\n:save-screen speedups.txt\n:quit\n'
} >"$WORK/turns.script"
terminal 160x48 "$PROGRAM --set tau=0.2 -n 50 --ignore-eos -p '$PROMPT' --script $WORK/turns.script"
check "a script of five changes with a run each ends well" exits 0
check "bench --grid sweeps the same values" sh -c "'$PROGRAM' bench --policy specbound --grid tau=0.2:0.7:0.1 --repeat 2 -n 50 --ignore-eos -p '$PROMPT' --csv '$WORK/grid.csv' >'$WORK/grid.txt' && test -s '$WORK/grid.csv'"

# "0.3 99 4.12 (1.87×)" of every row, beginning with the run's first settings; then the same of the sweep.
rows() { # saved screen
    sed -n 's/^[│┃]\(.*\)[│┃]$/\1/p' "$1" | sed 's/▸/ /; s/[★☆]/ /' | awk '
        $1 ~ /^[A-F]$/ { tau = $2 == "start" ? 0.2 : $3; at = $2 == "start" ? 3 : 4
                         for (i = at; i <= NF; i++) if ($i ~ /^\(/) modelled = $i
                         print tau, $at, $(at + 1), modelled }' | sort -n
}
column() { # of the sweep: name
    awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } /tau=/ { gsub(/"/, ""); sub(/tau=/, "", $2); print $2, $c[want] }' "$WORK/grid.csv"
}
rows "$WORK/run/modelled.txt" >"$WORK/ledger"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    /tau=/ { gsub(/"/, ""); sub(/tau=/, "", $2)
             printf "%s %d %.2f (%.2f×)\n", $2, $c["emitted"] / 2, $c["tokens_per_round"], $c["modelled_speedup"] }' "$WORK/grid.csv" |
    sort -n >"$WORK/grid"
check "the ledger has six rows" test "$(wc -l <"$WORK/ledger")" -eq 6
check "the ledger's tokens, tokens per round and modelled speedups are those of bench --grid" diff -u "$WORK/grid" "$WORK/ledger"
star() { # saved screen: τ of the row that is marked as the best
    sed -n 's/^[│┃][ ▸][A-F][★☆] *\([^ ]*\) *\([^ ]*\).*/\1 \2/p' "$1" | awk '{ print $1 == "start" ? 0.2 : $2 }'
}
highest() { column "$1" | sort -k2 -g | tail -n 1; }
top=$(highest modelled_speedup)
check "the ledger's best row by modelled speedup is that of bench --grid" \
    test "$(column modelled_speedup | awk -v v="${top#* }" '$2 == v { print $1 }' | grep -cx "$(star "$WORK/run/modelled.txt")")" -eq 1

group "times"
speeds() { # saved screen: τ and tokens/s
    sed -n 's/^[│┃]\(.*\)[│┃]$/\1/p' "$1" | sed 's/▸/ /; s/[★☆]/ /' | awk '
        $1 ~ /^[A-F]$/ { tau = $2 == "start" ? 0.2 : $3; for (i = 3; i <= NF; i++) if ($i ~ /^±/) { print tau, $(i - 1); next } }'
}
best=$(speeds "$WORK/run/timed.txt" | sort -k2 -g | tail -n 1)
check "the ledger's star is in the row with the highest tokens/s" \
    test "$(speeds "$WORK/run/timed.txt" | awk -v v="${best#* }" '$2 == v { print $1 }' | grep -cx "$(star "$WORK/run/timed.txt")")" -eq 1
check "bench --grid calls its best point faster than all others, or names those without a clear difference" \
    grep -Eq '^best specbound: by speedup tau=0\.[2-7] \([0-9.]+ x ar, [0-9.]+ to [0-9.]+; (faster than each other point|no clear difference from .*)\)' "$WORK/grid.txt"
fastest=$(highest speedup)
check "the best point that bench --grid names has the highest speedup of its table" grep -q "^best specbound: by speedup tau=${fastest% *} " "$WORK/grid.txt"
check "a baseline gives every row of the ledger with its prompt a speedup" test "$(sed 's/▸/ /' "$WORK/run/speedups.txt" | grep -c '^[│┃] [A-F][★☆ ].* ~*[0-9.]*× ')" -eq 6
check "the ledger marks the row with a baseline as lossless" grep -q '^[│┃][ ▸]F.*✓ *[│┃]$' "$WORK/run/speedups.txt"
check "the ledger's title has the number of compared tokens" grep -q 'lossless ✓ 50' "$WORK/run/baseline.txt"
check "the message of a baseline has its speed with an uncertainty" grep -q 'autoregressive: [0-9]* ±[0-9.]* tokens/s' "$WORK/run/baseline.txt"
exit $STATUS
