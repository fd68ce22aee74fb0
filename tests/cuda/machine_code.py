#!/usr/bin/env python3
"""Counts instructions in the machine code of the forward pass's kernels, for the tables of docs/cuda.md.

usage: tests/cuda/machine_code.py [sm_90 ...]     (from the root of the tree; needs nvcc, no GPU and no disassembler)

Compiles kernels/cuda/device/forward.cu and forward_moe.cu as the Makefile does and reads the cubins. Since compute
capability 7.0 an instruction has 16 bytes. Bits 0 to 11 are the opcode (9 to 11 are the kind of its operands), bits 12 to
15 its predicate (7: none). Bits 105 to 125 control when it is issued: the clocks to stall, which of six counters counts
the result (110 to 112; 7: none), and which counters to wait for (116 to 121). A branch's distance is in bits 34 to 81, in
steps of four bytes. Since compute capability 9.0 its lowest eight bits are in bits 16 to 23.
"""
import collections
import re
import struct
import subprocess
import sys
import tempfile

OPS = {0x03C: "HMMA", 0x181: "LDG", 0x184: "LDS", 0x183: "LDL", 0x187: "STL", 0x180: "LD", 0x11D: "BAR", 0x18E: "RED",
       0x1A8: "ATOM", 0x192: "FENCE", 0x147: "BRA", 0x14D: "EXIT", 0x03E: "PACK", 0x030: "HADD", 0x186: "STG", 0x185: "ST",
       0x18F: "CCTL", 0x1BC: "PREFETCH"}
WHOLE = {  # one pass of a tile's ring: predicated loads of weights, loads of activations, matrix instructions
    "F16": (8, 4, 8), "BF16": (8, 4, 16), "Q8_0": (16, 8, 16), "Q4_0": (8, 8, 32), "Q4_K": (12, 8, 32), "Q6_K": (16, 8, 32)}


class Instruction:
    def __init__(self, at, low, high, new):
        word = low | high << 64
        code = word & 0xFFF
        self.at = at
        self.name = "PREFETCH" if code == 0x3BC else OPS.get(code & 0x1FF, "%03x" % code)
        self.predicated = word >> 12 & 7 != 7 or word >> 15 & 1 == 1
        self.stall = word >> 105 & 15
        self.counter = word >> 110 & 7
        self.waits = [i for i in range(6) if word >> (116 + i) & 1]
        self.target = None
        if self.name == "BRA":
            steps = word >> 34 & (1 << 48) - 1
            steps -= steps >> 47 << 48
            self.target = at + 16 + 4 * (steps << 8 | word >> 16 & 0xFF if new else steps)


def kernel_of(path, name):
    """Returns the bytes of a kernel in a cubin, which is a 64-bit ELF file."""
    data = open(path, "rb").read()
    start, = struct.unpack_from("<Q", data, 0x28)
    count, names = struct.unpack_from("<HH", data, 0x3C)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i) for i in range(count)]
    for s in sections:
        begin = sections[names][4] + s[0]
        title = data[begin:data.index(b"\0", begin)].decode()
        if title.startswith(".text.") and name in title:
            return data[s[4]:s[4] + s[5]]
    sys.exit("%s: there is no kernel %s" % (path, name))


def decode(code, new):
    return [Instruction(at, *struct.unpack_from("<QQ", code, at), new) for at in range(0, len(code), 16)]


