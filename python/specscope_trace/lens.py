"""The prediction of each layer from inside of an engine, as a trace. Forward hooks apply the model's final norm and
head to the states after its layers (the logit lens). The text does not change.

transformers, on any devices (`device_map`), with or without an assistant:

    with Lens(model, "run1", tokenizer) as lens:
        model.generate(**tokenizer(prompt, return_tensors="pt"), streamer=lens)

A loop of your own calls lens.put(prompt_ids) before the first pass, lens.put([token]) after each pass and lens.end().

vLLM, with --worker-extension-cls specscope_trace.lens.VllmLens --enforce-eager; python/README.md contains the commands.

    python3 -m specscope_trace.lens SERVER LENS NEW

joins the trace of a server with the lens's trace of the same text: rounds of the one, layers of the other."""

import csv
import json
import re
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from .reader import run_json
from .tables import COLUMNS, TEXTS, line, unescape
from .writer import Model, Trace

NORMS = ("norm", "final_layernorm", "final_layer_norm", "ln_f", "norm_f", "final_norm", "ln_out", "layer_norm")


def find(model: Any, count: int) -> Tuple[Any, Any]:
    """Returns the list of `count` layers and the final norm beside it."""
    for name, module in model.named_modules():
        norms = [getattr(module, norm) for norm in NORMS if getattr(module, norm, None) is not None]
        for _, layers in module.named_children() if norms and not re.search("vision|visual|audio", name) else ():
            if hasattr(layers, "__len__") and len(layers) == count:
                return layers, norms[0]
    raise ValueError("%s has no list of %d layers with a final norm beside it (%s): the lens cannot read it"
                     % (type(model).__name__, count, ", ".join(NORMS)))


def token_bytes(tokenizer: Any) -> Callable[[int], bytes]:
    """Returns a function from an id to its bytes, for byte-level and SentencePiece vocabularies of transformers."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte = {chr(b): b for b in plain}
    byte.update((chr(256 + i), b) for i, b in enumerate(b for b in range(256) if b not in plain))
    byte_level = "\u0120" in tokenizer.get_vocab()

    def text(i: int) -> bytes:
        piece = tokenizer.convert_ids_to_tokens(i) or ""
        if byte_level and i not in tokenizer.added_tokens_decoder and byte.keys() >= {*piece}:
            return bytes(byte[ch] for ch in piece)
        digits = re.fullmatch("<0x([0-9A-F]{2})>", piece)
        return bytes.fromhex(digits[1]) if digits else piece.replace("\u2581", " ").encode()

    return text


def move(states: Any, module: Any) -> Any:
    """Moves states to the module's device. accelerate moves them itself to weights that are not loaded."""
    weight = next(module.parameters(), None)
    return states if weight is None or weight.device.type == "meta" else states.to(weight.device)


