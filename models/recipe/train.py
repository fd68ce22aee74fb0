"""Trains one of the project's models: python3 train.py NAME --work FOLDER [--tokens N] TALES GENERATED

LayerSkip's recipe (Elhoushi et al. 2024; docs/training.md: LayerSkip training): layer dropout that grows with depth, and besides the
final loss the losses of two other exits through the same head, another pair every step. Hidden matrices are updated by
Muon (momentum whose matrix is made orthogonal by a Newton-Schulz iteration, Jordan 2024, with the scale of Liu et al.
2025), everything else by AdamW. In the second half of the training, another loss makes
repeated continuations of token pairs unlikely, for greedy decoding. Weights are stored in F32 and computed in BF16.

A checkpoint is written every few minutes, and the same command resumes from it with the same results, because the data of
a step depend only on its index."""

import argparse
import math
import os
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from model import SHAPES, Model, layer
from vocabulary import encode, make_vocabulary

PEAK, WARM_UP, DECAY, DROPOUT, CIRCLES = 2e-3, 150, 0.1, 0.1, 2.0


def batch(step, sources, rows, length):
    """(rows, length + 1) token ids, half from each source."""
    rng = np.random.default_rng([7, step])
    out = np.empty((rows, length + 1), dtype=np.int64)
    for i in range(rows):
        ids = sources[i % len(sources)]
        at = rng.integers(0, len(ids) - length - 1)
        out[i] = ids[at:at + length + 1]
    return torch.from_numpy(out)


def rate(step, steps):
    """Warm-up, then a straight line to nothing."""
    return PEAK * min((step + 1) / WARM_UP, (steps - step) / max(1, steps - WARM_UP))


def length(step, steps):
    """Short passages, which are cheap; in the last quarter every other step reads as much as the context holds."""
    return 1024 if step >= steps * 3 // 4 and step % 2 else 256


def exits(step, n):
    """Two depths besides the last, one in each half; every depth comes equally often."""
    half = n // 2
    return 1 + step * 7 % half, half + 1 + step * 5 % max(1, n - 1 - half)


def orthogonal(m):
    """Newton-Schulz, in BF16 where the processor has it: the singular values of m (k, rows, cols) become nearly 1."""
    x = m.bfloat16() if torch.cpu._is_avx512_bf16_supported() else m
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    flat = x.shape[1] > x.shape[2]
    if flat:
        x = x.transpose(1, 2)
    for _ in range(5):
        a = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.transpose(1, 2) if flat else x).float()


class Optimizer:
    def __init__(self, model):
        self.model = model
        shape = model.shape
        self.stacks = {}
        for l in range(1, shape.layers + 1):
            for n in shape.matrices(l):
                self.stacks.setdefault(n, []).append((l, n))
        self.others = [k for k in model.values if not any(k in keys for keys in self.stacks.values())]
        self.momentum = {n: torch.zeros(len(k), *model.values[k[0]].shape) for n, k in self.stacks.items()}
        self.first = {k: torch.zeros_like(model.values[k]) for k in self.others}
        self.second = {k: torch.zeros_like(model.values[k]) for k in self.others}

    def step(self, grads, index, lr):
        values = self.model.values
        norm = math.sqrt(sum(float(g.pow(2).sum()) for g in grads.values()))
        clip = min(1.0, 1.0 / (norm + 1e-6))
        for name, keys in self.stacks.items():
            g = torch.stack([grads[k] for k in keys]) * clip
            m = self.momentum[name].lerp_(g, 0.05)
            update = orthogonal(g.lerp(m, 0.95)) * (0.2 * math.sqrt(max(g.shape[1:])))
            for k, u in zip(keys, update):
                values[k].mul_(1 - lr * DECAY).sub_(u, alpha=lr)
        for k in self.others:
            g = grads[k] * clip
            m, v = self.first[k].lerp_(g, 0.1), self.second[k].lerp_(g * g, 0.05)
            m, v = m / (1 - 0.9 ** (index + 1)), v / (1 - 0.95 ** (index + 1))
            if values[k].dim() > 1:
                values[k].mul_(1 - lr * DECAY)
            values[k].sub_(m / (v.sqrt() + 1e-8), alpha=lr)
        return norm

    def state(self):
        return {"momentum": self.momentum, "first": self.first, "second": self.second}

    def load(self, state):
        self.momentum, self.first, self.second = state["momentum"], state["first"], state["second"]


def repeats(tokens):
    """Finds pairs of tokens that occurred before with another continuation. Returns rows of tokens[:, :-1] (flattened) and the
    earlier continuation, each pair once."""
    rows, wrong = [], []
    length = len(tokens[0]) - 1
    for b, ids in enumerate(tokens.tolist()):
        followed = {}
        for t in range(1, length):
            pair, next_ = (ids[t - 1], ids[t]), ids[t + 1]
            before = followed.setdefault(pair, set())
            for token in before:
                if token != next_:
                    rows.append(b * length + t)
                    wrong.append(token)
            before.add(next_)
    return torch.tensor(rows, dtype=torch.long), torch.tensor(wrong, dtype=torch.long)


def loss_at(z, target, again):
    """Cross-entropy; and, so that greedy text does not run in circles, unlikelihood of repeats, the sum of -log(1 - p) a
    token (Welleck et al. 2020, with continuations of pairs for candidates). (total, cross-entropy alone)"""
    n = len(target)
    rows, tokens = torch.arange(n), target
    if again is not None:
        rows, tokens = torch.cat((rows, again[0])), torch.cat((tokens, again[1]))
    says = F.log_softmax(z, -1)[rows, tokens]
    ce = -says[:n].mean()
    return ce - CIRCLES * torch.log1p(-says[n:].exp().clamp(max=0.999)).sum() / n, ce


