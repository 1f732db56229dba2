"""Results in the memory of an operand: what elementwise ops may read of the buffer that C is written to."""

from __future__ import annotations

from collections.abc import Mapping

from stepladder.mlir.bindings import ir
from stepladder.payload import consumers, reductions
from stepladder.payload.form import Content, Kind
from stepladder.payload.refusal import refuse


def check(function: ir.Operation, contents: Mapping[ir.Value, Content], c: int) -> None:
    """Checks that elementwise ops read C's buffer at the elements that they compute: a kernel writes C while other
    blocks, and other threads, still read it.

    Args:
        function: the payload's function.
        contents: what each tensor holds.
        c: number of the argument that is C.

    Raises:
        StepladderError: an op that reads the buffer, or what is computed of it, in another order.
    """
    of_c = [value for value, content in contents.items() if content.kind is Kind.ARGUMENT and content.argument == c]
    if not of_c:
        return
    for op in (op.operation for op in function.regions[0].blocks[0].operations):
        if not (consumers.is_consumer(op) or reductions.is_reduction(op)):
            continue
        arguments = op.regions[0].blocks[0].arguments
        reads = [
            (operand, map_)
            for operand, map_, argument in zip(op.operands, consumers.maps_of(op), arguments)
            if list(argument.uses) and operand in of_c
        ]
        for operand, map_ in reads:
            if not _is_same_place(map_, ir.ShapedType(operand.type).shape):
                raise refuse(
                    op,
                    f"{op.name} reads argument {c}, which the result is written to, in another order",
                    "accepted: C read at each element where the result's is written, or a result in another buffer",
                )
        if reads:
            of_c += op.results


def _is_same_place(map_: ir.AffineMap, shape: list[int]) -> bool:
    """Returns whether a map of loops is the identity, or 0 along axes of one element."""
    return map_.n_dims == len(shape) and all(
        place.position == axis if isinstance(place, ir.AffineDimExpr) else size == 1
        for axis, (place, size) in enumerate(zip(map_.results, shape))
    )
