#!/bin/sh
# Acceptance by position: rates and ranks of run, bench and traces against a slow count, by category; the margin where
# texts part.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

cat >"$TMP/prompts.jsonl" <<'END'
{"category": "counts", "turns": ["one two three"]}
{"category": "words", "turns": ["the cat sat"]}
{"turns": ["a b"]}
{"category": "counts", "turns": ["four five six"]}
END
works "run accepts a list of prompts" run --policy sd --draft self:1 -n 40 --ignore-eos --prompts "$TMP/prompts.jsonl" \
    --json "$TMP/run.json" --csv "$TMP/run.csv" "$TINY"
check "run prints both rates of acceptance by position, and the tokens of a round" sh -c "grep -q '^acceptance by position  *tokens  *1 ' '$TMP/err' &&
    grep -q '^sd         conditional   *[.1][0-9.]*±[.0-9]* ' '$TMP/err' && grep -q '^           unconditional *[1-9][.][0-9]*±[.0-9]*  *[.1]' '$TMP/err'"
check "run prints a row for each category of several prompts" sh -c "grep -q '^           counts  *[1-9][.]' '$TMP/err' && ! grep -q '^           words' '$TMP/err'"
check "run prints the ranks at rejections" grep -q "rank of the target's token at [0-9]* rejections\{0,1\}: [2-9l]" "$TMP/err"
check "run prints the table of positions in ASCII with LC_ALL=C" sh -c "LC_ALL=C '$PROGRAM' run --policy sd --draft self:1 -n 8 --prompts '$TMP/prompts.jsonl' '$TINY' 2>'$TMP/plain' >/dev/null && ! LC_ALL=C grep -q '[^ -~]' '$TMP/plain'"
works "bench measures two policies on a list of prompts" bench --policy sd --policy ngram --draft self:1 -n 24 --repeat 1 --prompts "$TMP/prompts.jsonl" --json "$TMP/bench.json" "$TINY"
check "bench prints the table of positions of both policies" sh -c "grep -q '^sd         conditional' '$TMP/out' && grep -c '^           counts' '$TMP/out' | grep -q '^2$'"
works "bench --csv writes a list of prompts" bench --policy sd --draft self:1 -n 24 --repeat 1 --prompts "$TMP/prompts.jsonl" --csv "$TMP/bench.csv" "$TINY"
works "plot draws bench's CSV without its categories" plot "$TMP/bench.csv" pareto -o "$TMP/figure.svg"
refuses "run --versus --csv is refused" 2 '\-\-json has both' run --versus ar --csv "$TMP/x.csv" "$TINY"
works "run --json writes the rates by position of a batch" run --policy sd --draft self:1 -n 40 --ignore-eos --batch 2 --prompts "$TMP/prompts.jsonl" --json "$TMP/batch.json" "$TINY"
works "run traces one prompt" run --policy sd --draft self:1 -n 40 --ignore-eos -p 'one two three' --trace "$TMP/trace" --json "$TMP/one.json" "$TINY"
check "the summary of run has the rates by position and the ranks" grep -q ', of all rounds by position [01][.][0-9]* .*, rank at rejections [2-9l]' "$TMP/err"
works "run traces drafts by a layer" run --policy layerskip --set exit_layer=2 --probe all -n 200 --ignore-eos -p "In the deep wood" --trace "$TMP/layer" models/fables-q8_0.gguf
works "plot draws the positions of a trace" plot "$TMP/trace" positions -o "$TMP/figure.svg"

if [ -n "$HAVE_PYTHON" ]; then
    cat >"$TMP/check.py" <<'END'
import csv, json, sys
tmp = sys.argv[1]
rows = list(csv.DictReader(open(tmp + "/trace/rounds.csv")))
tokens = list(csv.DictReader(open(tmp + "/trace/tokens.csv")))
layers = list(csv.DictReader(open(tmp + "/trace/layers.csv")))
one = json.load(open(tmp + "/one.json"))
done = [int(r["accepted"]) for r in rows]
for i, p in enumerate(one["positions"]):
    tested = sum(a >= i and int(r["verified"]) > i for a, r in zip(done, rows))
    accepted = sum(a > i for a in done)
    u = accepted / len(rows)
    assert (p["tested"], p["accepted"]) == (tested, accepted), (i, p)
    assert abs(p["conditional"] - accepted / tested) < 1e-9 and abs(p["unconditional"] - u) < 1e-9
    assert abs(p["unconditional_se"] - (u * (1 - u) / len(rows)) ** .5) < 1e-9
# The rank of each rejection, from the list of the layer that drafted.
ranks = {}
for r in rows:
    of = [t for t in tokens if t["round"] == r["round"]]
    last = of[-1]
    if last["source"] != "correction":
        assert r["reject_rank"] == "", r
        continue
    line = next(l for l in layers if l["round"] == r["round"] and l["pos"] == last["pos"] and l["probed_by"] == "policy")
    listed = [pair.split(":")[0] for pair in line["top"].split(" ")]
    rank = int(r["reject_rank"]) # up to 10, and five are listed
    assert listed[rank - 1] == last["token_id"] if 0 < rank <= 5 else last["token_id"] not in listed, (r, line)
    ranks[rank] = ranks.get(rank, 0) + 1
