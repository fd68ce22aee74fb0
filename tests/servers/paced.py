#!/usr/bin/env python3
"""A server for tests of tuning: it answers as llama-server does, at a pace that its options of speculation determine. A
round with k drafts takes k twentieths longer than one without drafts.

usage: tests/servers/paced.py [--pace SECONDS] [--accepted N] [--start SECONDS] [--ids FILE] [--fail-at K]... --host 127.0.0.1
    --port PORT [llama-server's options of speculation]
"""
import argparse
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VOCAB = 300


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, value, status=200):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        if self.path == "/health":
            self.answer({"status": "ok"})
        elif self.path == "/props":
            self.answer({"default_generation_settings": {"n_ctx": 2048}, "build_info": "b1-paced", "model_alias": "paced", "model_ftype": "F32"})
        elif self.path == "/v1/models":
            self.answer({"data": [{"id": "paced", "meta": {"n_vocab": VOCAB, "n_embd": 8, "n_params": 1000}}]})
        else:
            self.answer({"error": {"message": "File Not Found"}}, 404)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            self.answer({"tokens": [{"id": b, "piece": chr(b)} for b in asked["content"].encode()[:64]]})
        elif self.path == "/completion":
            self.generate(asked)
        else:
            self.answer({"error": {"message": "File Not Found"}}, 404)

    def event(self, value):
        data = b"data: " + json.dumps(value).encode() + b"\n\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def generate(self, asked):
        o = self.server.options
        drafts, round_s = o.drafts, o.pace * (1 + o.drafts / 20)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        made = drafted = accepted = 0
        while made < asked["n_predict"]:
            if made > 0:  # the first token is the prompt's
                time.sleep(round_s)
                drafted += drafts
            n = min(drafts, o.accepted, asked["n_predict"] - made - 1) if made > 0 else 0
            accepted += n
            for _ in range(n + 1):
                timings = {"draft_n": drafted, "draft_n_accepted": accepted} if drafted > 0 else {}
                self.event({"content": "a", "tokens": [97 + (sum(asked["prompt"]) + made) % 26], "stop": False, "timings": timings})
                made += 1
        self.event({"content": "", "tokens": [], "stop": True, "stop_type": "limit"})
        self.wfile.write(b"0\r\n\r\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that has gone


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pace", type=float, default=0.01)
    parser.add_argument("--start", type=float, default=0)
    parser.add_argument("--accepted", type=int, default=3, help="drafts of a round, at most")
    parser.add_argument("--ids", help="file for the ids of all servers")
    parser.add_argument("--fail-at", type=int, action="append", default=[], help="does not start with so many drafts")
    parser.add_argument("--spec-ngram-simple-size-m", dest="drafts", type=int, default=0)
    o, _ = parser.parse_known_args()
    if o.ids:
        with open(o.ids, "a", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
    if o.drafts in o.fail_at:
        sys.exit(f"paced: {o.drafts} drafts do not fit")
    time.sleep(o.start)
    server = Server((o.host, o.port), Handler)
    server.options = o
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