def successors(code, i):
    one = code[i]
    if one.name == "BRA":
        there = [one.target // 16] if one.target is not None and 0 <= one.target // 16 < len(code) else []
        return there + ([i + 1] if one.predicated else [])
    if one.name == "EXIT" and not one.predicated:
        return []
    return [i + 1] if i + 1 < len(code) else []


def shortest(code, begin, goal, most=3000):
    """Returns the instructions on the shortest way from begin to goal, without goal; None if there is no way."""
    came, reached = {}, [begin]
    for _ in range(most):
        ahead = []
        for i in reached:
            for j in successors(code, i):
                if j not in came:
                    came[j] = i
                    ahead.append(j)
        if goal in came:
            way = [came[goal]]
            while way[-1] != begin:
                way.append(came[way[-1]])
            return [code[i] for i in reversed(way)]
        reached = ahead
    return None


def flight(way):
    """Returns the mean number of instructions from a load of weights to the wait for it. The way is a loop."""
    far = []
    for i, one in enumerate(way):
        if one.name == "LDG" and one.predicated:
            far.append(next(n for n in range(1, len(way) + 1) if one.counter in way[(i + n) % len(way)].waits))
    return sum(far) / len(far)


def stops(way):
    """Returns how often a pass waits for its own instructions other than loads of weights."""
    n, open_ = 0, set()
    for one in way:
        if open_ & set(one.waits):
            n += 1
            open_ -= set(one.waits)
        if one.counter < 6 and not (one.name == "LDG" and one.predicated):
            open_.add(one.counter)
    return n


def blocks_of(code):
    """Returns the basic blocks as pairs of instruction numbers."""
    starts = {0} | {i + 1 for i, one in enumerate(code) if one.name in ("BRA", "EXIT")}
    starts |= {one.target // 16 for one in code if one.target is not None}
    starts = sorted(s for s in starts if 0 <= s < len(code))
    return list(zip(starts, starts[1:] + [len(code)]))


def turns(code):
    """Returns full passes of one tile's ring, by type and by the memory of the activations."""
    found = {}
    for begin, end in blocks_of(code):
        run = code[begin:end]
        count = collections.Counter(one.name for one in run)
        weights = sum(1 for one in run if one.name == "LDG" and one.predicated)
        in_global, in_shared = count["LDG"] - weights, count["LDS"]
        for name, (loads, activations, multiplies) in WHOLE.items():
            where = {(activations, 0): "global", (0, activations): "shared"}.get((in_global, in_shared))
            if weights not in (loads - 1, loads) or count["HMMA"] != multiplies or where is None:
                continue  # a branch may skip the last load of weights
            way = shortest(code, begin, begin)
            if way is not None:
                found[name, where] = way
    return found


def barrier(code):
    """Counts instructions of the waiting thread: from the block's barrier to the arrival, and from there to the first poll."""
    reds = [i for i, one in enumerate(code) if one.name == "RED"]
    if not reds:
        return None
    arrival = reds[-1]
    poll = next(i for i in range(arrival, len(code)) if code[i].name == "LDG")
    ways = [shortest(code, i, arrival, 200) for i in range(arrival) if code[i].name == "BAR"]
    return {"arrival": min(len(way) for way in ways if way), "poll": len(shortest(code, arrival, poll))}


def report(arch, source):
    flags = "-std=c++17 -I. -fmad=false -O3 -Wno-deprecated-gpu-targets -Xptxas -v -cubin".split()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as out:
        said = subprocess.run(["nvcc", *flags, "-arch=" + arch, "-o", out.name, "kernels/cuda/device/" + source],
                              capture_output=True, text=True)
        if said.returncode != 0:
            sys.exit(said.stderr)
        code = decode(kernel_of(out.name, "forward_layers"), int(arch[3:]) >= 90)
    stores, loads = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", said.stderr)[-1]
    registers = re.findall(r"Used (\d+) registers", said.stderr)[-1]
    print("%s, %s: %d instructions, %s registers, spilled %s bytes stored, %s loaded" %
          (arch, source, len(code), registers, stores, loads))
    met = barrier(code)
    if met:
        print("  barrier: %(arrival)d instructions to the arrival, %(poll)d from there to the first poll" % met)
    for (name, where), way in sorted(turns(code).items()):
        count = collections.Counter(one.name for one in way)
        print("  %-5s activations in %-7s %3d instructions and %3d clocks per pass, which waits %2d times; %3d instructions "
              "between a load of weights and the wait for it; %d words spilled" %
              (name, where + ":", len(way), sum(one.stall for one in way), stops(way), flight(way), count["LDL"] + count["STL"]))


if __name__ == "__main__":
    for target in sys.argv[1:] or ["sm_80", "sm_89", "sm_90"]:
        for which in ("forward.cu", "forward_moe.cu"):
            report(target, which)
