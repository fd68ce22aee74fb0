"""Trains the bundled block drafter: python3 block.py MODEL.gguf TALES GENERATED --work FOLDER --out FILE.gguf

DSpark (docs/methods.md: Block drafters), small: layers of Qwen3's form over the target's hidden states, a Markov head of
low rank and a confidence head. Decoding is mostly greedy, so the passages are what the target itself writes greedily
after the beginnings of texts. A step takes random anchors in each passage; the block of an anchor attends to the
positions before it and to itself. The loss weights of a block's positions decay, as the chance that they count does.

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

from export import TENSORS
from gguf_file import write_block_drafter
from model import Model, Shape, norm, rotate, rotate_part, turns
from train import Optimizer
from vocabulary import encode, vocabulary_of

FEATURES = (2, 6, 10, 14)  # the target's layers after which the drafter reads
SHAPE = Shape(layers=2, width=256, heads=4, kv_heads=2, ffn=448)
BLOCK, RANK, MASK = 8, 64, 4  # MASK: <0x00>, which no text has
LENGTH, GROUP, STEPS_A_GROUP = 192, 128, 80
PASSAGES, ANCHORS = 16, 16  # in a step
PEAK, WARM_UP = 3e-3, 40
DECAY, BASE = 4.0, 0.3  # of a block's weights, in positions; weight of the loss without the Markov bias


def load_target(path):
    """The target in F32, and its reader."""
    reader = gguf.GGUFReader(path)

    def number(key):
        return reader.fields[f"llama.{key}"].contents()

    tensors = {t.name: torch.tensor(gguf.quants.dequantize(t.data, t.tensor_type)) for t in reader.tensors}
    embedding = tensors["token_embd.weight"]
    shape = Shape(number("block_count"), embedding.shape[1], number("attention.head_count"), number("attention.head_count_kv"),
                  number("feed_forward_length"), len(embedding), number("context_length"), number("rope.freq_base"))
    model = Model(shape, torch.Generator())
    model.values = {"embedding": embedding, "final_norm": tensors["output_norm.weight"]}
    for l in range(1, shape.layers + 1):
        model.values |= {(l, ours): tensors[f"blk.{l - 1}.{theirs}.weight"] for ours, theirs in TENSORS.items()
                         if f"blk.{l - 1}.{theirs}.weight" in tensors}
    return model, reader


def advance(model, tokens, cache, start, cos, sin):
    """Feeds tokens (batch, n) at positions `start` …: all at first, then one by one. Returns the features and the normed last
    state of each, (batch, n, width) one after the other; `cache` (layers, 2, batch, kv heads, length, head_dim)."""
    shape, v = model.shape, model.values
    x, kept = F.embedding(tokens, v["embedding"]), []
    batch, n = tokens.shape
    end = start + n
    cos, sin = cos[start:end], sin[start:end]
    for l in range(1, shape.layers + 1):
        y = norm(x, v[l, "attn_norm"], shape.eps)
        q, k, value = (F.linear(y, v[l, name]).view(batch, n, -1, shape.head_dim).transpose(1, 2) for name in ("wq", "wk", "wv"))
        keys, values = cache[l - 1]
        keys[:, :, start:end], values[:, :, start:end] = rotate(k, cos, sin), value
        q, keys, values = rotate(q, cos, sin), keys[:, :, :end], values[:, :, :end]
        if start:  # the heads of a group are rows
            o = F.scaled_dot_product_attention(q.reshape(batch, shape.kv_heads, -1, shape.head_dim), keys, values).view(q.shape)
        else:
            o = F.scaled_dot_product_attention(q, keys, values, is_causal=True, enable_gqa=True)
        x = x + F.linear(o.transpose(1, 2).flatten(2), v[l, "wo"])
        y = norm(x, v[l, "ffn_norm"], shape.eps)
        x = x + F.linear(F.silu(F.linear(y, v[l, "gate"])) * F.linear(y, v[l, "up"]), v[l, "down"])
        if l in FEATURES:
            kept.append(x)
    return torch.cat((*kept, norm(x, v["final_norm"], shape.eps)), -1)


@torch.no_grad()
def write_group(model, sources, seed, rows=GROUP):
    """Passages (rows, LENGTH), half from each source, that the target continues greedily; and the states of advance()."""
    rng = np.random.default_rng(seed)
    first = int(rng.choice((16, 32, 64, 96)))
    tokens = np.empty((rows, first), dtype=np.int64)
    for i in range(rows):
        ids = sources[i % len(sources)]
        at = rng.integers(0, len(ids) - first)
        tokens[i] = ids[at:at + first]
    tokens[:, 0] = 1  # <s>
    shape, tokens = model.shape, torch.from_numpy(tokens)
    cos, sin = turns(shape, LENGTH)
    cache = torch.empty(shape.layers, 2, rows, shape.kv_heads, LENGTH, shape.head_dim)
    states = [advance(model, tokens, cache, 0, cos, sin)]
    while tokens.shape[1] < LENGTH:
        best = F.linear(states[-1][:, -1:, -shape.width:], model.values["embedding"]).argmax(-1)
        tokens = torch.cat((tokens, best), 1)
        states.append(advance(model, best, cache, tokens.shape[1] - 1, cos, sin))
    return tokens, torch.cat(states, 1).half(), first


def group(model, sources, work, i):
    """Group i, from the folder where it is there."""
    path = work / f"group{i}.pt"
    if not path.exists():
        part = path.with_suffix(".part")
        torch.save(write_group(model, sources, [11, i]), part)
        os.replace(part, path)
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
        self.values |= {"fc": torch.randn(width, inputs, generator=generator) * inputs ** -0.5, "context_norm": torch.ones(width),
                        "w1": torch.randn(vocab, RANK, generator=generator) * 0.1, "w2": torch.zeros(vocab, RANK),
                        "confidence": torch.zeros(1, width + RANK), "confidence_bias": torch.zeros(1)}

    def hidden(self, v, tokens, features, anchors):
        """Normed last states of blocks (passages, anchors, BLOCK, width), from tokens (passages, n), the target's features
        there, and the blocks' first positions (passages, anchors)."""
        shape = self.shape
        passages, n = tokens.shape
        rows = anchors.shape[1] * BLOCK
        at = (anchors[..., None] + torch.arange(BLOCK)).flatten(1)
        ids = torch.full((passages, *anchors.shape[1:], BLOCK), MASK)
        ids[..., 0] = tokens.gather(1, anchors)
        x = F.embedding(ids.flatten(1), self.embedding)
        g = norm(F.linear(features * self.scale, v["fc"]), v["context_norm"], shape.eps)
        block = torch.arange(rows) // BLOCK
        before = torch.arange(n)[None, None] < anchors.repeat_interleave(BLOCK, 1)[..., None]
        own = (block[:, None] == block[None]).expand(passages, rows, rows)
        mask = torch.cat((before, own), 2)[:, None]
        cos, sin = turns(shape, LENGTH + BLOCK)
        where = torch.cat((torch.arange(n).expand(passages, n), at), 1)
        turned = (cos[where][:, None], sin[where][:, None])
        turned_q = (cos[at][:, None], sin[at][:, None])
        for l in range(1, shape.layers + 1):
            y = norm(x, v[l, "attn_norm"], shape.eps)
            both = torch.cat((g, y), 1)
            q, k, value = (F.linear(z, v[l, name]).view(passages, z.shape[1], -1, shape.head_dim).transpose(1, 2)
                           for z, name in ((y, "wq"), (both, "wk"), (both, "wv")))
            q = rotate_part(norm(q, v[l, "q_norm"], shape.eps), *turned_q)
            k = rotate_part(norm(k, v[l, "k_norm"], shape.eps), *turned)
            o = F.scaled_dot_product_attention(q, k, value, attn_mask=mask, enable_gqa=True)
            x = x + F.linear(o.transpose(1, 2).flatten(2), v[l, "wo"])
            y = norm(x, v[l, "ffn_norm"], shape.eps)
            x = x + F.linear(F.silu(F.linear(y, v[l, "gate"])) * F.linear(y, v[l, "up"]), v[l, "down"])
        return norm(x, v["final_norm"], shape.eps).view(passages, -1, BLOCK, shape.width)

    def predict(self, v, tokens, states, anchors):
        """Logits without and with the Markov bias of the true token before, confidences before the sigmoid, and the target's
        logits, for all rows of the blocks."""
        width = self.shape.width
        states = states.float()
        h = self.hidden(v, tokens, states[..., :-width], anchors)
        at = (anchors[..., None] + torch.arange(BLOCK)).flatten(1)
        w1 = F.embedding(tokens.gather(1, at).view(h.shape[:3]), v["w1"])
        base = F.linear(h, self.embedding)
        confidence = F.linear(torch.cat((h, w1), -1).detach(), v["confidence"], v["confidence_bias"])[..., 0]
        final = states[..., -width:].gather(1, at[..., None].expand(-1, -1, width)).view(h.shape)
        return base, base + F.linear(w1, v["w2"]), confidence, F.linear(final, self.embedding)

    def loss(self, v, tokens, states, anchors):
        """Cross-entropy with the mean of the target's distribution and its choice. (total, that with the bias alone)"""
        base, biased, confidence, wanted = self.predict(v, tokens, states, anchors)
        weights = torch.exp(-torch.arange(BLOCK) / DECAY)
        weights = weights / weights.sum() / anchors.numel()
        choice = wanted.argmax(-1)
        p = (wanted.softmax(-1) * 0.5).scatter_add_(-1, choice[..., None], torch.full((*choice.shape, 1), 0.5)).flatten(0, 2)
        first, second = (F.cross_entropy(z.flatten(0, 2), p, reduction="none").view(choice.shape) for z in (biased, base))
        sure = F.binary_cross_entropy_with_logits(confidence, (biased.argmax(-1) == choice).float(), reduction="none")
        return ((first + BASE * second + sure) * weights).sum(), float((first * weights).sum().detach())