class Lens(AbstractContextManager):  # type: ignore[type-arg]
    """Hooks on a model of transformers, and a streamer for its generate(). layers: the numbers of those that are read,
    from 1; None: all. The last one always is: if it does not predict what the model does, the first pass raises
    ValueError."""

    def __init__(self, model: Any, folder: str, tokenizer: Any = None, *, layers: Optional[Sequence[int]] = None,
                 config: Any = None, backend: str = "transformers") -> None:
        self.model, self.config = model, config or model.config.get_text_config()
        self.count = int(self.config.num_hidden_layers)
        self.layers = sorted({*(layers or range(1, self.count + 1)), self.count})
        if self.layers[0] < 1 or self.layers[-1] > self.count:
            raise ValueError("the layers are 1 to %d" % self.count)
        stack, self.norm = find(model, self.count)
        self.trace = self.open(folder, backend, token_bytes(tokenizer) if tokenizer is not None else None)
        self.length: Optional[int] = None  # of the text so far; None: none has begun
        self.take: Any = None  # the rows of this pass that are read; None: none
        self.drafts: List[int] = []  # in the rows of this pass
        self.states: Dict[int, Any] = {}
        self.checked, self.since, self.begun = False, 0.0, 0.0
        self.hooks = [stack[i - 1].register_forward_hook(self.guard(self.keep(i))) for i in self.layers]
        self.hooks.append(model.register_forward_pre_hook(self.guard(self.before), with_kwargs=True))
        self.hooks.append(model.register_forward_hook(self.guard(self.after)))

    def open(self, folder: str, backend: str, decode: Optional[Callable[[int], bytes]]) -> Any:
        c = self.config
        model = Model(str(getattr(c, "_name_or_path", "") or c.model_type), layers=self.count, vocab=int(c.vocab_size),
                      architecture=c.model_type, width=c.hidden_size)
        context = getattr(c, "max_position_embeddings", None) or 1 << 17
        return Trace(folder, model=model, policy=backend, context=context, decode=decode, backend=backend)

    # ---- what differs between engines ----

    def guard(self, step: Callable[..., Any]) -> Callable[..., Any]:
        return step

    def logits(self, normed: Any) -> Any:
        head = self.model.get_output_embeddings()
        if head is None:
            raise ValueError("%s has no LM head (get_output_embeddings())" % type(self.model).__name__)
        names = "logit_scale", "logits_scaling", "final_logit_softcapping"
        times, over, cap = (getattr(self.config, name, None) for name in names)
        out = head(move(normed, head)).float() * (times or 1) / (over or 1)
        return (out / cap).tanh() * cap if cap else out

    def own(self, output: Any) -> Any:
        """The model's own logits of the last row."""
        return output[0][:, -1].float()

    def rows(self, args: Any, kwargs: Any) -> Optional[Tuple[int, int, Any]]:
        """Where the text's rows are in this pass: the position of the first one, its index, and their ids."""
        ids, cache = kwargs.get("input_ids", args[0] if args else None), kwargs.get("past_key_values")
        if ids is None or len(ids) != 1:
            raise ValueError("the lens reads one sequence, given as input_ids")
        cached = hasattr(cache, "get_seq_length")
        return int(cache.get_seq_length()) if cached else max(0, (self.length or 0) - len(ids[0])), 0, ids[0]

    # ---- hooks ----

    def before(self, module: Any, args: Any, kwargs: Any) -> None:
        self.take, at = None, self.rows(args, kwargs)
        self.begun, self.states = time.monotonic(), {}
        if self.length is None or at is None:
            return
        start, index, ids = at
        skipped = self.length - 1 - start  # rows before the one that predicts the next token
        if 0 <= skipped < len(ids):  # else it is a part of the prompt, or the model drafts with its first layers
            self.drafts = [int(i) for i in ids[skipped + 1:]]
            self.take = slice(index + skipped, index + len(ids))

    def keep(self, layer: int) -> Callable[[Any, Any, Any], None]:
        def hook(module: Any, args: Any, output: Any) -> None:
            if self.take is not None:
                x, *more = output if isinstance(output, tuple) else (output,)
                state = x.detach().reshape(-1, x.shape[-1])[self.take].clone()
                if more and getattr(more[0], "shape", None) == x.shape:  # vLLM hands a sum on in two parts
                    state += more[0].reshape(-1, x.shape[-1])[self.take]
                self.states[layer] = state

        return hook

    def after(self, module: Any, args: Any, output: Any) -> None:
        if self.take is not None and not self.checked and self.count in self.states:
            apart = float((self.own(output).softmax(-1) - self.read(-1)[-1:].exp()).abs().sum()) / 2
            if not apart < (1e-3 if self.states[self.count].element_size() == 4 else 0.05):
                raise ValueError("the last layer, norm and head do not predict what %s does (%.3g apart): the lens "
                                 "does not know this architecture" % (type(self.model).__name__, apart))
            self.checked = True

    def read(self, row: int) -> Any:
        """Returns log-probabilities after each layer."""
        import torch

        with torch.no_grad():
            states = torch.stack([move(self.states[layer][row], self.norm) for layer in self.layers])
            return self.logits(self.norm(states)).log_softmax(-1)

    # ---- the text ----

    def put(self, tokens: Any) -> None:
        """Gets the prompt's ids, then the tokens of each pass, as a streamer of transformers does."""
        now = time.monotonic()
        ids = [int(i) for i in (tokens.flatten().tolist() if hasattr(tokens, "flatten") else tokens)]
        if self.length is None:
            self.trace.begin(ids)
            self.length, self.since = len(ids), now
            return
        if self.take is None or self.states.keys() != set(self.layers):
            raise ValueError("put() got a token that does not follow from the last pass")
        pairs = [*zip(ids, self.drafts), (0, None)]
        n = next(i for i, (token, draft) in enumerate(pairs) if token != draft)
        if len(ids) - n > 1:
            raise ValueError("%d tokens of one pass, which had %d of them as drafts" % (len(ids), n))
        for row in range(len(ids)):
            for layer, said in zip(self.layers, self.guesses(self.read(row))):
                by = "verify" if layer == self.count else "scope"
                self.trace.layer(self.length + row, layer, head=0, probed_by=by, **said)
        self.trace.round(self.drafts, n, ids[n] if n < len(ids) else None, draft_seconds=self.begun - self.since,
                         verify_seconds=now - self.begun)
        self.length += len(ids)
        self.take, self.since = None, time.monotonic()

    @staticmethod
    def guesses(log_p: Any) -> Iterator[Dict[str, Any]]:
        p, said = log_p.exp(), log_p.argmax(-1).tolist()
        top = p.topk(5)
        columns = (top.indices, top.values, -(p * log_p).sum(-1), (p[-1] * (log_p[-1] - log_p)).sum(-1),
                   (log_p > log_p[:, said[-1]:said[-1] + 1]).sum(-1))
        for token, ids, best, entropy, kl, rank in zip(said, *(column.tolist() for column in columns)):
            ids = [token, *(i for i in ids if i != token)]  # of equal ones, the engine takes the first
            yield {"token": token, "confidence": best[0], "entropy": entropy, "kl_final": kl, "rank_final": rank,
                   "final_agrees": token == said[-1], "top": list(zip(ids, best))}

    def end(self, reason: str = "tokens") -> None:
        """Ends the text; the next put() begins another one."""
        self.trace.end(reason)
        self.length = self.take = None

    def close(self) -> None:
        for hook in self.hooks:
            hook.remove()
        self.trace.close()

    def __exit__(self, *_: object) -> None:
        self.close()


