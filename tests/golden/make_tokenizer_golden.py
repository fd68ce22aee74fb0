#!/usr/bin/env python3
"""Writes a tokenizer golden: awkward strings with the ids that the sentencepiece library gives them.

    pip install gguf sentencepiece protobuf
    build/tests/tinymodel tiny.gguf --vocab 900
    tests/golden/make_tokenizer_golden.py models/fables-13m-q8_0.gguf > tests/golden/tokenizer_fables.tsv
    tests/golden/make_tokenizer_golden.py tiny.gguf > tests/golden/tokenizer_tiny.tsv

A SentencePiece model is built from the GGUF's metadata, so the library is an independent judge of ours. A line is the
text as hexadecimal UTF-8, a tab, the ids with spaces between them.
"""
import random
import sys

from gguf import GGUFReader
from sentencepiece import SentencePieceProcessor
from sentencepiece import sentencepiece_model_pb2 as pb


def processor(path):
    fields = GGUFReader(path).fields
    value = lambda key: fields["tokenizer.ggml." + key].contents()
    model = pb.ModelProto()
    for text, score, kind in zip(value("tokens"), value("scores"), value("token_type")):
        model.pieces.add(piece=text, score=score, type=kind)  # GGUF's numbers are SentencePiece's
    model.trainer_spec.model_type = pb.TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.vocab_size = len(model.pieces)
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = value("add_space_prefix")
    model.normalizer_spec.remove_extra_whitespaces = False
    model.normalizer_spec.escape_whitespaces = True
    return SentencePieceProcessor(model_proto=model.SerializeToString())


AWKWARD = [
    "", " ", "  ", "   ", "    ", "a", " a", "a ", " a ", "  a  b   c    d", "\n", "\n\n", "\n\n\n", "\r\n", "\t", "\t\t x",
    " \n ", "a\n", "\na", "a\n\n b", "a \n b", "\u00a0", "a\u00a0b", "\u3000", "\u2003x", "\u200b", "a\u200db", "\ufeffstart",
    "0", "00", "7", "42", "123", "1234567890", "3.14159", "1,000,000", "1e-9", "0x1F", "2024-02-29", "12:34:56", "$5.00", "50%",
    ".", "..", "...", "....", "!", "!!", "?!", "?!?!", "--", "—", "–", "…", "'", "''", "\"", "\"\"", "“quoted”", "‘single’",
    "don't", "can't've", "it's", "O'Brien", "rock'n'roll", "e-mail", "re-re-read", "@user", "#tag", "a_b_c", "snake_case_name",
    "CamelCaseName", "SHOUTING", "mIxEd CaSe", "a/b/c", "C:\\dir\\file", "https://example.org/a?b=c&d=%20e#f",
    "<b>bold</b>", "<s>", "</s>", "<unk>", "<0x0A>", "<0x41>", "[INST] hi [/INST]", "<|im_start|>", "<|note|>", "<|end|>",
    "a<|note|>b", " <|note|> ", "<|note|><|note|>", "x<|note", "<|note|", "<<|note|>>", "once<|note|> upon",
    "def f(x):\n    return x + 1\n", "for (int i = 0; i < n; i++) {\n\ta[i] ^= ~b;\n}", "if x==1 and y!=2: pass",
    "#include <stdio.h>", "SELECT * FROM t WHERE a='b';", "{\"key\": [1, 2, null]}", "x = y ** 2 // 3 % 4", "\\n is not \n", "a\\tb",
    "é", "e\u0301", "ñ", "n\u0303", "Å", "A\u030a", "ﬁ", "ß", "İ", "ı", "ſ", "ǆ", "naïve café", "Zürich", "Ångström", "œuvre",
    "z\u0335\u0321\u0347a\u0334\u0322l\u0336\u0348g\u0337o", "\u0301", "a\u0301\u0301\u0301\u0301\u0301", "क्षि", "नमस्ते", "தமிழ்",
    "日本語", "日本語の文章です。", "中文字符", "你好，世界！", "한국어", "\u1112\u1161\u11ab", "カタカナ", "ｈａｌｆ", "ﾊﾝｶｸ", "漢字 and kanji",
    "Привет, мир", "Ελληνικά", "עברית", "العربية", "\u202eabc\u202c", "\u2066x\u2069", "ไทย", "ქართული", "አማርኛ", "ᚠᚢᚦ", "𐍈", "𝔘𝔫𝔦", "𝟘𝟙",
    "😀", "😀😀", "a😀b", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "🇩🇪🇫🇷", "☃", "☃️", "✈︎", "♥", "①", "½", "²", "™", "€", "→", "∀x∈ℝ", "√2≈1.41", "░▒▓█",
    "\x00", "a\x00b", "\x01\x02\x03", "\x07", "\x1b[31mred\x1b[0m", "\x7f", "\x80", "\x85", "\x9b31m", "\u2028", "\u2029", "\ufffd", "\uffff",
    "\ue000", "\U0010ffff", "\U000e0041", "▁", "▁▁", "a▁b", " ▁ ", "▁a", "_", "__", "_a_",
    "Once upon a time there was a little girl named Lily.", "In the middle of the forest there stood a little house, and",
    "the the the the", "thethethethe", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abababababababab", "            indented", "trailing      ",
    "a" * 300, "ha" * 100, " " * 64, "\n" * 32, "the " * 50, "x y " * 25, "ab " * 33, "…" * 20, "日" * 30, "😀" * 12,
    "Three mice sat on a wall,", "Question: Tom has 4 keys and finds 5 more. How many", "“Who are you?” said the Caterpillar.",
    "King, queen; prince: princess! (castle) [tower] {moat}", "and and, and. and! and? and; and: and' and\" (and)",
]


def generated(rng, vocabulary):
    """Pieces in random order: dense in near misses for merging."""
    pieces = [p for p in vocabulary if "<0x" not in p and p not in ("<unk>", "<s>", "</s>")]
    for _ in range(160):
        parts = [rng.choice(pieces) for _ in range(rng.randint(1, 12))]
        yield "".join(parts).replace("▁", " ")
    alphabet = [" ", " ", "\n", "a", "e", "h", "t", "n", "é", "日", "😀", "\u0301", "0", ".", "'"]
    for _ in range(80):
        yield "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 40)))


def main():
    sp = processor(sys.argv[1])
    vocabulary = [sp.id_to_piece(i) for i in range(sp.get_piece_size())]
    seen = set()
    for text in AWKWARD + list(generated(random.Random(20240607), vocabulary)):
        if text in seen:
            continue
        seen.add(text)
        print(text.encode().hex() + "\t" + " ".join(map(str, sp.encode(text))))


main()