assert one["reject_ranks"] == [ranks.get(i, 0) for i in range(1, 11)] and one["reject_later"] == ranks.get(0, 0)
assert sum(ranks.values()) > 1, ranks
# The rank of the target's token at a layer is also measured by the scope.
tokens = list(csv.DictReader(open(tmp + "/layer/tokens.csv")))
found = {(l["round"], l["pos"]): int(l["rank_final"]) + 1 for l in csv.DictReader(open(tmp + "/layer/layers.csv"))
         if (l["layer"], l["head"], l["probed_by"]) == ("2", "0", "scope")}
seen = set()
for r in csv.DictReader(open(tmp + "/layer/rounds.csv")):
    last = [t for t in tokens if t["round"] == r["round"]][-1]
    if r["reject_rank"] != "":
        rank = found[(r["round"], last["pos"])]
        assert int(r["reject_rank"]) == (rank if rank <= 10 else 0), (r, rank)
        seen.add(rank)
assert any(5 < rank <= 10 for rank in seen) and any(rank > 10 for rank in seen), seen
# Lists of prompts: the sums of the single runs; prompts are samples.
def ratio(y, x):
    n, r = len(y), sum(y) / sum(x)
    return r, (sum((p - r * q) ** 2 for p, q in zip(y, x)) / (n * (n - 1))) ** .5 / (sum(x) / n)
run, batch, bench = (json.load(open(f"{tmp}/{name}.json")) for name in ("run", "batch", "bench"))
first = [r["positions"][0] for r in run["results"]]
for whole in (run, batch):
    p = whole["positions"][0]
    u, se = ratio([f["accepted"] for f in first], [r["rounds"] for r in run["results"]])
    assert abs(p["unconditional"] - u) < 1e-9 and abs(p["unconditional_se"] - se) < 1e-9, (p, u, se)
    assert [(c["category"], c["prompts"]) for c in whole["categories"]] == [("counts", 2), ("words", 1)]
    assert whole["categories"][0]["positions"][0]["accepted"] == first[0]["accepted"] + first[3]["accepted"]
assert len(bench["results"][1]["categories"]) == 2
lines = list(csv.DictReader(open(tmp + "/run.csv", newline="")))
assert [l["category"] for l in lines] == ["", "counts", "words"], lines
rates = [float(v) for v in lines[0]["unconditional"].split(" ")]
assert len(rates) == len(run["positions"]) and all(abs(a - b["unconditional"]) < 1e-4 for a, b in zip(rates, run["positions"]))
assert rates == sorted(rates, reverse=True) and len(lines[0]["reject_ranks"].split(" ")) == 11
assert abs(1 + sum(p["unconditional"] for p in run["positions"]) - float(lines[0]["tokens_per_round"])) < 0.1
lines = list(csv.DictReader(open(tmp + "/bench.csv", newline="")))
assert [(l["policy"], l["category"]) for l in lines] == [("ar", ""), ("ar", "counts"), ("ar", "words"), ("sd", ""), ("sd", "counts"), ("sd", "words")]
assert lines[3]["speedup"] != "" and lines[4]["speedup"] == "" and lines[4]["tokens_per_round"] != ""
END
    check "run and bench report the rates and ranks of a slow count" python3 "$TMP/check.py" "$TMP"

    # Another program's greedy text: the same trace whose last token is another one.
    cp -r "$TMP/trace" "$TMP/other"
    cat >"$TMP/edit.py" <<'END'
import csv, sys
path = sys.argv[1]
rows = list(csv.reader(open(path)))
at = rows[0].index("token_id")
rows[-1][at] = str(int(rows[-1][at]) ^ 1)
csv.writer(open(path, "w", newline=""), lineterminator="\n").writerows(rows)
END
    python3 "$TMP/edit.py" "$TMP/other/tokens.csv"
    works "diff compares two greedy texts that part" diff "$TMP/trace" "$TMP/other"
    check "diff prints the model's two best tokens where two greedy texts part" grep -q "the target's two best tokens there, in A: \".*\" 0[.][0-9]*, \".*\" 0[.][0-9]*; [0-9.]* logits apart$" "$TMP/out"
    works "diff writes the two best tokens as JSON" diff "$TMP/trace" "$TMP/other" --json "$TMP/diff.json"
    check "diff's JSON has the difference of the two best tokens' logits" json_holds "$TMP/diff.json" 'abs(__import__("math").log(j["texts"]["a_margin"]["probabilities"][0] / j["texts"]["a_margin"]["probabilities"][1]) - j["texts"]["a_margin"]["logits"]) < 1e-6'
else
    skip "run and bench report the rates and ranks of a slow count" "no python3"
fi
finish