# ---- vLLM ----

class Kept:
    """The trace of a worker; None: of another one than the first. Its errors do not stop what the group computes."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace

    def __getattr__(self, name: str) -> Callable[..., None]:
        def attempt(*args: Any, **kwargs: Any) -> None:
            try:
                if self.trace is not None:
                    getattr(self.trace, name)(*args, **kwargs)
            except (OSError, ValueError) as e:
                self.trace = None
                print("specscope_trace.lens writes no more: %s" % e, file=sys.stderr)

        return attempt


class Runner(Lens):
    """The lens on a model runner of vLLM. It follows one request at a time, from its beginning."""

    request: Any = None  # what the runner knows about it

    def __init__(self, runner: Any, folder: str, layers: Sequence[int], first: bool) -> None:
        self.runner, self.first, config = runner, first, runner.model_config
        stages = runner.vllm_config.parallel_config.pipeline_parallel_size
        if not hasattr(runner, "_sample") or not config.enforce_eager or stages > 1:
            raise ValueError("the lens needs --enforce-eager, VLLM_USE_V2_MODEL_RUNNER=0 and no pipeline stages")
        from transformers import AutoTokenizer

        super().__init__(runner.get_model(), folder, AutoTokenizer.from_pretrained(
            config.tokenizer, trust_remote_code=config.trust_remote_code), layers=layers, config=config.hf_text_config,
            backend="vllm")
        self.sample, runner._sample = runner._sample, self.sampled

    def guard(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any) -> None:
            try:
                step(*args)
            except Exception as e:  # ends the lens, and not the engine
                print("specscope_trace.lens ended: %s" % e, file=sys.stderr)
                self.close()

        return guarded

    def open(self, *args: Any) -> Any:
        return Kept(super().open(*args) if self.first else None)

    def logits(self, normed: Any) -> Any:
        return self.model.compute_logits(normed).float()  # with scales and caps

    def own(self, output: Any) -> Any:
        hidden = output[0] if isinstance(output, tuple) else output
        return self.logits(hidden[self.take][-1:])

    def rows(self, args: Any, kwargs: Any) -> Optional[Tuple[int, int, Any]]:
        batch, known = self.runner.input_batch, self.runner.requests
        if self.length is not None and known.get(self.request.req_id) is not self.request:
            self.end()  # it was cancelled, or a text stopped it
        for request in [known[i] for i in batch.req_ids] if self.length is None else []:
            if self.length is None and request.prompt_token_ids and not request.output_token_ids:
                self.request = request
                self.put(request.prompt_token_ids)
        index = batch.req_id_to_index.get(self.request.req_id) if self.length is not None else None
        if index is None:
            return None
        begin, end = self.runner.query_start_loc.np[index:index + 2].tolist()
        return int(kwargs["positions"][..., begin].flatten()[0]), begin, self.runner.input_ids.gpu[begin:end]

    def sampled(self, *args: Any, **kwargs: Any) -> Any:
        out = self.sample(*args, **kwargs)
        if self.take is not None:
            self.guard(self.got)(out.sampled_token_ids)
        return out

    def got(self, sampled: Any) -> None:
        wanted, limit = self.request.sampling_params, self.runner.model_config.max_model_len
        index = self.runner.input_batch.req_id_to_index[self.request.req_id]
        ids = [i for i in sampled[index].tolist() if i >= 0]
        stops = {wanted.eos_token_id, *(wanted.stop_token_ids or ())}
        room = min(limit, len(self.request.prompt_token_ids) + (wanted.max_tokens or limit)) - (self.length or 0)
        last = min([room] + [n + 1 for n, i in enumerate(ids) if i in stops])
        self.put(ids[:last])
        if last <= len(ids):
            self.end("eos" if ids[last - 1] in stops else "tokens")

    def close(self) -> None:
        self.runner._sample = self.sample
        super().close()


class VllmLens:
    """An extension of vLLM's workers: two calls for collective_rpc()."""

    def lens_start(self, folder: str, layers: str = "") -> str:
        """Writes a trace into the folder from the next request on. layers: "8,16,24"; "": all."""
        self.lens_stop()
        self._lens: Any = Runner(self.model_runner, folder, [int(i) for i in layers.split(",") if i],  # type: ignore
                                 self.rank == 0)  # type: ignore[attr-defined]
        return "the lens reads %d layers" % len(self._lens.layers)

    def lens_stop(self) -> Any:
        lens, self._lens = getattr(self, "_lens", None), None
        return lens and lens.close()


