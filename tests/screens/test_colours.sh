#!/bin/sh
# Colours and answers in a real terminal: 24 bits if the terminal declares or reports them, otherwise 256; whole frames;
# the mouse in columns after 223.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

TRACE=$ROOT/tests/screens/traces/del
colours() { tm capture-pane -e -p; }
has() { colours | grep -q "$(printf '\033')\\[[0-9;:]*$1"; }
ESC=$(printf '\033')

replay() { # WxH, environment
    terminal "$1" "exec 2>/dev/tty; exec env $2 $PROGRAM replay $TRACE"
    wait_for 'at its end' >/dev/null
}

replay 120x36 'TERM=tmux-256color COLORTERM=truecolor'
check "COLORTERM=truecolor brings the theme's own colours" until_true has '8;2;20;23;28'
check "COLORTERM=truecolor uses no palette numbers" sh -c "! tmux -S $SOCKET capture-pane -e -p | grep -q '8;5;'"
tm send-keys -l ':theme light'
tm send-keys Enter
check "another theme brings other colours" until_true has '8;2;251;251;248'
check "another theme removes the earlier colours" sh -c "! tmux -S $SOCKET capture-pane -e -p | grep -q '8;2;20;23;28'"

replay 120x36 'TERM=xterm COLORTERM=24bit'
check "a plain xterm that declares 24bit has the theme's own colours" until_true has '8;2;20;23;28'
replay 120x36 '-u TMUX TERM=screen-256color COLORTERM=truecolor'
check "GNU screen, which only passes COLORTERM on, has none of 24 bits" sh -c "! tmux -S $SOCKET capture-pane -e -p | grep -q '8;2;'"
replay 120x36 'TERM=tmux-256color COLORTERM=truecolor NO_COLOR=1'
check "NO_COLOR overrides COLORTERM" sh -c "! tmux -S $SOCKET capture-pane -e -p | grep -q '8;[25];'"

replay 120x36 'TERM=tmux-256color'
check "a terminal without an answer shows 256 colours" until_true has '8;5;'
check "a terminal's answers to questions are not read as keys" wait_for 'layers × tokens'
tm send-keys -l "${ESC}P1\$r0;48:2::1:2:3m${ESC}\\"
check "a terminal that answers for 24 bits has the theme's own colours" until_true has '8;2;20;23;28'

terminal 100x30 "exec 2>/dev/tty; env TERM=tmux-256color $PROGRAM replay $TRACE; echo shell; exec cat -v"
tm send-keys q
wait_for '^shell' >/dev/null
tm send-keys -l 'a key'
wait_for 'a key' >/dev/null # which comes after all answers that the terminal gave before
check "an answer that comes late is not left to the shell" sh -c "! tmux -S $SOCKET capture-pane -p | grep -q '\^\['"

replay 260x60 'TERM=tmux-256color'
tm send-keys -l "${ESC}[<0;250;50M"
tm send-keys -l "${ESC}[<0;250;50m"
check "a click in column 250 finds its panel" until_true shows '┏ 5 knobs'

printf ':wait end\n:quit\n' >"$WORK/end.script"
terminal 120x36 "script -q -c '$PROGRAM replay --script $WORK/end.script $TRACE' raw"
check "a replay under script ends well" exits 0
check "frames are synchronized updates" grep -aq "${ESC}\[?2026h" "$WORK/run/raw"
check "each synchronized update that begins also ends" sh -c "test \$(grep -ao '?2026h' '$WORK/run/raw' | wc -l) -le \$(grep -ao '?2026l' '$WORK/run/raw' | wc -l)"
check "the scope asks for the mouse's position in decimal" grep -aq '?1006h' "$WORK/run/raw"
check "the scope turns the mouse off at its end" grep -aq '?1006l' "$WORK/run/raw"
exit $STATUS
