"""Traces of generation loops: `Trace` writes one that `specscope replay` shows, and `replay --follow` while it is written;
`read` takes one into pandas. The format is docs/traces.md of specscope."""

from .reader import read, run_json
from .writer import Draft, Model, Policy, Trace

__all__ = ["Draft", "Model", "Policy", "Trace", "read", "run_json"]
