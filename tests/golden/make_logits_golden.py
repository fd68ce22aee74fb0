#!/usr/bin/env python3
"""Golden logits of a Llama-architecture GGUF file, in double precision, by an implementation of its own.

    pip install numpy gguf
    python3 tests/golden/make_logits_golden.py models/fables-13m-q8_0.gguf > tests/golden/logits_fables.txt

The output: '#' comments; a line `tokens` with the ids of the path; then for each golden row a line `row POSITION LAYER`
and the vocabulary's logits, one a line. Layers below the last are seen through the final norm and the LM head.
"""
import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

TOKENS = [1, 900, 77, 1203, 301, 5, 1999, 640, 12, 333, 1024, 48, 2047, 700, 259, 260, 1500, 88, 419, 3, 1111, 902, 77, 640]
ROWS = [(23, None), (11, 6)]  # (position, layer); None: the last layer

reader = GGUFReader(sys.argv[1])
tensors = {t.name: dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}


def number(key):
    field = reader.fields["llama." + key]
    return field.parts[field.data[0]][0].item()


heads, kv_heads = number("attention.head_count"), number("attention.head_count_kv")
layers, eps = number("block_count"), number("attention.layer_norm_rms_epsilon")
base = number("rope.freq_base") if "llama.rope.freq_base" in reader.fields else 10000.0


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def rope(x):  # (positions, heads, head_dim): adjacent pairs turn together
    n, _, dim = x.shape
    angle = np.arange(n)[:, None] * base ** (-np.arange(0, dim, 2) / dim)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2], out[..., 1::2] = a * cos - b * sin, a * sin + b * cos
    return out


def layer(x, l):
    w = lambda name: tensors[f"blk.{l}.{name}.weight"]
    n = len(x)
    h = norm(x, w("attn_norm"))
    q = rope((h @ w("attn_q").T).reshape(n, heads, -1))
    k = rope((h @ w("attn_k").T).reshape(n, kv_heads, -1))
    v = (h @ w("attn_v").T).reshape(n, kv_heads, -1)
    k, v = (np.repeat(t, heads // kv_heads, axis=1) for t in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
    scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    x = x + np.einsum("hqk,khd->qhd", p, v).reshape(n, -1) @ w("attn_output").T
    h = norm(x, w("ffn_norm"))
    gate = h @ w("ffn_gate").T
    return x + (gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T


head = tensors.get("output.weight", tensors["token_embd.weight"])
x = tensors["token_embd.weight"][TOKENS]
hidden = [x]
for l in range(layers):
    hidden.append(x := layer(x, l))

print("# made by make_logits_golden.py from", sys.argv[1].split("/")[-1])
print("tokens", *TOKENS)
for position, at in ROWS:
    at = layers if at is None else at
    print("row", position, at)
    for z in head @ norm(hidden[at][position], tensors["output_norm.weight"]):
        print("%.7g" % z)
