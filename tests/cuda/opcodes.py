#!/usr/bin/env python3
"""Checks the PTX opcodes of device functions that order memory or choose a cache.

usage: tests/cuda/opcodes.py [source.cu ...]     (from the root of the tree; needs nvcc and no GPU)

Compiles the kernels to PTX as the Makefile does and assigns each opcode to the function that contains its source line.
Barriers, fences, atomics, prefetches, and loads and stores with a scope or a cache operator must be those of OPCODES, and
so must all opcodes of ptx.cuh that access memory or multiply matrices. This finds a wrong scope, which a run on one
machine may not show, and a read-only load (.nc) of data that other blocks write, which the compiler may choose by itself.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ARCHS = ("sm_80", "sm_90")
BARRIER = ["bar.sync"]
OPCODES = {
    # Between blocks: the barrier of the grid; the last split, router or piece.
    "load_acquire": ["ld.acquire.gpu.global.u32"],
    "add_release": ["red.release.gpu.global.add.u32"],
    "add_acquire_release": ["atom.acq_rel.gpu.global.add.u32"],
    "grid_sync": BARRIER,
    "check_clock": ["membar.sys"],
    "is_last": ["bar.red.or.pred"],
    # Other blocks write this data in the same phase, so loads must not use L1.
    "begin_layer": ["st.global.cg.u32"],
    "wait_usefully": ["ld.global.cg.u32"],
    "merge_parts": ["ld.global.cg.v2.f32"],
    "leaves": ["ld.global.cg.v2.f32"],
    "merge": ["ld.global.cg.f32", "ld.global.cg.u32"],
    # Weights, which no kernel writes; activations and states, which other blocks wrote before the last barrier.
    "load_weights": ["ld.global.nc.L1::no_allocate.v4.u32", "ld.global.nc.u32", "ld.global.nc.v2.u32"],
    "load_state": ["ld.global.v4.u32"],
    "load_activations": ["ld.global.v4.u32"],
    "load_smem": ["ld.shared.v4.u32"],
    "prefetch_l2": {"sm_80": ["prefetch.global.L2"], "sm_90": ["cp.async.bulk.prefetch.L2.global"]},
    "mma_f16": ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"],
    "mma_bf16": ["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"],
    "barrier_arrive": ["bar.arrive"],
    "barrier_sync": BARRIER,
    "trap_grid": ["trap"],
    # Within a block or a warp.
    "attend_exactly": ["bar.warp.sync"],
    "leave_groups_out": ["bar.warp.sync"],
    "score_experts": ["bar.warp.sync"],
    "take_ahead": ["bar.warp.sync"],
    "take_step": ["bar.warp.sync"],
    "summarise": ["bar.red.and.pred"],
    "gather": ["atom.shared.add.u32", "bar.sync"],
    "order_expert_rows": ["atom.shared.add.u32", "bar.sync"],
    "inspect_rows": ["atom.shared.max.u32"],
    **{name: BARRIER for name in (
        "add_norm_sums", "add_up", "attend_job_parts", "attend_part", "begin_forward", "block_draw",
        "block_reduce", "descend", "do_products", "exact_strips", "find_top", "gather_rows", "multiply_tile",
        "norm_to_smem", "put_part", "reject", "route_rows", "select_cut", "sum_tile", "walk_rounds", "write_dists")},
}
COUNTED = re.compile(r"(?:@!?\w+\s+|@!?%\w+\s+)?((?:ld|st|atom|red|membar|fence|bar|barrier|cp|prefetch|prefetchu|cctl|"
                     r"mma|ldmatrix|discard|trap)\b[\w.:]*)")
OWN = re.compile(r"(ld|st)\.(param|local|const)\b")  # memory of one thread, and constants
WEAK = re.compile(r"(ld|st)(\.(global|shared))?(\.v[248])?\.[bfus]\d+$|mma\.")


def functions(path):
    """Returns the function of each line. A name follows its return type on the same line or begins the next line."""
    names, name = [""], ""
    for line in open(path):
        if re.match(r"(?!template|struct \w+ \{|#)[a-zA-Z_].*\(", line):
            line = re.sub(r"__\w+__(\([^)]*\))?", "", line)
            if "(" in line:
                name = line.split("(")[0].split()[-1].lstrip("*")
        names.append(name)
    return names


def opcodes(arch, source):
    """Returns pairs of a function and an opcode in the PTX of a source file."""
    with tempfile.NamedTemporaryFile(suffix=".ptx") as out:
        flags = "-ptx -std=c++17 -I. -fmad=false -O3 -lineinfo -Wno-deprecated-gpu-targets".split()
        subprocess.run([os.environ.get("NVCC", "nvcc"), *flags, "-arch=" + arch, "-o", out.name, source], check=True)
        text = open(out.name).read()
    files = {n: os.path.relpath(os.path.normpath(path)) for n, path in re.findall(r'\.file\s+(\d+)\s+"([^"]+)"', text)}
    names = {n: functions(path) for n, path in files.items() if path.startswith("kernels")}
    name, is_asm, found = "", False, set()
    for line in text.splitlines():
        place = re.match(r"\s*\.loc\s+(\d+) (\d+)(?:.*inlined_at (\d+) (\d+))?", line)
        if place:  # for a function of CUDA's headers the line of its caller counts
            n, at = place.group(1, 2) if place[1] in names or not place[3] else place.group(3, 4)
            name, is_asm = (names[n][int(at)], files[n].endswith("ptx.cuh")) if n in names else (files[n], False)
            continue
        op = COUNTED.match(line.strip().lstrip("{} \t"))
        if op and not OWN.match(op[1]) and (is_asm or not WEAK.match(op[1])):
            found.add((name, op[1]))
    return found


def main(sources):
    every = not sources
    sources = sources or sorted(glob.glob("kernels/cuda/device/*.cu"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {arch: [pool.submit(opcodes, arch, source) for source in sources] for arch in ARCHS}
    wrong = 0
    for arch, results in jobs.items():
        found = set().union(*(job.result() for job in results))
        wanted = {(name, op) for name, ops in OPCODES.items() for op in (ops[arch] if isinstance(ops, dict) else ops)}
        for name, op in sorted(found - wanted):
            wrong += 1
            print("%s: %s contains %s, which OPCODES of tests/cuda/opcodes.py does not list" % (arch, name, op))
        for name, op in sorted(wanted - found if every else ()):
            wrong += 1
            print("%s: %s does not contain %s, which OPCODES of tests/cuda/opcodes.py lists" % (arch, name, op))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
