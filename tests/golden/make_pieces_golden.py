#!/usr/bin/env python3
"""Golden ids of SentencePiece's own files, of Unigram models, and of patterns with classes in classes.

    python3 -m venv venv && venv/bin/pip install sentencepiece==0.2.3 tokenizers==0.23.3 gguf==0.19.0
    tests/golden/make_pieces_golden.py tests/golden/tokenizers

Trains small vocabularies on tests/golden/prose.txt and on the texts of make_tokenizer_golden.py. Folders and ids.tsv have that script's
format. A tokenizer.model is the only tokenizer of its folder, and its ids are those of the sentencepiece library. A rule file of a
few lines replaces the large character map of real models.
"""
import json
import os
import random
import sys
import tempfile
import unicodedata

import sentencepiece
from gguf import GGUFWriter
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "models", "recipe"))
from gguf_file import BYTE, CONTROL, NORMAL, UNKNOWN, USER, finish

with open(os.path.join(HERE, "make_tokenizer_golden.py")) as source:  # its texts
    PARTS = source.read()
TEXTS = {}
exec(PARTS[PARTS.index("AWKWARD = ["):PARTS.index("def generated(")], TEXTS)
exec(PARTS[PARTS.index("MORE = ["):PARTS.index("# The normalizers and pre-tokenizers")], TEXTS)
AWKWARD, MORE, TEACH = TEXTS["AWKWARD"], TEXTS["MORE"], TEXTS["TEACH"]
with open(os.path.join(HERE, "prose.txt")) as prose:
    CORPUS = [line for line in (TEACH + prose.read()).split("\n") if line]

# normalisation rules by code points: letters and marks, ligatures, widths, spaces, removal
RULES = """41 30A\tC5\n61 30A\tE5\n65 301\tE9\n45 301\tC9\n212B\tC5\nFB01\t66 69\nFB03\t66 66 69\n2026\t2E 2E 2E\nBD\t31 2044 32
3000\t20\nA0\t20\n200B\t\nAD\t\nFF11\t31\n2460\t31\n9\t20\n45\t65\n1100 1161\tAC00\n300\t\n"""


def fields(message):
    """(number, wire type, value) of a Protocol Buffers message."""
    def varint(at):
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at
    at = 0
    while at < len(message):
        key, at = varint(at)
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            value, at = varint(at)
        else:
            if size is None:
                size, at = varint(at)
            value, at = message[at:at + size], at + size
        yield key >> 3, key & 7, value


def train_pieces(folder, **settings):
    rules = os.path.join(folder, "rules.tsv")
    with open(rules, "w") as out:
        out.write(RULES)
    if settings.pop("rules", False):
        settings["normalization_rule_tsv"] = rules
    else:
        settings["normalization_rule_name"] = "identity"
    prefix = os.path.join(folder, "tokenizer")
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS * 3), model_prefix=prefix, num_threads=1, minloglevel=2,
                                             hard_vocab_limit=False, **settings)
    with open(prefix + ".model", "rb") as file:
        return file.read()


def generated(rng, pieces, n):
    for _ in range(n):
        yield "".join(rng.choice(pieces) for _ in range(rng.randint(1, 12))).replace("▁", " ")
    alphabet = [" ", " ", "  ", "\t", "a", "e", "h", "t", "é", "e\u0301", "日", "😀", "\u0301", "…", "ﬁ", "\u3000", ".", "'", "▁", "ab", "the"]
    for _ in range(n):
        yield "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 30)))


def write_ids(path, texts, special, plain):
    with open(path, "w") as out:
        for text in dict.fromkeys(t for t in texts if "\0" not in t):
            out.write(text.encode().hex() + "\t" + " ".join(map(str, special(text))) + "\t" + " ".join(map(str, plain(text))) + "\n")


def write_json(path, value):
    with open(path, "w") as out:
        json.dump(value, out, ensure_ascii=False, separators=(",", ":"))
        out.write("\n")


def folder_of(out, name):
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    return folder


# ---- tokenizer.model ----

MODELS = {
    "model-unigram": dict(model_type="unigram", vocab_size=420, rules=True, character_coverage=0.98, user_defined_symbols=["▁▁", "ab", "the", "<|x|>"]),
    "model-unigram-bytes": dict(model_type="unigram", vocab_size=620, byte_fallback=True, character_coverage=0.98, add_dummy_prefix=False,
                                remove_extra_whitespaces=False, control_symbols=["<c>"]),
    "model-bpe": dict(model_type="bpe", vocab_size=420, rules=True, character_coverage=0.98, user_defined_symbols=["▁▁", "ab", "the", "<|x|>"]),
    "model-bpe-bytes": dict(model_type="bpe", vocab_size=700, byte_fallback=True, character_coverage=0.98, remove_extra_whitespaces=False,
                            allow_whitespace_only_pieces=True),
}


