#!/usr/bin/env python3
"""nvcc's PTX as C++ for the emulation of a GPU (tests/cuda/emulation): what nvcc made of the kernels runs without one.

translate.py FILE.ptx -o FILE.cc [--host FILE.cc --source kernels/cuda/device/FILE.cu]
translate.py --count FILE.ptx …       which instructions there are, how often"""
import argparse
import collections
import os
import re
import sys

from modules import ModuleText
from parser import parse
from tokens import Wrong

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3))


def read(name):
    """A file's module, and its C++."""
    with open(name, encoding="utf-8", errors="replace") as f:
        module = parse(f.read(), ROOT)
    made = ModuleText(module, re.sub(r"\W", "_", os.path.splitext(os.path.basename(name))[0]))
    return made, made.text()


def write(name, text):
    with open(name + ".part", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(name + ".part", name)


def count(names):
    opcodes = collections.Counter()
    for name in names:
        opcodes += read(name)[0].opcodes
    for opcode, n in sorted(opcodes.items()):
        print("%7d %s" % (n, opcode))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptx", nargs="+")
    parser.add_argument("-o", dest="out")
    parser.add_argument("--host")
    parser.add_argument("--source")
    parser.add_argument("--count", action="store_true")
    given = parser.parse_args()
    try:
        if given.count:
            return count(given.ptx)
        made, text = read(given.ptx[0])
        write(given.out, text)
        if given.host:
            write(given.host, made.host_text(given.source))
    except (Wrong, OSError) as wrong:
        print("%s: %s" % (given.ptx[0], wrong), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
