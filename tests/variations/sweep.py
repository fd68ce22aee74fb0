#!/usr/bin/env python3
"""Compares specscope with transformers on random variations of the folders of tests/golden/families, which differ in config.json and in the
layout of tensors. The logits (transformers' in double precision) must be the same, or specscope must refuse the folder.

    python3 tests/variations/sweep.py build/tests/model_logits [--seed N] [--n N] [--family NAME]…
    python3 tests/variations/sweep.py build/tests/model_logits --family NAME --edits '[["set", "head_dim", 16]]' --model-seed N

A failure is reduced edit by edit and printed in the second form, which repeats it.
"""
import argparse
import collections
import json
import logging
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import warnings

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "golden"))
sys.path.insert(0, str(HERE))
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")

import torch
import transformers as tf

import draws
from bases import BASES
from converted import Converter
from folders import Unusable, logits_by_transformers, make_folder
from program import Program

MOST = 1e-4  # relative, by norm, of each position


def worst(a, b):
    return float((np.linalg.norm(a - b, axis=1) / np.maximum(np.linalg.norm(b, axis=1), 1e-30)).max())


def segments(config):
    """Its rotation depends on the length of the text, which specscope does not support and reports."""
    text = config.get("text_config", config)
    said = json.dumps([text.get("rope_parameters"), text.get("rope_scaling")])
    return any(f'"{kind}"' in said for kind in ("dynamic", "longrope", "su"))


def compare_gguf(program, converter, folder, tokens, ours, words):
    """Compares the folder's logits with those of the GGUF file that llama.cpp's converter makes."""
    out = folder.with_suffix(".gguf")
    if converter is None:
        return "equal", words
    if not converter.convert(folder, out):
        return "equal, not converted", words
    theirs, refusal, _ = program.logits(out, tokens)
    if theirs is None:
        return "equal, GGUF refused", refusal.replace(str(out), "F")
    error = worst(theirs, ours) if theirs.shape == ours.shape else 9
    if error < 10 * MOST:  # the converter adds norms' 1 in their own type
        return "equal, GGUF too", words
    config = json.loads((folder / "config.json").read_text())
    unsaid = converter.unsaid(out, config)
    return ("equal, GGUF can't say", unsaid) if unsaid else ("GGUF otherwise", f"{error:.1e}")


def compare(program, converter, folder, family, edits, seed):
    """Returns (verdict, words): equal, refused, unusable, beyond, wrong; with a converter, the verdict of its GGUF file."""
    try:
        config, tokens = make_folder(folder, family, edits, seed)
        truth = logits_by_transformers(folder, config, tokens)
    except Unusable as e:
        return "unusable", str(e)
    ours, words, ctx = program.logits(folder, tokens)
    if ours is None:
        return "refused", words
    if not np.isfinite(truth).all():
        return "unusable", "not finite"
    if ours.shape != truth.shape:
        return "wrong", f"{ours.shape} logits, not {truth.shape}"
    error = worst(ours, truth)
    if error < MOST:
        return compare_gguf(program, converter, folder, tokens, ours, f"{error:.1e}")
    if segments(config) and len(tokens) > ctx:
        return "beyond", f"{len(tokens)} tokens of {ctx}"
    return "wrong", f"{error:.1e}"


def smaller(edits, fails):
    """Returns the edits that are needed for the failure."""
    i = len(edits) - 1
    while i >= 0:
        fewer = edits[:i] + edits[i + 1:]
        if fails(fewer):
            edits = fewer
        i -= 1
    return edits


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--seed", type=int, default=int(os.environ.get("SPECSCOPE_SEED") or time.time()))
    p.add_argument("--n", type=int, default=100)
    p.add_argument("--family", action="append")
    p.add_argument("--edits")
    p.add_argument("--model-seed", type=int, default=1)
    p.add_argument("--gguf", metavar="FOLDER", help="llama.cpp's, with convert_hf_to_gguf.py: its files are compared, too")
    p.add_argument("--keep")
    p.add_argument("--log")
    o = p.parse_args()
    torch.set_num_threads(1)
    tf.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    names = o.family or sorted(BASES)
    counts, refusals, unusable, n_wrong = collections.Counter(), collections.Counter(), collections.Counter(), 0
    converter = Converter(o.gguf) if o.gguf else None
    log = open(o.log, "a") if o.log else None
    with tempfile.TemporaryDirectory() as temp, Program(o.program) as program:
        folder = pathlib.Path(o.keep or temp) / "model"
        if o.edits is not None:
            verdict, words = compare(program, converter, folder, names[0], json.loads(o.edits), o.model_seed)
            print(verdict, words)
            return verdict == "wrong"
        print(f"seed {o.seed}", flush=True)
        for i in range(o.n):
            rng = random.Random(o.seed * 1000003 + i)
            name, seed = names[i % len(names)] if i < len(names) else rng.choice(names), rng.randrange(1 << 30)
            config, dims = BASES[name]()
            edits = draws.draw(rng, config, dims) if i >= len(names) else []
            verdict, words = compare(program, converter, folder, name, edits, seed)
            counts[verdict] += 1
            if log:
                print(json.dumps([verdict, words, name, seed, edits]), file=log, flush=True)
            if verdict == "refused":
                refusals[words.replace(str(folder), "F")] += 1
            if verdict == "unusable":
                unusable[words[:100]] += 1
            if verdict not in ("wrong", "GGUF otherwise"):
                continue
            edits = smaller(edits, lambda e: compare(program, converter, folder, name, e, seed)[0] == verdict)
            words = compare(program, converter, folder, name, edits, seed)[1]
            print(f"{verdict} by {words}: --family {name} --model-seed {seed} --edits '{json.dumps(edits)}'", flush=True)
    if log:
        for words, n in refusals.most_common():
            print(f"{n:5d} refused: {words}", file=log)
        for words, n in unusable.most_common():
            print(f"{n:5d} unusable: {words}", file=log)
    print(f"{o.n} variations: " + ", ".join(f"{n} {v}" for v, n in sorted(counts.items())))
    return counts["wrong"] > 0


if __name__ == "__main__":
    sys.exit(main())