def model_family(name, out):
    with tempfile.TemporaryDirectory() as work:
        model = train_pieces(work, **MODELS[name])
    folder = folder_of(out, name)
    with open(os.path.join(folder, "tokenizer.model"), "wb") as file:
        # of how it was trained the kind of model alone: the rest is the trainer's affair
        for number, _, value in fields(model):
            if number == 2:
                kind = dict((n, v) for n, w, v in fields(value) if w == 0)
                value = bytes([3 << 3, kind[3]]) + (bytes([35 << 3 & 127 | 128, 35 >> 4, 1]) if kind.get(35) else b"")
            size, length = len(value), b""
            while size > 127:
                length, size = length + bytes([size & 127 | 128]), size >> 7
            file.write(bytes([number << 3 | 2]) + length + bytes([size]) + value)
    sp = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "tokenizer.model"))
    pieces = [sp.id_to_piece(i) for i in range(sp.get_piece_size()) if not sp.is_byte(i)]
    control = [p for p in pieces if sp.is_control(sp.piece_to_id(p)) or sp.is_unknown(sp.piece_to_id(p))]

    def special(text):
        """Control tokens cut the text; what follows one is a text of its own."""
        found = [(text.index(c), c) for c in control if c in text]
        if not found:
            return sp.encode(text)
        at, token = min(found)
        return sp.encode(text[:at]) + [sp.piece_to_id(token)] + special(text[at + len(token):])

    texts = AWKWARD + MORE + list(generated(random.Random(7), pieces, 60))
    write_ids(os.path.join(folder, "ids.tsv"), texts, special, sp.encode)
    return sp, model


# ---- Unigram in a tokenizer.json ----

def json_family(name, sp, model, byte_fallback, words, out):
    charsmap = [v for n, _, m in fields(model) if n == 3 for k, _, v in fields(m) if k == 2]
    pieces = [sp.id_to_piece(i) for i in range(sp.get_piece_size())]
    control = [p for i, p in enumerate(pieces) if sp.is_control(i) or sp.is_unknown(i)]

    def tokenizer(hidden):
        """hidden: control tokens can't be written; the library would take their text for them, where it is to be text."""
        vocabulary = [("\U0010fffe" + p if hidden and p in control else p, sp.get_score(i)) for i, p in enumerate(pieces)]
        t = Tokenizer(models.Unigram(vocabulary, 0, byte_fallback))
        steps = [normalizers.Precompiled(charsmap[0])] if charsmap and charsmap[0] else []
        t.normalizer = normalizers.Sequence(steps + [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")])
        t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=not byte_fallback)
        if words:  # as T5 and XLM-R: each word is marked
            t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), t.pre_tokenizer])
        t.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
        if not hidden:
            t.add_special_tokens([AddedToken(c, normalized=False) for c in control])
        return t

    shown, hidden = tokenizer(False), tokenizer(True)
    folder = folder_of(out, name)
    write_json(os.path.join(folder, "tokenizer.json"), json.loads(shown.to_str()))
    write_json(os.path.join(folder, "tokenizer_config.json"), {"bos_token": "<s>", "eos_token": "</s>"})
    texts = [t for t in AWKWARD + MORE + list(generated(random.Random(8), pieces, 0 if words else 60)) if "<0x" not in t]
    write_ids(os.path.join(folder, "ids.tsv"), texts, lambda text: shown.encode(text, add_special_tokens=False).ids,
              lambda text: hidden.encode(text, add_special_tokens=False).ids)


# ---- classes in classes, and other patterns ----

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
QWEN35 = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTIONS + r"?|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*"
        + CONTRACTIONS + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
NESTED = r"[^[a-e&&[^c]]\s[^\p{L}\p{N}]]+|[\p{L}&&[^\p{Lu}][[:digit:]]]|[-[+*]&&[^*]]"
SEED = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
BAILING = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")
AYA_DIGITS = r"\d{1,3}(?=(?:\d{3})*\b)"
AYA = KIMI.replace(r"&&[^\p{Han}]", "").removeprefix(r"[\p{Han}]+|").replace(r"[\r\n]*|\s*", r"[\r\n/]*|\s*")  # as GPT-4o
WORDS = r"\b\w{1,3}\b|\B\w\B|[\W&&\S]+|[^\W\d]|[\S&&[^\w]]|\W"
DIGITS = pre_tokenizers.Digits(individual_digits=True)
PATTERNS = {"qwen35": ([QWEN35], True), "kimi-k2": ([KIMI], False), "bloom": ([BLOOM], False), "nested": ([NESTED], False),
            "seed-coder": ([SEED], False), "bailingmoe": ([BAILING], False), "viking": ([BLOOM, DIGITS], False),
            "tiny_aya": ([AYA_DIGITS, AYA], False), "words": ([WORDS], False)}


def random_texts(rng, n):
    """Runs of characters of a few kinds, composed and decomposed, marks in any order."""
    kinds = ["abcXYZ", "0123456789", "٠١٢३४५", " ", "  \t", "\n\r", "'sStTdDmMlLvVeErR", ".,!?…/", "éñÅçüÉ", "ΑΒγΔ", "ßſİı", "日本語中文字", "がぎパ",
             "한글각", "कि मैं", "שָׁלוֹם", "مَرْحَبًا", "\u0301\u0323\u0308\u0327", "ᄀ\u1161\u11a8", "½²Ⅻ", "Ⓐⓩ🄰_‿", "👩\u200d🚀", "\u00a0\u3000\u2028", "ǅﬁ"]
    for _ in range(n):
        text = "".join(rng.choice(kind) for kind in rng.choices(kinds, k=rng.randint(1, 7)) for _ in range(rng.randint(1, 5)))
        yield rng.choice([text, unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text)])


