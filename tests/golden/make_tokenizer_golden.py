#!/usr/bin/env python3
"""Golden ids of difficult texts, from the sentencepiece and tokenizers libraries.

    python3 -m venv venv && venv/bin/pip install sentencepiece==0.2.3 tokenizers==0.23.3 gguf==0.19.0 protobuf
    build/tests/tinymodel tiny.gguf --vocab 900
    tests/golden/make_tokenizer_golden.py gguf models/fables-q8_0.gguf > tests/golden/tokenizer_fables.tsv
    tests/golden/make_tokenizer_golden.py gguf tiny.gguf > tests/golden/tokenizer_tiny.tsv
    tests/golden/make_tokenizer_golden.py families CORPUS.txt tests/golden/tokenizers

`gguf` builds a SentencePiece model from a GGUF's metadata. A line is the text as hexadecimal UTF-8, a tab, the ids with spaces
between them.

`families` trains small vocabularies with the normalizers, pre-tokenizers and post-processors of well-known models on the
first two million characters of a text (for example the one of the bundled model's recipe) and on the texts below. A folder contains
tokenizer.json, tokenizer_config.json, the same vocabulary as vocab.gguf, and ids.tsv: the bytes of a text in hexadecimal, its ids with
control tokens recognised, its ids with control tokens as text (separated by tabs). Patterns see invalid UTF-8 as U+FFFD, but the bytes
keep their own tokens; SentencePiece has byte tokens for them.
"""
import codecs
import json
import os
import random
import sys
import tempfile

from gguf import GGUFReader, GGUFWriter
from sentencepiece import SentencePieceProcessor
from sentencepiece import SentencePieceTrainer
from sentencepiece import sentencepiece_model_pb2 as pb
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "recipe"))
from gguf_file import BYTE, CONTROL, NORMAL, UNKNOWN, USER, finish


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


def from_gguf(path):
    sp = processor(path)
    vocabulary = [sp.id_to_piece(i) for i in range(sp.get_piece_size())]
    seen = set()
    for text in AWKWARD + list(generated(random.Random(20240607), vocabulary)):
        if text in seen:
            continue
        seen.add(text)
        print(text.encode().hex() + "\t" + " ".join(map(str, sp.encode(text))))


# ---- families ----

MORE = [
    "\u180e", "a \u180e b", "  \u180e\n", "\u0660\u0661\u0662\u0663", "x²³", "Ⅻ", "１２３４", "१२३४५", "12٣٤56", "3½", "1\u20442",
    "DON'T", "I'LL we'Ve", "'S's'ſ'K", "it\u2019s", "'", "''s", "x'd'm're", "O\u2019Neil'll", "e\u0301\u0323", "\u1e69\u0323", "가\u11a8",
    "\u1100\u1161\u11a8", "\u212b\u2126\u212a", "ﬃ", "①②③", "ça\u0327", "\u0344", "\u0958", "\u2adc", "\ufb1d", "a\u0308\u0301b",
    "fooBarBaz", "HTTPServer", "parseHTMLDoc", "ÀÉÎõü", "ΑΒΓαβγ", "straßeÉcole", "iPhone15Pro", "snake_Case_Name", "éÉé", "ǅungla",
    "a  \n  b", " \n\n \n x", "\r\r\n\n\r", "x\r\ny\r\n\r\nz", "\t\tif x:\n\t\t\treturn", "   \n", "\n   ", "a\u2028b\u2029c", "\x85x\x85",
    "\u3000\u3000x", "a\u00a0\u00a0b", "1 2  3   4", "0.1.2.3", "10,000.00", "2^10", "a=b+c*d/e%f", "x<=y>=z!=w", "$x^2~y|z`w`", "$$$ ^^^",
    "…。，、！？：；「」", "“‘’”", "¿¡", "«»", "—–-", "•◦‣", "日本2024年", "中文English混排123", "한글과 English", "ひらがなカタカナ漢字", "龥龦㐀",
    "//////////", "..........", "=====\n=====", "# Title\n\n- item\n  - sub\n", "|a|b|\n|-|-|\n", "\\alpha\\beta", "a" * 40 + "B" * 40,
    "العربية 123 مرحبا، كيف؟", "שָׁלוֹם", "ภาษาไทยไม่มีวรรค", "ᠮᠣᠩᠭᠣᠯ", "मैं १० साल", "e\u0301" * 20, "👩🏽‍🚀🧑‍💻", "🏴\U000e0067\U000e0062\U000e007f",
]

