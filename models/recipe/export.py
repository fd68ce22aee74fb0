"""Writes a trained model as GGUF, and reads it: python3 export.py NAME --work FOLDER OUT.gguf [--type q8_0|f16]"""

import argparse
import os
from pathlib import Path

import gguf
import numpy as np
import sentencepiece
import torch

from gguf_file import add_quantised, add_sizes, finish
from model import SHAPES, TAPS, Model, Shape

TENSORS = {"attn_norm": "attn_norm", "ffn_norm": "ffn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v", "wo": "attn_output",
           "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
# Qwen3.5's: other names, and tensors of its own.
HYBRID = {"ffn_norm": "post_attention_norm", "q_norm": "attn_q_norm", "k_norm": "attn_k_norm", "qkv": "attn_qkv", "z": "attn_gate",
          "b": "ssm_beta", "a": "ssm_alpha", "conv": "ssm_conv1d", "step": "ssm_dt.bias", "decay": "ssm_a", "delta_norm": "ssm_norm",
          "out": "ssm_out"}


def vocabulary(writer, path):
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))
    tokens, scores, types = [], [], []
    for i in range(pieces.vocab_size()):
        tokens.append(pieces.id_to_piece(i).encode())
        scores.append(pieces.get_score(i))
        types.append(gguf.TokenType.UNKNOWN if pieces.is_unknown(i) else gguf.TokenType.CONTROL if pieces.is_control(i)
                     else gguf.TokenType.BYTE if pieces.is_byte(i)
                     else gguf.TokenType.USER_DEFINED if pieces.id_to_piece(i) == "\n" else gguf.TokenType.NORMAL)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(True)


def write(name, values, vocabulary_path, out, kind):
    shape = SHAPES[name]
    part = out.with_suffix(".part")
    writer = gguf.GGUFWriter(part, "qwen35" if shape.attention_every else "llama")
    writer.add_name(f"{name}-{round(shape.parameters / 1e6) or 1}m")
    writer.add_license("CC0-1.0")
    add_sizes(writer, shape.layers, shape.context, shape.width, shape.ffn, shape.heads, shape.kv_heads, shape.eps)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_rope_dimension_count(shape.rotated)
    if shape.attention_every:
        writer.add_key_length(shape.head_dim)
        writer.add_value_length(shape.head_dim)
        writer.add_full_attention_interval(shape.attention_every)
        writer.add_ssm_conv_kernel(TAPS)
        writer.add_ssm_state_size(shape.head_dim)
        writer.add_ssm_group_count(shape.heads)
        writer.add_ssm_time_step_rank(shape.heads)
        writer.add_ssm_inner_size(shape.heads * shape.head_dim)
    writer.add_vocab_size(shape.vocab)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0 if kind == "q8_0" else gguf.LlamaFileType.MOSTLY_F16)
    vocabulary(writer, vocabulary_path)

    def add(tensor, value, exact=False):
        value = value.float().numpy()
        if value.ndim == 1 or exact:
            writer.add_tensor(tensor, value)
        elif kind == "q8_0":
            add_quantised(writer, tensor, value)
        else:
            writer.add_tensor(tensor, value.astype(np.float16))

    add("token_embd.weight", values["embedding"])
    add("output_norm.weight", values["final_norm"])
    names = TENSORS | (HYBRID if shape.attention_every else {})
    for (l, ours), value in ((k, v) for k, v in values.items() if isinstance(k, tuple)):
        theirs = f"blk.{l - 1}.{names[ours]}"
        add(theirs if ours in ("step", "decay") else theirs + ".weight", -value.exp() if ours == "decay" else value, ours == "conv")
    finish(writer)
    os.replace(part, out)


def read(path):
    """A model of Llama's architecture that write() wrote, in F32, and the file's reader."""
    reader = gguf.GGUFReader(path)

    def number(key):
        return reader.fields[f"llama.{key}"].contents()

    tensors = {t.name: torch.tensor(gguf.quants.dequantize(t.data, t.tensor_type)) for t in reader.tensors}
    vocab, width = tensors["token_embd.weight"].shape
    heads, kv_heads = number("attention.head_count"), number("attention.head_count_kv")
    model = Model(Shape(number("block_count"), width, heads, kv_heads, number("feed_forward_length"), vocab,
                        number("context_length"), number("rope.freq_base")), torch.Generator())
    for key in model.values:
        name = f"blk.{key[0] - 1}.{TENSORS[key[1]]}" if isinstance(key, tuple) else \
            "token_embd" if key == "embedding" else "output_norm"
        model.values[key] = tensors[name + ".weight"]
    return model, reader


def main():
    o = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    o.add_argument("name", choices=SHAPES)
    o.add_argument("out", type=Path)
    o.add_argument("--work", type=Path, required=True)
    o.add_argument("--type", choices=("q8_0", "f16"), default="q8_0")
    o = o.parse_args()
    state = torch.load(o.work / f"{o.name}.pt")
    write(o.name, state["values"], o.work / "vocabulary.model", o.out, o.type)
    print(f"{o.out}: {o.out.stat().st_size / 1e6:.1f} MB, after {state['step']} steps")


if __name__ == "__main__":
    main()
