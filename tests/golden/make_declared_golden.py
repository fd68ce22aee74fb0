#!/usr/bin/env python3
"""Golden ids and texts of tokenizers whose special tokens are declared by several files, and of decoders, from transformers.

    python3 -m venv venv && venv/bin/pip install transformers==5.24.0 tokenizers==0.23.3
    venv/bin/python tests/golden/make_declared_golden.py > tests/golden/declared.json

A case is the name of a tokenizer.json, which `tokenizers` contains, with `model` and `change` replacing some of its members; the files
beside it; texts; their ids, without and with BOS and EOS; BOS and EOS; where `decoded` is there, the texts that the ids are decoded to
without special tokens. It is absent where the program differs: it decodes bytes that are added tokens, and removes a space that ByteLevel
has added. `size` is absent for classes of transformers that add tokens of their own, which no file declares.
"""
import json
import os
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
from transformers import AutoTokenizer


def letters_of_bytes():
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in own}
    for b in range(256):
        letters.setdefault(b, chr(256 + len(letters) - len(own)))
    return [letters[b] for b in range(256)]


def added(id, content, special=True, **flags):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": not special,
            "special": special, **flags}


def declared(content, special=True, **flags):
    token = added(0, content, special, **flags)
    del token["id"]
    return token


def byte_level(prefix):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}


def template(first, last, vocabulary):
    """A post-processor that adds <s> in front or </s> at the end."""
    token = lambda text: {"SpecialToken": {"id": text, "type_id": 0}}
    single = [token("<s>")] * first + [{"Sequence": {"id": "A", "type_id": 0}}] + [token("</s>")] * last
    used = ["<s>"] * first + ["</s>"] * last
    return {"type": "TemplateProcessing", "single": single, "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t: {"id": t, "ids": [vocabulary[t]], "tokens": [t]} for t in used}}


def bytes_tokenizer():
    """Byte-level BPE, with unused tokens in the vocabulary, some of which a text can contain."""
    texts = letters_of_bytes() + ["he", "ll", "hell", "hello", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "[INST]"]
    vocabulary = {text: i for i, text in enumerate(texts)}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(vocabulary[t], t) for t in ("<s>", "</s>")],
            "normalizer": None, "pre_tokenizer": byte_level(False), "post_processor": template(1, 0, vocabulary),
            "decoder": byte_level(True),
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary, "merges": ["h e", "l l", "he ll", "hell o"]}}


PIECES = ["\u2581", "h", "e", "l", "o", "he", "ll", "hell", "hello", "\u2581hello", "a", "b", "[INST]", "\u2581\u2581"]
STEPS = [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
         {"type": "Strip", "content": " ", "start": 1, "stop": 0}]


def pieces_tokenizer():
    """SentencePiece's BPE as transformers saved it for Llama 2."""
    texts = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)] + PIECES
    vocabulary = {text: i for i, text in enumerate(texts)}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(vocabulary[t], t) for t in ("<unk>", "<s>", "</s>")],
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {
                "type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
            "pre_tokenizer": None, "post_processor": template(1, 0, vocabulary), "decoder": {"type": "Sequence", "decoders": STEPS},
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "vocab": vocabulary,
                      "merges": ["h e", "l l", "he ll", "hell o", "\u2581 hello", "\u2581 \u2581"]}}


def unigram_tokenizer():
    value = pieces_tokenizer()
    value["model"] = {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
                      "vocab": [[text, -float(i % 7 + 1)] for text, i in value["model"]["vocab"].items()]}
    value["post_processor"] = None
    return value


TOKENIZERS = {"bytes": bytes_tokenizer(), "pieces": pieces_tokenizer(), "unigram": unigram_tokenizer()}
BYTES = TOKENIZERS["bytes"]["model"]["vocab"]
PIECE = TOKENIZERS["pieces"]["model"]["vocab"]
CHAT = "<|im_start|>hello <|im_end|>\n<tool>he</tool> <|im_start|> hell[INST]hello"
TEXTS = ["hello", CHAT, " hello  <s> hello</s>", "x<|new|>y <pad> <img> z", "<|endoftext|><|im_end|>"]


