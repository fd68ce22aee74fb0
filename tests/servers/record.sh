#!/bin/sh
# Records the answers of real servers for the tests of servers.
# usage: tests/servers/record.sh llama URL | vllm URL
# llama: llama-server (llama.cpp 0.5.0) with the bundled models:
#     llama-server -m models/fables-q8_0.gguf --spec-type draft-simple --spec-draft-model models/fables-draft-q8_0.gguf \
#         --spec-draft-n-max 5 --host 127.0.0.1 --port 8124 -t 1 -c 1024 --metrics -np 1
# vllm: vLLM 0.32.0 on the CPU with SmolLM2-135M-Instruct:
#     vllm serve FOLDER --served-model-name smollm2 --host 127.0.0.1 --port 8123 --max-model-len 1024 --dtype bfloat16 \
#         --enforce-eager --per-request-spec-decode-metrics detailed --speculative-config \
#         '{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_max":3,"prompt_lookup_min":1}'
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
port=$(mktemp)
proxy() { # file: records into it until end_proxy
    rm -f "tests/servers/$1"
    python3 tests/servers/recorded.py record "$URL" "tests/servers/$1" >"$port" &
    pid=$!
    until [ -s "$port" ]; do sleep 0.1; done
    AT=http://127.0.0.1:$(cat "$port")
}
end_proxy() {
    kill "$pid"
    pid=
    : >"$port"
}
pid=
trap '[ -z "$pid" ] || kill "$pid"; rm -f "$port"' EXIT
URL=$2
case $1 in
llama)
    proxy llama_controls.jsonl
    SPECSCOPE_SERVER=$AT "$BUILD/tests/test_remote"
    end_proxy
    proxy llama_screen.jsonl
    SPECSCOPE_SERVER=$AT sh tests/screens/test_server.sh
    end_proxy
    proxy llama_run.jsonl
    ;;
vllm) proxy vllm_run.jsonl ;;
esac
sh tests/servers/requests.sh "$AT" "$(mktemp -d)"
