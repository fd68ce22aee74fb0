#!/usr/bin/env python3
"""Tiny random models of the families that differ from Llama in form, and their logits by transformers in double precision.

    pip install numpy gguf torch transformers safetensors
    python3 tests/golden/make_families_golden.py [--texts] [NAME…]

Writes tests/golden/families/NAME/ (a Hugging Face folder, in F16, with the tokenizer of make_models_golden.py) and NAME.txt, in the
format of tests/golden/models. make_families_gguf.py converts the folders to NAME.gguf with llama.cpp's convert_hf_to_gguf.py
--outtype f16, if it supports the family. With --texts only NAME.txt is written, from the existing folders.
"""
import json
import math
import pathlib
import shutil
import sys

import torch
import transformers as tf
from safetensors.torch import load_file, save_file

from make_models_golden import N, PATH, greedy_lines, randomise, share

OUT = pathlib.Path(__file__).parent / "families"
ROWS = [(27, None), (14, 1)]  # (position, layer); None: the last one

BASE = dict(vocab_size=N, hidden_size=24, intermediate_size=40, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=None, tie_word_embeddings=False)
HEAD = dict(head_dim=8)
FEW = dict(num_hidden_layers=3)  # of layers with experts
SMALL = FEW | dict(intermediate_size=16)  # each expert, too
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
SLIDES = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
GPT = dict(vocab_size=N, n_positions=64, n_embd=24, n_layer=4, n_head=4, bos_token_id=1, eos_token_id=2)
FALCON = dict(vocab_size=N, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, bos_token_id=1, eos_token_id=2,
              rope_parameters=PLAIN)


def without(d, *names):
    return {k: v for k, v in d.items() if k not in names}


