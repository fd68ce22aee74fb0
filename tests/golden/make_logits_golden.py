#!/usr/bin/env python3
"""Golden logits of a Llama, Mistral or Qwen GGUF file, in double precision, by an implementation of its own.

    pip install numpy gguf
    python3 tests/golden/make_logits_golden.py models/fables-q8_0.gguf > tests/golden/logits_fables.txt
    python3 tests/golden/make_logits_golden.py --check tests/golden/models/qwen2.gguf tests/golden/models/qwen2.txt

The second form prints the difference between another program's golden logits and those of this script.

The output: '#' comments; a line `tokens` with the ids of the path; then for each golden row a line `row POSITION LAYER`
and the vocabulary's logits, one a line. Layers below the last are seen through the final norm and the LM head.
"""
import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

TOKENS = [1, 900, 77, 1203, 301, 5, 1999, 640, 12, 333, 1024, 48, 2047, 700, 259, 260, 1500, 88, 419, 3, 1111, 902, 77, 640]
ROWS = [(23, None), (11, 6)]  # (position, layer); None: the last layer

CHECK = sys.argv[1] == "--check"
reader = GGUFReader(sys.argv[2 if CHECK else 1])
tensors = {t.name: dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}
arch = bytes(reader.fields["general.architecture"].parts[-1]).decode()


def number(key, otherwise=None):
    field = reader.fields.get(f"{arch}.{key}")
    return otherwise if field is None else field.parts[field.data[0]][0].item()


heads, kv_heads = number("attention.head_count"), number("attention.head_count_kv")
layers, eps = number("block_count"), number("attention.layer_norm_rms_epsilon")
base, scale = number("rope.freq_base", 10000.0), 1 / number("rope.scaling.factor", 1)
window = number("attention.sliding_window", 0)


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def rope(x):  # (positions, heads, head_dim): pairs turn together, adjacent ones in Llama's files, halves in others
    n, _, dim = x.shape
    angle = np.arange(n)[:, None] * scale * base ** (-np.arange(0, dim, 2) / dim) / tensors.get("rope_freqs.weight", 1)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    one, two = (slice(0, None, 2), slice(1, None, 2)) if arch == "llama" else (slice(0, dim // 2), slice(dim // 2, None))
    out = np.empty_like(x)
    out[..., one], out[..., two] = x[..., one] * cos - x[..., two] * sin, x[..., one] * sin + x[..., two] * cos
    return out


def layer(x, l):
    w = lambda name, kind="weight", otherwise=None: tensors.get(f"blk.{l}.{name}.{kind}", otherwise)
    n = len(x)
    h = norm(x, w("attn_norm"))
    project = lambda name, many: (h @ w(name).T + w(name, "bias", 0)).reshape(n, many, -1)
    q, k, v = project("attn_q", heads), project("attn_k", kv_heads), project("attn_v", kv_heads)
    if w("attn_q_norm") is not None:
        q, k = norm(q, w("attn_q_norm")), norm(k, w("attn_k_norm"))
    q, k = rope(q), rope(k)
    k, v = (np.repeat(t, heads // kv_heads, axis=1) for t in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
    back = np.arange(n)[:, None] - np.arange(n)
    scores[:, (back < 0) | (back >= (window or n))] = -np.inf
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    x = x + np.einsum("hqk,khd->qhd", p, v).reshape(n, -1) @ w("attn_output").T
    h = norm(x, w("ffn_norm"))
    gate = h @ w("ffn_gate").T
    return x + (gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T


head = tensors.get("output.weight", tensors["token_embd.weight"])


def hidden_states(tokens):
    states = [tensors["token_embd.weight"][tokens]]
    for l in range(layers):
        states.append(layer(states[-1], l))
    return states


if CHECK:
    rows = []
    for line in open(sys.argv[3]):
        if line.startswith("tokens"):
            TOKENS = [int(t) for t in line.split()[1:]]
        elif line.startswith("row"):
            rows.append((*map(int, line.split()[1:]), []))
        elif line[0] != "#":
            rows[-1][2].append(float(line))
    hidden = hidden_states(TOKENS)
    for position, at, golden in rows:
        ours = head @ norm(hidden[at][position], tensors["output_norm.weight"])
        print("row", position, at, "differs by %.2g" % (np.linalg.norm(ours - golden) / np.linalg.norm(golden)))
    sys.exit()

hidden = hidden_states(TOKENS)
print("# made by make_logits_golden.py from", sys.argv[1].split("/")[-1])
print("tokens", *TOKENS)
for position, at in ROWS:
    at = layers if at is None else at
    print("row", position, at)
    for z in head @ norm(hidden[at][position], tensors["output_norm.weight"]):
        print("%.7g" % z)