BROKEN = [
    b"\xff", b"a\xffb", b" \xff \xfe ", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x82x", b"\xf0\x9f\x98", b"a\xf0\x9f\x98b", b"\x80\x80\x80",
    b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"word\x80word", b"1\xff2", b"\n\xff\n", b"caf\xe9", b"\xfe\xff", b"ok \xe6\x97",
    b"\xe6\x97\xa5\xe6\x9c", b"e\xcc\x81\xff\xcc\x81", b"x\xf8\x88\x80\x80\x80y", b"\xff" * 9, b"don't\xff's", b"A\xccB  \xff  c\n",
]

TEACH = """Zürich naïve café œuvre Ångström straße ÉCOLE Привет, мир! Как дела? Ελληνικά ΑΒΓ αβγ העברית שלום العربية مرحبا بالعالم ١٢٣٤
日本語の文章です。私は学生です。中文字符，你好世界！我们今天去公园。한국어 안녕하세요 세계 नमस्ते दुनिया தமிழ் ภาษาไทย ქართული አማርኛ
def f(x):\n    return x + 1\n\nfor (int i = 0; i < n; i++) {\n\ta[i] ^= ~b;\n}\n#include <stdio.h>\nint main(void)\n{\n    printf("%d\\n", 42);\n    return 0;\n}
SELECT * FROM t WHERE a='b' AND c <> 10; {"key": [1, 2, null], "name": "value"} if x == 1 and y != 2: pass  else:  return None
2024-02-29 12:34:56 3.14159 1,000,000 1e-9 0x1F $5.00 50% 10 100 1000 999 2023 😀😀 👍🏽 ☃ ♥ → ∀x∈ℝ √2≈1.41 ... --- === *** ((( ))) [[ ]] {{ }}
fooBarBaz HTTPServer parseHTMLDoc getElementById camelCase SnakeCase XMLHttpRequest iPhone DON'T I'LL WE'VE it's we're they'd I'm
""" + "x\r\ny\r\n\r\n \t\t\t    \n\n\n        indent\n"

# The normalizers and pre-tokenizers of the models' own tokenizer.json.
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + r"+|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER
          + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + ENDING + r"|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" + ENDING
         + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CASED = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3"
    "ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃")


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(*steps, use_regex=False):
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    return pre_tokenizers.Sequence([*steps, last]) if steps else last


DIGITS = pre_tokenizers.Digits(individual_digits=True)
FAMILIES = {
    # name: vocabulary, pre-tokenizer, NFC, whole words, control tokens, other added tokens, BOS, EOS, BOS in front
    "llama-bpe": (1500, byte_level(split(LLAMA3)), False, True,
                  ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], [],
                  "<|begin_of_text|>", "<|end_of_text|>", True),
    "qwen2": (1500, byte_level(split(QWEN2)), True, False, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
              ["<tool_call>", "</tool_call>"], None, "<|im_end|>", False),
    "gpt2": (1500, byte_level(use_regex=True), False, False, ["<|endoftext|>"], [], "<|endoftext|>", "<|endoftext|>", False),
    "smollm": (600, byte_level(DIGITS, use_regex=True), False, False, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], [],
               "<|im_start|>", "<|im_end|>", False),
    "deepseek-llm": (600, byte_level(split("[\r\n]"), split(r"\s?[" + CASED + "]+"), split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
                                     split(r"\s+$"), split("[一-龥ࠀ-一가-퟿]+"), DIGITS), False, False,
                     ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"], ["\u00fe", "\u00ff", "  \t"],
                     "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", True),
    "deepseek-coder": (600, byte_level(split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"), DIGITS),
                       False, False, ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<|EOT|>"], [],
                       "<｜begin▁of▁sentence｜>", "<|EOT|>", True),
    "deepseek-v3": (600, byte_level(split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+"
        "|\\s+(?!\\S)|\\s+")), False, False, ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"], [],
        "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", True),
    "falcon": (600, pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")]), False, False,
        ["<|endoftext|>", ">>TITLE<<"], [], None, "<|endoftext|>", False),
    "tekken": (600, byte_level(split(TEKKEN)), False, True, ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"], [], "<s>", "</s>", True),
    "gpt-4o": (600, byte_level(split(GPT4O)), False, False, ["<|endoftext|>", "<|endofprompt|>"], [], None, "<|endoftext|>", False),
}
LONG = ("llama-bpe", "qwen2", "gpt2")  # with generated texts, beside the awkward ones