def pattern_family(name, out):
    steps, nfc = PATTERNS[name]
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC() if nfc else None
    steps = [pre_tokenizers.Split(Regex(step), "isolated") if isinstance(step, str) else step for step in steps]
    t.pre_tokenizer = pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.train_from_iterator(CORPUS + MORE * 2, trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    t.add_special_tokens(["<|endoftext|>"])
    value = json.loads(t.to_str())
    value["model"]["merges"] = [" ".join(pair) for pair in value["model"]["merges"]]
    folder = folder_of(out, name)
    write_json(os.path.join(folder, "tokenizer.json"), value)
    write_json(os.path.join(folder, "tokenizer_config.json"), {"eos_token": "<|endoftext|>"})
    texts = AWKWARD + MORE + ["漢字かな交じり文", "中文abcABC中文", "ABCabc漢DEFdef", "का कि की", "e\u0301e\u0301a\u0308", "a,b.c!d?e…f。g，h、i।j۔k،l(m)n|o"]
    texts += ["1234 12345 123456a 1234567", "12_345", "१२३४५६७", "1٢3٤5", *random_texts(random.Random(10), 200)]

    def ids(special):
        def encode(text):
            t.encode_special_tokens = not special
            return t.encode(text, add_special_tokens=False).ids
        return encode

    write_ids(os.path.join(folder, "ids.tsv"), texts, ids(True), ids(False))
    if name not in ("nested", "words"):
        write_gguf(os.path.join(folder, "vocab.gguf"), "gpt2", name, t, value["model"]["merges"], ["<|endoftext|>"])


# ---- Gemma 4: pieces of text, not of bytes, that merge by rank ----

def gemma_family(out):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Replace(" ", "▁")
    byte_tokens = ["<0x%02X>" % b for b in range(256)]
    t.train_from_iterator([line + "\n\n" for line in CORPUS], trainers.BpeTrainer(
        vocab_size=900, special_tokens=["<pad>", "<eos>", "<bos>", "<unk>", "<turn|>"] + byte_tokens, show_progress=False, limit_alphabet=120))
    value = json.loads(t.to_str())
    value["added_tokens"] = [a for a in value["added_tokens"] if a["content"] not in byte_tokens]
    value["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    t = Tokenizer.from_str(json.dumps(value))
    t.add_tokens([AddedToken("  \n", normalized=False)])
    value = json.loads(t.to_str())
    folder = folder_of(out, "gemma4")
    write_json(os.path.join(folder, "tokenizer.json"), value)
    write_json(os.path.join(folder, "tokenizer_config.json"), {"bos_token": "<bos>", "eos_token": "<eos>"})

    def ids(special):
        def encode(text):
            t.encode_special_tokens = not special
            return t.encode(text, add_special_tokens=False).ids
        return encode

    pieces = [p for p in t.get_vocab() if p not in byte_tokens]
    texts = AWKWARD + MORE + list(generated(random.Random(9), sorted(pieces), 60))
    write_ids(os.path.join(folder, "ids.tsv"), [t for t in texts if "<0x" not in t], ids(True), ids(False))
    write_gguf(os.path.join(folder, "vocab.gguf"), "gemma4", None, t, [" ".join(m) for m in value["model"]["merges"]],
               ["<pad>", "<eos>", "<bos>", "<turn|>"])


def write_gguf(path, model, pre, tokenizer, merges, control):
    writer = GGUFWriter(path, "llama")
    n = tokenizer.get_vocab_size()
    tokens = [tokenizer.id_to_token(i) for i in range(n)]
    added = {t.content for t in tokenizer.get_added_tokens_decoder().values()}
    writer.add_context_length(2048)
    writer.add_tokenizer_model(model)
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([CONTROL if t in control else UNKNOWN if t == "<unk>" else USER if t in added else
                            BYTE if t.startswith("<0x") else NORMAL for t in tokens])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(tokenizer.token_to_id("<eos>" if model == "gemma4" else control[0]))
    if model == "gemma4":
        writer.add_bos_token_id(tokenizer.token_to_id("<bos>"))
        writer.add_unk_token_id(tokenizer.token_to_id("<unk>"))
        writer.add_add_space_prefix(False)
        writer.add_add_bos_token(True)
    finish(writer, tensors=False)


def main(out):
    for name in MODELS:
        sp, model = model_family(name, out)
        if name.startswith("model-unigram"):
            json_family(name[6:], sp, model, name.endswith("bytes"), False, out)
            if not name.endswith("bytes"):
                json_family("unigram-words", sp, model, False, True, out)
    for name in PATTERNS:
        pattern_family(name, out)
    gemma_family(out)


main(sys.argv[1])
