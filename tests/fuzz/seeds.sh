#!/bin/sh
# Writes seed inputs for every fuzz target into FOLDER/<target>/. usage: seeds.sh BUILD FOLDER
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
        cp "$here/../golden/tokenizers/gemma4/vocab.gguf" "$OUT/$name/gemma4.gguf"
        cp "$here/../golden/tokenizers/smollm/vocab.gguf" "$here/../golden/models/qwen2.gguf" "$OUT/$name/"
        for family in qwen3_5 lfm2 granitehybrid; do cp "$here/../golden/families/$family.gguf" "$OUT/$name/"; done ;;
    fuzz_hf_config)
        for family in qwen3_next qwen3_5 lfm2 granitehybrid olmo_hybrid bamba; do
            { printf '\000'; cat "$here/../golden/families/$family/config.json"; } >"$OUT/$name/$family"
        done ;;
    fuzz_chat) cp "$here"/../chat/templates/*.jinja "$OUT/$name/" ;;
    fuzz_pieces)
        for model in "$here"/../golden/tokenizers/model-*; do
            { printf '{"added_tokens_decoder": {"1": {"content": "<s>", "special": true}}}\377'; cat "$model/tokenizer.model"; } >"$OUT/$name/${model##*/}"
        done
        printf '\377\012\016\012\005<unk>\025\000\000\000\000\030\002\012\010\012\001a\025\000\000\000\300' >"$OUT/$name/small" ;;
    fuzz_tokenizer) cp "$here/../golden/tokenizers/unigram/tokenizer.json" "$OUT/$name/unigram.json"
        { cat "$here/../golden/tokenizers/smollm/tokenizer.json"
          printf '\377{"extra_special_tokens": ["<a>", "b"], "pad_token": "<p>"}\377x<a> b<q>\377{"<q>": 700, "<p>": 701}\377{"eos_token": "<|im_end|>", "image_token": {"content": "<i>", "lstrip": true}}'
        } >"$OUT/$name/declared" ;;
    fuzz_sv_profile) cp "$here"/../../models/*.profile.json "$OUT/$name/" ;;
    fuzz_theme) cp "$here"/../../themes/*.json "$OUT/$name/" ;;
    fuzz_script) printf '# a script\n:set tau 0.6\n:wait round 3\n:goto 5\n:key S-Left C-l\n:save-screen x\n:quit\n' >"$OUT/$name/script" ;;
    fuzz_config) printf '{"policy": "layerskip", "set": ["gamma=6"], "temp": 0.5, "ignore-eos": true}' >"$OUT/$name/config.json"
        printf '{"policy": ["del", "dv"], "set": ["omega=0.9", "length=tpl"], "repeat": 2, "steps": true}' >"$OUT/$name/bench.json"
        printf '{"theme": "mono", "seed": "18446744073709551615", "probe": "all", "top-p": 0.9, "trace": "/tmp/x", "pace": 0}' >"$OUT/$name/scope.json" ;;
    fuzz_words)
        n=0
        for text in '\000tau=0.3:0.9:0.1' '\001confidence 0.3' '\001text wall' '\001round 40' '\002 0.5' '\002dynamic' '\003layerskip exit_layer=4 head=lens' \
            '\004TinyLlama-1.1B:q8_0,6,0.75' '\005swift 2\n' '\006N200M' '\006Stau=0.5' '\006PPOLICY=3' '\007<0;12;7M' '\0071+r524742=38' '\007?1;2;4c' '\010S-Left'; do
            n=$((n + 1))
            printf "$text" >"$OUT/$name/$n"
        done ;;
    fuzz_files)
        { printf '\000'; head -n 3 "$here/../../models/prompts.jsonl"; } >"$OUT/$name/prompts"
        printf '\001once\\nupon\na time\\\\\n' >"$OUT/$name/history"
        for table in one two three; do { printf '\002'; cat "$here/../golden/figures/$table.csv"; } >"$OUT/$name/$table"; done
        { printf '\003'; cat "$here/../golden/models/mistral/model.safetensors.index.json"; } >"$OUT/$name/index" ;;
    fuzz_keys)
        printf '\030\120 n.vgwl]\033[A\033[<0;12;7M\033[<0;12;7m' >"$OUT/$name/keys"
        printf '\130\120:goto 3\r:zoom\rv\t?\033q' >"$OUT/$name/commands"
        printf '\250\120p\033[200~pasted\ntext\033[201~\033\376\020\100n' >"$OUT/$name/paste" ;;
    fuzz_commands)
        printf 'A:set exit_layer 2\nstep 2\nset temperature 0.5\npolicy specbound\nundo\nresume\nextend 4\n' >"$OUT/$name/turns"
        printf '\006:versus layerskip exit_layer=1\nstep\nsequence 1\nset gamma 3\nbaseline\nversus off\n' >"$OUT/$name/versus"
        printf '\011sweep tau=0.3:0.9:0.3\nresume\nsweep stop\nwhat-if on\nnote here\nkey x Enter\nuntil reject\nprobe off\nhead lens\n' >"$OUT/$name/sweep"
        printf '\310step 3\nsequence next\nsearch a\nexport x\nplot series y.svg\nsave-screen z\npreset save q\nrestart\nprompt hello\n' >"$OUT/$name/batch" ;;
    fuzz_places)
        printf '\000{"schemaVersion": 2, "config": {"digest": "sha256:01"}, "layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:00ff", "size": 4}, {"mediaType": "application/vnd.ollama.image.params", "digest": "sha256:02"}]}' >"$OUT/$name/manifest"
        n=0
        for text in '\001hf:org/tiny' '\001hf:org/tiny@abc:Q4_K_M' '\001ollama:toy' '\001ollama:toy:latest' '\001ollama:user/toy:7b' '\001m-00002-of-00003.gguf' \
            '\002config.json' '\002tiny-Q4_K_M.gguf' '\002tiny@2-00001-of-00003.gguf' '\002tiny-00002-of-00003.GGUF' \
            '\003\000\003\000\001\003\000\002\003\000m-00001-of-00003.gguf' '\003\001\002\000\001\003\000\002\003\000m-00002-of-00002.gguf' '\003\000\001\000\001\003\000\002\003\000one.gguf'; do
            n=$((n + 1))
            printf "$text" >"$OUT/$name/$n"
        done ;;
    fuzz_preset) printf '{"policy": "specbound", "set": ["tau=0.7", "d_max=5"], "head": "trained"}' >"$OUT/$name/quick.json" ;;
    fuzz_trace)
        printf '\000\001\000\010\000\001{"format": 1}' >"$OUT/$name/a"
        printf '\003\000event,t_us,run,seq,round,pos\n1,2,3,4,5,6\n' >"$OUT/$name/b" ;;
    esac
done
