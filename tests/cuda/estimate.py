#!/usr/bin/env python3
"""Estimates the time of a token of Llama-2-7B at batch 1 after 1,024 positions, by phases, and its floor, for docs/cuda.md.

The estimate uses counts of the machine code (tests/cuda/machine_code.py, sm_90) and published measurements of GPUs. It
shows which phases to measure first; only measurements on a GPU count. It ignores blocks that start late, the remote half
of a cache, and address translation.

usage: tests/cuda/estimate.py
"""
# Multiprocessors, clock in GHz, bytes per nanosecond, clocks of a round trip to L2, nanoseconds of one to memory under
# load.
GPUS = {"H200": (132, 1.755, 4800, 270, 800), "A100 80 GB": (108, 1.41, 2039, 250, 700), "4090": (128, 2.52, 1008, 290, 600)}
COPY = 0.92  # the part of the bandwidth that a copy reaches
STOP = 30    # clocks of a wait for shared memory, L1 or a conversion
LAYERS, WIDTH, FFN, VOCAB, WARPS, POSITIONS = 32, 4096, 11008, 32000, 16, 1024

# One pass of a warp's ring: bytes, instructions, clocks of the instructions' own stalls, waits, and instructions
# between a load of weights and the wait for it.
TURNS = {"F16": (4096, 63, 298, 5, 50), "Q8_0": (4352, 299, 700, 8, 98)}
BYTES = {"F16": 2, "Q8_0": 34 / 32}  # bytes per weight
TRIPS = 3     # consecutive round trips of a barrier
BARRIERS = 5  # per layer
FAST = 5500    # bytes per nanosecond from L2 to all multiprocessors
PORT = 64      # bytes per clock from L2 to one multiprocessor
WINDOW = {"H200": 96 << 10, "A100 80 GB": 92 << 10, "4090": 128 << 10}
# Clocks before the first weights, after the last weights of a phase, of a norm's instructions, of short attention's
# instructions.
BEGIN, TAIL, NORM, ATTEND = 250, 900, 400, 1200


def rate(gpu, kind):
    """Returns the bytes per nanosecond that a multiprocessor can load, limited by its warps' loads and by its issue slots."""
    _, clock, _, _, memory = GPUS[gpu]
    size, instructions, clocks, stops, flight = TURNS[kind]
    own = clocks + stops * STOP
    turn = own + max(0, memory * clock - own * flight / instructions)
    return min(WARPS * size / turn, 4 * size / instructions) * clock


def barrier(gpu):
    _, clock, _, trip, _ = GPUS[gpu]
    return (TRIPS * trip + 120) / clock


def product(gpu, kind, rows, cols, idle):
    """Returns the nanoseconds of a product. Its first weights were prefetched during `idle` nanoseconds before it."""
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
    head = product(gpu, kind, VOCAB, WIDTH, 0) + 5000  # plus its three launches
    weights = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * FFN) + VOCAB * WIDTH
    floor = (weights * BYTES[kind] + LAYERS * kept) / speed
    return phases, layer, LAYERS * layer + head, floor


def savings(gpu):
    """Returns the nanoseconds that each optimisation saves in a layer in F16."""
    blocks, clock, speed, trip, _ = GPUS[gpu]
    kept = 2 * POSITIONS * WIDTH * 2

    def attend(part):  # one row, 8 heads of keys with 128 dimensions
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
