#!/bin/sh
# Two settings side by side on the bundled model, live and replayed: the panes, knobs of one of them, returning to one.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

csv() { # file, awk condition on c[...]: how many lines it holds for
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } { gsub(/"/, "") } '"$2"' { n++ } END { print n + 0 }' "$1"
}

cat >"$WORK/live.script" <<'END'
:what-if off
:wait round 3
:versus layerskip exit_layer=6
:wait round 6
:sequence 2
:set gamma 3
:wait round 12
:sequence 1
:set tau 0.3
:wait round 16
:undo
:resume
:wait end
:wait idle
:panel versus
:save-screen two.txt
:panel ledger
:save-screen ledger.txt
:sequence 2
:panel knobs
:save-screen knobs.txt
:versus off
:wait end
:wait idle
:save-screen one.txt
:quit
END
cat >"$WORK/replay.script" <<'END'
:wait end
:goto 13
:wait idle
:panel versus
:save-screen replay13.txt
:sequence 2
:panel knobs
:save-screen knobs13.txt
:versus layerskip
:quit
END
for size in 80x24 160x48; do
    terminal $size "$PROGRAM -n 70 --trace trace --script $WORK/live.script"
    check "two settings are shown at $size" exits 0
    check "both settings of :versus are shown above their texts at $size" grep -q '▸1 specbound .*2 layerskip  E 6' "$WORK/run/two.txt"
    check ":versus shows both measures with their uncertainty at $size" grep -q '±.*tok/s.*│.*±.*tok/s' "$WORK/run/two.txt"
    check ":versus shows an interval of the difference, or that it is not clear, at $size" grep -q 'is [0-9]*% faster ([0-9]* to [0-9]*%)\|no clear difference\|is not known yet' "$WORK/run/two.txt"
    check ":versus shows that the texts are the same at $size" grep -q 'the texts are the same so far' "$WORK/run/two.txt"
    check "the ledger has a row for each of two settings at $size" grep -q '2: γ ' "$WORK/run/ledger.txt"
    check ":versus shows the knobs of the setting in focus at $size" grep -q 'γ gamma.* 3 ' "$WORK/run/knobs.txt"
    check ":versus off ends the comparison at $size" sh -c "! grep -q 'two settings\|1 layerskip' '$WORK/run/one.txt'"
done
controls=$WORK/run/trace/controls.csv
check "the trace contains the second setting" test "$(csv "$controls" '$c["name"] == "versus" && $c["new"] == "layerskip exit_layer=6" && $c["run"] == 2')" = 1
check "a knob change names the sequence that it applies to" test "$(csv "$controls" '$c["name"] == "gamma" && $c["seq"] == 1 && $c["new"] == 3')" = 1
check "undo takes back a change of the other setting" test "$(csv "$controls" '$c["name"] == "tau" && $c["seq"] == 0')" = 2
rounds=$WORK/run/trace/rounds.csv
check "the first setting of :versus drafts by its policy" test "$(csv "$rounds" '$c["run"] == 2 && $c["seq"] == 0 && $c["policy"] != "specbound"')" = 0
check "the second setting of :versus drafts by its policy" test "$(csv "$rounds" '$c["run"] == 2 && $c["seq"] == 1 && $c["policy"] != "layerskip"')" = 0
check "a run after :versus off has one setting" test "$(csv "$rounds" '$c["run"] == 3 && $c["seq"] == 1')" = 0

group "a replay has the same two panes"
terminal 160x48 "$PROGRAM run -n 50 --versus 'layerskip exit_layer=6' --trace two && $PROGRAM replay --script $WORK/replay.script two"
check "a replay of two settings ends well" exits 2
check "a replay of two settings shows both" grep -q '▸1 specbound .*2 layerskip  E 6' "$WORK/run/replay13.txt"
check "a replay of two settings shows the second setting's knobs" grep -q 'E exit_layer.* 6 ' "$WORK/run/knobs13.txt"

group "knob changes survive a restart, and prompts continue"
cat >"$WORK/again.script" <<'END'
:what-if off
:wait round 2
:set tau 0.4
:wait idle
:step
:wait idle
:versus layerskip exit_layer=6
:wait round 4
:sequence 2
:set gamma 3
:wait round 8
:restart
:wait round 4
:undo
:wait round 6
:undo
:wait round 8
:save-screen undone.txt
:versus fsm
:wait round 2
:undo
:quit
END
terminal 160x48 "$PROGRAM -n 70 --trace again --script $WORK/again.script"
ended
check "another second setting removes the changes of the earlier one, and u takes back those of the first" sh -c "grep -q 'no change of a knob' '$WORK/run/err' && grep -q '^2$' '$WORK/run/status'"
controls=$WORK/run/again/controls.csv
check "u takes back a change from before the restart" test "$(csv "$controls" '$c["name"] == "gamma" && $c["seq"] == 1 && $c["run"] == 3 && $c["old"] == 3 && $c["new"] == 5')" = 1
check "u takes back a change of before there were two settings" test "$(csv "$controls" '$c["name"] == "tau" && $c["seq"] == 0 && $c["run"] == 3 && $c["new"] == 0.55')" = 1
terminal 160x48 "exec $PROGRAM --versus 'layerskip exit_layer=6' --pace 0 -n 12 --ignore-eos --prompts $ROOT/tests/screens/prompts.jsonl"
until_true shows 'next prompt in' >/dev/null
tm send-keys Down
check "the key bar announces the next prompt at the end of both texts" wait_for 'all tokens are generated .*F next prompt'
tm send-keys F
check "F begins the next prompt under two settings" wait_for '<s> Three mice sat'
check "the next prompt runs under both settings" wait_for '1 specbound .*2 layerskip  E 6'
check "the next prompt is announced after the end of both texts" until_true shows 'next prompt in'

group "texts that differ"
printf ':what-if off\n:versus layerskip\n:wait end\n:wait idle\n:panel versus\n:save-screen parted.txt\n:versus nothing\n' >"$WORK/live.script"
terminal 120x36 "$PROGRAM -n 60 --temp 1 --script $WORK/live.script"
check "impossible settings of :versus are refused" exits 2
check ":versus shows both tokens at the first difference" grep -q 'the texts part at position [0-9]*: ".*" against "' "$WORK/run/parted.txt"
exit $STATUS
