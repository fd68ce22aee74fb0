"""The tables of a trace: their columns, and how a field is written. docs/traces.md explains each column."""

import math
from typing import Dict, List, Optional, Union

FORMAT = 1

COMMON = ["event", "t_us", "run", "seq"]
COLUMNS: Dict[str, List[str]] = {
    "tokens": COMMON + ["round", "pos", "parent", "candidate", "token_id", "source", "exit_layer", "confidence", "annealed",
                        "head", "accepted", "committed"],
    "layers": COMMON + ["round", "pos", "model", "layer", "token_id", "confidence", "annealed", "entropy", "kl_final",
                        "rank_final", "final_agrees", "top", "head", "probed_by", "acceptance", "temperature",
                        "draft_vocab"],
    "experts": COMMON + ["round", "pos", "layer", "experts"],
    "series": COMMON + ["round", "key", "index", "value"],
    "vocab": COMMON + ["token_id", "text"],
    "controls": COMMON + ["round", "name", "old", "new", "applied_round"],
    "rounds": COMMON + ["round", "policy", "draft_us", "verify_us", "probe_us", "drafted", "verified", "accepted", "emitted",
                        "exit_layer", "threshold", "d_max", "w_max", "layers_loaded", "heads_loaded", "stop_reason",
                        "heads_us", "wait_us", "learning_us", "verify_experts", "reject_rank", "cut"],
}
FORMER = {"aside_us": "learning_us"}  # columns of older traces, and their names now
ORDER = list(COLUMNS)  # in which the tables are written: what a round's line promises is there before it
TEXTS = {"text", "key", "name", "old", "new", "policy", "stop_reason"}  # quoted, and escaped

Field = Union[None, bool, int, float, str, bytes]


def escape(text: Union[str, bytes]) -> str:
    """Doubles backslashes, and writes each byte that is not printable UTF-8 as \\xNN."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    out = []
    for ch in text:
        if ch == "\\":
            out.append("\\\\")
        elif ch.isprintable() and not 0xD800 <= ord(ch) <= 0xDFFF:
            out.append(ch)
        else:
            out.extend("\\x%02x" % byte for byte in ch.encode("utf-8", "surrogateescape"))
    return "".join(out)


def unescape(text: str) -> bytes:
    """Returns the bytes that `escape` got."""
    raw, out, i = text.encode("utf-8"), bytearray(), 0
    while i < len(raw):
        if raw[i] != 0x5C:
            out.append(raw[i])
            i += 1
        elif raw[i + 1 : i + 2] == b"\\":
            out.append(0x5C)
            i += 2
        elif raw[i + 1 : i + 2] == b"x" and len(raw) >= i + 4:
            out.append(int(raw[i + 2 : i + 4], 16))
            i += 4
        else:
            raise ValueError("a backslash that escapes nothing in %r" % text)
    return bytes(out)


def field(column: str, value: Field) -> str:
    """Returns a field of a line; "" where it does not apply."""
    if value is None:
        return ""
    if column in TEXTS:
        assert isinstance(value, (str, bytes))
        return '"%s"' % escape(value).replace('"', '""') if value else ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return "" if math.isnan(value) else "%.9g" % value
    return str(value)


def line(table: str, values: Dict[str, Field]) -> str:
    return ",".join(field(column, values.get(column)) for column in COLUMNS[table]) + "\n"


def real(value: Optional[float]) -> Optional[float]:
    """Accepts numbers of numpy and torch, too."""
    return None if value is None else float(value)
