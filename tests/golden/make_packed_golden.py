#!/usr/bin/env python3
"""Tiny models whose folders keep their weights packed, and the logits of what they stand for.

    pip install numpy torch transformers safetensors
    python3 tests/golden/make_packed_golden.py [NAME…]

Writes tests/golden/packed/NAME/ and NAME.txt, read like those of tests/golden/models. Weights are packed here, from the formats'
definitions; the logits are transformers', in double precision, of a dense model with the weights that the codes, scales and
zeros mean.
"""
import json
import os
import pathlib
import shutil
import sys

import numpy as np
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

from make_families_golden import FAMILIES, new_model
from make_models_golden import N, PATH, randomise

OUT = pathlib.Path(__file__).parent / "packed"
BASE = dict(vocab_size=N, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=None, tie_word_embeddings=True)
FP8 = torch.float8_e4m3fn


def words(codes, bits):
    """Codes along the last axis, lowest bits first, as int32."""
    n = 32 // bits
    c = codes.astype(np.uint64).reshape(*codes.shape[:-1], -1, n)
    return (c << (np.arange(n, dtype=np.uint64) * np.uint64(bits))).sum(-1).astype(np.uint32).view(np.int32)


def halves(x):
    return x.astype(np.float16)


def quantise(w, bits, groups, symmetric):
    """Codes (rows, cols), scales and zeros (groups, rows) of F16 scales; groups: of each column."""
    n, top = groups.max() + 1, (1 << bits) - 1
    codes, scales, zeros = np.zeros(w.shape), np.zeros((n, w.shape[0])), np.zeros((n, w.shape[0]))
    for g in range(n):
        part = w[:, groups == g]
        if symmetric:
            scale, zero = 2 * np.abs(part).max(1) / top, np.full(w.shape[0], (top + 1) // 2)
        else:
            low, high = np.minimum(part.min(1), 0), np.maximum(part.max(1), 0)
            scale = (high - low) / top
            zero = np.clip(np.rint(-low / scale), 1, top)
        scale = halves(scale).astype(np.float64)
        codes[:, groups == g] = np.clip(np.rint(part / scale[:, None]) + zero[:, None], 0, top)
        scales[g], zeros[g] = scale, zero
    return codes.astype(np.int64), scales, zeros.astype(np.int64)


def mean(codes, scales, zeros, groups):
    return scales.T[:, groups] * (codes - zeros.T[:, groups])


def gptq(w, bits, size, symmetric=True, first=False, act=None):
    cols = w.shape[1]
    groups = np.arange(cols) // size
    if act is not None:
        groups = groups[act.permutation(cols)]
    codes, scales, zeros = quantise(w, bits, groups, symmetric)
    stored = zeros - 1 if first else zeros
    return {"qweight": words(codes.T.reshape(cols, -1).T.copy(), bits).T.copy(), "qzeros": words(stored, bits), "scales": halves(scales),
            "g_idx": groups.astype(np.int32)}, mean(codes, scales, zeros, groups)


def awq(w, size):
    groups = np.arange(w.shape[1]) // size
    codes, scales, zeros = quantise(w, 4, groups, False)
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def shuffled(x):
        return x.reshape(x.shape[0], -1, 8)[:, :, order].reshape(x.shape)

    return {"qweight": words(shuffled(codes.T), 4), "qzeros": words(shuffled(zeros), 4), "scales": halves(scales)}, \
        mean(codes, scales, zeros, groups)


def compressed(w, size):
    groups = np.arange(w.shape[1]) // size
    codes, scales, zeros = quantise(w, 4, groups, True)
    return {"weight_packed": words(codes, 4), "weight_scale": halves(scales.T.copy()),
            "weight_shape": np.array(w.shape, np.int64)}, mean(codes, scales, zeros, groups)


def signed_bytes(w):
    scales = torch.tensor(np.abs(w).max(1, keepdims=True) / 127).bfloat16()
    codes = np.clip(np.rint(w / scales.double().numpy()), -128, 127)
    return {"weight": codes.astype(np.int8), "weight_scale": scales}, codes * scales.double().numpy()


def fp8(w, rows, cols, name):
    """A scale for each block of rows by cols."""
    down, across = -(-w.shape[0] // rows), -(-w.shape[1] // cols)
    scales, codes, back = np.zeros((down, across), np.float32), torch.zeros(w.shape, dtype=FP8), np.zeros(w.shape)
    for r in range(down):
        for c in range(across):
            at = (slice(r * rows, (r + 1) * rows), slice(c * cols, (c + 1) * cols))
            scales[r, c] = np.abs(w[at]).max() / 448
            codes[at] = torch.tensor(w[at] / scales[r, c]).to(FP8)
            back[at] = codes[at].double().numpy() * float(scales[r, c])
    return {"weight": codes, name: scales if scales.size > 1 else scales.reshape(())}, back


def mxfp4(w):
    """Experts (n, inputs, outputs), as transformers holds them: blocks and exponents of (n, outputs, inputs)."""
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    x = w.transpose(0, 2, 1).reshape(w.shape[0], w.shape[2], -1, 32)
    exponents = np.clip(np.ceil(np.log2(np.abs(x).max(-1, keepdims=True) / 6)), -100, 100)
    codes = np.abs(np.abs(x / 2**exponents)[..., None] - values).argmin(-1)
    back = (np.sign(x) * values[codes] * 2**exponents).reshape(w.shape[0], w.shape[2], -1).transpose(0, 2, 1)
    codes = (codes + 8 * (x < 0)).astype(np.uint8)
    return {"_blocks": codes[..., 0::2] | codes[..., 1::2] << 4, "_scales": (exponents[..., 0] + 127).astype(np.uint8)}, back


ACT = np.random.default_rng(3)
GPTQ = dict(quant_method="gptq", bits=4, group_size=32, desc_act=False, sym=True, checkpoint_format="gptq")
GROUP = dict(config_groups=dict(group_0=dict(targets=["Linear"], weights=dict(
    num_bits=4, type="int", symmetric=True, strategy="group", group_size=32))), format="pack-quantized")
BYTES = dict(config_groups=dict(group_0=dict(targets=["Linear"], weights=dict(
    num_bits=8, type="int", symmetric=True, strategy="channel"))), format="int-quantized")
CHANNEL = dict(config_groups=dict(group_0=dict(targets=["Linear"], weights=dict(
    num_bits=8, type="float", symmetric=True, strategy="channel"))), format="float-quantized")

PACKED = {  # name: (how a matrix is packed, quantization_config, the model)
    "fp8-block": (lambda w: fp8(w, 32, 32, "weight_scale_inv"), dict(quant_method="fp8", weight_block_size=[32, 32]), "llama"),
    "fp8-tensor": (lambda w: fp8(w, *w.shape, "weight_scale"), dict(quant_method="fp8"), "llama"),
    "fp8-channel": (lambda w: fp8(w, 1, w.shape[1], "weight_scale"), dict(quant_method="compressed-tensors") | CHANNEL, "llama"),
    "gptq": (lambda w: gptq(w, 4, 32, first=True), GPTQ, "phi3"),
    "gptq-zeros": (lambda w: gptq(w, 4, 32, False), GPTQ | dict(sym=False, checkpoint_format="gptq_v2"), "llama"),
    "gptq-order": (lambda w: gptq(w, 4, 32, False, first=True, act=ACT), GPTQ | dict(desc_act=True, sym=False), "llama"),
    "gptq-8": (lambda w: gptq(w, 8, w.shape[1], first=True), GPTQ | dict(bits=8, group_size=-1), "llama"),
    "awq": (lambda w: awq(w, 32), dict(quant_method="awq", bits=4, group_size=32, zero_point=True, version="gemm"), "llama"),
    "compressed": (lambda w: compressed(w, 32), dict(quant_method="compressed-tensors") | GROUP, "llama"),
    "compressed-8": (signed_bytes, dict(quant_method="compressed-tensors") | BYTES, "llama"),
    "mxfp4": (mxfp4, dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn", "model.layers.*.mlp.router"]), "gpt_oss"),
}


KINDS = {"llama": lambda: tf.LlamaConfig(**BASE), "phi3": lambda: tf.Phi3Config(**BASE), "gpt_oss": FAMILIES["gpt_oss"]}


def as_tensor(x):
    return x if isinstance(x, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(x))


def make(name, seed):
    pack, setting, kind = PACKED[name]
    config = KINDS[kind]()
    model = new_model(config).float()
    randomise(model, seed)
    model = model.half()
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    dense, packed = {k: v.double() for k, v in model.state_dict().items()}, {}
    for key, w in load_file(folder / "model.safetensors").items():
        if "proj" not in key or (kind == "gpt_oss" and ("self_attn" in key or "bias" in key)):
            packed[key] = w
            continue
        pieces, back = pack(w.double().numpy())
        dense[key] = torch.from_numpy(back)
        packed |= {key.removesuffix("weight") + end: as_tensor(x) for end, x in pieces.items()}
    save_file(packed, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    text = json.loads((folder / "config.json").read_text()) | dict(quantization_config=setting)
    (folder / "config.json").write_text(json.dumps(text, indent=2) + "\n")
    (folder / "config.json").chmod(0o644)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        os.symlink(f"../../models/llama/{file}", folder / file)
    (folder / "generation_config.json").write_text(json.dumps(dict(bos_token_id=1, eos_token_id=2)))
    model = new_model(config).double().eval()
    model.load_state_dict(dense)
    with torch.no_grad():
        z = model(torch.tensor([PATH])).logits[0, 27]
    lines = [f"# made by make_packed_golden.py: {name}", "tokens " + " ".join(map(str, PATH)), f"row 27 {config.num_hidden_layers}"] + ["%.7g" % v for v in z]
    (OUT / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for i, one in enumerate(PACKED):
        if len(sys.argv) == 1 or one in sys.argv[1:]:
            print(one)
            make(one, 90 + i)
