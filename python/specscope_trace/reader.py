"""Reads a trace into pandas, from any engine."""

import io
import json
import os
import warnings
from typing import TYPE_CHECKING, Any, Dict, Union

from .tables import COLUMNS, FORMER, TEXTS, unescape

if TYPE_CHECKING:
    import pandas

Folder = Union[str, "os.PathLike[str]"]


def run_json(folder: Folder) -> Dict[str, Any]:
    """The constants of a run: model, machine, settings, knobs and series of the policies."""
    with open(os.path.join(os.fspath(folder), "run.json"), encoding="utf-8") as f:
        loaded: Dict[str, Any] = json.load(f)
    return loaded


def read(folder: Folder) -> "Dict[str, pandas.DataFrame]":
    """Contains a frame for each table: tokens, layers, experts, series, vocab, controls, rounds. Columns that the file lacks contain missing values.
    As in replays, lines after the last whole round are omitted unless the trace was closed. vocab's text is bytes.
    A table whose length changed after the trace was closed is read as it is, with a warning."""
    import pandas

    frames: "Dict[str, pandas.DataFrame]" = {}
    for table, columns in COLUMNS.items():
        name = os.path.join(os.fspath(folder), table + ".csv")
        kinds = {c: str for c in TEXTS | {"source", "probed_by", "model", "top", "experts"} if c in columns}
        if os.path.exists(name):
            with open(name, encoding="utf-8", newline="") as f:
                whole = f.read()
            whole = whole[: whole.rfind("\n") + 1]  # a line that is still being written is none
            header, end, lines = whole.partition("\n")
            whole = ",".join(FORMER.get(column, column) for column in header.split(",")) + end + lines
            frame = pandas.read_csv(io.StringIO(whole), dtype=kinds, keep_default_na=False, na_values={
                c: [""] for c in columns if c not in kinds})
        else:
            frame = pandas.DataFrame(columns=columns)
        for column in columns:
            if column not in frame:
                frame[column] = "" if column in kinds else float("nan")
            elif column == "text":
                frame[column] = frame[column].map(unescape)
            elif column in TEXTS:
                frame[column] = frame[column].map(lambda text: unescape(text).decode("utf-8", "replace"))
        frames[table] = frame
    info = run_json(folder)
    closed = info.get("closed_event")
    lines = info.get("lines") if closed is not None else None
    for table, frame in frames.items():
        then = lines.get(table + ".csv") if isinstance(lines, dict) else None
        if then is not None and then != len(frame):
            warnings.warn("%s.csv has %d lines, and %s when the trace was closed: it was changed since"
                          % (os.path.join(os.fspath(folder), table), len(frame), then), stacklevel=2)
    rounds = frames["rounds"]["event"]
    last = closed if closed is not None else rounds.max() if len(rounds) > 0 else 0
    return {table: frame[frame["event"] <= last] for table, frame in frames.items()}