def with_bos(tokenizer, bos):
    return processors.TemplateProcessing(single=[bos, "$A"], pair=[bos, "$A", bos, "$B"],
                                         special_tokens=[(bos, tokenizer.token_to_id(bos))])


def train(corpus, vocabulary, pre, nfc, whole, control, other, bos, first):
    tokenizer = Tokenizer(models.BPE(ignore_merges=whole))
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set(other))  # DeepSeek adds the bytes that never occur in UTF-8 as tokens
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet,
                                  show_progress=False, special_tokens=[])
    tokenizer.train_from_iterator(corpus, trainer)
    if whole:  # a token that no merge makes, as Llama 3 has them
        model = json.loads(tokenizer.to_str())
        model["model"]["vocab"]["Ġxyzzy"] = len(model["model"]["vocab"])
        tokenizer = Tokenizer.from_str(json.dumps(model))
    tokenizer.add_special_tokens([AddedToken(c, normalized=False) for c in control])
    tokenizer.add_tokens([AddedToken(o, normalized=False) for o in other])
    if first:
        tokenizer.post_processor = with_bos(tokenizer, bos)
    return tokenizer


def letter_of_byte():
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in own}
    for b in range(256):
        letters.setdefault(b, chr(256 + len(letters) - len(own)))
    return letters


LETTERS = letter_of_byte()


def private_characters(data):
    """Returns the text with a private-use character for each broken sequence, and the sequences."""
    stands_for = {}

    def handler(error):
        character = chr(0xF0000 + len(stands_for))
        stands_for[character] = error.object[error.start:error.end]
        return character, error.end

    codecs.register_error("private", handler)
    return data.decode("utf-8", "private"), stands_for


def broken_bytes(tokenizer, data):
    """Words as if broken bytes were U+FFFD; in a word, the bytes there are."""
    text, stands_for = private_characters(data)
    if tokenizer.normalizer is not None:
        text = tokenizer.normalizer.normalize_str(text)
    seen = "".join("\ufffd" if c in stands_for else c for c in text)
    pre, after = tokenizer.pre_tokenizer, None
    if json.loads(tokenizer.to_str())["pre_tokenizer"]["type"] == "Sequence" and isinstance(pre[0], pre_tokenizers.Punctuation):
        pre, after = pre_tokenizers.Sequence([pre[0], pre[1]]), pre_tokenizers.Sequence([pre[2], pre[3]])  # Falcon
    ids = []
    for _, (start, end) in pre.pre_tokenize_str(seen):
        word = b"".join(stands_for.get(c, c.encode()) for c in text[start:end])
        word = "".join(LETTERS[b] for b in word)
        for part in [word] if after is None else [p for p, _ in after.pre_tokenize_str(word)]:
            ids += [t.id for t in tokenizer.model.tokenize(part)]
    return ids


def line(data, special, plain):
    return data.hex() + "\t" + " ".join(map(str, special)) + "\t" + " ".join(map(str, plain)) + "\n"


def write_ids(path, tokenizer, texts, encode_broken):
    with open(path, "w") as out:
        for text in dict.fromkeys(texts):
            tokenizer.encode_special_tokens = False
            special = tokenizer.encode(text, add_special_tokens=False).ids
            tokenizer.encode_special_tokens = True
            plain = tokenizer.encode(text, add_special_tokens=False).ids
            out.write(line(text.encode(), special, plain))
        tokenizer.encode_special_tokens = False
        for data in BROKEN if encode_broken else []:
            ids = encode_broken(data)
            out.write(line(data, ids, ids))


def special_texts(added):
    for token in added:
        yield from (token, "a" + token, token + "a", " " + token + " ", "\n" + token + "\n", token[:-1], token[1:], token + token)
    yield "".join(added) + "text" + " ".join(added)


def write_json(path, value):
    with open(path, "w") as out:
        json.dump(value, out, ensure_ascii=False, separators=(",", ":"))
        out.write("\n")


def compact(tokenizer):
    """As saved by older versions: merges as "left right", which is also a good deal smaller."""
    value = json.loads(tokenizer.to_str())
    merges = value["model"]["merges"]
    if not any(" " in half for pair in merges for half in pair):
        value["model"]["merges"] = [" ".join(pair) for pair in merges]
    return value


