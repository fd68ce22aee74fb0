#!/bin/sh
# Real servers: counts of drafts by position are those of the server's own /metrics, exactly, and those of this program's
# own policy where the text is the same.
# usage: LLAMA_SERVER=PROGRAM VLLM=PROGRAM VLLM_MODEL=FOLDER sh tests/engines/test_engines.sh
# VLLM_URL names a vLLM server that runs already, with --per-request-spec-decode-metrics detailed.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
# Keys and values in F32, as with --exact here: their rounding changes drafts and texts of so small a model.
LOAD='-t 1 -c 1024 -np 1 --metrics -fa off -ctk f32 -ctv f32'
head -n 20 models/prompts-tune.jsonl >"$TMP/fables.jsonl"
head -n 20 models/prompts-tasks.jsonl >"$TMP/tasks.jsonl"
# Prompts of one line: llama-server puts a space after the line break of this model's vocabulary, which has other ids.
python3 -c 'import json, sys
for line in sys.stdin: print(json.dumps({"turns": [json.loads(line)["turns"][0].split("\n")[0]]}))' <"$TMP/fables.jsonl" >"$TMP/lines.jsonl"
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$TMP"' EXIT

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
start() { # seconds, command without address; sets URL
    limit=$1
    shift
    port=$(free_port)
    URL=http://127.0.0.1:$port
    "$@" --host 127.0.0.1 --port "$port" >"$TMP/server.log" 2>&1 &
    server=$!
    until python3 -c "import urllib.request; urllib.request.urlopen('$URL/health')" 2>/dev/null; do
        limit=$((limit - 1))
        [ $limit -gt 0 ] && kill -0 $server 2>/dev/null || return 1
        sleep 1
    done
}
end_server() {
    kill "$server"
    wait "$server" 2>/dev/null
    server=
}
counted() { # name, further options: runs the prompts and compares with the server's counters
    name=$1
    shift
    python3 tests/servers/counts.py save "$URL" "$TMP/before"
    works "run --server generates on $name" run --server "$URL" -n 64 "$@" --json "$TMP/$name.json"
    check "the counts by position of 20 prompts are those of /metrics of $name" python3 tests/servers/counts.py compare \
        "$URL" "$TMP/before" "$TMP/$name.json"
    sed 's/^/# /' "$TMP/said"
}
of_llama_server() { # name, status and begin of the verdict, options of verdict, options of speculation
    name=$1 expected=$2 begin=$3 here=$4
    shift 4
    # shellcheck disable=SC2086
    start 60 "$LLAMA_SERVER" -m models/fables-q8_0.gguf $LOAD "$@" || { check "$name starts" false; return; }
    counted "$name" --prompts "$TMP/fables.jsonl"
    # shellcheck disable=SC2086
    specscope verdict --server "$URL" $here --exact --prompts "$TMP/lines.jsonl" -n 64 models/fables-q8_0.gguf
    check "the verdict on $name is: $begin" sh -c "[ $status -eq $expected ] && tail -n 1 '$TMP/out' | grep '^$begin'"
    sed 's/^/# /' "$TMP/out"
    end_server
}

if [ -n "${LLAMA_SERVER:-}" ]; then
    group "$("$LLAMA_SERVER" --version 2>&1 | sed -n 's/^version: //p')"
    of_llama_server draft-simple 0 'the same drafts' '--policy sd --set k=5' \
        --spec-type draft-simple --spec-draft-model models/fables-draft-q8_0.gguf --spec-draft-n-max 5 -ctkd f32 -ctvd f32
    works "run --policy sd generates the same prompts" run --policy sd --set k=5 --exact --prompts "$TMP/fables.jsonl" -n 64 \
        --json "$TMP/sd.json" models/fables-q8_0.gguf
    check "where the texts are the same, so are the counts by position of sd" python3 tests/engines/same_counts.py \
        "$TMP/draft-simple.json" "$TMP/sd.json"
    sed 's/^/# /' "$TMP/said"
    of_llama_server ngram-simple 0 'the same drafts' '--policy ngram --set n_min=3 --set n_max=3 --set k=5' \
        --spec-type ngram-simple --spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 5
    python3 tests/servers/damage_gguf.py models/fables-draft-q8_0.gguf "$TMP/damaged.gguf"
    of_llama_server damaged-draft 1 'fewer drafts than the drafter deserves from position 1 on' '--policy sd --set k=5' \
        --spec-type draft-simple --spec-draft-model "$TMP/damaged.gguf" --spec-draft-n-max 5
    of_llama_server draft-dspark 0 'the same drafts' '--policy dspark --set k=8' --spec-type draft-dspark \
        --spec-draft-model models/fables-block-q8_0.gguf --spec-draft-n-max 8 --spec-draft-p-min 0 -ctkd f32 -ctvd f32
    # llama-server's DFlash has no Markov bias, and its first row drafts nothing.
    python3 tests/servers/damage_gguf.py --plain models/fables-block-q8_0.gguf "$TMP/plain.gguf"
    of_llama_server draft-dflash 0 'the same drafts' "--policy dflash --set k=7 --draft $TMP/plain.gguf" \
        --spec-type draft-dflash --spec-draft-model "$TMP/plain.gguf" --spec-draft-n-max 7 --spec-draft-p-min 0 \
        -ctkd f32 -ctvd f32
else
    skip "counts of a llama-server are those of its /metrics" "LLAMA_SERVER is not set"
fi
if [ -n "${VLLM_URL:-}" ]; then
    URL=$VLLM_URL
    counted vllm --chat --prompts "$TMP/tasks.jsonl"
elif [ -n "${VLLM:-}" ] && [ -n "${VLLM_MODEL:-}" ]; then
    group "vLLM"
    export VLLM_CPU_KVCACHE_SPACE=1
    start 900 "$VLLM" serve "$VLLM_MODEL" --max-model-len 1024 --dtype bfloat16 --enforce-eager \
        --per-request-spec-decode-metrics detailed --speculative-config \
        '{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_max":3,"prompt_lookup_min":1}' || check "vLLM starts" false
    counted vllm --chat --prompts "$TMP/tasks.jsonl"
    end_server
else
    skip "counts of vLLM are those of its /metrics" "VLLM and VLLM_MODEL are not set"
fi
finish
