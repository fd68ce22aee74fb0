#!/bin/sh
# What-if on the bundled model: strips on the sliders, a grid of two knobs, both values taken.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

controls() { # knob, new value: was it turned so?
    awk -F, -v name="\"$1\"" -v new="\"$2\"" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        { gsub(/"/, "", name); gsub(/"/, "", new); gsub(/"/, "") } $c["name"] == name && $c["new"] == new { found = 1 }
        END { exit !found }' "$WORK/run/trace/controls.csv"
}

group "strips"
terminal 160x48 "$PROGRAM --pace 0 --once --ignore-eos -n 160 --set alpha=0.9"
check "the height of a slider's track is its forecast at the end of a run" wait_for 'tau *├[^┤]*[▁▂▃▄▅▆▇█]'
tm send-keys : ; tm send-keys -l 'what-if off'; tm send-keys Enter
check ":what-if off leaves plain sliders" until_true shows 'tau *├─*'
tm send-keys : ; tm send-keys -l 'what-if on'; tm send-keys Enter
check ":what-if on brings the strips back" wait_for 'tau *├[^┤]*[▁▂▃▄▅▆▇█]'
tm send-keys : ; tm send-keys -l 'what-if half'; tm send-keys Enter
check "another word after :what-if is refused" wait_for 'what-if takes on, off'
tm send-keys : ; tm send-keys -l 'what-if tau nothing'; tm send-keys Enter
check "an unknown knob is reported" wait_for 'no knob "nothing"'
tm send-keys : ; tm send-keys -l 'what-if tau tau'; tm send-keys Enter
check "a grid of one knob is refused" wait_for 'two different knobs'
tm send-keys : ; tm send-keys -l 'policy swift'; tm send-keys Enter
check "a policy without a forecast has plain sliders" wait_for 'ratio.*├─*'
tm send-keys : ; tm send-keys -l 'policy dv'; tm send-keys Enter
check "a change to another policy with forecasts shows strips at once" wait_for 'exit_layer *├.*[▂▃▄▅▆▇█]'
tm send-keys q q
check "the scope ends well" until_true test -s "$WORK/run/status"

never() { # line of a script: the scope ends, and says why there is no forecast
    printf ':wait round 2\n%s\n:wait idle\n:wait what-if\n' "$1" >"$WORK/never.script"
    terminal 120x36 "$PROGRAM --script $WORK/never.script"
    exits 1
}
check "a script does not wait for what-if that is off" never ':what-if off'
check "the message reports that what-if is off" grep -q 'never.script:4: what-if never came: it is off' "$WORK/run/err"
check "a script does not wait for a policy without a forecast" never ':policy swift'
check "the message names the policy without a forecast" grep -q 'what-if never came: what-if does not support swift' "$WORK/run/err"

group "the grid, in a small terminal too"
for size in 80x24 120x36 160x48; do
    terminal $size "$PROGRAM --pace 0 --once --ignore-eos -n 160 --set alpha=0.9 --trace trace"
    tm send-keys 5
    check "the sliders show forecasts at $size" wait_for '├[^┤]*[▁▂▃▄▅▆▇█][^┤]*┤'
    tm send-keys Down w
    check "w opens a grid at $size" wait_for 'what if, [0-9]* tokens'
    check "the forecast at the cursor is shown below the grid at $size" wait_for 'now [0-9.]*×'
    check "the grid's cursor begins on the current values at $size" wait_for 'τ 0.5[0-9]*  d_max 5 '
    [ $size != 160x48 ] || check "the key line shows the keys of the grid" shows '←↑↓→ point'
    check "the grid names the knob across at $size" shows 'τ →'
    tm send-keys Up Up Up
    check "arrows move the grid's cursor at $size" wait_for 'd_max 8 '
    tm send-keys Enter
    check "Enter takes the values and closes the grid at $size" until_true hides 'what if, '
    check "Enter in the grid changes the knob at $size" wait_for 'd_max .* 8 '
    tm send-keys w
    check "w opens the grid again at $size" wait_for 'd_max 8 '
    tm send-keys Escape
    check "Esc closes the grid at $size" until_true hides 'what if, '
    tm send-keys q
    check "the scope ends well at $size" until_true test -s "$WORK/run/status"
    check "the trace has the grid's change at $size" controls d_max 8
done

group "two settings: strips show the focused one"
terminal 160x48 "$PROGRAM --pace 0 --ignore-eos -n 120 --policy swift --versus 'layerskip exit_layer=6' --once"
check "the first of two settings has no forecast" wait_for 'ratio.*├─*'
wait_for '■ ended' >/dev/null # whose message would replace that of w
tm send-keys w
check ":what-if names a policy without a forecast" wait_for 'what-if does not support swift'
check "the second of two settings runs" wait_for '±.*tok/s.*│.*±.*tok/s'
tm send-keys '}'
check "the second of two settings, in focus, has strips" wait_for 'exit_layer *├.*[▂▃▄▅▆▇█]'
tm send-keys q q
check "the scope ends well, with two settings" until_true test -s "$WORK/run/status"

group "replays: forecasts from the trace's layers, or the reason why there are none"
terminal 160x48 "$PROGRAM replay $ROOT/tests/screens/traces/specbound"
check "a replay forecasts from its trace" wait_for 'alpha .*[▂▃▄▅▆▇█].*├*'
tm send-keys w
check "w opens a grid in a replay" wait_for 'now [0-9.]*×'
tm send-keys Up Enter
check "a grid's values cannot be taken in a replay" wait_for 'a replay cannot change a knob'
tm send-keys Escape q
check "the replay ends well" until_true test -s "$WORK/run/status"
terminal 160x48 "$PROGRAM replay $ROOT/tests/screens/traces/turned"
check "a trace without all layers has plain sliders" wait_for 'tau .*├─*'
check "the help of a knob gives the reason why there is no forecast" wait_for 'what-if needs a'
tm send-keys w
check "w gives the reason why there is no forecast" wait_for 'no forecast: what-if needs all layers'
tm send-keys q
exit $STATUS
