#!/usr/bin/env python3
"""Writes a copy of a GGUF model whose head is damaged: the rows of its output matrix (or of the embedding, if that is
the head) are exchanged with one another, so that it predicts other tokens. With --plain: a copy of a DSpark drafter
without its Markov and confidence heads, whose first row drafts nothing, as in DFlash. Standard library only.

usage: damage_gguf.py [--plain] MODEL.gguf OUT.gguf
"""

import random
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of a metadata value, by type
ROW_BYTES = {0: (1, 4), 1: (1, 2), 8: (32, 34), 30: (1, 2)}  # elements and bytes of a block: F32, F16, Q8_0, BF16


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def read(self, form):
        value = struct.unpack_from("<" + form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def text(self):
        n = self.read("Q")
        self.at += n
        return self.data[self.at - n : self.at].decode()

    def skip(self, kind):
        """Skips a metadata value; returns it if it is a 32-bit number."""
        if kind == 8:
            self.text()
        elif kind == 9:
            inner, n = self.read("I"), self.read("Q")
            for _ in range(n):
                self.skip(inner)
        elif kind == 4:
            return self.read("I")
        else:
            self.at += SIZES[kind]
        return None


def plain(data, infos, start, tensors):
    """Drops the heads' tensors, which have to be the last ones. infos: where each tensor's description begins, by name."""
    heads = [name for name in tensors if name.startswith(("markov_", "conf_proj"))]
    first = min(infos[name] for name in heads)
    if list(tensors)[-len(heads) :] != heads:
        sys.exit("damage_gguf.py: other tensors come after the heads")
    end = start + min(tensors[name][2] for name in heads)
    at = data.index(b"dflash.sample_from_anchor") + len("dflash.sample_from_anchor") + 4
    data[at] = 0
    struct.pack_into("<Q", data, 8, len(tensors) - len(heads))
    header = data[:first]
    return header + bytes(-len(header) % 32) + data[start:end]


def main():
    *options, path, out = sys.argv[1:]
    with open(path, "rb") as f:
        data = bytearray(f.read())
    r = Reader(data)
    assert r.read("I") == 0x46554747, "no GGUF file"
    r.read("I")
    n_tensors, n_values, align = r.read("Q"), r.read("Q"), 32
    for _ in range(n_values):
        name, kind = r.text(), r.read("I")
        value = r.skip(kind)
        align = value if name == "general.alignment" else align
    tensors, infos = {}, {}
    for _ in range(n_tensors):
        at = r.at
        name = r.text()
        infos[name] = at
        shape = [r.read("Q") for _ in range(r.read("I"))]
        tensors[name] = (shape, r.read("I"), r.read("Q"))
    start = -(-r.at // align) * align
    if options == ["--plain"]:
        with open(out, "wb") as f:
            f.write(plain(data, infos, start, tensors))
        return
    (width, rows), kind, offset = tensors.get("output.weight", tensors["token_embd.weight"])
    elements, size = ROW_BYTES[kind]
    size = width // elements * size
    order = list(range(rows))
    random.Random(1).shuffle(order)
    at = start + offset
    old = bytes(data[at : at + rows * size])
    for to, row in enumerate(order):
        data[at + to * size : at + (to + 1) * size] = old[row * size : (row + 1) * size]
    with open(out, "wb") as f:
        f.write(data)


main()
