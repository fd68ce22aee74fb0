#!/bin/sh
# Two traces side by side: specscope diff --scope, and :versus TRACE in a replay. Tests the panes of both, stepping, jumping, searching,
# returning to one trace, and refusals. UPDATE=1 writes the expected screens.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
TRACES=$ROOT/tests/screens/traces

# ---- diff --scope, byte for byte ----
cat >"$WORK/beside.script" <<'END'
:goto 19
:wait idle
:panel versus
:save-screen screen.txt
:quit
END
for size in 80x24 160x48; do
    expected=$ROOT/tests/screens/expected/beside-$size.txt
    terminal $size "$PROGRAM diff --scope --script $WORK/beside.script $TRACES/swift $TRACES/del"
    check "two traces are shown at $size" exits 0
    [ -z "${UPDATE:-}" ] || cp "$WORK/run/screen.txt" "$expected"
    check "the screen of two traces at $size is as expected" diff -u "$expected" "$WORK/run/screen.txt"
done

# ---- :versus TRACE in a replay ----
cat >"$WORK/replay.script" <<'END'
:goto 5
:wait idle
:versus TRACES/swift
:wait idle
:panel versus
:save-screen both.txt
:wait round 8
:save-screen at8.txt
:step
:wait idle
:save-screen at9.txt
:goto 8
:wait idle
:save-screen again8.txt
:sequence 2
:panel knobs
:save-screen second.txt
:goto 1
:wait idle
:until text chapel.
:wait idle
:save-screen until.txt
:jump next
:wait idle
:save-screen next.txt
:goto 50%
:wait idle
:goto 100%
:wait idle
:panel versus
:save-screen end.txt
:versus off
:wait idle
:save-screen alone.txt
:versus TRACES/del
:wait idle
:save-screen itself.txt
:quit
END
sed -i "s#TRACES#$TRACES#" "$WORK/replay.script"
terminal 160x48 "$PROGRAM replay --script $WORK/replay.script $TRACES/del"
check "a second trace next to the first" exits 0
check "the first one is the one that was replayed" grep -q '▸1 del *del .*2 swift *swift' "$WORK/run/both.txt"
check "a round is of both" grep -q 'round 8$' "$WORK/run/at8.txt"
check "a step is a round of one of them" grep -q 'round 9$' "$WORK/run/at9.txt"
check "back and forth is the same screen" cmp "$WORK/run/at8.txt" "$WORK/run/again8.txt"
check "the second one's knobs are its own" grep -q 'r skip_ratio.* 0.7' "$WORK/run/second.txt"
check "the condition names its trace" grep -q 'text chapel., in round [0-9]* of sequence [12]; ' "$WORK/run/until.txt"
check "] continues to the position in the other trace" grep -q 'text chapel., in round [0-9]* of sequence [12]; ' "$WORK/run/next.txt"
check "which is a later one" sh -c "! cmp -s '$WORK/run/until.txt' '$WORK/run/next.txt'"
check "at the end the texts are compared" grep -q 'the texts are the same so far' "$WORK/run/end.txt"
check "speeds of runs at different times get no verdict" grep -q 'speeds of runs at different times are not compared' "$WORK/run/end.txt"
check "one alone has no second pane" sh -c "grep -q 'round 11/11' '$WORK/run/alone.txt' && ! grep -q '2 swift' '$WORK/run/alone.txt'"
check "a trace may be compared with itself" grep -q '1 del *del .*2 del *del' "$WORK/run/itself.txt"

# ---- live keys: playing, pausing, another trace in the second pane ----
terminal 160x48 "$PROGRAM replay $TRACES/del"
wait_for 'replay'
tm send-keys :
tm send-keys -l "versus $TRACES/turned"
tm send-keys Enter
check "other prompts are refused in one line" wait_for 'went on from different prompts, so they'
tm send-keys :
tm send-keys -l "versus layerskip"
tm send-keys Enter
check "a setting can't be run in a replay" wait_for 'a replay cannot run a second setting'
tm send-keys :
tm send-keys -l "versus $TRACES/none"
tm send-keys Enter
check "a missing trace is reported" wait_for 'No such file'
tm send-keys :
tm send-keys -l "versus off"
tm send-keys Enter
check "without a versus there is nothing to end" wait_for 'there is one trace'
tm send-keys :
tm send-keys -l "versus $TRACES/swift"
tm send-keys Enter
check "the second trace is there" wait_for '2 swift'
tm send-keys '>' '>' '>' '>' '>' '>'
check "both play to their end" wait_for 'round 32/32'
tm send-keys r
tm send-keys q
check "and it ends well" until_true test -s "$WORK/run/status"

# ---- a run with two settings, shown as two ----
terminal 160x48 "$PROGRAM run -n 40 --versus 'layerskip exit_layer=6' --trace two && $PROGRAM diff --scope --script $WORK/beside.script two"
check "the two settings of one trace" exits 0
check "are next to each other" grep -q '▸1 specbound *two .*2 layerskip *two ' "$WORK/run/screen.txt"
exit $STATUS
