"""Tensors whose parts are all unpacked from one tensor: one elementwise op with a loop over the parts.

Exporters of weights of 4 bits join what they cut out of bytes or words: `stack([x & 15, x >> 4], -1)`, a concatenation
along rows, or stores to every second element. One op on all of it is a producer of a matmul's operand.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, create_loop_index
from stepladder.mlir.reshapes import reshaped
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.payload.rewrites import bit_parts
from stepladder.payload.rewrites.shift_distances import MOST, chosen

_CONCAT, _INSERTION = "tensor.concat", "tensor.insert_slice"


@dataclass(frozen=True)
class _Joined:
    """Parts that make up a tensor along an axis: one after the other, or the first elements of all and so on."""

    parts: tuple[ir.Value, ...]
    axis: int
    alternates: bool = False


def join(function: ir.Operation) -> None:
    """Replaces each concatenation, or sequence of insertions, of parts that differ only in the bits of one tensor that
    they are made of, by one `linalg.generic` and a reshape.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in reversed(walk(function, _CONCAT, _INSERTION)):
        if not users_of(op.results[0]):
            continue
        joined = _of_concat(op) if op.name == _CONCAT else _of_insertions(op)
        if joined is None or not 1 < len(joined.parts) <= MOST:
            continue
        with ir.InsertionPoint(op), op.location:
            value = _unpacked(joined)
        if value is not None:
            op.results[0].replace_all_uses_with(value)


def _of_concat(concat: ir.Operation) -> _Joined | None:
    parts = tuple(concat.operands)
    type_ = ir.RankedTensorType(parts[0].type)
    if not type_.has_static_shape or any(part.type != type_ for part in parts):
        return None
    return _Joined(parts, ir.IntegerAttr(concat.attributes["dim"]).value)


def _of_insertions(last: ir.Operation) -> _Joined | None:
    """Returns the parts of a tensor that insertions write all of; None where they leave elements."""
    if any(user.name == _INSERTION and user.operands[1] == last.results[0] for user in users_of(last.results[0])):
        return None  # one of a longer sequence
    shape = list(ir.RankedTensorType(last.results[0].type).shape)
    places: dict[int, ir.Value] = {}
    along: set[tuple[int, int, int]] = set()
    op: ir.Operation | None = last
    while op is not None and op.name == _INSERTION and len(op.operands) == 2:
        part = op.operands[0]
        offsets, sizes, strides = numbers_of(op)
        axes = [axis for axis, size in enumerate(sizes) if size != shape[axis]]
        if len(axes) != 1 or sizes != list(ir.RankedTensorType(part.type).shape):
            return None
        if any(offset for axis, offset in enumerate(offsets) if axis not in axes):
            return None
        if any(stride != 1 for axis, stride in enumerate(strides) if axis not in axes):
            return None
        places.setdefault(offsets[axes[0]], part)  # a later insertion writes over an earlier one
        along.add((axes[0], sizes[axes[0]], strides[axes[0]]))
        op = producer(op.operands[1])
    if len(along) != 1:
        return None
    axis, size, stride = along.pop()
    step = size if stride == 1 else 1
    if not size or sorted(places) != list(range(0, len(places) * step, step)) or len(places) * size != shape[axis]:
        return None
    if stride not in (1, len(places)):
        return None
    return _Joined(tuple(places[place] for place in sorted(places)), axis, alternates=stride != 1)


def _unpacked(joined: _Joined) -> ir.Value | None:
    """Returns the tensor, at the insertion point; None where its parts differ in more than bits of one tensor."""
    expressions = [bit_parts.element_of(part) for part in joined.parts]
    known = [expression for expression in expressions if expression is not None]
    begins = bit_parts.merged(known) if len(known) == len(expressions) else None
    if begins is None or not any(len({*numbers}) > 1 for numbers in begins):
        return None
    elements = bit_parts.elements_read(known[0])
    if bit_parts.reads_indices(known[0]) or not all(map(bit_parts.is_of_tensor, elements)):
        return None
    type_ = ir.RankedTensorType(joined.parts[0].type)
    shape, axis, count = list(type_.shape), joined.axis, len(joined.parts)
    loop = axis + joined.alternates  # over the parts
    divided = [*shape[:loop], count, *shape[loop:]]
    reads = list(dict.fromkeys((element.tensor, element.loops) for element in elements))
    maps = [
        ir.AffineMap.get(
            len(divided),
            0,
            [
                ir.AffineExpr.get_constant(0) if place is None else ir.AffineExpr.get_dim(place + (place >= loop))
                for place in loops
            ],
        )
        for _, loops in reads
    ]
    empty = ir.Operation.create("tensor.empty", [ir.RankedTensorType.get(divided, type_.element_type)]).results[0]
    inputs = [tensor for tensor, _ in reads if tensor is not None]
    generic, body = create_generic(inputs, [empty], [*maps, ir.AffineMap.get_identity(len(divided))])
    with ir.InsertionPoint(body):
        arguments = [body.arguments[reads.index((element.tensor, element.loops))] for element in elements]
        numbers = iter(begins)
        places: list[ir.Value | None] = []
        for element, argument in zip(elements, arguments):
            if element.bits is None:
                places.append(None)
                continue
            place = arith.index_cast(argument.type, create_loop_index(loop))
            places.append(chosen(next(numbers), place))
        ir.Operation.create("linalg.yield", operands=[bit_parts.create(known[0], arguments, places)])
    groups = [[place] for place in range(axis)] + [[axis, axis + 1]]
    groups += [[place] for place in range(axis + 2, len(divided))]
    whole = [*shape[:axis], count * shape[axis], *shape[axis + 1 :]]
    return reshaped(generic.results[0], whole, groups)
