#!/bin/sh
# Control sequences in a model, a prompt or a file never reach the terminal.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
if ! command -v script >/dev/null 2>&1; then
    skip "the program writes no raw bytes to a terminal" "there is no script(1)"
    finish
fi
NASTY=$TMP/nasty.gguf
"$BUILD/tests/tinymodel" "$NASTY" --nasty --layers 2 --vocab 300 --sharpness 1 >/dev/null || exit 1

harmless() { # no control byte but the terminal's own line ends, no C1 control character, no bidi control
    [ "$(LC_ALL=C tr -d '\t\r\n -~\200-\377' <"$TMP/screen" | wc -c)" -eq 0 ] &&
        ! LC_ALL=C grep -q "$(printf '\302[\200-\237]')" "$TMP/screen" &&
        ! LC_ALL=C grep -q "$(printf '\342\200[\250-\256]')" "$TMP/screen" &&
        ! LC_ALL=C grep -q "$(printf '\342\201[\246-\251]')" "$TMP/screen"
}
run="'$PROGRAM' run -n 250 --ignore-eos --temp 30 --seed 3 -p a '$NASTY'"
sh -c "$run" >"$TMP/out" 2>/dev/null
check "the test's model generates escape sequences" grep -q "$(printf '\033')" "$TMP/out"
in_terminal "$run 2>/dev/null"
check "run prints escape sequences as text on a terminal" harmless
check "run prints the bytes of escape sequences on a terminal" grep -q 'x1[bB]' "$TMP/screen"
check "run writes the model's bytes into a file" sh -c "LC_ALL=C; [ \$(wc -c <'$TMP/out') -gt 250 ]"
printf 'a\033[31mb\302\2332Jc\007' >"$TMP/text"
in_terminal "'$PROGRAM' tokenize --pieces '$NASTY' <'$TMP/text' 2>&1"
check "tokenize prints pieces as text on a terminal" harmless
"$PROGRAM" tokenize "$NASTY" <"$TMP/text" >"$TMP/ids"
in_terminal "'$PROGRAM' tokenize --decode '$NASTY' <'$TMP/ids' 2>&1"
check "tokenize --decode prints text on a terminal" harmless
in_terminal "'$PROGRAM' info '$NASTY' 2>&1"
check "info prints text on a terminal" harmless
for bad in "run --policy" "run --isa" "run --theme" "run --set" "run" "info" "tokenize" "replay"; do
    in_terminal "'$PROGRAM' $bad \"\$(cat '$TMP/text')\" 2>&1"
    check "the refusal of an argument of '$bad' has no control characters" harmless
done
finish