FAMILIES = {  # name: configuration
    "gemma": lambda: tf.GemmaConfig(**BASE | HEAD | dict(tie_word_embeddings=True)),
    "gemma2": lambda: tf.Gemma2Config(**BASE | HEAD | dict(tie_word_embeddings=True), sliding_window=6, query_pre_attn_scalar=8,
                                      attn_logit_softcapping=4.0, final_logit_softcapping=3.0),
    "gemma3": lambda: tf.Gemma3TextConfig(
        **BASE | HEAD | dict(tie_word_embeddings=True, num_hidden_layers=6), sliding_window=6, query_pre_attn_scalar=8,
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100000.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0}}),
    "gemma3-odd": lambda: tf.Gemma3TextConfig(  # scale and layers that GGUF files cannot contain
        **BASE | HEAD | dict(tie_word_embeddings=True), sliding_window=6, query_pre_attn_scalar=10, layer_types=SLIDES,
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100000.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0}}),
    "phi3": lambda: tf.Phi3Config(**BASE, sliding_window=9),
    "phi3-long": lambda: tf.Phi3Config(
        **BASE | dict(num_attention_heads=3, num_key_value_heads=1), original_max_position_embeddings=64,
        rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.1, 1.5, 2.0],
                         "long_factor": [2.0, 3.0, 4.0, 5.0], "original_max_position_embeddings": 64}),
    "smollm3": lambda: tf.SmolLM3Config(**BASE, no_rope_layers=[1, 1, 1, 0], rope_parameters=PLAIN),
    "olmo": lambda: tf.OlmoConfig(**BASE),
    "olmo2": lambda: tf.Olmo2Config(**BASE),
    "olmo3": lambda: tf.Olmo3Config(**BASE, sliding_window=6, layer_types=SLIDES),
    "granite": lambda: tf.GraniteConfig(**BASE, embedding_multiplier=6.0, residual_multiplier=0.4, attention_multiplier=0.2,
                                        logits_scaling=3.0),
    "glm4": lambda: tf.Glm4Config(**BASE | HEAD, attention_bias=True, rope_parameters=PLAIN | {"partial_rotary_factor": 0.5}),
    "cohere": lambda: tf.CohereConfig(**BASE | dict(tie_word_embeddings=True), logit_scale=0.25),
    "cohere2": lambda: tf.Cohere2Config(**BASE | dict(tie_word_embeddings=True), logit_scale=0.25, sliding_window=6,
                                        rotary_pct=1.0),
    "starcoder2": lambda: tf.Starcoder2Config(**BASE, sliding_window=None),
    "starcoder2-window": lambda: tf.Starcoder2Config(**BASE, sliding_window=9),
    "phi": lambda: tf.PhiConfig(**without(BASE, "num_key_value_heads") | dict(hidden_size=32, intermediate_size=128),
                                rope_parameters=PLAIN | {"partial_rotary_factor": 0.5}),
    "gpt_neox": lambda: tf.GPTNeoXConfig(**without(BASE, "num_key_value_heads") | dict(hidden_size=32), rotary_pct=0.25,
                                         rope_parameters=PLAIN | {"partial_rotary_factor": 0.25}),
    "stablelm": lambda: tf.StableLmConfig(**BASE | dict(hidden_size=32), use_qkv_bias=True,
                                          rope_parameters=PLAIN | {"partial_rotary_factor": 0.25}),
    "nemotron": lambda: tf.NemotronConfig(**BASE | dict(hidden_size=32), rope_parameters=PLAIN | {"partial_rotary_factor": 0.5}),
    "arcee": lambda: tf.ArceeConfig(**BASE, rope_parameters=YARN),
    "seed_oss": lambda: tf.SeedOssConfig(**BASE | HEAD, attention_bias=True, attention_out_bias=False),
    "ernie4_5": lambda: tf.Ernie4_5Config(**BASE | HEAD),
    "hunyuan": lambda: tf.HunYuanDenseV1Config(**BASE | HEAD | dict(max_position_embeddings=32768), rope_parameters={"rope_type": "dynamic", "alpha": 50.0, "factor": 1.0,
                                                                              "rope_theta": 10000.0}),
    "exaone4": lambda: tf.Exaone4Config(**BASE, sliding_window=6, layer_types=SLIDES),
    "llama-bias": lambda: tf.LlamaConfig(**BASE, attention_bias=True, mlp_bias=True, rope_parameters=PLAIN),
    "qwen2-yarn": lambda: tf.Qwen2Config(**BASE, rope_parameters=YARN),
    "gpt2": lambda: tf.GPT2Config(**GPT),
    "gpt_bigcode": lambda: tf.GPTBigCodeConfig(**GPT),
    "falcon": lambda: tf.FalconConfig(**FALCON),
    "falcon-new": lambda: tf.FalconConfig(**FALCON, new_decoder_architecture=True, num_kv_heads=2),
    "falcon-sequential": lambda: tf.FalconConfig(**FALCON, multi_query=False, parallel_attn=False, bias=True),
    "apertus": lambda: tf.ApertusConfig(**BASE, rope_parameters={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                                                 "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
                                                                 "rope_theta": 12000.0}),
    "ministral3": lambda: tf.Ministral3Config(**BASE | HEAD, rope_parameters=YARN | {
        "original_max_position_embeddings": 8, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        "llama_4_scaling_beta": 0.4}),
    "ministral": lambda: tf.MinistralConfig(**BASE | HEAD, sliding_window=9, layer_types=SLIDES, rope_parameters=PLAIN),
    "gpt_neox-sequential": lambda: tf.GPTNeoXConfig(
        **without(BASE, "num_key_value_heads") | dict(hidden_size=32), rotary_pct=0.25, use_parallel_residual=False,
        rope_parameters=PLAIN | {"partial_rotary_factor": 0.25}),
    "mixtral": lambda: tf.MixtralConfig(**BASE | SMALL, num_local_experts=6, num_experts_per_tok=2, rope_parameters=PLAIN),
    "qwen3_moe": lambda: tf.Qwen3MoeConfig(**BASE | FEW | HEAD, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=12,
                                           norm_topk_prob=True, rope_parameters=PLAIN),
    "qwen3_moe-odd": lambda: tf.Qwen3MoeConfig(  # with a layer that has none, which the converter doesn't know
        **BASE | FEW | HEAD, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=12, norm_topk_prob=False,
        mlp_only_layers=[1], rope_parameters=PLAIN),
    "qwen2_moe": lambda: tf.Qwen2MoeConfig(**BASE | FEW, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=12,
                                           shared_expert_intermediate_size=20, rope_parameters=PLAIN),
    "olmoe": lambda: tf.OlmoeConfig(**BASE | SMALL, num_experts=8, num_experts_per_tok=4, rope_parameters=PLAIN),
    "granitemoe": lambda: tf.GraniteMoeConfig(
        **BASE | SMALL, num_local_experts=6, num_experts_per_tok=3, embedding_multiplier=6.0, residual_multiplier=0.4,
        attention_multiplier=0.2, logits_scaling=3.0, rope_parameters=PLAIN),
    "gpt_oss": lambda: tf.GptOssConfig(
        **BASE | FEW | HEAD | dict(hidden_size=32, intermediate_size=32), num_local_experts=6, num_experts_per_tok=2,
        sliding_window=6,
        rope_parameters={"rope_type": "yarn", "rope_theta": 150000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
                         "truncate": False, "original_max_position_embeddings": 64}),
    "glm4_moe": lambda: tf.Glm4MoeConfig(
        **BASE | FEW | HEAD, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=12, n_shared_experts=2,
        routed_scaling_factor=2.5, first_k_dense_replace=1, use_qk_norm=True, attention_bias=True,
        rope_parameters=PLAIN | {"partial_rotary_factor": 0.5}, num_mtp_layers=0),
    "glm4_moe-groups": lambda: tf.Glm4MoeConfig(
        **BASE | FEW | HEAD, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=12, n_group=4, topk_group=2,
        norm_topk_prob=False, first_k_dense_replace=0, rope_parameters=PLAIN | {"partial_rotary_factor": 0.5},
        num_mtp_layers=0),
    "ernie4_5_moe": lambda: tf.Ernie4_5_MoeConfig(
        **BASE | FEW, moe_num_experts=6, moe_k=2, moe_intermediate_size=10, moe_num_shared_experts=2, rope_parameters=PLAIN),
}

