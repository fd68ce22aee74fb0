#!/usr/bin/env python3
"""Writes kernels/codebook_grids.h from the gguf package, which has the grids of GGUF's IQ types as ggml defines them.

    pip install numpy gguf
    python3 kernels/make_codebook_grids.py

A row of a grid is four or eight small numbers out of three or eight; each becomes its place among those, a digit: of
eight numbers two bits each, of four numbers four bits each, the first in the lowest bits.
"""
import pathlib

import numpy as np
from gguf import quants

GRIDS = {"IQ2_XXS": (8, 25, 43), "IQ2_XS": (8, 25, 43), "IQ2_S": (8, 25, 43), "IQ1": (-1, 0, 1),
         "IQ3_XXS": (4, 12, 20, 28, 36, 44, 52, 62), "IQ3_S": (1, 3, 5, 7, 9, 11, 13, 15)}
A_LINE = 16

out = """/* The grids of GGUF's IQ types, as ggml defines them (ggml/src/ggml-common.h): written by make_codebook_grids.py, which
 * says what the digits are. G(sixteen rows). */
#ifndef KERNELS_CODEBOOK_GRIDS_H
#define KERNELS_CODEBOOK_GRIDS_H

/* clang-format off */
"""
for name, numbers in GRIDS.items():
    kind = getattr(quants, "IQ1_S" if name == "IQ1" else name)
    kind.init_grid()
    grid = kind.grid.reshape(kind.grid_shape).astype(int)
    assert kind.grid_map == numbers and grid.shape[1] * (2 if grid.shape[1] == 8 else 4) == 16
    digits = np.searchsorted(numbers, grid)
    rows = (digits << np.arange(grid.shape[1]) * (16 // grid.shape[1])).sum(axis=1)
    lines = [",".join(f"0x{x:04x}" for x in rows[i:i + A_LINE]) for i in range(0, len(rows), A_LINE)]
    out += f"#define {name}_GRID(G) \\\n" + " \\\n".join(f"G({line})" for line in lines) + "\n"
out += """/* clang-format on */

#endif
"""
(pathlib.Path(__file__).parent / "codebook_grids.h").write_text(out)
