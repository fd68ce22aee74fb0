"""The vocabulary: SentencePiece BPE over both kinds of text, and texts as files of token ids."""

import random
import struct
from pathlib import Path

import numpy as np
import sentencepiece


def make_vocabulary(texts, folder, size, sample=12_000_000):
    """Trains on the same share of each text; returns the path of the model."""
    path = folder / "vocabulary.model"
    if not path.exists():
        lines = []
        for text in texts:
            part = text.read_text().split("\n")
            random.Random(1).shuffle(part)
            room = sample // len(texts)
            for line in part:
                room -= len(line)
                if room < 0:
                    break
                lines.append(line)
        (folder / "vocabulary.txt").write_text("\n".join(lines))
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "vocabulary.txt"), model_prefix=str(folder / "vocabulary"), vocab_size=size, model_type="bpe",
            byte_fallback=True, character_coverage=0.9999, split_digits=True, max_sentence_length=20000,
            remove_extra_whitespaces=False, normalization_rule_name="identity", allow_whitespace_only_pieces=True,
            user_defined_symbols=["\n"], pad_id=-1, unk_id=0, bos_id=1, eos_id=2, num_threads=2, minloglevel=2)
    return path


def documents(text, tales):
    """Generated text is cut at empty lines. Tales have one document a book; a few paragraphs at a time are one here, and
    begin where the last ended."""
    if not tales:
        yield from (d for d in text.split("\n\n") if d)
        return
    for book in text.split("\n\n"):
        part, room = [], 3000
        for paragraph in book.split("\n"):
            part.append(paragraph)
            room -= len(paragraph)
            if room < 0:
                yield "\n".join(part)
                part, room = [], 3000
        if part:
            yield "\n".join(part)


def encode(path, model, out, tales, held_out=0.02):
    """Writes out.train.npy and out.held.npy (uint16): <s> document </s> <s> …; every 50th document is held out."""
    train, held = Path(f"{out}.train.npy"), Path(f"{out}.held.npy")
    if not train.exists():
        tokenizer = model if isinstance(model, sentencepiece.SentencePieceProcessor) else \
            sentencepiece.SentencePieceProcessor(model_file=str(model))
        kept, aside, every = [], [], round(1 / held_out)
        for i, d in enumerate(documents(path.read_text(), tales)):
            ids = [tokenizer.bos_id(), *tokenizer.encode(d), tokenizer.eos_id()]
            (aside if i % every == every - 1 else kept).append(np.array(ids, dtype=np.uint16))
        np.save(held, np.concatenate(aside))
        np.save(train, np.concatenate(kept))
    return np.load(train, mmap_mode="r"), np.load(held)


def vocabulary_of(reader):
    """The vocabulary of a GGUF file (gguf.GGUFReader) that export.py wrote, as a SentencePiece tokenizer. It is the
    message ModelProto: pieces, the kind BPE with byte fallback, and a normalizer that adds a space at the beginning."""
    def field(number, value):  # bytes, or a small number
        return bytes((number << 3 | 2, *size(len(value)))) + value if isinstance(value, bytes) else bytes((*size(number << 3), value))

    def size(n):
        return (n,) if n < 128 else (n & 127 | 128, *size(n >> 7))

    tokens, scores, types = (reader.fields[f"tokenizer.ggml.{k}"].contents() for k in ("tokens", "scores", "token_type"))
    pieces = b"".join(field(1, field(1, t.encode()) + b"\x15" + struct.pack("<f", s) + field(3, int(kind)))
                      for t, s, kind in zip(tokens, scores, types))
    trainer = field(3, 2) + field(35, 1) + field(26, 1)
    normalizer = field(1, b"identity") + field(3, 1) + field(4, 0) + field(5, 1)
    return sentencepiece.SentencePieceProcessor(model_proto=pieces + field(2, trainer) + field(3, normalizer))
