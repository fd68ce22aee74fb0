#!/bin/sh
# Models by the names that other programs keep them under, and what is said when there is none.
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

info() { "$PROGRAM" info "$1" 2>&1; }
is() { info "$1" | grep -q "$2"; }
refused() { # model, what is said, status
    out=$("$PROGRAM" info "$1" 2>&1 >/dev/null)
    [ $? = "${3:-1}" ] && [ "$(echo "$out" | wc -l)" = 1 ] && echo "$out" | grep -q "$2" || { echo "$out"; return 1; }
}
check "hf:ORG/NAME is the snapshot of main" is hf:org/tiny gemma3_text
check "a commit can be named" is hf:org/tiny@abc1 gemma3_text
check "a GGUF file is found by a part of its name" is hf:org/quants:q8_0 granite
check "the other one, too" is hf:org/quants:Q4_K_M phi2
check "several files are told apart" refused hf:org/quants 'several such GGUF files'
check "what is not there gets the command that fetches it" refused hf:org/none 'hf download org/none$'
check "a name without an organisation is refused" refused hf:none 'hf:ORG/NAME' 2
check "nobody climbs out of the cache" refused hf:../../etc/x 'hf:ORG/NAME' 2
check "ollama:NAME is its weights" is ollama:toy granite
check "ollama:NAME:TAG, too" is ollama:toy:latest granite
check "what Ollama has not gets its command" refused ollama:toy:7b 'ollama pull toy:7b$'
check "HF_HOME is heeded" sh -c "HF_HOME=$HOME/.cache/huggingface HOME=/nonesuch '$PROGRAM' info hf:org/tiny | grep -q gemma3"
check "OLLAMA_MODELS is heeded" sh -c "OLLAMA_MODELS=$OLLAMA HOME=/nonesuch '$PROGRAM' info ollama:toy | grep -q granite"
check "a wrong path offers a near name" refused "$FAMILIES/gema3" "is $FAMILIES/gemma3 meant"
check "one that is near nothing doesn't" refused "$FAMILIES/quite-another-thing" 'cannot be opened\|No such file'
"$PROGRAM" models >"$WORK/list" 2>&1
check "models lists the bundled one first" sh -c "head -n 1 '$WORK/list' | grep -q 'bundled.*llama, 16 layers'"
check "… those of the Hugging Face cache" grep -q '^hf:org/tiny .*gemma3_text, 6 layers' "$WORK/list"
check "… Ollama's" grep -q '^ollama:toy:latest .*granite, 4 layers' "$WORK/list"
check "… files" grep -q 'phi-Q8_0.gguf .*granite' "$WORK/list"
check "… and why one does not run" grep -q 'broken.gguf *-  .*damaged' "$WORK/list"
check "every line names a model" sh -c "[ \$(wc -l <'$WORK/list') = 6 ]"
check "nothing there is said" sh -c "HOME=/nonesuch '$PROGRAM' models | grep -q 'nothing in the caches'"
check "a manifest that is none is passed over" sh -c "echo '{' >'$OLLAMA/manifests/registry.ollama.ai/library/toy/latest'; ! '$PROGRAM' models | grep -q ollama"
# What is no model says what it is.
kind() { rm -rf "$WORK/kind"; cp -rL "$ROOT/tests/golden/models/llama" "$WORK/kind"; }
kind
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 7\n' >"$WORK/kind/model.safetensors"
cp "$WORK/kind/model.safetensors" "$WORK/pointer.gguf"
check "a Git LFS pointer in a folder" refused "$WORK/kind" 'Git LFS pointer.*git lfs pull'
check "a Git LFS pointer for a GGUF file" refused "$WORK/pointer.gguf" 'Git LFS pointer.*git lfs pull'
kind
sed -i 's/{/{"quantization": {"bits": 4},/' "$WORK/kind/config.json"
check "an MLX folder" refused "$WORK/kind" 'MLX'
kind
sed -i 's/LlamaForCausalLM/LlamaForCausalLMEagle3/' "$WORK/kind/config.json"
check "an EAGLE head" refused "$WORK/kind" 'draft for another model'
rm -rf "$WORK/kind" && mkdir "$WORK/kind" && echo '{"peft_type":"LORA"}' >"$WORK/kind/adapter_config.json"
check "an adapter" refused "$WORK/kind" 'adapter (LoRA)'
printf '../../../../etc\n' >"$CACHE/models--org--tiny/refs/main"
check "a ref that climbs is passed over" is hf:org/tiny gemma3_text
exit $STATUS
