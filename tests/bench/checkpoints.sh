#!/bin/sh
# make bench-checkpoints measures released checkpoints: the costs of steps, all policies that run without a further
# model, and with LLAMA_CPP=FOLDER the CPU engine against llama.cpp. Fetches the files (tests/checkpoints/get.sh), or
# takes them from the folder CHECKPOINTS. If it cannot have them, it prints one line and succeeds. RECORD=1 writes the
# section into docs/measurements.md.
#
# usage: tests/bench/checkpoints.sh BUILD [LLAMA_CPP]; CHECKPOINTS, PROMPTS, TOKENS, REPEAT from the environment
set -eu
cd "$(dirname "$0")/../.."
BUILD=$1
LLAMA=${2:-}
S=$BUILD/specscope
PROMPTS=${PROMPTS:-8}
TOKENS=${TOKENS:-96}
REPEAT=${REPEAT:-3}
TITLE="# Released checkpoints"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' INT TERM
export LC_ALL=C.UTF-8

tests/checkpoints/get.sh "${CHECKPOINTS:-$BUILD/checkpoints}" >"$WORK/models" 2>"$WORK/why" || {
    echo "bench-checkpoints: skipped: $(cat "$WORK/why")"
    exit 0
}
# prompts of all categories, evenly from the bundled tasks
awk -v n="$PROMPTS" '{ line[NR] = $0 } END { for (i = 0; i < n; i++) print line[int(i * NR / n) + 1] }' \
    models/prompts-tasks.jsonl >"$WORK/prompts.jsonl"
fenced() {
    echo '```'
    cat
    echo '```'
}

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
{
    echo "$TITLE"
    echo
    echo "\`make bench-checkpoints\` wrote this section on $(date -u +%Y-%m-%d), with $(nproc) cores of ${cpu:-an unknown processor}, specscope"
    echo "$($S --version | cut -d' ' -f2). \`tests/checkpoints/get.sh\` fetches the files. Figures are ratios within one run, as above."
    while read -r model; do
        name=$(basename "$model" .gguf)
        chat=
        ! $S info "$model" | grep -q '^chat *a template' || chat=--chat
        echo "$name …" >&2
        echo
        echo "## $name"
        $S bench --steps "$model" 2>/dev/null | fenced
        echo "These are the policies that run without a further model, on $PROMPTS of the bundled tasks${chat:+ as chat messages}, with $TOKENS tokens each:"
        $S bench -n "$TOKENS" --ignore-eos --repeat "$REPEAT" $chat --prompts "$WORK/prompts.jsonl" "$model" 2>/dev/null |
            sed '/^acceptance by position/,$d' | fenced
    done <"$WORK/models"
    if [ -x "$LLAMA/llama-bench" ]; then
        echo
        echo "## Checkpoints against llama.cpp"
        echo "The table is as that of [measurements at real sizes](measurements-batches.md#against-llamacpp): specscope over llama.cpp."
        echo
        RECORD='' SHAPES="$(cat "$WORK/models")" tests/bench/llama_cpp.sh "$BUILD" "$LLAMA" | grep '^|'
    fi
} >"$WORK/section.md"
cat "$WORK/section.md"
if [ -n "${RECORD:-}" ]; then # in the place of the section that was there, or before "Why these speeds"
    awk -v section="$WORK/section.md" -v title="$TITLE" '
        function put() { while ((getline line < section) > 0) print line; print ""; done = 1 }
        /^# / { skip = $0 == title; if (skip || (!done && /^# Why these speeds$/)) put() }
        !skip
        END { if (!done) { print ""; put() } }' docs/measurements.md | cat -s >"$WORK/measurements.md"
    cp "$WORK/measurements.md" docs/measurements.md
fi