def write_gguf(path, arch, write):
    writer = GGUFWriter(path, arch)
    writer.add_context_length(2048)
    write(writer)
    finish(writer, tensors=False)


def byte_level_family(name, corpus, out):
    vocabulary, pre, nfc, whole, control, other, bos, eos, first = FAMILIES[name]
    tokenizer = train(corpus, vocabulary, pre, nfc, whole, control, other, bos, first)
    value = compact(tokenizer)
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    if name == "qwen2":  # merges as pairs, as newer versions save them
        value["model"]["merges"] = json.loads(tokenizer.to_str())["model"]["merges"]
    write_json(os.path.join(folder, "tokenizer.json"), value)
    write_json(os.path.join(folder, "tokenizer_config.json"),
               {"bos_token": bos, "eos_token": {"content": eos, "special": True}, "tokenizer_class": "PreTrainedTokenizerFast"})

    def write(writer):
        n = tokenizer.get_vocab_size()
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre({"gpt2": "gpt-2"}.get(name, name))
        writer.add_token_list([tokenizer.id_to_token(i) for i in range(n)])
        writer.add_token_types([CONTROL if tokenizer.id_to_token(i) in control else
                                USER if tokenizer.id_to_token(i) in other else NORMAL for i in range(n)])
        writer.add_token_merges([" ".join(m) if isinstance(m, list) else m for m in value["model"]["merges"]])
        if bos:
            writer.add_bos_token_id(tokenizer.token_to_id(bos))
        writer.add_eos_token_id(tokenizer.token_to_id(eos))
        writer.add_add_bos_token(first)

    write_gguf(os.path.join(folder, "vocab.gguf"), "llama", write)
    texts = AWKWARD + MORE + list(special_texts(control + other))
    if name in LONG:
        pieces = [p for p in tokenizer.get_vocab() if p not in control + other]
        pieces = [tokenizer.decode([tokenizer.token_to_id(p)]) for p in sorted(pieces)]
        texts += list(generated(random.Random(20240607), pieces))
    write_ids(os.path.join(folder, "ids.tsv"), tokenizer, texts, lambda data: broken_bytes(tokenizer, data))


def odd_families(corpus, out):
    """What no known model has all of: every flag of added tokens, every behavior of splits."""
    flags = [AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=False),
             AddedToken("<lr>", lstrip=True, rstrip=True, normalized=False), AddedToken("word", single_word=True, normalized=False),
             AddedToken("ﬁsh", normalized=True), AddedToken("É", normalized=True, single_word=True, lstrip=True)]
    flagged = train(corpus, 400, pre_tokenizers.ByteLevel(add_prefix_space=True), False, False, ["<s>"], [], None, False)
    flagged.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("--", "—")])
    flagged.add_tokens(flags)
    behaviors = train(corpus, 400, byte_level(use_regex=True), False, False, [], [], None, False)
    behaviors.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("-", "merged_with_previous"),
        pre_tokenizers.Split(Regex("[aeiou]"), "merged_with_next"), pre_tokenizers.Split(Regex(r"[\p{L}]+"), "contiguous", invert=True),
        pre_tokenizers.Split("x", "removed"), pre_tokenizers.Punctuation("merged_with_next"),
        pre_tokenizers.Split(Regex("th|he"), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    spaced = train(corpus, 400, byte_level(use_regex=True), False, False, ["<s>"], [], None, False)
    spaced.normalizer = normalizers.NFD()
    spaced.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True), pre_tokenizers.ByteLevel(
            add_prefix_space=False, use_regex=False)])
    words = ["word", "sword", "words", "a word b", "word word", "éword", "word_", "(word)", "<l>", "a <l> b", "a  <l>", " <r>  b", "a<lr>b",
             "a \t<lr> \n b", "<l><r><lr>", "<r> <l>", "<r>  <r>", "ﬁsh", "fish", "a ﬁsh b", "É", "E\u0301", "a É b", "aÉb", "  É", "--", "a--b", "---"]
    for name, tokenizer in (("flags", flagged), ("splits", behaviors), ("spaced", spaced)):
        folder = os.path.join(out, name)
        os.makedirs(folder, exist_ok=True)
        write_json(os.path.join(folder, "tokenizer.json"), compact(tokenizer))
        write_json(os.path.join(folder, "tokenizer_config.json"), {})
        write_ids(os.path.join(folder, "ids.tsv"), tokenizer, words + AWKWARD + MORE, None)


