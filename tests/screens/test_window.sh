#!/bin/sh
# The window: all numbers on the screen are of the rounds that the bar names, and equal the sums of the trace's
# rounds.csv.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
TRACE=$ROOT/tests/screens/traces/turned

{
    printf ':goto 100%%\n:wait idle\n'
    for window in segment last run; do
        printf ':window %s\n:save-screen %s.txt\n' $window $window
    done
    printf ':window segment\n:panel text\n:key v\n:save-screen key.txt\n'
    for panel in layers ledger exits; do
        printf ':panel %s\n:key v\n:save-screen %s.txt\n' $panel $panel
    done
    printf ':quit\n'
} >"$WORK/window.script"
terminal 260x60 "$PROGRAM replay --script $WORK/window.script $TRACE"
check "a script that goes through the windows ends well" exits 0

# prints "acceptance 0.93 tokens/round 2.75 tok/s 65" of the rounds from number $1 on
of_rounds() {
    awk -F, -v from="$1" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["round"] >= from { a += $c["accepted"]; v += $c["verified"]; e += $c["emitted"]; n++; us += $c["draft_us"] + $c["verify_us"] }
        END { printf "acceptance %.2f tokens/round %.2f tok/s %.0f\n", a / v, e / n, e * 1e6 / us }' "$TRACE/rounds.csv"
}
of_screen() { # saved screen
    bar=$(grep 'tokens/round.*acceptance' "$1" | tail -n 1)
    echo "acceptance $(echo "$bar" | sed 's/.*acceptance \([0-9.]*\).*/\1/')" \
        "tokens/round $(echo "$bar" | sed 's/.*tokens\/round \([0-9.]*\).*/\1/')" \
        "tok/s $(head -n 1 "$1" | sed 's/.* \([0-9.]*\) ±[0-9.]* tok\/s.*/\1/')"
}
same() { # window, first round
    of_rounds "$2" >"$WORK/csv"
    of_screen "$WORK/run/$1.txt" >"$WORK/screen"
    diff -u "$WORK/csv" "$WORK/screen"
}
last=$(tail -n 1 "$TRACE/rounds.csv" | cut -d, -f5)
# The newest segment begins with the first round after the last change of a knob.
turned=$(awk -F, 'NR > 1 && ($6 == "\"tau\"" || $6 == "\"d_max\"" || $6 == "\"policy\"") { at = $9 } END { print at }' "$TRACE/controls.csv")
check "the trace ends in a segment of its own" test "$turned" -gt 1 -a "$turned" -lt $((last - 3))
check "the numbers are those of the segment at first" same segment "$turned"
check "the numbers are those of the last 32 rounds after v" same last $((last - 31))
check "the numbers are those of the run after another v" same run 1
check "the line of figures names the segment" grep -q '^ segment [A-Z]: ' "$WORK/run/segment.txt"
check "the line of figures names the last 32 rounds" grep -q '^ last 32 rounds: ' "$WORK/run/last.txt"
check "the line of figures names the run" grep -q '^ run: ' "$WORK/run/run.txt"
check "v selects the next window" grep -q '^ last 32 rounds: ' "$WORK/run/key.txt"
check "v selects the next window in the layers" grep -q '^ run: ' "$WORK/run/layers.txt"
check "v selects the next window in the ledger" grep -q '^ segment [A-Z]: ' "$WORK/run/ledger.txt"
check "v selects the next window in the exit layers, whose title names it" grep -q 'exit layers .* last 32 rounds' "$WORK/run/exits.txt"

printf ':window rounds\n' >"$WORK/wrong.script"
terminal 120x36 "$PROGRAM replay --script $WORK/wrong.script $TRACE"
check "an unknown window is refused" exits 2
check "the refusal of an unknown window lists the windows" grep -q 'cannot show window "rounds": there is none; segment, last, run or next' "$WORK/run/err"
exit $STATUS
