"""Trains an EAGLE-3 head for a bundled model: python3 eagle.py TARGET.gguf TALES GENERATED --out HEAD.gguf

Li et al. 2025 (arXiv:2503.01840; docs/policies/eagle.md). The target's quantised weights are read from the file. A step has passages of
both texts, with the target's hidden states, and continuations that the target wrote itself, half of them greedily. The head is trained
with the paper's training-time test: its outputs are its own inputs for --steps steps, with attention to the true features up to the
first step and to its own rows after it. The first 60% of the training have one such step, which costs a fraction. The loss is the
cross-entropy with the target's distribution. Matrices use Muon and the rest AdamW, as in train.py. Values begin as the token's
embedding, which halves the number of steps that a small model needs.

The file has llama.cpp's architecture `eagle3`. Embeddings and LM head are the target's, so they are not stored. With --measure FILE the
tokens in a round are printed for the prompts of a JSONL file, by category, for chains of 1, 3 and 5, by a plain loop without batches."""

import argparse
import dataclasses
import json
import math
import os
import random
import subprocess
import time
from pathlib import Path

import gguf
import numpy as np
import torch
import torch.nn.functional as F

from gguf_file import add_quantised, add_sizes, finish
from model import Model, Shape, norm, rotate, turns
from train import orthogonal
from vocabulary import documents

LENGTH, EOS = 192, 2
PEAK, WARM_UP, FADE, PLAIN = 1e-2, 20, 0.8, 0.6
PASSAGES, OWN = 12, 4  # of a step
NAMES = {"fc": "fc", "emb_norm": "blk.0.attn_norm", "hidden_norm": "blk.0.attn_norm_2", "wq": "blk.0.attn_q", "wk": "blk.0.attn_k",
         "wv": "blk.0.attn_v", "wo": "blk.0.attn_output", "ffn_norm": "blk.0.ffn_norm", "gate": "blk.0.ffn_gate",
         "up": "blk.0.ffn_up", "down": "blk.0.ffn_down", "final_norm": "output_norm"}
