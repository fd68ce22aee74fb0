#!/bin/sh
# run --server, against the recorded answers of a llama-server and of vLLM (tests/servers/record.sh names the versions):
# texts, counts by position, traces and their replays, and answers that break off.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
if [ -z "$HAVE_PYTHON" ]; then
    skip "run --server generates on recorded servers" "there is no python3"
    finish
fi

serve() { # a file of recorded answers; sets URL
    : >"$TMP/port"
    python3 tests/servers/recorded.py replay "$1" >"$TMP/port" 2>"$TMP/missing" &
    server=$!
    until [ -s "$TMP/port" ]; do sleep 0.05; done
    URL=http://127.0.0.1:$(cat "$TMP/port")
}
end_server() {
    kill "$server"
    wait "$server" 2>/dev/null
}

for kind in llama vllm; do
    group "$kind"
    serve "tests/servers/${kind}_run.jsonl"
    mkdir "$TMP/$kind"
    check "run --server asks $kind only for what it answered" sh -c "sh tests/servers/requests.sh $URL '$TMP/$kind' && ! grep . '$TMP/missing'"
    check "the counts by position are the counters of $kind" sh -c "! grep differ '$TMP/$kind/counts'"
    check "the summary names no layers" sh -c "grep -q '^server: 24 tokens, .* tokens/round, acceptance 0' '$TMP/$kind/summary' && ! grep -q eTPL '$TMP/$kind/summary'"
    check "run --json describes $kind and has its tokens" python3 - "$TMP/$kind/run.json" "$kind" <<'END'
import json, sys
j = json.load(open(sys.argv[1]))
assert j["backend"].startswith(sys.argv[2]) and len(j["token_ids"]) == 24 and j["emitted"] == 23, j
assert j["etpl"] is None and j["modelled_speedup"] is None, j
assert j["accepted"] == sum(p["accepted"] for p in j["positions"]), j
END
    works "diff compares traces of $kind" diff "$TMP/$kind/trace" "$TMP/$kind/trace"
    check "diff shows no layers' measures of $kind" grep -q '^rounds  *[1-9]' "$TMP/out"
    works "plot draws the positions of $kind" plot "$TMP/$kind/trace" positions -o "$TMP/$kind.svg"
    check "the trace of $kind has rounds whose tokens add up" python3 - "$TMP/$kind/trace" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/rounds.csv")))
tokens = list(csv.DictReader(open(sys.argv[1] + "/tokens.csv")))
for r in rows:
    own = [t for t in tokens if t["round"] == r["round"]]
    drafts = [t for t in own if t["source"] == "draft"]
    assert len(own) == int(r["emitted"]) and len(drafts) <= int(r["accepted"]) <= int(r["drafted"]), r
    assert all(t["accepted"] == "1" for t in drafts), r
generated = [t for t in tokens if t["source"] != "prompt"]
assert [int(t["pos"]) for t in tokens] == list(range(len(tokens))) and len(generated) == 24
END
    end_server
done

group "sglang"
serve tests/servers/sglang_run.jsonl
works "run --server generates on SGLang, as it is documented" run --server "$URL" -n 7 -p 'The cat' --json "$TMP/sglang.json"
check "nothing is asked that SGLang does not answer" sh -c "! grep . '$TMP/missing'"
check "the text of SGLang is printed" grep -q '^ sat on the mat. The dog$' "$TMP/out"
check "the counts are SGLang's totals" python3 - "$TMP/sglang.json" <<'END'
import json, sys
j = json.load(open(sys.argv[1]))
assert (j["model"], j["backend"], j["rounds"], j["drafted"], j["accepted"]) == ("Tiny", "sglang", 3, 9, 3), j
assert [(p["tested"], p["accepted"]) for p in j["positions"]] == [(3, 2), (2, 1), (1, 0)], j
END
refuses "SGLang gives no tokens of messages" 1 'leave out --chat' run --server "$URL" --chat -p 'The cat'
end_server

group "answers that break off"
python3 - tests/servers/llama_run.jsonl "$TMP/broken.jsonl" <<'END'
import json, sys
with open(sys.argv[1]) as f, open(sys.argv[2], "w") as out:
    for line in map(json.loads, f):
        if line["path"] == "/completion":
            line["answer"] = line["answer"][:6000]
        out.write(json.dumps(line) + "\n")
END
serve "$TMP/broken.jsonl"
specscope run --server "$URL" -n 24 -p 'The cat is a small animal. The cat is' --trace "$TMP/broken"
check "an answer without an end fails in one line that gives the reason" sh -c "[ $status -eq 1 ] && [ \$(wc -l <'$TMP/err') -eq 1 ] && grep -q 'answer ended without a reason' '$TMP/err'"
works "the trace of a broken answer is readable" plot "$TMP/broken" positions -o "$TMP/broken.svg"
check "the trace of a broken answer ends with the error" grep -q '"end",,"error: the server' "$TMP/broken/controls.csv"
end_server

group "options"
refuses "a server that is not there is named" 1 'no answer from http://127.0.0.1:1/' run --server http://127.0.0.1:1
refuses "another scheme is refused" 2 'wrong URL of a server' run --server ftp://127.0.0.1
refuses "a model beside a server is refused" 2 'the server has a model' run --server http://127.0.0.1:1 "$TINY"
refuses "a knob for a server is refused" 2 'leave out --set' run --server http://127.0.0.1:1 --set k=3
refuses "a policy for a server is refused" 2 'leave out --policy' run --server http://127.0.0.1:1 --policy sd
refuses "a missing variable with a key is refused" 2 'the environment has no such variable' run --server http://127.0.0.1:1 --key-env NO_SUCH_KEY
: >"$TMP/key"
refuses "an empty key is refused" 2 'the key is empty' run --server http://127.0.0.1:1 --key-file "$TMP/key"
finish
