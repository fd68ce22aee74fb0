#!/bin/sh
# Models by the names that other programs use, and the messages for models that are missing.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
FAMILIES=$ROOT/tests/golden/families

hub() { # ORG--NAME, commit
    mkdir -p "$1/refs" "$1/snapshots/$2"
    printf '%s\n' "$2" >"$1/refs/main"
}
CACHE=$HOME/.cache/huggingface/hub
hub "$CACHE/models--org--tiny" abc1
cp -L "$FAMILIES"/gemma3/* "$CACHE/models--org--tiny/snapshots/abc1/"
hub "$CACHE/models--org--quants" d
cp "$FAMILIES/phi.gguf" "$CACHE/models--org--quants/snapshots/d/phi-Q4_K_M.gguf"
cp "$FAMILIES/granite.gguf" "$CACHE/models--org--quants/snapshots/d/phi-Q8_0.gguf"
OLLAMA=$HOME/.ollama/models
mkdir -p "$OLLAMA/manifests/registry.ollama.ai/library/toy" "$OLLAMA/blobs" "$HOME/.lmstudio/models/a/b"
cp "$FAMILIES/granite.gguf" "$OLLAMA/blobs/sha256-00ff"
echo '{"layers":[{"mediaType":"application/vnd.ollama.image.template","digest":"sha256:01"},
 {"mediaType":"application/vnd.ollama.image.model","digest":"sha256:00ff"}]}' >"$OLLAMA/manifests/registry.ollama.ai/library/toy/latest"
head -c 1000 "$FAMILIES/phi.gguf" >"$HOME/.lmstudio/models/a/b/broken.gguf"
# A snapshot with files in subfolders and a projector; Ollama models of other registries, and one with an adapter.
hub "$CACHE/models--org--large" 0123abcd
mkdir "$CACHE/models--org--large/snapshots/0123abcd/Q8_0" "$CACHE/models--org--large/snapshots/0123abcd/BF16"
cp "$FAMILIES/granite.gguf" "$CACHE/models--org--large/snapshots/0123abcd/Q8_0/Big-Q8_0.gguf"
cp "$FAMILIES/phi.gguf" "$CACHE/models--org--large/snapshots/0123abcd/BF16/Big-BF16-00001-of-00002.gguf"
: >"$CACHE/models--org--large/snapshots/0123abcd/BF16/Big-BF16-00002-of-00002.gguf"
: >"$CACHE/models--org--large/snapshots/0123abcd/mmproj-Big-BF16.gguf"
hub "$CACHE/models--org--seeing" e
cp "$FAMILIES/granite.gguf" "$CACHE/models--org--seeing/snapshots/e/seeing.gguf"
: >"$CACHE/models--org--seeing/snapshots/e/mmproj-F16.gguf"
hub "$CACHE/models--org--incomplete" f
echo '{"model_type":"llama"}' >"$CACHE/models--org--incomplete/snapshots/f/config.json"
echo '{"weight_map":{"a":"model-00001-of-00001.safetensors"}}' >"$CACHE/models--org--incomplete/snapshots/f/model.safetensors.index.json"
manifest() { # path below manifests, layers
    mkdir -p "$OLLAMA/manifests/${1%/*}"
    printf '{"layers":[%s]}\n' "$2" >"$OLLAMA/manifests/$1"
}
WEIGHTS='{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:00ff"}'
manifest hf.co/org/pulled/Q8_0 "$WEIGHTS"
manifest registry.ollama.ai/somebody/toy/latest "$WEIGHTS"
manifest localhost:5000/team/toy/latest "$WEIGHTS"
manifest registry.ollama.ai/library/tuned/latest "$WEIGHTS,{\"mediaType\":\"application/vnd.ollama.image.adapter\",\"digest\":\"sha256:00aa\"}"
cp "$ROOT/tests/golden/lora/gpt_neox.gguf" "$OLLAMA/blobs/sha256-00aa"

info() { "$PROGRAM" info "$1" 2>&1; }
is() { info "$1" | grep -q "$2"; }
refused() { # model, what is said, status
    out=$("$PROGRAM" info "$1" 2>&1 >/dev/null)
    [ $? = "${3:-1}" ] && [ "$(echo "$out" | wc -l)" = 1 ] && echo "$out" | grep -q "$2" || { echo "$out"; return 1; }
}
check "hf:ORG/NAME is the snapshot of main" is hf:org/tiny gemma3_text
check "hf:ORG/NAME@COMMIT is the snapshot of that commit" is hf:org/tiny@abc1 gemma3_text
check "a GGUF file is found by a part of its name" is hf:org/quants:q8_0 granite
check "another GGUF file is found by a part of its name" is hf:org/quants:Q4_K_M phi2
check "a snapshot of several GGUF files is refused with their names" refused hf:org/quants 'several such GGUF files: phi-Q4_K_M.gguf, phi-Q8_0.gguf; .* hf:org/quants:PART$'
check "the refusal of a missing model prints the command that downloads it" refused hf:org/none 'hf download org/none$'
check "the refusal of a missing revision prints the command that downloads it" refused hf:org/none@v2:Q8_0 'hf download org/none --revision v2$'
check "a file in a folder of the snapshot is found" is hf:org/large:q8_0 granite
check "a model in several parts is found by its first part" is hf:org/large:BF16 phi2
check "a file in a folder is found by its whole name" is hf:org/large:Q8_0/Big-Q8_0.gguf granite
check "a snapshot of one model and a projector needs no choice" is hf:org/seeing granite
check "a projector is not found by its name" refused hf:org/seeing:mmproj 'such a GGUF file'
check "a commit is named by its first digits" is hf:org/large@0123:Q8_0 granite
check "digits of no commit are refused" refused hf:org/large@0124:Q8_0 'revision 0124$'
check "the refusal of a name without hf: offers the model of the cache" refused org/tiny 'no such file or folder; the Hugging Face cache has hf:org/tiny$'
check "the refusal of a missing name without hf: prints the command that downloads it" refused org/another 'hf download org/another) and give hf:org/another$'
check "a path that is not there is refused without a download command" refused ./org/another 'No such file'
check "a name without an organisation is refused" refused hf:none 'hf:ORG/NAME' 2
check "a name cannot leave the cache" refused hf:../../etc/x 'hf:ORG/NAME' 2
check "ollama:NAME is found" is ollama:toy granite
check "ollama:NAME:TAG is found" is ollama:toy:latest granite
check "ollama:OWNER/NAME is found" is ollama:somebody/toy granite
check "ollama:REGISTRY/OWNER/NAME:TAG is found" is ollama:hf.co/org/pulled:Q8_0 granite
check "a model of a registry with a port is found" is ollama:localhost:5000/team/toy granite
check "the refusal of a model that Ollama pulled from the hub offers Ollama's name" refused hf:org/pulled 'Ollama has it: ollama:hf.co/org/pulled$'
check "the refusal of an Ollama model with an adapter prints --lora and both files" refused ollama:tuned ".*--lora $OLLAMA/blobs/sha256-00aa $OLLAMA/blobs/sha256-00ff$"
check "the refusal of a model that Ollama lacks prints the command that pulls it" refused ollama:toy:7b 'ollama pull toy:7b$'
check "HF_HOME sets the Hugging Face cache" sh -c "HF_HOME=$HOME/.cache/huggingface HOME=/nonesuch '$PROGRAM' info hf:org/tiny | grep -q gemma3"
check "OLLAMA_MODELS sets Ollama's folder" sh -c "OLLAMA_MODELS=$OLLAMA HOME=/nonesuch '$PROGRAM' info ollama:toy | grep -q granite"
check "a wrong path is refused" refused "$FAMILIES/quite-another-thing" 'cannot be opened\|No such file'
"$PROGRAM" models >"$WORK/list" 2>&1
check "models lists the bundled model first" sh -c "head -n 1 '$WORK/list' | grep -q 'bundled.*llama, 16 layers'"
check "models lists models of the Hugging Face cache" grep -q '^hf:org/tiny .*gemma3_text, 6 layers' "$WORK/list"
check "models lists Ollama's models" grep -q '^ollama:toy:latest .*granite, 4 layers' "$WORK/list"
check "models lists Ollama's models of other registries" sh -c "grep -q '^ollama:hf.co/org/pulled:Q8_0 .*granite' '$WORK/list' && grep -q '^ollama:localhost:5000/team/toy:latest ' '$WORK/list' && grep -q '^ollama:somebody/toy:latest ' '$WORK/list'"
check "models marks a model with an adapter as not running" grep -q '^ollama:tuned:latest  *-  is an adapter' "$WORK/list"
check "models lists files in folders of snapshots" grep -q '^hf:org/large:Q8_0/Big-Q8_0.gguf .*granite' "$WORK/list"
check "models lists no projectors" sh -c "! grep -q mmproj '$WORK/list'"
check "models prints a reason that begins with a file's name" grep -q '^hf:org/incomplete  *-  model-00001-of-00001.safetensors: is missing' "$WORK/list"
check "models lists files of a snapshot" grep -q 'phi-Q8_0.gguf .*granite' "$WORK/list"
check "models prints why a damaged model does not run" grep -q 'broken.gguf *-  .*damaged' "$WORK/list"
check "models prints a line for each model" sh -c "[ \$(wc -l <'$WORK/list') = 14 ]"
check "models reports that the caches are empty" sh -c "HOME=/nonesuch '$PROGRAM' models | grep -q 'nothing in the caches'"
check "models skips a broken manifest" sh -c "echo '{' >'$OLLAMA/manifests/registry.ollama.ai/library/toy/latest'; ! '$PROGRAM' models | grep -q ollama:toy"
# Files that are no model are described.
kind() { rm -rf "$WORK/kind"; cp -rL "$ROOT/tests/golden/models/llama" "$WORK/kind"; }
kind
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 7\n' >"$WORK/kind/model.safetensors"
cp "$WORK/kind/model.safetensors" "$WORK/pointer.gguf"
check "a folder with a Git LFS pointer is refused with 'git lfs pull'" refused "$WORK/kind" 'Git LFS pointer.*git lfs pull'
check "a Git LFS pointer for a GGUF file is refused with 'git lfs pull'" refused "$WORK/pointer.gguf" 'Git LFS pointer.*git lfs pull'
kind
sed -i 's/{/{"quantization": {"bits": 4},/' "$WORK/kind/config.json"
check "an MLX folder is refused by that name" refused "$WORK/kind" 'MLX'
kind
sed -i 's/LlamaForCausalLM/LlamaForCausalLMEagle3/' "$WORK/kind/config.json"
check "an EAGLE head in place of a model is refused by that name" refused "$WORK/kind" 'EAGLE-3 head, which drafts for a model'
rm -rf "$WORK/kind" && mkdir "$WORK/kind" && echo '{"peft_type":"LORA"}' >"$WORK/kind/adapter_config.json"
check "an adapter in place of a model is refused by that name" refused "$WORK/kind" 'adapter (LoRA)'
kind
rm "$WORK/kind/model.safetensors"
said=$("$PROGRAM" run -n 1 -p a "$WORK/kind" 2>&1)
check "a folder without weights is refused with the missing files" test "$said" = "specscope: $WORK/kind: holds no weights (model.safetensors or model.safetensors.index.json); fetch them too"
rm "$WORK/kind/config.json"
check "a folder without config.json is refused" refused "$WORK/kind" 'is a folder without config.json'
kind
rm "$WORK/kind/tokenizer.json"
check "a folder without a tokenizer is refused" refused "$WORK/kind" 'has neither a tokenizer.json nor a tokenizer.model'
kind
sed -i 's/"model_type": *"llama"/"model_type":"bailing_moe"/' "$WORK/kind/config.json"
check "an unsupported architecture is refused by its name" refused "$WORK/kind" "architecture 'bailing_moe' is not supported"
rm -rf "$WORK/kind" && cp -rL "$FAMILIES/gemma3-eye" "$WORK/kind"
sed -i '0,/"tie_word_embeddings": true/s//"tie_word_embeddings": false/' "$WORK/kind/config.json"
check "a head is tied if the whole model's config ties it" is "$WORK/kind" gemma3_text
if command -v python3 >/dev/null 2>&1; then
    cp -r "$ROOT/tests/golden/lora/llama" "$WORK/adapter"
    python3 - "$WORK/adapter/adapter_model.safetensors" <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header, rest = json.loads(data[8:8 + n]), data[8 + n:]
header["base_model.model.lm_head.base_layer.weight"] = dict(dtype="F32", shape=[1], data_offsets=[len(rest), len(rest) + 4])
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + rest + b"\0\0\0\0")
PY
    said=$("$PROGRAM" info --lora "$WORK/adapter" "$ROOT/tests/golden/models/llama" 2>&1 >/dev/null)
    check "an adapter with a layer of the model is refused" sh -c "printf '%s' \"\$1\" | grep -q 'lm_head.base_layer.weight. is a layer of the model itself'" - "$said"
fi
printf '../../../../etc\n' >"$CACHE/models--org--tiny/refs/main"
check "a ref that leaves the cache is ignored" is hf:org/tiny gemma3_text
exit $STATUS
