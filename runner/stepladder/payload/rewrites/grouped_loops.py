"""Loops whose index operands read at a quotient or a remainder, as two loops: over groups, and inside of a group.

A scale for each group of rows of weights is read at `k floordiv 32`. With a loop over the groups and one over the rows
of a group, operands are indexed by loops alone, as kernels of matmuls require of producers.
"""

from __future__ import annotations

import itertools

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import producer, walk
from stepladder.mlir.types import reassociation

# Operands of a contraction, with that of the sums.
_OF_PRODUCT = 3
_QUOTIENTS = (ir.AffineFloorDivExpr, ir.AffineModExpr)


def split(function: ir.Operation) -> None:
    """Replaces the elementwise ops on static tensors whose maps have quotients or remainders of a loop by one constant
    that divides its iterations, and else loops alone.

    Of contractions, those are replaced of which one operand reads quotients of a loop of the batch, such as the keys
    that several heads of queries share. Others stay: of a loop in two, one may be of one operand. So does an op on what
    a contraction or another reduction computes: operands of epilogues are rows or columns.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, "linalg.generic"):
        while (found := _group(op)) is not None:
            op = _split(op, *found)


def _group(op: ir.Operation) -> tuple[int, int] | None:
    """Returns a loop and the size of its groups; None where there is none, or an index of a loop is read."""
    types = [operand.type for operand in op.operands]
    is_static = all(isinstance(type_, ir.RankedTensorType) and type_.has_static_shape for type_ in types)
    if not is_static or walk(op, "linalg.index") or len(op.results) != 1:
        return None
    maps = indexing_maps(op)
    items = [item for map_ in maps for item in map_.results]
    sizes = {
        item.position: extent
        for type_, map_ in zip(types, maps)
        for item, extent in zip(map_.results, ir.RankedTensorType(type_).shape)
        if isinstance(item, ir.AffineDimExpr)
    }
    quotients = [item for item in items if isinstance(item, _QUOTIENTS)]
    if not all(isinstance(item, (ir.AffineDimExpr, ir.AffineConstantExpr, *_QUOTIENTS)) for item in items):
        return None
    found = {(_loop(item), _number(item)) for item in quotients}
    if (
        not found
        or (None in {part for pair in found for part in pair})
        or len({loop for loop, _ in found}) < len(found)
    ):
        return None
    loop, size = min((loop, size) for loop, size in found if loop is not None and size is not None)
    if not (_reads_shared_batch(op, loop) if _reduces(op) else _is_elementwise_on_arguments(op)):
        return None
    is_whole = loop in sizes and 1 < size < sizes[loop] and sizes[loop] % size == 0
    return (loop, size) if is_whole and not _quotients_in(maps[-1]) else None


def _is_elementwise_on_arguments(op: ir.Operation) -> bool:
    """Returns whether neither an op reduces, nor any that makes its operands."""
    pending, seen = [op], {op}
    for each in pending:  # grows in the loop
        if _reduces(each):
            return False
        sources = [source for value in each.operands if (source := producer(value)) is not None]
        pending += [source for source in dict.fromkeys(sources) if source not in seen]
        seen.update(sources)
    return True


def _reads_shared_batch(op: ir.Operation, loop: int) -> bool:
    """Returns whether an op has two operands, of which one and the result have a loop, and one its quotients."""
    reads = [
        [item for item in map_.results if not isinstance(item, ir.AffineConstantExpr)] for map_ in indexing_maps(op)
    ]
    whole = [[item.position for item in items if isinstance(item, ir.AffineDimExpr)] for items in reads]
    parts = [[_loop(item) for item in items if isinstance(item, _QUOTIENTS)] for items in reads]
    if len(reads) != _OF_PRODUCT or loop not in whole[2]:
        return False
    return any(
        loop in whole[place]
        and loop not in parts[place]
        and parts[1 - place] == [loop]
        and loop not in whole[1 - place]
        for place in (0, 1)
    )


def _reduces(op: ir.Operation) -> bool:
    """Returns whether a linalg op has more loops than its last result has axes."""
    if not op.name.startswith("linalg.") or len(op.regions) != 1 or not len(op.operands):
        return False
    *_, result = indexing_maps(op)
    return len({item.position for item in result.results if isinstance(item, ir.AffineDimExpr)}) < result.n_dims


def _quotients_in(map_: ir.AffineMap) -> bool:
    return any(isinstance(item, _QUOTIENTS) for item in map_.results)


def _loop(item: ir.AffineExpr) -> int | None:
    """Returns the loop that a quotient is of; None of another expression."""
    assert isinstance(item, ir.AffineBinaryExpr)
    return item.lhs.position if isinstance(item.lhs, ir.AffineDimExpr) else None


def _number(item: ir.AffineExpr) -> int | None:
    """Returns the divisor of a quotient; None if it is not constant."""
    assert isinstance(item, ir.AffineBinaryExpr)
    return item.rhs.value if isinstance(item.rhs, ir.AffineConstantExpr) else None


def _split(op: ir.Operation, loop: int, size: int) -> ir.Operation:
    """Replaces an op by one with two loops for a loop; returns it."""
    old = indexing_maps(op)
    count = old[0].n_dims + 1
    outer, inner = ir.AffineExpr.get_dim(loop), ir.AffineExpr.get_dim(loop + 1)

    def moved(item: ir.AffineExpr) -> list[ir.AffineExpr]:
        if isinstance(item, ir.AffineDimExpr):
            if item.position == loop:
                return [outer, inner]
            return [ir.AffineExpr.get_dim(item.position + (item.position > loop))]
        if not isinstance(item, _QUOTIENTS):
            return [item]
        if _loop(item) == loop:
            return [outer if isinstance(item, ir.AffineFloorDivExpr) else inner]
        (dimension,), number = moved(item.lhs), item.rhs
        make = ir.AffineExpr.get_floor_div if isinstance(item, ir.AffineFloorDivExpr) else ir.AffineExpr.get_mod
        return [make(dimension, number)]

    with ir.InsertionPoint(op), op.location:
        operands = [_in_groups(value, map_, loop, size) for value, map_ in zip(op.operands, old)]
        maps = [ir.AffineMap.get(count, 0, [new for item in map_.results for new in moved(item)]) for map_ in old]
        generic, body = create_generic(operands[:-1], operands[-1:], maps)
        known: dict[ir.Value, ir.Value] = dict(zip(op.regions[0].blocks[0].arguments, body.arguments))
        clone_ops([item.operation for item in op.regions[0].blocks[0].operations], known, ir.InsertionPoint(body))
        result = _view("tensor.collapse_shape", generic.results[0], op.results[0].type, old[-1], loop)
    op.results[0].replace_all_uses_with(result)
    op.erase()
    return generic


def _in_groups(value: ir.Value, map_: ir.AffineMap, loop: int, size: int) -> ir.Value:
    """Returns a tensor with two axes for each one that a loop runs along."""
    type_ = ir.RankedTensorType(value.type)
    shape: list[int] = []
    for item, extent in zip(map_.results, type_.shape):
        is_split = isinstance(item, ir.AffineDimExpr) and item.position == loop
        shape += [extent // size, size] if is_split else [extent]
    return _view("tensor.expand_shape", value, ir.RankedTensorType.get(shape, type_.element_type), map_, loop)


def _view(name: str, value: ir.Value, type_: ir.Type, map_: ir.AffineMap, loop: int) -> ir.Value:
    """Returns a tensor with more or fewer axes; the tensor itself where a loop runs along none of them."""
    if value.type == type_:
        return value
    places = itertools.count()
    counts = [1 + (isinstance(item, ir.AffineDimExpr) and item.position == loop) for item in map_.results]
    attributes: dict[str, ir.Attribute] = {
        "reassociation": reassociation([list(itertools.islice(places, count)) for count in counts])
    }
    if name == "tensor.expand_shape":
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(ir.RankedTensorType(type_).shape)
    return ir.Operation.create(name, results=[type_], operands=[value], attributes=attributes).results[0]
