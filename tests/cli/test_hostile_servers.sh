#!/bin/sh
# A server that plays every part (tests/servers/hostile.py): `run --server` fails in one line or generates what was
# honest, writes a readable trace, and no raw byte reaches the terminal.
. "$(dirname "$0")/checks.sh"
group "the plug-in"
mkdir "$TMP/bin" && cp "$PROGRAM" "$TMP/bin/specscope"
alone() { # arguments for a program without its plug-in, or with one that is none
    "$TMP/bin/specscope" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    status=$?
}
alone run --server http://127.0.0.1:1 -p x
check "run --server without the plug-in is an error" refused_as 1
check "the error names the plug-in" grep -q 'no specscope-curl.so .*build it' "$TMP/err"
echo none >"$TMP/bin/specscope-curl.so"
alone run --server http://127.0.0.1:1 -p x
check "a plug-in that cannot be loaded is an error" refused_as 1
alone doctor
check "doctor notes a plug-in that cannot be loaded" grep -q '^note  servers .*install libcurl' "$TMP/out"
for url in file:///etc/passwd http://me:secret@127.0.0.1/ 'http://a b'; do
    specscope run --server "$url" -p x
    check "the address '$url' is refused" refused_as 2
    check "the message about '$url' shows no password" sh -c "! grep -q secret '$TMP/err'"
done

if [ -z "$HAVE_PYTHON" ]; then
    skip "hostile servers are refused in one line" "there is no python3"
    finish
fi
python3 tests/servers/hostile.py --port 0 --mute "$TMP/mute" >"$TMP/port" &
SERVER=$!
trap 'kill $SERVER; rm -rf "$TMP"' EXIT
wait_until test -s "$TMP/port"
read -r PORT _ <"$TMP/port"
KEY=sk-secret-of-the-test
export KEY

part() { # part: generates 20 tokens on it
    rm -rf "$TMP/trace"
    specscope run --server "http://127.0.0.1:$PORT/$1" --key-env KEY -p "Once upon" -n 20 --trace "$TMP/trace"
}
readable() { # the trace has a whole round
    "$PROGRAM" diff "$TMP/trace" "$TMP/trace" | grep -q '^texts: the same'
}
lacks_key() { ! grep -rqF "$KEY" "$TMP/trace" "$TMP/out" "$TMP/err"; }
fails() { # part, what the message contains
    part "$1"
    check "a server with the part '$1' is an error in one line" [ "$status" = 1 ]
    check "the error of the part '$1' is one printable line" one_line
    check "the error of the part '$1' has the reason" grep -q -e "$2" "$TMP/err"
    check "the key is in no output of the part '$1'" lacks_key
}
fails_after_round() { # the same, after the first round
    fails "$@"
    check "the trace of the part '$1' is readable" readable
}

group "answers that break off in a stream"
fails_after_round wrong-json "no JSON object"
fails_after_round no-object "no JSON object"
fails_after_round deep-json "no JSON object"
fails_after_round escapes 'the server stopped: \\x1b\[31mred'
fails_after_round negative-counts "vocabulary lacks"
fails_after_round huge-counts "vocabulary lacks"
fails_after_round falling-counts "fewer drafts than before"
fails_after_round many-drafts "not possible\|fewer drafts than before"
fails_after_round many-tokens "ended without a reason"
fails_after_round endless "more tokens than were requested"
fails_after_round endless-empty "events without tokens"
fails_after_round endless-comment "4 MB without an event"
fails_after_round endless-line "4 MB without an event"
fails_after_round cut "no answer from"

group "answers that are no stream"
fails redirect "which is not followed"
fails unauthorized 'wrong key: Bearer \**.* --key-file'
fails html "status 500"
fails wrong-type "no stream of events"
fails endless-header "header"
fails garbage "no answer from"

group "prompts"
fails odd-prompt "vocabulary lacks"
fails locked 'status 401: wrong key: Bearer \**; .* --key-file'
fails no-prompt "the prompt has 0 tokens"
fails long-prompt "the prompt has 100000 tokens"

group "answers with odd contents"
for odd in honest invalid-utf8 wrong-types long-word odd-model odd-pieces; do
    part "$odd"
    check "a server with the part '$odd' generates" [ "$status" = 0 ]
    check "the trace of the part '$odd' is readable" readable
    check "the words of the part '$odd' are cut to a kilobyte" [ "$(awk '{ if (length > n) n = length } END { print n }' "$TMP/trace/vocab.csv")" -lt 1100 ]
done

group "terminals"
if command -v script >/dev/null 2>&1; then
    in_terminal "'$PROGRAM' run --server http://127.0.0.1:$PORT/escapes -p x -n 20"
    check "text and errors of a server have no control characters on a terminal" \
        [ "$(LC_ALL=C tr -d '\r\n -~\200-\377' <"$TMP/screen" | wc -c)" -eq 0 ]
    check "escape sequences of a server are text on a terminal" grep -q 'x1b\]0;owned' "$TMP/screen"
else
    skip "text and errors of a server have no control characters on a terminal" "there is no script(1)"
fi

group "servers that are silent"
silent() { # part, file that is not empty when the program waits
    rm -rf "$TMP/out" "$TMP/stalled"
    "$PROGRAM" run --server "http://127.0.0.1:$PORT/$1" -p x -n 20 --trace "$TMP/stalled" >"$TMP/out" 2>"$TMP/err" </dev/null &
    RUN=$!
    wait_until test -s "$2"
    kill -INT $RUN
    wait $RUN
    status=$?
}
silent stalled "$TMP/out"
check "Ctrl-C ends the wait for a stalled server" grep -q 'end: cancelled' "$TMP/err"
rm -rf "$TMP/trace" && mv "$TMP/stalled" "$TMP/trace"
check "the trace of a stalled server is readable" readable
silent mute "$TMP/mute" # the server writes the file
check "Ctrl-C ends the wait for a server that does not say what it is" [ "$status" = 130 ]
finish
