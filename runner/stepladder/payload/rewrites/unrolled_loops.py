"""Loops around buffers, branches, or parts and elements of tensors at computed places, as their iterations, one after
the other.

Tilings of upstream compute the offsets of such parts by `affine.apply`, and extents at edges by `affine.min`.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import producer, walk
from stepladder.payload.rewrites import shape_folding

# Iterations of a loop; each of them launches kernels.
AT_MOST = 256
# Iterations of all loops in a loop together, such as those of a nest that computes one element each.
_AT_MOST_IN_ALL = 1024
_BOUNDS = 3


def unroll(function: ir.Operation) -> None:
    """Unrolls the loops around ops on buffers and branches, or in which parts or elements of tensors are at computed
    places, and folds these.

    Args:
        function: it is changed where there are such loops with constant bounds.

    Raises:
        StepladderError: as of `shape_folding.fold`.
        ir.MLIRError: of upstream's passes.
    """
    if len(function.regions[0].blocks) != 1:
        return
    while (loop := next(filter(_is_unrolled, _loops(function)), None)) is not None:
        _replace(loop, _iterations(loop))
        shape_folding.fold(function)  # bounds of loops inside it may depend on the iteration


def _loops(function: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in function.regions[0].blocks[0].operations if op.operation.name == "scf.for"]


def _is_unrolled(loop: ir.Operation) -> bool:
    """Returns whether a loop of few iterations has ops on buffers, or outside of the bodies of other ops index
    arithmetic, elements and branches, or tensors of computed sizes.
    """
    is_short = 0 < len(_iterations(loop)) <= AT_MOST and _in_all(loop) <= _AT_MOST_IN_ALL
    if is_short and len(walk(loop, "scf.for")) == 1 and walk(loop, "memref.load", "memref.store"):
        return True
    return is_short and any(_is_place(op) or _is_of_buffers(op) or _has_computed_shape(op) for op in walk(loop))


def _in_all(loop: ir.Operation) -> int:
    """Returns how often the body of a loop, or of the deepest nest in it, runs; loops without constant bounds count as
    one iteration."""
    inner = [item.operation for block in loop.regions[0].blocks for item in block.operations]
    iterations = [_in_all(op) for op in inner if op.name == "scf.for"]
    return max(1, len(_iterations(loop))) * max(iterations, default=1)


def _is_of_buffers(op: ir.Operation) -> bool:
    return op.name.startswith(("linalg.", "memref.copy")) and any(
        isinstance(operand.type, ir.MemRefType) for operand in op.operands
    )


def _has_computed_shape(op: ir.Operation) -> bool:
    """Returns whether an op makes a tensor of a size that may depend on the iteration."""
    return any(isinstance(item.type, ir.RankedTensorType) and not item.type.has_static_shape for item in op.results)


def _is_place(op: ir.Operation) -> bool:
    """Returns whether an op computes an index, or reads or decides by an element of a tensor, between other ops."""
    if op.name in ("affine.apply", "affine.min", "affine.max"):
        return True
    is_inside = op.parent is not None and op.parent.name.startswith(("linalg.", "tensor."))
    if op.name in ("tensor.extract", "scf.if", "scf.index_switch"):
        return not is_inside
    types = [value.type for value in (*op.operands, *op.results)]
    is_index = len(op.results) == 1 and any(isinstance(type_, ir.IndexType) for type_ in types)
    return op.name.startswith("arith.") and op.name != "arith.constant" and is_index and not is_inside


def _iterations(loop: ir.Operation) -> range:
    """Returns the values of a loop's induction variable, none if its bounds are not constant."""
    sources = [producer(operand) for operand in list(loop.operands)[:_BOUNDS]]
    constants = [item for item in sources if item is not None and item.name == "arith.constant"]
    low, high, step = (
        [ir.IntegerAttr(item.attributes["value"]).value for item in constants]
        if len(constants) == _BOUNDS
        else (0, 0, 1)
    )
    return range(low, high, step) if step > 0 else range(0)


def _replace(loop: ir.Operation, iterations: range) -> None:
    block = loop.regions[0].blocks[0]
    *ops, end = [item.operation for item in block.operations]
    values = list(loop.operands)[_BOUNDS:]
    type_ = block.arguments[0].type
    for number in iterations:
        with ir.InsertionPoint(loop), loop.location:
            counter = ir.Operation.create(
                "arith.constant", results=[type_], attributes={"value": ir.IntegerAttr.get(type_, number)}
            )
            mapping: dict[ir.Value, ir.Value] = dict(zip(block.arguments, [counter.results[0], *values]))
            new = clone_ops(ops, mapping, ir.InsertionPoint(loop))
            values = [new.get(value, mapping.get(value, value)) for value in end.operands]
    for result, value in zip(loop.results, values):
        result.replace_all_uses_with(value)
    loop.erase()
