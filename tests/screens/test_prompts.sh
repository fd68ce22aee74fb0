#!/bin/sh
# Several prompts: the next one starts a moment after the end of a text, unless a key is pressed or --once is given.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
LIST=$ROOT/tests/screens/prompts.jsonl

terminal 120x36 "exec $PROGRAM --pace 0 -n 12 --ignore-eos --prompts $LIST"
check "the next prompt is announced at the end of a text, with the seconds until it starts" \
    wait_for '^ next prompt in [1-5] s *F now *any other key: stay *Three mice sat on a wall,'
check "the next prompt starts by itself" wait_for '<s> Three mice sat'
check "the prompt after the next starts by itself" wait_for '<s> A baker sent'
# On a slow machine the next prompt may start before the key arrives; the key then applies to the end of that text.
stays_by() { # keys…
    shows 'next prompt in' && tm send-keys "$@"
    shows 'all tokens are generated .*F next prompt' && hides 'next prompt in'
}
check "a key keeps the text, and the key bar has the key for the next" until_true stays_by Down
text=$(tm capture-pane -p | grep -o '<s> [A-Z][a-z]* [a-z]*')
tm send-keys F
check "F starts the next prompt" until_true hides "$text"
text=$(tm capture-pane -p | grep -o '<s> [A-Z][a-z]* [a-z]*')
tm send-keys -l ':next'
tm send-keys Enter
check ":next starts the next prompt" until_true hides "$text"
check "the line of a prompt that is written keeps the text" until_true stays_by p Escape
tm send-keys p C-u
tm send-keys -l 'Three mice'
tm send-keys Enter
own_stays() {
    shows '<s> Three mice' && shows 'all tokens are generated .*F next prompt'
}
until_true own_stays >/dev/null
drawn_again
check "no prompt of the list starts by itself after a prompt of the user's own" hides 'next prompt in'
tm send-keys F
check "F continues the list after a prompt of the user's own" wait_for '^ next prompt in [1-5] s .*Everybody in the valley'
tm send-keys -l ':sweep d_max=3:5:1'
tm send-keys Enter
wait_for 'the sweep has its 3 points' >/dev/null
drawn_again
check "the message of a sweep's end stays" wait_for 'the sweep has its 3 points'

terminal 120x36 "exec $PROGRAM --pace 0 -n 12 --ignore-eos --prompts $LIST"
check "a baseline keeps the text on the screen" until_true stays_by b
check "a baseline's result is shown although it keeps the text" wait_for '^ autoregressive: [0-9]'
text=$(tm capture-pane -p | grep -o '<s> [A-Z][a-z]* [a-z]*')
tm send-keys b F
check "F does not wait for a baseline" until_true hides "$text"
check "the seconds count down on the screen" wait_for 'next prompt in [1-4] s'

terminal 120x36 "exec $PROGRAM --pace 0 -n 12 --ignore-eos -p 'Two foxes'"
wait_for 'all tokens are generated .*F next prompt' >/dev/null
drawn_again
check "no bundled prompt starts by itself after -p" hides 'next prompt in'

terminal 120x36 "exec $PROGRAM --once --pace 0 -n 12 --ignore-eos --prompts $LIST"
check "--once ends at the first text" wait_for 'all tokens are generated'
drawn_again
check "--once keeps the first text" shows '<s> Everybody in the valley'
check "--once counts no seconds" hides 'next prompt in'

printf ':wait end\n:wait idle\n:baseline\n:wait idle\n:next\n:wait end\n:wait idle\n:save-screen screen.txt\n' >"$WORK/next.script"
terminal 120x36 "exec $PROGRAM --script $WORK/next.script -n 12 --ignore-eos --prompts $LIST"
until_true test -s "$WORK/run/screen.txt" >/dev/null
check "a script continues on its own command" grep -q '<s> Three mice' "$WORK/run/screen.txt"
check "a run's baseline is not shown for the next one" sh -c "! grep -q 'autoregressive: ' '$WORK/run/screen.txt'"
drawn_again
check "a script's last prompt stays where it ended" shows '<s> Three mice'
check "no prompt is announced after a script's last one" hides 'next prompt in'

printf ':wait end\n:wait idle\n:baseline\n:next\n:wait end\n:wait idle\n:quit\n' >"$WORK/dropped.script"
terminal 120x36 "$PROGRAM --script $WORK/dropped.script --pace 0 -n 400 --ignore-eos --prompts $LIST"
check "the program does not wait for a baseline that the next prompt has dropped" exits 0

printf ':wait round 1\n:next\n:quit\n' >"$WORK/batch.script"
terminal 120x36 "$PROGRAM --script $WORK/batch.script -n 12 --batch 2 --prompts $LIST"
check "a batch takes no other prompt" exits 2
check "the refusal of a batch's other prompt gives the reason" grep -q 'a batch has its prompts already' "$WORK/run/err"
head -n 1 "$LIST" >"$WORK/single.jsonl"
printf ':wait round 1\n:next\n:quit\n' >"$WORK/single.script"
terminal 120x36 "$PROGRAM --script $WORK/single.script -n 12 --prompts $WORK/single.jsonl"
check ":next without a list of prompts is refused" exits 2
check "the refusal of :next explains --prompts" grep -q 'no other prompt; start with --prompts FILE.jsonl' "$WORK/run/err"
exit $STATUS
