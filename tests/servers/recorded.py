#!/usr/bin/env python3
"""Records what a server answers, and answers the same later.

    recorded.py record URL FILE    a proxy on a free port; FILE gets a line of JSON for each request
    recorded.py replay FILE [...]  a server that answers these requests, in their order if they are equal, on a free
                                   port or the one after --port

Both print the port. Record with tests/servers/record.sh, which names the versions."""

import http.server
import json
import sys
import urllib.error
import urllib.request


def body_of(handler):
    text = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode()
    return json.loads(text) if text else None


class Handler(http.server.BaseHTTPRequestHandler):
    upstream = None  # the URL to record
    out = None
    lines = []  # recorded requests and answers
    used = {}

    def log_message(self, *_):
        pass

    def fetch(self, body):
        request = urllib.request.Request(self.upstream + self.path, method=self.command)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request) as answer:
                status, kind, text = answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            status, kind, text = error.code, error.headers.get("Content-Type", ""), error.read().decode()
        if self.path == "/metrics":  # only what is read
            text = "".join(line + "\n" for line in text.split("\n") if "spec_decode" in line or "requests" in line)
        line = {"method": self.command, "path": self.path, "body": body, "status": status, "type": kind, "answer": text}
        key = json.dumps([self.command, self.path, body])
        if key not in self.used or self.path == "/metrics":  # an equal request has an equal answer, except for times
            self.out.write(json.dumps(line, ensure_ascii=False) + "\n")
            self.out.flush()
        self.used[key] = 0
        return line

    def find(self, body):
        """Returns the next recorded answer to this request; the last one again if there are no more."""
        same = [line for line in self.lines if line["method"] == self.command and line["path"] == self.path
                and line["body"] == body]
        if not same:
            print("not recorded: %s %s %s" % (self.command, self.path, json.dumps(body)), file=sys.stderr)
            return {"status": 404, "type": "application/json", "answer": '{"error": "not recorded"}'}
        key = json.dumps([self.command, self.path, body])
        n = self.used[key] = self.used.get(key, -1) + 1
        return same[min(n, len(same) - 1)]

    def answer(self):
        body = body_of(self)
        if self.path == "/health":
            self.send_response(200)
            self.end_headers()
            return
        line = self.fetch(body) if self.upstream else self.find(body)
        try:
            self.send_response(line["status"])
            self.send_header("Content-Type", line["type"])
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(line["answer"].encode())
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has seen enough
        self.close_connection = True

    do_GET = do_POST = answer


def main():
    if sys.argv[1] == "record":
        Handler.upstream = sys.argv[2]
        Handler.out = open(sys.argv[3], "a", encoding="utf-8")
    else:
        with open(sys.argv[2], encoding="utf-8") as f:
            Handler.lines = [line for line in map(json.loads, f) if "path" in line]
    port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