def case(name, tokenizer="bytes", config=None, texts=TEXTS, change=None, model_type="llama", without=(), **files):
    return {"name": name, "without": without, "tokenizer": tokenizer, "change": change or {}, "config": {"tokenizer_class": "PreTrainedTokenizerFast", **(config or {})},
            "files": files, "texts": texts, "model_type": model_type}


def decoder(*steps):
    return {"decoder": {"type": "Sequence", "decoders": list(steps)}}


def strip(start, stop=0, content=" "):
    return {"type": "Strip", "content": content, "start": start, "stop": stop}


def replace(text, by, kind="String"):
    return {"type": "Replace", "pattern": {kind: text}, "content": by}


UNMARK, FALLBACK, FUSE = STEPS[:3]
SPACED = [" hello  hello ", "hello", "  a b", "é <s> hello", "a\u00e9\u65e5 b", "oo oo"]
START, END = str(BYTES["<|im_start|>"]), str(BYTES["<|im_end|>"])


def special_cases():
    yield case("no file declares anything")
    yield case("added_tokens_decoder makes pieces special", config={"added_tokens_decoder": {
        START: declared("<|im_start|>"), END: declared("<|im_end|>")}})
    yield case("added_tokens_decoder has all attributes", config={"added_tokens_decoder": {
        START: declared("<|im_start|>", lstrip=True, rstrip=True), END: declared("<|im_end|>", special=False),
        "300": declared("<tool>", special=False, single_word=True), "299": declared("</tool>", normalized=True)}})
    yield case("added_tokens_decoder replaces attributes of added_tokens", config={"added_tokens_decoder": {
        str(BYTES["<s>"]): declared("<s>", lstrip=True, rstrip=True), str(BYTES["</s>"]): declared("</s>", special=False)}})
    yield case("tokens of added_tokens_decoder that the vocabulary lacks get ids in its order", config={"added_tokens_decoder": {
        "900": declared("<img>"), "270": declared("<pad>"), "99": declared("<|new|>", special=False)}})
    yield case("eos_token names a piece", config={"eos_token": "<|im_end|>", "bos_token": "<s>"})
    yield case("pad_token is in no vocabulary", config={"pad_token": "<pad>", "unk_token": "<|endoftext|>", "eos_token": "</s>"})
    yield case("names of one token", config={"eos_token": "<|im_end|>", "pad_token": "<|im_end|>", "bos_token": None})
    yield case("a token in an object", config={"eos_token": {"__type": "AddedToken", **declared("<|im_end|>", rstrip=True)}})
    yield case("additional_special_tokens", config={"additional_special_tokens": ["<|im_start|>", "<|im_end|>", "<|new|>"]})
    yield case("extra_special_tokens replace additional_special_tokens", config={
        "additional_special_tokens": ["<|im_start|>"], "extra_special_tokens": ["<|im_end|>", "<img>"]})
    yield case("empty extra_special_tokens", config={"additional_special_tokens": ["<|im_start|>"], "extra_special_tokens": []})
    yield case("extra_special_tokens with names", config={"extra_special_tokens": {"image": "<img>", "end": "<|im_end|>"}})
    yield case("a model's own named tokens", config={"image_token": "<img>", "video_token": "<|im_start|>", "add_prefix_token": True})
    yield case("a named token of added_tokens_decoder is special", config={
        "eos_token": "<|im_end|>", "added_tokens_decoder": {END: declared("<|im_end|>", special=False, normalized=False)}})
    yield case("added_tokens.json", added_tokens={"<|im_start|>": 262, "<|im_end|>": 263, "<|new|>": 400, "<pad>": 399})
    yield case("added_tokens.json with special names", config={"eos_token": "<|im_end|>", "extra_special_tokens": ["<|new|>"]},
               added_tokens={"<|im_end|>": 263, "<|new|>": 266, "<tool>": 267})
    yield case("special_tokens_map.json", special_tokens_map={
        "eos_token": "<|im_end|>", "pad_token": declared("<pad>", lstrip=True), "additional_special_tokens": ["<|im_start|>", "<img>"]})
    yield case("special_tokens_map.json replaces tokenizer_config.json", config={"eos_token": "</s>", "pad_token": "<img>"},
               special_tokens_map={"eos_token": "<|im_end|>", "image_token": "<tool>"})
    yield case("additional_special_tokens of both files", config={"additional_special_tokens": ["<|im_start|>"]},
               special_tokens_map={"additional_special_tokens": ["<|im_end|>"]})
    yield case("extra_special_tokens of both files", config={"extra_special_tokens": ["<|im_start|>"]},
               special_tokens_map={"extra_special_tokens": ["<|im_end|>", {"content": "<img>", "rstrip": True, "normalized": False}]})
    yield case("neither file counts beside added_tokens_decoder", config={"added_tokens_decoder": {START: declared("<|im_start|>")}},
               added_tokens={"<|im_end|>": 263}, special_tokens_map={"eos_token": "<|im_end|>", "pad_token": "<pad>"})
    yield case("an empty added_tokens_decoder counts as one", config={"added_tokens_decoder": {}}, added_tokens={"<|im_end|>": 263})
    yield case("split_special_tokens", config={"split_special_tokens": True, "added_tokens_decoder": {
        START: declared("<|im_start|>"), END: declared("<|im_end|>", special=False)}})
    yield case("pieces of SentencePiece", "pieces", config={"additional_special_tokens": ["[INST]", "<tool>"], "eos_token": "</s>", "pad_token": "<pad>"})
    yield case("a normalised token", "pieces", config={"added_tokens_decoder": {"300": declared("<tool>", special=False), "301": declared("[INST]", special=False, normalized=True)}})
    yield case("pieces of Unigram", "unigram", config={"additional_special_tokens": ["[INST]", "<tool>"], "pad_token": "<pad>"})