def merges_of_scores(sp):
    """What transformers makes of a SentencePiece model: each way to make a piece of two, the best piece first."""
    vocabulary = {sp.id_to_piece(i): i for i in range(sp.get_piece_size())}
    merges = []
    for piece, i in vocabulary.items():
        ways = [(piece[:k], piece[k:], sp.get_score(i)) for k in range(1, len(piece))
                if piece[:k] in vocabulary and piece[k:] in vocabulary]
        merges += sorted(ways, key=lambda way: (vocabulary[way[0]], vocabulary[way[1]]))
    merges.sort(key=lambda way: (way[2], len(way[0]), len(way[1])), reverse=True)
    return [(left, right) for left, right, _ in merges]


def sentencepiece_families(corpus, out):
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "spm")
        SentencePieceTrainer.train(
            sentence_iterator=iter(line for text in corpus for line in text.split("\n") if line), model_prefix=prefix, model_type="bpe",
            vocab_size=1500, byte_fallback=True, character_coverage=0.9995, normalization_rule_name="identity",
            remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, split_digits=True, num_threads=1, minloglevel=2)
        sp = SentencePieceProcessor(model_file=prefix + ".model")
        model = pb.ModelProto()
        with open(prefix + ".model", "rb") as file:
            model.ParseFromString(file.read())
    model.normalizer_spec.add_dummy_prefix = False
    inner = SentencePieceProcessor(model_proto=model.SerializeToString())
    n = sp.get_piece_size()
    vocabulary = {sp.id_to_piece(i): i for i in range(n)}
    bpe = models.BPE(vocabulary, merges_of_scores(sp), unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    legacy, first = Tokenizer(bpe), Tokenizer(bpe)
    legacy.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    first.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)

    def broken(data, prefix):
        text, stands_for = private_characters(data)
        ids, part, begun = [], "", not prefix
        for c in text + "\U000f7fff":
            if c not in stands_for and c != "\U000f7fff":
                part += c
                continue
            ids += (inner if begun else sp).encode(part) if part or not begun else []
            if not begun and not part:
                ids += [vocabulary["▁"]]
            ids += [vocabulary["<0x%02X>" % b] for b in stands_for.get(c, b"")]
            part, begun = "", True
        return ids

    texts = AWKWARD + MORE + list(special_texts(["<s>", "</s>"])) + ["<unk>", "a <unk> b"]
    texts += list(generated(random.Random(20240607), list(vocabulary)))
    for name, tokenizer in (("spm", legacy), ("spm-first", first)):
        folder = os.path.join(out, name)
        os.makedirs(folder, exist_ok=True)
        tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in ("<unk>", "<s>", "</s>")])
        tokenizer.post_processor = with_bos(tokenizer, "<s>")
        write_json(os.path.join(folder, "tokenizer.json"), compact(tokenizer))
        write_json(os.path.join(folder, "tokenizer_config.json"),
                   {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True, "tokenizer_class": "LlamaTokenizer"})
        # Metaspace adds no space where there is one
        write_ids(os.path.join(folder, "ids.tsv"), tokenizer, texts,
                  lambda data: broken(data, tokenizer is legacy or not data.startswith(b" ")))
    for text in texts:  # the two libraries agree
        legacy.encode_special_tokens = True
        assert "<" in text or legacy.encode(text, add_special_tokens=False).ids == sp.encode(text), text

    def write(writer):
        kinds = [UNKNOWN if sp.is_unknown(i) else CONTROL if sp.is_control(i) else BYTE if sp.is_byte(i) else NORMAL for i in range(n)]
        writer.add_tokenizer_model("llama")
        writer.add_token_list([sp.id_to_piece(i) for i in range(n)])
        writer.add_token_scores([sp.get_score(i) for i in range(n)])
        writer.add_token_types(kinds)

    write_gguf(os.path.join(out, "spm", "vocab.gguf"), "llama", write)


def families(corpus_path, out):
    with open(corpus_path, encoding="utf-8") as file:
        corpus = file.read(2_000_000).split("\n\n") + [TEACH] * 40
    for name in FAMILIES:
        byte_level_family(name, corpus, out)
    odd_families(corpus, out)
    sentencepiece_families(corpus, out)


if sys.argv[1] == "gguf":
    from_gguf(sys.argv[2])
else:
    families(sys.argv[2], sys.argv[3])
