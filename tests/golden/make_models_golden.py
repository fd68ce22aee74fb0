#!/usr/bin/env python3
"""Tiny random models of every architecture, and their logits by PyTorch's transformers in double precision.

    pip install numpy gguf torch transformers safetensors
    python3 tests/golden/make_models_golden.py

Writes tests/golden/shared/ (the tokenizer and generation_config.json of all golden folders; assemble.sh links them into the folders), and
tests/golden/models/NAME/ (a Hugging Face folder), NAME.gguf (the same weights) and NAME.txt for each of MODELS, and
types.gguf and tables.gguf with their .txt: Llamas whose matrices have every GGUF type, in tables.gguf the ternary types and those with
tables; K-quants and IQ types are random blocks. llama-q8_0.gguf contains llama's weights in Q8_0 by the gguf package, and
vocabulary.gguf contains no weights. NAME.txt has the format of logits_fables.txt: a line `tokens`, then for each golden row
`row POSITION LAYER` and the vocabulary's logits; layers below the last go through norm and head. The lines after the rows contain the
greedy continuation: `greedy` and tokens, `fresh` and tokens without repetition, `near STEP TOKEN MARGIN` for a second token that is as good.
"""
import json
import pathlib
import shutil
import subprocess
import sys

import gguf
import numpy as np
import torch
import transformers as tf
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "models" / "recipe"))
from gguf_file import add_pieces, add_sizes, finish

OUT = pathlib.Path(__file__).parent / "models"
PIECES = ["▁", "t", "h", "e", "a", "▁t", "he", "▁the", "n", "d", "an", "▁an", "▁and", "s", "o", "w", "r", "▁w", "▁s", "▁o",
          "i", "in", "▁in", "er", "re", "▁a", "ll", "l", "u"]
MERGES = [["▁", "t"], ["h", "e"], ["▁t", "he"], ["a", "n"], ["▁", "an"], ["▁an", "d"], ["▁", "w"], ["▁", "s"], ["▁", "o"],
          ["i", "n"], ["▁", "in"], ["e", "r"], ["r", "e"], ["▁", "a"], ["l", "l"]]
TOKENS_SPECIAL = ["<unk>", "<s>", "</s>"]
VOCAB = TOKENS_SPECIAL + [f"<0x{b:02X}>" for b in range(256)] + PIECES
MERGED = {a + b: -float(i) for i, (a, b) in enumerate(MERGES)}
SCORES = [MERGED.get(t, -1000.0) for t in VOCAB]
N = len(VOCAB)
PATH = [1] + [int(v) for v in np.random.default_rng(7).integers(3, N, 27)]
SAID, NEAR = 24, 1e-6
ROWS = [(27, None), (12, None), (3, None), (19, 1)]  # (position, layer); None: the last layer

SIZES = dict(vocab_size=N, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=512, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2,
             pad_token_id=None, tie_word_embeddings=False)
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}

MODELS = {  # name: (configuration, its class of models, stored as, files)
    "llama": (tf.LlamaConfig(**SIZES, rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}),
              tf.LlamaForCausalLM, "F32", 1),
    "llama3": (tf.LlamaConfig(**SIZES | dict(tie_word_embeddings=True, head_dim=16, num_attention_heads=2, num_key_value_heads=1),
                              rope_parameters={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                               "original_max_position_embeddings": 64, "rope_theta": 10000.0}),
               tf.LlamaForCausalLM, "BF16", 1),
    "mistral": (tf.MistralConfig(**SIZES | dict(num_key_value_heads=1), sliding_window=5,
                                 rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}),
                tf.MistralForCausalLM, "F16", 2),
    "qwen2": (tf.Qwen2Config(**SIZES | dict(tie_word_embeddings=True, eos_token_id=2), use_sliding_window=False, sliding_window=64,
                             rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}),
              tf.Qwen2ForCausalLM, "BF16", 1),
    "qwen3": (tf.Qwen3Config(**SIZES, head_dim=24, rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}),
              tf.Qwen3ForCausalLM, "F16", 1),
}

GGUF_LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
              "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
              "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