EYE = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14)
FAMILIES |= {  # language parts of models that see, too
    "gemma3-eye": lambda: tf.Gemma3Config(text_config=FAMILIES["gemma3"]().to_dict(), vision_config=EYE, mm_tokens_per_image=4),
    "ministral3-eye": lambda: tf.Mistral3Config(text_config=FAMILIES["ministral3"]().to_dict(), tie_word_embeddings=False,
                                                vision_config=dict(model_type="pixtral", head_dim=8, **EYE)),
}
FAMILIES |= {
    "olmo3-yarn": lambda: tf.Olmo3Config(**BASE, sliding_window=6, rope_parameters={
        "full_attention": YARN | {"attention_factor": 1.3, "rope_theta": 500000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 500000.0}}),
    "cohere-silent": lambda: tf.CohereConfig(**BASE | dict(tie_word_embeddings=True)),
}
AS_SAID = {  # as files of before transformers 5 have it, or leave it to the architecture
    "olmo3-yarn": lambda c: without(c, "layer_types", "rope_parameters") | dict(
        rope_theta=500000.0, rope_scaling=without(c["rope_parameters"]["full_attention"], "rope_theta")),
    "cohere-silent": lambda c: without(c, "logit_scale", "rope_parameters", "layer_norm_eps", "hidden_act", "tie_word_embeddings",
                                       "use_qk_norm", "attention_bias"),
}

