#!/usr/bin/env python3
"""Computes what a checkpoint predicts, in double precision with transformers: the first greedy tokens of a prompt, and
the most likely token of each layer by the logit lens. tests/checkpoints/values has the results.

usage: make_values.py MODEL.gguf OUT.json

Needs torch, transformers and gguf. transformers dequantises the file's weights as the gguf package does.
"""
import json
import os
import sys

import gguf
import torch
import transformers

PROMPT = "The bicycle was invented in the nineteenth century. It has two wheels,"
TOKENS = 40


def merged(text, tokens, scores):
    """SentencePiece's BPE: merges the pair of neighbours with the best score until none is a token. (The tokenizer that
    transformers converts from a GGUF file has no merges.)"""
    score = dict(zip(tokens, scores))
    parts = list(text.replace(" ", "\u2581"))
    while True:
        pairs = [(-score[a + b], at) for at, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in score]
        if not pairs:
            return [tokens.index(part) for part in parts]
        at = min(pairs)[1]
        parts[at:at + 2] = [parts[at] + parts[at + 1]]


def ids_of(path, folder, name):
    """The prompt's ids, after BOS if the file asks for it: the converted tokenizer adds one in any case."""
    fields = gguf.GGUFReader(path).fields
    value = lambda key: fields["tokenizer.ggml." + key].contents()
    bos = [int(value("bos_token_id"))] if value("add_bos_token") else []
    if value("model") == "llama":
        return bos + merged(PROMPT, value("tokens"), value("scores"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=name)
    return bos + tokenizer(PROMPT, add_special_tokens=False).input_ids


def main(path, out):
    folder, name = os.path.split(os.path.abspath(path))
    ids = torch.tensor([ids_of(path, folder, name)])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    with torch.no_grad():
        text = model.generate(ids, do_sample=False, max_new_tokens=TOKENS, min_new_tokens=TOKENS,
                              eos_token_id=None, pad_token_id=0)
        model = model.double()  # its choices must be the same
        run = model(text[:, :-1], output_hidden_states=True)
        first = ids.shape[1] - 1  # this row predicts the first generated token
        layers = []
        states = run.hidden_states[1:]  # the last one is after the final norm
        for at, state in enumerate(states):
            rows = state[0, first:]
            if at + 1 < len(states):
                rows = model.model.norm(rows)
            p = torch.softmax(model.lm_head(rows).double(), -1).topk(2)
            layers.append({"token": p.indices[:, 0].tolist(),
                           "p": [round(x, 7) for x in p.values[:, 0].tolist()],
                           "second": [round(x, 7) for x in p.values[:, 1].tolist()]})
        final = torch.softmax(run.logits[0, first:].double(), -1).max(-1)
        assert final.indices.tolist() == layers[-1]["token"] == text[0, first + 1:].tolist()
    with open(out, "w") as f:
        json.dump({"model": name, "prompt": PROMPT, "prompt_ids": ids[0].tolist(),
                   "tokens": text[0, first + 1:].tolist(), "layers": layers,
                   "versions": {m.__name__: m.__version__ for m in (torch, transformers)}}, f, separators=(",", ":"))
        f.write("\n")


main(*sys.argv[1:])
