#!/bin/sh
# Released checkpoints predict what transformers computes in double precision from the same files (make_values.py), at
# every layer. `make test-long` fetches them; CHECKPOINTS is a folder that has them.
cd "$(dirname "$0")/../.." && . tests/cli/checks.sh
folder=${CHECKPOINTS:-$BUILD/checkpoints}

for values in tests/checkpoints/values/*.json; do
    model=$(basename "$values" .json)
    tokens="$model generates the tokens that transformers generates"
    layers="every layer of $model predicts what it predicts in transformers"
    if [ -z "${SPECSCOPE_LONG:-}" ]; then
        why="make test-long checks it"
    elif [ -z "$HAVE_PYTHON" ]; then
        why="no python3"
    elif tests/checkpoints/get.sh "$folder" >/dev/null 2>"$TMP/why"; then
        why=
    else
        why=$(cat "$TMP/why")
    fi
    if [ -n "$why" ]; then
        skip "$tokens" "$why"
        skip "$layers" "$why"
        continue
    fi
    prompt=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["prompt"])' "$values")
    works "$model runs in F32" run "$folder/$model.gguf" --exact --probe all --policy ar -n 40 --ignore-eos -p "$prompt" \
        -c 128 --trace "$TMP/$model"
    check "$tokens" python3 tests/checkpoints/compare.py "$values" "$TMP/$model" tokens
    check "$layers" python3 tests/checkpoints/compare.py "$values" "$TMP/$model" layers
done
finish
