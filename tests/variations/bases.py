"""The families that are varied: their configurations as JSON would have them, and how many dimensions of a head turn."""
import transformers as tf

from make_families_golden import BASE, EYE, FAMILIES, HEAD, PLAIN

MORE = {
    "llama": lambda: tf.LlamaConfig(**BASE, rope_parameters=PLAIN),
    "mistral": lambda: tf.MistralConfig(**BASE, rope_parameters=PLAIN, sliding_window=9),
    "qwen2": lambda: tf.Qwen2Config(**BASE, rope_parameters=PLAIN),
    "qwen3": lambda: tf.Qwen3Config(**BASE | HEAD, rope_parameters=PLAIN),
}


def base(make):
    def made():
        config = make()
        text = config.get_text_config()
        c = config.to_dict()
        for unwanted in ("transformers_version", "_name_or_path"):
            c.pop(unwanted, None)
        (c.get("attn_config") or {}).pop("rope_theta", None)  # DBRX's, which transformers doesn't read (folders.py)
        dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        r = text.to_dict().get("rope_parameters") or {}
        part = r.get("full_attention", r).get("partial_rotary_factor") or 1
        return c, int(dim * part)
    return made


BASES = {name: base(make) for name, make in (FAMILIES | MORE).items()}
