#!/usr/bin/env python3
"""Tiny targets with drafters that read their features, and greedy rounds of these drafters in double precision.

    pip install numpy gguf torch transformers safetensors
    python3 tests/golden/make_eagle_golden.py [CASE…]

Writes tests/golden/eagle/targets/NAME (folders, and one GGUF file) and tests/golden/eagle/CASE: head/ or head.gguf and
expect.json. The targets are trained for some seconds on a random language, and the heads on the targets' text, so that a good part of
the drafts is accepted. The rounds are computed from the stored weights by the code below, which follows docs/policies/eagle.md and
mtp.md and has no KV cache: each step runs the drafter's layer on all rows of a path. A text in which floats could choose another token
is left out.

expect.json: `target`, `head` and `policy`, and `runs`, one for each prompt and setting: `set` (the knobs), `prompt`, `ids` (its tokens),
`text` (the target's next tokens) and `rounds`. A round has `at` (the number of tokens at its start, the pending one included),
`accepted`, and `drafts`: the token of each node, its parent (a node's index, -1: the pending token) and its probability given its
path. Nodes of a tree are in the order in which they were found. The rounds of glm4_moe and qwen3_5 hold for the GGUF files in targets/, too.

The formats of files were read in these public sources:
  SpecForge        specforge/modeling/draft/llama3_eagle.py: LlamaForCausalLMEagle3, `midlayer.*`, d2t and t2d; the layers of `eagle_config`
                   are outputs counted from 0 (1, L/2 - 1 and L - 4 if there are none), as SGLang reads them
  vLLM             vllm/model_executor/models/llama_eagle3.py: Eagle3LlamaForCausalLM, target_hidden_size, norm_before_residual; the layers at the top of
                   config.json are those whose inputs the head reads
  speculators      Eagle3Speculator: `transformer_layer_config`, `layers.0.*`, norm_before_fc, fc_norm, norm_output
  llama.cpp        src/models/eagle3.cpp, conversion/llama.py: architecture eagle3; src/models/glm4-moe.cpp: nextn
  transformers     modeling_layers.py: MtpModel, with which the rounds of GLM-4 MoE are compared
  PaddlePaddle     ERNIE's training code: mtp_emb_norm, mtp_hidden_norm, mtp_linear_proj, mtp_block
  vLLM             vllm/model_executor/models/qwen3_next_mtp.py, qwen3_5_mtp.py: `mtp.*`
  llama.cpp        conversion/qwen.py (Qwen3.5's `mtp.*` as nextn), pull requests 22673, 24025 (the features are normed) and 25589
"""
import json
import math
import pathlib
import shutil
import sys

import gguf
import numpy as np
import torch
import torch.nn.functional as F
import transformers as tf
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from make_models_golden import N, SCORES, VOCAB, add_pieces, add_sizes, adjacent, finish, share

OUT = pathlib.Path(__file__).parent / "eagle"
SAID, MARGIN = 48, 1e-3
CHAINS = [{"k": 1}, {"k": 3}, {"k": 5}]
SIZES = dict(vocab_size=N, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
             max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=None, tie_word_embeddings=False,
             attn_implementation="eager")
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
MIXTURE = dict(num_hidden_layers=4, rope_parameters=PLAIN)  # of which the last is the drafter's
KINDS = ["linear_attention", "full_attention"] * 2
HYBRID = dict(rope_parameters=PLAIN | {"partial_rotary_factor": 0.5}, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8,
              linear_value_head_dim=8, rms_norm_eps=1e-6, layer_types=KINDS)
TARGETS = {
    "llama": lambda: tf.LlamaConfig(**SIZES, num_hidden_layers=7, rope_parameters=PLAIN, rms_norm_eps=1e-5),
    "glm4_moe": lambda: tf.Glm4MoeConfig(
        **SIZES | MIXTURE | dict(rope_parameters=PLAIN | {"partial_rotary_factor": 0.5}), n_routed_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=16, n_shared_experts=1, routed_scaling_factor=2.0, first_k_dense_replace=1, use_qk_norm=True,
        attention_bias=True, num_mtp_layers=0, rms_norm_eps=1e-5),
    "ernie4_5_moe": lambda: tf.Ernie4_5_MoeConfig(
        **{k: v for k, v in (SIZES | MIXTURE).items() if k != "head_dim"}, moe_num_experts=4, moe_k=2, moe_intermediate_size=16,
        moe_num_shared_experts=1, moe_layer_start_index=1, moe_layer_end_index=2),
    "qwen3_5": lambda: tf.Qwen3_5TextConfig(**SIZES | MIXTURE | HYBRID),
    "qwen3_next": lambda: tf.Qwen3NextConfig(
        **SIZES | MIXTURE | HYBRID, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16),
}
QWEN = {"enorm": "mtp.pre_fc_norm_embedding", "hnorm": "mtp.pre_fc_norm_hidden", "eh_proj": "mtp.fc", "norm": "mtp.norm"}
LAYERS = {  # of multi-token prediction: the names of the block and of the other tensors, and what config.json has in checkpoints
    "glm4_moe": ("model.layers.3.", {"enorm": "model.layers.3.enorm", "hnorm": "model.layers.3.hnorm", "eh_proj": "model.layers.3.eh_proj",
                                     "norm": "model.layers.3.shared_head.norm"}, dict(num_nextn_predict_layers=1, num_mtp_layers=None)),
    "ernie4_5_moe": ("model.mtp_block.0.", {"enorm": "model.mtp_emb_norm.0", "hnorm": "model.mtp_hidden_norm.0",
                                            "eh_proj": "model.mtp_linear_proj.0"}, dict(num_nextn_predict_layers=1)),
    "qwen3_5": ("mtp.layers.0.", QWEN, dict(mtp_num_hidden_layers=1, layer_types=KINDS[:3])),
    "qwen3_next": ("mtp.layers.0.", QWEN, dict(layer_types=KINDS[:3])),
}


