"""build/tests/logits, asked for one model after the other."""
import subprocess

import numpy as np


class Program:
    def __init__(self, path):
        self.path, self.process = path, None

    def __enter__(self):
        self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def logits(self, model, tokens):
        """(logits or None, words, how far it can read)."""
        self.process.stdin.write(f"{model} {' '.join(map(str, tokens))}\n".encode())
        self.process.stdin.flush()
        said = self.process.stdout.readline().decode(errors="replace").rstrip("\n")
        if not said.startswith("logits "):
            if not said:
                raise SystemExit(f"{self.path} has ended")
            return None, said.removeprefix("error "), 0
        rows, vocab, ctx = map(int, said.split()[1:])
        data = self.process.stdout.read(4 * rows * vocab)
        return np.frombuffer(data, np.float32).reshape(rows, vocab).astype(np.float64), "", ctx
