#!/bin/sh
# specscope info prints how a model differs from Llama, for golden models of several families.
. tests/cli/checks.sh
says() { # model, what stands in its lines, in order
    specscope info "tests/golden/families/$1"
    check "info prints '$2' of $1" grep -qF "$2" "$TMP/out"
}
says falcon-alibi 'GELU without a gate, LayerNorm, ALiBi'
check "info does not mention RoPE of a model with ALiBi" sh -c "! grep -q RoPE '$TMP/out'"
says gpt2 'LayerNorm, learned positions'
check "info does not mention RoPE of a model with learned positions" sh -c "! grep -q RoPE '$TMP/out'"
says olmo-clip 'LayerNorm, queries, keys and values clipped at 0.8'
says gemma2 'norms after sublayers'
check "info prints the cap of logits" grep -q 'logits capped at ' "$TMP/out"
says gemma3 'in 5 layers 8 dimensions, base 5000, positions x 1'
check "info --json has the base of layers with local rotation" \
    sh -c "'$PROGRAM' info --json tests/golden/families/gemma3 | grep -q '\"rope_local_base\":[[:space:]]*5000'"
says smollm3 'no RoPE in '
says phimoe 'by SparseMixer'
says lfm2 'short convolutions in 3 layers'
says granitehybrid.gguf 'Mamba-2 mixers in 3 layers, no RoPE in 4 layers'
cp -rL tests/golden/families/lfm2 "$TMP/biased"
sed -i 's/"conv_bias": false/"conv_bias": true/' "$TMP/biased/config.json"
specscope info "$TMP/biased"
check "info refuses biases of short convolutions in a line" sh -c "grep -q \"'conv_bias' is not supported\" '$TMP/err' && [ \$(wc -l < '$TMP/err') = 1 ]"
says glm4_moe-groups 'by sigmoid'
check "info prints the groups of experts, and the expert that all rows go to" grep -q 'of .* groups and to one of .* units' "$TMP/out"
says falcon 'attention and MLP side by side'
cp -rL tests/golden/families/falcon-sequential "$TMP/silent"
sed -i 's/"parallel_attn": false/"parallel_attn": null/' "$TMP/silent/config.json"
specscope info "$TMP/silent"
check "info treats null values in config.json as absent" sh -c "grep -q null '$TMP/silent/config.json' && ! grep -q 'side by side' '$TMP/out'"
refuses_ahead() { # file with tensors, edit of a tensor's name of the same length, what the message contains
    rm -rf "$TMP/ahead"
    cp -rL tests/golden/eagle/targets/"$1" "$TMP/ahead"
    [ -d "$TMP/ahead" ] && changed=$TMP/ahead/model.safetensors || changed=$TMP/ahead
    LC_ALL=C sed -i "$2" "$changed"
    specscope info "$TMP/ahead"
    check "info gives the reason why mtp is not used: $3" grep -qF "mtp           not used: $TMP/ahead: $3" "$TMP/out"
    specscope run -p 'the hen' -n 4 --policy mtp "$TMP/ahead"
    check "--policy mtp is refused in a line: $3" sh -c "grep -qF \"$3\" '$TMP/err' && [ \$(wc -l < '$TMP/err') = 1 ]"
    specscope run -p 'the hen' -n 4 --policy layerskip "$TMP/ahead"
    check "layerskip runs on a model whose mtp layer is refused" [ "$status" = 0 ]
}
refuses_ahead qwen3_5 's/mtp\.fc\.weight/mtp.fz.weight/' "tensor 'mtp.fz.weight' of the layer"
refuses_ahead qwen3_5 's/mtp\.layers\.0\.mlp\.up_proj/mtp.layers.0.mlp.uz_proj/' "tensor 'mtp.layers.0.mlp.up_proj.weight' is missing"
refuses_ahead glm4_moe 's/layers\.3\.self_attn\.q_norm/layers.3.self_attn.z_norm/' "tensor 'model.layers.3.self_attn.z_norm.weight' of the layer"
refuses_ahead qwen3_5.gguf 's/nextn\.hnorm/nextn.hnorn/' "tensor 'blk.3.nextn.hnorm.weight' is missing"
describes() { # a block drafter, what info prints
    specscope info tests/golden/eagle/targets/llama --draft tests/golden/block/"$1"
    check "info describes the block drafter $1: $2" grep -qF "$2" "$TMP/out"
}
describes zlab/head 'a block drafter of 2 layers of width 32, 18656 parameters'
describes zlab/head 'reads the model after layers 1, 3 and 5; drafts from 288 tokens of 288; embedding: the model'
describes zlab/head 'blocks of 6 rows: 5 drafts, mask token 287 u; no Markov head, no confidence head'
describes zlab_windows/head 'blocks of 5 rows: 4 drafts, mask token 287 u, causal; no Markov head'
describes zlab_mixed/head '4 drafts, mask token 287 u, causal in layers with a window'
describes deepspec/head 'reads the model after layers 0, 3 and 6; drafts from 288 tokens of 288; embedding: its own, head: its own'
describes speculators/head 'blocks of 6 rows: 6 drafts, mask token 287 u; a Markov head of rank 8, a confidence head'
describes gguf_dspark/head.gguf 'reads the model after layers 2 and 5; drafts from 140 tokens of 288'
specscope info --json tests/golden/eagle/targets/llama --draft tests/golden/block/speculators_bonus/head
check "info --json describes a block drafter" grep -q '"from_anchor":[[:space:]]*false' "$TMP/out"
finish
