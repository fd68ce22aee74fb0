"""Writes a trace, line by line, during a generation loop. It needs only the standard library."""

import json
import math
import operator
import os
import re
import time
from dataclasses import dataclass, field as member
from types import TracebackType
from typing import Callable, Dict, List, Mapping, Optional, Sequence, TextIO, Tuple, Type, Union

from .tables import COLUMNS, COMMON, FORMAT, ORDER, Field, escape, line, real

NODES = 64  # drafts that one round can have, and one


@dataclass
class Model:
    """The model that generates. Members that are None are missing in the trace."""

    name: str
    layers: int
    vocab: int
    architecture: Optional[str] = None
    types: Optional[str] = None  # of the weights: "F16"
    width: Optional[int] = None
    heads: Optional[int] = None
    kv_heads: Optional[int] = None
    ffn: Optional[int] = None
    layer_kinds: Optional[str] = None  # if layers differ: for each "a" attention, "w" within a window, or "r" recurrent
    experts: Optional[int] = None  # of a mixture: of a layer that has any,
    experts_used: Optional[int] = None  # and those that a row goes to
    parameters: Optional[int] = None
    rho: Optional[float] = None  # bytes of the LM head over bytes of a layer: for modelled speedups
    path: Optional[str] = None


@dataclass
class Policy:
    """A speculation policy, with a name of at most 15 characters for its rounds."""

    name: str
    title: Optional[str] = None
    paper: Optional[str] = None
    knobs: List[Dict[str, Union[str, float, List[str]]]] = member(default_factory=list)  # docs/traces.md
    series: List[Dict[str, Union[str, int]]] = member(default_factory=list)


@dataclass
class Draft:
    """A drafted token. exit_layer: the layer that predicted it; None if no layer of the model did."""

    token: int
    exit_layer: Optional[int] = None
    confidence: Optional[float] = None
    annealed: Optional[float] = None
    head: Optional[int] = None
    parent: Optional[int] = None  # of a tree: the number of the draft it follows, from 1; 0: the last token


