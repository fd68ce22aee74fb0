#!/bin/sh
# A sweep of 12 points on the bundled model, live: interrupted and resumed, it has the counts of an uninterrupted one
# and of `bench --grid`. Times are only checked for consistency.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

PROMPT='Three mice sat on a wall,'
GRID='tau=0.3:0.9:0.3 d_max=3:6:1'
knob() { # saved screen, knob: its value, perhaps with … as it comes into force with the next round
    sed -n "s/.* $2 .*├[^┤]*┤ *\([^ ┃│…]*\).*/\1/p" "$1" | head -n 1
}
unchanged() { # saved screen; says what it has instead
    test "$(knob "$1" tau) $(knob "$1" d_max)" = '0.55 5' || { grep ' tau \| d_max ' "$1"; return 1; }
}
counted() { # CSV: params and what no clock has a part in, a line a point
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } /tau=/ {
        print $2, $c["tokens_per_round"], $c["acceptance_rate"], $c["modelled_speedup"], $c["rounds"], $c["emitted"], $c["layers_loaded"] }' "$1"
}
field() { # column, pattern, CSV: its value in the lines that match
    awk -F, -v name="$1" -v wanted="$2" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } $0 ~ wanted { print $c[name] }' "$3"
}
cat >"$WORK/cut.script" <<END
:wait round 3
:sweep $GRID
:wait sweep 5
:key Escape
:wait idle
:save-screen half.txt
:sweep csv half.csv
:sweep $GRID
:wait idle
:save-screen whole.txt
:sweep csv whole.csv
:zoom
:save-screen map.txt
:key o
:save-screen list.txt
:zoom
:key o Up Left Enter
:wait idle
:save-screen taken.txt
:undo
:wait idle
:save-screen undone.txt
:quit
END
terminal 160x48 "$PROGRAM -n 24 --pace 50 --ignore-eos -p '$PROMPT' --script $WORK/cut.script"
until_true test -s "$WORK/run/status" >/dev/null
check "a sweep that is cut off and resumed ends well" exits 0
half=$(grep -c tau= "$WORK/run/half.csv")
check "Esc stops a sweep half-way ($half points)" test "$half" -ge 5 -a "$half" -lt 12
check "the sweep's panel shows that the sweep was stopped" grep -q "sweep ━.* tokens/s · $half of 12 points, stopped" "$WORK/run/half.txt"
check "the message after a stopped sweep names the fastest point" grep -q "the sweep has $half of 12 points; fastest at tau=.*:sweep resumes it" "$WORK/run/half.txt"
check "knobs are unchanged after a stopped sweep" unchanged "$WORK/run/half.txt"
check "a resumed sweep has 12 points" test "$(grep -c tau= "$WORK/run/whole.csv")" -eq 12
counted "$WORK/run/half.csv" >"$WORK/a"
counted "$WORK/run/whole.csv" | head -n "$half" >"$WORK/b"
check "a resumed sweep keeps the points of before" cmp "$WORK/a" "$WORK/b"
check "knobs are unchanged after a whole sweep" unchanged "$WORK/run/whole.txt"
check "the sweep's map has the values on its sides" sh -c "grep -q 'tau *3 *4 *5 *6 *d_max' '$WORK/run/map.txt' && test \$(grep -c '0\.[0-9]*  *[0-9.]*[0-9][ ★☆]' '$WORK/run/map.txt') -eq 3"
check "the sweep's map marks one cell as the best, or as the best within noise" test "$(grep -c '0\.[0-9]* .*[★☆]' "$WORK/run/map.txt")" -eq 1
check "the sweep's list begins with the best point" sh -c "grep -q '▸[★☆]tau=0.* d_max=[3-6] ' '$WORK/run/list.txt'"
check "Enter in the sweep's map takes a cell's values" sh -c "grep -q 'tau=$(knob "$WORK/run/taken.txt" tau) d_max=$(knob "$WORK/run/taken.txt" d_max), as the sweep had it' '$WORK/run/taken.txt'"
check "one undo takes a cell's values back" unchanged "$WORK/run/undone.txt"

