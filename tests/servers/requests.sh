#!/bin/sh
# The requests of the tests of run --server, also for tests/servers/record.sh. usage: requests.sh URL FOLDER
set -eu
SCOPE=${BUILD:-build}/specscope
URL=$1 TO=$2
prompt='The cat is a small animal. The cat is'
python3 tests/servers/counts.py save "$URL" "$TO/before"
"$SCOPE" run --server "$URL" -n 24 -p "$prompt" --trace "$TO/trace" --json "$TO/run.json" >"$TO/text" 2>"$TO/summary"
python3 tests/servers/counts.py compare "$URL" "$TO/before" "$TO/run.json" >"$TO/counts" || echo differ >>"$TO/counts"
"$SCOPE" run --server "$URL" -n 12 --chat --system 'Be short.' -p 'Where is the ball?' --json "$TO/chat.json" \
    >"$TO/chat" 2>&1
