#!/usr/bin/env python3
"""Every causal language model of transformers, tiny and random, runs correctly or is refused in one line with the reason.

    python3 tests/variations/architectures.py build/tests/model_logits [--table FILE] [NAME…]

For each model_type the script makes a folder (F32, with the files of tests/golden/shared) and opens it. Logits must equal transformers', and a
refusal must name the unsupported feature. Needs torch and transformers 5. Prints a line for each model; exits with 1 if one is wrong.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")

import torch
import transformers as tf
from safetensors.torch import save_file
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

GOLDEN = pathlib.Path(__file__).parents[1].resolve() / "golden"
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(GOLDEN)]
from make_models_golden import N, PATH, randomise
from program import Program

LAYERS = 3
TINY = dict(
    vocab_size=N, hidden_size=32, d_model=32, n_embd=32, intermediate_size=40, num_hidden_layers=LAYERS, n_layer=LAYERS,
    n_layers=LAYERS, num_layers=LAYERS, num_attention_heads=4, n_head=4, n_heads=4, num_heads=4, num_key_value_heads=2,
    max_position_embeddings=64, n_positions=64, max_seq_len=64, n_ctx=64, bos_token_id=1, eos_token_id=2, pad_token_id=None,
    num_experts=4, num_local_experts=4, n_routed_experts=4, moe_num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
    shared_expert_intermediate_size=24, shared_intermediate_size=24, ffn_hidden_size=48, moe_top_k=2, moe_k=2, attention_dropout=0.0, head_dim=8)
MORE = {"dbrx": dict(attn_config=dict(kv_n_heads=2, clip_qkv=1.0, rope_theta=10000.0), ffn_config=dict(ffn_hidden_size=48, moe_top_k=2)),
        "lfm2_moe": dict(layer_types=["conv", "full_attention", "conv"]), "lfm2": dict(layer_types=["conv", "full_attention", "conv"]),
        "granitemoehybrid": dict(mamba_n_heads=4, mamba_d_state=8, layer_types=["linear_attention", "full_attention", "linear_attention"]),
        "bamba": dict(mamba_n_heads=4, mamba_d_state=8, attn_layer_indices=[1])}


def entries(kind):
    return {f.name: f for f in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}


def tiny(kind):
    """The smallest configuration that still has everything; of parts, theirs."""
    known = entries(kind)
    values = {k: v for k, v in TINY.items() if k in known}
    for name, part in (getattr(kind, "sub_configs", None) or {}).items():
        if entries(part):
            values[name] = tiny(part).to_dict()
    return kind(**values | MORE.get(kind.model_type, {}))


def finish(folder):
    for file in (GOLDEN / "shared").iterdir():
        os.symlink(file, folder / file.name)


def without_weights(config, folder):
    folder.mkdir()
    if isinstance(config, str):  # one that transformers can't make without further words
        (folder / "config.json").write_text(json.dumps(dict(model_type=config)))
    else:
        config.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    save_file({"nothing": torch.zeros(1)}, folder / "model.safetensors")
    finish(folder)


def with_weights(config, folder):
    """Saves a model and returns its logits, (tokens, vocabulary) in double precision."""
    more = dict(experts_implementation="eager")
    try:
        model = tf.AutoModelForCausalLM.from_config(config, attn_implementation="eager", **more)
    except Exception:
        model = tf.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model = model.float().eval()
    randomise(model, 3)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    finish(folder)
    with torch.no_grad():
        return model.double()(torch.tensor([PATH]), use_cache=False).logits[0]


def compare(said, want):
    got = torch.from_numpy(said)
    if got.shape != want.shape:
        return f"WRONG: {tuple(got.shape)} numbers instead of {tuple(want.shape)}", False
    error = max(((g - w).norm() / w.norm()).item() for g, w in zip(got, want))
    return (f"runs, {error:.1g}", True) if error < 1e-4 else (f"WRONG: off by {error:.2g}", False)


def clear(line):
    """Returns true if a refusal names the unsupported feature."""
    return any(w in line for w in ("not supported", "which this program", "make no sense", "shorter", "refused", "knows none"))


def too_large(config):
    """Some have parts that no configuration here makes small: of them the folder without weights has to do."""
    try:
        with torch.device("meta"):
            return sum(p.numel() for p in tf.AutoModelForCausalLM.from_config(config).parameters()) > 3e7
    except Exception:
        return False


def judge(scope, config, folder):
    """What comes of a model, and whether that is as it should be; of one that transformers can't make tiny, None."""
    without_weights(config, folder)
    said, line, _ = scope.logits(folder, PATH)
    if "architecture '" in line:
        return line.split(": ", 1)[1], clear(line)
    shutil.rmtree(folder)
    if not isinstance(config, str) and too_large(config):
        return line.split(": ", 1)[-1], clear(line)
    if isinstance(config, str):
        return "transformers makes no tiny configuration of it", None
    try:
        want = with_weights(config, folder)
    except Exception as e:
        return f"transformers: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:150], None
    said, line, _ = scope.logits(folder, PATH)
    return (line.split(": ", 1)[-1], clear(line)) if said is None else compare(said, want)


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("program")
    ask.add_argument("--table", help="also write a table of all as Markdown")
    ask.add_argument("names", nargs="*")
    asked = ask.parse_args()
    bad, rows = 0, []
    with tempfile.TemporaryDirectory() as temp, Program(asked.program) as scope:
        for name in sorted(asked.names or CAUSAL):
            kind = tf.models.auto.configuration_auto.CONFIG_MAPPING[name]
            folder = pathlib.Path(temp) / name
            try:
                try:
                    config = tiny(kind)
                except Exception:
                    config = name
                said, right = judge(scope, config, folder)
            except Exception as e:
                said, right = f"{type(e).__name__}: {e}"[:150], None
            shutil.rmtree(folder, ignore_errors=True)
            print(f"{'ok ' if right else '-- ' if right is None else 'BAD'} {name}: {said}", flush=True)
            bad += not right
            rows.append((name, said))
    if asked.table:
        pathlib.Path(asked.table).write_text("".join(f"| `{n}` | {s} |\n" for n, s in rows))
    print(f"{len(rows)} families, {bad} to look at")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
