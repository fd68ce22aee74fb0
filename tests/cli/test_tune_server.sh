#!/bin/sh
# tune --launch: a race of the settings of a server that it starts. tests/servers/paced.py answers as llama-server does,
# and its options determine its speed.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

PACED="python3 tests/servers/paced.py --ids $TMP/ids"
for i in 1 2 3 4 5 6 7 8 9; do
    echo "{\"category\": \"$((i % 3))\", \"turns\": [\"number $i\"]}"
done >"$TMP/nine.jsonl"
all_gone() { # of the servers that were started
    [ -s "$TMP/ids" ] || return 1
    while read -r id; do
        ! kill -0 "$id" 2>/dev/null || return 1
    done <"$TMP/ids"
}

refuses "a command without a place for options is refused" 2 "specscope: --launch: the command has no {flags}" tune --launch 'llama-server -m x'
refuses "a model beside the command is refused" 2 "leave out '.*tiny.gguf'" tune --launch 'llama-server {flags}' "$TINY"
refuses "tune of a running server is refused" 2 "no server turns its speculation off for one request.*--launch 'COMMAND {flags}'" tune --server http://127.0.0.1:9
refuses "a policy whose draft model is missing is refused, at home too" 2 'cannot race sd: it needs a draft model' tune --policy sd --draft none "$TINY"
fails() { # sentence, status, pattern in the last line, arguments: after the line that a server starts
    sentence=$1 wanted=$2 pattern=$3
    shift 3
    specscope "$@"
    check "$sentence" sh -c "test $status -eq $wanted && test \"\$(wc -l <'$TMP/err')\" -eq 2 && tail -1 '$TMP/err' | grep -q -e \"$pattern\""
}
fails "a command that ends is refused with its last line" 1 'the server did not start: it ended with exit status 1: no such model' tune --launch 'echo no such model >&2; exit 1; : {flags}'
if [ -z "$HAVE_PYTHON" ]; then
    skip "a race of a server's settings" "no python3"
    finish
fi
fails "a policy that the engine does not have is refused" 2 'cannot race specbound on llama-server: it cannot choose an exit layer' \
    tune --launch "$PACED {flags}" --policy specbound
works "tune races the settings of a server" tune --launch "$PACED --pace 0.004 {flags}" --policy ngram -n 24 --time 25s --prompts "$TMP/nine.jsonl" --json "$TMP/race.json" --csv "$TMP/race.csv" --trace "$TMP/trace"
check "every server of the race has ended" all_gone
check "one line tells what the race will take" grep -Eq '^specscope: [3-7] settings race, [0-9]+ prompts after each start of the server, which takes [0-9]+s; about [0-9]+[sm] at least$' "$TMP/err"
check "the command of the fastest setting is printed" grep -Eq "^  $PACED --pace 0.004 --spec-type ngram-simple --spec-ngram-simple-size-n [0-9]+ --spec-ngram-simple-size-m [2-8]\$" "$TMP/out"
check "no command of this program and of other engines is printed" sh -c "! grep -Eq -- '--policy|vLLM|transformers' '$TMP/out'"
check "JSON and CSV have the race, and JSON the command" python3 - "$TMP/race.json" "$TMP/race.csv" <<'PY'
import csv, json, sys
race = json.load(open(sys.argv[1]))
[fastest] = [s for s in race["settings"] if s["fastest"]]
assert fastest["policy"] == "ngram" and fastest["held_out_low"] > 1.5, fastest
assert race["command"].endswith("--spec-ngram-simple-size-m " + fastest["set"]["k"]) and "engines" not in race
lines = [l for l in csv.DictReader(open(sys.argv[2], newline="")) if l["category"] == ""]
assert [l["policy"] for l in lines] == [s["policy"] for s in race["settings"]]
PY
check "each setting but the first one of a block needs a start" python3 - "$TMP/race.json" "$TMP/ids" <<'PY'
import json, sys
n, starts = len(json.load(open(sys.argv[1]))["settings"]), len(open(sys.argv[2]).read().split())
assert n + 6 <= starts <= 8 * n + 9, (n, starts)
PY
check "the trace has the settings and their rounds" sh -c "grep -q '\"policy\",\"ar\",\"ngram\"' '$TMP/trace/controls.csv' && grep -q 'ngram' '$TMP/trace/rounds.csv'"
works "tune races settings that are slower than plain decoding" tune --launch "$PACED --pace 0.004 --accepted 0 {flags}" --policy ngram -n 24 --time 15s --prompts "$TMP/nine.jsonl"
check "plain decoding is the result if no setting is clearly faster" sh -c "grep -q '^To use plain decoding:$' '$TMP/out' && grep -q '^  $PACED --pace 0.004 --accepted 0\$' '$TMP/out'"
long=$(head -c 2100 /dev/zero | tr '\0' x)
works "settings whose server does not start do not end the race" tune --launch "LONG=$long $PACED --pace 0.004 --fail-at 2 --fail-at 4 {flags}" --policy ngram -n 24 --time 25s --prompts "$TMP/nine.jsonl"
check "the report has each reason" sh -c "grep -q 'ngram k=2 (does not run: .*paced: 2 drafts do not fit' '$TMP/out' && grep -q 'ngram k=4 (does not run: .*paced: 4 drafts do not fit' '$TMP/out'"
check "another setting is the fastest one, and its long command is whole" grep -Eq -e '--spec-ngram-simple-size-m ([35-9]|[1-9][0-9])$' "$TMP/out"
fails "too little time for starts is refused with what is needed" 2 'a start of the server' tune --launch "$PACED --start 1 {flags}" --time 2s --prompts "$TMP/nine.jsonl"
check "every server has ended after refusals" all_gone

interrupted() { # signal, when
    : >"$TMP/ids"
    "$PROGRAM" tune --launch "$PACED --start 0.2 {flags}" --policy ngram -n 64 --time 1h --trace "$TMP/cut-$1" >"$TMP/out" 2>"$TMP/err" &
    PID=$!
    wait_until "$2"
    kill "-$1" $PID
    wait $PID
    interrupted_status=$?
}
first_start() { test -s "$TMP/ids"; }
some_heats() { test "$(wc -l <"$TMP/ids")" -gt 9; }
interrupted INT first_start
check "Ctrl-C in the first start ends with status 130" test $interrupted_status -eq 130
check "no server is left after Ctrl-C in the first start" wait_until all_gone
rm -rf "$TMP/cut-INT"
interrupted INT some_heats
check "Ctrl-C in the heats ends with status 130" test $interrupted_status -eq 130
check "Ctrl-C in the heats prints the standings so far" grep -q ' settings raced in [1-9][0-9]* heat' "$TMP/out"
check "no server is left after Ctrl-C in the heats" all_gone
interrupted KILL some_heats
check "no server is left after a kill" wait_until all_gone
finish