FAMILIES |= {
    "granitemoeshared": lambda: tf.GraniteMoeSharedConfig(
        **BASE | SMALL, num_local_experts=6, num_experts_per_tok=3, shared_intermediate_size=20, embedding_multiplier=6.0,
        residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=3.0, rope_parameters=PLAIN),
    "phimoe": lambda: tf.PhimoeConfig(**BASE | SMALL, num_local_experts=6, router_jitter_noise=0.2, rope_parameters=PLAIN),
    "phimoe-long": lambda: tf.PhimoeConfig(  # as Phi-3.5-MoE has it
        **BASE | SMALL, num_local_experts=6, attention_bias=True, lm_head_bias=True, sliding_window=9,
        rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.5, 2.0], "factor": 4.0,
                         "long_factor": [2.0, 3.0, 4.0], "original_max_position_embeddings": 64, "short_mscale": (1 + math.log(4) / math.log(64)) ** 0.5,
                         "long_mscale": 1.3}),
    "dbrx": lambda: tf.DbrxConfig(
        d_model=24, n_heads=4, n_layers=3, max_seq_len=64, vocab_size=N, bos_token_id=1, eos_token_id=2,
        rope_parameters=PLAIN | {"rope_theta": 5000.0}, attn_config=dict(kv_n_heads=2, clip_qkv=1.0, rope_theta=5000.0),
        ffn_config=dict(ffn_hidden_size=16, moe_num_experts=6, moe_top_k=3)),
    "bloom": lambda: tf.BloomConfig(vocab_size=N, hidden_size=24, n_layer=3, n_head=4, bos_token_id=1, eos_token_id=2),
    "mpt": lambda: tf.MptConfig(d_model=24, n_heads=6, n_layers=3, max_seq_len=64, vocab_size=N, bos_token_id=1, eos_token_id=2,
                                attn_config=dict(clip_qkv=1.5)),
    "falcon-alibi": lambda: tf.FalconConfig(  # falcon-rw; slopes that BF16 rounds
        **without(FALCON, "rope_parameters") | dict(num_attention_heads=16), alibi=True, multi_query=False, parallel_attn=False,
        bias=True),
    "olmo-clip": lambda: tf.OlmoConfig(**BASE, clip_qkv=0.8),
    "qwen2_moe-window": lambda: tf.Qwen2MoeConfig(  # its files do not contain which layers have one
        **BASE | FEW, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=12, shared_expert_intermediate_size=20,
        rope_parameters=PLAIN, use_sliding_window=True, sliding_window=6, max_window_layers=2),
    "mixtral-stacked": lambda: FAMILIES["mixtral"](),
    "phimoe-stacked": lambda: FAMILIES["phimoe"](),
    "granitemoeshared-stacked": lambda: FAMILIES["granitemoeshared"](),
}

DELTA = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=8, rms_norm_eps=1e-6)
QUARTER = PLAIN | {"partial_rotary_factor": 0.25}
SECTIONS = QUARTER | {"mrope_section": [1, 1, 0], "mrope_interleaved": True}
CHOSEN = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=12, shared_expert_intermediate_size=20)
FAMILIES |= {  # three of four layers are gated delta nets
    "qwen3_next": lambda: tf.Qwen3NextConfig(**BASE | HEAD | DELTA | CHOSEN, rope_parameters=QUARTER),
    "qwen3_next-odd": lambda: tf.Qwen3NextConfig(  # heads and layers that GGUF files cannot contain
        **BASE | HEAD | DELTA | CHOSEN | dict(linear_key_head_dim=6, linear_value_head_dim=20, linear_conv_kernel_dim=3),
        mlp_only_layers=[2], rope_parameters=QUARTER,
        layer_types=["full_attention", "linear_attention", "linear_attention", "full_attention"]),
    "qwen3_5": lambda: tf.Qwen3_5TextConfig(**BASE | HEAD | DELTA | dict(tie_word_embeddings=True), rope_parameters=SECTIONS),
    "qwen3_5_moe": lambda: tf.Qwen3_5MoeTextConfig(**without(BASE, "intermediate_size") | HEAD | DELTA | CHOSEN, rope_parameters=SECTIONS),
    "qwen3_5-eye": lambda: tf.Qwen3_5Config(text_config=FAMILIES["qwen3_5"]().to_dict(), tie_word_embeddings=True,
                                            vision_config=dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2,
                                                               out_hidden_size=24, patch_size=4, num_position_embeddings=16)),
}


GEMMA4 = BASE | dict(tie_word_embeddings=True, head_dim=8, global_head_dim=16, sliding_window=6, hidden_size_per_layer_input=0,
                     final_logit_softcapping=3.0)
