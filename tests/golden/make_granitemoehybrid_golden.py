#!/usr/bin/env python3
"""Granite 4 without state space and experts: the golden granite under the names that GraniteMoeHybrid gives its tensors.

    pip install numpy safetensors
    python3 tests/golden/make_granitemoehybrid_golden.py

A GraniteMoeHybrid whose layers are all attention, without experts, computes what a Granite does: its MLP is the shared one, gate and
up in one matrix. So families/granitemoehybrid is made of families/granite (make_families_golden.py), and their logits are the same.
"""
import json
import pathlib
import shutil
import subprocess

import numpy
from safetensors.numpy import load_file, save_file

OUT = pathlib.Path(__file__).parent / "families"
old, new = OUT / "granite", OUT / "granitemoehybrid"
shutil.rmtree(new, ignore_errors=True)
new.mkdir()
tensors = load_file(old / "model.safetensors")
for name in [n for n in tensors if n.endswith("mlp.gate_proj.weight")]:
    layer = name.removesuffix("mlp.gate_proj.weight")
    gate, up = tensors.pop(name), tensors.pop(layer + "mlp.up_proj.weight")
    tensors[layer + "shared_mlp.input_linear.weight"] = numpy.concatenate([gate, up])
    tensors[layer + "shared_mlp.output_linear.weight"] = tensors.pop(layer + "mlp.down_proj.weight")
save_file(tensors, new / "model.safetensors", metadata={"format": "pt"})
(new / "model.safetensors").chmod(0o644)
config = json.loads((old / "config.json").read_text())
config |= dict(architectures=["GraniteMoeHybridForCausalLM"], model_type="granitemoehybrid", num_local_experts=0, num_experts_per_tok=0,
               shared_intermediate_size=config["intermediate_size"], intermediate_size=512, position_embedding_type="rope",
               layer_types=["attention"] * config["num_hidden_layers"])
(new / "config.json").write_text(json.dumps(config, indent=2) + "\n")
subprocess.run(["sh", OUT.parent / "assemble.sh"], check=True)
lines = (OUT / "granite.txt").read_text().splitlines()
(OUT / "granitemoehybrid.txt").write_text("\n".join(["# made by make_granitemoehybrid_golden.py of granite.txt"] + lines[1:]) + "\n")
