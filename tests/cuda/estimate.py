#!/usr/bin/env python3
"""What a token of Llama-2-7B at batch 1, with 1,024 positions behind it, should take by phases, and its floor, for docs/cuda.md.

An estimate, from counts of the machine code (tests/cuda/machine_code.py, sm_90), here below, and from numbers of GPUs that
others have measured. It is for comparing one state of the code with another, and for knowing what to look at first on a
GPU, where only measuring counts. It knows nothing of blocks that come late, of far halves of a cache, of address translation.

usage: tests/cuda/estimate.py
"""
# Multiprocessors, clock in GHz, bytes a nanosecond, clocks of a round trip to L2, nanoseconds of one to memory under load.
GPUS = {"H200": (132, 1.755, 4800, 270, 800), "A100 80 GB": (108, 1.41, 2039, 250, 700), "4090": (128, 2.52, 1008, 290, 600)}
COPY = 0.92  # of the bandwidth, that a copy reaches
STOP = 30    # clocks of a wait for shared memory, L1 or a conversion
LAYERS, WIDTH, FFN, VOCAB, WARPS, POSITIONS = 32, 4096, 11008, 32000, 16, 1024

# Of a turn of a warp's ring: bytes, instructions, clocks by the instructions' own stalls, stops, and instructions between a load
# of weights and the wait for it. Before: with activations from L1.
TURNS = {"F16": {"before": (4096, 94, 400, 10, 11), "now": (4096, 76, 328, 8, 64)},
         "Q8_0": {"before": (4352, 365, 1127, 20, 139), "now": (4352, 310, 711, 11, 117)}}
BYTES = {"F16": 2, "Q8_0": 34 / 32}  # a weight
# A barrier: instructions from arrival to poll, at 3 clocks; round trips that follow each other. Steps of a layer.
STATES = {"before": {"poll": 500, "trips": 4, "barriers": 7, "norms apart": 2},
          "now": {"poll": 1, "trips": 3, "barriers": 5, "norms apart": 0}}
WINDOW = {"before": lambda gpu: 64 << 10, "now": lambda gpu: {"H200": 96, "A100 80 GB": 92, "4090": 128}[gpu] << 10}
BEGIN, TAIL, NORM, ATTEND = 250, 900, 400, 1200  # clocks: before the first weights, behind a phase's last ones, of a norm's and
                                                 # short attention's own instructions


def rate(gpu, kind, state):
    """Bytes a nanosecond that a multiprocessor can take in: what its warps' turns bring, and what its issue slots allow."""
    _, clock, _, _, memory = GPUS[gpu]
    size, instructions, clocks, stops, flight = TURNS[kind][state]
    own = clocks + stops * STOP
    turn = own + max(0, memory * clock - own * flight / instructions)
    return min(WARPS * size / turn, 4 * size / instructions) * clock


def barrier(gpu, state):
    _, clock, _, trip, _ = GPUS[gpu]
    s = STATES[state]
    return max(s["trips"] * trip + 120, 3 * trip + 3 * s["poll"]) / clock


def product(gpu, kind, state, rows, cols, idle):
    """Nanoseconds of one; memory had `idle` before it to fetch its first bytes in."""
    blocks, clock, speed, trip, _ = GPUS[gpu]
    strip = 16 * cols * BYTES[kind]
    whole, rounds = rows / 16 * strip, -(-rows // 16 // blocks)
    fixed = (BEGIN + trip + TAIL) / clock
    fetched = min(WINDOW[state](gpu) * blocks, whole, (idle + fixed) * speed * COPY)
    return max((whole - fetched) / (speed * COPY), (rounds * strip - fetched / blocks) / rate(gpu, kind, state)) + fixed


def token(gpu, kind, state):
    blocks, clock, speed, trip, memory = GPUS[gpu]
    meet, norm = barrier(gpu, state), (NORM + trip) / clock
    apart = STATES[state]["norms apart"]
    kept = 2 * POSITIONS * WIDTH * 2
    waits = 4 * trip / clock + 2 * memory + ATTEND / clock
    phases = {
        "norms": 2 * norm,
        "q, k, v": product(gpu, kind, state, 3 * WIDTH, WIDTH, meet * (1 + (apart > 0)) + norm),
        "attention": waits + kept / (speed * COPY),
        "output": product(gpu, kind, state, WIDTH, WIDTH, 2 * meet + waits),
        "gate, up": product(gpu, kind, state, 2 * FFN, WIDTH, meet * (1 + (apart > 0)) + norm),
        "down": product(gpu, kind, state, WIDTH, FFN, meet),
        "barriers": STATES[state]["barriers"] * meet,
    }
    layer = sum(phases.values())
    head = product(gpu, kind, state, VOCAB, WIDTH, 0) + 5000  # its three launches
    weights = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * FFN) + VOCAB * WIDTH
    floor = (weights * BYTES[kind] + LAYERS * kept) / speed
    return phases, layer, LAYERS * layer + head, floor


def main():
    print("| µs | " + " | ".join("%s %s, before → now" % (gpu, kind) for gpu in GPUS for kind in TURNS) + " |")
    print("| --- |" + " --- |" * (len(GPUS) * len(TURNS)))
    found = {(g, k, s): token(g, k, s) for g in GPUS for k in TURNS for s in STATES}
    for name in found["H200", "F16", "now"][0]:
        print("| %s | " % name + " | ".join("%.1f → %.1f" % tuple(found[g, k, s][0][name] / 1e3 for s in STATES)
                                           for g in GPUS for k in TURNS) + " |")
    print("| a layer | " + " | ".join("%.0f → %.0f" % tuple(found[g, k, s][1] / 1e3 for s in STATES)
                                     for g in GPUS for k in TURNS) + " |")
    print("| tokens a second | " + " | ".join("%.0f → %.0f" % tuple(1e9 / found[g, k, s][2] for s in STATES)
                                             for g in GPUS for k in TURNS) + " |")
    print("| floor: at the whole bandwidth, at a copy's | " + " | ".join(
        "%.0f, %.0f" % (1e9 / found[g, k, "now"][3], 1e9 * COPY / found[g, k, "now"][3]) for g in GPUS for k in TURNS) + " |")


if __name__ == "__main__":
    main()
