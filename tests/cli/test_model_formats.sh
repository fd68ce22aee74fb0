#!/bin/sh
# Models in every format: split GGUF files, types, vocabularies, quantising while loading, refusals.
. tests/cli/checks.sh
MODELS=tests/golden/models

works "a model of mixed types runs" run -n 8 -p 'the and' --ignore-eos $MODELS/types.gguf
works "info reads a model of mixed types" info $MODELS/types.gguf
check "info lists all types of a model of mixed types" sh -c "for t in F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K; do grep -q \" \$t [0-9]\" '$TMP/out' || exit 1; done"
works "a model of tables and grids runs" run -n 8 -p 'the and' --ignore-eos $MODELS/tables.gguf
works "info describes a model of tables and grids" info $MODELS/tables.gguf
check "info lists all types of tables and grids" sh -c "for t in MXFP4 IQ4_NL IQ4_XS IQ3_S IQ3_XXS IQ2_S IQ2_XS IQ2_XXS IQ1_M IQ1_S TQ1_0 TQ2_0; do grep -q \" \$t [0-9]\" '$TMP/out' || exit 1; done"
works "info describes a model with biases" info $MODELS/qwen2.gguf
check "info reports biases on Q, K and V" grep -q 'biases on Q, K and V' "$TMP/out"
works "info describes a model with windows" info $MODELS/mistral.gguf
check "info reports a window of five positions" grep -q 'attends to the last 5 positions' "$TMP/out"

"$BUILD/tests/tinymodel" "$TMP/nan.gguf" --layers 2 --width 32 >/dev/null
printf '\377\377\377\377' | dd of="$TMP/nan.gguf" bs=1 seek=$(($(wc -c <"$TMP/nan.gguf") - 4)) conv=notrunc 2>/dev/null
refuses "a tensor with values that are not numbers is refused" 1 "nan.gguf: tensor 'output.weight' contains values that are not numbers" run -p hello "$TMP/nan.gguf"

works "info describes a vocabulary" info $MODELS/vocabulary.gguf
check "info calls a vocabulary a vocabulary" grep -q 'a vocabulary only' "$TMP/out"
refuses "run of a vocabulary is refused" 1 'holds a vocabulary and no weights' run $MODELS/vocabulary.gguf

works "run --quantize quantises weights on load" run -n 8 -p 'the and' --quantize q8_0 $MODELS/llama.gguf
works "info --quantize works" info --quantize q8_0 $MODELS/llama.gguf
check "info reports that weights are quantised on load" grep -q 'Q8_0 .* quantised to Q8_0 on load' "$TMP/out"
refuses "quantising to an unknown type is refused" 2 'quantize q3_k' run --quantize q3_k $MODELS/llama.gguf

works "a Hugging Face folder runs" run -n 8 -p 'the and' --ignore-eos $MODELS/mistral
works "a Hugging Face folder runs in Q8_0" run -n 8 -p 'the and' --ignore-eos --quantize q8_0 $MODELS/mistral/
works "info describes a Hugging Face folder" info $MODELS/mistral
check "info counts the files of a folder's weights" grep -q '^folder .*, 2 files, ' "$TMP/out"
works "info describes a model with two stop tokens" info $MODELS/qwen2
check "info prints both stop tokens" grep -Eq '^stops after +2 </s>, 258 ' "$TMP/out"
mkdir "$TMP/half" && cp $MODELS/mistral/* "$TMP/half" && rm "$TMP/half/model-00002-of-00002.safetensors"
refuses "a folder with a missing file of weights is refused" 1 'model-00002-of-00002.safetensors: is missing' run "$TMP/half"
rm "$TMP"/half/model*
works "info describes a folder without weights" info "$TMP/half"
check "info calls a folder without weights a vocabulary" grep -q 'a vocabulary only' "$TMP/out"
refuses "run of a folder without weights is refused" 1 'holds no weights' run "$TMP/half"

refuses "a context that cannot fit in memory is refused" 1 'needs .* for its weights and .* for a context of 16777216, but .* available; lower -c' \
    run -n 4 -p x -c 16777216
refuses "a folder that contains no model is refused" 1 'folder without config.json' run "$TMP"
finish
