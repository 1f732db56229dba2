"""Verification of `xetile` operations, beyond the constraints of IRDL. Each message names what is accepted."""

from __future__ import annotations

from collections.abc import Callable

from stepladder.mlir.bindings import ir
from stepladder.mlir.xetile import memory_rules, vector_rules
from stepladder.mlir.xetile.wg_map import Wrong

# By operation: its numbers of operands (None where an attribute has them), of results, and its rule.
RULES: dict[str, tuple[tuple[int, ...] | None, int, Callable[[ir.Operation], None]]] = {
    "init_tile": (None, 1, memory_rules.init_tile),
    "load_tile": ((1,), 1, memory_rules.load_tile),
    "store_tile": ((2,), 0, memory_rules.store_tile),
    "prefetch_tile": ((1,), 0, memory_rules.prefetch_tile),
    "update_tile_offset": ((3,), 1, memory_rules.update_tile_offset),
    "atomic_rmw": ((2,), 1, memory_rules.atomic_rmw),
    "load_gather": ((2,), 1, memory_rules.load_gather),
    "store_scatter": ((3,), 0, memory_rules.store_scatter),
    "tile_mma": ((2, 3), 1, vector_rules.tile_mma),
    "transpose": ((1,), 1, vector_rules.transpose),
    "reduction": ((1,), 1, vector_rules.reduction),
    "broadcast": ((1,), 1, vector_rules.broadcast),
    "convert_layout": ((1,), 1, vector_rules.convert_layout),
}


def verify(op: ir.Operation) -> bool:
    """Verifies an operation of the dialect; what is wrong becomes one error at its location.

    Args:
        op: of the dialect, in a module or alone.

    Returns:
        Whether the operation is valid.
    """
    try:
        _check_counts(op)
        RULES[op.name.partition(".")[2]][2](op)
    except Wrong as wrong:
        place = wrong.op if isinstance(wrong.op, ir.Operation) else op
        place.location.emit_error(str(wrong) if place is not op else f"{op.name}: {wrong}")
        return False
    except Exception as error:  # an exception would leave MLIR's verifier without a location
        op.location.emit_error(f"{op.name} cannot be verified in this form ({type(error).__name__}: {error})")
        return False
    return True


def _check_counts(op: ir.Operation) -> None:
    operands, results, _ = RULES[op.name.partition(".")[2]]
    if operands is not None and len(op.operands) not in operands:
        raise Wrong(f"it has {len(op.operands)} operands, expected {' or '.join(map(str, operands))}")
    if len(op.results) != results:
        raise Wrong(f"it has {len(op.results)} results, expected {results}")
