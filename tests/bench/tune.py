"""Compares the setting that `specscope tune` finds with the best one of an exhaustive sweep over the knobs of all policies.

usage: tests/bench/tune.py BUILD FOLDER STEP
  tune [TIME]        races on half of the bundled prompts (30s)
  sweep POLICY ...   measures every point of these policies' grids on the same prompts; all: all policies
  compare            measures the race's winner and the sweep's five fastest settings in turn on the other half of the prompts

The results of each step are files in FOLDER, so steps can run at different times. The last step prints the comparison."""
import csv, json, math, os, shlex, subprocess, sys, time

TOKENS, PASSES, FASTEST = 64, 6, 5
GRIDS = {
    "layerskip": "exit_layer=1:8:1 gamma=1:8:1",
    "fsm": "exit_layer=2:8:2 gamma=1:5:2 gamma_max=1:13:4",
    "dv": "exit_layer=2:8:2 th=0.3:0.9:0.2 target=0.5:0.9:0.2",
    "del": "d_max=3:18:5 e_max=5:15:5",
    "specbound": "tau=0.3:0.9:0.1 alpha=0:0.4:0.2 d_max=3:9:2",
    "swift": "skip_ratio=0.3:0.6:0.15 stop=0.6:0.8:0.2",
    "ngram": "n_max=2:8:2 n_min=1:3:1 k=1:9:2",
    "suffix": "spec_factor=0.5:2:0.5 min_prob=0.1:0.7:0.2 k=2:14:4",
    "sd": "k=1:10:1",
    "eagle": "k=1:9:1 topk=1:4:3",
    "ngram+sd": "n_min=2:4:1 copied=2:8:3 k=1:5:1",
    "specdecpp": "h=0.3:0.9:0.2 max=2:10:4",
    "sv": "window=2:8:2",
}
BUILD, FOLDER, STEP, *REST = sys.argv[1:] if len(sys.argv) > 3 else sys.exit(__doc__)
HERE = os.path.dirname(os.path.abspath(__file__)) + "/../.."


def path(name):
    return os.path.join(FOLDER, name)


def run(*words):
    """Runs specscope; returns its seconds."""
    begin = time.monotonic()
    subprocess.run([BUILD + "/specscope", *words], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def note_seconds(name, seconds):
    with open(path(name + ".seconds"), "w") as f:
        f.write(f"{seconds:.1f}\n")


def seconds_of(name):
    with open(path(name + ".seconds")) as f:
        return float(f.read())


def measure(policy, points, prompts, csv_file):
    words = [w for p in points for w in p]
    return run("bench", "--policy", policy, *words, "-n", str(TOKENS), "--repeat", "1", "--ignore-eos", "--prompts", path(prompts),
               "--csv", csv_file)


def results(name):
    with open(path(name), newline="") as f:
        return [r for r in csv.DictReader(f) if r["category"] == "" and r["policy"] != "ar"]


def tune():
    note_seconds("tune", run("tune", "--prompts", path("race.jsonl"), "--time", REST[0] if REST else "30s", "--ignore-eos",
                             "--json", path("tune.json")))


def sweep():
    for policy in GRIDS if REST == ["all"] else REST:
        grid = [("--grid", axis) for axis in GRIDS[policy].split()]
        note_seconds(policy, measure(policy, grid, "race.jsonl", path(policy + ".csv")))
        print(f"{policy}: {len(results(policy + '.csv'))} settings, {seconds_of(policy):.0f} s")


def compare():
    swept = [policy for policy in GRIDS if os.path.exists(path(policy + ".seconds"))]
    points = sorted((r for p in swept for r in results(p + ".csv")), key=lambda r: -float(r["speedup"]))
    with open(path("tune.json")) as f:
        race = json.load(f)["settings"]
    found = next((s for s in race if s["fastest"] and s["policy"] != "ar"), race[0])
    settings = [(found["policy"], tuple(f"{k}={v}" for k, v in found["set"].items()))]
    settings += [(r["policy"], tuple(shlex.split(r["params"]))) for r in points[:FASTEST]]
    logs = [[] for _ in settings]
    for i in range(PASSES):
        for at in range(len(settings)) if i % 2 == 0 else reversed(range(len(settings))):
            policy, knobs = settings[at]
            measure(policy, [("--set", k) for k in knobs], "compare.jsonl", path("compare.csv"))
            logs[at].append(math.log(float(results("compare.csv")[0]["speedup"])))

    def mean(values):
        m = sum(values) / len(values)
        return m, (sum((v - m) ** 2 for v in values) / len(values) / (len(values) - 1)) ** .5

    print(f"{len(points)} settings of {len(swept)} policies: sweep {sum(map(seconds_of, swept)):.0f} s, tune {seconds_of('tune'):.0f} s")
    for (policy, knobs), log in zip(settings, logs):
        m, se = mean(log)
        print(f"{math.exp(m):6.2f} x ar ±{se * math.exp(m):.2f}  {'tune' if log is logs[0] else 'sweep'}: {policy} {' '.join(knobs)}")
    best = max(logs[1:], key=sum)
    m, se = mean([a - b for a, b in zip(logs[0], best)])
    print(f"tune's setting has {math.exp(m) * 100:.1f} ±{se * 100:.1f}% of the speed of the sweep's best")


os.makedirs(FOLDER, exist_ok=True)
for name, rest in (("race", 0), ("compare", 1)):
    with open(HERE + "/models/prompts-tune.jsonl") as all_prompts, open(path(name + ".jsonl"), "w") as half:
        half.writelines(line for i, line in enumerate(all_prompts) if i % 2 == rest)
{"tune": tune, "sweep": sweep, "compare": compare}[STEP]()