# ---- the language: three continuations of a token, ranked by the token before it ----

def sentences(count, length, seed):
    rng = np.random.default_rng(seed)
    follow = np.random.default_rng(5).integers(3, N, (N, 3, 3))
    out = np.empty((count, length), dtype=np.int64)
    out[:, 0], out[:, 1] = 1, rng.integers(3, N, count)
    for t in range(2, length):
        rank = rng.choice(3, count, p=(0.8, 0.15, 0.05))
        out[:, t] = follow[out[:, t - 1], out[:, t - 2] % 3, rank]
    return torch.from_numpy(out)


def fit(parameters, loss, steps, lr):
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1, (step + 1) / 20, 2 * (steps - step) / steps)
        optimizer.zero_grad()
        value = loss(step)
        value.backward()
        optimizer.step()
    return float(value.detach())


def rms(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def mask(n, kind):
    return torch.full((n, n), torch.finfo(kind).min, dtype=kind).triu(1)[None, None]


# ---- targets ----

class Target:
    def __init__(self, model):
        self.model = model.eval()
        self.before = None
        model.model.norm.register_forward_pre_hook(lambda _, args: setattr(self, "before", args[0]))

    def __call__(self, tokens):
        """(the stream after 0..L layers, logits)"""
        out = self.model(tokens, output_hidden_states=True)
        return [*out.hidden_states[:-1], self.before], out.logits

    def text(self, prompt, n):
        """The next n tokens; None if floats could choose another, or the text ends."""
        path = list(prompt)
        for _ in range(n):
            z = self.model(torch.tensor([path])).logits[0, -1]
            (first, second), (token, _) = z.topk(2)
            if first - second < MARGIN or int(token) == 2:
                return None
            path.append(int(token))
        return path[len(prompt):]


# ---- drafters: features() of the target's states, layer(), and out() of its result: logits and the feature of the next row ----

class Eagle:
    """An EAGLE-3 head. w: its tensors by the names of Hugging Face folders, without `midlayer.`; c: its configuration."""

    def __init__(self, c, w, target):
        self.c, self.w, self.target = c, w, target
        self.embedding = w.get("embed_tokens", target.model.model.embed_tokens.weight)
        self.head = w.get("lm_head", target.model.lm_head.weight)
        self.ids = torch.arange(len(self.head)) + w.get("d2t", torch.zeros(len(self.head), dtype=torch.long))

    def features(self, states):
        x = torch.cat([states[i] for i in self.c["aux"]], -1)
        if self.c["norm_before_fc"]:
            x = rms(x, self.w["input_norm"], self.c["eps"])
        if self.c["fc_norm"]:
            x = torch.cat([rms(part, self.w[f"fc_norm.{i}"], self.c["eps"]) for i, part in enumerate(x.chunk(3, -1))], -1)
        return F.linear(x, self.w["fc"])

    def layer(self, tokens, g):
        c, w = self.c, self.w
        n, half = tokens.shape[1], c["head_dim"] // 2
        hidden = rms(g, w["hidden_norm"], c["eps"])
        a = torch.cat((rms(F.embedding(tokens, self.embedding), w["input_layernorm"], c["eps"]), hidden), -1)
        angle = torch.arange(n, dtype=g.dtype)[:, None] * c["theta"] ** (-torch.arange(half, dtype=g.dtype) / half)

        def heads(name, count, turned):
            x = F.linear(a, w[name]).view(*a.shape[:2], count, c["head_dim"]).transpose(1, 2)
            if turned:
                low, high = x[..., :half], x[..., half:]
                x = torch.cat((low * angle.cos() - high * angle.sin(), high * angle.cos() + low * angle.sin()), -1)
            return x.repeat_interleave(c["heads"] // count, 1)

        q, k, v = heads("q_proj", c["heads"], True), heads("k_proj", c["kv_heads"], True), heads("v_proj", c["kv_heads"], False)
        weights = (q @ k.transpose(2, 3) / math.sqrt(c["head_dim"]) + mask(n, g.dtype)).softmax(-1)
        attention = (weights @ v).transpose(1, 2).flatten(2)
        x = (hidden if c["norm_before_residual"] else g) + F.linear(attention, w["o_proj"])
        y = rms(x, w["post_attention_layernorm"], c["eps"])
        return x + F.linear(F.silu(F.linear(y, w["gate_proj"])) * F.linear(y, w["up_proj"]), w["down_proj"])

    def out(self, h):
        y = rms(h, self.w["norm"], self.c["eps"])
        return F.linear(y, self.head), y if self.c["norm_output"] else h


def less_one(model):
    """What the family's norms add to their weights."""
    return 1 if model.config.model_type.startswith("qwen3_") else 0


class Mtp:
    """A multi-token prediction layer: w has its projection and norms, `block` is a layer of the target's class. In GLM-4 MoE and Qwen it
    reads the features after the final norm and has a norm of its own; in ERNIE 4.5 MoE before it, and uses the target's norm."""

    def __init__(self, w, block, target):
        self.w, self.block, self.target = w, block, target
        self.eps = target.model.config.rms_norm_eps
        self.ids = torch.arange(N)
        self.normed = "norm" in w
        self.one = less_one(target.model)

    def features(self, states):
        return rms(states[-1], self.one + self.target.model.model.norm.weight, self.eps) if self.normed else states[-1]

    def layer(self, tokens, g):
        emb = F.embedding(tokens, self.target.model.model.embed_tokens.weight)
        u = F.linear(torch.cat((rms(emb, self.w["enorm"], self.eps), rms(g, self.w["hnorm"], self.eps)), -1), self.w["eh_proj"])
        n = tokens.shape[1]
        positions = torch.arange(n)[None]
        out = self.block(u, attention_mask=mask(n, u.dtype), position_ids=positions,
                         position_embeddings=self.target.model.model.rotary_emb(u, positions))
        return out[0] if isinstance(out, tuple) else out

    def out(self, h):
        y = rms(h, self.w["norm"] if self.normed else self.one + self.target.model.model.norm.weight, self.eps)
        return self.target.model.lm_head(y), y if self.normed else h


def fit_drafter(drafter, parameters, target, texts, steps, lr, on_target=False):
    """Two recurrent steps, with the first step's rows in place of the true features in the second one, as an approximation."""
    inverse = torch.full((N,), -1)
    inverse[drafter.ids] = torch.arange(len(drafter.ids))

    def loss(step):
        rows = texts[torch.randint(0, len(texts), (16,), generator=torch.Generator().manual_seed(step))]
        with torch.set_grad_enabled(on_target):
            states, z = target(rows)
        total = F.cross_entropy(z[:, :-1].flatten(0, 1), rows[:, 1:].flatten()) if on_target else 0
        g = drafter.features(states)
        for j in range(2):
            n = rows.shape[1] - 2 - j
            logits, following = drafter.out(drafter.layer(rows[:, 1:1 + n] if j == 0 else rows[:, 2:2 + n], g[:, :n]))
            wanted = inverse[rows[:, 2 + j:2 + j + n]].flatten()
            total = total + F.cross_entropy(logits.flatten(0, 1), wanted, ignore_index=-1) * 0.7 ** j
            g = following
        return total

    return fit(parameters, loss, steps, lr)


# ---- rounds ----

def draft(drafter, tokens, g, topk, depth, nodes):
    """Drafts after `tokens`, of which the last is pending; g: the features of the others. The `topk` likeliest children of the `topk` best
    nodes are added for `depth` steps, and the `nodes` best of all stay (EAGLE-2). Returns [token, parent, probability], or None where
    two choices are nearly as good."""
    n = len(tokens)
    found = []  # [token, parent, probability, path probability, feature that the node's row reads]
    beam = [-1]
    for step in range(depth):
        paths = []
        for node in beam:
            path = []
            while node >= 0:
                path.insert(0, node)
                node = found[node][1]
            paths.append(path)
        rows = torch.tensor([tokens[1:] + [found[i][0] for i in p] for p in paths])
        inputs = torch.stack([torch.cat([g[:n - 1], *(found[i][4][None] for i in p)]) for p in paths])
        logits, following = drafter.out(drafter.layer(rows, inputs)[:, -1])
        level = []
        for node, z, feature in zip(beam, logits.softmax(-1), following):
            p, i = z.topk(topk + 1)
            if p[topk - 1] < p[topk] * (1 + MARGIN):
                return None
            for j in range(topk):
                level.append(len(found))
                found.append([int(drafter.ids[i[j]]), node, float(p[j]), float(p[j]) * (found[node][3] if node >= 0 else 1), feature])
        beam = best(found, level, topk)
        if beam is None:
            return None
    kept = best(found, range(len(found)), nodes)
    if kept is None:
        return None
    place = {node: i for i, node in enumerate(sorted(kept))} | {-1: -1}
    return [[found[i][0], place[found[i][1]], found[i][2]] for i in sorted(kept)]


def best(found, which, count):
    """The `count` nodes of the largest path probability, in their order; None where the last one is nearly as good as the next."""
    order = sorted(which, key=lambda i: -found[i][3])
    if len(order) > count and found[order[count - 1]][3] < found[order[count]][3] * (1 + MARGIN):
        return None
    return sorted(order[:count])


def rounds(drafter, target, prompt, text, knobs):
    """The rounds of a text that its end does not shorten; None where choices are too close."""
    tokens = list(prompt) + text
    states, _ = target(torch.tensor([tokens]))
    g = drafter.features(states)[0]
    depth = knobs["k"]
    at, out = len(prompt) + 1, []
    while at + depth + 1 <= len(tokens):
        drafts = draft(drafter, tokens[:at], g, knobs.get("topk", 1), depth, knobs.get("nodes", depth))
        if drafts is None:
            return None
        node, accepted = -1, 0
        while True:
            node = next((i for i, d in enumerate(drafts) if d[1] == node and d[0] == tokens[at + accepted]), None)
            if node is None:
                break
            accepted += 1
        out.append({"at": at, "accepted": accepted, "drafts": drafts})
        at += accepted + 1
    return out


def write_rounds(name, drafter, target, head, where, settings, prompts, policy):
    runs, total, by = [], 0, {}
    tokenizer = Tokenizer.from_file(str(OUT.parent / "shared" / "tokenizer.json"))
    with torch.no_grad():
        for knobs in settings:
            count = 0
            for seed in range(1000):
                if count == prompts:
                    break
                words = "".join(np.random.default_rng(seed).choice(list("theandsowrilu "), 3 + seed % 9)).strip()
                prompt = tokenizer.encode(words).ids
                text = target.text(prompt, SAID)
                done = text and rounds(drafter, target, prompt, text, knobs)
                if done:
                    runs.append({"set": knobs, "prompt": words, "ids": prompt, "text": text, "rounds": done})
                    count += 1
                    total += len(done)
                    for r in done:
                        by[r["accepted"]] = by.get(r["accepted"], 0) + 1
    lines = ",\n".join(json.dumps(r, separators=(",", ":")) for r in rounded(runs))
    (OUT / name).mkdir(exist_ok=True)
    (OUT / name / "expect.json").write_text(
        f'{{"target":"{where}","head":{json.dumps(head)},"policy":"{policy}","runs":[\n{lines}\n]}}\n')
    print(f"{name}: {total} rounds by accepted drafts: {dict(sorted(by.items()))}", flush=True)
    assert total >= 500


def rounded(runs):
    for run in runs:
        for r in run["rounds"]:
            r["drafts"] = [[t, parent, float(f"{p:.6g}")] for t, parent, p in r["drafts"]]
        yield run


# ---- files ----

def halves(model):
    """The values that F16 files have."""
    with torch.no_grad():
        for p in model.parameters() if hasattr(model, "parameters") else model:
            p.copy_(p.half())


def save_target(folder, model, config, extra=None, rename=lambda n: n):
    shutil.rmtree(folder, ignore_errors=True)
    model.half().save_pretrained(folder)
    model.float()
    saved = load_file(folder / "model.safetensors")
    tensors = {rename(k): v for k, v in saved.items()} | {k: v.detach().half().contiguous() for k, v in (extra or {}).items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    changed = json.loads((folder / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps({k: v for k, v in changed.items() if v is not None}, indent=1, sort_keys=True) + "\n")
    share(folder)


def load_target(folder):
    return Target(tf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager"))


def make_llama():
    torch.manual_seed(3)
    model = tf.LlamaForCausalLM(TARGETS["llama"]())
    texts = sentences(4096, 48, 1)

    def loss(step):
        rows = texts[step * 48 % 4096:][:48]
        return F.cross_entropy(model(rows).logits[:, :-1].flatten(0, 1), rows[:, 1:].flatten())

    print(f"llama: loss {fit(model.parameters(), loss, 500, 6e-3):.3f}", flush=True)
    save_target(OUT / "targets" / "llama", model, {})


def make_mtp(name):
    """A target and its layer, trained together; the layer is stored as the checkpoints of the family have it."""
    torch.manual_seed(4)
    model = tf.AutoModelForCausalLM.from_config(TARGETS[name](), attn_implementation="eager")
    block = model.model.layers[3]
    model.model.layers = model.model.layers[:3]
    model.config.num_hidden_layers = 3
    prefix, names, config = LAYERS[name]
    w = {k: torch.randn(32, 64) * 64 ** -0.5 if k == "eh_proj" else torch.ones(32) for k in names}
    w = {k: v.requires_grad_() for k, v in w.items()}
    target = Target(model)
    model.train()
    texts = sentences(4096, 48, 1)
    print(f"{name}: loss {fit_drafter(Mtp(w, block, target), [*model.parameters(), *block.parameters(), *w.values()], target, texts, 500, 8e-3, True):.3f}",
          flush=True)
    one = less_one(model)
    with torch.no_grad():
        for k in [k for k in w if k != "eh_proj"]:
            w[k].mul_(1 + 0.2 * torch.randn(32))  # so that no norm can be left out
            if k == "hnorm":
                model.model.norm.weight.add_((one + model.model.norm.weight) * 0.2 * torch.randn(32))
        w["eh_proj"].add_(0.6 * w["eh_proj"].std() * torch.randn(32, 64))  # a good part of the drafts is rejected
    model.model.layers.append(block)
    model.config.num_hidden_layers = 4
    extra = {f"{long}.weight": w[k] if k == "eh_proj" else w[k] - one for k, long in names.items()}
    save_target(OUT / "targets" / name, model, config | dict(num_hidden_layers=3), extra, lambda k: k.replace("model.layers.3.", prefix))


def load_mtp(name):
    """(the target, its drafter), from the files"""
    folder = OUT / "targets" / name
    target = load_target(folder)
    saved = {k: v.double() for k, v in load_file(folder / "model.safetensors").items()}
    prefix, names, _ = LAYERS[name]
    c = TARGETS[name]()
    block = tf.AutoModelForCausalLM.from_config(c, attn_implementation="eager", experts_implementation="eager").double().eval().model.layers[3]
    w = {k: saved.pop(f"{long}.weight") for k, long in names.items()}
    w = {k: v if k == "eh_proj" else v + less_one(target.model) for k, v in w.items()}
    state = {k.removeprefix(prefix): v for k, v in saved.items() if k.startswith(prefix)}
    experts = range(sum(k.startswith("mlp.experts.") and k.endswith(".down_proj.weight") for k in state))
    if experts:
        state["mlp.experts.gate_up_proj"] = torch.stack(
            [torch.cat([state.pop(f"mlp.experts.{e}.{part}_proj.weight") for part in ("gate", "up")]) for e in experts])
        state["mlp.experts.down_proj"] = torch.stack([state.pop(f"mlp.experts.{e}.down_proj.weight") for e in experts])
    block.load_state_dict(state)
    return target, Mtp(w, block, target)


def compare_with_transformers(target, drafter):
    """transformers' MtpModel, from the same files, gives the same logits in the first step, up to its norms in F32. Its further steps use further layers."""
    from transformers.modeling_layers import MtpModel
    model = target.model
    model.config.name_or_path = str(OUT / "targets" / "glm4_moe")
    model._keys_to_ignore_on_load_unexpected = [r"model\.layers\.3\..*"]
    theirs = MtpModel.from_pretrained(model).eval()
    tokens = sentences(1, 30, 77)
    with torch.no_grad():
        states, _ = target(tokens)
        g = drafter.features(states)[:, :-1]
        ours, following = drafter.out(drafter.layer(tokens[:, 1:], g))
        h = theirs.forward_layer(0, g, torch.arange(1, 30)[None], None, input_ids=tokens[:, 1:])
        assert (ours - model.lm_head(h)).abs().max() < 1e-5 and (following - h).abs().max() < 1e-5
        hidden = model(tokens, output_hidden_states=True).hidden_states[-1][:, :-1]
        assert (hidden - g).abs().max() < 1e-5  # what MTPCandidateGenerator gives to it
    print("glm4_moe: transformers' MtpModel agrees")


# ---- EAGLE-3 heads ----

HEADS = {  # name: what the head has of its own, and the settings of its rounds
    "specforge": dict(vocabulary=120, own_head=True),
    "angelslim": dict(aux=[1, 4, 6], width=48, own_embedding=True, own_head=True, norm_before_residual=True, norm_before_fc=True,
                      theta=5000.0),
    "speculators": dict(aux=[2, 3, 5], norm_before_residual=True, fc_norm=True, norm_output=True),
    "gguf": dict(aux=[1, 3, 6], vocabulary=150, own_head=True, own_embedding=True, norm_before_fc=True, theta=20000.0),
}
TREES = {"specforge": {"k": 2, "topk": 2, "nodes": 5}, "angelslim": {"k": 3, "topk": 4, "nodes": 8},
         "speculators": {"k": 4, "topk": 3, "nodes": 10}, "gguf": {"k": 5, "topk": 3, "nodes": 12}}


def make_head(name, target, texts):
    o = dict(aux=None, width=32, vocabulary=None, own_head=False, own_embedding=False, norm_before_residual=False, norm_before_fc=False,
             fc_norm=False, norm_output=False, theta=10000.0) | HEADS[name]
    layers = target.model.config.num_hidden_layers
    width, heads, kv_heads, head_dim, ffn = o["width"], 4, 2, 8, 64
    c = o | dict(aux=o["aux"] or [2, layers // 2, layers - 3], heads=heads, kv_heads=kv_heads, head_dim=head_dim, ffn=ffn, eps=1e-6)
    g = torch.Generator().manual_seed(11 + len(name))
    sizes = {"fc": (width, 96), "q_proj": (32, 2 * width), "k_proj": (16, 2 * width), "v_proj": (16, 2 * width), "o_proj": (width, 32),
             "gate_proj": (ffn, width), "up_proj": (ffn, width), "down_proj": (width, ffn)}
    w = {k: torch.randn(s, generator=g) * s[1] ** -0.5 for k, s in sizes.items()}
    w |= {k: 1 + 0.2 * torch.randn(width, generator=g) for k in ("input_layernorm", "hidden_norm", "post_attention_layernorm", "norm")}
    if o["norm_before_fc"]:
        w["input_norm"] = 1 + 0.2 * torch.randn(96, generator=g)
    if o["fc_norm"]:
        w |= {f"fc_norm.{i}": 1 + 0.2 * torch.randn(32, generator=g) for i in range(3)}
    if o["own_embedding"]:
        w["embed_tokens"] = torch.randn(N, width, generator=g)
    if o["own_head"]:
        w["lm_head"] = torch.randn(o["vocabulary"] or N, width, generator=g) * width ** -0.5
    w = {k: v.requires_grad_() for k, v in w.items()}
    if o["vocabulary"]:  # the tokens that the target writes most often
        ids = torch.bincount(texts.flatten(), minlength=N).topk(o["vocabulary"])[1].sort()[0]
        w["d2t"] = ids - torch.arange(len(ids))
    drafter = Eagle(c, w, target)
    loss = fit_drafter(drafter, [v for v in w.values() if v.requires_grad], target, texts, 400, 8e-3)
    print(f"{name}: loss {loss:.3f}", flush=True)
    if name != "specforge":
        with torch.no_grad():
            w["fc"].add_(w["fc"].std() * torch.randn(w["fc"].shape, generator=g))  # a good part of the drafts is rejected
    return c, {k: v.detach() if k == "d2t" else v.detach().half() for k, v in w.items()}


def write_folder(name, c, w, target):
    folder = OUT / name / "head"
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.mkdir(parents=True)
    layer = "layers.0." if name == "speculators" else "midlayer."
    tensors = {}
    for k, v in w.items():
        part = "self_attn." if k in ("q_proj", "k_proj", "v_proj", "o_proj") else "mlp." if k in ("gate_proj", "up_proj", "down_proj") else ""
        own = part or k in ("input_layernorm", "hidden_norm", "post_attention_layernorm")
        tensors[k if k == "d2t" else (layer if own else "") + part + k + ".weight"] = v.contiguous()
    if "d2t" in w:
        tensors["t2d"] = torch.zeros(N, dtype=torch.bool)
        tensors["t2d"][w["d2t"] + torch.arange(len(w["d2t"]))] = True
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    numbers = dict(hidden_size=c["width"], intermediate_size=c["ffn"], num_hidden_layers=1, num_attention_heads=c["heads"],
                   num_key_value_heads=c["kv_heads"], head_dim=c["head_dim"], rms_norm_eps=c["eps"], rope_theta=c["theta"], vocab_size=N,
                   max_position_embeddings=256, hidden_act="silu", model_type="llama")
    vocabulary = dict(draft_vocab_size=c["vocabulary"] or N)
    if name == "specforge":
        config = dict(architectures=["LlamaForCausalLMEagle3"], bos_token_id=1, eos_token_id=2) | numbers | vocabulary
    elif name == "angelslim":
        config = dict(architectures=["Eagle3LlamaForCausalLM"], target_hidden_size=32, norm_before_residual=True,
                      eagle_config=dict(eagle_aux_hidden_state_layer_ids=[i - 1 for i in c["aux"]], use_aux_hidden_state=True, norm_before_fc=True)) | numbers | vocabulary
    else:
        config = dict(architectures=["Eagle3Speculator"], speculators_model_type="eagle3", speculators_version="0.3.0",
                      eagle_aux_hidden_state_layer_ids=c["aux"], norm_before_residual=True, norm_before_fc=False, fc_norm=True, norm_output=True, target_hidden_size=None,
                      tie_word_embeddings=False, transformer_layer_config=numbers,
                      speculators_config=dict(algorithm="eagle3", proposal_methods=[dict(proposal_type="greedy", speculative_tokens=3)],
                                              verifier=dict(architectures=["LlamaForCausalLM"], name_or_path="llama"))) | vocabulary
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


GGUF_HEAD = {"input_layernorm": "blk.0.attn_norm", "hidden_norm": "blk.0.attn_norm_2", "q_proj": "blk.0.attn_q", "k_proj": "blk.0.attn_k",
             "v_proj": "blk.0.attn_v", "o_proj": "blk.0.attn_output", "post_attention_layernorm": "blk.0.ffn_norm",
             "gate_proj": "blk.0.ffn_gate", "up_proj": "blk.0.ffn_up", "down_proj": "blk.0.ffn_down", "norm": "output_norm",
             "lm_head": "output", "embed_tokens": "token_embd", "fc": "fc", "input_norm": "enc.output_norm"}


def add_numbers(w, layers, width, ffn, heads, kv_heads, head_dim, eps, theta):
    add_sizes(w, layers, 256, width, ffn, heads, kv_heads, eps)
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    w.add_rope_freq_base(theta)
    w.add_vocab_size(N)
    add_pieces(w, VOCAB, SCORES)


def write_gguf(c, tensors):
    shutil.rmtree(OUT / "gguf", ignore_errors=True)
    (OUT / "gguf").mkdir()
    w = gguf.GGUFWriter(OUT / "gguf" / "head.gguf", "eagle3")
    add_numbers(w, 1, c["width"], c["ffn"], c["heads"], c["kv_heads"], c["head_dim"], c["eps"], c["theta"])
    w.add_rope_dimension_count(c["head_dim"])
    w.add_array("eagle3.target_layers", c["aux"])
    w.add_uint32("eagle3.target_hidden_size", 32)
    w.add_bool("eagle3.norm_before_residual", c["norm_before_residual"])
    w.add_bool("eagle3.norm_before_fc", c["norm_before_fc"])
    for k, v in tensors.items():
        x = v.numpy()
        if k == "d2t":
            w.add_tensor("d2t", x + np.arange(len(x)), raw_dtype=gguf.GGMLQuantizationType.I64)
            continue
        if k in ("q_proj", "k_proj"):
            x = adjacent(x, c["heads"] if k == "q_proj" else c["kv_heads"])
        w.add_tensor(GGUF_HEAD[k] + ".weight", np.ascontiguousarray(x if x.ndim > 1 else x.astype(np.float32)))
    finish(w)


def make_eagle(names):
    target = load_target(OUT / "targets" / "llama")
    single = Target(tf.AutoModelForCausalLM.from_pretrained(OUT / "targets" / "llama", dtype=torch.float32, attn_implementation="eager"))
    for p in single.model.parameters():
        p.requires_grad_(False)
    with torch.no_grad():  # the target's text
        texts = sentences(384, 4, 2)
        while texts.shape[1] < 56:
            texts = torch.cat((texts, torch.multinomial((single(texts)[1][:, -1] / 0.8).softmax(-1), 1)), 1)
    for name in names:
        c, w = make_head(name, single, texts)
        if name == "gguf":
            write_gguf(c, w)
        else:
            write_folder(name, c, w, target)
        drafter = Eagle(c, {k: v if k == "d2t" else v.double() for k, v in w.items()}, target)
        write_rounds(name, drafter, target, "head.gguf" if name == "gguf" else "head", "../targets/llama", CHAINS + [TREES[name]], 12, "eagle")


# ---- targets as GGUF, with the tensors of llama.cpp's converter ----

GLM = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
       "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
       "post_attention_layernorm": "post_attention_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
       "mlp.gate": "ffn_gate_inp", "mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp",
       "mlp.shared_experts.down_proj": "ffn_down_shexp", "enorm": "nextn.enorm", "hnorm": "nextn.hnorm", "eh_proj": "nextn.eh_proj",
       "shared_head.norm": "nextn.shared_head_norm"}


def write_glm_gguf():
    c = TARGETS["glm4_moe"]()
    saved = load_file(OUT / "targets" / "glm4_moe" / "model.safetensors")
    w = gguf.GGUFWriter(OUT / "targets" / "glm4_moe.gguf", "glm4moe")
    add_numbers(w, 4, 32, c.intermediate_size, 4, 2, 8, c.rms_norm_eps, 10000.0)
    w.add_rope_dimension_count(4)
    w.add_leading_dense_block_count(1)
    w.add_expert_count(c.n_routed_experts)
    w.add_expert_used_count(c.num_experts_per_tok)
    w.add_expert_feed_forward_length(c.moe_intermediate_size)
    w.add_expert_shared_count(c.n_shared_experts)
    w.add_expert_weights_scale(c.routed_scaling_factor)
    w.add_expert_weights_norm(c.norm_topk_prob)
    w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    w.add_nextn_predict_layers(1)
    stacks = {}
    for k, v in saved.items():
        x = v.numpy()
        small = x.astype(np.float32) if x.ndim == 1 else x
        stem, kind = k.rsplit(".", 1)
        if stem in ("model.embed_tokens", "model.norm", "lm_head"):
            w.add_tensor({"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}[stem] + ".weight", small)
            continue
        _, _, l, rest = stem.split(".", 3)
        if kind == "e_score_correction_bias":
            w.add_tensor(f"blk.{l}.exp_probs_b.bias", small)
        elif rest.startswith("mlp.experts."):
            _, _, e, part = rest.split(".")
            stacks.setdefault((l, part.removesuffix("_proj")), {})[int(e)] = x
        else:
            w.add_tensor(f"blk.{l}.{GLM[rest]}.{kind}", small.astype(np.float32) if rest == "mlp.gate" else small)
    for (l, part), experts in stacks.items():
        w.add_tensor(f"blk.{l}.ffn_{part}_exps.weight", np.stack([experts[e] for e in range(len(experts))]))
    finish(w)


QWEN35 = {k: v for k, v in GLM.items() if k.startswith(("self_attn.", "input_", "post_", "mlp.gate_", "mlp.up_", "mlp.down_"))} | {
    "linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate", "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha", "linear_attn.conv1d": "ssm_conv1d", "linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out"}
QWEN35_ENDS = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "mtp.fc": "blk.3.nextn.eh_proj",
               "mtp.pre_fc_norm_embedding": "blk.3.nextn.enorm", "mtp.pre_fc_norm_hidden": "blk.3.nextn.hnorm", "mtp.norm": "blk.3.nextn.shared_head_norm"}


def write_qwen_gguf():
    c = TARGETS["qwen3_5"]()
    w = gguf.GGUFWriter(OUT / "targets" / "qwen3_5.gguf", "qwen35")
    add_numbers(w, 4, 32, c.intermediate_size, 4, 2, 8, c.rms_norm_eps, 10000.0)
    w.add_rope_dimension_count(4)
    w.add_rope_dimension_sections([1, 1, 0, 0])
    w.add_ssm_conv_kernel(c.linear_conv_kernel_dim)
    w.add_ssm_state_size(c.linear_key_head_dim)
    w.add_ssm_group_count(c.linear_num_key_heads)
    w.add_ssm_time_step_rank(c.linear_num_value_heads)
    w.add_ssm_inner_size(c.linear_num_value_heads * c.linear_value_head_dim)
    w.add_full_attention_interval(2)
    w.add_nextn_predict_layers(1)
    for k, v in load_file(OUT / "targets" / "qwen3_5" / "model.safetensors").items():
        k = k.replace("mtp.layers.0.", "model.layers.3.")
        x = v.float().squeeze().numpy() if v.ndim != 2 else v.numpy()
        if k.endswith("norm.weight") or "_norm_" in k:
            x = x + (0 if "linear_attn" in k else 1)
        stem, _, kind = k.rpartition(".")
        if stem in QWEN35_ENDS:
            w.add_tensor(f"{QWEN35_ENDS[stem]}.weight", x)
            continue
        _, _, l, rest = k.split(".", 3)
        if kind == "A_log":
            w.add_tensor(f"blk.{l}.ssm_a", -np.exp(x))
        elif kind == "dt_bias":
            w.add_tensor(f"blk.{l}.ssm_dt.bias", x)
        else:
            w.add_tensor(f"blk.{l}.{QWEN35[rest.removesuffix('.weight')]}.weight", x)
    finish(w)


def main():
    wanted = sys.argv[1:] or [*HEADS, *LAYERS]
    (OUT / "targets").mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in [n for n in wanted if n in LAYERS]:
        make_mtp(name)
        target, drafter = load_mtp(name)
        if name == "glm4_moe":
            compare_with_transformers(target, drafter)
            write_glm_gguf()
        if name == "qwen3_5":
            write_qwen_gguf()
        write_rounds(name, drafter, target, None, f"../targets/{name}", CHAINS, 12, "mtp")
    heads = [n for n in wanted if n in HEADS]
    if heads:
        make_llama()
        make_eagle(heads)


if __name__ == "__main__":
    main()
