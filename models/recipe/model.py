"""The architectures in PyTorch, with exits, which train.py trains and export.py writes: Llama's, and Qwen3.5's for a hybrid.

The sizes of the first three give rho = head / layer parameters of a 7B model, so a head call has the same relative cost."""

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
    attention_every: int = 0  # every nth layer is attention, the others gated delta nets; 0: Llama

    @property
    def head_dim(self):
        return self.width // self.heads

    @property
    def rotated(self):
        return self.head_dim // 4 if self.attention_every else self.head_dim

    def matrices(self, l):
        """Names and (rows, cols) of the matrices of layer l."""
        inner, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        mlp = {"gate": (self.ffn, self.width), "up": (self.ffn, self.width), "down": (self.width, self.ffn)}
        if self.attention_every and l % self.attention_every:
            return {"qkv": (3 * inner, self.width), "z": (inner, self.width), "out": (self.width, inner)} | mlp
        queries = 2 * inner if self.attention_every else inner
        return {"wq": (queries, self.width), "wk": (kv, self.width), "wv": (kv, self.width), "wo": (self.width, inner)} | mlp

    @property
    def parameters(self):
        return self.vocab * self.width + sum(r * c for l in range(1, self.layers + 1) for r, c in self.matrices(l).values())

    @property
    def rho(self):
        return self.vocab * self.width * self.layers / (self.parameters - self.vocab * self.width)


SHAPES = {
    "fables": Shape(layers=16, width=256, heads=4, kv_heads=2, ffn=832),
    "fables-companion": Shape(layers=6, width=192, heads=3, kv_heads=1, ffn=448),
    "fables-draft": Shape(layers=3, width=192, heads=3, kv_heads=1, ffn=448),
    "fables-hybrid": Shape(layers=12, width=128, heads=2, kv_heads=1, ffn=320, eps=1e-6, attention_every=4),
}

TAPS, CHUNK = 4, 64  # of the convolution; positions that a delta net computes together


def turns(shape, n):
    """Cosines and sines (n, rotated/2) of positions 0..n-1; pairs are adjacent, as GGUF's llama has them."""
    frequency = shape.rope_base ** (-torch.arange(0, shape.rotated, 2, dtype=torch.float64) / shape.rotated)
    angle = torch.arange(n, dtype=torch.float64)[:, None] * frequency
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    """x (batch, heads, n, head_dim)."""
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).to(x.dtype)


def norm(x, weight, eps):
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def rotate_part(x, cos, sin):
    """The same for the leading dimensions, whose pairs are (i, i + half), as in Qwen3.5."""
    half = cos.shape[-1]
    first, second = x[..., :half].float(), x[..., half:2 * half].float()
    turned = torch.cat((first * cos - second * sin, first * sin + second * cos), -1)
    return torch.cat((turned.to(x.dtype), x[..., 2 * half:]), -1)


def attention(shape, p, y, cos, sin):
    """Attention before its output matrix. Qwen3.5's has norms of queries and keys, and a gate beside each query."""
    batch, n, _ = y.shape
    gated = "q_norm" in p
    q = F.linear(y, p["wq"]).view(batch, n, shape.heads, -1).transpose(1, 2)
    k = F.linear(y, p["wk"]).view(batch, n, shape.kv_heads, shape.head_dim).transpose(1, 2)
    v = F.linear(y, p["wv"]).view(batch, n, shape.kv_heads, shape.head_dim).transpose(1, 2)
    if gated:
        q, gate = q.split(shape.head_dim, -1)
        q, k = norm(q, p["q_norm"], shape.eps), norm(k, p["k_norm"], shape.eps)
    turn, group = rotate_part if gated else rotate, shape.heads // shape.kv_heads
    k, v = turn(k, cos, sin).repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    o = F.scaled_dot_product_attention(turn(q, cos, sin), k, v, is_causal=True)
    return ((o * gate.sigmoid()) if gated else o).transpose(1, 2).reshape(batch, n, -1)


def delta_net(shape, p, y):
    """A gated delta net (docs/methods.md) before its output matrix, in chunks. With S before a chunk, and g the product of the
    decays up to a position, the changes d of S solve a triangular system: d_i + b_i sum_(j<i) g_i/g_j (k_i k_j) d_j
    = b_i (v_i - g_i S k_i)."""
    batch, n, _ = y.shape
    heads, dim = shape.heads, shape.head_dim
    x = F.pad(F.linear(y, p["qkv"]).float().transpose(1, 2), (TAPS - 1, 0))
    x = F.silu(F.conv1d(x, p["conv"].float()[:, None], groups=3 * heads * dim))
    q, k, v = x.view(batch, 3, heads, dim, n).transpose(3, 4).unbind(1)
    q, k = (t * torch.rsqrt(t.pow(2).sum(-1, keepdim=True) + 1e-6) for t in (q, k))
    b = F.linear(y, p["b"]).float().sigmoid().transpose(1, 2)[..., None]
    log_decay = (-p["decay"].exp() * F.softplus(F.linear(y, p["a"]).float() + p["step"])).transpose(1, 2)
    state, parts = y.new_zeros((batch, heads, dim, dim), dtype=torch.float32), []
    for i in range(0, n, CHUNK):
        part = slice(i, i + CHUNK)
        qi, ki, vi, bi, g = q[:, :, part] * dim**-0.5, k[:, :, part], v[:, :, part], b[:, :, part], log_decay[..., part].cumsum(-1)
        ratio, all_ = (g[..., :, None] - g[..., None, :]).tril().exp().tril(), g.exp()[..., None]
        system = (bi * (ki @ ki.mT) * ratio).tril(-1)
        d = torch.linalg.solve_triangular(system, bi * (vi - all_ * (ki @ state)), upper=False, unitriangular=True)
        parts.append(all_ * (qi @ state) + ((qi @ ki.mT) * ratio) @ d)
        last = g[..., -1:]
        state = last.exp()[..., None] * state + (ki * (last - g).exp()[..., None]).mT @ d
    z = F.linear(y, p["z"]).view(batch, n, heads, dim)
    return (norm(torch.cat(parts, 2).transpose(1, 2).to(y.dtype), p["delta_norm"], shape.eps) * F.silu(z)).flatten(2)


