"""Trains the bundled block drafter: python3 block.py MODEL.gguf TALES GENERATED --work FOLDER --out FILE.gguf

DSpark (docs/policies/dflash.md), small: layers of Qwen3's form over the target's hidden states, a Markov head of low
rank and a confidence head. Decoding is mostly greedy, so passages are what the target itself writes greedily after
beginnings of texts. A step takes random anchors in each passage; the block of an anchor attends to the positions before
it and to itself. The weights of a block's positions decay, as the probability that they count does.

Passages are written in groups while the training needs them, and kept in the folder with the target's states. A
checkpoint is written every few minutes, and the same command resumes from it with the same results."""

import argparse
import os
import time
from pathlib import Path

import gguf
import numpy as np
import torch
import torch.nn.functional as F

from export import HYBRID, TENSORS, read
from gguf_file import BLOCK_LAYER, write_block_drafter
from model import Model, Shape, mlp, norm, rotate_part, turns
from train import Optimizer
from vocabulary import encode, vocabulary_of

FEATURES = (2, 6, 10, 14)  # the target's layers after which the drafter reads
SHAPE = Shape(layers=2, width=256, heads=4, kv_heads=2, ffn=448)
BLOCK, RANK, MASK = 8, 64, 4  # MASK: <0x00>, which no text has
LENGTH, GROUP, STEPS_A_GROUP = 192, 128, 80  # passages in a group, and steps until the next one
PASSAGES, ANCHORS = 16, 16  # in a step
PEAK, WARM_UP = 3e-3, 40
DECAY, BASE = 4.0, 0.3  # of a block's weights, in positions; weight of the loss without the Markov bias
NAMES = {"context_norm": "hidden_norm.weight", "final_norm": "norm.weight", "fc": "fc.weight",
         "w1": "markov_head.markov_w1.weight", "w2": "markov_head.markov_w2.weight",
         "confidence": "confidence_head.proj.weight", "confidence_bias": "confidence_head.proj.bias"}


@torch.no_grad()
def write_group(model, sources, seed, rows=GROUP):
    """Passages (rows, LENGTH), half from each source, that the target continues greedily; their features and normed last
    states, one after the other, in F16; and the length of the beginnings."""
    rng = np.random.default_rng(seed)
    first = int(rng.choice((16, 32, 64, 96)))
    tokens = np.empty((rows, first), dtype=np.int64)
    for i in range(rows):
        ids = sources[i % len(sources)]
        at = rng.integers(0, len(ids) - first)
        tokens[i] = ids[at:at + first]
    tokens[:, 0] = 1  # <s>
    shape, tokens, states = model.shape, torch.from_numpy(tokens), []
    cache = torch.empty(shape.layers, 2, rows, shape.kv_heads, LENGTH, shape.head_dim)
    new = tokens
    while True:
        depths = model.advance(new, cache, tokens.shape[1] - new.shape[1])
        last = norm(depths[-1], model.values["final_norm"], shape.eps)
        states.append(torch.cat([depths[l] for l in FEATURES] + [last], -1).half())
        if tokens.shape[1] == LENGTH:
            return tokens, torch.cat(states, 1), first
        new = F.linear(last[:, -1:], model.values["embedding"]).argmax(-1)
        tokens = torch.cat((tokens, new), 1)


def group(model, sources, work, i):
    """Group i, from the folder if it is there."""
    path = work / f"group{i}.pt"
    if not path.exists():
        torch.save(write_group(model, sources, [11, i]), path.with_suffix(".part"))
        os.replace(path.with_suffix(".part"), path)
    return torch.load(path)


