#!/usr/bin/env python3
"""Golden blocks of every quantised GGUF type: bytes and their values.

    pip install numpy gguf
    python3 tests/golden/make_blocks_golden.py

Writes two files for every type into tests/golden/blocks: TYPE.bin, ROWS rows of COLS values as GGUF stores them, and
TYPE.txt, a line `TYPE ROWS COLS` and the values as the gguf package dequantises them, one a line. Types that the
package can quantise are made from normal numbers; the others, which it can only read, from random bytes under scales of
a sensible size (MXFP4's first ones of the least and the greatest), so that every bit pattern of scales, mins and quants occurs.

digests.txt has a line `TYPE BLOCKS DIGEST` for types with tables: of so many blocks of 256 values, made of SplitMix64's
numbers, so that every row of every table occurs; the digest is the sum of mix(bits + i * STEP) of the values' bits, modulo 2^64.
"""
import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

ROWS, COLS = 3, 256
OUT = pathlib.Path(__file__).parent / "blocks"
QUANTISED = [T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1]
HALVES = {T.Q2_K: (80, 82), T.Q3_K: (108,), T.Q4_K: (0, 2), T.Q5_K: (0, 2), T.Q6_K: (208,), T.MXFP4: (),
          T.IQ4_NL: (0,), T.IQ4_XS: (0,), T.IQ3_S: (0,), T.IQ3_XXS: (0,), T.IQ2_S: (0,), T.IQ2_XS: (0,), T.IQ2_XXS: (0,), T.IQ1_M: (),
          T.IQ1_S: (0,), T.TQ1_0: (52,), T.TQ2_0: (64,)}  # offsets of F16 scales
DIGESTED = [kind for kind in HALVES if kind == T.MXFP4 or kind.name[1] == "Q"]

rng = np.random.default_rng(20261)


def random_blocks(kind):
    block, size = GGML_QUANT_SIZES[kind]
    rows = 1 if kind.name[1] == "Q" else ROWS  # of IQ and TQ, which have digests, too
    data = rng.integers(0, 256, (rows, COLS // block, size), dtype=np.uint8)
    for at in HALVES[kind]:
        scale = rng.normal(0, 0.01, data.shape[:2]).astype(np.float16)  # of either sign
        data[..., at:at + 2] = scale[..., None].view(np.uint8)
    if kind == T.MXFP4:
        data[..., 0] = rng.integers(110, 130, data.shape[:2])
        data[0, :4, 0] = 0, 1, 2, 250
    if kind == T.IQ1_M:  # four bits of it on top of each of four numbers
        scale = rng.normal(0, 0.01, data.shape[:2]).astype(np.float16).view(np.uint16)
        for i in range(4):
            data[..., 49 + 2 * i] = data[..., 49 + 2 * i] & 15 | (scale >> 4 * i & 15).astype(np.uint8) << 4
    return data.reshape(rows, -1)


def normal_rows():
    x = rng.normal(0, 1, (ROWS, COLS)).astype(np.float32)
    x[1, 32:64] = 0  # a block of zeros has scale 0
    x[2, 64:96] = np.abs(x[2, 64:96]) + 3  # and one far from zero is what types with a minimum are for
    return x


for kind in QUANTISED + list(HALVES):
    data = quantize(normal_rows(), kind).view(np.uint8) if kind in QUANTISED else random_blocks(kind)
    name = kind.name.lower()
    (OUT / f"{name}.bin").write_bytes(data.tobytes())
    values = dequantize(data if kind != T.F16 else data.view(np.float16), kind).reshape(-1)
    (OUT / f"{name}.txt").write_text(
        f"{kind.name} {len(values) // COLS} {COLS}\n" + "".join(f"{v:.9g}\n" for v in values))


# ---- digests ----

BLOCKS, STEP = 1024, np.uint64(0x9E3779B97F4A7C15)


def mix(x):  # splitmix64_mix() of base/rng.h
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def digest(kind):
    block, size = GGML_QUANT_SIZES[kind]
    n = BLOCKS * 256 // block
    data = mix(np.arange(n * size // 8 + 1, dtype=np.uint64) * STEP).view(np.uint8)[:n * size].reshape(n, size).copy()
    for at in HALVES[kind] if kind != T.IQ1_M else (54,):
        data[:, at + 1] &= 0xbf  # F16 scales are finite
    values = dequantize(data.reshape(BLOCKS, -1), kind).reshape(-1)
    return int((mix(values.view(np.uint32) + np.arange(len(values), dtype=np.uint64) * STEP)).sum())


(OUT / "digests.txt").write_text("".join(f"{kind.name} {BLOCKS} {digest(kind):016x}\n" for kind in DIGESTED))
