"""Which registers hold something that is read again, and so which can share a variable of C++: a kernel of a hundred thousand
registers needs the stack of a few hundred."""
import heapq

from tokens import Wrong


class Line:
    """A statement: its text, the registers that it reads and writes, where it may go on besides the next line."""

    def __init__(self, text, reads=(), writes=(), label=None, jumps=(), goes_on=True, always=True):
        self.text, self.reads, self.writes = text, set(reads), set(writes)
        self.label, self.jumps, self.goes_on, self.always = label, jumps, goes_on, always


class Block:
    def __init__(self, first, last):
        self.first, self.last = first, last  # lines, the last one counted
        self.reads, self.writes, self.after, self.live = 0, 0, [], 0  # sets of registers as bits; live: at the beginning


def blocks_of(lines):
    found, first = [], 0
    for n, line in enumerate(lines):
        ends = line.jumps or not line.goes_on or (n + 1 < len(lines) and lines[n + 1].label is not None)
        if ends or n + 1 == len(lines):
            found.append(Block(first, n))
            first = n + 1
    at = {lines[b.first].label: b for b in found if lines[b.first].label is not None}
    for n, b in enumerate(found):
        last = lines[b.last]
        for label in last.jumps:
            if label not in at:
                raise Wrong("$%s is nowhere" % label.replace("L_S", "", 1))
        b.after = [at[label] for label in last.jumps]
        if last.goes_on and n + 1 < len(found):
            b.after.append(found[n + 1])
    return found


def crossing(lines, blocks):
    """Registers that a block may read before it writes them, with a number each."""
    numbers = {}
    for b in blocks:
        written = set()
        for line in lines[b.first : b.last + 1]:
            for register in sorted(line.reads - written) + ([] if line.always else sorted(line.writes - written)):
                numbers.setdefault(register, len(numbers))
            if line.always:
                written |= line.writes
    return numbers


def bits_of(registers, numbers):
    found = 0
    for register in registers:
        if register in numbers:
            found |= 1 << numbers[register]
    return found


def live_at_blocks(lines, blocks, numbers):
    for b in blocks:
        reads, writes = set(), set()
        for line in lines[b.first : b.last + 1]:
            reads |= line.reads - writes
            if line.always:
                writes |= line.writes
        b.reads, b.writes = bits_of(reads, numbers), bits_of(writes, numbers)
        b.live = b.reads
    changed = True
    while changed:
        changed = False
        for b in reversed(blocks):
            live = b.reads | (live_after(b) & ~b.writes)
            if live != b.live:
                b.live, changed = live, True


def live_after(block):
    found = 0
    for after in block.after:
        found |= after.live
    return found


def names_in(bits, names):
    while bits:
        lowest = bits & -bits
        yield names[lowest.bit_length() - 1]
        bits ^= lowest


def segments(lines, blocks, names):
    """Of every register the first and the last line at which it is written, read or live."""
    found = {}

    def seen(register, n):
        first, last = found.get(register, (n, n))
        found[register] = (min(first, n), max(last, n))

    for b in blocks:
        for register in names_in(b.live, names):
            seen(register, b.first)
        for register in names_in(live_after(b), names):
            seen(register, b.last)
        for n in range(b.first, b.last + 1):
            for register in lines[n].reads | lines[n].writes:
                seen(register, n)
    return found


def share(lines, size_of):
    """(register → variable, how many of each size there are, registers that may be read before anything was written to them)"""
    blocks = blocks_of(lines)
    numbers = crossing(lines, blocks)
    names = list(numbers)
    live_at_blocks(lines, blocks, numbers)
    found = segments(lines, blocks, names)
    variables, busy, free, counts = {}, [], {}, {}
    for register, (first, last) in sorted(found.items(), key=lambda f: (f[1], f[0])):
        while busy and busy[0][0] < first:
            _, size, n = heapq.heappop(busy)
            heapq.heappush(free.setdefault(size, []), n)
        size = size_of(register)
        if free.get(size):
            n = heapq.heappop(free[size])
        else:
            n = counts[size] = counts.get(size, 0) + 1
        variables[register] = "r%d_%d" % (8 * size, n)
        heapq.heappush(busy, (last, size, n))
    return variables, counts, sorted(names_in(blocks[0].live, names)) if blocks else []