printf ':wait round 3\n:sweep %s\n:wait idle\n:sweep csv whole.csv\n:sweep\n:wait idle\n:save-screen twice.txt\n:sweep csv twice.csv\n:quit\n' "$GRID" >"$WORK/whole.script"
cp "$WORK/run/whole.csv" "$WORK/resumed.csv"
terminal 160x48 "$PROGRAM -n 24 --pace 50 --ignore-eos -p '$PROMPT' --script $WORK/whole.script"
until_true test -s "$WORK/run/status" >/dev/null
check "a sweep in a piece ends well" exits 0
counted "$WORK/run/whole.csv" >"$WORK/a"
counted "$WORK/resumed.csv" >"$WORK/b"
check "a sweep that is cut off and resumed has the points of a whole one" diff -u "$WORK/a" "$WORK/b"
check "bench --grid sweeps the same values" sh -c "'$PROGRAM' bench --policy specbound --grid tau=0.3:0.9:0.3 --grid d_max=3:6:1 --repeat 1 -n 24 --ignore-eos -p '$PROMPT' --csv '$WORK/grid.csv' >/dev/null && test -s '$WORK/grid.csv'"
counted "$WORK/grid.csv" >"$WORK/c"
check "bench --grid counts the same as the sweep at every point" diff -u "$WORK/a" "$WORK/c"
ar() { # CSV: the baseline's line
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } /^ar,/ {
        print FNR, $2, $c["speedup"], $c["tokens_per_round"], $c["drafted"], $c["rounds"] % 23, $c["emitted"] % 23, $c["layers_loaded"] / $c["rounds"] }' "$1"
}
ar "$WORK/run/whole.csv" >"$WORK/a"
ar "$WORK/grid.csv" >"$WORK/c"
check "the sweep's file and bench's have a line of autoregressive decoding" sh -c "grep -q '^2 \"\" 1 1 0 0 0 16$' '$WORK/a' && cmp '$WORK/a' '$WORK/c'"
check "the sweep runs autoregressive decoding at least once in eight points" test "$(field rounds ^ar, "$WORK/run/whole.csv")" -eq $((2 * 23))
check "a resumed sweep's file has autoregressive decoding" test "$(field rounds ^ar, "$WORK/resumed.csv")" -eq $((2 * 23))
check "every point of the sweep's file has its speed in multiples of ar's, with a standard error" sh -c "test \$(grep tau= '$WORK/run/whole.csv' | awk -F, '\$4 > 0 && \$5 > 0' | wc -l) -eq 12"
check "the sweep's file has the columns of bench's" test "$(head -n 1 "$WORK/grid.csv")" = "$(head -n 1 "$WORK/run/whole.csv")"
check "plot draws the sweep's file" sh -c "'$PROGRAM' plot '$WORK/run/whole.csv' grid --measure tok_per_s -o '$WORK/grid.svg' && test -s '$WORK/grid.svg'"
check "a repeated sweep adds a pass" grep -q '12 of 12 points of pass 2' "$WORK/run/twice.txt"
check "the rounds of a second pass are counted" test "$(counted "$WORK/run/twice.csv" | awk '{ n += $6 } END { print n }')" -eq "$(counted "$WORK/run/whole.csv" | awk '{ n += 2 * $6 } END { print n }')"

group "a list of prompts, one knob, a batch"
printf ':wait round 2\n:sweep gamma=2:4:1 prompts\n:wait idle\n:save-screen one.txt\n:sweep csv one.csv\n:quit\n' >"$WORK/list.script"
terminal 120x36 "$PROGRAM --policy layerskip -n 16 --ignore-eos --prompts $ROOT/tests/screens/prompts.jsonl --script $WORK/list.script"
check "a sweep over a list of prompts ends well" exits 0
prompts=$(wc -l <"$ROOT/tests/screens/prompts.jsonl")
check "every point of a sweep over a list has the tokens of all prompts" test "$(field emitted gamma=2 "$WORK/run/one.csv")" -eq $((prompts * 15))
check "the sweep of one knob is drawn as a line with whiskers" sh -c "test \$(grep -c '[┃ ▸][★☆ ][234] .*●.*±' '$WORK/run/one.txt') -eq 3"
check "the first prompt is restored after a sweep over a list" grep -q 'Everybody in the valley' "$WORK/run/one.txt"
printf ':wait round 2\n:sweep gamma=2:4:1\n:wait idle\n:sweep csv batch.csv\n:sweep gamma=2:4:1 prompts\n' >"$WORK/batch.script"
terminal 120x36 "$PROGRAM --policy layerskip -n 16 --ignore-eos --batch 3 --prompts $ROOT/tests/screens/prompts.jsonl --script $WORK/batch.script"
check "a batch is swept with its own prompts alone" exits 2
check "a swept batch has the tokens of all prompts" test "$(field emitted gamma=2 "$WORK/run/batch.csv")" -eq $((prompts * 15))

group "refusals"
for line in ':sweep' ':sweep tau=1' ':sweep gamma=1:4:1' ':sweep d_max=3:8:0.5' ':sweep tau=0:1:0.5 tau=0:1:0.5' ':sweep stop' ':sweep csv x.csv' ':sweep take 1'; do
    printf ':wait round 1\n%s\n:quit\n' "$line" >"$WORK/wrong.script"
    terminal 120x36 "$PROGRAM --script $WORK/wrong.script"
    check "$line is refused in one line" refused
done
printf ':goto 3\n:wait idle\n:sweep tau=0:1:0.5\n:quit\n' >"$WORK/replay.script"
terminal 120x36 "$PROGRAM replay --script $WORK/replay.script $ROOT/tests/screens/traces/specbound"
check ":sweep in a replay is refused" exits 2

group "keys, while it runs"
terminal 160x48 "exec $PROGRAM --pace 20 -n 200 --ignore-eos"
wait_for 'layers × tokens' >/dev/null
tm send-keys -l ':sweep tau=0:1:0.05 d_max=1:15:1'
tm send-keys Enter
check "the status line shows the sweep's progress" wait_for '^ sweep [0-9]* of 315 .* s left *Esc stop'
check "the sweep's panel fills while the sweep runs" wait_for 'sweep ━.*[0-9] of 315 points, [0-9]* s left'
tm send-keys C-c
check "Ctrl-C stops the sweep and not the scope" wait_for 'the sweep has [0-9]* of 315 points'
check "the run continues at its speed after a stopped sweep" wait_for '20/s shown'
tm send-keys -l ':sweep'
tm send-keys Enter
check ":sweep without arguments resumes a sweep" wait_for '^ sweep [2-9][0-9]* of 315'
tm send-keys -l ':set w_max 4'
tm send-keys Enter
check "a change of another knob stops the sweep" wait_for '315 points, stopped'
exit $STATUS