FULL = ["sliding_attention", "full_attention"]
FAMILIES |= {
    "gemma4": lambda: tf.Gemma4TextConfig(**GEMMA4, num_global_key_value_heads=1, attention_k_eq_v=True,
                                          layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"]),
    "gemma4-inputs": lambda: tf.Gemma4TextConfig(  # E2B, E4B
        **GEMMA4 | dict(num_hidden_layers=6, hidden_size_per_layer_input=8), vocab_size_per_layer_input=N, num_kv_shared_layers=3,
        use_double_wide_mlp=True, layer_types=3 * FULL),
    "gemma4-moe": lambda: tf.Gemma4TextConfig(
        **GEMMA4 | FEW, num_global_key_value_heads=1, attention_k_eq_v=True, enable_moe_block=True, num_experts=6, top_k_experts=2,
        moe_intermediate_size=12, layer_types=FULL + FULL[1:]),
    "gemma4-eye": lambda: tf.Gemma4Config(text_config=FAMILIES["gemma4-inputs"]().to_dict() | dict(pad_token_id=0), vision_config=EYE | dict(
        num_key_value_heads=2, head_dim=8, global_head_dim=8), audio_config=None),
}


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64, "rope_theta": 10000.0}
FAMILIES |= {
    "gemma4_unified": lambda: tf.Gemma4UnifiedTextConfig(
        **without(GEMMA4, "hidden_size_per_layer_input"), num_global_key_value_heads=1, attention_k_eq_v=True, layer_types=2 * FULL),
    "vaultgemma": lambda: tf.VaultGemmaConfig(**BASE | HEAD | dict(tie_word_embeddings=True), sliding_window=6,
                                              query_pre_attn_scalar=8),
    "cwm": lambda: tf.CwmConfig(**BASE | HEAD, sliding_window=6, rope_parameters=LLAMA3),
    "glm": lambda: tf.GlmConfig(**BASE | HEAD, attention_bias=True, rope_parameters=PLAIN | {"partial_rotary_factor": 0.5}),
    "helium": lambda: tf.HeliumConfig(**BASE | dict(head_dim=6), rope_parameters=PLAIN),
    "internlm3": lambda: tf.InternLM3Config(**BASE | HEAD, rope_parameters=PLAIN),
    "iquestcoder": lambda: tf.IQuestCoderConfig(**BASE | HEAD, rope_parameters=PLAIN),
    "jais2": lambda: tf.Jais2Config(**BASE, rope_parameters=PLAIN),
    "hyperclovax": lambda: tf.HyperCLOVAXConfig(**BASE, embedding_multiplier=6.0, residual_multiplier=0.4,
                                                attention_multiplier=0.2, logits_scaling=0.3, rope_parameters=PLAIN),
    "flex_olmo": lambda: tf.FlexOlmoConfig(**BASE | SMALL, num_experts=6, num_experts_per_tok=3, rope_parameters=PLAIN),
    "dots1": lambda: tf.Dots1Config(
        **BASE | FEW | HEAD, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=12, n_shared_experts=2,
        routed_scaling_factor=2.5, norm_topk_prob=True, first_k_dense_replace=1, rope_parameters=PLAIN),
    "solar_open": lambda: tf.SolarOpenConfig(
        **without(BASE, "intermediate_size") | FEW | HEAD, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=12,
        rope_parameters=PLAIN),
}

LFM2 = dict(layer_types=["conv", "conv", "full_attention", "conv"], tie_word_embeddings=True, rope_parameters=PLAIN)
FAMILIES |= {  # short convolutions
    "lfm2": lambda: tf.Lfm2Config(**BASE | LFM2 | dict(intermediate_size=60, block_multiple_of=8)),
    "lfm2-odd": lambda: tf.Lfm2Config(  # a width and taps of its own
        **BASE | LFM2 | dict(hidden_size=30, num_attention_heads=5, num_key_value_heads=1, conv_L_cache=4, tie_word_embeddings=False,
                             block_auto_adjust_ff_dim=False)),
}
FAMILIES["lfm2_moe"] = lambda: tf.Lfm2MoeConfig(
    **BASE | LFM2, num_dense_layers=1, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=12)