# ---- a server's rounds with the lens's layers ----

Row = Dict[str, str]


def tables_of(folder: str) -> Dict[str, List[Row]]:
    """Returns the whole lines of each table."""
    files = {table: Path(folder, table + ".csv") for table in COLUMNS}
    whole = {table: f.read_text("utf-8").split("\n")[:-1] for table, f in files.items() if f.exists()}
    return {table: list(csv.DictReader(lines)) for table, lines in whole.items()}


def texts(tables: Dict[str, List[Row]]) -> Dict[Tuple[str, str], Dict[str, Row]]:
    """Returns the committed tokens of each run and sequence, by position."""
    found: Dict[Tuple[str, str], Dict[str, Row]] = {}
    for row in tables["tokens"]:
        if row["source"] != "draft" or row.get("committed") == "1":
            found.setdefault((row["run"], row["seq"]), {})[row["pos"]] = row
    return found


def join(server: str, lens: str, new: str) -> int:
    """Writes the server's trace with the lens's layers into a new folder; returns the number of joined texts. Events
    are numbered anew: layers go before the end of their round, and new words behind the first token."""
    info, model = run_json(server), run_json(lens)["model"]
    tables, other = tables_of(server), tables_of(lens)
    rows: List[Tuple[int, int, str, Row]] = []

    def add(table: str, row: Row, place: Row, order: int) -> None:
        row.update({k: place[k] for k in ("t_us", "run", "seq", "round")})
        rows.append((int(place["event"]), order, table, row))

    words = {row["token_id"] for row in tables.get("vocab", [])}
    for word in [word for word in other["vocab"] if word["token_id"] not in words]:
        add("vocab", word, tables["tokens"][0], 2)
    ends = {(r["run"], r["seq"], r["round"]): r for r in tables["rounds"]}
    lenses, joined = texts(other), set()
    for key, text in texts(tables).items():
        run = next((run for run, theirs in lenses.items() if text.keys() & theirs.keys() and all(
            text[pos]["token_id"] == theirs[pos]["token_id"] for pos in text.keys() & theirs.keys())), ("", ""))
        lenses.pop(run, None)
        for row in [r for r in other["layers"] if (r["run"], r["seq"]) == run and r["pos"] in text]:
            token = text[row["pos"]]
            end = ends.get((*key, token["round"]))
            joined.add((*key, row["pos"]))
            add("layers", row, end or token, 0 if end else 2)
    if not joined:
        raise ValueError("no text of the one is a text of the other")
    for table, row in [(table, row) for table, lines in tables.items() for row in lines]:
        row.update({k: str(model["layers"]) for k in ("layer", "exit_layer") if row.get(k)})  # it knows only the last
        if table != "layers" or (row["run"], row["seq"], row["pos"]) not in joined:
            rows.append((int(row["event"]), 1, table, row))
    written: Dict[str, List[str]] = {table: [",".join(COLUMNS[table]) + "\n"] for table in (*tables, "layers", "vocab")}
    for number, (_, _, table, row) in enumerate(sorted(rows, key=lambda row: row[:2]), 1):
        values = {c: unescape(v) if c in TEXTS else v for c, v in row.items() if v}
        written[table].append(line(table, {**values, "event": number}))
    info["model"] = {**model, **info["model"], "layers": model["layers"], "vocab": model["vocab"]}
    info.update(closed_event=len(rows), lines={table + ".csv": len(lines) - 1 for table, lines in written.items()})
    Path(new).mkdir(parents=True)
    for table, lines in written.items():
        Path(new, table + ".csv").write_text("".join(lines), "utf-8")
    Path(new, "run.json").write_text(json.dumps(info, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return len({key[:2] for key in joined})


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python3 -m specscope_trace.lens SERVER LENS NEW")
    try:
        print("%d texts joined" % join(*sys.argv[1:]))
    except (OSError, ValueError, KeyError) as e:
        sys.exit("cannot join %s and %s: %s" % (sys.argv[1], sys.argv[2], e))
