"""Compares two results of run --json prompt by prompt: where the token ids are the same, so are the counts by position.
Left out are prompts that the two split into different numbers of tokens (llama.cpp adds a space after a line break),
and texts that an end token ended within a round: a server counts the drafts after it. usage: same_counts.py SERVER.json
OWN.json"""

import json
import sys


def counts(result):
    return [(p["tested"], p["accepted"]) for p in result["positions"]]


with open(sys.argv[1], encoding="utf-8") as a, open(sys.argv[2], encoding="utf-8") as b:
    pairs = list(zip(json.load(a)["results"], json.load(b)["results"], strict=True))
same = [(x, y) for x, y in pairs if x["prompt_tokens"] == y["prompt_tokens"]
        and x["token_ids"] == y["token_ids"] and y["cut"] == 0]
different = [i for i, (x, y) in enumerate(same) if counts(x) != counts(y)]
print("%d of %d prompts have the same text; %d of these have other counts" % (len(same), len(pairs), len(different)))
for i in different[:3]:
    print("server %s\nown    %s" % (counts(same[i][0]), counts(same[i][1])))
sys.exit(1 if different or len(same) < len(pairs) / 4 else 0)
