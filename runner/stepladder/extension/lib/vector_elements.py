"""Division of elementwise ops on vectors, and of slices of vectors, into ops on elements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from stepladder.extension.lib.dialect import Rewriter
from stepladder.extension.lib.vectors import extract, offsets_of
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, producer

_EXTRACT, _SHAPE_CAST = "vector.extract", "vector.shape_cast"
_EXTRACT_SLICE, _INSERT_SLICE = "vector.extract_strided_slice", "vector.insert_strided_slice"
_MOVES = (_EXTRACT, _SHAPE_CAST, _EXTRACT_SLICE, _INSERT_SLICE)
_ELEMENTWISE = ("arith.addf",)


class Elements:
    """The elements of a vector that ops in `_ELEMENTWISE` and slices compute from other vectors.

    The elements of an elementwise op are computed where the op is; those of a vector that another op makes are
    extracted there. `erase` removes the ops that were divided.

    Args:
        rewriter: that erases ops.
    """

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self._computed: dict[tuple[ir.Value, tuple[int, ...]], ir.Value] = {}
        self._divided: dict[ir.Operation, None] = {}

    def all_of(self, vector: ir.Value) -> list[ir.Value]:
        """Returns the elements of a vector, in row-major order.

        Args:
            vector: of any rank.
        """
        return [self._at(vector, place) for place in itertools.product(*map(range, ir.VectorType(vector.type).shape))]

    def erase(self) -> None:
        """Erases the ops that were divided, each after its users; nothing else may use them."""
        remaining = list(self._divided)
        while remaining:
            used_ops = [op for op in remaining if any(next(iter(result.uses), None) for result in op.results)]
            unused_ops = [op for op in remaining if op not in used_ops]
            assert unused_ops, "another op uses a vector that was divided"
            for op in unused_ops:
                self._rewriter.erase_op(op)
            remaining = used_ops

    def _at(self, vector: ir.Value, place: tuple[int, ...]) -> ir.Value:
        """Returns an element; ops that it needs are created before the op that makes the vector."""
        op = producer(vector)
        if op is None or op.name not in (*_ELEMENTWISE, *_MOVES):
            return extract(vector, place, ir.VectorType(vector.type).element_type)
        if op.name in _ELEMENTWISE:
            return self._elementwise(op, place)
        element = self._at(*_source_of(op, place))
        self._divided[op] = None
        return element

    def _elementwise(self, op: ir.Operation, place: tuple[int, ...]) -> ir.Value:
        key = (op.results[0], place)
        if key not in self._computed:
            with ir.InsertionPoint(op), op.location:
                operands = [self._at(operand, place) for operand in op.operands]
                element = ir.VectorType(op.results[0].type).element_type
                part = ir.Operation.create(op.name, results=[element], operands=operands, attributes=attributes_of(op))
            self._computed[key] = part.results[0]
            self._divided[op] = None
        return self._computed[key]


def _source_of(op: ir.Operation, place: tuple[int, ...]) -> tuple[ir.Value, tuple[int, ...]]:
    """Returns the operand that an op of `_MOVES` takes an element of its result from, and the place there."""
    source = op.operands[0]
    shape = ir.VectorType(source.type).shape
    if op.name == _EXTRACT:
        return source, (*ir.DenseI64ArrayAttr(op.attributes["static_position"]), *place)
    if op.name == _SHAPE_CAST:
        return source, _reshaped(place, ir.VectorType(op.results[0].type).shape, shape)
    if op.name == _EXTRACT_SLICE:
        return source, tuple(index + offset for index, offset in zip(place, offsets_of(op)))
    inner = tuple(index - offset for index, offset in zip(place, offsets_of(op)))
    is_inside = all(0 <= index < extent for index, extent in zip(inner, shape))
    return (source, inner) if is_inside else (op.operands[1], place)


def _reshaped(place: tuple[int, ...], before: Sequence[int], after: Sequence[int]) -> tuple[int, ...]:
    """Returns the place in a vector of shape `after` of an element that is at a place in one of shape `before`."""
    number = 0
    for index, extent in zip(place, before):
        number = number * extent + index
    indices: list[int] = []
    for extent in reversed(after):
        number, index = divmod(number, extent)
        indices.append(index)
    return tuple(reversed(indices))
