#!/usr/bin/env python3
"""Compares counts of drafts with a server's own counters.

    counts.py save URL FILE             stores the counters
    counts.py compare URL FILE RESULT   compares what was added since then with results of run --json

Prints the counts by position; the status is 1 if they differ."""

import json
import re
import sys
import urllib.request

NAMES = {"drafts": "spec_decode_num_drafts_total", "drafted": "spec_decode_num_draft_tokens_total",
         "accepted": "spec_decode_num_accepted_tokens_total"}
POSITION = re.compile(r'\w+:spec_decode_num_accepted_tokens_per_pos_total\{.*position="(\d+)".*\} (\S+)')


def counters(url):
    with urllib.request.urlopen(url + "/metrics") as answer:
        text = answer.read().decode()
    found = {"at": {}}
    for name, metric in NAMES.items():
        match = re.search(r"^\w+:%s(\{.*\})? (\S+)$" % metric, text, re.MULTILINE)
        found[name] = int(float(match.group(2))) if match else 0
    for position, value in POSITION.findall(text):
        found["at"][position] = int(float(value))
    return found


def results(path):
    with open(path, encoding="utf-8") as f:
        whole = json.load(f)
    found = {"drafts": 0, "drafted": 0, "accepted": 0, "at": {}}
    for one in whole.get("results", [whole]):
        positions = one.get("positions", [])
        found["drafts"] += positions[0]["tested"] if positions else 0
        found["drafted"] += one["drafted"]
        found["accepted"] += one["accepted"]
        for i, p in enumerate(positions):
            found["at"][str(i)] = found["at"].get(str(i), 0) + p["accepted"]
    return found


def main():
    what, url, path = sys.argv[1:4]
    now = counters(url)
    if what == "save":
        with open(path, "w", encoding="utf-8") as f:
            json.dump(now, f)
        return 0
    with open(path, encoding="utf-8") as f:
        before = json.load(f)
    theirs = {name: now[name] - before[name] for name in NAMES}
    theirs["at"] = {i: n - before["at"].get(i, 0) for i, n in now["at"].items()}
    ours = results(sys.argv[4])
    same = theirs["drafts"] > 0
    for counts in (theirs, ours):
        counts["at"] = {i: n for i, n in counts["at"].items() if n > 0}
    for name in list(NAMES) + ["at"]:
        same = same and ours[name] == theirs[name]
    print("server: %s\nrounds: %s" % (json.dumps(theirs, sort_keys=True), json.dumps(ours, sort_keys=True)))
    return 0 if same else 1


sys.exit(main())
