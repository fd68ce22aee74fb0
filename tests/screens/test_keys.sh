#!/bin/sh
# Keys and lines on the bundled model: resuming after an end, prompts after a pause, searches, completions, surplus
# arguments, how full the context is, titles after a resize.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

line() { # the screen's last line that is not empty
    tm capture-pane -p | grep -v '^ *$' | tail -n 1
}
says() { line | grep -q -- "$1"; }
type_line() {
    tm send-keys -l "$1"
    tm send-keys Enter
}

ESC=$(printf '\033')
click() { # column and row, from 1: a press and a release of the left button
    tm send-keys -l "${ESC}[<0;$1;$2M"
    tm send-keys -l "${ESC}[<0;$1;$2m"
}
for size in 40x10 80x24 120x36 260x60; do
    terminal $size "exec $PROGRAM -t 1" # the header is not moved by another number of threads
    wait_for 'slowed down to be' >/dev/null
    check "the key line of a first start shows help, quit and pause at $size" until_true says 'Space [pr].*? help.*q quit'
    check "the panels' digits are on the screen at $size" wait_for '2 layers'
done
click 4 60
check "a click on a key hint presses the key" wait_for '‖ paused'
column=$(tm capture-pane -p | head -n 1 | awk '{ print index($0, "policy specbound") }')
click $((column + 3)) 1
check "a click on the policy in the header offers the policies" wait_for '┏ policy'
tm send-keys Escape

