#!/usr/bin/env python3
"""Block drafters (DFlash, DSpark) for a tiny target, and greedy rounds of these drafters in double precision.

    pip install numpy gguf torch transformers safetensors
    python3 tests/golden/make_block_golden.py [--rounds] [CASE…]

Writes tests/golden/block/CASE: head/ or head.gguf, and expect.json. The target is that of EAGLE-3 heads (eagle/targets/llama). The
drafters are trained for some seconds on its text; with --rounds those in the files are taken. The rounds are computed from the stored weights by the code below, which follows
docs/policies/dflash.md and has no KV cache: each round computes keys and values of all positions. A text in which floats could choose
another token is left out.

expect.json: `target`, `head`, and `runs`, one for each prompt and setting: `policy`, `set` (the knobs), `prompt`, `ids` (its tokens),
`text` (the target's next tokens) and `rounds`. A round has `at` (the number of tokens at its start, the pending one included),
`accepted`, and `drafts`: the token of each node, its parent (a node's index, -1: the pending token) and its probability after its parent,
under the policy dspark with the bias. In a chain the row's likeliest token without the bias and its probability follow (dspark), and the
forecast of the confidence head, if there is one. Nodes of a tree are in the order of their paths' probabilities.

The formats of files were read in these public sources:
  z-lab            dflash/model.py: DFlashDraftModel, `dflash_config`; target_layer_ids are outputs, counted from 0
  DeepSpec         deepspec/modeling/dspark: Qwen3DSparkModel, `markov_head.*`, `confidence_head.proj`; -1 is the embedding
  speculators      src/speculators/models/dflash and dspark: `transformer_layer_config`; aux_hidden_state_layer_ids are inputs, as vLLM
                   reads them (it stores each id less 1 as target_layer_ids); d2t has distances
                   (the classes of version 0.9.0 give the same states, biases and confidences for all folders here, to 2e-6)
  llama.cpp        src/models/dflash.cpp, conversion/qwen.py: architecture dflash; target_layers are inputs
                   (llama-server drafts and accepts as many with these files; gguf_causal lacks the norms that it needs)
"""
import heapq
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

from make_eagle_golden import MARGIN, OUT as EAGLE, SAID, Target, fit, load_target, rms, sentences
from make_models_golden import N, SCORES, VOCAB, add_pieces
from gguf_file import BLOCK, BLOCK_LAYER, block_name, write_block_drafter

OUT = pathlib.Path(__file__).parent / "block"
MASK, WIDTH, HEADS, KV_HEADS, HEAD_DIM, FFN = N - 1, 32, 4, 2, 8, 48
PLAIN, RANK = dict(rank=0, confidence=None), 8  # confidence: None, or whether the head reads markov_w1, too
CASES = {  # name: the format, and what the drafter has of its own; `noise` makes more drafts wrong
    "zlab": dict(form="z-lab", layers=2, block=6, aux=[1, 3, 5]),
    "zlab_windows": dict(form="z-lab", layers=2, block=5, aux=[2, 4], windows=[7, 7], causal=True, theta=5000.0),
    "zlab_mixed": dict(form="z-lab", layers=2, block=5, aux=[1, 6], windows=[None, 6], causal=[False, True]),
    "deepspec": dict(form="DeepSpec", layers=2, block=6, aux=[0, 3, 6], own=True, rank=RANK, confidence=True, anchor=True),
    "deepspec_bare": dict(form="DeepSpec", layers=1, block=4, aux=[1, 4], own=True, rank=RANK, anchor=True),
    "deepspec_dflash": dict(form="DeepSpec", layers=1, block=5, aux=[2, 5], own=True, anchor=True),
    "speculators": dict(form="speculators", layers=2, block=6, aux=[1, 3, 6], rank=RANK, confidence=False, anchor=True, vocabulary=150),
    "speculators_bonus": dict(form="speculators", layers=1, block=6, aux=[2, 6], rank=RANK, confidence=True),
    "speculators_dflash": dict(form="speculators", layers=1, block=5, aux=[1, 5], vocabulary=120),
    "gguf": dict(form="GGUF", layers=2, block=6, aux=[1, 4, 6], windows=[None, 6], embeds=True, theta=20000.0),
    "gguf_dspark": dict(form="GGUF", layers=2, block=5, aux=[2, 5], rank=RANK, confidence=True, anchor=True, vocabulary=140),
    "gguf_causal": dict(form="GGUF", layers=1, block=5, aux=[3, 6], causal=True, norms=False, rank=RANK, confidence=True),
}
USUAL = PLAIN | dict(windows=None, causal=False, own=False, embeds=False, anchor=False, vocabulary=None, theta=10000.0, norms=True)


