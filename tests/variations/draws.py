"""Random variations of a folder: other contents of config.json and other layouts of tensors.

A variation is a list of edits, each a list that can be written as JSON: ["set", KEY, VALUE], ["drop", KEY], ["late", KEY, VALUE] (when the tensors are made), ["rope", {…}],
["local-rope", {…}], ["old-rope"], ["type"] (rope_type by its first name), ["tensors", WHAT, …]. A list with one
edit less is a variation, too, so a failure can be reduced.
"""

ACTIVATIONS = ["silu", "swish", "gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "relu", "relu2", "quick_gelu"]
SWITCH = [True, False]
KEYS = {  # by a configuration's entry; None is null
    "tie_word_embeddings": SWITCH, "attention_bias": SWITCH, "mlp_bias": SWITCH, "attention_out_bias": SWITCH,
    "use_qkv_bias": SWITCH, "qkv_bias": SWITCH, "use_bias": SWITCH, "bias": SWITCH, "lm_head_bias": SWITCH,
    "hidden_act": ACTIVATIONS, "hidden_activation": ACTIVATIONS + [None], "activation_function": ACTIVATIONS,
    "activation": ACTIVATIONS,
    "sliding_window": [4, 9, 64, None], "use_sliding_window": SWITCH, "max_window_layers": [0, 1, 2, 8],
    "layer_types": ["layers"], "sliding_window_pattern": [1, 2, 3, "LLLG"], "no_rope_layers": ["switches"],
    "no_rope_layer_interval": [2, 3], "_sliding_window_pattern": [2, 3],
    "partial_rotary_factor": [0.25, 0.5, 0.75, 1.0], "rotary_pct": [0.25, 0.5, 1.0], "rotary_emb_base": [500.0],
    "rope_theta": [100.0, 500000.0], "rope_local_base_freq": [100.0, 10000.0], "rope_interleaved": SWITCH,
    "default_theta": [100.0],
    "final_logit_softcapping": [None, 2.0], "attn_logit_softcapping": [None, 1.0], "query_pre_attn_scalar": [4, 100],
    "embedding_multiplier": [0.5, 4.0, 1], "residual_multiplier": [0.3, 1.0], "attention_multiplier": [0.1, 1.0],
    "logits_scaling": [0.5, 4], "logit_scale": [0.1, 2.0], "scale_emb": [12], "scale_depth": [1.4], "mup_enabled": [True],
    "norm_topk_prob": SWITCH, "num_experts_per_tok": [1, 2, 4], "moe_k": [1, 3], "scoring_func": ["softmax", "sigmoid"],
    "topk_method": ["noaux_tc", "greedy"], "routed_scaling_factor": [1.0, 2.5, 0.5], "n_group": [1, 2], "topk_group": [1, 2],
    "first_k_dense_replace": [0, 1, 2], "mlp_only_layers": [[], [0], [1, 2]], "decoder_sparse_step": [1, 2],
    "moe_layer_start_index": [0, 1], "moe_layer_end_index": [-1, 1, 2], "moe_layer_interval": [1, 2],
    "n_shared_experts": [1, 2], "moe_num_shared_experts": [0, 1, 2], "num_local_experts": [4], "num_experts": [4, 8],
    "moe_norm_min": [1e-12, 0.9], "router_jitter_noise": [0.1], "swiglu_limit": [7.0, 3.0], "swiglu_alpha": [1.702],
    "use_parallel_residual": SWITCH, "parallel_attn": SWITCH, "multi_query": SWITCH,
    "new_decoder_architecture": SWITCH, "num_ln_in_parallel_attn": [1, 2, None], "num_kv_heads": [1, 2, 4],
    "use_qk_norm": SWITCH, "qk_layernorm": SWITCH, "clip_qkv": [None, 0.5], "alibi": [False],
    "scale_attn_weights": SWITCH, "scale_attn_by_inverse_layer_idx": SWITCH, "reorder_and_upcast_attn": SWITCH,
    "scale_attention_softmax_in_fp32": SWITCH, "attention_softmax_in_fp32": SWITCH,
    "dtype": ["float32", "bfloat16", "float16"], "torch_dtype": ["float32", "bfloat16"],
    "pretraining_tp": [1, 2], "use_cache": [False], "use_bidirectional_attention": [True, False],
    "n_inner": [None, 48], "head_dim": [4, 8, 16, None], "num_key_value_heads": [1, 2, 4, None],
    "max_position_embeddings": [16, 64, 4096], "original_max_position_embeddings": [8, 64],
    "rms_norm_eps": [1e-2, 1e-5], "layer_norm_eps": [1e-2, 1e-5], "layer_norm_epsilon": [1e-2], "norm_eps": [1e-2],
    "norm_epsilon": [1e-2], "layernorm_epsilon": [1e-2], "attention_dropout": [0.1], "output_router_logits": [True],
    "rope_scaling": [None], "llama_4_scaling": [None], "bos_token_id": [5], "attn_temperature_tuning": [True],
    "cache_implementation": ["hybrid"], "is_decoder": SWITCH, "add_cross_attention": [False],
}
LATE = {  # tensors in the file beyond the configuration
    "attention_bias": SWITCH, "mlp_bias": SWITCH, "use_bias": SWITCH, "bias": SWITCH, "qkv_bias": SWITCH, "use_qkv_bias": SWITCH,
    "attention_out_bias": SWITCH, "use_qk_norm": SWITCH, "num_hidden_layers": [2], "mlp_only_layers": [[0], []],
    "first_k_dense_replace": [0, 2], "decoder_sparse_step": [2], "tie_word_embeddings": SWITCH, "norm_topk_prob": SWITCH,
    "n_shared_experts": [0, 1], "num_nextn_predict_layers": [0, 1], "qk_layernorm": [False], "vocab_size": [280],
    "num_experts_per_tok": [1], "moe_layer_start_index": [2], "lm_head_bias": SWITCH, "parallel_attn": SWITCH,
}
SIZES = {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "n_embd", "n_layer",
         "n_head", "n_positions", "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "model_type",
         "moe_intermediate_size", "shared_expert_intermediate_size", "architectures", "text_config", "vision_config",
         "rope_parameters", "mm_tokens_per_image", "num_key_value_heads", "num_kv_heads"}


def factors(rng, n):
    return [round(rng.uniform(1, 4), 2) for _ in range(n)]


def rope(rng, dims):
    """Returns the contents of rope_parameters or rope_scaling."""
    kind = rng.choice(["default", "linear", "dynamic", "yarn", "yarn", "yarn", "longrope", "longrope", "llama3", "llama3",
                       rng.choice(["proportional", "mrope", "su"]), "dynamic"])
    old = rng.choice([8, 16, 64])
    r = {"rope_type": kind}
    if kind in ("linear", "dynamic", "yarn", "llama3", "proportional"):
        r["factor"] = rng.choice([2.0, 4.0, 4, 1.0, 8.0])
    if kind in ("yarn", "llama3", "longrope", "su") and rng.random() < 0.8:
        r["original_max_position_embeddings"] = old
    if kind == "yarn":
        for key, values in (("attention_factor", [1.3, 1.0, None]), ("beta_fast", [32.0, 4.0, 16, None]), ("beta_slow", [1.0, 0.5, 2, None]),
                            ("mscale", [1.0, 0.7, 0, None]), ("mscale_all_dim", [1.0, 0.5, 0, None]), ("truncate", SWITCH),
                            ("factor", [None])):
            if rng.random() < (0.1 if key == "factor" else 0.35):
                r[key] = rng.choice(values)
    if kind in ("longrope", "su"):
        r["short_factor"], r["long_factor"] = factors(rng, dims // 2), factors(rng, dims // 2)
        for key, values in (("attention_factor", [1.3, None]), ("factor", [4.0, 32.0, None]), ("short_mscale", [1.2]), ("long_mscale", [1.3])):
            if rng.random() < 0.3:
                r[key] = rng.choice(values)
    if kind == "llama3":
        r["low_freq_factor"], r["high_freq_factor"] = rng.choice([(1.0, 4.0), (1, 2), (0.5, 8.0)])
    if kind == "mrope":
        r["mrope_section"] = [1, 1, dims // 2 - 2]
    if kind == "dynamic" and rng.random() < 0.4:
        r["alpha"] = rng.choice([50.0, 1000.0, 1.0])
    if rng.random() < 0.5:
        r["rope_theta"] = rng.choice([10000.0, 1000.0, 500000])
    if rng.random() < 0.1:
        r["partial_rotary_factor"] = rng.choice([0.5, 1.0])
    return r


def value(rng, key, layers):
    v = rng.choice(KEYS[key])
    if v == "layers":
        n = layers if rng.random() < 0.9 else layers + 1
        return [rng.choice(["sliding_attention", "full_attention"]) for _ in range(n)]
    return [rng.choice([0, 1]) for _ in range(layers)] if v == "switches" else v


def of_tensors(rng):
    what = rng.choice(["own-head", "own-head", "same-head", "no-head", "type", "type", "shards", "bare", "prefix", "extra", "quiet",
                       "stacked", "wide-vocabulary", "narrow-vocabulary", "newer-names"])
    if what == "type":
        return ["tensors", what, rng.choice(["bfloat16", "float16", "mixed"])]
    if what == "extra":
        return ["tensors", what, rng.choice(["inv_freq", "attn.bias", "attn.masked_bias", "odd", "attention.bias",
                                             "position_ids"])]
    if what == "prefix":
        return ["tensors", what, rng.choice(["transformer.", "language_model.", "model.language_model.", "model."])]
    return ["tensors", what]


def draw(rng, config, dims):
    """Edits of a configuration; dims: of a head that turn."""
    edits = []
    text = config.get("text_config", config)
    layers = text.get("num_hidden_layers", text.get("n_layer", 4))
    known = sorted(k for k in text if k in KEYS)
    droppable = sorted(k for k in text if k not in SIZES)
    style = rng.random()
    if style < 0.15:  # next to nothing
        edits += [["drop", k] for k in droppable]
    elif style < 0.45:
        edits += [["drop", k] for k in droppable if rng.random() < 0.5]
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        key = rng.choice(known) if rng.random() < 0.75 else rng.choice(sorted(KEYS))
        edits.append(["set", key, value(rng, key, layers)])
    if rng.random() < 0.1:
        edits.append(["set", rng.choice(droppable), None])
    if rng.random() < 0.5:
        edits.append(["rope", rope(rng, dims)])
    elif rng.random() < 0.15:
        edits.append(["drop", "rope_parameters"])
    if rng.random() < 0.2:
        edits.append(["local-rope", rope(rng, dims)])
    if rng.random() < 0.6:
        edits.append(["old-rope"])
        if rng.random() < 0.4:
            edits.append(["type"])
        if rng.random() < 0.1:
            edits.append(["set", "rope_parameters", rope(rng, dims)])
    if rng.random() < 0.15:
        key = rng.choice(sorted(k for k in LATE if k in text))
        edits.append(["late", key, rng.choice(LATE[key])])
    if rng.random() < 0.1 and "use_sliding_window" in text:
        edits += [["set", "use_sliding_window", True], ["set", "sliding_window", 4], ["drop", "layer_types"],
                  ["set", "max_window_layers", rng.choice([0, 2])]]
    edits.append(["tensors", "quiet"])
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        edits.append(of_tensors(rng))
    if "text_config" in config and rng.random() < 0.3:
        key = rng.choice(known + ["vocab_size", "rope_theta", "tie_word_embeddings"])
        edits.append(["outer", key, value(rng, key, layers) if key in KEYS else 288])
    return edits


def move_rope(c, first_name):
    """As configurations had it before transformers 5."""
    r = c.pop("rope_parameters", None)
    if not isinstance(r, dict):
        return
    if "full_attention" in r or "sliding_attention" in r:
        local = r.get("sliding_attention") or {}
        if "rope_theta" in local:
            c["rope_local_base_freq"] = local["rope_theta"]
        r = r.get("full_attention") or {}
    r = dict(r)
    for key in ("rope_theta", "partial_rotary_factor"):
        if key in r:
            c[key] = r.pop(key)
    if first_name:
        r["type"] = r.pop("rope_type", "default")
    c["rope_scaling"] = None if r.get("rope_type", r.get("type")) == "default" else r


def apply(config, edits):
    """The configuration as edited. Edits of tensors are none of it."""
    whole = dict(config)
    c = whole
    if "text_config" in whole:
        c = whole["text_config"] = dict(whole["text_config"])
    late = [e for e in edits if e[0] == "set" and e[1] in ("rope_parameters", "rope_scaling")]
    for e in edits:
        if e[0] == "drop":
            c.pop(e[1], None)
    for e in edits:
        if e[0] == "set" and e not in late:
            c[e[1]] = e[2]
        elif e[0] == "rope":
            local = (c.get("rope_parameters") or {}).get("sliding_attention")
            c["rope_parameters"] = e[1] if local is None else {"full_attention": e[1], "sliding_attention": local}
        elif e[0] == "local-rope":
            r = c.get("rope_parameters") or {}
            c["rope_parameters"] = {"full_attention": r.get("full_attention", r), "sliding_attention": e[1]}
        elif e[0] == "outer":
            whole[e[1]] = e[2]
    if ["old-rope"] in edits:
        move_rope(c, ["type"] in edits)
    for e in late:
        c[e[1]] = e[2]
    return whole