class Drafter:
    """Parameters by name, as Model has them; embedding and head are the target's. Features are divided by their root mean
    square in `states`, because some are a hundred times as large as others; export() puts this into fc."""

    def __init__(self, target, states, generator):
        model, width = Model(SHAPE, generator), SHAPE.width
        self.shape, self.values, self.embedding = SHAPE, model.values, target.values["embedding"]
        self.scale = states[..., :-width].float().pow(2).mean((0, 1)).rsqrt()
        del self.values["embedding"]
        self.values["final_norm"] = target.values["final_norm"].clone()
        vocab = len(self.embedding)
        for l in range(1, SHAPE.layers + 1):
            self.values |= {(l, "q_norm"): torch.ones(SHAPE.head_dim), (l, "k_norm"): torch.ones(SHAPE.head_dim)}
        inputs = len(FEATURES) * width
        self.values |= {"fc": torch.randn(width, inputs, generator=generator) * inputs ** -0.5,
                        "context_norm": torch.ones(width), "w1": torch.randn(vocab, RANK, generator=generator) * 0.1,
                        "w2": torch.zeros(vocab, RANK), "confidence": torch.zeros(1, width + RANK),
                        "confidence_bias": torch.zeros(1)}

    def hidden(self, v, tokens, features, anchors):
        """Normed last states of blocks (passages, anchors, BLOCK, width), from tokens (passages, n), the target's features
        there, and the blocks' first positions (passages, anchors)."""
        shape, (passages, n) = self.shape, tokens.shape
        at = (anchors[..., None] + torch.arange(BLOCK)).flatten(1)
        rows = at.shape[1]
        ids = torch.full((*anchors.shape, BLOCK), MASK)
        ids[..., 0] = tokens.gather(1, anchors)
        x = F.embedding(ids.flatten(1), self.embedding)
        g = norm(F.linear(features * self.scale, v["fc"]), v["context_norm"], shape.eps)
        block = torch.arange(rows) // BLOCK
        before = torch.arange(n)[None, None] < anchors.repeat_interleave(BLOCK, 1)[..., None]
        own = (block[:, None] == block[None]).expand(passages, rows, rows)
        mask = torch.cat((before, own), 2)[:, None]
        cos, sin = (t[torch.cat((torch.arange(n).expand(passages, n), at), 1)][:, None] for t in turns(shape, n + BLOCK))
        for l in range(1, shape.layers + 1):
            p = {k[1]: value for k, value in v.items() if k[0] == l}
            y = norm(x, p["attn_norm"], shape.eps)
            both = torch.cat((g, y), 1)
            q, k, value = (F.linear(z, p[name]).view(passages, z.shape[1], -1, shape.head_dim).transpose(1, 2)
                           for z, name in ((y, "wq"), (both, "wk"), (both, "wv")))
            q = rotate_part(norm(q, p["q_norm"], shape.eps), cos[:, :, n:], sin[:, :, n:])
            k = rotate_part(norm(k, p["k_norm"], shape.eps), cos, sin)
            o = F.scaled_dot_product_attention(q, k, value, attn_mask=mask, enable_gqa=True)
            x = x + F.linear(o.transpose(1, 2).flatten(2), p["wo"])
            x = x + mlp(p, norm(x, p["ffn_norm"], shape.eps))
        return norm(x, v["final_norm"], shape.eps).view(passages, -1, BLOCK, shape.width)

    def predict(self, v, tokens, states, anchors):
        """For all rows of the blocks: logits without and with the Markov bias of the true token before, confidences before
        the sigmoid, and the target's logits."""
        width, states = self.shape.width, states.float()
        h = self.hidden(v, tokens, states[..., :-width], anchors)
        at = (anchors[..., None] + torch.arange(BLOCK)).flatten(1)
        w1 = F.embedding(tokens.gather(1, at).view(h.shape[:3]), v["w1"])
        base = F.linear(h, self.embedding)
        confidence = F.linear(torch.cat((h, w1), -1).detach(), v["confidence"], v["confidence_bias"])[..., 0]
        final = states[..., -width:].gather(1, at[..., None].expand(-1, -1, width)).view(h.shape)
        return base, base + F.linear(w1, v["w2"]), confidence, F.linear(final, self.embedding)

    def loss(self, v, tokens, states, anchors):
        """Cross-entropy with the mean of the target's distribution and its choice. (total, the part with the bias)"""
        base, biased, confidence, wanted = self.predict(v, tokens, states, anchors)
        weights = torch.exp(-torch.arange(BLOCK) / DECAY)
        weights = weights / weights.sum() / anchors.numel()
        choice = wanted.argmax(-1)
        p = (wanted.softmax(-1) / 2).scatter_add_(-1, choice[..., None], torch.full((*choice.shape, 1), 0.5)).flatten(0, 2)
        first, second = (F.cross_entropy(z.flatten(0, 2), p, reduction="none").view(choice.shape) for z in (biased, base))
        sure = F.binary_cross_entropy_with_logits(confidence, (biased.argmax(-1) == choice).float(), reduction="none")
        return ((first + BASE * second + sure) * weights).sum(), float((first * weights).sum().detach())


