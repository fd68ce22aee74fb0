"""Parts of GGUF files that several scripts write: those in this folder, in tests/golden, tests/fuzz and tests/bench."""
import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import quantize

UNKNOWN, CONTROL, USER = TokenType.UNKNOWN, TokenType.CONTROL, TokenType.USER_DEFINED
BYTE, NORMAL = TokenType.BYTE, TokenType.NORMAL


def add_sizes(w, layers, context, width, ffn, heads, kv_heads, eps):
    w.add_block_count(layers)
    w.add_context_length(context)
    w.add_embedding_length(width)
    w.add_feed_forward_length(ffn)
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_layer_norm_rms_eps(eps)


def add_pieces(w, tokens, scores):
    """Adds a SentencePiece vocabulary: <unk>, <s>, </s>, the 256 bytes, and other pieces."""
    w.add_tokenizer_model("llama")
    w.add_token_list(tokens)
    w.add_token_scores(scores)
    w.add_token_types([UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * (len(tokens) - 259))
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)


def add_quantised(w, name, value, kind=GGMLQuantizationType.Q8_0):
    """Adds a matrix of F32 numbers in a quantised type."""
    w.add_tensor(name, quantize(value, kind), raw_dtype=kind)


def finish(w, tensors=True):
    """Writes the file and closes it; tensors=False: a file with only a vocabulary."""
    w.write_header_to_file()
    w.write_kv_data_to_file()
    if tensors:
        w.write_tensors_to_file()
    w.close()


# Names of a block drafter's tensors in folders of z-lab, DeepSpec and speculators, and in GGUF files of llama.cpp.
BLOCK = {"embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight", "norm.weight": "output_norm.weight",
         "fc.weight": "fc.weight", "hidden_norm.weight": "enc.output_norm.weight", "markov_head.markov_w1.weight": "markov_w1.weight",
         "markov_head.markov_w2.weight": "markov_w2.weight", "confidence_head.proj.weight": "conf_proj.weight",
         "confidence_head.proj.bias": "conf_proj.bias", "d2t": "d2t"}
BLOCK_LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
               "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
               "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def block_name(name):
    if name in BLOCK:
        return BLOCK[name]
    _, layer, stem = name.removesuffix(".weight").split(".", 2)
    return f"blk.{layer}.{BLOCK_LAYER[stem]}.weight"


def write_block_drafter(path, c, tensors, add_vocabulary, kind=GGMLQuantizationType.F16, name=None):
    """Writes a DFlash or DSpark drafter as llama.cpp reads it (architecture dflash).

    c: layers, context, width, ffn, heads, kv_heads, head_dim, eps, rope_base, block, mask, target_layers (the stream after so many
    layers of the target, from 0), and maybe causal, window (or None), windows (a switch for each layer) and from_anchor, which is
    written if there is a Markov head or if it is set. tensors: arrays by the names of DeepSpec's folders. A head and an embedding that
    are the target's are left out; d2t has the distances of ids, as in folders. add_vocabulary(writer) adds the target's tokenizer.
    Matrices are written as `kind`, others as F32."""
    w = GGUFWriter(path, "dflash")
    if name:
        w.add_name(name)
    add_sizes(w, c["layers"], c["context"], c["width"], c["ffn"], c["heads"], c["kv_heads"], c["eps"])
    w.add_key_length(c["head_dim"])
    w.add_value_length(c["head_dim"])
    w.add_rope_freq_base(c["rope_base"])
    w.add_rope_dimension_count(c["head_dim"])
    w.add_uint32("dflash.block_size", c["block"])
    w.add_array("dflash.target_layers", c["target_layers"])
    if c.get("causal") is not None:
        w.add_bool("dflash.attention.causal", c["causal"])
    if c.get("window"):
        w.add_sliding_window(c["window"])
        w.add_array("dflash.attention.sliding_window_pattern", [bool(x) for x in c["windows"]])
    markov = "markov_head.markov_w1.weight" in tensors
    if markov or c.get("from_anchor"):
        w.add_bool("dflash.sample_from_anchor", bool(c.get("from_anchor", markov)))
        w.add_bool("dflash.has_confidence_head", "confidence_head.proj.weight" in tensors)
    add_vocabulary(w)
    w.add_uint32("tokenizer.ggml.mask_token_id", c["mask"])
    for key, value in tensors.items():
        x = np.asarray(value)
        if key == "d2t":
            w.add_tensor("d2t", x.astype(np.int64) + np.arange(len(x)), raw_dtype=GGMLQuantizationType.I64)
            continue
        x = x.astype(np.float32)
        if key == "confidence_head.proj.weight" and markov:  # llama.cpp wants the Markov head's part, too
            x = np.pad(x, ((0, 0), (0, c["width"] + tensors["markov_head.markov_w1.weight"].shape[1] - x.shape[1])))
        if x.ndim < 2 or key.startswith("confidence_head."):
            w.add_tensor(block_name(key), x)
        else:
            add_quantised(w, block_name(key), x, kind)
    finish(w)
