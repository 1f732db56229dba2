"""Buffers of the caller that a function writes and returns: the caller has them."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import users_of
from stepladder.payload.raised_views import VIEWS
from stepladder.payload.signature import result_types, set_signature

_STORES = ("memref.copy", "bufferization.materialize_in_destination")


def drop(function: ir.Operation) -> None:
    """Has a function return no argument that is a buffer which it writes: what it holds is a result as it is.

    Args:
        function: a function; it is changed where it returns such an argument.
    """
    if function.name != "func.func" or len(function.regions[0].blocks) != 1:
        return
    block = function.regions[0].blocks[0]
    arguments: list[ir.Value] = list(block.arguments)
    end = block.operations[len(block.operations) - 1].operation
    if end.name != "func.return":
        return
    values = list(end.operands)
    places = [place for place, value in enumerate(values) if value not in arguments or not _is_written(value)]
    if len(places) == len(values):
        return
    types = result_types(function)
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("func.return", operands=[values[place] for place in places])
    end.erase()
    set_signature(function, [types[place] for place in places])


def _outputs(op: ir.Operation) -> list[ir.Value]:
    """Returns what a linalg op writes: one for each value that its body yields."""
    body = op.regions[0].blocks[0] if len(op.regions) else None
    count = 1 if body is None else len(body.operations[len(body.operations) - 1].operation.operands)
    return list(op.operands)[len(op.operands) - count :]


def _is_written(buffer: ir.Value) -> bool:
    """Returns whether an op writes a buffer, or a view of it."""
    if not isinstance(buffer.type, ir.MemRefType):
        return False
    for user in users_of(buffer):
        operands = list(user.operands)
        is_view = user.name in VIEWS and _is_written(user.results[0])
        is_target = user.name in _STORES and operands[1] == buffer
        if is_view or is_target or (user.name.startswith("linalg.") and buffer in _outputs(user)):
            return True
    return False
