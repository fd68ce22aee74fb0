#!/usr/bin/env python3
"""Seeds for fuzz_gguf: GGUF files with small byte-level BPE vocabularies, of every kind of thing that such metadata says.

    pip install numpy gguf
    python3 tests/fuzz/make_gguf_seeds.py

Adds seeds to tests/fuzz/seeds/fuzz_gguf.txt, which must not have their titles yet: vocabularies, and a model of one layer. They are small, so
that a mutation hits something that matters.
"""
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "models" / "recipe"))
from gguf_file import CONTROL, NORMAL, USER, add_quantised, add_sizes, finish

HERE = pathlib.Path(__file__).parent
MERGES = ["s o", "m e", "so me", "Ġ t", "e x", "Ġt ex", "Ġtex t", "Ċ Ċ", "1 2", "Ã ©"]
BYTES = sorted(set("".join(MERGES).replace(" ", "")) | set("<s>,.' abÿ") - {" "})
SPECIAL = ["<s>", "</s>", "<|eot_id|>"]
LLAMA3 = ("{{ bos_token }}<|start_header_id|>{% set date_string = \"26 Jul 2024\" %}Cutting Knowledge Date: May 2023\\n"
          "Today Date: <|eot_id|>")

VOCABULARIES = {  # name: (pre-tokenizer, all 256 bytes, further metadata)
    "gpt2": ("gpt-2", False, {}),
    "llama-bpe": ("llama-bpe", False, dict(add_bos_token=True, chat_template=LLAMA3)),
    "qwen2": ("qwen2", True, dict(add_bos_token=False, chat_template="<|im_start|>system\nBe kind.<|im_end|>")),
    "deepseek-v3": ("deepseek-v3", False, dict(add_bos_token=True, add_eos_token=True)),
    "falcon": ("falcon", False, dict(add_eos_token=True)),
    "model": ("smollm", False, dict(add_bos_token=True)),
}


def byte_chars():
    """GPT-2's characters for all bytes: themselves where they can be printed, else from U+0100 on."""
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    return [chr(b) for b in shown] + [chr(256 + i) for i in range(256 - len(shown))]


def add_layer(w, vocab):
    rng = np.random.default_rng(5)
    width, ffn = 32, 32
    shapes = {"token_embd": (vocab, width), "blk.0.attn_q": (width, width), "blk.0.attn_k": (16, width), "blk.0.attn_v": (16, width),
              "blk.0.attn_output": (width, width), "blk.0.ffn_gate": (ffn, width), "blk.0.ffn_up": (ffn, width),
              "blk.0.ffn_down": (width, ffn)}
    add_sizes(w, 1, 64, width, ffn, 4, 2, 1e-5)
    w.add_rope_dimension_count(8)
    for norm in "output_norm", "blk.0.attn_norm", "blk.0.ffn_norm":
        w.add_tensor(norm + ".weight", np.ones(width, np.float32))
    for i, (name, shape) in enumerate(shapes.items()):
        kind = (T.Q4_0, T.Q8_0, T.F16)[i % 3]
        add_quantised(w, name + ".weight", rng.normal(0, 0.2, shape).astype(np.float32), kind)


out = pathlib.Path(tempfile.mkdtemp()) / "seed"
for name, (pre, whole, further) in VOCABULARIES.items():
    pieces = SPECIAL + (byte_chars() if whole else BYTES) + [m.replace(" ", "") for m in MERGES]
    w = gguf.GGUFWriter(out, "llama")
    w.add_vocab_size(len(pieces))
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre)
    w.add_token_list(pieces)
    w.add_token_types([CONTROL] * 2 + [USER] + [NORMAL] * (len(pieces) - 3))
    w.add_token_merges(MERGES)
    w.add_bos_token_id(0)
    w.add_eos_token_id(1)
    for key, value in further.items():
        getattr(w, "add_" + key)(value)
    if name == "model":
        add_layer(w, len(pieces))
    finish(w)
    title = "a whole file: one layer" if name == "model" else f"a vocabulary: byte-level BPE of {name}"
    subprocess.run(["sh", HERE / "add_seed.sh", "fuzz_gguf", title, out], check=True)
out.unlink()
out.parent.rmdir()
