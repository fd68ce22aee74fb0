#!/bin/sh
# The scope on the bundled model, live, driven by scripts and by keys in a real terminal.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

panels() { # a saved screen without what tells the time: title, time line, measures, status; knobs' "as they were", or
           # which of them are seen
    sed -e '1d' "$1" | head -n "$2" | sed -e 's/━* as they were ━*/━/; s/─* as they were ─*/─/; s/ knobs [─━]*/ knobs /; s/ knobs *[0-9]*–[0-9]* of [0-9]* [─━]*/ knobs /'
}
csv() { # file, column name, awk condition on c[...]: prints the column
    awk -F, -v want="$2" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } { gsub(/"/, "") } '"$3"' { print $c[want] }' "$1"
}

group "live and replayed panels; knobs in the trace"
cat >"$WORK/live.script" <<'END'
:what-if off
:wait round 5
:set tau 0.3
:step 3
:wait idle
:policy layerskip
:step 2
:wait idle
:set gamma 3
:step 2
:wait idle
:probe policy
:resume
:wait end
:wait idle
:panel rounds
:save-screen live.txt
:quit
END
printf ':what-if off\n:goto 99999\n:wait idle\n:panel rounds\n:save-screen replay.txt\n:quit\n' >"$WORK/replay.script"
for size in 80x24 120x36 200x60; do
    terminal $size "$PROGRAM -n 70 --trace trace --script $WORK/live.script && $PROGRAM replay --script $WORK/replay.script trace"
    check "a live run and its replay end well at $size" exits 0
    rows=$((${size#*x} - 4))
    panels "$WORK/run/live.txt" $rows >"$WORK/a"
    panels "$WORK/run/replay.txt" $rows >"$WORK/b"
    check "every panel after the live run equals that after its replay at $size" diff -u "$WORK/a" "$WORK/b"
done
check "controls.csv contains when tau was requested and applied" test "$(csv "$WORK/run/trace/controls.csv" applied_round '$c["name"] == "tau" && $c["round"] == 5 && $c["old"] == 0.55 && $c["new"] == 0.3')" = 6
check "rounds.csv has the old threshold up to that round" test "$(csv "$WORK/run/trace/rounds.csv" threshold '$c["round"] == 5')" = 0.550000012
check "rounds.csv has the new threshold from that round on" test "$(csv "$WORK/run/trace/rounds.csv" threshold '$c["round"] == 6')" = 0.300000012
check "rounds.csv contains the policy of a round" test "$(csv "$WORK/run/trace/rounds.csv" policy '$c["round"] == 9')" = layerskip
check "a knob of the new policy is applied" test "$(csv "$WORK/run/trace/rounds.csv" w_max '$c["round"] == 11')" = 3

group "a draft model's layers"
cat >"$WORK/live.script" <<'END'
:what-if off
:wait round 3
:policy sd
:step 4
:wait idle
:probe policy
:step 2
:wait idle
:probe all
:resume
:wait end
:wait idle
:panel layers
:save-screen live.txt
:quit
END
printf ':what-if off\n:goto 99999\n:wait idle\n:panel layers\n:save-screen replay.txt\n:quit\n' >"$WORK/replay.script"
for size in 80x24 160x48; do
    terminal $size "$PROGRAM -n 70 --trace trace --script $WORK/live.script && $PROGRAM replay --script $WORK/replay.script trace"
    check "a live run with a draft model and its replay end well at $size" exits 0
    rows=$((${size#*x} - 4))
    panels "$WORK/run/live.txt" $rows >"$WORK/a"
    panels "$WORK/run/replay.txt" $rows >"$WORK/b"
    check "the draft model's layers are the same live and replayed at $size" diff -u "$WORK/a" "$WORK/b"
    check "the draft model's layers are above the target's at $size" test "$(grep -n ' d3 ' "$WORK/a" | cut -d: -f1)" -lt "$(grep -n ' L16 ' "$WORK/a" | cut -d: -f1)"
done
check "layers.csv contains the layers' model" test "$(csv "$WORK/run/trace/layers.csv" model 1 | sort | uniq | tr '\n' '-')" = "-draft-"
check ":probe policy probes only the draft's last layer" test "$(csv "$WORK/run/trace/layers.csv" layer '$c["model"] == "draft" && $c["round"] == 8' | uniq)" = 3

# After the first positions only the latest ones are probed, unless time passes; the cursor is between them.
group "layers in a share of the time"
{
    printf ':what-if off\n:wait end\n:wait idle\n:panel layers\n:save-screen live.txt\n'
    i=0
    while [ $i -lt 45 ]; do
        echo ':key h'
        i=$((i + 1))
    done
    printf ':key j\n:save-screen live-gap.txt\n:quit\n'
} >"$WORK/live.script"
sed -e 's/^:wait end/:goto 99999/' -e 's/live/replay/' "$WORK/live.script" >"$WORK/replay.script"
terminal 120x36 "$PROGRAM -n 140 --policy ar --pace 0 --probe 1% --trace trace --script $WORK/live.script && $PROGRAM replay --script $WORK/replay.script trace"
check "a live run with a share and its replay end well" exits 0
for screen in '' -gap; do
    panels "$WORK/run/live$screen.txt" 32 >"$WORK/a"
    panels "$WORK/run/replay$screen.txt" 32 >"$WORK/b"
    check "layers in a share of the time are the same live and replayed${screen:+, between the probed positions}" diff -u "$WORK/a" "$WORK/b"
done

group "verdicts of drafts"
cat >"$WORK/live.script" <<'END'
:wait round 4
:policy sv
:step 6
:wait idle
:panel judge
:save-screen live.txt
:quit
END
printf ':goto 99999\n:wait idle\n:panel judge\n:save-screen replay.txt\n:quit\n' >"$WORK/replay.script"
for size in 80x24 160x48; do
    terminal $size "$PROGRAM --policy specdecpp --set h=0.4 --trace trace --script $WORK/live.script && $PROGRAM replay --script $WORK/replay.script trace"
    check "live runs of policies that judge and their replay end well at $size" exits 0
    rows=$((${size#*x} - 4))
    panels "$WORK/run/live.txt" $rows >"$WORK/a"
    panels "$WORK/run/replay.txt" $rows >"$WORK/b"
    check "how drafts were judged is the same live and replayed at $size" diff -u "$WORK/a" "$WORK/b"
    check "sv's grid has its edges and the first draft's mark" sh -c "grep -q 's.a≥\|a.s≥' '$WORK/a' && grep -q '[▸+]1' '$WORK/a'"
done
check "series.csv contains the reason why specdecpp stopped" test "$(csv "$WORK/run/trace/series.csv" value '$c["key"] == "reject" && $c["round"] == 1 && $c["index"] == 32')" = 0.400000006
check "series.csv contains sv's choices" test -n "$(csv "$WORK/run/trace/series.csv" value '$c["key"] == "goodput" && $c["index"] >= 33 && $c["value"] == 1')"

group "several sequences"
cat >"$WORK/live.script" <<'END'
:what-if off
:wait round 3
:set tau 0.3
:step 2
:wait idle
:policy sd
:step 2
:wait idle
:panel batch
:sequence 2
:save-screen one.txt
:resume
:wait end
:wait idle
:sequence 5
:save-screen four.txt
:key {
:save-screen three.txt
:sequence 8
:quit
END
sed -e '/^:set\|^:policy\|^:step\|^:resume\|^:sequence 8/d' -e 's/^:wait round 3/:goto 7/' -e 's/^:wait end/:goto 99999/' "$WORK/live.script" >"$WORK/replay.script"
for size in 80x24 160x48; do
    terminal $size "$PROGRAM --prompts $ROOT/tests/screens/prompts.jsonl --batch 3 -n 20 --trace trace --script $WORK/live.script; echo \$? >live.status; mv one.txt one.live; mv four.txt four.live; mv three.txt three.live; $PROGRAM replay --script $WORK/replay.script trace"
    check "a live batch's replay ends well at $size" exits 0
    check "a missing sequence is refused" grep -q 'no sequence 8 yet; so far there are 5' "$WORK/run/err"
    rows=$((${size#*x} - 4))
    for screen in one four three; do
        panels "$WORK/run/$screen.live" $rows >"$WORK/a"
        panels "$WORK/run/$screen.txt" $rows >"$WORK/b"
        check "sequence $screen, live and replayed, is the same at $size" diff -u "$WORK/a" "$WORK/b"
    done
    check "the title names the sequence" grep -q 'seq 5 of 5' "$WORK/run/four.live"
    check "the text panel shows the focused sequence's text" grep -q 'In the park she met a badger' "$WORK/run/four.live"
    check "the focused sequence's tile has the mark" grep -q '▸5' "$WORK/run/four.live"
    check "{ goes to the sequence before" grep -q '▸4' "$WORK/run/three.live"
done
check "rounds.csv has a line for each sequence of a round" test "$(csv "$WORK/run/trace/rounds.csv" seq '$c["round"] == 1' | tr '\n' ' ')" = "0 1 2 "
printf ':wait round 2\n:sequence 1\n:quit\n' >"$WORK/single.script"
terminal 80x24 "$PROGRAM --script $WORK/single.script"
check "a missing second sequence is refused" exits 2
check "the refusal of a second sequence explains --batch" grep -q 'one sequence; --batch runs several' "$WORK/run/err"

group "stopping exactly"
printf ':wait round 4\n:save-screen four.txt\n:step token\n:wait idle\n:save-screen token.txt\n:quit\n' >"$WORK/stop.script"
terminal 120x36 "$PROGRAM --trace trace --script $WORK/stop.script"
check "a script that steps ends well" exits 0
check ":wait round 4 stops exactly there" grep -q 'round 4$' "$WORK/run/four.txt"
check ":step token drafts one token of the next round" grep -q 'paused' "$WORK/run/token.txt"
check "the trace holds the four whole rounds" test "$(csv "$WORK/run/trace/rounds.csv" round 1 | tail -n 1)" = 4

group "keys"
terminal 160x48 "exec 2>/dev/tty; exec env PS1='shell> ' sh -i" # an interactive shell, for Ctrl-Z
wait_for 'shell>' >/dev/null
tm send-keys -l "$PROGRAM --once --pace 200; echo status=\$?"
tm send-keys Enter
check "the scope shows the first tokens" wait_for 'changed'
check "the scope reports the end of a run" wait_for 'the text has ended\|all tokens'
tm send-keys b
check "b compares with autoregressive decoding" wait_for 'lossless ✓'
tm send-keys p
tm send-keys C-u
tm send-keys -l 'Three mice sat on a wall,'
tm send-keys Enter
check "p takes a new prompt" wait_for 'Three mice sat'
tm send-keys p Up Up
check "Up brings back the prompt before" wait_for 'A baker sent'
tm send-keys Escape
wait_for 'ended.*lossless –' >/dev/null # the new run, which is not compared
tm send-keys -l ':export out'
tm send-keys Enter
check ":export writes the run" until_true test -s "$WORK/run/out/run.json"
tm send-keys '?'
check "? shows help" wait_for 'Keys everywhere'
tm send-keys Escape
tm send-keys C-z
check "Ctrl-Z gives the terminal back to the shell" wait_for '^shell>'
tm send-keys -l fg
tm send-keys Enter
check "fg brings the scope back" wait_for 'layers × tokens'
for keys in '?:┏ help' '/:^/' 'p:┏ prompt'; do
    tm send-keys "${keys%%:*}"
    wait_for "${keys#*:}" >/dev/null
    tm send-keys C-z
    check "Ctrl-Z gives the terminal back also after ${keys%%:*}" until_true hides 'layers × tokens'
    tm send-keys -l fg
    tm send-keys Enter
    check "fg brings back what ${keys%%:*} opened" wait_for "${keys#*:}"
    tm send-keys Escape
    until_true hides "${keys#*:}"
done
rounds=$(tm capture-pane -p | sed -n '1s/.*\(round [0-9]*\).*/\1/p')
tm resize-window -x 90 -y 30
check "panels become tabs in a small terminal" wait_for '\[2 layers\]\|\[5 knobs\]'
tm resize-window -x 5 -y 3
wait_for 'cope' >/dev/null
tm resize-window -x 160 -y 48
check "the panels return after a tiny terminal" wait_for "layers × tokens"
check "a resize does not change the run" wait_for "ended.* $rounds"
tm send-keys r n
wait_for 'paused' >/dev/null
tm send-keys q
check "q asks before an unsaved run is lost" wait_for 'not exported yet'
tm send-keys q
check "a second q leaves" wait_for 'status='

group "trained heads"
printf ':wait round 4\n:save-screen trained.txt\n:head lens\n:wait idle\n:save-screen lens.txt\n:step\n:wait idle\n:key H\n:wait idle\n:step\n:wait idle\n:quit\n' >"$WORK/heads.script"
terminal 160x48 "$PROGRAM -n 90 --trace trace --script $WORK/heads.script"
check "a script that switches heads ends well" exits 0
check "specbound uses the bundled model's trained heads" grep -q '· trained heads' "$WORK/run/trained.txt"
check "the scope compares how often layers agree with the last one" grep -q 'same token as L' "$WORK/run/trained.txt"
check ":head lens switches between rounds" grep -q '· lens' "$WORK/run/lens.txt"
check "controls.csv has the switch of the head, and the switch back by H" test "$(csv "$WORK/run/trace/controls.csv" new '$c["name"] == "head"' | tr '\n' ' ')" = "trained lens trained "
check "tokens.csv has the head of each draft" test "$(csv "$WORK/run/trace/tokens.csv" head '$c["source"] == "draft"' | uniq | tr '\n' ' ')" = "1 0 1 "
printf ':goto 99999\n:wait idle\n:save-screen a.txt\n:key H\n:wait idle\n:save-screen b.txt\n:quit\n' >"$WORK/replay.script"
cp -r "$WORK/run/trace" "$WORK/switched"
terminal 160x48 "$PROGRAM replay --script $WORK/replay.script $WORK/switched"
check "a replay shows either head" exits 0
check "a replay shows the head in use" grep -q '· trained heads' "$WORK/run/a.txt"
check "H shows the other head in a replay" grep -q '· lens' "$WORK/run/b.txt"
printf ':wait round 2\n:head trained\n:quit\n' >"$WORK/none.script"
terminal 120x36 "$PROGRAM --heads none --script $WORK/none.script"
check ":head trained without trained heads is refused" exits 2
check "the refusal of :head trained names 'specscope train heads'" grep -q 'specscope train heads' "$WORK/run/err"

group "signals"
is_dead() { [ "$(tm list-panes -F '#{pane_dead}')" = 1 ]; }
for signal in INT TERM HUP; do
    terminal 120x36 "exec $PROGRAM --pace 20 --trace trace"
    wait_for 'layers × tokens' >/dev/null
    until_true sh -c "wc -l < $WORK/run/trace/rounds.csv | grep -qv '^[01]$'" >/dev/null
    kill -$signal "$(tm list-panes -F '#{pane_pid}')"
    until_true is_dead >/dev/null
    printf ':goto 1\n:wait idle\n:save-screen screen.txt\n:quit\n' >"$WORK/one.script"
    cp -r "$WORK/run/trace" "$WORK/trace-$signal"
    terminal 120x36 "$PROGRAM replay --script $WORK/one.script $WORK/trace-$signal"
    check "the trace replays after SIG$signal" exits 0
done

group "temporary folders of killed runs"
folders() { ls "$WORK" | grep -c '^specscope-run-' | grep -qx "$1"; }
terminal 120x36 "exec $PROGRAM --once --pace 1"
wait_for 'running' >/dev/null
SOCKET2=$SOCKET SOCKET=$WORK/second
tm new-session -d -x 120 -y 36 "$PROGRAM --once --pace 1"
wait_for 'running' >/dev/null
check "a run that begins leaves the temporary folder of another that lives" folders 2
kill -KILL "$(tm display-message -p '#{pane_pid}')"
until_true sh -c "! tmux -S '$SOCKET' has-session" >/dev/null
check "a killed run leaves its temporary folder" folders 2
SOCKET=$WORK/third
tm new-session -d -x 120 -y 36 "$PROGRAM --once --pace 1"
wait_for 'running' >/dev/null
check "the next start deletes the temporary folder of a killed run alone" folders 2
tm send-keys q q
until_true sh -c "! tmux -S '$SOCKET' has-session" >/dev/null
check "a run that ends deletes its temporary folder" folders 1
SOCKET=$SOCKET2

group "a vocabulary with control sequences"
"$ROOT/$BUILD/tests/tinymodel" "$WORK/nasty.gguf" --nasty --seed 3 --layers 2 >/dev/null
printf ':wait end\n:wait idle\n:panel layers\n:key Left Left Enter\n:save-screen screen.txt\n:quit\n' >"$WORK/nasty.script"
terminal 120x36 "script -q -c '$PROGRAM --temp 2 -n 200 --ignore-eos -p hello --script $WORK/nasty.script $WORK/nasty.gguf' raw"
check "a model with escape sequences in its vocabulary runs" exits 0
check "no control character of the vocabulary is on the screen" sh -c "! LC_ALL=C grep -q '[[:cntrl:]]' '$WORK/run/screen.txt'"
check "no control sequence of the vocabulary reaches the terminal" sh -c "! LC_ALL=C grep -aqE '$(printf '\033')\]|$(printf '\007')|$(printf '\302\233')' '$WORK/run/raw'"
check "control characters are shown as escapes" grep -q 'x1B\|\\x' "$WORK/run/screen.txt"

group "terminals without colours or UTF-8"
printf ':wait round 3\n:save-screen screen.txt\n:quit\n' >"$WORK/three.script"
terminal 120x36 "env TERM=vt100 $PROGRAM --script $WORK/three.script"
check "a vt100 shows the scope" exits 0
terminal 120x36 "env NO_COLOR=1 $PROGRAM --script $WORK/three.script"
check "a terminal without colours shows the scope" exits 0
terminal 120x36 "env TERM=nonsense $PROGRAM --script $WORK/three.script"
check "an unknown type of a terminal that answers is used as an xterm" exits 0
terminal 120x36 "env TERM=dumb $PROGRAM --script $WORK/three.script"
check "a terminal that cannot place the cursor is refused in one line" refused
printf '{"broken": ' >"$WORK/bad.json"
terminal 120x36 "$PROGRAM --theme $WORK/bad.json --script $WORK/three.script"
check "a broken theme does not stop the scope" exits 0
printf ':wait round 2\n:set tau seven\n:quit\n' >"$WORK/wrong.script"
terminal 120x36 "$PROGRAM --script $WORK/wrong.script"
check "a wrong line in a script ends with status 2" exits 2
check "a wrong line in a script is named with file and line" grep -q 'wrong.script:2: ' "$WORK/run/err"
exit $STATUS
