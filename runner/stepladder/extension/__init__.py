"""The Python-defined transform extension: the `tc` dialect, one op a module."""

from __future__ import annotations

from stepladder.bindings import ir
from stepladder.extension import (  # noqa: F401  (an op registers itself when its module is imported)
    dialect,
    insert_barrier,
    issue_loads_early,
    join_fragment_loads,
    normalize_payload,
    order_transposed_tiles,
    pack_shared_memory,
    rasterize_blocks,
    reinterpret_elements,
    rotate_loop,
    spread_copies,
)


def load() -> None:
    """Makes the `tc` dialect known to the current MLIR context; once a context."""
    dialect.Tc.load()
    dialect.attach_all(ir.Context.current)