LAYER = {"attn_norm": "attn_norm", "ffn_norm": "ffn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v", "wo": "attn_output",
         "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}


def number(reader, key):
    return reader.fields[key].contents()


def read_llama(path):
    """(model.Model with dequantised weights, the reader of the file)"""
    r = gguf.GGUFReader(path)
    shape = Shape(layers=number(r, "llama.block_count"), width=number(r, "llama.embedding_length"), heads=number(r, "llama.attention.head_count"),
                  kv_heads=number(r, "llama.attention.head_count_kv"), ffn=number(r, "llama.feed_forward_length"),
                  vocab=number(r, "llama.vocab_size"), context=number(r, "llama.context_length"),
                  rope_base=number(r, "llama.rope.freq_base"), eps=number(r, "llama.attention.layer_norm_rms_epsilon"))
    tensors = {t.name: torch.from_numpy(gguf.quants.dequantize(t.data, t.tensor_type).copy()) for t in r.tensors}
    model = Model.__new__(Model)
    model.shape = shape
    model.values = {"embedding": tensors["token_embd.weight"], "final_norm": tensors["output_norm.weight"]}
    for l in range(1, shape.layers + 1):
        for ours, theirs in LAYER.items():
            model.values[l, ours] = tensors[f"blk.{l - 1}.{theirs}.weight"]
    return model, r


def tokenize(binary, gguf_path, texts):
    """Token ids of each text, by the program itself; each begins with <s>."""
    out = subprocess.run([binary, "tokenize", "--no-eos", gguf_path], input="</s><s>".join(texts), capture_output=True, text=True, check=True)
    lists = [[]]
    for id_ in map(int, out.stdout.split()):
        if id_ == EOS:
            lists.append([])
        else:
            lists[-1].append(id_)
    assert len(lists) == len(texts) and all(i[0] == 1 for i in lists)
    return lists


class Cache:
    """Rows of the target, one position of all sequences at a time; returns the hidden states at some depths."""

    def __init__(self, model, batch, n):
        s = self.shape = model.shape
        self.model, self.at = model, 0
        self.cos, self.sin = turns(s, n)
        self.k = [torch.zeros(batch, s.kv_heads, n, s.head_dim) for _ in range(s.layers)]
        self.v = [torch.zeros(batch, s.kv_heads, n, s.head_dim) for _ in range(s.layers)]

    def step(self, tokens, depths):
        s, v, n = self.shape, self.model.values, self.at + 1
        cos, sin = self.cos[self.at:n], self.sin[self.at:n]
        x = F.embedding(tokens, v["embedding"])
        states = {}
        for l in range(1, s.layers + 1):
            y = norm(x, v[l, "attn_norm"], s.eps)
            q = rotate(F.linear(y, v[l, "wq"]).view(-1, s.heads, 1, s.head_dim), cos, sin)
            self.k[l - 1][:, :, self.at:n] = rotate(F.linear(y, v[l, "wk"]).view(-1, s.kv_heads, 1, s.head_dim), cos, sin)
            self.v[l - 1][:, :, self.at:n] = F.linear(y, v[l, "wv"]).view(-1, s.kv_heads, 1, s.head_dim)
            y = F.scaled_dot_product_attention(q, self.k[l - 1][:, :, :n], self.v[l - 1][:, :, :n], enable_gqa=True)
            x = x + F.linear(y.reshape(len(x), -1), v[l, "wo"])
            y = norm(x, v[l, "ffn_norm"], s.eps)
            x = x + F.linear(F.silu(F.linear(y, v[l, "gate"])) * F.linear(y, v[l, "up"]), v[l, "down"])
            if l in depths:
                states[l] = x
        self.at = n
        return states


def continue_prompts(model, prompts, temperatures, layers, n=LENGTH):
    """The target continues the prompts. Returns tokens (batch, n + 1), features (batch, n, 3·width) and last hidden states (batch, n,
    width), both in F16, and the number of tokens of each sequence up to its end."""
    s, batch = model.shape, len(prompts)
    tokens = torch.zeros(batch, n + 1, dtype=torch.long)
    given = torch.tensor([len(p) for p in prompts])
    for i, p in enumerate(prompts):
        tokens[i, :len(p)] = torch.tensor(p)
    features = torch.empty(batch, n, 3 * s.width, dtype=torch.float16)
    last = torch.empty(batch, n, s.width, dtype=torch.float16)
    cache = Cache(model, batch, n)
    for t in range(n):
        h = cache.step(tokens[:, t], {*layers, s.layers})
        features[:, t] = torch.cat([h[l] for l in layers], -1).half()
        last[:, t] = h[s.layers].half()
        z = model.logits(h[s.layers])
        drawn = torch.multinomial((z / temperatures.clamp(min=0.05)[:, None]).softmax(-1), 1)[:, 0]
        chosen = torch.where(temperatures > 0, drawn, z.argmax(-1))
        tokens[:, t + 1] = torch.where(t + 1 < given, tokens[:, t + 1], chosen)
    ended = tokens == EOS
    length = torch.where(ended.any(1), ended.int().argmax(1) + 1, n + 1)
    return tokens, features, last, length


# ---- the head ----

def new_head(shape, ffn, generator):
    inner, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    w = shape.width
    sizes = {"fc": (w, 3 * w), "wq": (inner, 2 * w), "wk": (kv, 2 * w), "wv": (kv, 2 * w), "wo": (w, inner), "gate": (ffn, w), "up": (ffn, w),
             "down": (w, ffn)}
    p = {name: torch.randn(rows, cols, generator=generator) * cols ** -0.5 for name, (rows, cols) in sizes.items()}
    p["wv"] = torch.eye(kv, 2 * w) + 0.1 * p["wv"]
    p["wo"] = 0.5 * torch.eye(w, inner) + 0.03 * p["wo"]
    p["down"] *= 0.3
    return p | {name: torch.ones(w) for name in ("emb_norm", "hidden_norm", "ffn_norm", "final_norm")}


def project(shape, p, emb, g):
    """q, k, v (batch, heads, n, head_dim), before rotation."""
    a = torch.cat((norm(emb, p["emb_norm"], shape.eps), norm(g, p["hidden_norm"], shape.eps)), -1)
    split = lambda name, heads: F.linear(a, p[name]).view(*a.shape[:2], heads, shape.head_dim).transpose(1, 2)
    return split("wq", shape.heads), split("wk", shape.kv_heads), split("wv", shape.kv_heads)


def finish(shape, p, g, attention):
    """The layer's output from its input g (batch, n, width) and the attention (batch, heads, n, head_dim)."""
    x = g + F.linear(attention.transpose(1, 2).flatten(2), p["wo"])
    y = norm(x, p["ffn_norm"], shape.eps)
    return x + F.linear(F.silu(F.linear(y, p["gate"])) * F.linear(y, p["up"]), p["down"])


def unrolled(shape, p, embedding, tokens, features, steps):
    """The head's hidden states after its final norm at each step: step j of position t has read token t + 1 + j."""
    n = features.shape[1] - steps
    group = shape.heads // shape.kv_heads
    cos, sin = turns(shape, n + steps)
    future = torch.full((n, n), -torch.inf).triu(1)
    g = F.linear(features[:, :n], p["fc"])
    keys, values, out = [], [], []
    for j in range(steps):
        emb = F.embedding(tokens[:, 1 + j:1 + j + n], embedding).to(g.dtype)
        q, k, v = project(shape, p, emb, g)
        at = slice(j, j + n)
        q, k = rotate(q, cos[at], sin[at]), rotate(k, cos[at], sin[at])
        keys.append(k.repeat_interleave(group, 1))
        values.append(v.repeat_interleave(group, 1))
        own = [(q * k).sum(-1, keepdim=True) for k in keys[1:]]
        weights = torch.cat([q @ keys[0].transpose(2, 3) + future.to(q.dtype), *own], -1).float() / math.sqrt(shape.head_dim)
        weights = weights.softmax(-1).to(q.dtype)
        y = weights[..., :n] @ values[0]
        for i, v in enumerate(values[1:]):
            y = y + weights[..., n + i, None] * v
        g = finish(shape, p, g, y)
        out.append(norm(g, p["final_norm"], shape.eps))
    return out


def passages(model, texts, layers, step):
    """Random passages of the texts in turn: tokens, features and last hidden states, computed in BF16."""
    rng = np.random.default_rng([5, step])
    rows = []
    for i in range(PASSAGES):
        ids = texts[i % len(texts)]
        at = rng.integers(0, len(ids) - LENGTH - 1)
        rows.append(ids[at:at + LENGTH + 1])
    tokens = torch.from_numpy(np.stack(rows))
    with torch.no_grad():
        states = model.hidden(tokens[:, :-1], values={k: v.bfloat16() if v.dim() > 1 else v for k, v in model.values.items()})
    return tokens, torch.cat([states[l] for l in layers], -1), states[-1]


def train(model, shape, p, layers, texts, own, most, count):
    """Changes p, the head of this shape. own: what continue_prompts() returns; most: steps of the training-time test."""
    embedding, head = model.values["embedding"], model.values["embedding"].bfloat16()
    state = {k: [torch.zeros_like(v), torch.zeros_like(v)] for k, v in p.items()}
    started = time.time()
    for step in range(count):
        steps = 1 if step < count * PLAIN else most
        pick = torch.randint(0, len(own[0]), (OWN,), generator=torch.Generator().manual_seed(step))
        tokens, features, last = (torch.cat((a, b[pick].to(a.dtype))) for a, b in zip(passages(model, texts, layers, step), own))
        length = torch.cat((torch.full((PASSAGES,), LENGTH + 1), own[3][pick]))
        values = {k: (v.bfloat16() if v.dim() > 1 else v.clone()).requires_grad_() for k, v in p.items()}
        n = LENGTH - steps
        with torch.no_grad():
            target = F.linear(norm(last.float(), model.values["final_norm"], shape.eps).bfloat16(), head).float().softmax(-1)
        total, hits, sums = 0, [], 0
        for j, y in enumerate(unrolled(shape, values, embedding, tokens, features, steps)):
            counts = (torch.arange(n) + 1 + j < length[:, None] - 1).float()
            says = F.log_softmax(F.linear(y.bfloat16(), head).float(), -1)
            truth = target[:, 1 + j:1 + j + n]
            total = total - FADE ** j * ((truth * says).sum(-1) * counts).sum() / counts.sum()
            sums += FADE ** j
            with torch.no_grad():
                hits.append(float(((says.argmax(-1) == truth.argmax(-1)) * counts).sum() / counts.sum()))
        (total / sums).backward()
        lr = PEAK * min((step + 1) / WARM_UP, (count - step) / max(1, count - WARM_UP))
        with torch.no_grad():
            for k, v in values.items():
                g, (m, s) = v.grad.float(), state[k]
                if v.dim() > 1:
                    m.lerp_(g, 0.05)
                    p[k].mul_(1 - lr * 0.1).sub_(orthogonal(g.lerp(m, 0.95)[None])[0], alpha=lr * 0.2 * math.sqrt(max(v.shape)))
                else:
                    m.lerp_(g, 0.1)
                    s.lerp_(g * g, 0.05)
                    p[k].sub_(m / (1 - 0.9 ** (step + 1)) / ((s / (1 - 0.95 ** (step + 1))).sqrt() + 1e-8), alpha=lr)
        if step % 20 == 0 or step + 1 == count:
            print(f"step {step + 1}/{count}  loss {float(total.detach() / sums):.3f}  first choices agree "
                  f"{' '.join(f'{h:.2f}' for h in hits)}  {time.time() - started:.0f} s", flush=True)


# ---- rounds ----

class Rounds:
    """Greedy rounds of a chain with the head's own KV cache, one row at a time, as the engine computes them."""

    def __init__(self, model, shape, p, tokens, features):
        self.model, self.shape, self.p, self.tokens, self.features = model, shape, p, tokens, features
        self.k, self.v = [], []
        self.cos, self.sin = turns(shape, len(tokens) + 64)

    def row(self, token, g, position):
        s = self.shape
        emb = self.model.values["embedding"][token][None, None]
        q, k, v = project(s, self.p, emb, g[None, None])
        at = slice(position, position + 1)
        del self.k[position:], self.v[position:]
        self.k.append(rotate(k, self.cos[at], self.sin[at]))
        self.v.append(v)
        y = F.scaled_dot_product_attention(rotate(q, self.cos[at], self.sin[at]), torch.cat(self.k, 2), torch.cat(self.v, 2), enable_gqa=True)
        return finish(s, self.p, g[None, None], y)[0, 0]

    def chain(self, n, k):
        """The k drafts after the first n tokens, of which the last is pending: its row's features do not exist yet."""
        for position in range(len(self.k), n - 1):
            g = F.linear(self.features[position].float(), self.p["fc"])
            h = self.row(self.tokens[position + 1], g, position)
        drafts = []
        for j in range(k):
            z = F.linear(norm(h, self.p["final_norm"], self.shape.eps), self.model.values["embedding"])
            drafts.append(int(z.argmax()))
            if j + 1 < k:
                h = self.row(drafts[-1], h, n - 1 + j)
        del self.k[n - 1:], self.v[n - 1:]
        return drafts


def measure(model, shape, p, layers, prompts, chains, n_tokens=128):
    """{K: [tokens in a round of each prompt]} and the acceptance by position of the longest chain."""
    tokens, features, _, length = continue_prompts(model, prompts, torch.zeros(len(prompts)), layers, max(map(len, prompts)) + n_tokens)
    out, reached, accepted = {k: [] for k in chains}, np.zeros(max(chains)), np.zeros(max(chains))
    for i, prompt in enumerate(prompts):
        end = min(int(length[i]), len(prompt) + n_tokens)
        text = tokens[i].tolist()
        for k in chains:
            r, n, rounds = Rounds(model, shape, p, text, features[i]), len(prompt) + 1, 0
            while n < end:
                drafts = r.chain(n, k)
                a = 0
                while a < k and n + a < end and drafts[a] == text[n + a]:
                    a += 1
                if k == max(chains) and n + k < end:
                    reached[:a + 1] += 1 if a < k else 0
                    reached[:k] += 1 if a == k else 0
                    accepted[:a] += 1
                n, rounds = n + a + 1, rounds + 1
            out[k].append((min(n, end) - len(prompt) - 1) / max(1, rounds))
    return out, accepted / np.maximum(reached, 1)


# ---- files ----

def write(p, shape, layers, target, out):
    part = out.with_suffix(".part")
    w = gguf.GGUFWriter(part, "eagle3")
    w.add_name(number(target, "general.name") + "-eagle")
    w.add_license("CC0-1.0")
    add_sizes(w, 1, shape.context, shape.width, len(p["gate"]), shape.heads, shape.kv_heads, shape.eps)
    w.add_rope_freq_base(shape.rope_base)
    w.add_rope_dimension_count(shape.head_dim)
    w.add_vocab_size(shape.vocab)
    w.add_array("eagle3.target_layers", layers)
    w.add_uint32("eagle3.target_hidden_size", shape.width)
    w.add_bool("eagle3.norm_before_residual", False)
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    for key, field in target.fields.items():  # llama.cpp reads the vocabulary from the head's file, too
        if key.startswith("tokenizer."):
            kind = field.types[0]
            w.add_key_value(key, field.contents(), kind, field.types[1] if kind == gguf.GGUFValueType.ARRAY else None)
    for ours, theirs in NAMES.items():
        value = p[ours].float().numpy()
        if value.ndim == 1:
            w.add_tensor(theirs + ".weight", value)
        else:
            add_quantised(w, theirs + ".weight", value)
    finish(w)
    os.replace(part, out)


def read_head(path, shape):
    """(the head, its shape, the layers that it reads)"""
    r = gguf.GGUFReader(path)
    t = {x.name: torch.from_numpy(gguf.quants.dequantize(x.data, x.tensor_type).copy()) for x in r.tensors}
    shape = dataclasses.replace(shape, kv_heads=number(r, "eagle3.attention.head_count_kv"))
    return {ours: t[theirs + ".weight"] for ours, theirs in NAMES.items()}, shape, number(r, "eagle3.target_layers")


def own_text(o, model, layers, starts, rng):
    """The target's continuations of the documents' first tokens."""
    started, parts = time.time(), []
    prompts = [ids[:rng.randrange(8, 65)] for ids in tokenize(o.binary, o.target, starts)]
    temperatures = torch.tensor([rng.choice((0, 0, 0.7, 1)) for _ in prompts], dtype=torch.float32)
    with torch.no_grad():
        for i in range(0, len(prompts), 128):
            parts.append(continue_prompts(model, prompts[i:i + 128], temperatures[i:i + 128], layers))
            print(f"{i + len(parts[-1][0])} continuations: {time.time() - started:.0f} s", flush=True)
    return tuple(torch.cat([p[i] for p in parts]) for i in range(4))


def read_texts(o, rng):
    """(token ids of each text, documents to continue): what train.py trains on; every 50th document is held out."""
    texts, starts = [], []
    for path, tales in ((o.tales, True), (o.generated, False)):
        documents_ = [d for i, d in enumerate(documents(path.read_text(), tales)) if i % 50 != 49]
        rng.shuffle(documents_)
        starts += [d[:400] for d in documents_[:o.sequences // 2]]
        sizes = np.cumsum([len(d) for d in documents_])
        texts.append(np.concatenate([np.array(ids + [EOS]) for ids in
                                     tokenize(o.binary, o.target, documents_[:int((sizes < o.bytes).sum())])]))
    rng.shuffle(starts)
    return texts, starts


def main():
    o = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    o.add_argument("target")
    o.add_argument("tales", type=Path, nargs="?")
    o.add_argument("generated", type=Path, nargs="?")
    o.add_argument("--out", type=Path, required=True)
    o.add_argument("--measure", type=Path, help="prompts in Spec-Bench's form; trains nothing if no text is given")
    o.add_argument("--binary", default="build/specscope")
    o.add_argument("--bytes", type=int, default=6_000_000, help="of each text")
    o.add_argument("--sequences", type=int, default=384, help="continuations by the target")
    o.add_argument("--count", type=int, default=1200, help="steps of the optimiser")
    o.add_argument("--steps", type=int, default=4, help="steps of the training-time test")
    o.add_argument("--ffn", type=int, default=832)
    o.add_argument("--layers", type=int, nargs=3, help="features: hidden states after so many layers (2, L/2, L-3)")
    o.add_argument("--threads", type=int, default=os.cpu_count())
    o = o.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(o.threads)
    model, reader = read_llama(o.target)
    if o.generated:
        layers = o.layers or [2, model.shape.layers // 2, model.shape.layers - 3]
        shape, rng = dataclasses.replace(model.shape, kv_heads=model.shape.heads), random.Random(1)
        texts, starts = read_texts(o, rng)
        own = own_text(o, model, layers, starts, rng)
        p = new_head(shape, o.ffn, torch.Generator().manual_seed(1))
        train(model, shape, p, layers, texts, own, o.steps, o.count)
        write(p, shape, layers, reader, o.out)
        print(f"{o.out}: {o.out.stat().st_size / 1e6:.2f} MB")
    if o.measure:
        p, shape, layers = read_head(o.out, model.shape)
        lines = [json.loads(line) for line in o.measure.read_text().splitlines()]
        prompts = tokenize(o.binary, o.target, [line["turns"][0] for line in lines])
        with torch.inference_mode():
            rounds, positions = measure(model, shape, p, layers, prompts, (1, 3, 5))
        for kind in dict.fromkeys(line["category"] for line in lines):
            of = [i for i, line in enumerate(lines) if line["category"] == kind]
            print(f"  {kind:10} " + "  ".join(f"K = {k}: {np.mean([v[i] for i in of]):.2f}" for k, v in rounds.items()))
        print("tokens in a round: " + "  ".join(f"K = {k}: {np.mean(v):.2f}" for k, v in rounds.items()) +
              "; accepted by position " + " ".join(f"{a:.2f}" for a in positions))


if __name__ == "__main__":
    main()
