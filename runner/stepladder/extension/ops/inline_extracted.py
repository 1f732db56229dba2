"""`tc.inline_extracted`: computes elements that linalg ops extract from a tensor where they are read."""

import math
from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.products import is_layout
from stepladder.extension.lib.multi_kernel.stages import inner_ops, is_elementwise
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.reshapes import groups_of
from stepladder.mlir.traverse import producer, users_of, walk

_EXTRACT, _GENERIC, _INDEX = "tensor.extract", "linalg.generic", "linalg.index"
# Ops in the body of an op that moves elements, and those of them that compute indices.
_OF_INDICES = ("arith.addi", "arith.subi", "arith.divui", "arith.remui")
_MOVING = {*_OF_INDICES, _EXTRACT, _INDEX, "arith.constant", "arith.cmpi", "arith.andi", "arith.select", "linalg.yield"}


class InlineExtracted(Tc.Operation, name="inline_extracted"):
    """Replaces the `tensor.extract` of what an elementwise `linalg.generic` computes by its body, for that element.

    Upstream fuses elementwise ops with what reads their results as an operand, and not with an op that extracts
    elements, such as one that joins tensors.

    Axes of one element that reshapes add to the result, as to tensors that are stacked, are dropped.

    Operands: a handle to functions on tensors. An extraction stays where an operand of the elementwise op has another
    indexing map than a projected permutation. If the op does more than to repeat, to transpose or to widen elements, an
    extraction also stays where another op reads the tensor too, and, unless the op only selects elements, as a padding
    does, where more than `at_most` times as many elements are extracted as there are.
    Attributes: `at_most`.
    """

    target: Handle
    at_most: ir.IntegerAttr


@transform_op(InlineExtracted)
def inline_extracted(payload: ir.Operation, op: InlineExtracted, rewriter: Rewriter) -> None:
    """Rewrites the ops below `payload`; see the op."""
    pending = [item for generic in walk(payload, _GENERIC) for item in walk(generic, _EXTRACT)]
    while pending:
        extraction = _through_units(pending.pop(0), rewriter)
        source = producer(extraction.operands[0])
        if source is None or not _is_inlined(extraction, source, op.at_most.value):
            continue
        with extraction.location:
            value, new = _element(source, list(extraction.operands)[1:], ir.InsertionPoint(extraction))
        rewriter.replace_op(extraction, [value])
        pending += new
        if not list(source.results[0].uses):
            # The copies represent the extractions in the body, which is erased with its op.
            extractions = list(walk(source, _EXTRACT))
            pending = [item for item in pending if item not in extractions]
            rewriter.erase_op(source)


def _through_units(extraction: ir.Operation, rewriter: Rewriter) -> ir.Operation:
    """Returns an extraction of what reshapes have added axes of one element to, as to tensors that are stacked, in
    place of one of their results."""
    while (source := producer(extraction.operands[0])) is not None and source.name == "tensor.expand_shape":
        shape = ir.RankedTensorType(source.results[0].type).shape
        longer = [[axis for axis in group if shape[axis] > 1] or group[:1] for group in groups_of(source)]
        if any(len(axes) != 1 for axes in longer):
            break
        indices = [extraction.operands[1 + axis] for (axis,) in longer]
        with ir.InsertionPoint(extraction), extraction.location:
            type_ = extraction.results[0].type
            inner = ir.Operation.create(_EXTRACT, results=[type_], operands=[source.operands[0], *indices])
        rewriter.replace_op(extraction, [inner.results[0]])
        if not list(source.results[0].uses):
            rewriter.erase_op(source)
        extraction = inner
    return extraction


def _is_inlined(extraction: ir.Operation, source: ir.Operation, at_most: int) -> bool:
    """Returns whether the elementwise op that makes a tensor is computed where an element of it is extracted."""
    if source.name != _GENERIC or not is_elementwise(source):
        return False
    body = source.regions[0].blocks[0]
    if list(body.arguments[len(body.arguments) - 1].uses):  # it reads its result
        return False
    if not all(isinstance(item, ir.AffineDimExpr) for item in indexing_maps(source)[-1].results):
        return False
    maps = indexing_maps(source)[:-1]
    if any(not isinstance(item, ir.AffineDimExpr) and not _is_zero(item) for map_ in maps for item in map_.results):
        return False
    if is_layout(source):
        return True
    if len(users_of(source.results[0])) != 1:
        return False
    reader = extraction
    while reader.name != _GENERIC:
        assert reader.parent is not None  # the extraction is in the body of one
        reader = reader.parent.operation
    reader_size, source_size = (math.prod(ir.RankedTensorType(item.results[0].type).shape) for item in (reader, source))
    return is_elementwise(reader) and (reader_size <= at_most * source_size or _moves(source))


def _moves(op: ir.Operation) -> bool:
    """Returns whether an elementwise op only selects which elements its result has, as a padding does."""
    return set(inner_ops(op)) <= _MOVING and all(
        isinstance(item.results[0].type, ir.IndexType) for item in walk(op, *_OF_INDICES)
    )


def _is_zero(item: ir.AffineExpr) -> bool:
    return isinstance(item, ir.AffineConstantExpr) and item.value == 0


def _element(
    source: ir.Operation, place: Sequence[ir.Value], point: ir.InsertionPoint
) -> tuple[ir.Value, list[ir.Operation]]:
    """Creates what computes an element of an elementwise op.

    Args:
        source: the op.
        place: indices of the element.
        point: where it is computed.

    Returns:
        The element, and the extractions of elements of the op's operands.
    """
    *maps, result = indexing_maps(source)
    loops = {ir.AffineDimExpr(item).position: value for item, value in zip(result.results, place)}
    body = source.regions[0].blocks[0]
    mapping: dict[ir.Value, ir.Value] = {}
    extractions: list[ir.Operation] = []
    for argument, operand, map_ in zip(body.arguments, source.operands, maps):
        if not list(argument.uses):
            continue
        with point:
            indices = [index(0) if _is_zero(item) else loops[ir.AffineDimExpr(item).position] for item in map_.results]
            extractions.append(ir.Operation.create(_EXTRACT, results=[argument.type], operands=[operand, *indices]))
        mapping[argument] = extractions[-1].results[0]
    *ops, end = operations_of(body)
    for item in walk(source, _INDEX):
        mapping[item.results[0]] = loops[ir.IntegerAttr(item.attributes["dim"]).value]
    copies = clone_ops([item for item in ops if item.name != _INDEX], mapping, point)
    own = [producer(copies[item.results[0]]) for item in ops if item.name == _EXTRACT]
    return copies.get(end.operands[0], end.operands[0]), [*extractions, *(item for item in own if item is not None)]