@torch.no_grad()
def report(drafter, name, tokens, states, first):
    """Prints what greedy rounds accept from the end of each beginning on, without the Markov bias and with it."""
    accepted = ([], [])
    for t, s in zip(tokens, states):
        anchors = torch.arange(first, LENGTH - BLOCK)[None]
        base, biased, _, wanted = drafter.predict(drafter.values, t[None], s[None], anchors)
        for of_kind, z in zip(accepted, (base, biased)):
            lengths, at = (z.argmax(-1) == wanted.argmax(-1))[0].int().cumprod(1).sum(1), 0
            while at < len(lengths):
                of_kind.append(int(lengths[at]))
                at += of_kind[-1] + 1
    for kind, a in zip(("dflash", "dspark"), map(np.array, accepted)):
        after = " ".join(f"{(a > j).sum() / max(1, (a >= j).sum()):.2f}" for j in range(BLOCK))
        print(f"  held out, {name}, {kind}: {a.mean() + 1:.2f} tokens a round; accepted after accepted ones: {after}", flush=True)


def export(out, drafter, reader):
    """Writes the drafter in Q8_0, with the target's vocabulary."""
    stems = {theirs: stem for stem, theirs in BLOCK_LAYER.items()}

    def name(key):
        return f"layers.{key[0] - 1}.{stems[(HYBRID | TENSORS)[key[1]]]}.weight" if isinstance(key, tuple) else NAMES[key]

    def add_vocabulary(writer):
        writer.add_license("CC0-1.0")
        for field in reader.fields.values():
            if field.name.startswith("tokenizer."):
                value, kind = field.contents(), field.types[0]
                writer.add_array(field.name, value) if isinstance(value, list) else writer.add_key_value(field.name, value, kind)

    shape = drafter.shape
    sizes = {"layers": shape.layers, "context": shape.context, "width": shape.width, "ffn": shape.ffn, "heads": shape.heads,
             "kv_heads": shape.kv_heads, "head_dim": shape.head_dim, "eps": shape.eps, "rope_base": shape.rope_base,
             "block": BLOCK, "mask": MASK, "target_layers": FEATURES, "from_anchor": True}
    tensors = {name(k): (v * drafter.scale if k == "fc" else v).numpy() for k, v in drafter.values.items()}
    write_block_drafter(out, sizes, tensors, add_vocabulary, gguf.GGMLQuantizationType.Q8_0, "fables-block")
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def main():
    o = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    o.add_argument("model", type=Path)
    o.add_argument("tales", type=Path)
    o.add_argument("generated", type=Path)
    o.add_argument("--work", type=Path, required=True, help="checkpoints, tokens and passages go here")
    o.add_argument("--out", type=Path, required=True)
    o.add_argument("--steps", type=int, default=2300)
    o.add_argument("--threads", type=int, default=os.cpu_count())
    o = o.parse_args()
    o.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(o.threads)
    target, reader = read(o.model)
    vocabulary = vocabulary_of(reader)
    texts = [encode(path, vocabulary, o.work / f"block-{path.stem}", path == o.tales) for path in (o.tales, o.generated)]
    held = {name: write_group(target, [text[1]], [13], 12) for name, text in zip(("tales", "generated"), texts)}
    sources = [text[0] for text in texts]
    drafter = Drafter(target, group(target, sources, o.work, 0)[1], torch.Generator().manual_seed(1))
    optimizer, first, checkpoint = Optimizer(drafter), 0, o.work / "block.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint)
        drafter.values, first = state["values"], state["step"]
        optimizer.load(state["optimizer"])
    pool, saved = [], time.time()
    for step in range(first, o.steps):
        while len(pool) < 2 + step // STEPS_A_GROUP:
            pool.append(group(target, sources, o.work, len(pool)))
        rng = np.random.default_rng([17, step])
        tokens, states, _ = pool[rng.integers(len(pool))]
        rows = torch.from_numpy(rng.choice(GROUP, PASSAGES, replace=False))
        anchors = torch.from_numpy(rng.integers(1, LENGTH - BLOCK, (PASSAGES, ANCHORS)))
        values = {k: v.detach().requires_grad_() for k, v in drafter.values.items()}
        total, ce = drafter.loss(values, tokens[rows], states[rows], anchors)
        total.backward()
        rate = PEAK * min((step + 1) / WARM_UP, (o.steps - step) / (o.steps - WARM_UP))
        with torch.no_grad():
            gradient = optimizer.step({k: v.grad for k, v in values.items()}, step, rate)
        if step % 20 == 0 or step + 1 == o.steps:
            print(f"step {step + 1}/{o.steps}  loss {ce:.3f}  all {float(total.detach()):.3f}  gradient {gradient:.2f}", flush=True)
        if step + 1 == o.steps or time.time() - saved > 300:
            part = checkpoint.with_suffix(".part")
            torch.save({"values": drafter.values, "optimizer": optimizer.state(), "step": step + 1}, part)
            os.replace(part, checkpoint)
            for name, passages in held.items():
                report(drafter, name, *passages)
            saved = time.time()
    export(o.out, drafter, reader)


if __name__ == "__main__":
    main()
