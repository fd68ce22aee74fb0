#!/usr/bin/env python3
"""Tiny models with packed weights in their folders, and the logits of the unpacked models.

    pip install numpy torch transformers safetensors
    python3 tests/golden/make_packed_golden.py [NAME…]

Writes tests/golden/packed/NAME/ and NAME.txt, in the format of tests/golden/models. This script packs the weights by the formats'
definitions. The logits are transformers', in double precision, for a dense model with the unpacked weights.
"""
import json
import pathlib
import shutil
import sys

import numpy as np
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

from make_families_golden import FAMILIES, new_model, without
from make_models_golden import N, PATH, randomise, share

OUT = pathlib.Path(__file__).parent / "packed"
BASE = dict(vocab_size=N, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=None, tie_word_embeddings=True)
FP8 = torch.float8_e4m3fn


def words(codes, bits):
    """Codes along the last axis, end to end, lowest bits first, as int32."""
    each = (codes.astype(np.uint32)[..., None] >> np.arange(bits, dtype=np.uint32) & 1).astype(np.uint8)
    stream = each.reshape(*codes.shape[:-1], -1, 32).astype(np.uint64)
    return (stream << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32).view(np.int32)


def less(stored, constants):
    """Words less constants that take turns, as GPTQModel makes its first version of the second."""
    x = stored.view(np.uint32).copy()
    for i, c in enumerate(constants):
        x[:, i::len(constants)] -= np.uint32(c)
    return x.view(np.int32)


def halves(x):
    return x.astype(np.float16)


def quantise(w, bits, groups, symmetric, least=1):
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
            zero = np.clip(np.rint(-low / scale), least, top)
        scale = halves(scale).astype(np.float64)
        codes[:, groups == g] = np.clip(np.rint(part / scale[:, None]) + zero[:, None], 0, top)
        scales[g], zeros[g] = scale, zero
    return codes.astype(np.int64), scales, zeros.astype(np.int64)


def mean(codes, scales, zeros, groups):
    return scales.T[:, groups] * (codes - zeros.T[:, groups])


def gptq(w, bits, size, symmetric=True, first=False, act=None, least=1, constants=None, order=True):
    cols = w.shape[1]
    groups = np.arange(cols) // size
    if act is not None:
        groups = groups[act.permutation(cols)]
    codes, scales, zeros = quantise(w, bits, groups, symmetric, least)
    stored = words(zeros - 1 if first else zeros, bits)
    pieces = {"qweight": words(codes.T.reshape(cols, -1).T.copy(), bits).T.copy(), "scales": halves(scales),
              "qzeros": less(stored, constants) if constants else stored} | (dict(g_idx=groups.astype(np.int32)) if order else {})
    return pieces, mean(codes, scales, zeros, groups)


def awq(w, size):
    groups = np.arange(w.shape[1]) // size
    codes, scales, zeros = quantise(w, 4, groups, False)
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def shuffled(x):
        return x.reshape(x.shape[0], -1, 8)[:, :, order].reshape(x.shape)

    return {"qweight": words(shuffled(codes.T), 4), "qzeros": words(shuffled(zeros), 4), "scales": halves(scales)}, \
        mean(codes, scales, zeros, groups)


def awq_rows(w, size):
    """AutoAWQ's GEMV: in order; four words of zeros at a time where groups are of 32 (calculate_zeros_width)."""
    groups = np.arange(w.shape[1]) // size
    codes, scales, zeros = quantise(w, 4, groups, False)
    width = -(-zeros.shape[0] // 32) * 32
    wide_zeros, wide_scales = np.zeros((w.shape[0], width), np.int64), np.zeros((w.shape[0], width))
    wide_zeros[:, :zeros.shape[0]], wide_scales[:, :zeros.shape[0]] = zeros.T, scales.T
    return {"qweight": words(codes, 4), "qzeros": words(wide_zeros, 4), "scales": halves(wide_scales)}, \
        mean(codes, scales, zeros, groups)


def compressed(w, size, bits=4, symmetric=True):
    groups = np.arange(w.shape[1]) // size
    codes, scales, zeros = quantise(w, bits, groups, symmetric, 0)
    return {"weight_packed": words(codes, bits), "weight_scale": halves(scales.T.copy()),
            "weight_shape": np.array(w.shape, np.int64)} | ({} if symmetric else {"weight_zero_point": words(zeros, bits).T.copy()}), \
        mean(codes, scales, zeros, groups)


def signed_bytes(w):
    scales = torch.tensor(np.abs(w).max(1, keepdims=True) / 127).bfloat16()
    codes = np.clip(np.rint(w / scales.double().numpy()), -128, 127)
    return {"weight": codes.astype(np.int8), "weight_scale": scales}, codes * scales.double().numpy()


NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]  # Dettmers et al. 2023, appendix E


