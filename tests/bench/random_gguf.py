#!/usr/bin/env python3
"""Writes a GGUF file with random weights in the shape of a model that the synthetic weights of `--synth` do not have.

usage: tests/bench/random_gguf.py OUT.gguf SHAPE

Needs numpy and gguf. Matrices are F16. The texts of such a model mean nothing, but each row takes the time of a real model's."""
import pathlib
import sys

import gguf
import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "models" / "recipe"))
from gguf_file import add_pieces, finish

OUT, SHAPE = sys.argv[1:] if len(sys.argv) == 3 else sys.exit(__doc__)
BLOCK = np.random.default_rng(1).standard_normal(1 << 22, dtype=np.float32)  # all matrices repeat these numbers
tensors = []


def matrix(name, rows, cols):
    values = np.resize(BLOCK, rows * cols).astype(np.float16) * np.float16(cols**-0.5)
    tensors.append((name + ".weight", values.reshape(rows, cols)))


def vector(name, n, value=1):
    tensors.append((name, np.full(n, value, np.float32)))


def norm(name, n):
    vector(name + ".weight", n)


def mlp(b, width, ffn):
    matrix(b + "ffn_gate", ffn, width)
    matrix(b + "ffn_up", ffn, width)
    matrix(b + "ffn_down", width, ffn)


def qwen35(w, layers, width, heads, kv_heads, head, ffn, vocab, delta_heads, delta_head):
    taps, inner = 4, delta_heads * delta_head
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_key_length(head)
    w.add_value_length(head)
    w.add_rope_dimension_count(head // 4)
    w.add_rope_dimension_sections([11, 11, 10, 0])
    w.add_rope_freq_base(1e7)
    w.add_feed_forward_length(ffn)
    w.add_ssm_conv_kernel(taps)
    w.add_ssm_state_size(delta_head)
    w.add_ssm_group_count(delta_heads)
    w.add_ssm_time_step_rank(delta_heads)
    w.add_ssm_inner_size(inner)
    w.add_uint32("qwen35.full_attention_interval", 4)
    for layer in range(layers):
        b = f"blk.{layer}."
        norm(b + "attn_norm", width)
        norm(b + "post_attention_norm", width)
        mlp(b, width, ffn)
        if layer % 4 == 3:
            matrix(b + "attn_q", 2 * heads * head, width)  # with gates
            matrix(b + "attn_k", kv_heads * head, width)
            matrix(b + "attn_v", kv_heads * head, width)
            matrix(b + "attn_output", width, heads * head)
            norm(b + "attn_q_norm", head)
            norm(b + "attn_k_norm", head)
            continue
        matrix(b + "attn_qkv", 3 * inner, width)
        matrix(b + "attn_gate", inner, width)
        matrix(b + "ssm_alpha", delta_heads, width)
        matrix(b + "ssm_beta", delta_heads, width)
        matrix(b + "ssm_out", width, inner)
        norm(b + "ssm_norm", delta_head)
        vector(b + "ssm_a", delta_heads, -1)
        vector(b + "ssm_dt.bias", delta_heads, 0)
        tensors.append((b + "ssm_conv1d.weight", np.full((3 * inner, taps), 0.5, np.float32)))


def gemma4(w, layers, width, heads, kv_heads, head, ffn, vocab, global_head, shared, inputs, window):
    full = [layer % 5 == 4 for layer in range(layers)]
    own = layers - shared  # layers with keys and values; the MLPs of the others are twice as wide
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_key_length(global_head)
    w.add_value_length(global_head)
    w.add_rope_dimension_count(global_head)
    w.add_rope_freq_base(1e6)
    w.add_feed_forward_length([ffn if layer < own else 2 * ffn for layer in range(layers)])
    w.add_sliding_window(window)
    w.add_shared_kv_layers(shared)
    w.add_uint32("gemma4.embedding_length_per_layer_input", inputs)
    w.add_sliding_window_pattern([not f for f in full])
    w.add_final_logit_softcapping(30)
    for key, value in (("attention.key_length_swa", head), ("attention.value_length_swa", head), ("rope.dimension_count_swa", head)):
        w.add_uint32("gemma4." + key, value)
    w.add_float32("gemma4.rope.freq_base_swa", 1e4)
    turned = global_head // 8  # pairs; the others are not turned
    tensors.append(("rope_freqs.weight", np.array([1.0] * turned + [1e30] * (global_head // 2 - turned), np.float32)))
    matrix("per_layer_token_embd", vocab, layers * inputs)
    matrix("per_layer_model_proj", layers * inputs, width)
    norm("per_layer_proj_norm", inputs)
    for layer in range(layers):
        b, n = f"blk.{layer}.", global_head if full[layer] else head
        for name in ("attn_norm", "post_attention_norm", "post_ffw_norm", "post_norm", "ffn_norm"):
            norm(b + name, width)
        norm(b + "attn_q_norm", n)
        norm(b + "layer_output_scale", 1)
        mlp(b, width, ffn if layer < own else 2 * ffn)
        matrix(b + "inp_gate", inputs, width)
        matrix(b + "proj", width, inputs)
        matrix(b + "attn_q", heads * n, width)
        matrix(b + "attn_output", width, heads * n)
        if layer < own:
            norm(b + "attn_k_norm", n)
            matrix(b + "attn_k", kv_heads * n, width)
            matrix(b + "attn_v", kv_heads * n, width)


# Qwen3.5's sizes are as published; Gemma 4's add up to its published totals of 5.1 and 2.3 billion parameters: layers,
# width, heads, KV heads, head, FFN, vocabulary, then those of the family.
SHAPES = {
    "Qwen3.5-0.8B": ("qwen35", qwen35, (24, 1024, 8, 2, 256, 3584, 248320, 16, 128)),
    "Gemma-4-E2B": ("gemma4", gemma4, (35, 1536, 8, 1, 256, 6144, 262144, 512, 20, 256, 512)),
}
if SHAPE not in SHAPES:
    sys.exit(f"random_gguf: no shape is called '{SHAPE}'; there are {', '.join(SHAPES)}")
name, family, sizes = SHAPES[SHAPE]
layers, width, vocab = sizes[0], sizes[1], sizes[6]
writer = gguf.GGUFWriter(OUT, name)
writer.add_name(SHAPE)
writer.add_block_count(layers)
writer.add_context_length(4096)
writer.add_embedding_length(width)
writer.add_layer_norm_rms_eps(1e-6)
writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
matrix("token_embd", vocab, width)
norm("output_norm", width)
family(writer, *sizes)
pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
add_pieces(writer, pieces + [f"word{i}" for i in range(vocab - len(pieces))], [0.0] * vocab)
for tensor, values in tensors:
    writer.add_tensor(tensor, values)
finish(writer)
