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


def beginning(path):
    """The BOS token if the file asks for it; the converted tokenizer adds one in any case."""
    fields = gguf.GGUFReader(path).fields
    adds = fields.get("tokenizer.ggml.add_bos_token")
    return [int(fields["tokenizer.ggml.bos_token_id"].contents())] if adds is not None and adds.contents() else []


def main(path, out):
    folder, name = os.path.split(os.path.abspath(path))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float64)
    model = model.double().eval()
    ids = torch.tensor([beginning(path) + tokenizer(PROMPT, add_special_tokens=False).input_ids])
    with torch.no_grad():
        text = model.generate(ids, do_sample=False, max_new_tokens=TOKENS, min_new_tokens=TOKENS,
                              eos_token_id=None, pad_token_id=0)
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
