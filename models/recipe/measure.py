"""Measures what the bundled model promises: python3 measure.py --work FOLDER MODEL.gguf [--binary build/specscope]

On held-out text: bits per byte of tales and of generated text, and how often the first choice after a quarter and half
of the layers is the last layer's. Under greedy decoding of the prompts in prompts.jsonl: the mean probability of the
chosen token and the share of 4-grams that occur once. The first from the trained weights, the second by the program."""

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

from model import SHAPES, Llama


def held_out(model, ids, tokenizer, length=512, rows=48):
    """Bits a byte, and agreement with the last layer by depth."""
    rows = min(rows, (len(ids) - 1) // length)
    tokens = torch.from_numpy(np.stack([ids[i * length:(i + 1) * length + 1].astype(np.int64) for i in range(rows)]))
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


def greedy(binary, gguf, prompts, n):
    """Mean top-1 probability and the share of 4-grams that are different, over all prompts."""
    confidences, grams = [], []
    for line in prompts.read_text().splitlines():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([binary, "run", "-p", json.loads(line)["turns"][0], "-n", str(n), "--ignore-eos", "--policy", "ar",
                            "--probe", "all", "--trace", folder + "/t", gguf], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            with open(folder + "/t/tokens.csv") as f:
                rows = [r for r in csv.DictReader(f) if r["source"] != "prompt" and r["committed"] == "1"]
        confidences += [float(r["confidence"]) for r in rows if r["confidence"]]
        ids = [r["token_id"] for r in rows]
        grams += [tuple(ids[i:i + 4]) for i in range(len(ids) - 3)]
    return float(np.mean(confidences)), len(set(grams)) / len(grams)


def main():
    o = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    o.add_argument("gguf")
    o.add_argument("--name", default="fables", choices=SHAPES)
    o.add_argument("--work", type=Path, required=True)
    o.add_argument("--binary", default="build/specscope")
    o.add_argument("--prompts", type=Path, default=Path(__file__).parents[1] / "prompts.jsonl")
    o.add_argument("-n", type=int, default=128)
    o = o.parse_args()
    state = torch.load(o.work / f"{o.name}.pt")
    model = Llama(SHAPES[o.name], torch.Generator())
    model.values = state["values"]
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(o.work / "vocabulary.model"))
    layers = model.shape.layers
    for text in ("tales", "generated"):
        bits, same = held_out(model, np.load(o.work / f"{text}.held.npy"), tokenizer)
        print(f"{text}: {bits:.3f} bits/byte; agreement at a quarter {same[layers // 4]:.2f}, at half {same[layers // 2]:.2f}; "
              f"all depths {' '.join(f'{s:.2f}' for s in same)}")
    confidence, distinct = greedy(o.binary, o.gguf, o.prompts, o.n)
    print(f"greedy: mean top-1 probability {confidence:.2f}, distinct 4-grams {distinct:.0%}")


if __name__ == "__main__":
    main()