group "clicks on the key line and the header, and a search in the help"
click_on() { # row, text
    column=$(tm capture-pane -p | sed -n "$1p" | awk -v text="$2" '{ print index($0, text) }')
    [ "$column" -gt 0 ] && click "$column" "$1"
}
for size in 80x24 160x48; do
    rows=${size#*x}
    terminal $size "exec $PROGRAM -t 1 --once --pace 1"
    wait_for 'q quit' >/dev/null
    click_on "$rows" '? help'
    check "a click on the help's hint opens the help at $size" wait_for '┏ help'
    tm send-keys /
    tm send-keys -l 'a NOTE'
    tm send-keys Enter
    check "the help is filtered, in either case, at $size" wait_for 'rows with "a NOTE"'
    check "a filtered help shows the row with the text" wait_for 'write a note at the cursor'
    check "a filtered help shows no other row" until_true hides 'pause and resume'
    tm send-keys / zzz Enter
    check "a missing text is named" wait_for 'no row has "zzz"'
    tm send-keys Escape
    check "Esc closes the help" until_true hides '┏ help'
    type_line ":pause" # a header that stands still can be clicked
    wait_for 'paused\|ended' >/dev/null
    click_on 1 'specbound'
    check "the policy in the header can be clicked at $size" wait_for '┏ policy'
    [ $size != 80x24 ] || check "a policy's description that does not fit ends in …" shows 'for multi-token prediction (MTP) in this m…'
    tm send-keys Escape
    until_true hides '┏ policy'
    type_line ":pace 7"
    check ":pace sets the speed at $size" wait_for 'at most 7 tokens a second'
    type_line ':speed 8'
    check "the speed's earlier command name is refused" wait_for 'there is no command "speed"'
done

terminal 120x36 "exec $PROGRAM --pace 0"
check "the bundled model's text ends" wait_for 'the text has ended'
check "the focus starts on the knobs" wait_for '┏ 5 knobs'
check "the key bar explains x" until_true says 'x extend'
before=$(tm capture-pane -p | head -n 1 | sed 's/.*round *//')
tm send-keys x
check "x resumes after an end of sequence" until_true sh -c "r=\$(tmux -S $SOCKET capture-pane -p | head -n 1 | sed 's/.*round *//'); test \"\$r\" -gt $before"
until_true shows 'ended' >/dev/null
type_line ':pace 2'
tm send-keys r
wait_for 'running' >/dev/null
tm send-keys Space
check "a resumed run pauses" wait_for 'paused'
tm send-keys p C-u
tm send-keys -l 'Three mice sat on a wall,'
tm send-keys Enter
check "a new prompt runs even when the last one was paused" wait_for 'running'
wait_for 'Three mice sat' >/dev/null
tm send-keys Space
wait_for 'paused' >/dev/null

type_line ':baseline now'
check "surplus arguments are refused" until_true shows 'takes no argument; leave "now" out'
tm send-keys Escape
tm send-keys -l ':set d'
tm send-keys Tab
check "Tab lists the candidates where they are seen" wait_for 'd_max  d_min'
tm send-keys Escape
mkdir "$WORK/run/tracks" && : >"$WORK/run/tracks/one.txt"
tm send-keys -l ':save-screen tra'
tm send-keys Tab
check "Tab completes a folder's name" until_true says ':save-screen tracks/'
tm send-keys Tab
check "Tab completes the contents of a folder" until_true says ':save-screen tracks/one.txt'
tm send-keys Escape
tm send-keys e C-u
tm send-keys -l 'tra'
tm send-keys Tab
check "Tab completes the folder of an export" until_true says 'export to: tracks/'
tm send-keys Escape
tm send-keys -l ':panel seri'
tm send-keys Tab Enter
check "a command that Tab completed runs" wait_for '┏ 4 series'

tm send-keys /
type_line 'mice'
tm send-keys /
check "the line of / starts empty" until_true sh -c "tmux -S $SOCKET capture-pane -p | grep -v '^ *\$' | tail -n 1 | grep -q '^/ *\$'"
tm send-keys Escape
tm send-keys 2
check "a digit moves the focus to its panel" wait_for '┏ 2 layers'
check "the key bar shows the keys of the focused panel" until_true says 'v measure'
tm resize-window -x 100 -y 44
wait_for '1 ▒ exited ▓ spurious' >/dev/null
tm resize-window -x 260 -y 60
check "titles follow a resize" wait_for 'exited ── ▓ spurious'
tm resize-window -x 79 -y 23
check "small terminals lose the boxes" until_true sh -c "! tmux -S $SOCKET capture-pane -p | grep -q '[┌┏]'"
check "small terminals keep the tab in focus" wait_for '\[2 layers\]'

printf ':wait round 3\n:note here it doubts\n:wait idle\n:panel text\n:key Left\n:note-next\n:save-screen noted.txt\n:wait end\n:quit\n' >"$WORK/note.script"
terminal 160x48 "$PROGRAM --pace 0 -n 40 --trace noted --script $WORK/note.script"
check "a script that notes something ends well" exits 0
check "the key bar shows the note at the cursor" sh -c "tail -n 1 '$WORK/run/noted.txt' | grep -q 'here it doubts'"
check "the time line marks a note" sh -c "tail -n 3 '$WORK/run/noted.txt' | grep -q '▾'"
check "the trace contains a note" grep -q 'note.*here it doubts' "$WORK/run/noted/controls.csv"
printf ':goto 99999\n:wait idle\n:note-next\n:save-screen noted.txt\n:note more\n:quit\n' >"$WORK/note.script"
cp -r "$WORK/run/noted" "$WORK/noted"
terminal 160x48 "$PROGRAM replay --script $WORK/note.script $WORK/noted"
check ":note in a replay is refused" exits 2
check ":note-next goes to a note in a replay" sh -c "tail -n 1 '$WORK/run/noted.txt' | grep -q 'here it doubts'"
check "the time line of a replay marks a note" sh -c "tail -n 3 '$WORK/run/noted.txt' | grep -q '▾'"

for keys in '] ] ]' 'n n n'; do
    printf ':key %s\n:wait idle\n' $keys >"$WORK/slow.script"
    printf ':key %s\n:wait idle\n' "$keys" >"$WORK/fast.script"
    for way in slow fast; do
        printf ':save-screen %s.txt\n:quit\n' "$WORK/$way" >>"$WORK/$way.script"
        terminal 160x48 "$PROGRAM replay --script $WORK/$way.script $ROOT/tests/screens/traces/specdecpp"
        check "a script that presses $keys in a replay ends well" exits 0
    done
    check "$keys in quick succession go as far in a replay as one after the other" \
        sh -c "head -n 1 '$WORK/slow.txt' | grep -o 'round [1-9].*' && test \"\$(head -n 1 '$WORK/slow.txt')\" = \"\$(head -n 1 '$WORK/fast.txt')\""
done

terminal 120x36 "exec $PROGRAM --once --pace 0 --ctx 64 --ignore-eos -p 'Once upon a time there was a king who had three daughters'"
check "the context fills" wait_for 'the context is full'
check "the context is never more than full" wait_for 'context 64/64'
exit $STATUS