def loss_of(model, values, tokens, depths, skip, run, circles):
    """The loss at the end, and at other depths with weights that grow with depth (and sum with the end's to 1); with
    `circles` repeats count."""
    states = model.hidden(tokens[:, :-1], run=run, skip=skip, values=values)
    target = tokens[:, 1:].reshape(-1)
    n = model.shape.layers
    weights = {d: d / n for d in depths} | {n: 2.0}
    total, final = 0, 0
    again = repeats(tokens) if circles else None
    for d, w in weights.items():
        loss, ce = loss_at(model.logits(states[d], values).float().flatten(0, 1), target, again)
        total = total + loss * (w / sum(weights.values()))
        final = float(ce.detach()) if d == n else final
    return total, final


def held_out(model, ids, length, rows, run):
    """Nats a token, and how often every depth's first choice is the last one's: (layers + 1)."""
    values = {k: v.bfloat16() if v.dim() > 1 else v for k, v in model.values.items()}
    tokens = torch.from_numpy(np.stack([ids[i * length:(i + 1) * length + 1].astype(np.int64) for i in range(rows)]))
    with torch.no_grad():
        states = model.hidden(tokens[:, :-1], run=run, values=values)
        z = model.logits(states[-1], values).float()
        nats = float(F.cross_entropy(z.flatten(0, 1), tokens[:, 1:].reshape(-1)))
        best = z.argmax(-1)
        return nats, [float((model.logits(s, values).argmax(-1) == best).float().mean()) for s in states]


def save(path, model, optimizer, step):
    part = path.with_suffix(".part")
    torch.save({"values": model.values, "optimizer": optimizer.state(), "step": step}, part)
    os.replace(part, path)


def main():
    o = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    o.add_argument("name", choices=SHAPES)
    o.add_argument("tales", type=Path)
    o.add_argument("generated", type=Path)
    o.add_argument("--work", type=Path, required=True, help="checkpoints and tokens go here")
    o.add_argument("--tokens", type=float, default=48e6)
    o.add_argument("--batch", type=int, default=8192, help="tokens in a step")
    o.add_argument("--threads", type=int, default=os.cpu_count())
    o.add_argument("--minutes", type=float, default=1e9, help="stop after a checkpoint when this has passed")
    o = o.parse_args()
    o.work.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    torch.set_num_threads(o.threads)
    shape = SHAPES[o.name]
    vocabulary = make_vocabulary([o.tales, o.generated], o.work, shape.vocab)
    tales, tales_held = encode(o.tales, vocabulary, o.work / "tales", True)
    generated, generated_held = encode(o.generated, vocabulary, o.work / "generated", False)
    print(f"{o.name}: {shape.parameters / 1e6:.1f} M parameters, rho {shape.rho:.2f}; {len(tales) / 1e6:.1f} M tokens of tales, "
          f"{len(generated) / 1e6:.1f} M generated", flush=True)

    model = Model(shape, torch.Generator().manual_seed(1))
    optimizer, first = Optimizer(model), 0
    checkpoint = o.work / f"{o.name}.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint)
        model.values, first = state["values"], state["step"]
        optimizer.load(state["optimizer"])
    run = torch.compile(layer, dynamic=False)
    steps = int(o.tokens / o.batch)
    started = saved = time.time()
    for step in range(first, steps):
        n = length(step, steps)
        tokens = batch(step, [tales, generated], o.batch // n, n)
        values = {k: (v.bfloat16() if v.dim() > 1 else v.clone()).requires_grad_() for k, v in model.values.items()}
        rng = random.Random(step)
        skip = {l for l in range(1, shape.layers + 1)
                if rng.random() < DROPOUT * (math.exp((l - 1) * math.log(2) / max(1, shape.layers - 1)) - 1)}
        total, final = loss_of(model, values, tokens, exits(step, shape.layers), skip, run, step >= steps // 2)
        total.backward()
        grads = {k: v.grad.float() if v.grad is not None else torch.zeros_like(model.values[k]) for k, v in values.items()}
        with torch.no_grad():
            norm = optimizer.step(grads, step, rate(step, steps))
        now = time.time()
        if step % 20 == 0 or step + 1 == steps:
            speed = (step + 1 - first) * o.batch / (now - started)
            left = (steps - step - 1) * o.batch / speed / 60
            print(f"step {step + 1}/{steps}  loss {final:.3f}  exits {float(total.detach()):.3f}  gradient {norm:.2f}  {speed:.0f} tokens/s  "
                  f"{left:.0f} min left", flush=True)
        if step + 1 == steps or now - saved > 240:
            save(checkpoint, model, optimizer, step + 1)
            saved = now
            for name, ids in (("tales", tales_held), ("generated", generated_held)):
                nats, agree = held_out(model, ids, 512, 16, run)
                at = " ".join(f"{agree[d]:.2f}" for d in (shape.layers // 4, shape.layers // 2, shape.layers * 3 // 4))
                print(f"  held out, {name}: {nats:.3f} nats a token; agreement at a quarter, half, three quarters: {at}", flush=True)
            if (now - started) / 60 > o.minutes:
                break


if __name__ == "__main__":
    main()
