#!/usr/bin/env python3
"""GGUF files of the families in tests/golden/families, by llama.cpp's own converter.

    python3 tests/golden/make_families_gguf.py LLAMA_CPP_FOLDER [NAME…]

Runs convert_hf_to_gguf.py --outtype f16 on each folder. Only the vocabulary is ours: the folders share the little one of the
golden Llama, which the converter would not take for what each family has. Families that it does not know are left out.
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent / "families"
LLAMA = pathlib.Path(sys.argv[1]).resolve()
NAMES = sys.argv[2:]
sys.path[:0] = [str(LLAMA), str(LLAMA / "gguf-py"), str(pathlib.Path(__file__).parent.resolve())]

import convert_hf_to_gguf as converter
import gguf
from conversion.llama import LlamaModel
from safetensors.numpy import load_file, save_file

from make_models_golden import MERGES, PIECES, VOCAB


OLDER = {"PhimoeForCausalLM": "PhiMoEForCausalLM", "MptForCausalLM": "MPTForCausalLM"}  # what the converter knows them by


def set_vocab(self):
    w = self.gguf_writer
    merged = {a + b: -float(i) for i, (a, b) in enumerate(MERGES)}
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    w.add_tokenizer_model("llama")
    w.add_token_list(VOCAB)
    w.add_token_scores([merged.get(t, -1000.0) for t in VOCAB])
    w.add_token_types(kinds + [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(PIECES))
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)


def convert(folder):
    with tempfile.TemporaryDirectory() as temp:
        copy = pathlib.Path(temp) / folder.name
        shutil.copytree(folder, copy)
        out = ROOT / f"{folder.name}.gguf"
        # what GGUF has no words for
        if folder.name in ("gemma3-odd", "starcoder2-window", "falcon-sequential", "ministral", "gemma3-eye", "ministral3-eye",
                           "qwen3_moe-odd", "cohere-silent", "falcon-alibi", "qwen2_moe-window", "gemma4-eye", "vaultgemma", "cwm", "glm", "helium",
                           "jais2", "hyperclovax", "flex_olmo", "solar_open", "qwen3_next-odd", "qwen3_5-eye", "lfm2-odd", "granitehybrid-odd", "olmo_hybrid") or folder.name.endswith("-stacked"):
            return
        config = json.loads((copy / "config.json").read_text())
        config["architectures"] = [OLDER.get(a, a) for a in config["architectures"]]
        if folder.name == "bamba":  # the converter reorders whole heads, of which Bamba rotates the first half
            config["attn_rotary_emb"] = config["hidden_size"] // config["num_attention_heads"] // 2
            permute = LlamaModel.permute
            LlamaModel.permute = staticmethod(lambda weights, heads, kv_heads: permute(weights, 2 * heads, 2 * kv_heads))
        (copy / "config.json").write_text(json.dumps(config))
        sys.argv[1:] = [str(copy), "--outfile", str(out), "--outtype", "f16"]
        if folder.name.startswith(("qwen3_next", "qwen3_5")):  # without the layers for multi-token prediction, which they lack
            sys.argv.append("--no-mtp")
            weights = load_file(copy / "model.safetensors")  # e^A and 1 + w are computed in the type of the file
            save_file({k: v.astype("float32") for k, v in weights.items()}, copy / "model.safetensors", {"format": "pt"})
        converter.main()


for name in sorted(p.name for p in ROOT.iterdir() if p.is_dir() and (not NAMES or p.name in NAMES)):
    pid = os.fork()  # what the converter keeps for itself goes with the process
    if pid == 0:
        original = converter.get_model_class

        def chosen(*args, **kwargs):
            kind = original(*args, **kwargs)
            kind.set_vocab = set_vocab
            parameters = kind.set_gguf_parameters

            def with_older_names(self):
                part = (self.hparams.get("rope_parameters") or {}).get("partial_rotary_factor")
                self.hparams.setdefault("rotary_pct", part)
                self.hparams.setdefault("n_ctx", self.hparams.get("n_positions"))
                parameters(self)

            kind.set_gguf_parameters = with_older_names
            tensors = kind.prepare_tensors

            def with_one_kv_head(self):  # as Falcon's configurations had it before transformers filled it in
                if self.hparams.get("multi_query") and not self.hparams.get("new_decoder_architecture"):
                    self.hparams["num_kv_heads"] = 1
                tensors(self)

            kind.prepare_tensors = with_one_kv_head
            return kind

        converter.get_model_class = chosen
        try:
            convert(ROOT / name)
            os._exit(0)
        except BaseException as e:
            print(f"{name}: {type(e).__name__}: {e}")
            os._exit(1)
    os.waitpid(pid, 0)