class Trace:
    """A trace in a folder that contains none yet.

        with Trace("run1", model=Model("gpt2", layers=12, vocab=50257), policy="early", context=1024,
                   decode=tokenizer.decode) as t:
            t.begin(prompt_ids)
            …
            t.layer(pos, 4, token, confidence=0.8)         # a layer's prediction at a position: as many as you like
            t.round([Draft(token, exit_layer=4), …], accepted=2, token=correction,
                    draft_seconds=0.01, verify_seconds=0.02)

    A round is on disk when round() returns, so `specscope replay --follow run1` shows it. decode(id) gives a token's text
    or bytes; without it ids are shown. Wrong arguments raise ValueError and leave the trace as it was."""

    def __init__(self, folder: Union[str, "os.PathLike[str]"], *, model: Model, policy: Union[str, Policy] = "custom",
                 context: int, prompt: Union[str, bytes] = "", decode: Optional[Callable[[int], Union[str, bytes]]] = None,
                 policies: Sequence[Union[str, Policy]] = (), temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0,
                 seed: Optional[int] = None, backend: Optional[str] = None, device: Optional[str] = None,
                 sequences: int = 1, cost: Optional[Mapping[str, object]] = None) -> None:
        self.folder = os.fspath(folder)
        self.model = model
        declared = [p if isinstance(p, Policy) else Policy(p) for p in (policy, *policies)]
        self._policies = {p.name: p for p in declared}
        self._context = context
        self._decode = decode
        self._info = self._describe(declared[0], prompt, temperature, top_k, top_p, seed, backend, device, sequences)
        if cost is not None:  # measured times of steps: the member `cost` of docs/traces.md
            self._info["cost"] = dict(cost)
        self._number = self._run = self._round = 0
        self._policy = declared[0].name
        self._positions: Dict[int, int] = {}  # by sequence: where the next token goes
        self._known: set[int] = set()
        self._start = time.monotonic_ns()
        self._ended = True
        self._lines: Dict[str, List[str]] = {table: [] for table in ORDER}
        self._written = {table: 0 for table in self._tables()}  # lines on disk, the header aside
        self._after: List[Tuple[str, int, Dict[str, Field]]] = []  # lines that follow the tokens of their round
        self._files = self._open()

    # ---- opening and closing ----

    def _describe(self, first: Policy, prompt: Union[str, bytes], temperature: float, top_k: int, top_p: float,
                  seed: Optional[int], backend: Optional[str], device: Optional[str], sequences: int) -> Dict[str, object]:
        m = self.model
        if not (1 <= m.layers <= 4096 and m.vocab >= 1 and self._context >= 1 and sequences >= 1):
            raise ValueError("a model has 1 to 4096 layers, a vocabulary and a context")
        if m.layer_kinds is not None and not re.fullmatch("[awr]{%d}" % m.layers, m.layer_kinds):
            raise ValueError("layer_kinds is a letter a, w or r for each layer")
        if m.experts is not None and not 1 <= m.experts <= 4096 or (m.experts_used or 1) > (m.experts or 1):
            raise ValueError("a mixture has 1 to 4096 experts, and a row goes to no more than there are")
        for policy in self._policies.values():
            if not re.fullmatch(r"[\x21-\x7e]{1,15}", policy.name):
                raise ValueError("%r: a policy's name has 1 to 15 printable characters and no space" % policy.name)
        model: Dict[str, object] = {k: v for k, v in vars(m).items() if v is not None}
        if m.parameters is not None:
            model["parameters"] = str(m.parameters)
        info: Dict[str, object] = {"format": FORMAT, "specscope": "", "written_by": "specscope_trace",
                                   "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "model": model}
        info.update({k: v for k, v in (("backend", backend), ("isa", device)) if v is not None})
        info.update({"ctx": self._context, "sequences": sequences, "prompts": sequences, "prompt": escape(prompt),
                     "sampling": {"temperature": temperature, "top_k": top_k, "top_p": top_p}, "policy": first.name})
        if seed is not None:
            info["seed"] = str(seed)
        info["policies"] = [{k: v for k, v in vars(p).items() if v not in (None, [])} for p in self._policies.values()]
        return info

    def _tables(self) -> List[str]:
        return [table for table in ORDER if table != "experts" or self.model.experts is not None]

    def _open(self) -> Dict[str, TextIO]:
        os.makedirs(self.folder, exist_ok=True)
        names = ["run.json"] + [table + ".csv" for table in ORDER]
        for name in names:
            if os.path.exists(os.path.join(self.folder, name)):
                raise FileExistsError("%s already holds a trace: give another folder, or delete that one" % self.folder)
        files: Dict[str, TextIO] = {t: open(os.path.join(self.folder, t + ".csv"), "x", encoding="utf-8", newline="") for t in self._tables()}
        for table, f in files.items():
            f.write(",".join(COLUMNS[table]) + "\n")
            f.flush()
        self._write_run_json()  # last: with it the trace is one
        return files

    def _write_run_json(self) -> None:
        name = os.path.join(self.folder, "run.json")
        with open(name + ".part", "w", encoding="utf-8") as f:
            json.dump(self._info, f, indent=1, ensure_ascii=False)
            f.write("\n")
        os.replace(name + ".part", name)

    def close(self) -> None:
        """Ends the run and marks the trace as complete. A trace that was never closed replays up to its last round."""
        if not self._files:
            return
        self.end("closed")
        for f in self._files.values():
            f.close()
        self._files = {}
        if self._number > 0:
            self._info["closed_event"] = self._number
            self._info["lines"] = {table + ".csv": n for table, n in self._written.items()}
            self._write_run_json()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 where: Optional[TracebackType]) -> None:
        self.close()

    # ---- events ----

    def _add(self, table: str, seq: int, values: Mapping[str, Field]) -> None:
        self._number += 1
        common: Tuple[int, ...] = (self._number, (time.monotonic_ns() - self._start) // 1000, self._run, seq)
        every: Dict[str, Field] = dict(zip(COMMON, common))
        every.update(values)
        self._lines[table].append(line(table, every))

    def flush(self) -> None:
        """Writes buffered lines to disk, as round() does."""
        for table in ORDER:
            if self._lines[table]:
                self._files[table].write("".join(self._lines[table]))
                self._files[table].flush()
                self._written[table] += len(self._lines[table])
                self._lines[table] = []

    def _token_is(self, token: int, seq: int) -> None:
        if token in self._known or self._decode is None:
            return
        self._known.add(token)
        self._add("vocab", seq, {"token_id": token, "text": self._decode(token)})

    def _check_token(self, token: int) -> int:
        token = int(token)
        if not 0 <= token < self.model.vocab:
            raise ValueError("token %d is beyond the vocabulary of %d" % (token, self.model.vocab))
        return token

    def _check_layer(self, layer: Optional[int], least: int = 1) -> Optional[int]:
        if layer is None:
            return None
        layer = int(layer)
        if not least <= layer <= self.model.layers:
            raise ValueError("layer %d is none of %d to %d" % (layer, least, self.model.layers))
        return layer

    def _check_pos(self, pos: int) -> int:
        pos = int(pos)
        if not 0 <= pos <= self._context:
            raise ValueError("position %d is beyond the context of %d" % (pos, self._context))
        return pos

    def _check_run(self) -> None:
        if self._ended:
            raise ValueError("no run has begun: begin(prompt_ids) comes first")

    def begin(self, prompt: Sequence[int], *, seq: int = 0) -> None:
        """Begins a run of one sequence with the token ids of its prompt. For several sequences, call it once for each, with seq from 0."""
        ids = [self._check_token(token) for token in prompt]
        if len(ids) > self._context:
            raise ValueError("a prompt of %d tokens is beyond the context of %d" % (len(ids), self._context))
        if seq == 0:
            self.end("tokens")
            self._run += 1
            self._round = 0
            self._positions = {}
            self._start = time.monotonic_ns()
            self._ended = False
            self.control("run", "start")
        self._check_run()
        for pos, token in enumerate(ids):
            self._token_is(token, seq)
            self._add("tokens", seq, {"round": 0, "pos": pos, "token_id": token, "source": "prompt", "committed": True})
        self._positions[seq] = len(ids)

    def end(self, reason: str = "tokens") -> None:
        """Ends the run, with a reason such as "tokens", "eos" or "context"."""
        if not self._ended:
            self._add("controls", 0, {"round": self._round, "name": "end", "new": reason, "applied_round": self._round})
            self.flush()
        self._ended = True

    def control(self, name: str, new: str = "", old: str = "", *, seq: int = 0) -> None:
        """Records a change by the user or the loop: a knob's name and its value, "policy" and its name, "note", …"""
        self._check_run()
        if name == "policy" and new not in self._policies:
            raise ValueError("policy %r was not declared" % new)
        if not re.fullmatch(r"[\x20-\x7e]{1,23}", name):
            raise ValueError("%r: a name has 1 to 23 printable characters" % name)
        self._policy = new if name == "policy" else self._policy
        self._add("controls", seq, {"round": self._round, "name": name, "old": old, "new": new,
                                    "applied_round": self._round + (name != "run")})

    def series(self, key: str, value: float, *, index: int = 0, seq: int = 0) -> None:
        """Records a value of the policy for the next round; the policy declares the key."""
        self._check_run()
        if not re.fullmatch(r"[\x20-\x7e]{1,23}", key) or not 0 <= index < 1 << 20:
            raise ValueError("a series has a key of 1 to 23 printable characters and an index from 0")
        self._add("series", seq, {"round": self._round + 1, "key": key, "index": int(index), "value": real(value)})

    def layer(self, pos: int, layer: int, token: Optional[int] = None, confidence: Optional[float] = None, *,
              annealed: Optional[float] = None, entropy: Optional[float] = None, kl_final: Optional[float] = None,
              rank_final: Optional[int] = None, final_agrees: Optional[bool] = None,
              top: Sequence[Tuple[int, float]] = (), head: Optional[int] = None, probed_by: str = "policy",
              acceptance: Optional[float] = None, seq: int = 0) -> None:
        """Writes the prediction of a layer (1 to L) for the token at `pos`, read from the row at pos - 1. rank_final: the rank of its
        token in the last layer's distribution, 0: the best; top: (id, probability) in descending order, five at most;
        acceptance: of the token at pos - 1, by a draft model's acceptance head."""
        self._check_run()
        if probed_by not in ("policy", "verify", "scope"):
            raise ValueError("probed_by is policy, verify or scope")
        if len(top) > 5:
            raise ValueError("top has at most five tokens")
        said = None if token is None else self._check_token(token)
        best = [(self._check_token(i), float(p)) for i, p in top]
        values: Dict[str, Field] = {
            "round": self._round + 1, "pos": self._check_pos(pos), "layer": self._check_layer(layer), "token_id": said,
            "confidence": real(confidence), "annealed": real(annealed), "entropy": real(entropy),
            "kl_final": real(kl_final), "rank_final": None if rank_final is None else int(rank_final),
            "final_agrees": None if final_agrees is None else bool(final_agrees),
            "top": " ".join("%d:%.9g" % pair for pair in best), "head": head, "probed_by": probed_by,
            "acceptance": real(acceptance)}
        for i in ([] if said is None else [said]) + [i for i, _ in best]:
            self._token_is(i, seq)
        if probed_by == "policy":
            self._add("layers", seq, values)
        else:
            self._after.append(("layers", seq, values))

    def experts(self, pos: int, layer: int, chosen: Sequence[Tuple[int, float]], *, seq: int = 0) -> None:
        """Records the experts of a layer for the row before the token at `pos` (the one at pos - 1), as (expert, weight);
        the 16 heaviest are kept. Call it for rows that the next round commits, as layer()."""
        self._check_run()
        count = self.model.experts
        if count is None or not chosen:
            raise ValueError("expert ids need a model with experts, and at least one id")
        pairs = sorted(((int(e), float(w)) for e, w in chosen), key=lambda pair: (-pair[1], pair[0]))[:16]
        if any(not 0 <= e < count or not math.isfinite(w) for e, w in pairs):
            raise ValueError("an expert is none of %d, or its weight no number" % count)
        self._after.append(("experts", seq, {
            "round": self._round + 1, "pos": self._check_pos(pos), "layer": self._check_layer(layer),
            "experts": " ".join("%d:%.9g" % pair for pair in pairs)}))

    def round(self, drafts: Sequence[Union[int, Draft]], accepted: Union[int, Sequence[bool]], token: Optional[int] = None,
              *, draft_seconds: float, verify_seconds: float, confidence: Optional[float] = None,
              verified: Optional[int] = None, layers_loaded: Optional[float] = None, heads_loaded: Optional[float] = None,
              exit_layer: Optional[int] = None, threshold: Optional[float] = None, d_max: Optional[int] = None,
              w_max: Optional[int] = None, verify_experts: Optional[float] = None, stop_reason: str = "",
              reject_rank: Optional[int] = None, seq: int = 0, last: bool = True) -> None:
        """Records a round: the drafts, how many were accepted (of a tree: which), and the token that the full model
        gave itself: a correction, or a bonus where all were accepted; None where there was none: the last accepted draft
        ended the text, and drafts after it are cut.
        layers_loaded: layers' weights read, heads_loaded: LM heads, both for modelled speedups. verify_experts: of a
        mixture, the experts that the verification read at a layer, on average. reject_rank: at the first rejection, the
        rank of the full model's token among the drafter's predictions, from 1; 0: it is not among the first ones that
        are known. last=False: other sequences have a line of this round, too; the last one ends it."""
        self._check_run()
        nodes = [d if isinstance(d, Draft) else Draft(int(d)) for d in drafts]
        flags = self._verdicts(nodes, accepted)
        parents = [i if d.parent is None else int(d.parent) for i, d in enumerate(nodes)]
        if any(not 0 <= parent <= i for i, parent in enumerate(parents)):
            raise ValueError("a draft's parent comes before it")
        depths = [0]
        for parent in parents:
            depths.append(depths[parent] + 1)
        kept = [token is not None or depth <= sum(flags) for depth in depths[1:]]
        judged = sum(kept) if verified is None else verified
        if not sum(flags) <= judged <= sum(kept):
            raise ValueError("%d verified of %d drafts with %d accepted" % (judged, len(nodes), sum(flags)))
        if reject_rank is not None and reject_rank < 0:
            raise ValueError("a rank is at least 1, or 0 if the token is not listed")
        first = self._positions.get(seq, 0)
        self._check_pos(first + sum(flags) + 1)
        of_trunk = None if token is None else self._check_token(token)
        lines = [self._draft_values(d, parents[i], i, first + depths[i + 1] - 1,
                                    flags[i] if kept[i] and sum(kept[:i]) < judged else None)
                 for i, d in enumerate(nodes)]
        self._check_layer(exit_layer, 0)
        self._check_layer(d_max, 0)
        number = self._round + 1
        for d, values in zip(nodes, lines):
            self._token_is(int(d.token), seq)
            self._add("tokens", seq, {"round": number, **values})
        self._number += judged  # verdicts have no lines, but numbers
        if of_trunk is not None:
            self._token_is(of_trunk, seq)
            source = "bonus" if sum(flags) == len(nodes) else "correction"
            self._add("tokens", seq, {"round": number, "pos": first + sum(flags), "token_id": of_trunk, "source": source,
                                      "exit_layer": self.model.layers, "confidence": real(confidence), "committed": True})
        for table, of, values in self._after:
            self._add(table, of, values)
        self._after = []
        emitted = sum(flags) + (of_trunk is not None)
        self._positions[seq] = first + emitted
        self._add("rounds", seq, {
            "round": number, "policy": self._policy, "draft_us": round(draft_seconds * 1e6),
            "verify_us": round(verify_seconds * 1e6), "probe_us": 0, "drafted": sum(kept), "verified": judged,
            "accepted": sum(flags), "emitted": emitted, "exit_layer": exit_layer, "threshold": real(threshold),
            "d_max": d_max, "w_max": w_max, "layers_loaded": real(layers_loaded), "heads_loaded": real(heads_loaded),
            "stop_reason": stop_reason, "verify_experts": real(verify_experts),
            "reject_rank": None if reject_rank is None else int(reject_rank), "cut": len(nodes) - sum(kept)})
        self._round += last
        self.flush()

    def _draft_values(self, d: Draft, parent: int, i: int, pos: int, accepted: Optional[bool]) -> Dict[str, Field]:
        return {"pos": self._check_pos(pos), "parent": parent, "candidate": i + 1, "token_id": self._check_token(d.token),
                "source": "draft", "exit_layer": self._check_layer(d.exit_layer, 0), "confidence": real(d.confidence),
                "annealed": real(d.annealed), "head": d.head, "accepted": accepted, "committed": accepted}

    @staticmethod
    def _verdicts(nodes: Sequence[Draft], accepted: Union[int, Sequence[bool]]) -> List[bool]:
        if len(nodes) >= NODES:
            raise ValueError("a round has at most %d drafts" % (NODES - 1))
        if not isinstance(accepted, Sequence):
            accepted = operator.index(accepted)
            if not 0 <= accepted <= len(nodes):
                raise ValueError("%d of %d drafts accepted" % (accepted, len(nodes)))
            return [i < accepted for i in range(len(nodes))]
        flags = [bool(a) for a in accepted]
        if len(flags) != len(nodes):
            raise ValueError("a verdict for each draft, or how many were accepted")
        return flags

    @property
    def position(self) -> int:
        """Returns the position of the next token of sequence 0."""
        return self._positions.get(0, 0)
