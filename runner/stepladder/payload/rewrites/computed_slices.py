"""Slices of tensors at computed offsets as linalg ops that read elements by indices.

An offset such that elements of the slice are outside of the tensor has no defined result: the slice is moved into the
tensor, as front ends define theirs, so that no kernel reads beyond a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.constant_numbers import constant_number
from stepladder.mlir.linalg_ops import create_generic, create_loop_index
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import walk
from stepladder.payload.refusal import refuse

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_SLICES = ("tensor.extract_slice", "tensor.insert_slice")


def lower(function: ir.Operation) -> None:
    """Replaces each slice of static size at an offset that ops of the function compute, and each insertion of one.

    Those in loops stay: in an iteration, the offset may be known.

    Args:
        function: a function; it is changed where there are such ops on static tensors.

    Raises:
        StepladderError: a constant offset at which the slice is not in the tensor.
    """
    for op in walk(function, *_SLICES):
        if op.parent is None or op.parent.operation != function or not _is_computed(op):
            continue
        with ir.InsertionPoint(op), op.location:
            value = _extracted(op) if op.name == _SLICES[0] else _inserted(op)
        op.results[0].replace_all_uses_with(value)
        op.erase()


def _is_computed(op: ir.Operation) -> bool:
    """Returns whether offsets of a slice are computed, and nothing else is."""
    offsets, sizes, strides = numbers_of(op)
    if _DYNAMIC not in offsets or _DYNAMIC in (*sizes, *strides):
        return False
    tensors = [value for value in (*op.operands, *op.results) if isinstance(value.type, ir.RankedTensorType)]
    return all(ir.RankedTensorType(value.type).has_static_shape for value in tensors)


def _index(number: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), number)


def _begin(offset: ir.Value | int, room: int) -> ir.Value:
    """Returns the offset of a slice along an axis, within the tensor.

    Args:
        offset: a constant, or a computed value.
        room: the largest offset of a slice of this size.
    """
    if isinstance(offset, int):
        return _index(offset)
    return arith.minsi(arith.maxsi(offset, _index(0)), _index(room))


def _axes(op: ir.Operation, source: ir.Value, offsets: Iterator[ir.Value]) -> list[tuple[ir.Value, int, int]]:
    """Returns the offset of a slice along each axis of the tensor, its size and its stride."""
    shape = ir.RankedTensorType(source.type).shape
    axes = []
    for extent, offset, size, stride in zip(shape, *numbers_of(op)):
        room = extent - 1 - (size - 1) * stride
        begin = next(offsets) if offset == _DYNAMIC else offset
        number = constant_number(begin) if isinstance(begin, ir.Value) else None
        if isinstance(number, ir.IntegerAttr) and not 0 <= number.value <= room:
            raise refuse(
                op,
                f"{op.name} begins at {number.value} along an axis of {extent} elements",
                f"accepted: offsets from 0 to {room}, for {size} elements; those that are no constants are clamped",
            )
        axes.append((_begin(begin, room), size, stride))
    return axes


def _kept(sizes: list[int], shape: list[int]) -> list[int | None]:
    """Returns the axis of a slice that each axis of the tensor becomes; None for one of one element that is dropped."""
    axes: list[int | None] = []
    axis = 0
    for size in sizes:
        is_kept = axis < len(shape) and shape[axis] == size
        axes.append(axis if is_kept else None)
        axis += is_kept
    return axes


def _extracted(op: ir.Operation) -> ir.Value:
    """Creates the elements of a slice, at the insertion point."""
    source, *offsets = op.operands
    type_ = ir.RankedTensorType(op.results[0].type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    generic, body = create_generic([], [empty], [ir.AffineMap.get_identity(type_.rank)])
    with ir.InsertionPoint(body):
        indices = []
        axes = _kept(numbers_of(op)[1], list(type_.shape))
        for (begin, _, stride), axis in zip(_axes(op, source, iter(offsets)), axes):
            if axis is not None:
                loop = create_loop_index(axis)
                begin = arith.addi(begin, loop if stride == 1 else arith.muli(loop, _index(stride)))
            indices.append(begin)
        element = ir.Operation.create("tensor.extract", results=[type_.element_type], operands=[source, *indices])
        ir.Operation.create("linalg.yield", operands=list(element.results))
    return generic.results[0]


def _inserted(op: ir.Operation) -> ir.Value:
    """Creates the tensor into which a slice is inserted, at the insertion point: each element is one of the slice where
    its indices are in it."""
    part, target, *offsets = op.operands
    type_ = ir.RankedTensorType(target.type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    generic, body = create_generic([target], [empty], [ir.AffineMap.get_identity(type_.rank)] * 2)
    with ir.InsertionPoint(body):
        is_inside, indices = None, []
        axes = _kept(numbers_of(op)[1], list(ir.RankedTensorType(part.type).shape))
        for number, ((begin, size, stride), axis) in enumerate(zip(_axes(op, target, iter(offsets)), axes)):
            # Unsigned: an index before the slice is larger than any in it.
            place = arith.subi(create_loop_index(number), begin)
            is_in = arith.cmpi(arith.CmpIPredicate.ult, place, _index(size * stride))
            if stride > 1:
                is_hit = arith.cmpi(arith.CmpIPredicate.eq, arith.remsi(place, _index(stride)), _index(0))
                is_in, place = arith.andi(is_in, is_hit), arith.divsi(place, _index(stride))
            is_inside = is_in if is_inside is None else arith.andi(is_inside, is_in)
            if axis is not None:
                indices.append(arith.select(is_in, place, _index(0)))
        assert is_inside is not None  # a slice at a computed offset has an axis
        element = ir.Operation.create("tensor.extract", results=[type_.element_type], operands=[part, *indices])
        value = arith.select(is_inside, element.results[0], body.arguments[0])
        ir.Operation.create("linalg.yield", operands=[value])
    return generic.results[0]
