#!/bin/sh
# One prompt after another: the next one starts a moment after the end of a text, unless a key is pressed or --once is given.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
LIST=$ROOT/tests/screens/prompts.jsonl

terminal 120x36 "exec $PROGRAM --pace 0 -n 12 --ignore-eos --prompts $LIST"
check "at the end of a text the next prompt is told, with the seconds until it starts" \
    wait_for '^ next prompt in [1-5] s *F now *any other key: stay *Three mice sat on a wall,'
check "and starts by itself" wait_for '<s> Three mice sat'
check "and the one after it" wait_for '<s> A baker sent'
until_true 15 shows 'next prompt in' >/dev/null
tm send-keys Down
check "a key keeps the text" sh -c "sleep 6; tmux -S $SOCKET capture-pane -p | grep -q '<s> A baker sent'"
check "whose end the key bar tells, with the key for the next" shows 'all tokens that were asked for .*F next prompt'
tm send-keys F
check "F goes on" wait_for '<s> The miller had'
tm send-keys -l ':next'
tm send-keys Enter
check "so does :next, at once" until_true 4 shows '<s> In the park'
until_true 15 shows 'next prompt in' >/dev/null
tm send-keys p
check "a prompt that is written stops the clock" sh -c "sleep 6; tmux -S $SOCKET capture-pane -p | grep -q '<s> In the park'"
tm send-keys C-u
tm send-keys -l 'Three mice'
tm send-keys Enter
check "and the list goes on behind one's own" wait_for '^ next prompt in [1-5] s .*Everybody in the valley'
tm send-keys -l ':sweep d_max=3:5:1'
tm send-keys Enter
check "a sweep's end stays" sh -c "sleep 8; tmux -S $SOCKET capture-pane -p | grep -q 'the sweep has its 3 points'"

terminal 120x36 "exec $PROGRAM --pace 0 -n 12 --ignore-eos --prompts $LIST"
until_true 15 shows 'next prompt in' >/dev/null
tm send-keys b
check "after b, at the end of a text, the next prompt begins by itself" wait_for '<s> Three mice sat'
until_true 15 shows 'next prompt in' >/dev/null
tm send-keys Down
until_true 5 shows 'F next prompt' >/dev/null
tm send-keys b
check "what b measured is said" wait_for '^ autoregressive: [0-9]'
check "and a text that a key keeps stays" sh -c "sleep 6; tmux -S $SOCKET capture-pane -p | grep -q '^ autoregressive: [0-9]'"
tm send-keys b
until_true 15 shows '^ autoregressive: [0-9]' >/dev/null
tm send-keys -l ':next'
tm send-keys Enter
until_true 15 shows '<s> A baker sent' >/dev/null
check "what was measured of a run is not said of the next one" sh -c "! tmux -S $SOCKET capture-pane -p | grep -q 'autoregressive: '"
check "the seconds count down on the screen" wait_for 'next prompt in 2 s'

terminal 120x36 "exec $PROGRAM --once --pace 0 -n 12 --ignore-eos --prompts $LIST"
check "with --once" wait_for 'all tokens that were asked for'
check "the first text stays" sh -c "sleep 6; tmux -S $SOCKET capture-pane -p | grep -q '<s> Everybody in the valley'"
check "and nothing is counted" sh -c "! tmux -S $SOCKET capture-pane -p | grep -q 'next prompt in'"

printf ':wait end\n:wait idle\n:next\n:wait end\n:wait idle\n:save-screen screen.txt\n' >"$WORK/next.script"
terminal 120x36 "exec $PROGRAM --script $WORK/next.script -n 12 --ignore-eos --prompts $LIST"
until_true 20 test -s "$WORK/run/screen.txt" >/dev/null
check "a script goes on when it says so" grep -q '<s> Three mice' "$WORK/run/screen.txt"
check "and stays where it ended" sh -c "sleep 6; tmux -S $SOCKET capture-pane -p | grep -q '<s> Three mice'"

printf ':wait round 1\n:next\n:quit\n' >"$WORK/batch.script"
terminal 120x36 "$PROGRAM --script $WORK/batch.script -n 12 --batch 2 --prompts $LIST"
check "a batch has its own" exits 2
check "and says so" grep -q 'a batch has its prompts already' "$WORK/run/err"
head -n 1 "$LIST" >"$WORK/single.jsonl"
printf ':wait round 1\n:next\n:quit\n' >"$WORK/single.script"
terminal 120x36 "$PROGRAM --script $WORK/single.script -n 12 --prompts $WORK/single.jsonl"
check "where there is no other prompt" exits 2
check "a line says how to have some" grep -q 'no other prompt; start with --prompts FILE.jsonl' "$WORK/run/err"
exit $STATUS