class Block:
    """A block drafter. w: its tensors by the names of DeepSpec's folders, without `.weight`; c: a case with all its members."""

    def __init__(self, c, w, target):
        self.c, self.w = c, w
        self.embedding = w.get("embed_tokens", target.model.model.embed_tokens.weight)
        self.head = w.get("lm_head", self.embedding if c["embeds"] else target.model.lm_head.weight)
        self.ids = torch.arange(len(self.head)) + w.get("d2t", torch.zeros(len(self.head), dtype=torch.long))

    def rotated(self, x, positions):
        half = HEAD_DIM // 2
        angle = positions[..., None, None].to(x.dtype) * self.c["theta"] ** (-torch.arange(half, dtype=x.dtype) / half)
        low, high = x[..., :half], x[..., half:]
        return torch.cat((low * angle.cos() - high * angle.sin(), high * angle.cos() + low * angle.sin()), -1)

    def heads(self, x, layer, name, count, positions):
        """(…, rows, heads, head_dim), normed and rotated if they are queries or keys"""
        x = F.linear(x, self.w[f"layers.{layer}.self_attn.{name}_proj"]).unflatten(-1, (count, HEAD_DIM))
        if name != "v" and self.c["norms"]:
            x = rms(x, self.w[f"layers.{layer}.self_attn.{name}_norm"], 1e-6)
        return x if name == "v" else self.rotated(x, positions)

    def hidden(self, states, anchors, pending):
        """The states after the final norm of the rows of blocks (texts, blocks, rows, width). anchors: the positions of their first rows,
        (texts, blocks); pending: the tokens there; states: the target's, of all positions before the last anchor."""
        c, w, B = self.c, self.w, self.c["block"]
        g = rms(F.linear(torch.cat([states[i] for i in c["aux"]], -1), w["fc"]), w["hidden_norm"], 1e-6)
        texts, length, _ = g.shape
        tokens = torch.full((*anchors.shape, B), MASK)
        tokens[..., 0] = pending
        x = F.embedding(tokens, self.embedding).flatten(1, 2)
        row = (anchors[..., None] + torch.arange(B)).flatten(1)  # positions of rows, and of all keys
        key = torch.cat((torch.arange(length).expand(texts, -1), row), 1)
        block = torch.arange(anchors.shape[1]).repeat_interleave(B)
        same = (block[:, None] == block).expand(texts, -1, -1)
        before = torch.arange(length)[None, None] < anchors.repeat_interleave(B, 1)[..., None]
        for l in range(c["layers"]):
            name = f"layers.{l}."
            a = rms(x, w[name + "input_layernorm"], 1e-6)
            q = self.heads(a, l, "q", HEADS, row).transpose(1, 2)
            both = torch.cat((g, a), 1)
            k, v = (self.heads(both, l, kind, KV_HEADS, key).transpose(1, 2).repeat_interleave(HEADS // KV_HEADS, 1) for kind in "kv")
            causal = c["causal"][l] if isinstance(c["causal"], list) else c["causal"]
            near = torch.cat((before, same & (row[:, :, None] >= row[:, None]) if causal else same), 2)
            if c["windows"] and c["windows"][l]:
                near = near & (row[:, :, None] - key[:, None] < c["windows"][l])
            z = (q @ k.transpose(2, 3) / math.sqrt(HEAD_DIM)).masked_fill(~near[:, None], -math.inf)
            x = x + F.linear((z.softmax(-1) @ v).transpose(1, 2).flatten(2), w[name + "self_attn.o_proj"])
            y = rms(x, w[name + "post_attention_layernorm"], 1e-6)
            up = F.silu(F.linear(y, w[name + "mlp.gate_proj"])) * F.linear(y, w[name + "mlp.up_proj"])
            x = x + F.linear(up, w[name + "mlp.down_proj"])
        return rms(x, w["norm"], 1e-6).unflatten(1, (-1, B))[:, :, 0 if c["anchor"] else 1:]

    def bias(self, before):
        return F.linear(self.w["markov_head.markov_w1"][before], self.w["markov_head.markov_w2"])

    def confidence(self, hidden, before):
        x = torch.cat((hidden, self.w["markov_head.markov_w1"][before]), -1) if self.c["confidence"] else hidden
        return F.linear(x, self.w["confidence_head.proj"], self.w["confidence_head.proj.bias"])[..., 0]


# ---- training ----

def drafter_loss(drafter, target, texts, step):
    c = drafter.c
    g = torch.Generator().manual_seed(step)
    rows = texts[torch.randint(0, len(texts), (16,), generator=g)]
    drafts = c["block"] - (not c["anchor"])
    anchors = torch.randint(2, rows.shape[1] - drafts - 1, (16, 5), generator=g)
    with torch.no_grad():
        states, _ = target(rows)
    h = drafter.hidden(states, anchors, rows.gather(1, anchors))
    at = anchors[..., None] + torch.arange(drafts)
    before, wanted = (rows.gather(1, (at + i).flatten(1)).view(at.shape) for i in (0, 1))
    inverse = torch.full((N,), -1)
    inverse[drafter.ids] = torch.arange(len(drafter.ids))
    logits = F.linear(h, drafter.head)
    if c["rank"]:
        logits = logits + drafter.bias(before)
    loss = F.cross_entropy(logits.flatten(0, 2), inverse[wanted].flatten(), ignore_index=-1)
    if c["confidence"] is not None:
        right = (drafter.ids[logits.argmax(-1)] == wanted).float().cumprod(-1)
        loss = loss + 0.3 * F.binary_cross_entropy_with_logits(drafter.confidence(h, before), right)
    return loss


def make_drafter(c, name, target, texts):
    g = torch.Generator().manual_seed(100 + sum(name.encode()))
    w = {"fc": (WIDTH, WIDTH * len(c["aux"])), "hidden_norm": (WIDTH,), "norm": (WIDTH,)}
    for l in range(c["layers"]):
        for k, shape in {"input_layernorm": (WIDTH,), "self_attn.q_proj": (32, WIDTH), "self_attn.k_proj": (16, WIDTH),
                         "self_attn.v_proj": (16, WIDTH), "self_attn.o_proj": (WIDTH, 32), "post_attention_layernorm": (WIDTH,),
                         "mlp.gate_proj": (FFN, WIDTH), "mlp.up_proj": (FFN, WIDTH), "mlp.down_proj": (WIDTH, FFN)}.items():
            w[f"layers.{l}.{k}"] = shape
        if c["norms"]:
            w |= {f"layers.{l}.self_attn.{k}_norm": (HEAD_DIM,) for k in "qk"}
    if c["own"] or c["embeds"]:
        w["embed_tokens"] = (N, WIDTH)
    if c["own"] or c["vocabulary"]:
        w["lm_head"] = (c["vocabulary"] or N, WIDTH)
    if c["rank"]:
        w |= {"markov_head.markov_w1": (N, c["rank"]), "markov_head.markov_w2": (c["vocabulary"] or N, c["rank"])}
    if c["confidence"] is not None:
        w |= {"confidence_head.proj": (1, WIDTH + (c["rank"] if c["confidence"] else 0)), "confidence_head.proj.bias": (1,)}
    made = {}
    for k, shape in w.items():
        x = torch.randn(shape, generator=g)
        made[k] = (1 + 0.2 * x if k.endswith("norm") else x * shape[-1] ** -0.5).requires_grad_()
    with torch.no_grad():
        if c["own"] or c["embeds"]:  # as trained drafters have them
            made["embed_tokens"].copy_(target.model.model.embed_tokens.weight)
    parameters = [*made.values()]
    if c["vocabulary"]:  # the tokens that the target writes most often
        ids = torch.bincount(texts.flatten(), minlength=N).topk(c["vocabulary"])[1].sort()[0]
        made["d2t"] = ids - torch.arange(len(ids))
    drafter = Block(c, made, target)
    loss = fit(parameters, lambda step: drafter_loss(drafter, target, texts, step), 500, 8e-3)
    print(f"{name}: loss {loss:.3f}", flush=True)
    return {k: v.detach() if k == "d2t" else v.detach().half() for k, v in made.items()}


# ---- rounds ----

def top(p, count):
    """The likeliest tokens and their probabilities, or None where floats could choose others."""
    q, i = p.topk(count + 1)
    return None if any(q[j] < q[j + 1] * (1 + MARGIN) for j in range(count)) else (i[:count].tolist(), q[:count].tolist())


class Rows:
    """The rows of a block: what they predict after a token, under a policy."""

    def __init__(self, drafter, hidden, policy, knobs):
        self.drafter, self.hidden, self.spark = drafter, hidden, policy == "dspark"
        self.least = knobs.get("conf_min", 0)

    def look(self, row, before, count):
        """(the `count` likeliest tokens, their probabilities, the confidence or None, whether it is below conf_min); None: floats could
        choose others. Without a confidence head the probability of the first choice takes its place for conf_min."""
        d, h = self.drafter, self.hidden[row]
        z = F.linear(h, d.head) + (d.bias(before) if self.spark else 0)
        found = top(z.softmax(-1), count)
        if found is None:
            return None
        sure = None if d.c["confidence"] is None else float(d.confidence(h, before).sigmoid())
        by = found[1][0] if sure is None else sure
        return None if self.least > 0 and abs(by - self.least) < MARGIN else ([int(d.ids[i]) for i in found[0]], found[1], sure, by < self.least)


def chain(rows, pending, knobs):
    """[token, parent, probability, …] of a chain, or None"""
    out, before, d = [], pending, rows.drafter
    for row in range(knobs["k"]):
        plain, found = top(F.linear(rows.hidden[row], d.head).softmax(-1), 1), rows.look(row, before, 1)
        if plain is None or found is None:
            return None
        tokens, p, sure, ends = found
        if ends:
            break
        before = tokens[0]
        more = [int(d.ids[plain[0][0]]), plain[1][0]] if rows.spark else []
        out.append([before, len(out) - 1, p[0], *more, *([] if sure is None else [sure])])
    return out


def tree(rows, pending, knobs):
    """DDTree: the `nodes` paths of the largest products of probabilities, at most `topk` children a node; or None"""
    heap, out, last = [], [], 1

    def add(row, before, path, parent):
        found = rows.look(row, before, knobs["topk"])
        if found is not None and not found[3]:
            for token, p in zip(*found[:2]):
                heapq.heappush(heap, (-path * p, row, len(heap), token, p, parent))
        return found is not None

    if not add(0, pending, 1, -1):
        return None
    while heap:
        path, row, _, token, p, parent = heapq.heappop(heap)
        if len(out) == knobs["nodes"]:
            return out if last > -path * (1 + MARGIN) else None
        last = -path
        out.append([token, parent, p])
        if row + 1 < knobs["k"] and not add(row + 1, token, -path, len(out) - 1):
            return None
    return out


def rounds(drafter, states, tokens, at, policy, knobs):
    """The rounds of a text that its end does not shorten; None where choices are too close."""
    out = []
    while at + knobs["k"] + 1 <= len(tokens):
        hidden = drafter.hidden([s[:, :at - 1] for s in states], torch.tensor([[at - 1]]), torch.tensor([[tokens[at - 1]]]))[0, 0]
        found = (tree if "topk" in knobs else chain)(Rows(drafter, hidden, policy, knobs), tokens[at - 1], knobs)
        if found is None:
            return None
        node, accepted = -1, 0
        while True:
            node = next((i for i, d in enumerate(found) if d[1] == node and d[0] == tokens[at + accepted]), None)
            if node is None:
                break
            accepted += 1
        out.append({"at": at, "accepted": accepted, "drafts": [[d[0], d[1], *(v if isinstance(v, int) else float(f"{v:.5g}") for v in d[2:])] for d in found]})
        at += accepted + 1
    return out


def settings(c):
    k = c["block"] - (not c["anchor"])
    chains, deep = [{"k": 1}, {"k": 3}, {"k": k}], {"k": min(k, 4)}
    trees = [{"k": 2, "topk": 2, "nodes": 4}, deep | {"topk": 3, "nodes": 9}]
    runs = [("dflash", s) for s in [*chains, {"k": k, "conf_min": 0.3}, *trees, deep | {"topk": 5, "nodes": 14}]]
    if c["rank"]:
        least = [{"k": k, "conf_min": m} for m in (0.3, 0.7)]
        runs += [("dspark", s) for s in chains + least + trees + [deep | {"topk": 4, "nodes": 12, "conf_min": 0.2}]]
    return runs


def write_rounds(name, c, drafter, texts, prompts):
    runs, total, by = [], 0, {}
    for policy, knobs in settings(c):
        count = 0
        for words, prompt, text, states in texts:
            done = count < prompts and rounds(drafter, states, prompt + text, len(prompt) + 1, policy, knobs)
            if done:
                runs.append({"policy": policy, "set": knobs, "prompt": words, "ids": prompt, "text": text, "rounds": done})
                count += 1
                total += len(done)
                for r in done:
                    by[r["accepted"]] = by.get(r["accepted"], 0) + 1
        assert count == prompts, f"{name}: {count} prompts of {policy} {knobs}"
    lines = ",\n".join(json.dumps(r, separators=(",", ":")) for r in runs)
    head = "head.gguf" if c["form"] == "GGUF" else "head"
    (OUT / name / "expect.json").write_text(f'{{"target":"../../eagle/targets/llama","head":"{head}","runs":[\n{lines}\n]}}\n')
    print(f"{name}: {total} rounds by accepted drafts: {dict(sorted(by.items()))}", flush=True)
    return total


# ---- files ----

def write_folder(folder, c, w):
    folder.mkdir(parents=True)
    tensors = {k if k == "d2t" or k.endswith(".bias") else k + ".weight": v.contiguous() for k, v in w.items()}
    if "d2t" in w:
        tensors["t2d"] = torch.zeros(N, dtype=torch.bool)
        tensors["t2d"][w["d2t"] + torch.arange(len(w["d2t"]))] = True
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    layers = dict(model_type="qwen3", hidden_size=WIDTH, intermediate_size=FFN, num_hidden_layers=c["layers"], num_attention_heads=HEADS,
                  num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM, rms_norm_eps=1e-6, rope_theta=c["theta"], vocab_size=N,
                  max_position_embeddings=256, hidden_act="silu", attention_bias=False, use_sliding_window=bool(c["windows"]),
                  layer_types=["sliding_attention" if c["windows"] and c["windows"][l] else "full_attention" for l in range(c["layers"])],
                  sliding_window=max(x or 0 for x in c["windows"]) if c["windows"] else None)
    outputs = [i - 1 for i in c["aux"]]
    spark = dict(markov_rank=c["rank"], markov_head_type="vanilla", enable_confidence_head=c["confidence"] is not None,
                 confidence_head_with_markov=bool(c["confidence"]))
    if c["form"] == "z-lab":
        config = dict(architectures=["DFlashDraftModel"], block_size=c["block"], num_target_layers=7,
                      dflash_config=dict(mask_token_id=MASK, target_layer_ids=outputs)) | layers
    elif c["form"] == "DeepSpec":
        config = dict(architectures=["Qwen3DSparkModel"], block_size=c["block"], mask_token_id=MASK, target_layer_ids=outputs,
                      num_target_layers=7, num_anchors=512, tie_word_embeddings=False) | layers | spark
    else:
        kind = "dspark" if c["rank"] else "dflash"
        config = dict(architectures=["DSparkSpeculator" if c["rank"] else "DFlashSpeculator"], speculators_model_type=kind,
                      speculators_version="0.5.0", aux_hidden_state_layer_ids=c["aux"], block_size=c["block"], mask_token_id=MASK,
                      draft_vocab_size=c["vocabulary"] or N, sample_from_anchor=c["anchor"], sliding_window_non_causal=False,
                      target_hidden_size=None, transformer_layer_config=layers) | (spark if c["rank"] else {})
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def write_gguf(path, c, w):
    path.parent.mkdir(parents=True)
    tensors = {k if k == "d2t" or k.endswith(".bias") else k + ".weight": v.numpy() for k, v in w.items()}
    numbers = dict(layers=c["layers"], context=256, width=WIDTH, ffn=FFN, heads=HEADS, kv_heads=KV_HEADS, head_dim=HEAD_DIM, eps=1e-6,
                   rope_base=c["theta"], block=c["block"], mask=MASK, target_layers=c["aux"], causal=c["causal"] or None,
                   from_anchor=c["anchor"])
    if c["windows"]:
        numbers |= dict(window=max(x or 0 for x in c["windows"]), windows=c["windows"])
    write_block_drafter(path, numbers, tensors, lambda writer: add_pieces(writer, VOCAB, SCORES))


def read_weights(name, c):
    """A drafter's tensors from its file, by the names of Block.w."""
    if c["form"] != "GGUF":
        w = load_file(OUT / name / "head" / "model.safetensors")
        return {k.removesuffix(".weight"): v for k, v in w.items() if k != "t2d"}
    stored = {t.name: torch.from_numpy(t.data.copy()) for t in gguf.GGUFReader(OUT / name / "head.gguf").tensors}
    names = [*BLOCK, *(f"layers.{l}.{stem}.weight" for l in range(c["layers"]) for stem in BLOCK_LAYER)]
    w = {k.removesuffix(".weight"): stored[block_name(k)] for k in names if block_name(k) in stored}
    if "d2t" in w:
        w["d2t"] = w["d2t"] - torch.arange(len(w["d2t"]))
    return w


def prompts_of(target, count):
    """(words, tokens, the target's next tokens, its states) of texts in which no choice is close"""
    tokenizer = Tokenizer.from_file(str(OUT.parent / "shared" / "tokenizer.json"))
    out, seed = [], 0
    while len(out) < count:
        words = "".join(np.random.default_rng(seed).choice(list("theandsowrilu "), 3 + seed % 9)).strip()
        prompt = tokenizer.encode(words).ids
        text = target.text(prompt, SAID)
        if text:
            out.append((words, prompt, text, target(torch.tensor([prompt + text]))[0]))
        seed += 1
    return out


def main():
    torch.set_num_threads(1)
    folder = EAGLE / "targets" / "llama"
    target = load_target(folder)
    single = Target(tf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager"))
    for p in single.model.parameters():
        p.requires_grad_(False)
    total = 0
    with torch.no_grad():
        said = prompts_of(target, 20)
        texts = sentences(384, 4, 2)  # and the target's next tokens
        while texts.shape[1] < 56:
            texts = torch.cat((texts, torch.multinomial((single(texts)[1][:, -1] / 0.5).softmax(-1), 1)), 1)
    for name in [n for n in sys.argv[1:] if n != "--rounds"] or CASES:
        c = USUAL | CASES[name]
        if "--rounds" not in sys.argv:
            w = make_drafter(c, name, single, texts)
            shutil.rmtree(OUT / name, ignore_errors=True)
            if c["form"] == "GGUF":
                write_gguf(OUT / name / "head.gguf", c, w)
            else:
                write_folder(OUT / name / "head", c, w)
        w = read_weights(name, c)
        with torch.no_grad():
            drafter = Block(c, {k: v if k == "d2t" else v.double() for k, v in w.items()}, target)
            total += write_rounds(name, c, drafter, said, 2)
    print(f"{total} rounds")


if __name__ == "__main__":
    main()
