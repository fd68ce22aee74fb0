"""Measures what the bundled model promises: python3 measure.py --work FOLDER MODEL.gguf [--binary build/specscope]

On held-out text: bits per byte of tales and of generated text, and how often the first choice after a quarter and half
of the layers is the last layer's. Under greedy decoding of the prompts in prompts.jsonl: the mean probability of the
chosen token and the share of 4-grams that are different. Where the model has trained heads: what SpecBound does with the
lens and with them. The first from the trained weights, the others by the program."""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F

from model import SHAPES, Model


def passages(ids, length=512, rows=48):
    """(rows, length + 1) token ids, one after the other."""
    rows = min(rows, (len(ids) - 1) // length)
    return torch.from_numpy(np.stack([ids[i * length:(i + 1) * length + 1].astype(np.int64) for i in range(rows)]))


def held_out(model, ids, tokenizer):
    """Bits a byte, and agreement with the last layer by depth."""
    tokens = passages(ids)
    nats = bytes_ = 0
    same = np.zeros(model.shape.layers + 1)
    with torch.no_grad():
        for t in tokens:
            states = model.hidden(t[None, :-1])
            z = model.logits(states[-1])[0]
            nats += float(F.cross_entropy(z, t[1:], reduction="sum"))
            bytes_ += len(tokenizer.decode(t[1:].tolist()).encode())
            best = z.argmax(-1)
            same += [float((model.logits(s)[0].argmax(-1) == best).float().mean()) for s in states]
    return nats / bytes_ / np.log(2), same / len(tokens)


def same_choice(model, other, ids):
    """How often two models' likeliest next tokens are the same."""
    tokens = passages(ids)
    with torch.no_grad():
        best = [m.logits(m.hidden(tokens[:, :-1])[-1]).argmax(-1) for m in (model, other)]
    return float((best[0] == best[1]).float().mean())


def trace(binary, gguf, prompt, n, *options):
    """Tables of one run by name."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([binary, "run", "-p", prompt, "-n", str(n), "--ignore-eos", "--backend", "cpu", "--trace", folder + "/t", *options,
                        gguf], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tables = {}
        for name in ("tokens", "layers", "rounds"):
            with open(f"{folder}/t/{name}.csv") as f:
                tables[name] = list(csv.DictReader(f))
    return tables


def greedy(binary, gguf, prompts, n):
    """Mean top-1 probability and the share of 4-grams that are different, over all prompts."""
    confidences, grams = [], []
    for prompt in prompts:
        tokens = trace(binary, gguf, prompt, n, "--policy", "ar", "--probe", "off")["tokens"]
        rows = [r for r in tokens if r["source"] != "prompt" and r["committed"] == "1"]
        mine = [float(r["confidence"]) for r in rows if r["confidence"]]
        ids = [r["token_id"] for r in rows]
        own = [tuple(ids[i:i + 4]) for i in range(len(ids) - 3)]
        print(f"    {np.mean(mine):.2f} {len(set(own)) / len(own):4.0%}  {prompt.splitlines()[0][:70]}")
        confidences += mine
        grams += own
    return float(np.mean(confidences)), len(set(grams)) / len(grams)


def specbound(binary, gguf, prompts, n, head):
    """One line: where drafts leave, how many are accepted, how many were sure and wrong, what rounds bring."""
    exits, judged, wrong, emitted, rounds, layers = [], 0, 0, 0, 0, 0.0
    for prompt in prompts:
        t = trace(binary, gguf, prompt, n, "--policy", "specbound", "--probe", "policy", "--head", head)
        drafts = [r for r in t["tokens"] if r["source"] == "draft"]
        exits += [int(r["exit_layer"]) for r in drafts]
        judged += sum(r["accepted"] == "1" for r in drafts) + sum(int(r["accepted"]) < int(r["verified"]) for r in t["rounds"])
        wrong += sum(int(r["accepted"]) < int(r["verified"]) for r in t["rounds"])
        emitted += sum(int(r["emitted"]) for r in t["rounds"])
        rounds += len(t["rounds"])
        layers += sum(float(r["layers_loaded"]) for r in t["rounds"])
    print(f"specbound, {head:7}: mean exit layer {np.mean(exits):.2f}, {1 - wrong / judged:.1%} of judged drafts accepted, "
          f"{wrong / emitted * 100:.1f} sure and wrong per 100 tokens, {emitted / rounds:.2f} tokens a round, "
          f"{layers / emitted:.2f} layers a token")


def load(name, work):
    model = Model(SHAPES[name], torch.Generator())
    model.values = torch.load(work / f"{name}.pt")["values"]
    return model


def main():
    o = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    o.add_argument("gguf")
    o.add_argument("--name", default="fables", choices=SHAPES)
    o.add_argument("--work", type=Path, required=True)
    o.add_argument("--binary", default="build/specscope")
    o.add_argument("--prompts", type=Path, default=Path(__file__).parents[1] / "prompts.jsonl")
    o.add_argument("-n", type=int, default=128)
    o.add_argument("--drafts-for", choices=SHAPES, help="how often this model's first choice is that model's")
    o = o.parse_args()
    model = load(o.name, o.work)
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(o.work / "vocabulary.model"))
    layers = model.shape.layers
    for text in ("tales", "generated"):
        bits, same = held_out(model, np.load(o.work / f"{text}.held.npy"), tokenizer)
        print(f"{text}: {bits:.3f} bits/byte; agreement at a quarter {same[layers // 4]:.2f}, at half {same[layers // 2]:.2f}; "
              f"all depths {' '.join(f'{s:.2f}' for s in same)}")
        if o.drafts_for:
            same = same_choice(model, load(o.drafts_for, o.work), np.load(o.work / f"{text}.held.npy"))
            print(f"    the first choice of {o.drafts_for} at {same:.2f} of the tokens")
    prompts = [json.loads(line)["turns"][0] for line in o.prompts.read_text().splitlines()]
    confidence, distinct = greedy(o.binary, o.gguf, prompts, o.n)
    print(f"greedy: mean top-1 probability {confidence:.2f}, distinct 4-grams {distinct:.0%}")
    if Path(o.gguf.removesuffix(".gguf") + ".heads.safetensors").exists():
        for head in ("lens", "trained"):
            specbound(o.binary, o.gguf, prompts, o.n, head)


if __name__ == "__main__":
    main()
