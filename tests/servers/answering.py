#!/usr/bin/env python3
"""A server for tests of verdict: it answers as llama-server does, with the texts and rounds of specscope itself.

usage: answering.py [--ids-from N] PROGRAM MODEL [options of specscope run]
Prints its port. --ids-from: adds N to the prompts' token ids."""

import csv
import subprocess
import sys
import tempfile

import paced


class Handler(paced.Handler):
    def do_POST(self):
        if self.path == "/tokenize":
            asked = paced.json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.prompt = asked["content"]
            ids = self.specscope("tokenize", stdin=self.server.prompt).split()
            self.answer({"tokens": [{"id": int(i) + self.server.ids_from, "piece": "a"} for i in ids]})
        else:
            super().do_POST()

    def specscope(self, command, *options, stdin=None):
        words = [self.server.program, command, *options, self.server.model]
        return subprocess.run(words, input=stdin, capture_output=True, text=True, check=True).stdout

    def generate(self, asked):
        with tempfile.TemporaryDirectory() as folder:
            trace = folder + "/trace"
            self.specscope("run", *self.server.options, "-n", str(asked["n_predict"]), "-p", self.server.prompt, "--trace", trace)
            with open(trace + "/tokens.csv", newline="", encoding="utf-8") as f:
                tokens = [t for t in csv.DictReader(f) if t["source"] != "prompt" and t["committed"] == "1"]
            with open(trace + "/rounds.csv", newline="", encoding="utf-8") as f:
                rounds = {r["round"]: r for r in csv.DictReader(f)}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        drafted = accepted = 0
        now = None
        for t in tokens:
            if t["source"] != "prefill" and t["round"] != now:
                now = t["round"]
                drafted += int(rounds[now]["drafted"])
                accepted += int(rounds[now]["accepted"])
            timings = {"draft_n": drafted, "draft_n_accepted": accepted} if drafted > 0 else {}
            self.event({"content": "a", "tokens": [int(t["token_id"])], "stop": False, "timings": timings})
        self.event({"content": "", "tokens": [], "stop": True, "stop_type": "limit"})
        self.wfile.write(b"0\r\n\r\n")


def main():
    words = sys.argv[1:]
    paced.VOCAB = 1 << 17
    server = paced.Server(("127.0.0.1", 0), Handler)
    server.ids_from = int(words[1]) if words[0] == "--ids-from" else 0
    words = words[2:] if words[0] == "--ids-from" else words
    server.program, server.model, server.options = words[0], words[1], words[2:]
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
