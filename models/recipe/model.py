"""The Llama architecture in PyTorch, with exits, which train.py trains and export.py writes.

The sizes give rho = head / layer parameters of a 7B model, so a head call has the same relative cost."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int = 2048
    context: int = 1024
    rope_base: float = 10000.0
    eps: float = 1e-5

    @property
    def head_dim(self):
        return self.width // self.heads

    @property
    def layer_parameters(self):
        return self.width * (2 * self.heads + 2 * self.kv_heads) * self.head_dim + 3 * self.width * self.ffn

    @property
    def parameters(self):
        return self.vocab * self.width + self.layers * self.layer_parameters

    @property
    def rho(self):
        return self.vocab * self.width / self.layer_parameters


SHAPES = {
    "fables": Shape(layers=16, width=256, heads=4, kv_heads=2, ffn=832),
    "fables-companion": Shape(layers=6, width=192, heads=3, kv_heads=1, ffn=448),
    "fables-draft": Shape(layers=3, width=192, heads=3, kv_heads=1, ffn=448),
}

MATRICES = ("wq", "wk", "wv", "wo", "gate", "up", "down")


def turns(shape, n):
    """Cosines and sines (n, head_dim/2) of positions 0..n-1; pairs are adjacent, as GGUF's llama has them."""
    frequency = shape.rope_base ** (-torch.arange(0, shape.head_dim, 2, dtype=torch.float64) / shape.head_dim)
    angle = torch.arange(n, dtype=torch.float64)[:, None] * frequency
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    """x (batch, heads, n, head_dim)."""
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).to(x.dtype)


def norm(x, weight, eps):
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def layer(shape, p, x, cos, sin):
    """One layer: x (batch, n, width) -> the same. p: its parameters by name."""
    batch, n, _ = x.shape
    y = norm(x, p["attn_norm"], shape.eps)
    q = F.linear(y, p["wq"]).view(batch, n, shape.heads, shape.head_dim).transpose(1, 2)
    k = F.linear(y, p["wk"]).view(batch, n, shape.kv_heads, shape.head_dim).transpose(1, 2)
    v = F.linear(y, p["wv"]).view(batch, n, shape.kv_heads, shape.head_dim).transpose(1, 2)
    group = shape.heads // shape.kv_heads
    q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + F.linear(y.transpose(1, 2).reshape(batch, n, -1), p["wo"])
    y = norm(x, p["ffn_norm"], shape.eps)
    return x + F.linear(F.silu(F.linear(y, p["gate"])) * F.linear(y, p["up"]), p["down"])


class Llama:
    """Parameters by name: 'embedding', 'final_norm', and (l, name) for l in 1..layers. The head is the embedding."""

    def __init__(self, shape, generator):
        self.shape = shape
        self.values = {"embedding": torch.randn(shape.vocab, shape.width, generator=generator) * 0.02,
                       "final_norm": torch.ones(shape.width)}
        inner, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        sizes = {"wq": (inner, shape.width), "wk": (kv, shape.width), "wv": (kv, shape.width), "wo": (shape.width, inner),
                 "gate": (shape.ffn, shape.width), "up": (shape.ffn, shape.width), "down": (shape.width, shape.ffn)}
        for l in range(1, shape.layers + 1):
            self.values[l, "attn_norm"] = torch.ones(shape.width)
            self.values[l, "ffn_norm"] = torch.ones(shape.width)
            for name, (rows, cols) in sizes.items():
                deep = (2 * shape.layers) ** -0.5 if name in ("wo", "down") else 1
                self.values[l, name] = torch.randn(rows, cols, generator=generator) * deep * cols ** -0.5 * 0.5

    def hidden(self, tokens, run=layer, skip=(), values=None):
        """Hidden states of tokens (batch, n), a list by depth 0..layers; layers in `skip` are left out (and repeat)."""
        v = self.values if values is None else values
        cos, sin = turns(self.shape, tokens.shape[1])
        states = [F.embedding(tokens, v["embedding"])]
        for l in range(1, self.shape.layers + 1):
            x = states[-1]
            if l not in skip:
                x = run(self.shape, {n: v[l, n] for n in MATRICES + ("attn_norm", "ffn_norm")}, x, cos, sin)
            states.append(x)
        return states

    def logits(self, state, values=None):
        v = self.values if values is None else values
        return F.linear(norm(state, v["final_norm"], self.shape.eps), v["embedding"])
