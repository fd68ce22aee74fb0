"""Parts of GGUF files that several scripts write: those in this folder, in tests/golden, tests/fuzz and tests/bench."""
from gguf import GGMLQuantizationType, TokenType
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
