"""Writes a folder as edits want it, and has transformers compute its logits."""
import json
import random
import re
import shutil

import numpy as np
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

import draws
from bases import BASES
from make_families_golden import attention, experts
from make_models_golden import N, randomise, write_shared

LARGEST = dict(hidden_size=128, num_hidden_layers=8, vocab_size=1024, intermediate_size=600, n_embd=128, n_layer=8)
tf.models.dbrx.configuration_dbrx.DbrxAttentionConfig.rope_theta = 0.0  # which transformers asks for and doesn't read
HEADS = ("lm_head.weight", "embed_out.weight")
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight")


class Unusable(Exception):
    """transformers cannot make a model of the folder, or the file lacks some of its tensors."""


def small(config):
    text = config.get_text_config()
    for key, most in LARGEST.items():
        size = getattr(text, key, None)
        if isinstance(size, int) and size > most:
            raise Unusable(f"{key} would be {size}")
    heads, dim = getattr(text, "num_attention_heads", 1), getattr(text, "head_dim", None) or 8
    if heads * dim > 2048 or (getattr(text, "num_key_value_heads", 1) or 1) > heads:
        raise Unusable("heads make no sense")


def parsed(folder):
    try:
        config = tf.AutoConfig.from_pretrained(folder)
    except Exception as e:
        raise Unusable(f"configuration: {type(e).__name__}: {str(e)[:200]}")
    small(config)
    return config


def class_of(config):
    return tf.AutoModelForImageTextToText if hasattr(config, "vision_config") else tf.AutoModelForCausalLM


def fill(model, seed):
    randomise(model, seed)
    g = torch.Generator().manual_seed(seed)
    kind = model.config.get_text_config().model_type
    with torch.no_grad():  # norms that add a 1 themselves
        for key, p in model.named_parameters():
            if "norm" in key and (kind.startswith("gemma") or kind == "nemotron") and key.endswith("weight"):
                p.sub_(1)
            if key.endswith("correction_bias"):
                p.copy_(0.3 * torch.randn(p.shape, generator=g))
        for key, p in model.named_buffers():
            if key.endswith("correction_bias"):
                p.copy_(0.3 * torch.randn(p.shape, generator=g))


def head_and_embedding(t):
    head = next((k for k in t if k.endswith(HEADS)), None)
    return head, next((k for k in t if k.endswith(EMBEDDINGS)), None)


def stack_experts(t):
    """Experts of a layer in one tensor each, as transformers 5 has them in memory."""
    stacks = {}
    for k in sorted(t):
        at = re.fullmatch(r"(.*\.mlp\.experts)\.(\d+)\.(gate|up|down)_proj\.weight", k)
        if at:
            stacks.setdefault(at[1], {}).setdefault(int(at[2]), {})[at[3]] = t.pop(k)
    for stem, by in stacks.items():
        each = [by[i] for i in sorted(by)]
        t[stem + ".gate_up_proj"] = torch.stack([torch.cat([e["gate"], e["up"]]) for e in each])
        t[stem + ".down_proj"] = torch.stack([e["down"] for e in each])


