"""Slices of StableHLO at computed offsets, which become static slices or gathers; and paddings with computed values."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, producer, walk
from stepladder.payload.stablehlo.builder import Tensor, concatenate, constant, created, gather, iota, where
from stepladder.payload.stablehlo.constants import Known


def rewrite(module: ir.Module) -> None:
    """Replaces dynamic slices and their updates, and paddings by computed scalars.

    Args:
        module: with functions of StableHLO, without loops.
    """
    known = Known()
    pieces = _Pieces()
    for op in walk(module, "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"):
        with ir.InsertionPoint(op), op.location:
            tensor = _sliced(op, known) if op.name == "stablehlo.dynamic_slice" else _updated(op, known, pieces)
        op.results[0].replace_all_uses_with(tensor.value)
        op.erase()
    for op in walk(module, "stablehlo.pad"):
        around = producer(op.operands[1])
        if around is None or around.name != "stablehlo.constant":
            with ir.InsertionPoint(op), op.location:
                tensor = _padded(op)
            op.results[0].replace_all_uses_with(tensor.value)
            op.erase()
    for op in reversed(walk(module, "stablehlo.concatenate")):
        if not list(op.results[0].uses):
            op.erase()


def _clamped(numbers: list[int | None], room: list[int]) -> list[int | None]:
    """Returns the indices of a slice that is moved into its tensor; None for computed ones.

    Args:
        numbers: the indices that are known.
        room: the extents of the tensor without those of the slice.
    """
    return [0 if not most else None if at is None else min(max(at, 0), most) for at, most in zip(numbers, room)]


def _sliced(op: ir.Operation, known: Known) -> Tensor:
    x, starts = Tensor(op.operands[0]), list(op.operands)[1:]
    sizes = list(ir.DenseI64ArrayAttr(op.attributes["slice_sizes"]))
    room = [extent - size for extent, size in zip(x.shape, sizes)]
    places = _clamped([known.number(start) for start in starts], room)
    axes = [axis for axis, place in enumerate(places) if place is None]
    if not axes:
        return x.slice([place or 0 for place in places], sizes)
    indices = concatenate([Tensor(starts[axis]).reshape([1]) for axis in axes], 0)
    whole = [x.shape[axis] if axis in axes else size for axis, size in enumerate(sizes)]
    part = x.slice([place or 0 for place in places], whole)
    return gather(part, indices, axes, sizes, [False] * len(sizes))


def _updated(op: ir.Operation, known: Known, pieces: _Pieces) -> Tensor:
    """Returns a tensor with a part replaced: a concatenation along an axis where the index is known."""
    x, part, starts = Tensor(op.operands[0]), Tensor(op.operands[1]), list(op.operands)[2:]
    shape = x.shape
    room = [extent - size for extent, size in zip(shape, part.shape)]
    places = _clamped([known.number(start) for start in starts], room)
    cut = [axis for axis, more in enumerate(room) if more]
    if not cut:
        return part
    if len(cut) == 1 and places[cut[0]] is not None:
        return pieces.replaced(x, part, cut[0], places[cut[0]] or 0)
    is_inside: Tensor | None = None
    for axis in cut:
        start = Tensor(starts[axis])
        start = where(start < 0, 0, start)
        start = where(start > room[axis], room[axis], start)
        line = [shape[axis]]
        bits = ir.IntegerType(start.element).width
        places_there = iota(line, 0, bits).convert(start.element) - start.reshape([]).expand(line, [])
        is_hit = ((places_there >= 0) & (places_there < part.shape[axis])).expand(shape, [axis])
        is_inside = is_hit if is_inside is None else is_inside & is_hit
        sizes = part.shape
        sizes[axis] = 1
        # (indices, axes of the part without this one): moved back after it
        rows = gather(
            part, places_there.reshape([*line, 1]), [axis], sizes, [item == axis for item in range(len(sizes))]
        )
        order = list(range(1, len(shape)))
        order.insert(axis, 0)
        part = rows.transpose(order)
    assert is_inside is not None
    return where(is_inside, part, x)


def _padded(op: ir.Operation) -> Tensor:
    """Returns a padding: where a padding of booleans is false, the scalar."""
    x, around = (Tensor(operand) for operand in op.operands)
    shape, attributes = Tensor(op.results[0]).shape, attributes_of(op)

    def padded(what: Tensor) -> Tensor:
        type_ = ir.RankedTensorType.get(shape, what.element)
        return Tensor(created(op.name, type_, what.value, constant(0, [], what.element).value, **attributes))

    is_inside = padded(constant(True, x.shape, ir.IntegerType.get_signless(1)))
    return where(is_inside, padded(x), around.expand(shape, []))


class _Pieces:
    """Concatenations that replaced parts of tensors, so that one after another makes one of all parts."""

    def __init__(self) -> None:
        self._pieces: dict[ir.Value, tuple[int, list[Tensor]]] = {}

    def replaced(self, x: Tensor, part: Tensor, axis: int, first: int) -> Tensor:
        """Returns a tensor with a part along one axis replaced.

        Args:
            x: the tensor.
            part: what replaces it; `axis`: along which it is a part; `first`: its index.
        """
        of_axis, old = self._pieces.get(x.value, (axis, [x]))
        if of_axis != axis:
            old = [x]
        last = first + part.shape[axis]
        new: list[Tensor] = []
        begin = 0
        for piece in old:
            end = begin + piece.shape[axis]
            if begin < first:
                new.append(piece.narrow(axis, 0, min(end, first) - begin))
            if begin <= first < end or (begin == end == first):
                new.append(part)
            if end > last:
                start = max(begin, last)
                new.append(piece.narrow(axis, start - begin, end - start))
            begin = end
        result = concatenate(new, axis)
        self._pieces[result.value] = (axis, new)
        return result
