#!/usr/bin/env python3
"""Writes kernels/codebook_grids.h from the gguf package, which has the grids of GGUF's IQ types as ggml defines them.

    pip install numpy gguf
    python3 kernels/make_codebook_grids.py

A row of a grid is eight numbers out of three, or four out of eight. With each number's place among those as a digit,
the first digit being the lowest, a row is a number of base 3 or 8, and a grid is a set of such numbers, in ascending
order. A set is written as a text with a bit for each number, four bits in a hexadecimal digit, the lowest one first.
"""
import pathlib

import numpy as np
from gguf import quants

GRIDS = {"IQ2_XXS": (8, 25, 43), "IQ2_XS": (8, 25, 43), "IQ2_S": (8, 25, 43), "IQ1": (-1, 0, 1),
         "IQ3_XXS": (4, 12, 20, 28, 36, 44, 52, 62), "IQ3_S": (1, 3, 5, 7, 9, 11, 13, 15)}
A_LINE = 112

out = """/* The grids of GGUF's IQ types, as ggml defines them (ggml/src/ggml-common.h), as sets of rows: written by
 * make_codebook_grids.py, which describes the form. */
#pragma once
"""
for name, numbers in GRIDS.items():
    kind = getattr(quants, "IQ1_S" if name == "IQ1" else name)
    kind.init_grid()
    grid = kind.grid.reshape(kind.grid_shape).astype(int)
    assert kind.grid_map == numbers and grid.shape[1] == (8 if len(numbers) == 3 else 4)
    rows = (np.searchsorted(numbers, grid) * len(numbers) ** np.arange(grid.shape[1])).sum(axis=1)
    assert (np.diff(rows) > 0).all()
    bits = np.zeros((len(numbers) ** grid.shape[1] + 3) // 4 * 4, dtype=int)
    bits[rows] = 1
    text = "".join(f"{x:x}" for x in bits.reshape(-1, 4) @ [1, 2, 4, 8])
    lines = [f'    "{text[i:i + A_LINE]}"' for i in range(0, len(text), A_LINE)]
    out += f"\nstatic const char set_{name.lower()}[] =\n" + "\n".join(lines) + ";\n"
(pathlib.Path(__file__).parent / "codebook_grids.h").write_text(out)
