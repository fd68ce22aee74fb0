#!/usr/bin/env python3
"""Adapters (LoRA) of golden models, as PEFT writes them and as GGUF, and the logits of the merged models.

    pip install numpy gguf torch transformers safetensors
    python3 tests/golden/make_lora_golden.py [LLAMA_CPP_FOLDER]

Writes tests/golden/lora/NAME/ (adapter_config.json, adapter_model.safetensors) and NAME.txt, read like those of
tests/golden/models: transformers' logits in double precision with W + SCALE alpha / r B A in place of W. With llama.cpp's folder
also NAME.gguf by its convert_lora_to_gguf.py.
"""
import json
import math
import pathlib
import subprocess
import sys

import torch
import transformers as tf
from safetensors.torch import save_file

from make_models_golden import PATH

HERE = pathlib.Path(__file__).parent
OUT = HERE / "lora"
ADAPTERS = {  # name: (model, target modules, r, alpha, further entries of its configuration, scale)
    "llama": ("models/llama", ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"], 4, 6, {}, 1.0),
    "llama-half": ("models/llama", ["q_proj", "down_proj"], 2, 5, dict(use_rslora=True), 0.5),
    "phi3": ("families/phi3", ["qkv_proj", "gate_up_proj"], 3, 4, {}, 1.0),
    "gpt2": ("families/gpt2", ["c_attn", "c_fc"], 4, 4, dict(fan_in_fan_out=True), 1.0),
    "gpt_neox": ("families/gpt_neox", ["query_key_value"], 2, 3, {}, 1.0),
}
# Of experts: (model, modules of each or parameters of all, whether inputs and outputs are the other way round, r,
# alpha)
EXPERTS = {
    "mixtral": ("families/mixtral", "modules", False, 2, 3),
    "mixtral-parameters": ("families/mixtral", "parameters", False, 2, 3),
    "olmoe-parameters": ("families/olmoe", "parameters", True, 2, 5),
}


def write(name, path, tensors, model, setting):
    z = model(torch.tensor([PATH])).logits[0, 27]
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    (folder / "adapter_model.safetensors").chmod(0o644)
    setting = dict(peft_type="LORA", task_type="CAUSAL_LM", base_model_name_or_path=path, bias="none", modules_to_save=None,
                   use_dora=False, rank_pattern={}, alpha_pattern={}) | setting
    (folder / "adapter_config.json").write_text(json.dumps(setting, indent=2) + "\n")
    lines = [f"# made by make_lora_golden.py: {name}", "tokens " + " ".join(map(str, PATH)),
             f"row 27 {model.config.num_hidden_layers}"] + ["%.7g" % v for v in z]
    (OUT / f"{name}.txt").write_text("\n".join(lines) + "\n")


@torch.no_grad()
def make_experts(name, seed):
    """PEFT's ParamWrapper: A is (experts * r, …), an expert's rows after another's, B is (…, r * experts), whose columns alternate
    between experts. If a module has two parameters, the second one's wrapper is the outer one."""
    path, style, turned, r, alpha = EXPERTS[name]
    g = torch.Generator().manual_seed(seed)
    model = tf.AutoModelForCausalLM.from_pretrained(HERE / path, dtype=torch.float64, attn_implementation="eager",
                                                    experts_implementation="eager").eval()
    tensors = {}
    for layer, block in enumerate(model.model.layers):
        for key, wrapper in (("gate_up_proj", "base_layer."), ("down_proj", "")):
            w = getattr(block.mlp.experts, key)
            n, out, into = w.shape
            a = torch.randn(n, r, into, generator=g).mul(into**-0.5).half()
            b = torch.randn(n, out, r, generator=g).mul(0.4).half()
            if style == "parameters":
                pair = (b.transpose(1, 2), a.permute(2, 1, 0)) if turned else (a, b.permute(1, 2, 0))
                stem = f"base_model.model.model.layers.{layer}.mlp.experts.{wrapper}"
                tensors |= {stem + "lora_A.weight": pair[0].reshape(n * r, -1), stem + "lora_B.weight": pair[1].reshape(-1, n * r)}
            for e in range(n):
                w[e] += alpha / r * b[e].double() @ a[e].double()
                parts = {"w2": b[e]} if key == "down_proj" else {"w1": b[e, :out // 2], "w3": b[e, out // 2:]}
                for part, rows in parts.items() if style == "modules" else ():
                    stem = f"base_model.model.model.layers.{layer}.block_sparse_moe.experts.{e}.{part}."
                    tensors |= {stem + "lora_A.weight": a[e].clone(), stem + "lora_B.weight": rows.clone()}
    targets = dict(target_modules=["w1", "w2", "w3"]) if style == "modules" else dict(
        target_modules=[], target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"])
    write(name, path, tensors, model, dict(r=r, lora_alpha=alpha) | targets)
    if len(sys.argv) > 1 and style == "modules":
        to_gguf(name, path)


def to_gguf(name, path):
    subprocess.run([sys.executable, pathlib.Path(sys.argv[1]) / "convert_lora_to_gguf.py", OUT / name, "--base", HERE / path,
                    "--outfile", OUT / f"{name}.gguf", "--outtype", "f16"], check=True)


def make(name, seed):
    path, targets, r, alpha, more, scale = ADAPTERS[name]
    g = torch.Generator().manual_seed(seed)
    model = tf.AutoModelForCausalLM.from_pretrained(HERE / path, dtype=torch.float64, attn_implementation="eager").eval()
    tensors = {}
    with torch.no_grad():
        for key, module in model.named_modules():
            if key.rsplit(".", 1)[-1] not in targets:
                continue
            turned = type(module).__name__ == "Conv1D"
            out, into = module.weight.shape[::-1] if turned else module.weight.shape
            a = torch.randn(r, into, generator=g).mul(into**-0.5).half()
            b = torch.randn(out, r, generator=g).mul(0.4).half()
            tensors |= {f"base_model.model.{key}.lora_A.weight": a, f"base_model.model.{key}.lora_B.weight": b}
            delta = scale * alpha / (math.sqrt(r) if more.get("use_rslora") else r) * b.double() @ a.double()
            module.weight.add_(delta.T if turned else delta)
        write(name, path, tensors, model, dict(r=r, lora_alpha=alpha, target_modules=targets) | more)
    if len(sys.argv) > 1 and not more:
        to_gguf(name, path)


if __name__ == "__main__":
    for i, one in enumerate(ADAPTERS):
        make(one, 70 + i)
    for i, one in enumerate(EXPERTS):
        make_experts(one, 90 + i)