@torch.no_grad()
def rounds(drafter, passages):
    """Greedy rounds over passages (tokens, states, first), from the end of each prompt: accepted drafts of each round
    without and with the bias, two lists of lists by passage; and the confidences with their outcomes."""
    tokens, states, first = passages
    out, sure = ([], []), []
    for t, s in zip(tokens, states):
        anchors = torch.arange(first, LENGTH - BLOCK)[None]
        base, biased, confidence, wanted = drafter.predict(drafter.values, t[None], s[None], anchors)
        for kind, z in zip(out, (base, biased)):
            right = (z.argmax(-1) == wanted.argmax(-1))[0]
            lengths, kind_rounds, at = right.int().cumprod(1).sum(1), [], 0
            while at < len(lengths):
                kind_rounds.append(int(lengths[at]))
                at += kind_rounds[-1] + 1
            kind.append(kind_rounds)
        sure.append(torch.stack((confidence[0].sigmoid(), right.float()), -1).flatten(0, 1))
    return *out, torch.cat(sure)


def report(drafter, held):
    for name, passages in held.items():
        for kind, all_ in zip(("dflash", "dspark"), rounds(drafter, passages)):
            accepted = np.array([a for r in all_ for a in r])
            at = " ".join(f"{(accepted > j).sum() / max(1, (accepted >= j).sum()):.2f}" for j in range(BLOCK))
            print(f"  held out, {name}, {kind}: {accepted.mean() + 1:.2f} tokens a round; accepted after accepted ones: {at}",
                  flush=True)


