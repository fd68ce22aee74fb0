#!/bin/sh
# The scope on a server: llama-server with the bundled models, whose answers tests/servers/record.sh has recorded.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
if [ -n "${SPECSCOPE_SERVER:-}" ]; then # to record
    URL=$SPECSCOPE_SERVER
else
    python3 "$ROOT/tests/servers/recorded.py" replay "$ROOT/tests/servers/llama_screen.jsonl" >"$WORK/port" 2>"$WORK/unknown" &
    SERVER=$!
    trap 'kill $SERVER; tmux -S "$SOCKET" kill-server 2>/dev/null; rm -rf "$WORK"' EXIT
    until_true test -s "$WORK/port"
    URL=http://127.0.0.1:$(cat "$WORK/port")
fi
MICE="Three mice sat on a wall,"

group "a run"
terminal 120x36 "$PROGRAM connect $URL -n 40 -p '$MICE' --theme mono"
check "the text of a server ends" wait_for "■ ended"
check "the title names the server and its model" shows "llama-server .* · fables.* · ${URL#http://}"
check "the text is on the screen" shows "Three mice sat on a wall, and"
check "rounds have their drafts" shows "■■■■■+ 5/5"
check "rejected drafts, whose tokens are unknown, are drawn" shows "■■■□□◆ 3/5"
check "the layers of a server give their room away" hides "layers × tokens"
check "work that a server does not tell is not shown" sh -c "! tmux -S '$SOCKET' capture-pane -p | grep -E 'modelled|eTPL|verify|nan'"
tm send-keys b
check "a baseline is refused with a reason" wait_for "this is not possible here: llama-server"
tm send-keys Escape
tm send-keys .
check "a step of a token is refused with a reason" wait_for "this is not possible here: llama-server"
tm send-keys ':' 'policy ar' Enter
check "another policy is refused with a reason" wait_for "llama-server changes its speculation only at a start"
tm send-keys ':' tune Enter
check "a race is refused with a reason" wait_for "no list of prompts to race over"
tm send-keys ':' 'open bundled' Enter
check "another model is refused with a reason" wait_for "a server has one model"
tm send-keys p C-u 'A fox' Enter
check "p writes another prompt" wait_for "<s> A fox"
check "the next prompt is generated" wait_for "■ ended"
tm send-keys q q
check "q leaves" exits 0

group "panels"
terminal 160x48 "$PROGRAM connect $URL -n 40 -p '$MICE'"
check "the counters of a server are compared with the run's" wait_for "rounds with drafts since its start"
check "acceptance by position is shown" wait_for "draft positions"
check "panels without data are not active" sh -c "! tmux -S '$SOCKET' capture-pane -p | grep -E ' (reliability|whole run|exit layers|mask) '"
tm send-keys q q
terminal 80x24 "$PROGRAM connect $URL -n 40 -p '$MICE'"
check "a server fits 80×24" wait_for "■ ended"
check "80×24 has the text and the rounds" shows "\[2 rounds\]"
tm send-keys q q
terminal 40x10 "$PROGRAM connect $URL -n 40 -p '$MICE'"
check "a server fits 40×10" wait_for "■ ended"
tm send-keys q q

# A script begins paused after the prompt. It waits for that, so that the requests are always the same.
group "steps, and the trace"
cat >"$WORK/steps" <<'END'
:wait idle
:step 2
:wait idle
:save-screen two.txt
:resume
:wait end
:wait idle
:save-screen end.txt
:quit
END
terminal 120x36 "$PROGRAM connect $URL -n 40 -p '$MICE' --trace trace --script $WORK/steps"
check "a script steps by rounds on a server" exits 0
mv "$WORK/run" "$WORK/live"
check "two rounds were stepped" grep -q "‖ paused.*round 2" "$WORK/live/two.txt"
check "the run continues to its end" grep -q "■ ended" "$WORK/live/end.txt"
printf ':wait end\n:panel knobs\n:save-screen end.txt\n:quit\n' >"$WORK/again"
terminal 120x36 "$PROGRAM replay $WORK/live/trace --script $WORK/again"
check "the trace of a server replays" exits 0
part() { sed -n '2,20p;22,29p' "$1" | cut -c1-85; } # text, rounds, series
part "$WORK/live/end.txt" >"$WORK/part.live"
part "$WORK/run/end.txt" >"$WORK/part.replay"
check "the replay has the same screen" diff "$WORK/part.live" "$WORK/part.replay"

group "a conversation"
cat >"$WORK/talk" <<'END'
:wait idle
:wait end
:prompt And then?
:wait end
:save-screen two.txt
:system Be kind.
:new Hello
:wait end
:save-screen new.txt
:quit
END
terminal 120x36 "$PROGRAM connect $URL --chat --system 'Be brief.' -n 12 -p 'Who are you?' --trace talk --script $WORK/talk"
check "a script holds a conversation with a server" exits 0
check "the second turn has the first before it" sh -c "grep -A9 'you › Who are you?' '$WORK/run/two.txt' | grep -q 'you › And then?'"
check "the system message is shown" grep -q "system › Be brief." "$WORK/run/two.txt"
check "the events have the turns before a prompt" grep -q '""role"":""assistant""' "$WORK/run/talk/controls.csv"
check ":new begins another conversation" sh -c "grep -q 'you › Hello' '$WORK/run/new.txt' && ! grep -q 'Who are you' '$WORK/run/new.txt'"
check ":system replaces the system message" grep -q "system › Be kind." "$WORK/run/new.txt"

group "what is refused"
terminal 80x24 "$PROGRAM connect http://127.0.0.1:1"
check "a server that is not there is one line" sh -c "until [ -s '$WORK/run/status' ]; do sleep 0.1; done; [ \$(cat '$WORK/run/status') = 1 ] && [ \$(wc -l <'$WORK/run/err') = 1 ]"
terminal 80x24 "$PROGRAM connect"
check "a URL is needed" refused
terminal 80x24 "$PROGRAM connect $URL --key-env SPECSCOPE_NO_SUCH_KEY"
check "a key that is not there is refused" refused
[ -n "${SPECSCOPE_SERVER:-}" ] || check "all requests were recorded: $(head -n 1 "$WORK/unknown")" test ! -s "$WORK/unknown"
echo "1..$N"
exit $STATUS