MAMBA = BASE | dict(mamba_n_heads=6, mamba_d_state=16, mamba_n_groups=1, hidden_size=24, shared_intermediate_size=40, embedding_multiplier=6.0,
                    residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=3.0, rope_parameters=PLAIN, rms_norm_eps=1e-5,
                    layer_types=["linear_attention", "full_attention", "linear_attention", "linear_attention"])
FAMILIES |= {  # Mamba-2
    "granitehybrid": lambda: tf.GraniteMoeHybridConfig(**MAMBA, num_local_experts=0),
    "granitehybrid-moe": lambda: tf.GraniteMoeHybridConfig(
        **MAMBA | dict(intermediate_size=16, shared_intermediate_size=20), num_local_experts=6, num_experts_per_tok=3),
    "granitehybrid-odd": lambda: tf.GraniteMoeHybridConfig(  # what GGUF files cannot contain
        **MAMBA | dict(mamba_n_groups=2, mamba_d_state=6, mamba_d_conv=3), num_local_experts=0, time_step_limit=(0.3, 1.0), mamba_expand=3,
        mamba_conv_bias=False, position_embedding_type="rope"),
}
FAMILIES["olmo_hybrid"] = lambda: tf.OlmoHybridConfig(
    **BASE, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=6, linear_value_head_dim=10, rms_norm_eps=0.1)
FAMILIES["bamba"] = lambda: tf.BambaConfig(
    **BASE | dict(hidden_size=32), mamba_n_heads=4, mamba_d_state=12, mamba_n_groups=2, attn_layer_indices=[1], mlp_bias=True)
AS_SAID |= dict.fromkeys(("granitehybrid", "granitehybrid-moe"), lambda c: c | dict(
    layer_types=["mamba", "attention", "mamba", "mamba"], position_embedding_type="nope"))
AS_SAID["lfm2-odd"] = lambda c: without(c, "layer_types") | dict(full_attn_idxs=[2])


def experts(config):
    """What computes them in double precision, too."""
    mixes = hasattr(config, "num_experts_per_tok") or hasattr(config, "moe_k") or getattr(config, "enable_moe_block", False)
    return dict(experts_implementation="eager") if mixes else {}


def kind_of(config):
    return tf.AutoModelForImageTextToText if hasattr(config, "vision_config") else tf.AutoModelForCausalLM


def attention(config):
    """What adds Falcon's biases once: the eager one adds them twice."""
    return "sdpa" if getattr(config, "alibi", False) else "eager"


def new_model(config):
    return kind_of(config).from_config(config, attn_implementation=attention(config), **experts(config))


def language(model):
    return getattr(model.base_model, "language_model", model.base_model)


def parts(model):
    """Returns the final norm and the head, whose names depend on the family."""
    base = language(model)
    names = ("norm", "embedding_norm", "final_layernorm", "final_layer_norm", "ln_f", "norm_f")
    norm = next(getattr(base, n) for n in names if hasattr(base, n))
    return norm, model.get_output_embeddings()


def write_logits(name, model):
    with torch.no_grad():
        kept = []
        layers = next(getattr(language(model), n) for n in ("layers", "h", "blocks") if hasattr(language(model), n))
        layer = layers[0].register_forward_hook(
            lambda module, inputs, output: kept.append(output[0] if isinstance(output, tuple) else output))
        logits = model(torch.tensor([PATH])).logits[0]
        layer.remove()
        norm, head = parts(model)
        lines = [f"# made by make_families_golden.py: {name}", "tokens " + " ".join(map(str, PATH))]
        for position, depth in ROWS:
            if depth is None:
                z = logits[position]
            else:
                z = head(norm(kept[0][0, position]))
                c = model.config.get_text_config()
                if name.startswith("granite"):
                    z = z / c.logits_scaling
                if name == "hyperclovax":
                    z = z * c.logits_scaling
                if name.startswith("cohere"):
                    z = z * c.logit_scale
                if getattr(c, "final_logit_softcapping", None):
                    z = torch.tanh(z / c.final_logit_softcapping) * c.final_logit_softcapping
            lines += [f"row {position} {depth or model.config.get_text_config().num_hidden_layers}"] + ["%.7g" % v for v in z]
    lines += greedy_lines(model)
    (OUT / f"{name}.txt").write_text("\n".join(lines) + "\n")


