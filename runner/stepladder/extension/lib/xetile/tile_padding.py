"""Padding of loaded blocks: elements beyond a matrix are set to a value, where the hardware loads zeros."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import constant_value, index, less_than, zero_of
from stepladder.extension.lib.xetile.lane_updates import column_of
from stepladder.extension.lib.xetile.xegpu_layouts import COLUMNS
from stepladder.mlir.bindings import arith, ir, vector
from stepladder.mlir.traverse import producer

_LANES = 16
_NOT_NEGATIVE = ("gpu.block_id", "gpu.thread_id", "gpu.subgroup_id", "gpu.lane_id", "memref.dim")
_KEEP_SIGN = ("arith.addi", "arith.muli", "arith.divui", "arith.remui", "arith.divsi", "arith.minsi", "arith.maxsi")


def padding_of(op: ir.Operation, element: ir.Type) -> ir.Attribute | None:
    """Returns the padding of a load as a number of the element type; None for zero.

    Args:
        op: the load, whose `padding` may be of another type of floating-point numbers, or of integers.
        element: of the tile.
    """
    if "padding" not in op.attributes or op.attributes["padding"].value == 0:
        return None
    number = op.attributes["padding"].value
    return (ir.FloatAttr if isinstance(element, ir.FloatType) else ir.IntegerAttr).get(element, number)


def padded(
    block: ir.Value, sizes: Sequence[int], places: Sequence[ir.Value], padding: ir.Attribute, *, is_b: bool = False
) -> ir.Value:
    """Returns a loaded block in which the elements beyond the matrix are `padding`.

    Args:
        block: a vector of two dimensions.
        sizes: rows and columns of the matrix.
        places: row and column of the block's first element.
        padding: a number of the element type.
        is_b: whether a product takes the block as B, whose rows are packed in pairs.
    """
    if is_b:
        return _padded_rows(block, sizes, places, padding)
    type_ = ir.VectorType(block.type)
    filler = arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, padding))
    shape = list(type_.shape)
    inside = [
        arith.subi(index(size), place) if constant_value(place) is None else index(size - (constant_value(place) or 0))
        for size, place in zip(sizes, places)
    ]
    result = arith.select(_mask(shape, inside), block, filler)
    for axis, place in enumerate(places):
        if is_not_negative(place):
            continue
        before = [index(size) for size in shape]
        number = constant_value(place)
        before[axis] = arith.subi(index(0), place) if number is None else index(-number)
        result = arith.select(_mask(shape, before), filler, result)
    return result


def _padded_rows(block: ir.Value, sizes: Sequence[int], places: Sequence[ir.Value], padding: ir.Attribute) -> ir.Value:
    """Returns what `padded` does, by a mask of rows and one of columns for each 16 rows.

    MLIR distributes no mask of two dimensions to lanes that hold pairs of rows.
    """
    rows, columns = ir.VectorType(block.type).shape
    element, bit = ir.VectorType(block.type).element_type, ir.IntegerType.get_signless(1)
    result = block
    for top, left in itertools.product(range(0, rows, COLUMNS), range(0, columns, COLUMNS)):
        shape = [min(COLUMNS, rows - top), COLUMNS]
        mask_type = ir.VectorType.get(shape, bit)
        first = arith.addi(places[1], index(left))
        inner = column_of(
            [less_than(arith.addi(places[0], index(top + row)), index(sizes[0])) for row in range(shape[0])]
        )
        across = _mask([1, COLUMNS], [index(1), arith.subi(index(sizes[1]), first)])
        if not is_not_negative(first):
            before = _mask([1, COLUMNS], [index(1), arith.subi(index(0), first)])
            across = arith.select(before, arith.constant(before.type, zero_of(ir.VectorType(before.type))), across)
        mask = arith.andi(vector.broadcast(mask_type, inner), vector.broadcast(mask_type, across))
        type_ = ir.VectorType.get(shape, element)
        piece = vector.extract_strided_slice(type_, block, [top, left], shape, [1, 1])
        filler = arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, padding))
        result = vector.insert_strided_slice(arith.select(mask, piece, filler), result, [top, left], [1, 1])
    return result


def _mask(shape: list[int], extents: list[ir.Value]) -> ir.Value:
    """Returns a mask of the elements below `extents` in each dimension.

    MLIR folds a mask of constants to one that is not valid, where a block of an instruction is beyond one of them, so
    that one is computed of the lane: it has a zero added.
    """
    if all(map(_folds, extents)):
        lane = ir.Operation.create("gpu.lane_id", results=[ir.IndexType.get()]).results[0]
        extents = [arith.addi(extents[0], arith.divui(lane, index(_LANES))), *extents[1:]]
    return vector.create_mask(ir.VectorType.get(shape, ir.IntegerType.get_signless(1)), extents)


def _folds(value: ir.Value) -> bool:
    """Returns whether a value is made of constants."""
    op = producer(value)
    return op is not None and op.name.startswith("arith.") and all(map(_folds, op.operands))


def is_not_negative(value: ir.Value) -> bool:
    """Returns whether an index is known to be zero or more.

    Args:
        value: an index in a launch.
    """
    number = constant_value(value)
    if number is not None:
        return number >= 0
    op = producer(value)
    if op is not None:
        return op.name in _NOT_NEGATIVE or (op.name in _KEEP_SIGN and all(map(is_not_negative, op.operands)))
    block = ir.BlockArgument(value).owner
    owner = block.owner
    if owner.name == "scf.for":
        # The induction variable; what the loop carries may decrease.
        return value == block.arguments[0] and is_not_negative(owner.operands[0])
    return owner.name == "gpu.launch"
