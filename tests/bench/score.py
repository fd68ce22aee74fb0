"""Compares the scores of drafters on finished texts with generating these texts: the best setting of each drafter.

usage: tests/bench/score.py BUILD FOLDER PROMPTS [OPTION...]
The options are those of `specscope run`, such as a model and --chat. FOLDER gets the trace of the texts (a new folder) and the results.
Prints for each drafter: the setting, tokens per round by the score and generated, the forecast speed with its interval, and the measured one."""
import json, os, subprocess, sys, time

TOKENS, PASSES = "150", "2"
BUILD, FOLDER, PROMPTS, *OPTIONS = sys.argv[1:] if len(sys.argv) > 3 else sys.exit(__doc__)
TRACE = os.path.join(FOLDER, "trace")


def run(command, *words):
    """Runs specscope; returns its seconds."""
    begin = time.monotonic()
    subprocess.run([BUILD + "/specscope", command, *words, *OPTIONS], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


def bench(row):
    """Returns the result of the row's setting on the same prompts."""
    out = os.path.join(FOLDER, "bench.json")
    setting = [w for k in row["set"] for w in ("--set", f"{k['knob']}={k['value']}")]
    run("bench", "--policy", row["policy"], *setting, "-n", TOKENS, "--ignore-eos", "--prompts", PROMPTS, "--repeat", PASSES, "--json", out)
    with open(out) as f:
        return next(r for r in json.load(f)["results"] if r["policy"] == row["policy"] and not r.get("category"))


os.makedirs(FOLDER, exist_ok=True)
generating = run("run", "--policy", "ar", "-n", TOKENS, "--ignore-eos", "--batch", PROMPTS, "--trace", TRACE)
scoring = run("score", "--texts", TRACE, "--json", os.path.join(FOLDER, "score.json"))
with open(os.path.join(FOLDER, "score.json")) as f:
    report = json.load(f)
scored = [r for r in report["rows"] if r["kind"] != "not scored"]
best = sorted((r for r in scored if r["best"]), key=lambda r: -r["speedup"])
print(f"{report['conversations']} conversations generated once, by plain decoding: {generating:.1f} s; {len(scored)} settings scored: {scoring:.1f} s")
print("| drafter, best setting | | tokens/round: score | generated | × ar: score | generated |\n| --- | --- | --- | --- | --- | --- |")
for r in best:
    b = bench(r)
    knobs = " ".join(f"{k['knob']}={k['value']}" for k in r["set"])
    print(f"| {r['policy']} {knobs} | {r['kind']} | {r['tokens_per_round']:.3f} | {b['tokens_per_round']:.3f} | "
          f"{r['speedup']:.2f} ({r['speedup_low']:.2f} to {r['speedup_high']:.2f}) | {b['speedup']:.2f} |", flush=True)
