#!/bin/sh
# Seed inputs for every fuzz target, into FOLDER/<target>/. usage: seeds.sh BUILD FOLDER
set -eu
BUILD=$1
OUT=$2
here=$(dirname "$0")
for target in "$here"/fuzz_*.c; do
    name=$(basename "$target" .c)
    mkdir -p "$OUT/$name"
    [ -d "$here/seeds/$name" ] && cp "$here/seeds/$name"/* "$OUT/$name/"
    case $name in
    fuzz_gguf)
        "$BUILD/tests/tinymodel" "$OUT/$name/q8.gguf" --layers 2 --width 32 --ffn 32 --type q8_0 >/dev/null
        "$BUILD/tests/tinymodel" "$OUT/$name/mixed.gguf" --layers 1 --width 32 --ffn 64 --type mixed --nasty --gguf-version 2 >/dev/null
        cp "$here/../golden/tokenizers/smollm/vocab.gguf" "$here/../golden/models/qwen2.gguf" "$OUT/$name/" ;;
    fuzz_chat) cp "$here"/../chat/templates/*.jinja "$OUT/$name/" ;;
    fuzz_pieces)
        for model in "$here"/../golden/tokenizers/model-*; do
            { printf '{"added_tokens_decoder": {"1": {"content": "<s>", "special": true}}}\377'; cat "$model/tokenizer.model"; } >"$OUT/$name/${model##*/}"
        done
        printf '\377\012\016\012\005<unk>\025\000\000\000\000\030\002\012\010\012\001a\025\000\000\000\300' >"$OUT/$name/small" ;;
    fuzz_tokenizer) cp "$here/../golden/tokenizers/unigram/tokenizer.json" "$OUT/$name/unigram.json" ;;
    fuzz_sv_profile) cp "$here"/../../models/*.profile.json "$OUT/$name/" ;;
    fuzz_theme) cp "$here"/../../themes/*.json "$OUT/$name/" ;;
    fuzz_script) printf '# a script\n:set tau 0.6\n:wait round 3\n:goto 5\n:key S-Left C-l\n:save-screen x\n:quit\n' >"$OUT/$name/script" ;;
    fuzz_config) printf '{"policy": "layerskip", "set": ["gamma=6"], "temp": 0.5, "ignore-eos": true}' >"$OUT/$name/config.json"
        printf '{"policy": ["del", "dv"], "set": ["omega=0.9", "length=tpl"], "repeat": 2, "steps": true}' >"$OUT/$name/bench.json"
        printf '{"theme": "mono", "seed": "18446744073709551615", "probe": "all", "top-p": 0.9, "trace": "/tmp/x", "pace": 0}' >"$OUT/$name/scope.json" ;;
    fuzz_preset) printf '{"policy": "specbound", "set": ["tau=0.7", "d_max=5"], "head": "trained"}' >"$OUT/$name/quick.json" ;;
    fuzz_trace)
        printf '\000\001\000\010\000\001{"format": 1}' >"$OUT/$name/a"
        printf '\003\000event,t_us,run,seq,round,pos\n1,2,3,4,5,6\n' >"$OUT/$name/b" ;;
    esac
done