DEEPSPEC = {"context_norm": "hidden_norm", "final_norm": "norm", "fc": "fc", "w1": "markov_head.markov_w1", "w2": "markov_head.markov_w2",
            "confidence": "confidence_head.proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
            "wq": "self_attn.q_proj", "wk": "self_attn.k_proj", "wv": "self_attn.v_proj", "wo": "self_attn.o_proj",
            "q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm", "gate": "mlp.gate_proj", "up": "mlp.up_proj",
            "down": "mlp.down_proj"}


def export(out, drafter, reader):
    """Writes the drafter in Q8_0, with the target's vocabulary."""
    def name(key):
        if key == "confidence_bias":
            return "confidence_head.proj.bias"
        return f"layers.{key[0] - 1}.{DEEPSPEC[key[1]]}.weight" if isinstance(key, tuple) else f"{DEEPSPEC[key]}.weight"

    def add_vocabulary(writer):
        for field in reader.fields.values():
            if field.name.startswith("tokenizer."):
                value, kind = field.contents(), field.types[0]
                writer.add_array(field.name, value) if kind == gguf.GGUFValueType.ARRAY else writer.add_key_value(field.name, value, kind)

    shape, part = drafter.shape, out.with_suffix(".part")
    sizes = {"layers": shape.layers, "context": shape.context, "width": shape.width, "ffn": shape.ffn, "heads": shape.heads,
             "kv_heads": shape.kv_heads, "head_dim": shape.head_dim, "eps": shape.eps, "rope_base": shape.rope_base, "block": BLOCK,
             "mask": MASK, "target_layers": FEATURES, "from_anchor": True}
    tensors = {name(k): (v * drafter.scale if k == "fc" else v).numpy() for k, v in drafter.values.items()}
    write_block_drafter(part, sizes, tensors, add_vocabulary, gguf.GGMLQuantizationType.Q8_0, "fables-block")
    os.replace(part, out)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def main():
    o = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    o.add_argument("model", type=Path)
    o.add_argument("tales", type=Path)
    o.add_argument("generated", type=Path)
    o.add_argument("--work", type=Path, required=True, help="checkpoints, tokens and passages go here")
    o.add_argument("--out", type=Path, required=True)
    o.add_argument("--steps", type=int, default=600)
    o.add_argument("--threads", type=int, default=os.cpu_count())
    o = o.parse_args()
    o.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(o.threads)
    target, reader = load_target(o.model)
    vocabulary = vocabulary_of(reader)
    texts = [encode(path, vocabulary, o.work / f"block-{path.stem}", path == o.tales) for path in (o.tales, o.generated)]
    held = {name: write_group(target, [text[1]], [13], 12) for name, text in zip(("tales", "generated"), texts)}
    drafter = Drafter(target, group(target, [text[0] for text in texts], o.work, 0)[1], torch.Generator().manual_seed(1))
    optimizer, first, checkpoint = Optimizer(drafter), 0, o.work / "block.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint)
        drafter.values, first = state["values"], state["step"]
        optimizer.load(state["optimizer"])
    pool, saved, started = [], time.time(), time.time()
    for step in range(first, o.steps):
        while len(pool) < 2 + step // STEPS_A_GROUP:
            pool.append(group(target, [text[0] for text in texts], o.work, len(pool)))
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
            left = (time.time() - started) / (step + 1 - first) * (o.steps - step - 1) / 60
            print(f"step {step + 1}/{o.steps}  loss {ce:.3f}  all {float(total.detach()):.3f}  gradient {gradient:.2f}  "
                  f"{left:.0f} min left", flush=True)
        if step + 1 == o.steps or time.time() - saved > 300:
            part = checkpoint.with_suffix(".part")
            torch.save({"values": drafter.values, "optimizer": optimizer.state(), "step": step + 1}, part)
            os.replace(part, checkpoint)
            report(drafter, held)
            saved = time.time()
    export(o.out, drafter, reader)


if __name__ == "__main__":
    main()
