"""A folder as GGUF, by llama.cpp's own converter; only the vocabulary is ours, which it would not take for the family's."""
import importlib
import os
import pathlib
import sys

from make_models_golden import MERGES, PIECES, VOCAB


class Converter:
    def __init__(self, llama):
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