def mlp(p, y):
    return F.linear(F.silu(F.linear(y, p["gate"])) * F.linear(y, p["up"]), p["down"])


def layer(shape, p, x, cos, sin):
    """One layer: x (batch, n, width) -> the same. p: its parameters by name."""
    y = norm(x, p["attn_norm"], shape.eps)
    x = x + (F.linear(delta_net(shape, p, y), p["out"]) if "qkv" in p else F.linear(attention(shape, p, y, cos, sin), p["wo"]))
    return x + mlp(p, norm(x, p["ffn_norm"], shape.eps))


class Model:
    """Parameters by name: 'embedding', 'final_norm', and (l, name) for l in 1..layers. The head is the embedding."""

    def __init__(self, shape, generator):
        self.shape = shape
        self.values = {"embedding": torch.randn(shape.vocab, shape.width, generator=generator) * 0.02,
                       "final_norm": torch.ones(shape.width)}
        for l in range(1, shape.layers + 1):
            self.values[l, "attn_norm"] = torch.ones(shape.width)
            self.values[l, "ffn_norm"] = torch.ones(shape.width)
            for name, (rows, cols) in shape.matrices(l).items():
                deep = (2 * shape.layers) ** -0.5 if name in ("wo", "out", "down") else 1
                self.values[l, name] = torch.randn(rows, cols, generator=generator) * deep * cols ** -0.5 * 0.5
            if (l, "qkv") in self.values:
                heads, dim = shape.heads, shape.head_dim
                self.values |= {(l, "conv"): torch.randn(3 * heads * dim, TAPS, generator=generator) * 0.5,
                                (l, "a"): torch.randn(heads, shape.width, generator=generator) * 0.02,
                                (l, "b"): torch.randn(heads, shape.width, generator=generator) * 0.02,
                                (l, "decay"): torch.linspace(-1, 1, heads), (l, "step"): torch.linspace(-4, -2, heads),
                                (l, "delta_norm"): torch.ones(dim)}
            elif shape.attention_every:
                self.values |= {(l, "q_norm"): torch.ones(shape.head_dim), (l, "k_norm"): torch.ones(shape.head_dim)}

    def hidden(self, tokens, run=layer, skip=(), values=None):
        """Hidden states of tokens (batch, n), a list by depth 0..layers; layers in `skip` are left out (and repeat)."""
        v = self.values if values is None else values
        cos, sin = turns(self.shape, tokens.shape[1])
        states = [F.embedding(tokens, v["embedding"])]
        for l in range(1, self.shape.layers + 1):
            x = states[-1]
            if l not in skip:
                x = run(self.shape, {k[1]: p for k, p in v.items() if k[0] == l}, x, cos, sin)
            states.append(x)
        return states

    def advance(self, tokens, cache, start):
        """Hidden states of tokens (batch, n) at positions start, start + 1, …, a list by depth. All of a prompt come at first,
        then one token a call. cache (layers, 2, batch, kv_heads, length, head_dim) keeps keys and values."""
        shape, v = self.shape, self.values
        batch, n = tokens.shape
        end = start + n
        cos, sin = (t[start:] for t in turns(shape, end))
        states = [F.embedding(tokens, v["embedding"])]
        for l in range(1, shape.layers + 1):
            x = states[-1]
            y = norm(x, v[l, "attn_norm"], shape.eps)
            q, k, value = (F.linear(y, v[l, m]).view(batch, n, -1, shape.head_dim).transpose(1, 2) for m in ("wq", "wk", "wv"))
            q, keys, values = rotate(q, cos, sin), *cache[l - 1, :, :, :, :end]
            keys[:, :, start:], values[:, :, start:] = rotate(k, cos, sin), value
            if start:  # the heads of a group are rows
                rows = q.reshape(batch, shape.kv_heads, -1, shape.head_dim)
                o = F.scaled_dot_product_attention(rows, keys, values).view(q.shape)
            else:
                o = F.scaled_dot_product_attention(q, keys, values, is_causal=True, enable_gqa=True)
            x = x + F.linear(o.transpose(1, 2).flatten(2), v[l, "wo"])
            y = norm(x, v[l, "ffn_norm"], shape.eps)
            states.append(x + mlp({m: v[l, m] for m in ("gate", "up", "down")}, y))
        return states

    def logits(self, state, values=None):
        v = self.values if values is None else values
        return F.linear(norm(state, v["final_norm"], self.shape.eps), v["embedding"])