def bnb4(w, nested):
    """bitsandbytes' NF4 in blocks of 64 through the whole matrix; `nested`: their scales in bytes, in blocks of 256."""
    table, x = np.array(NF4, np.float32), w.reshape(-1, 64)
    largest = np.abs(x).max(1).astype(np.float32)
    state = dict(quant_type="nf4", blocksize=64, dtype="float16", shape=list(w.shape))
    pieces = {"weight.quant_map": table}
    if nested:
        offset, size = float(np.float32(largest.mean())), 256
        rest = np.pad(largest - np.float32(offset), (0, -len(largest) % size)).reshape(-1, size)
        map_ = np.sort(np.tanh(np.linspace(-2, 2, 256)) / np.tanh(2)).astype(np.float32)
        outer = np.abs(rest).max(1).astype(np.float32)
        bytes_ = np.abs(rest[..., None] / outer[:, None, None] - map_).argmin(-1)
        kept = (map_[bytes_] * outer[:, None]).reshape(-1)[:len(largest)] + np.float32(offset)
        state |= dict(nested_blocksize=size, nested_dtype="float32", nested_offset=offset)
        pieces |= {"weight.nested_absmax": outer, "weight.nested_quant_map": map_,
                   "weight.absmax": bytes_.reshape(-1)[:len(largest)].astype(np.uint8)}
        largest = kept
    else:
        pieces["weight.absmax"] = largest
    codes = np.abs((x / largest[:, None])[..., None] - table).argmin(-1)
    back = (table[codes].astype(np.float64) * largest.astype(np.float64)[:, None]).reshape(w.shape)
    flat = codes.reshape(-1).astype(np.uint8)
    text = json.dumps(state).encode()
    return {"weight": (flat[0::2] << 4 | flat[1::2]).reshape(-1, 1),
            "weight.quant_state.bitsandbytes__nf4": np.frombuffer(text, np.uint8)} | pieces, back


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

SMALL = GPTQ | dict(checkpoint_format="gptq")
BNB4 = dict(quant_method="bitsandbytes", load_in_4bit=True, load_in_8bit=False, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=False)
ONES = {2: [0x55555555], 3: [0x24924924, 0x92492492, 0x49249249]}  # as convert_gptq_v2_to_v1_format has them


def packed_group(**weights):
    return dict(quant_method="compressed-tensors", format="pack-quantized", config_groups=dict(group_0=dict(
        targets=["Linear"], weights=dict(type="int") | weights)))


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
    "gptq-2": (lambda w: gptq(w, 2, 32, False, least=0, constants=ONES[2]), SMALL | dict(bits=2, sym=False), "small"),
    "gptq-3": (lambda w: gptq(w, 3, 32, False, first=True), without(GPTQ, "checkpoint_format") | dict(bits=3, sym=False), "small"),
    "gptq-3-middle": (lambda w: gptq(w, 3, 64, constants=ONES[3]), SMALL | dict(
        bits=3, group_size=64, meta=dict(quantizer=["gptqmodel:2.2.0"])), "small"),
    "awq-rows": (lambda w: awq_rows(w, 32), dict(quant_method="awq", bits=4, group_size=32, zero_point=True, version="gemv"), "small"),
    "auto-round": (lambda w: gptq(w, 4, 32, first=True, order=False), dict(
        quant_method="auto-round", packing_format="auto_round:auto_gptq", bits=4, group_size=32, sym=True, data_type="int"), "small"),
    "auto-round-own": (lambda w: gptq(w, 4, 32, False, order=False, least=0), dict(
        quant_method="auto-round", packing_format="auto_round", bits=4, group_size=32, sym=False, data_type="int"), "small"),
    "compressed-zeros": (lambda w: compressed(w, 32, 4, False), packed_group(
        num_bits=4, symmetric=False, strategy="group", group_size=32), "small"),
    "compressed-16": (lambda w: compressed(w, w.shape[1], 8), packed_group(num_bits=8, symmetric=True, strategy="channel"), "small"),
    "nf4": (lambda w: bnb4(w, False), BNB4, "small"),
    "nf4-nested": (lambda w: bnb4(w, True), BNB4 | dict(bnb_4bit_use_double_quant=True), "small"),
}


KINDS = {"llama": lambda: tf.LlamaConfig(**BASE), "small": lambda: tf.LlamaConfig(**BASE | dict(num_hidden_layers=1)), "phi3": lambda: tf.Phi3Config(**BASE), "gpt_oss": FAMILIES["gpt_oss"]}


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
        packed |= {key.removesuffix("weight") + end: as_tensor(x.copy() if isinstance(x, np.ndarray) else x) for end, x in pieces.items()}
    save_file(packed, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    text = json.loads((folder / "config.json").read_text()) | dict(quantization_config=setting)
    (folder / "config.json").write_text(json.dumps(text, indent=2) + "\n")
    (folder / "config.json").chmod(0o644)
    share(folder)
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
