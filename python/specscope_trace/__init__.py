"""Traces of generation loops: `Trace` writes one that `specscope replay` shows, and `replay --follow` while it is written;
`read` reads one into pandas. specscope's docs/traces.md defines the format."""

from .reader import read, run_json
from .writer import Draft, Model, Policy, Trace

__all__ = ["Draft", "Model", "Policy", "Trace", "read", "run_json"]
