#!/bin/sh
# Control sequences in a model, a prompt or a file never reach the terminal.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
if ! command -v script >/dev/null 2>&1; then
    skip "terminals are not written raw bytes" "there is no script(1)"
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
check "a run shows escape sequences as text" harmless
check "a run shows escape sequences as bytes" grep -q 'x1[bB]' "$TMP/screen"
check "a file receives the model's bytes" sh -c "LC_ALL=C; [ \$(wc -c <'$TMP/out') -gt 250 ]"
printf 'a\033[31mb\302\2332Jc\007' >"$TMP/text"
in_terminal "'$PROGRAM' tokenize --pieces '$NASTY' <'$TMP/text' 2>&1"
check "tokenize shows pieces as text" harmless
"$PROGRAM" tokenize "$NASTY" <"$TMP/text" >"$TMP/ids"
in_terminal "'$PROGRAM' tokenize --decode '$NASTY' <'$TMP/ids' 2>&1"
check "tokenize --decode shows text" harmless
in_terminal "'$PROGRAM' info '$NASTY' 2>&1"
check "info shows text" harmless
for bad in "run --policy" "run --isa" "run --theme" "run --set" "run" "info" "tokenize" "replay"; do
    in_terminal "'$PROGRAM' $bad \"\$(cat '$TMP/text')\" 2>&1"
    check "an argument of '$bad' is complained about harmlessly" harmless
done
finish
