#!/bin/sh
# specscope info prints how a model differs from Llama, for golden models of several families.
. tests/cli/checks.sh
says() { # model, what stands in its lines, in order
    specscope info "tests/golden/families/$1"
    check "$1: $2" grep -qF "$2" "$TMP/out"
}
says falcon-alibi 'GELU without a gate, LayerNorm, ALiBi'
check "without rotation RoPE is not mentioned" sh -c "! grep -q RoPE '$TMP/out'"
says gpt2 'LayerNorm, learned positions'
check "nor where positions were learned" sh -c "! grep -q RoPE '$TMP/out'"
says olmo-clip 'LayerNorm, queries, keys and values clipped at 0.8'
says gemma2 'norms behind sublayers'
check "caps of logits are printed" grep -q 'logits capped at ' "$TMP/out"
says smollm3 'no RoPE in '
says phimoe 'by SparseMixer'
says glm4_moe-groups 'by sigmoid'
check "groups, and the expert that all rows go to" grep -q 'of .* groups and to one of .* units' "$TMP/out"
says falcon 'attention and MLP side by side'
cp -rL tests/golden/families/falcon-sequential "$TMP/silent"
sed -i 's/"parallel_attn": false/"parallel_attn": null/' "$TMP/silent/config.json"
specscope info "$TMP/silent"
check "null values are treated as absent" sh -c "grep -q null '$TMP/silent/config.json' && ! grep -q 'side by side' '$TMP/out'"
finish
