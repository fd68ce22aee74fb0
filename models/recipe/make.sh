#!/bin/sh
# The bundled models from nothing: models/recipe/make.sh TALES.txt [FOLDER]
# TALES.txt: any English prose, books separated by an empty line, a paragraph a line. FOLDER (default build/recipe)
# keeps checkpoints: the same command goes on where it was stopped. TOKENS=29.5e6, SIBLING_TOKENS=15e6 and
# HYBRID_TOKENS=10e6 set how long. Needs python3 with the packages of requirements.txt, about six hours on
# two cores.
set -eu
cd "$(dirname "$0")/../.."
tales=$1
work=${2:-build/recipe}
python=${PYTHON:-python3}
mkdir -p "$work"
[ -s "$work/graded.txt" ] || "$python" models/recipe/graded --seed 1 --bytes 60000000 >"$work/graded.txt"
for name in fables fables-companion fables-draft fables-hybrid; do
    case $name in
    fables) tokens=${TOKENS:-29.5e6} ;;
    fables-hybrid) tokens=${HYBRID_TOKENS:-10e6} ;;
    *) tokens=${SIBLING_TOKENS:-15e6} ;;
    esac
    "$python" models/recipe/train.py "$name" "$tales" "$work/graded.txt" --work "$work" --tokens "$tokens" | tee -a "$work/$name.log"
    "$python" models/recipe/export.py "$name" "models/$name-q8_0.gguf" --work "$work"
done
# Heads: on generated text that the model has not seen, and tales.
"$python" models/recipe/graded --seed 2 --bytes 400000 >"$work/heads.txt"
head -c 400000 "$tales" >>"$work/heads.txt"
make build/specscope
build/specscope train heads --model models/fables-q8_0.gguf --text "$work/heads.txt" --out models/fables-q8_0.heads.safetensors
# The EAGLE-3 head: on text of both kinds, cut into windows.
"$python" models/recipe/graded --seed 6 --bytes 4000000 >"$work/eagle.txt"
head -c 4000000 "$tales" >>"$work/eagle.txt"
build/specscope train eagle --model models/fables-q8_0.gguf --text "$work/eagle.txt" --out models/fables-eagle-q8_0.gguf \
    --draft-vocab 2048 --window 192
# The block drafter: on what the model writes after beginnings of texts of both kinds.
"$python" models/recipe/graded --seed 7 --bytes 4000000 >"$work/beginnings.txt"
"$python" models/recipe/block.py models/fables-q8_0.gguf "$tales" "$work/beginnings.txt" --work "$work" \
    --out models/fables-block-q8_0.gguf
"$python" models/recipe/measure.py models/fables-q8_0.gguf --work "$work"
for name in fables-companion fables-draft fables-hybrid; do
    "$python" models/recipe/measure.py "models/$name-q8_0.gguf" --name "$name" --drafts-for fables --work "$work"
done
