#!/usr/bin/env python3
"""Golden blocks of every quantised GGUF type: bytes, and the numbers that they stand for.

    pip install numpy gguf
    python3 tests/golden/make_blocks_golden.py

For every type two files beside this one: blocks_TYPE.bin, ROWS rows of COLS values as GGUF stores them, and
blocks_TYPE.txt, a line `TYPE ROWS COLS` and the values as the gguf package dequantises them, one a line. Types that the
package can quantise are made from normal numbers; the others, which it can only read, from random bytes under scales of
a sensible size (MXFP4's first ones of the least and the greatest), so that every bit pattern of scales, mins and quants occurs.
"""
import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

ROWS, COLS = 3, 256
HERE = pathlib.Path(__file__).parent
QUANTISED = [T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1]
HALVES = {T.Q2_K: (80, 82), T.Q3_K: (108,), T.Q4_K: (0, 2), T.Q5_K: (0, 2), T.Q6_K: (208,), T.MXFP4: ()}  # offsets of F16 scales

rng = np.random.default_rng(20261)


def random_blocks(kind):
    block, size = GGML_QUANT_SIZES[kind]
    data = rng.integers(0, 256, (ROWS, COLS // block, size), dtype=np.uint8)
    for at in HALVES[kind]:
        scale = rng.normal(0, 0.01, data.shape[:2]).astype(np.float16)  # of either sign
        data[..., at:at + 2] = scale[..., None].view(np.uint8)
    if kind == T.MXFP4:
        data[..., 0] = rng.integers(110, 130, data.shape[:2])
        data[0, :4, 0] = 0, 1, 2, 250
    return data.reshape(ROWS, -1)


def normal_rows():
    x = rng.normal(0, 1, (ROWS, COLS)).astype(np.float32)
    x[1, 32:64] = 0  # a block of zeros has scale 0
    x[2, 64:96] = np.abs(x[2, 64:96]) + 3  # and one far from zero is what types with a minimum are for
    return x


for kind in QUANTISED + list(HALVES):
    data = quantize(normal_rows(), kind).view(np.uint8) if kind in QUANTISED else random_blocks(kind)
    name = kind.name.lower()
    (HERE / f"blocks_{name}.bin").write_bytes(data.tobytes())
    values = dequantize(data if kind != T.F16 else data.view(np.float16), kind).reshape(ROWS * COLS)
    (HERE / f"blocks_{name}.txt").write_text(
        f"{kind.name} {ROWS} {COLS}\n" + "".join(f"{v:.9g}\n" for v in values))
