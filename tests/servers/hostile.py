#!/usr/bin/env python3
"""A server for tests that plays a part, which is the first word of the path: GET /health has status 200, and
POST /endless/completion answers with events that never end. Requests about the model are answered honestly, as
llama-server does, so that a client comes as far as its first prompt.

usage: tests/servers/hostile.py --host 127.0.0.1 --port PORT [--tls FILE] [--ignore-term] [--children FILE] [--mute FILE]
"""
import argparse
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = {"index": 0, "content": " a", "tokens": [262], "stop": False, "id_slot": 0, "tokens_predicted": 1, "tokens_evaluated": 3}
LAST = dict(TOKEN, content="", tokens=[], stop=True, stop_type="limit")
seen = []  # the Authorization of requests to /stolen


def event(value):
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def counts(n, accepted):
    return dict(TOKEN, timings={"draft_n": n, "draft_n_accepted": accepted, "predicted_ms": n, "prompt_ms": n})


# The bytes of a stream: what follows two honest tokens.
STREAMS = {
    "honest": lambda: [event(TOKEN), event(LAST), event(b"[DONE]")],
    "wrong-json": lambda: [event(b'{"content": " b", "tokens": [26')],
    "no-object": lambda: [event(b"[[7]]"), event(b"3")],
    "deep-json": lambda: [event(b"[" * 200000)],
    "invalid-utf8": lambda: [event(b'{"content": "\xff\xfe\xc0\x80", "tokens": [300], "stop": false}'), event(LAST)],
    "escapes": lambda: [event(dict(TOKEN, tokens=[300], content="\x1b]0;owned\x07\x1b[2J\r\x9b31m")), event({"error": {"message": "\x1b[31mred"}})],
    "negative-counts": lambda: [event(counts(-5, -9)), event(dict(TOKEN, tokens=[-7])), event(LAST)],
    "huge-counts": lambda: [event(counts(1e300, 1e308)), event(dict(TOKEN, tokens=[4e18] * 3)), event(counts(2**63, 2**64)), event(LAST)],
    "wrong-types": lambda: [event(dict(TOKEN, content=3, tokens="x", stop="no", timings=[1])), event(LAST)],
    "falling-counts": lambda: [event(counts(8, 4)), event(counts(3, 9)), event(LAST)],
    "long-word": lambda: [event(dict(TOKEN, tokens=[300], content="x" * 3000000)), event(LAST)],
    "many-tokens": lambda: [event(dict(TOKEN, tokens=[262] * 500000))],
    "many-drafts": lambda: [event(counts(1, 1)), event(counts(4000000000, 4000000000)), event(LAST)],
    "endless": lambda: iter(lambda: event(TOKEN), None),
    "endless-empty": lambda: iter(lambda: event(dict(TOKEN, content="", tokens=[])), None),
    "endless-comment": lambda: iter(lambda: b": note\n\n" * 1000, None),
    "endless-line": lambda: (b"x" * (1 << 20) for _ in range(1024)),  # 1 GB
    "slow-comment": lambda: (time.sleep(0.05) or b":\n\n" for _ in iter(int, 1)),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def begin(self, status, kind, *headers):
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Connection", "close"), *headers):
            self.send_header(name, value)
        self.end_headers()

    def answer(self, value, status=200):
        text = json.dumps(value).encode()
        self.begin(status, "application/json", ("Content-Length", str(len(text))))
        self.wfile.write(text)

    def chunk(self, bytes_):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(bytes_), bytes_))

    def do_GET(self):
        part, _, path = self.path[1:].partition("/")
        key = self.headers.get("Authorization", "none")
        if part == "health":
            self.answer({"status": "ok"})
        elif part == "pid":
            self.answer(os.getpid())
        elif part == "key":
            self.answer({"key": key})
        elif part == "stolen":
            seen.append(key)
            self.answer({})
        elif part == "seen":
            self.answer(seen)
        elif part == "mute":
            with open(self.server.mute, "w", encoding="ascii") as file:
                file.write("asked\n")
            time.sleep(1000)
        elif part == "locked":
            self.answer({"error": {"message": f"wrong key: {key}"}}, 401)
        elif path == "props":
            odd = part == "odd-model"
            self.answer({"default_generation_settings": {"n_ctx": -1e300 if odd else 512}, "model_path": "hostile.gguf",
                         "model_alias": "\x1b]0;owned\x07" * 1000 if odd else "hostile", "build_info": ["b1"] if odd else "b1",
                         "model_ftype": {} if odd else "F16"})
        elif path == "v1/models":
            meta = {"n_vocab": -1, "n_embd": 1e300, "n_params": "x"} if part == "odd-model" else {"n_vocab": 1024, "n_embd": 64}
            self.answer({"object": "list", "data": [{"id": "hostile", "object": "model", "meta": meta}]})
        elif path in ("health", "v1/health"):
            self.answer({"status": "ok"})
        elif path == "call":
            self.play(part)
        else:
            self.answer({"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}, 404)

    def do_POST(self):
        part, _, path = self.path[1:].partition("/")
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if path == "tokenize":
            ids = {"odd-prompt": [1, -1], "no-prompt": [], "long-prompt": [1] * 100000}.get(part, [1, 2, 3])
            self.answer({"tokens": [{"id": i, "piece": [300, "x"] if part == "odd-pieces" else " a"} for i in ids]})
        elif path == "detokenize":
            self.answer({"content": " a"})
        elif path == "apply-template":
            self.answer({"prompt": "x"})
        else:
            self.play(part)

    def play(self, part):
        key = self.headers.get("Authorization", "none")
        if part == "redirect":  # another host by its name
            self.begin(307, "text/plain", ("Location", f"http://localhost:{self.server.server_port}/stolen"), ("Content-Length", "0"))
        elif part == "unauthorized":
            self.answer({"error": {"message": f"wrong key: {key} \x1b[31mred\n2", "code": 401}}, 401)
        elif part == "escaped-key":
            text = '{"message": "wrong key: %s"}' % "".join(f"\\u{ord(c):04x}" for c in key.partition(" ")[2])
            self.begin(403, "application/json", ("Content-Length", str(len(text))))
            self.wfile.write(text.encode())
        elif part == "html":
            self.begin(500, "text/html")
            self.wfile.write(b"<html><body>\x1b[31m<h1>500</h1>" + b"x" * 100000)
        elif part == "wrong-type":
            self.begin(200, "text/html\x1b[31m")
            self.wfile.write(event(TOKEN))
        elif part == "endless-header":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                self.wfile.write(b"X-More: " + b"x" * 1000 + b"\r\n")
        elif part == "endless-answer":
            self.begin(200, "application/json")
            while True:
                self.wfile.write(b" " * (1 << 20))
        elif part == "garbage":
            self.wfile.write(b"\x00\xff\x1b[31m" * 1000)
        elif part == "silent":
            time.sleep(1000)
        elif part in STREAMS or part in ("cut", "stalled", "odd-model", "odd-pieces"):
            self.begin(200, "text/event-stream", ("Transfer-Encoding", "chunked"))
            self.chunk(event(TOKEN) * 2)  # of the prompt, and a round
            if part == "stalled":
                time.sleep(1000)
            for piece in [] if part == "cut" else STREAMS.get(part, STREAMS["honest"])():
                self.chunk(piece)
            if part != "cut":
                self.wfile.write(b"0\r\n\r\n")
        else:
            self.answer({"error": "there is no such part"}, 404)
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that has gone


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--tls", help="a file with a certificate and its key")
    options.add_argument("--ignore-term", action="store_true")
    options.add_argument("--children", metavar="FILE", help="starts two processes, one in a session of its own; writes all ids")
    options.add_argument("--mute", metavar="FILE", help="written when the part 'mute' is asked")
    o = options.parse_args()
    server = Server((o.host, o.port), Handler)
    server.mute = o.mute
    if o.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(o.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    if o.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if o.children:
        ids = [os.getpid()] + [subprocess.Popen(["sleep", "1000"], start_new_session=own).pid for own in (False, True)]
        with open(o.children, "w", encoding="ascii") as file:
            file.write(" ".join(map(str, ids)) + "\n")
    if o.port == 0:
        print(server.server_port, os.getpid(), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
