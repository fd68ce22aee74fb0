#!/bin/sh
# A conversation: with --chat, the template gets all turns, which the trace contains and a replay shows.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
CHAT=$WORK/chat.gguf
"$ROOT/$BUILD/tests/tinymodel" "$CHAT" --chat-template "{% for m in messages %}<|im_start|>{{ m.role }}
{{ m['content'] | trim }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}" >/dev/null

# Prints the run's prompt as text.
prompt_of() { # trace, run
    awk -F, -v run="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["run"] == run && $at["source"] == "\"prompt\"" || $at["run"] == run && $at["source"] == "prompt" { print $at["token_id"] }' \
        "$1/tokens.csv" | "$PROGRAM" tokenize --decode "$CHAT"
}
# Checks that a run's prompt contains this text.
began_with() { # trace, run, text
    prompt_of "$1" "$2" >"$WORK/prompt"
    grep -qF -- "$3" "$WORK/prompt" || { cat "$WORK/prompt"; return 1; }
}
lacks() { # likewise
    prompt_of "$1" "$2" >"$WORK/prompt"
    grep -q 'assistant' "$WORK/prompt" && ! grep -qF -- "$3" "$WORK/prompt"
}

cat >"$WORK/talk.script" <<'END'
:wait end
:prompt second
:wait end
:policy ar
:wait idle
:baseline
:wait idle
:system Be kind.
:prompt third
:wait end
:restart
:wait end
:next
:wait end
:prompt fifth
:wait end
:new sixth
:wait end
:prompt seventh
:wait end
:prompt eighth
:wait end
:quit
END
terminal 120x36 "$PROGRAM --chat --script $WORK/talk.script --trace talk -n 8 --ignore-eos -p first $CHAT"
check "a script holds a conversation" exits 0
mv "$WORK/run/talk" "$WORK/talk"
TALK=$WORK/talk
check "the first turn of a conversation has no turns before it" lacks "$TALK" 1 second
check "the second turn of a conversation has the first before it" began_with "$TALK" 2 'first'
check "the second turn has the answer to the first" sh -c "grep -q '\"\"role\"\":\"\"assistant\"\"' '$TALK/controls.csv'"
check "a turn after a change of policy, a baseline and :system has all turns" began_with "$TALK" 3 'second'
check ":system replaces the system message" began_with "$TALK" 3 'Be kind.'
check "a restart repeats the turn with the turns before it" began_with "$TALK" 4 'second'
check "a prompt of the list begins a conversation" lacks "$TALK" 5 third
check "a prompt of one's own after a prompt of the list begins a conversation" lacks "$TALK" 6 third
check ":new begins a conversation" lacks "$TALK" 7 fifth
check "a turn after :new has the turns since then" began_with "$TALK" 8 sixth
check "a turn after :new has no turns from before" lacks "$TALK" 9 fifth

cat >"$WORK/sweep.script" <<'END'
:wait end
:prompt second
:wait end
:sweep d_max=2:3:1 prompts
:wait idle
:quit
END
terminal 120x36 "$PROGRAM --chat --policy specbound --script $WORK/sweep.script --trace swept -n 4 --ignore-eos -p first $CHAT"
check "a sweep of prompts interrupts a conversation" exits 0
LAST=$(awk -F, 'NR > 1 { run = $3 } END { print run }' "$WORK/run/swept/controls.csv")
check "the prompts of a sweep are no turns" lacks "$WORK/run/swept" 3 second
check "the conversation continues after a sweep" began_with "$WORK/run/swept" "$LAST" first
check "the prompt is restored after a sweep" began_with "$WORK/run/swept" "$LAST" second

printf ':wait end\n:prompt second\n:wait end\n:copy-command\n:quit\n' >"$WORK/copy.script"
terminal 120x36 "$PROGRAM --chat --system Hush --script $WORK/copy.script --trace copied -n 4 --ignore-eos -p first $CHAT"
check "a turn is copied as a command line" exits 0
(cd "$WORK/run" && eval "$(sed "s,^[^ ]* run,$PROGRAM run --trace again," "$WORK/home/specscope/command")" >/dev/null 2>err)
prompt_of "$WORK/run/copied" 2 >"$WORK/copied"
prompt_of "$WORK/run/again" 1 >"$WORK/again"
check "the command line of a turn has the turns before it" \
    sh -c "grep -q second '$WORK/again' && cmp '$WORK/copied' '$WORK/again'"

printf ':wait end\n:panel text\n:zoom\n:save-screen turns.txt\n:quit\n' >"$WORK/replay.script"
terminal 120x36 "$PROGRAM replay --script $WORK/replay.script $TALK"
check "a conversation replays" exits 0
check "a replay shows the user's turns" grep -q 'you › seventh' "$WORK/run/turns.txt"
check "a replay shows the model's turns" grep -q 'model › ' "$WORK/run/turns.txt"
check "a replay has no turns from before :new" sh -c "! grep -q 'you › fifth' '$WORK/run/turns.txt'"

terminal 120x36 "exec $PROGRAM --chat -c 96 -n 20 --ignore-eos -p first $CHAT"
wait_for 'model › ' >/dev/null
full() {
    tm send-keys p
    tm send-keys -l 'and then one more turn of this conversation?'
    tm send-keys Enter
    shows ':new begins another one'
}
check "a turn that has no room is refused, with a way out" until_true full
tm send-keys -l ':new'
tm send-keys Enter
check "the box of a prompt shows whether the prompt is a turn" wait_for '┏ prompt'
tm send-keys -l 'again'
tm send-keys Enter
check ":new opens the box of a new conversation" wait_for 'you › again'
tm send-keys p
check "the box of the next turn is called that" wait_for '┏ next turn of the conversation'

printf ':system x\n' >"$WORK/raw.script"
terminal 120x36 "$PROGRAM --script $WORK/raw.script -n 4 -p first"
check ":system without --chat is refused" exits 2
exit $STATUS