def as_published(file, config):
    """OLMo hybrid's names. transformers cuts the convolution into three equal parts, which q, k and v are not."""
    keys = config.linear_num_key_heads * config.linear_key_head_dim
    tensors = load_file(file)
    for name in [n for n in tensors if n.endswith("linear_attn.conv1d.weight")]:
        layer, conv = name.removesuffix("linear_attn.conv1d.weight"), tensors.pop(name)
        for part, values in zip("qkv", (conv[:keys], conv[keys:2 * keys], conv[2 * keys:])):
            tensors[f"{layer}linear_attn.{part}_conv1d.weight"] = values.contiguous()
        tensors[layer + "attention_layer_norm.weight"] = tensors.pop(layer + "input_layernorm.weight")
        tensors[layer + "feedforward_layer_norm.weight"] = tensors.pop(layer + "post_attention_layernorm.weight")
    save_file(tensors, file, {"format": "pt"})


def make(name, seed):
    config = FAMILIES[name]()
    model = new_model(config).float()
    randomise(model, seed)
    with torch.no_grad():  # norms that add a 1 themselves
        for key, p in model.named_parameters():
            less_one = name.startswith(("gemma", "nemotron", "vaultgemma", "qwen3_next", "qwen3_5")) and not name.startswith("gemma4")
            if "norm" in key and less_one and key.endswith("weight") and not key.endswith("linear_attn.norm.weight"):
                p.sub_(1)
            if key.endswith("A_log"):  # states that last
                p.sub_(2)
        for key, p in model.named_buffers():
            if key.endswith(("correction_bias", "expert_bias")):
                p.copy_(0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(seed)))
            if key.endswith("layer_scalar"):
                p.copy_(1 - 0.4 * torch.rand(p.shape, generator=torch.Generator().manual_seed(seed + len(key))))
    model = model.half()
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, save_original_format=not name.endswith(("-stacked", "olmo_hybrid")))
    if name == "olmo_hybrid":
        as_published(folder / "model.safetensors", config)
    for file in folder.iterdir():
        file.chmod(0o644)
    text = json.loads((folder / "config.json").read_text())
    if name.startswith("gpt_neox"):  # as in its files; transformers 5 no longer writes it
        (folder / "config.json").write_text(json.dumps(text | {"rotary_pct": 0.25}, indent=2))
    if name == "qwen2_moe-window":
        (folder / "config.json").write_text(json.dumps(without(text, "layer_types"), indent=2))
    if name == "dbrx":  # as in its files
        (folder / "config.json").write_text(json.dumps(without(text, "rope_parameters"), indent=2))
    if name == "falcon":  # absent from its files
        (folder / "config.json").write_text(json.dumps(without(text, "num_kv_heads"), indent=2))
    if name in AS_SAID:
        (folder / "config.json").write_text(json.dumps(AS_SAID[name](text), indent=2))
    share(folder)
    write_text(name, model.state_dict())


def write_text(name, weights):
    model = new_model(FAMILIES[name]()).double().eval()  # a config that has no dtype yet: Gemma's scale is rounded to that
    model.load_state_dict({k: v.double() for k, v in weights.items()})
    write_logits(name, model)


def rewrite_text(name):
    """Writes the golden values of the existing folder."""
    config = FAMILIES[name]()
    write_text(name, kind_of(config).from_pretrained(OUT / name, config=config, dtype=torch.float16).state_dict())


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    texts = "--texts" in sys.argv
    names = [a for a in sys.argv[1:] if a != "--texts"]
    for i, family in enumerate(FAMILIES):
        if not names or family in names:
            print(family)
            rewrite_text(family) if texts else make(family, 40 + i)
