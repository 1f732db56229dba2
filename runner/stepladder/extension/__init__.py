"""The Python-defined transform extension: the `tc` dialect, one op a module."""

from __future__ import annotations

from stepladder.bindings import ir
from stepladder.extension import dialect, issue_loads_early, normalize_payload, pack_shared_memory

OPS = (normalize_payload, issue_loads_early, pack_shared_memory)


def load() -> None:
    """Makes the `tc` dialect known to the current MLIR context; once a context."""
    dialect.Tc.load()
    dialect.attach_all(ir.Context.current)
