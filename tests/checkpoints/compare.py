"""Compares a trace of `specscope run --exact --probe all` with the values of make_values.py: the prompt's ids, the
generated tokens, and the most likely token of every layer at every generated position, with its probability.

usage: compare.py VALUES.json TRACE tokens|layers

A layer may name another token only where the two most likely ones differ by less than TIE.
"""
import csv
import json
import os
import sys

NEAR = 2e-5  # of probabilities: F32 against double precision
TIE = 4e-5


def main(values, trace, what):
    with open(values) as f:
        expected = json.load(f)
    with open(os.path.join(trace, "tokens.csv"), newline="") as f:
        rows = [r for r in csv.DictReader(f) if r["committed"] == "1"]
    ids = [int(r["token_id"]) for r in sorted(rows, key=lambda r: int(r["pos"]))]
    n_prompt = len(expected["prompt_ids"])
    if what == "tokens":
        if ids[:n_prompt] != expected["prompt_ids"]:
            sys.exit(f"prompt: {ids[:n_prompt]} instead of {expected['prompt_ids']}")
        for at, (got, wanted) in enumerate(zip(ids[n_prompt:], expected["tokens"], strict=True)):
            if got != wanted:
                sys.exit(f"generated token {at}: {got} instead of {wanted}")
        return
    with open(os.path.join(trace, "layers.csv"), newline="") as f:
        found = {(int(r["layer"]), int(r["pos"]) - n_prompt): r for r in csv.DictReader(f) if r["model"] == ""}
    worst, ties = 0, 0
    for layer, of_layer in enumerate(expected["layers"], 1):
        for at, (token, p, second) in enumerate(zip(of_layer["token"], of_layer["p"], of_layer["second"])):
            got = found.get((layer, at))
            if got is None:
                sys.exit(f"layer {layer} has no prediction of generated token {at}")
            worst = max(worst, abs(float(got["confidence"]) - p))
            if int(got["token_id"]) != token and p - second >= TIE:
                sys.exit(f"layer {layer}, generated token {at}: {got['token_id']} instead of {token} ({p}, {second})")
            ties += int(got["token_id"]) != token
            if abs(float(got["confidence"]) - p) >= NEAR:
                sys.exit(f"layer {layer}, generated token {at}: probability {got['confidence']} instead of {p}")
    print(f"{len(expected['layers'])} layers, {len(expected['tokens'])} tokens: probabilities differ by at most"
          f" {worst:.1e}; {ties} near ties")


main(*sys.argv[1:])
