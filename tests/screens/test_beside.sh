#!/bin/sh
# Two traces beside each other, by specscope diff --scope: the panes of both, stepping, jumping, searching. UPDATE=1
# writes the expected screens.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
TRACES=$ROOT/tests/screens/traces

group "diff --scope, byte for byte"
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

group "stepping, jumping, searching"
cat >"$WORK/steps.script" <<'END'
:wait round 8
:panel versus
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
:quit
END
terminal 160x48 "$PROGRAM diff --scope --script $WORK/steps.script $TRACES/del $TRACES/swift"
check "two traces are replayed in step" exits 0
check ":goto moves both replayed traces" grep -q 'round 8$' "$WORK/run/at8.txt"
check "a step of two traces is a round of one of them" grep -q 'round 9$' "$WORK/run/at9.txt"
check "a step back and a step forth show the same screen" cmp "$WORK/run/at8.txt" "$WORK/run/again8.txt"
check "the knobs of the second trace are its own" grep -q 'r skip_ratio.* 0.7' "$WORK/run/second.txt"
check "/ in two traces names the sequence of a match" grep -q 'text chapel., in round [0-9]* of sequence [12]; ' "$WORK/run/until.txt"
check "] goes to the match in the other trace" grep -q 'text chapel., in round [0-9]* of sequence [12]; ' "$WORK/run/next.txt"
check "] goes to a match in another round" sh -c "! cmp -s '$WORK/run/until.txt' '$WORK/run/next.txt'"
check "the texts of two traces are compared at their end" grep -q 'the texts are the same so far' "$WORK/run/end.txt"
check "the title of two traces gives their speeds no verdict" grep -q 'speeds of runs at different times are not compared' "$WORK/run/end.txt"

group "live keys: both play to their end"
terminal 160x48 "$PROGRAM diff --scope $TRACES/del $TRACES/swift"
wait_for '2 swift'
tm send-keys :
tm send-keys -l "versus layerskip"
tm send-keys Enter
check "a setting cannot be run in a replay" wait_for 'a replay cannot run a second setting'
tm send-keys '>' '>' '>' '>' '>' '>'
check "both replayed traces play to their end" wait_for 'round 32/32'
tm send-keys r
tm send-keys q
check "a replay that cannot run a setting ends well" until_true test -s "$WORK/run/status"

group "one run with two settings, as two"
terminal 160x48 "$PROGRAM run -n 40 --versus 'layerskip exit_layer=6' --trace two && $PROGRAM diff --scope --script $WORK/beside.script two"
check "a trace of two settings replays" exits 0
check "the two settings of one trace are shown side by side" grep -q '▸1 specbound *two .*2 layerskip *two ' "$WORK/run/screen.txt"
exit $STATUS