def byte_cases():
    """<0xNN> among added_tokens, which keep their meaning."""
    texts = ["\u00e9", "hello \u00e9\u00e9 a", "<0xC3>", "\u65e5"]
    for name, special in (("bytes that are added", False), ("bytes that are special", True)):
        tokens = [added(PIECE["<0x%02X>" % b], "<0x%02X>" % b, special) for b in (0xC3, 0xA9, 0xE6)]
        for kind in ("pieces", "unigram"):
            yield case(name + ", " + kind, kind, texts=texts, without=["decoded"], change={"added_tokens": TOKENIZERS[kind]["added_tokens"] + tokens})
    yield case("bytes that are declared", "pieces", texts=texts + ["a<0xC3>\u00e9"], without=["decoded"], config={"added_tokens_decoder": {
        str(PIECE["<0x%02X>" % b]): declared("<0x%02X>" % b, special=False) for b in (0xC3, 0xA9)}})


def decoder_cases():
    yield case("decoder: as Llama 2", "pieces", texts=SPACED)
    yield case("decoder: no Strip", "pieces", texts=SPACED, change=decoder(UNMARK, FALLBACK, FUSE))
    yield case("decoder: Strip of each token", "pieces", texts=SPACED, change=decoder(UNMARK, FALLBACK, strip(1)))
    yield case("decoder: Strip at both ends", "pieces", texts=SPACED, change=decoder(UNMARK, FALLBACK, FUSE, strip(2, 1)))
    yield case("decoder: Strip of another character", "pieces", texts=SPACED, change=decoder(UNMARK, FALLBACK, FUSE, strip(1, 2, "o")))
    yield case("decoder: spaces stay marked", "pieces", texts=SPACED, change=decoder(FALLBACK, FUSE))
    yield case("decoder: Replace of several characters", "pieces", texts=SPACED, change=decoder(UNMARK, replace("ell", "EL"), FALLBACK, FUSE))
    yield case("decoder: Replace of a pattern", "pieces", texts=SPACED, change=decoder(replace("^\u2581+", "_", "Regex"), FALLBACK, FUSE))
    yield case("decoder: Replace after Fuse", "pieces", texts=SPACED, change=decoder(FALLBACK, FUSE, UNMARK, replace("h", "H"), strip(1)))
    yield case("decoder: Sequence in Sequence", "pieces", texts=SPACED, change=decoder(decoder(UNMARK, FALLBACK)["decoder"], FUSE, strip(1)))
    yield case("decoder: nothing but ByteFallback", "pieces", texts=SPACED, change={"decoder": {"type": "ByteFallback"}})
    yield case("decoder: Metaspace that is never prepended", "unigram", texts=["a", " b hello ", "  a"],
               change={"decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "split": True}})
    yield case("decoder: ByteLevel in Sequence", "bytes", texts=SPACED, change=decoder(byte_level(True), replace("e", "E")))


def setting_cases():
    """add_bos_token and add_eos_token beside a tokenizer.json, and add_prefix_space."""
    for cls in ("LlamaTokenizer", "CodeLlamaTokenizer", "PreTrainedTokenizerFast"):
        for ends in (None, template(1, 0, PIECE), template(0, 1, PIECE), template(1, 1, PIECE)):
            for flags in ({}, {"add_bos_token": True, "add_eos_token": True}, {"add_bos_token": False}):
                yield case(f"{cls}, {[*(ends or {}).get('special_tokens', {})]}, {flags}", "pieces", texts=["hello"], without=["size"],
                           config={"tokenizer_class": cls, "bos_token": "<s>", "eos_token": "</s>", **flags}, change={"post_processor": ends})
    for cls in ("GPT2Tokenizer", "GPT2TokenizerFast", "GPTNeoXTokenizer", "PreTrainedTokenizerFast"):
        for prefix in (False, True):
            for flags in ({}, {"add_prefix_space": True}, {"add_prefix_space": False}):
                yield case(f"{cls}, prefix {prefix}, {flags}", texts=["hello", " hello", "hello<|endoftext|>hello"], model_type="gpt2", without=["decoded", "size"],
                           config={"tokenizer_class": cls, **flags}, change={"pre_tokenizer": byte_level(prefix), "post_processor": None})


def write(path, value):
    with open(path, "w") as out:
        json.dump(value, out)


def tokens_of(case):
    with tempfile.TemporaryDirectory() as folder:
        write(folder + "/tokenizer.json", {**TOKENIZERS[case["tokenizer"]], **case["change"]})
        write(folder + "/tokenizer_config.json", case["config"])
        write(folder + "/config.json", {"model_type": case.pop("model_type")})
        for name, value in case["files"].items():
            write(f"{folder}/{name}.json", value)
        tokenizer = AutoTokenizer.from_pretrained(folder)
    case["ids"] = [tokenizer.encode(text, add_special_tokens=False) for text in case["texts"]]
    case["whole"] = [tokenizer.encode(text) for text in case["texts"]]
    case["decoded"] = [tokenizer.decode(ids, skip_special_tokens=True) for ids in case["ids"]]
    case["size"] = len(tokenizer)
    case["bos"], case["eos"] = (tokenizer.convert_tokens_to_ids(t) if t else -1 for t in (tokenizer.bos_token, tokenizer.eos_token))
    for key in case.pop("without"):
        del case[key]
    return case


cases = [tokens_of(c) for cases in (special_cases(), byte_cases(), decoder_cases(), setting_cases()) for c in cases]
print('{"tokenizers": ' + json.dumps(TOKENIZERS, separators=(",", ":")) + ',\n"cases": [')
print(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}")
