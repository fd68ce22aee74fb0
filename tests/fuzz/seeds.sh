#!/bin/sh
# Writes seed inputs for every fuzz target into FOLDER/<target>/. They are those of seeds/<target>.txt, each in a file
# with its title for a name, and files that the repository has for other reasons.
# usage: tests/fuzz/seeds.sh BUILD FOLDER
set -eu
BUILD=$1
OUT=$2
here=$(dirname "$0")
golden=$here/../golden

unpack() { # target; add_seed.sh has the format
    while IFS= read -r line; do
        case $line in
        '') ;;
        '    '*) printf -- "${line#    }" >>"$file" ;;
        *)
            file=$OUT/$1/$line
            [ ! -e "$file" ] || { echo "seeds/$1.txt: two seeds have the title '$line'" >&2; exit 1; }
            : >"$file" ;;
        esac
    done <"$here/seeds/$1.txt"
}

for target in "$here"/fuzz_*.c; do
    name=$(basename "$target" .c)
    rm -rf "${OUT:?}/$name"
    mkdir -p "$OUT/$name"
    unpack "$name"
    case $name in
    fuzz_gguf)
        "$BUILD/tests/tinymodel" "$OUT/$name/q8.gguf" --layers 2 --width 32 --ffn 32 --type q8_0 >/dev/null
        "$BUILD/tests/tinymodel" "$OUT/$name/mixed.gguf" --layers 1 --width 32 --ffn 64 --type mixed --nasty --gguf-version 2 >/dev/null
        cp "$golden/tokenizers/gemma4/vocab.gguf" "$OUT/$name/gemma4.gguf"
        cp "$golden/tokenizers/smollm/vocab.gguf" "$golden/models/qwen2.gguf" "$OUT/$name/"
        for family in qwen3_5 lfm2 granitehybrid; do cp "$golden/families/$family.gguf" "$OUT/$name/"; done ;;
    fuzz_hf_config)
        for family in qwen3_next qwen3_5 lfm2 granitehybrid olmo_hybrid bamba; do
            { printf '\000'; cat "$golden/families/$family/config.json"; } >"$OUT/$name/$family"
        done ;;
    fuzz_chat) cp "$here"/../jinja/templates/*.jinja "$OUT/$name/" ;;
    fuzz_pieces)
        for model in "$golden"/tokenizers/model-*; do
            { printf '{"added_tokens_decoder": {"1": {"content": "<s>", "special": true}}}\377'; cat "$model/tokenizer.model"; } >"$OUT/$name/${model##*/}"
        done ;;
    fuzz_tokenizer)
        cp "$golden/tokenizers/unigram/tokenizer.json" "$OUT/$name/unigram.json"
        { cat "$golden/tokenizers/smollm/tokenizer.json"
          printf '\377{"extra_special_tokens": ["<a>", "b"], "pad_token": "<p>"}\377x<a> b<q>\377{"<q>": 700, "<p>": 701}\377{"eos_token": "<|im_end|>", "image_token": {"content": "<i>", "lstrip": true}}'
        } >"$OUT/$name/declared" ;;
    fuzz_sv_profile) cp "$here"/../../models/*.profile.json "$OUT/$name/" ;;
    fuzz_theme) cp "$here"/../../themes/*.json "$OUT/$name/" ;;
    fuzz_files)
        { printf '\000'; head -n 3 "$here/../../models/prompts.jsonl"; } >"$OUT/$name/prompts"
        for table in one two three; do { printf '\002'; cat "$golden/figures/$table.csv"; } >"$OUT/$name/$table"; done
        { printf '\003'; cat "$golden/models/mistral/model.safetensors.index.json"; } >"$OUT/$name/index" ;;
    esac
done
