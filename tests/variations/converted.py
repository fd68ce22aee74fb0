"""A folder as GGUF, by llama.cpp's own converter; only the vocabulary is ours, which it would not take for the family's."""
import importlib
import os
import pathlib
import sys

from make_models_golden import MERGES, PIECES, VOCAB


TANH = ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh")  # what llama.cpp knows of GELU
USUAL_ACTIVATIONS = dict.fromkeys(("gemma", "gemma2", "gemma3_text", "starcoder2", "phi", "gpt2", "gpt_bigcode", "gpt_neox"), TANH) | {
    "nemotron": ("relu2",), "arcee": ("relu2",), "apertus": ("xielu",)}


class Converter:
    def __init__(self, llama):
        for name in [m for m in sys.modules if m.split(".")[0] == "gguf"]:  # its own counts
            del sys.modules[name]
        sys.path[:0] = [str(llama), str(pathlib.Path(llama) / "gguf-py")]
        self.module = importlib.import_module("convert_hf_to_gguf")
        self.gguf = importlib.import_module("gguf")

    def set_vocab(self, model):
        w, kind = model.gguf_writer, self.gguf.TokenType
        merged = {a + b: -float(i) for i, (a, b) in enumerate(MERGES)}
        more = [f"<more{i}>" for i in range(model.hparams.get("vocab_size", len(VOCAB)) - len(VOCAB))]
        w.add_tokenizer_model("llama")
        w.add_token_list(VOCAB + more)
        w.add_token_scores([merged.get(t, -1000.0) for t in VOCAB + more])
        w.add_token_types([kind.UNKNOWN, kind.CONTROL, kind.CONTROL] + [kind.BYTE] * 256 + [kind.NORMAL] * (len(PIECES) + len(more)))
        w.add_bos_token_id(1)
        w.add_eos_token_id(2)

    def convert(self, folder, out):
        """True: it is there. In a process of its own, for the converter keeps things for itself."""
        out.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                original = self.module.get_model_class

                def chosen(*args, **kwargs):
                    kind = original(*args, **kwargs)
                    kind.set_vocab = self.set_vocab_of()
                    return kind

                self.module.get_model_class = chosen
                sys.argv[1:] = [str(folder), "--outfile", str(out), "--outtype", "f32"]
                self.module.main()
                os._exit(0)
            except BaseException:
                os._exit(1)
        return os.waitpid(pid, 0)[1] == 0 and out.exists()

    def set_vocab_of(self):
        return lambda model: self.set_vocab(model)

    def unsaid(self, out, config):
        """What of the configuration the file has no word for, or the converter none; or None."""
        file = self.gguf.GGUFReader(out)
        tensors = {t.name for t in file.tensors}
        said = {k.split(".", 1)[1]: f.contents() for k, f in file.fields.items() if "." in k}
        text = config.get("text_config", config)
        rope = text.get("rope_scaling") or text.get("rope_parameters") or {}
        rope = rope.get("full_attention") or rope
        kind = rope.get("rope_type", rope.get("type", "default"))
        needs = {"llama3": "rope_freqs.weight", "longrope": "rope_factors_short.weight"}
        if kind in needs and needs[kind] not in tensors:
            return f"RoPE as {kind} has it"
        if kind in ("linear", "yarn", "dynamic") and said.get("rope.scaling.type", "dynamic") != kind:
            return f"RoPE's {kind} scaling"
        for key in ("truncate", "mscale", "mscale_all_dim", "factor"):
            if kind == "yarn" and key in rope and (key != "factor" or rope[key] is None):
                return f"YaRN's {key}"
        window = text.get("sliding_window")
        if window and text.get("use_sliding_window", True) and "attention.sliding_window" not in said:
            return "a window"
        if window and text.get("layer_types") and "attention.sliding_window_pattern" not in said:
            return "which layers have a window"
        act = text.get("hidden_act") or text.get("hidden_activation") or text.get("activation_function")
        if act and act not in USUAL_ACTIVATIONS.get(text["model_type"], ("silu", "swish")):
            return f"the activation {act}"
        if "query_pre_attn_scalar" in text and text["query_pre_attn_scalar"] != text.get("head_dim"):
            return "scores scaled otherwise than by a head's dimensions"
        return None