GGUF_NAME = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(name):
    stem, kind = name.rsplit(".", 1)
    if stem in GGUF_NAME:
        return f"{GGUF_NAME[stem]}.{kind}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{GGUF_LAYER[part]}.{kind}"


def randomise(model, seed):
    """Weights that keep a signal's size, norms and biases that would be missed if they were left out."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            x = torch.randn(p.shape, generator=g, dtype=torch.float64)
            name = name.replace("norm_attn_norm.", "")  # the modules around DBRX's attention
            if "norm" in name or (".ln_" in name and name.endswith("weight")):
                x = 1 + 0.2 * x
            elif "act_fn" in name:
                x = 0.3 * x
            elif name.endswith("bias") or p.dim() == 1:
                x = 0.5 * x
            elif "embed" not in name and ".wte." not in name and ".wpe." not in name:
                x = x * (2 if "q_proj" in name else 1) / p.shape[1] ** 0.5
            p.copy_(x)


def adjacent(w, heads):
    """Rows of Q or K from Hugging Face's order (i, i + d/2 turn together) to Llama's in GGUF (2i, 2i + 1)."""
    d = w.shape[0] // heads
    return w.reshape(heads, 2, d // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def write_logits(name, model, comment):
    model = model.double().eval()
    with torch.no_grad():
        out = model(torch.tensor([PATH]), output_hidden_states=True)
        lines = [f"# made by make_models_golden.py: {comment}", "tokens " + " ".join(map(str, PATH))]
        for position, layer in ROWS:
            last = layer is None
            z = out.logits[0, position] if last else model.lm_head(model.model.norm(out.hidden_states[layer][0, position]))
            lines += [f"row {position} {model.config.num_hidden_layers if last else layer}"] + ["%.7g" % v for v in z]
    lines += greedy_lines(model)
    (OUT / f"{name}.txt").write_text("\n".join(lines) + "\n")


def next_tokens(model, fresh):
    """Appends the token with the largest logit SAID times. `fresh`: only tokens that the text does not contain yet, because many random
    models repeat one token. If floats cannot distinguish the second largest logit, notes its token and the margin in norms of the logits."""
    path, near = list(PATH), []
    for i in range(SAID):
        with torch.no_grad():
            z = model(torch.tensor([path])).logits[0, -1]
        open_ = z.clone()
        if fresh:
            open_[path] = -torch.inf
        (first, second), (token, other) = open_.topk(2)
        path.append(int(token))
        if (first - second) / z.norm() < NEAR:
            near.append(f"near {i} {int(other)} {(first - second) / z.norm():.2g}")
    return ("fresh " if fresh else "greedy ") + " ".join(map(str, path[len(PATH):])), near


def greedy_lines(model):
    lines = []
    for fresh in False, True:
        said, near = next_tokens(model, fresh)
        lines += [said] + near
    return lines


def share(folder):
    """Links the tokenizer and generation_config.json that all folders have in common into the folder."""
    (folder / "generation_config.json").unlink(missing_ok=True)
    subprocess.run(["sh", OUT.parent / "assemble.sh"], check=True)


def write_shared(folder):
    folder.mkdir(exist_ok=True)
    (folder / "generation_config.json").write_text(json.dumps(dict(bos_token_id=1, eos_token_id=2)))
    added = [dict(id=i, content=t, special=True, single_word=False, lstrip=False, rstrip=False, normalized=False)
             for i, t in enumerate(TOKENS_SPECIAL)]
    bos = [{"SpecialToken": {"id": "<s>", "type_id": 0}}]
    (folder / "tokenizer.json").write_text(json.dumps(dict(
        version="1.0", truncation=None, padding=None, added_tokens=added,
        normalizer=dict(type="Sequence", normalizers=[dict(type="Prepend", prepend="▁"),
                                                      dict(type="Replace", pattern={"String": " "}, content="▁")]),
        pre_tokenizer=None,
        post_processor=dict(type="TemplateProcessing", single=bos + [{"Sequence": {"id": "A", "type_id": 0}}],
                            pair=bos + [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                            special_tokens={"<s>": dict(id="<s>", ids=[1], tokens=["<s>"])}),
        decoder=dict(type="Sequence", decoders=[dict(type="Replace", pattern={"String": "▁"}, content=" "), dict(type="ByteFallback"),
                                                dict(type="Fuse"), dict(type="Strip", content=" ", start=1, stop=0)]),
        model=dict(type="BPE", dropout=None, unk_token="<unk>", continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=True,
                   byte_fallback=True, vocab={t: i for i, t in enumerate(VOCAB)}, merges=MERGES)), ensure_ascii=False))
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(
        tokenizer_class="LlamaTokenizerFast", add_bos_token=True, add_eos_token=False, bos_token="<s>", eos_token="</s>",
        unk_token="<unk>", legacy=True)))


def gguf_writer(name, arch, config, rope):
    w = gguf.GGUFWriter(OUT / f"{name}.gguf", arch)
    w.add_name(name)
    add_sizes(w, config.num_hidden_layers, config.max_position_embeddings, config.hidden_size, config.intermediate_size,
              config.num_attention_heads, config.num_key_value_heads, config.rms_norm_eps)
    w.add_vocab_size(N)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    w.add_rope_dimension_count(head_dim)
    w.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])
    if config.model_type == "mistral":
        w.add_sliding_window(config.sliding_window)
    add_pieces(w, VOCAB, SCORES)
    return w


def gguf_tensors(model, permuted):
    c = model.config
    for name, p in model.state_dict().items():
        if name == "lm_head.weight" and c.tie_word_embeddings:
            continue
        x = p.float().numpy()
        if permuted and ("q_proj" in name or "k_proj" in name):
            x = adjacent(x, c.num_attention_heads if "q_proj" in name else c.num_key_value_heads)
        yield gguf_name(name), np.ascontiguousarray(x)


def llama3_divisors(model):
    """The frequencies that transformers made, as divisors of the unscaled ones."""
    rope, c = model.model.rotary_emb, model.config
    plain = 10000.0 ** -(np.arange(0, c.head_dim, 2) / c.head_dim)
    return (plain / rope.inv_freq.double().numpy()).astype(np.float32)


def make(name, config, kind, dtype, files, seed):
    model = kind._from_config(config, attn_implementation="eager").float()
    randomise(model, seed)
    model = model.to(DTYPES[dtype])
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, max_shard_size="50KB" if files > 1 else "1GB")
    for file in folder.iterdir():
        file.chmod(0o644)
    share(folder)
    if name == "qwen2":
        (folder / "generation_config.json").unlink()  # a link
        (folder / "generation_config.json").write_text(json.dumps(dict(bos_token_id=1, eos_token_id=[2, 258])))
    rounded = {k: v.float() for k, v in model.state_dict().items()}
    model = kind._from_config(config, attn_implementation="eager").float()  # its RoPE frequencies were rounded with it
    model.load_state_dict(rounded)

    permuted = name not in ("qwen2", "qwen3")
    arch = "llama" if permuted else name
    for q8 in [False, True] if name == "llama" else [False]:
        w = gguf_writer(name + "-q8_0" * q8, arch, config, config.rope_parameters)
        if config.rope_parameters["rope_type"] == "llama3":
            w.add_tensor("rope_freqs.weight", llama3_divisors(model))
        for tensor, x in gguf_tensors(model, permuted):
            to = T.F32 if x.ndim == 1 else T.Q8_0 if q8 else T[dtype]
            w.add_tensor(tensor, quantize(x, to).view(np.uint8) if to in (T.BF16, T.Q8_0) else quantize(x, to), raw_dtype=to)
        finish(w)
    write_logits(name, model, f"{name}, {dtype}")


# ---- every type ----

TYPES = {"token_embd": T.Q6_K, "output": T.Q4_K, "blk.0.attn_q": T.Q2_K, "blk.0.attn_k": T.Q3_K, "blk.0.attn_v": T.Q4_K,
         "blk.0.attn_output": T.Q4_0, "blk.0.ffn_gate": T.Q5_K, "blk.0.ffn_up": T.Q6_K, "blk.0.ffn_down": T.Q4_1,
         "blk.1.attn_q": T.F16, "blk.1.attn_k": T.BF16, "blk.1.attn_v": T.F32, "blk.1.attn_output": T.Q5_0, "blk.1.ffn_gate": T.Q8_0,
         "blk.1.ffn_up": T.Q4_K, "blk.1.ffn_down": T.Q5_1}
TABLES = {"token_embd": T.IQ3_S, "output": T.IQ4_XS, "blk.0.attn_q": T.IQ2_XXS, "blk.0.attn_k": T.IQ2_XS, "blk.0.attn_v": T.IQ2_S,
          "blk.0.attn_output": T.MXFP4, "blk.0.ffn_gate": T.IQ1_S, "blk.0.ffn_up": T.IQ1_M, "blk.0.ffn_down": T.IQ4_NL,
          "blk.1.attn_q": T.IQ3_XXS, "blk.1.attn_k": T.IQ4_XS, "blk.1.attn_v": T.TQ1_0, "blk.1.attn_output": T.IQ4_NL, "blk.1.ffn_gate": T.IQ3_S,
          "blk.1.ffn_up": T.TQ2_0, "blk.1.ffn_down": T.MXFP4}
SCALES = {T.Q2_K: (80, 82), T.Q3_K: (108,), T.Q4_K: (0, 2), T.Q5_K: (0, 2), T.Q6_K: (208,)} | {  # offsets of F16 scales
    kind: (0,) for kind in (T.IQ4_NL, T.IQ4_XS, T.IQ3_S, T.IQ3_XXS, T.IQ2_S, T.IQ2_XS, T.IQ2_XXS, T.IQ1_S, T.IQ1_M)}


def put_scale(kind, data, at, scale):
    if kind == T.IQ1_M:  # four bits of it on top of each of four numbers
        for i in range(4):
            data[..., 49 + 2 * i] = data[..., 49 + 2 * i] & 15 | (scale.view(np.uint16) >> 4 * i & 15).astype(np.uint8) << 4
    else:
        data[..., at:at + 2] = scale[..., None].view(np.uint8)


def random_blocks(kind, shape, deviation, rng):
    block, size = GGML_QUANT_SIZES[kind]
    data = rng.integers(0, 256, (shape[0], shape[1] // block, size), dtype=np.uint8)
    scales = {at: rng.normal(0, 1, data.shape[:2]) for at in SCALES[kind]}
    for gain in (1e-3, None):  # measured, then made right
        if gain is None:
            gain = 1e-3 * deviation / dequantize(data.reshape(shape[0], -1), kind).std()
        for at, scale in scales.items():
            put_scale(kind, data, at, (gain * scale).astype(np.float16))
    return data.reshape(shape[0], -1)


def make_types(name, types):
    rng = np.random.default_rng(20262)
    config = tf.LlamaConfig(**SIZES | dict(hidden_size=256, intermediate_size=32, num_hidden_layers=2, head_dim=8),
                            rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    model = tf.LlamaForCausalLM._from_config(config, attn_implementation="eager").float()
    randomise(model, 99)
    w = gguf_writer(name, "llama", config, config.rope_parameters)
    state = model.state_dict()
    for of, p in state.items():
        x, to = p.numpy(), types.get(gguf_name(of).removesuffix(".weight"), T.F32)
        if to in SCALES:
            data = random_blocks(to, x.shape, 1 if "embed" in of else x.shape[1] ** -0.5, rng)
        else:
            data = quantize(x, to)
        x = dequantize(data, to).astype(np.float32)
        w.add_tensor(gguf_name(of), data.view(np.uint8) if to == T.BF16 else data, raw_dtype=to)
        if "q_proj" in of or "k_proj" in of:  # back to Hugging Face's order
            heads = config.num_attention_heads if "q_proj" in of else config.num_key_value_heads
            x = x.reshape(heads, config.head_dim // 2, 2, -1).swapaxes(1, 2).reshape(x.shape)
        state[of] = torch.from_numpy(np.ascontiguousarray(x))
    finish(w)
    model.load_state_dict(state)
    write_logits(name, model, "every type")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    write_shared(OUT.parent / "shared")
    for i, (name, (config, kind, dtype, files)) in enumerate(MODELS.items()):
        make(name, config, kind, dtype, files, 10 + i)
    make_types("types", TYPES)
    make_types("tables", TABLES)
    finish(gguf_writer("vocabulary", "llama", MODELS["llama"][0], MODELS["llama"][0].rope_parameters))
