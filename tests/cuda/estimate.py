#!/usr/bin/env python3
"""What a token of Llama-2-7B at batch 1, with 1,024 positions behind it, should take by phases, and its floor, for docs/cuda.md.

An estimate, from counts of the machine code (tests/cuda/machine_code.py, sm_90), here below, and from numbers of GPUs that
others have measured. It shows where to look first on a GPU, where only measurements count. It ignores blocks that start
late, the far half of a cache, and address translation.

usage: tests/cuda/estimate.py
"""
# Multiprocessors, clock in GHz, bytes a nanosecond, clocks of a round trip to L2, nanoseconds of one to memory under load.
GPUS = {"H200": (132, 1.755, 4800, 270, 800), "A100 80 GB": (108, 1.41, 2039, 250, 700), "4090": (128, 2.52, 1008, 290, 600)}
COPY = 0.92  # of the bandwidth, that a copy reaches
STOP = 30    # clocks of a wait for shared memory, L1 or a conversion
LAYERS, WIDTH, FFN, VOCAB, WARPS, POSITIONS = 32, 4096, 11008, 32000, 16, 1024

# Of a turn of a warp's ring: bytes, instructions, clocks by the instructions' own stalls, stops, and instructions between a load
# of weights and the wait for it.
TURNS = {"F16": (4096, 63, 298, 5, 50), "Q8_0": (4352, 299, 700, 8, 98)}
BYTES = {"F16": 2, "Q8_0": 34 / 32}  # a weight
TRIPS = 3     # round trips of a barrier that follow each other
BARRIERS = 5  # of a layer
FAST = 5500    # bytes a nanosecond from L2 to all multiprocessors
PORT = 64      # bytes a clock from L2 to one
WINDOW = {"H200": 96 << 10, "A100 80 GB": 92 << 10, "4090": 128 << 10}
BEGIN, TAIL, NORM, ATTEND = 250, 900, 400, 1200  # clocks: before the first weights, behind a phase's last ones, of a norm's and
                                                 # short attention's own instructions


def rate(gpu, kind):
    """Bytes a nanosecond that a multiprocessor can take in: what its warps' turns bring, and what its issue slots allow."""
    _, clock, _, _, memory = GPUS[gpu]
    size, instructions, clocks, stops, flight = TURNS[kind]
    own = clocks + stops * STOP
    turn = own + max(0, memory * clock - own * flight / instructions)
    return min(WARPS * size / turn, 4 * size / instructions) * clock


def barrier(gpu):
    _, clock, _, trip, _ = GPUS[gpu]
    return (TRIPS * trip + 120) / clock


def product(gpu, kind, rows, cols, idle):
    """Nanoseconds of one; memory had `idle` before it to fetch its first bytes in."""
    blocks, clock, speed, trip, _ = GPUS[gpu]
    strip = 16 * cols * BYTES[kind]
    whole, rounds = rows / 16 * strip, -(-rows // 16 // blocks)
    fixed = (BEGIN + trip + TAIL) / clock
    fetched = min(WINDOW[gpu] * blocks, whole, (idle + fixed) * speed * COPY)
    return max((whole - fetched) / (speed * COPY), (rounds * strip - fetched / blocks) / rate(gpu, kind)) + fixed


def token(gpu, kind):
    blocks, clock, speed, trip, memory = GPUS[gpu]
    meet, norm = barrier(gpu), (NORM + trip) / clock
    kept = 2 * POSITIONS * WIDTH * 2
    waits = 4 * trip / clock + 2 * memory + ATTEND / clock
    phases = {
        "norms": 2 * norm,
        "q, k, v": product(gpu, kind, 3 * WIDTH, WIDTH, meet + norm),
        "attention": waits + kept / (speed * COPY),
        "output": product(gpu, kind, WIDTH, WIDTH, 2 * meet + waits),
        "gate, up": product(gpu, kind, 2 * FFN, WIDTH, meet + norm),
        "down": product(gpu, kind, WIDTH, FFN, meet),
        "barriers": BARRIERS * meet,
    }
    layer = sum(phases.values())
    head = product(gpu, kind, VOCAB, WIDTH, 0) + 5000  # its three launches
    weights = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * FFN) + VOCAB * WIDTH
    floor = (weights * BYTES[kind] + LAYERS * kept) / speed
    return phases, layer, LAYERS * layer + head, floor


def savings(gpu):
    """Microseconds of a layer, F16, by what shares or spreads its work."""
    blocks, clock, speed, trip, _ = GPUS[gpu]
    kept = 2 * POSITIONS * WIDTH * 2

    def attend(part):  # a row on 8 heads of keys of 128 dimensions
        turns = -(-8 * -(-POSITIONS // part) // blocks)
        return turns * part * 2 * 128 * 2 / (PORT * clock)
    return {"quarters of splits: one row, 8 heads of keys": attend(512) - attend(128),
            "one trunk for all siblings: a tree of 8 rows": 8 * kept / max(FAST, speed) - kept / (speed * COPY),
            "two rows at once: both norms of 8 rows": 2 * 4 * (NORM + trip) / clock}


def main():
    columns = [(gpu, kind) for gpu in GPUS for kind in TURNS]
    found = {c: token(*c) for c in columns}

    def row(title, value):
        print("| %s | %s |" % (title, " | ".join(value(found[c]) for c in columns)))
    print("| µs | " + " | ".join("%s %s" % c for c in columns) + " |")
    print("| --- |" + " --- |" * len(columns))
    for name in found[columns[0]][0]:
        row(name, lambda f: "%.1f" % (f[0][name] / 1e3))
    row("a layer", lambda f: "%.0f" % (f[1] / 1e3))
    row("tokens a second", lambda f: "%.0f" % (1e9 / f[2]))
    row("floor: at the whole bandwidth, at a copy's", lambda f: "%.0f, %.0f" % (1e9 / f[3], 1e9 * COPY / f[3]))

    print("\n| saved, µs a layer | " + " | ".join(GPUS) + " |\n| --- |" + " --- |" * len(GPUS))
    for name in savings("H200"):
        print("| %s | %s |" % (name, " | ".join("%.1f" % (savings(gpu)[name] / 1e3) for gpu in GPUS)))


if __name__ == "__main__":
    main()
