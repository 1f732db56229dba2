"""Initial values of matmuls that an elementwise op computes: added after the matmul, in its epilogue."""

from __future__ import annotations

from stepladder.extension.lib.arithmetic import add
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.multi_kernel.stages import is_in_order
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, create_named_op, indexing_maps
from stepladder.mlir.traverse import producer, users_of


def added_start(product: ir.Operation, initial: ir.Value, empty: ir.Value) -> ir.Operation:
    """Creates the op that adds what a matmul started from to its result, at the insertion point.

    Args:
        product: the matmul, which starts from zeros.
        initial: what it started from. An elementwise op that makes it for the matmul alone is computed in the new op.
        empty: a tensor of the type of the result.

    Returns:
        The op.
    """
    maker = producer(initial)
    if maker is None or not is_in_order(maker) or len(maker.results) > 1 or users_of(initial):
        return create_named_op("linalg.add", [product.results[0], initial], empty)
    maps, (*arguments, so_far) = indexing_maps(maker), maker.regions[0].blocks[0].arguments
    reads_output = bool(list(so_far.uses))
    operands = list(maker.operands) if reads_output else list(maker.operands)[:-1]
    identity = maps[-1]
    generic, body = create_generic(
        [product.results[0], *operands], [empty], [identity, *maps[: len(operands)], identity]
    )
    old_arguments: list[ir.Value] = [*arguments, so_far] if reads_output else [*arguments]
    values: dict[ir.Value, ir.Value] = dict(zip(old_arguments, list(body.arguments)[1:]))
    *ops, end = operations_of(maker.regions[0].blocks[0])
    values = clone_ops(ops, values, ir.InsertionPoint(body))
    with ir.InsertionPoint(body):
        total = add(body.arguments[0], values.get(end.operands[0], end.operands[0]))
        ir.Operation.create("linalg.yield", operands=[total])
    maker.erase()
    return generic
