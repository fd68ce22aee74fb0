"""build/tests/model_logits, asked for one model after the other."""
import json
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
        self.process.stdin.write(f"{model}\t{' '.join(map(str, tokens))}\n".encode())
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        if not said:
            raise SystemExit(f"{self.path} has ended")
        o = json.loads(said)
        if "error" in o:
            return None, o["error"], 0
        return np.array(o["logits"], np.float64), "", o["context"]
