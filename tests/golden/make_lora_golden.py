#!/usr/bin/env python3
"""Adapters (LoRA) of golden models, as PEFT writes them and as GGUF, and the logits of what they are merged into.

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
ADAPTERS = {  # name: (model, what it adds to, r, alpha, what else its configuration says, scale)
    "llama": ("models/llama", ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"], 4, 6, {}, 1.0),
    "llama-half": ("models/llama", ["q_proj", "down_proj"], 2, 5, dict(use_rslora=True), 0.5),
    "phi3": ("families/phi3", ["qkv_proj", "gate_up_proj"], 3, 4, {}, 1.0),
    "gpt2": ("families/gpt2", ["c_attn", "c_fc"], 4, 4, dict(fan_in_fan_out=True), 1.0),
    "gpt_neox": ("families/gpt_neox", ["query_key_value"], 2, 3, {}, 1.0),
}


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
        z = model(torch.tensor([PATH])).logits[0, 27]
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    (folder / "adapter_model.safetensors").chmod(0o644)
    setting = dict(peft_type="LORA", task_type="CAUSAL_LM", base_model_name_or_path=path, r=r, lora_alpha=alpha, target_modules=targets,
                   bias="none", modules_to_save=None, use_dora=False, rank_pattern={}, alpha_pattern={}) | more
    (folder / "adapter_config.json").write_text(json.dumps(setting, indent=2) + "\n")
    lines = [f"# made by make_lora_golden.py: {name}", "tokens " + " ".join(map(str, PATH)),
             f"row 27 {model.config.num_hidden_layers}"] + ["%.7g" % v for v in z]
    (OUT / f"{name}.txt").write_text("\n".join(lines) + "\n")
    if len(sys.argv) > 1 and not more:
        subprocess.run([sys.executable, pathlib.Path(sys.argv[1]) / "convert_lora_to_gguf.py", folder, "--base", HERE / path, "--outfile",
                        OUT / f"{name}.gguf", "--outtype", "f16"], check=True)


if __name__ == "__main__":
    for i, one in enumerate(ADAPTERS):
        make(one, 70 + i)