def edit(t, e, rng):
    """One edit of tensors by name."""
    head, embedding = head_and_embedding(t)
    g = torch.Generator().manual_seed(rng.randrange(1 << 30))
    if e[1] == "own-head" and embedding and head is None:
        stem = embedding.rsplit(".", 2)[0]
        outer = "language_model." if stem.startswith("language_model") else ""
        t[outer + ("embed_out.weight" if "gpt_neox" in embedding else "lm_head.weight")] = \
            torch.randn(t[embedding].shape, generator=g) / t[embedding].shape[1] ** 0.5
    elif e[1] == "same-head" and embedding and head is None:
        t["lm_head.weight"] = t[embedding].clone()
    elif e[1] == "no-head" and head:
        del t[head]
    elif e[1] == "type" and e[2] == "mixed":
        for k in sorted(t):
            if rng.random() < 0.3:
                t[k] = t[k].to(rng.choice([torch.bfloat16, torch.float16]))
    elif e[1] == "type":
        for k in t:
            t[k] = t[k].to(getattr(torch, e[2]))
    elif e[1] == "bare":
        for k in list(t):
            if k != head and "." in k and k.split(".")[0] in ("model", "transformer", "gpt_neox"):
                t[k.split(".", 1)[1]] = t.pop(k)
    elif e[1] == "prefix":
        for k in list(t):
            t[e[2] + k] = t.pop(k)
    elif e[1] == "stacked":
        stack_experts(t)
    elif e[1] == "wide-vocabulary" and embedding:
        for k in (head, embedding):
            if k:
                t[k] = torch.cat([t[k], 0.1 * torch.randn(16, t[k].shape[1], generator=g)])
    elif e[1] == "narrow-vocabulary" and embedding:  # fewer rows than the tokenizer has tokens
        for k in (head, embedding):
            if k:
                t[k] = t[k][:N - 8]
    elif e[1] == "newer-names":
        for k in list(t):
            if k.startswith("language_model.model."):
                t[k.replace("language_model.model.", "model.language_model.", 1)] = t.pop(k)
            elif k.startswith("language_model.lm_head."):
                t[k.removeprefix("language_model.")] = t.pop(k)
            elif k.startswith(("vision_", "multi_modal")):
                t["model." + k] = t.pop(k)
    elif e[1] == "quiet" and embedding:
        t[embedding] = t[embedding] * 0.01
    elif e[1] == "extra" and embedding:
        stem = re.sub(r"[^.]*\.weight$", "", embedding)
        layer = next((k[:k.index(".0.") + 3] for k in sorted(t) if ".0." in k), stem)
        name = {"inv_freq": "self_attn.rotary_emb.inv_freq", "odd": "odd.weight"}.get(e[2], e[2])
        t[layer + name] = torch.ones(8)


def write_tensors(folder, t, shards):
    """In one file, or in some."""
    if shards < 2:
        save_file(t, folder / "model.safetensors", {"format": "pt"})
        return
    names = [f"model-{i + 1:05d}-of-{shards:05d}.safetensors" for i in range(shards)]
    where = {k: names[i % shards] for i, k in enumerate(sorted(t))}
    for name in names:
        save_file({k: v for k, v in t.items() if where[k] == name}, folder / name, {"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))


def make_folder(folder, family, edits, seed):
    """(configuration, tokens to read)"""
    rng = random.Random(seed)
    config = draws.apply(BASES[family]()[0], edits)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    made = parsed(folder)
    try:
        model = class_of(made).from_config(made, attn_implementation=attention(made), **experts(made)).float()
        fill(model, seed)
        model.save_pretrained(folder, max_shard_size="10GB")
    except Exception as e:
        raise Unusable(f"model: {type(e).__name__}: {str(e)[:200]}")
    config["architectures"] = [type(model).__name__]
    t = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    for e in edits:
        if e[0] == "tensors" and e[1] != "type":
            edit(t, e, rng)
    text = config.get("text_config", config)
    if ["tensors", "wide-vocabulary"] in edits:
        text["vocab_size"] = N + 16
    elif ["tensors", "narrow-vocabulary"] in edits:
        text["vocab_size"] = N - 8
    text.update({e[1]: e[2] for e in edits if e[0] == "late"})
    for e in edits:
        if e[0] == "tensors" and e[1] == "type":
            edit(t, e, rng)
    write_tensors(folder, {k: v.contiguous() for k, v in t.items()}, 3 if ["tensors", "shards"] in edits else 1)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    write_shared(folder)
    return config, [1] + [rng.randrange(3, N - 8) for _ in range(rng.choice([9, 39, 39]))]


def logits_by_transformers(folder, config, tokens):
    made = parsed(folder)
    try:
        model, about = class_of(made).from_pretrained(folder, dtype=torch.float64, attn_implementation=attention(made),
                                                      output_loading_info=True, **experts(made))
    except Exception as e:
        raise Unusable(f"loading: {type(e).__name__}: {str(e)[:200]}")
    missing = [k for k in about["missing_keys"] if "vision" not in k]
    if missing or about["mismatched_keys"]:
        raise Unusable(f"tensors: {sorted(missing)[:2]} {list(about['mismatched_keys'])[:1]}")
    try:
        with torch.no_grad():
            return model.eval()(torch.tensor([tokens])).logits[0].numpy().astype(np.float64)
    except Exception as e:
        raise Unusable(f"running: {type(e).__name__}: {str(e)[:200]}")
