"""Elementwise ops on the scores of an attention, computed two neighbouring elements at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stepladder.extension.lib.arithmetic import apply, digits, index
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.element_bodies import has_vectors, load
from stepladder.extension.lib.epilogues.vector_bodies import create_scalar_op
from stepladder.extension.lib.memory import load_vector
from stepladder.extension.lib.multi_kernel.attention import COLUMN, ROW, Attention
from stepladder.extension.lib.multi_kernel.attention_places import Row
from stepladder.extension.lib.multi_kernel.attention_softmax import is_constant
from stepladder.extension.lib.multi_kernel.attention_weights import extended, pair_of
from stepladder.extension.lib.vectors import extract, repeated
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.constant_numbers import constant_number
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import origin, producer, users_of

_PAIR = 2
_ABOVE = (arith.CmpIPredicate.ule, arith.CmpIPredicate.sle)
_BELOW = (arith.CmpIPredicate.uge, arith.CmpIPredicate.sge)
_SIGNED = (arith.CmpIPredicate.sle, arith.CmpIPredicate.sge)
_LOWEST = float("-inf")
_LEAST_FACTOR = 2.0**-20  # of scores that the exponential may take
_POSITION_BITS = 32  # at least, of integers that indices are compared as


class Logits:
    """Computes logits from scores: casts to 16 bits take one instruction for two.

    Args:
        attention: the attention.
        buffers: of the tensors it reads.
        fast: whether a constant factor of all logits may be left to the exponential.

    Attributes:
        factor: what the results are to be multiplied by.
    """

    def __init__(self, attention: Attention, buffers: Mapping[ir.Value, ir.Value], *, fast: bool) -> None:
        self.attention, self.buffers = attention, buffers
        self._product = _last_product(attention) if fast else None
        self.factor = self._product.factor if self._product is not None else 1.0

    def of(self, scores: Sequence[ir.Value], row: Row, column: ir.Value, *, visible: bool) -> list[ir.Value]:
        """Returns the logits of two scores, at the insertion point.

        Args:
            scores: of one row, and of a column and the next.
            row: which one.
            column: its index, which is even.
            visible: whether the causal mask hides none of them.
        """
        pair = self._value(self.attention.logits, pair_of(scores), row, column, visible=visible)
        element = ir.VectorType(pair.type).element_type
        return [extract(pair, [side], element) for side in range(_PAIR)]

    def _value(self, tensor: ir.Value, scores: ir.Value, row: Row, column: ir.Value, *, visible: bool) -> ir.Value:
        """Returns two elements of a tensor that is made of the scores."""
        tensor = origin(tensor, TENSOR_VIEWS)
        if tensor == self.attention.scores:
            return scores
        op = producer(tensor)
        assert op is not None and op in self.attention.ops
        outer = list(ir.RankedTensorType(tensor.type).shape)[: -self.attention.inner]
        loops = [*(digits(row.head, outer) if outer else []), row.query, column]
        if not self.attention.has_rows:
            del loops[-2]
        body = op.regions[0].blocks[0]
        values: dict[ir.Value, ir.Value] = {}
        for argument, operand, map_ in zip(body.arguments, list(op.operands)[:-1], indexing_maps(op)):
            if operand in self.buffers:
                values[argument] = _loaded(self.buffers[operand], [item.position for item in map_.results], loops)
            else:
                values[argument] = self._value(operand, scores, row, column, visible=False)
        *inner, end = operations_of(body)
        for item in inner:
            if item.name == "linalg.index":
                place = loops[ir.IntegerAttr(item.attributes["dim"]).value]
                values[item.results[0]] = _neighbours(place) if place == column else repeated(place, _PAIR)
                continue
            if self._product is not None and item == self._product.op:
                values[item.results[0]] = values[self._product.value]
                continue
            operands = [values[value] if value in values else repeated(value, _PAIR) for value in item.operands]
            is_wide = item.name == "arith.extf" and isinstance(item.operands[0].type, ir.BF16Type)
            values[item.results[0]] = extended(*operands) if is_wide else create_scalar_op(item, operands, _PAIR)
        result = end.operands[0]
        if visible:
            visible_value = _before_mask(self.attention)
            assert visible_value is not None  # of a causal mask
            result = visible_value
        return values[result] if result in values else repeated(result, _PAIR)


def _neighbours(column: ir.Value) -> ir.Value:
    """Returns the indices of two neighbouring columns."""
    return pair_of([column, apply(lambda c: c + 1, column)])


def _loaded(buffer: ir.Value, axes: Sequence[int], loops: Sequence[ir.Value]) -> ir.Value:
    """Returns two elements of a buffer, given the loops along its axes and their indices; the last is the column's."""
    last = len(loops) - 1
    indices = [loops[axis] for axis in axes]
    if last not in axes:
        return repeated(load(buffer, indices), _PAIR)
    if axes[-1] == last and list(axes).count(last) == 1 and has_vectors(buffer, _PAIR):
        return load_vector(ir.VectorType.get([_PAIR], ir.MemRefType(buffer.type).element_type), buffer, *indices)
    following = [
        _following(loops[axis], ir.MemRefType(buffer.type).shape[place]) if axis == last else loops[axis]
        for place, axis in enumerate(axes)
    ]
    return pair_of([load(buffer, indices), load(buffer, following)])


def _following(column: ir.Value, extent: int) -> ir.Value:
    """Returns the index of the next column; of an odd number of columns, the last one follows itself."""
    following = apply(lambda c: c + 1, column)
    return arith.minui(following, index(extent - 1)) if extent % 2 else following


def has_causal_mask(attention: Attention) -> bool:
    """Returns whether the logits are minus infinity where the number of the key is above that of the query.

    Args:
        attention: the attention; its mask is the last op of its logits: a select, or the addition of one of zeros.
    """
    return _before_mask(attention) is not None


def _before_mask(attention: Attention) -> ir.Value | None:
    """Returns the logit that a causal mask hides or not, in the body of the last op; None without such a mask."""
    op = producer(attention.logits)
    if not attention.has_rows or op is None or op.name != "linalg.generic" or attention.logits == attention.scores:
        return None
    rank = ir.RankedTensorType(attention.logits.type).rank
    last = producer(operations_of(op.regions[0].blocks[0])[-1].operands[0])
    if last is None:
        return None
    if last.name == "arith.select":
        return last.operands[1] if _hides_later_keys(last, rank) else None
    if last.name != "arith.addf":
        return None
    for logit, mask in (last.operands, reversed(list(last.operands))):
        select = producer(origin(mask, ("arith.extf",)))
        if select is not None and select.name == "arith.select" and is_constant(select.operands[1], 0.0):
            return logit if _hides_later_keys(select, rank) else None
    return None


def _hides_later_keys(select: ir.Operation, rank: int) -> bool:
    """Returns whether a select gives minus infinity where the number of the key is above that of the query."""
    compare = producer(select.operands[0])
    if compare is None or compare.name != "arith.cmpi" or not is_constant(select.operands[2], _LOWEST):
        return False
    predicate = arith.CmpIPredicate(ir.IntegerAttr(compare.attributes["predicate"]).value)
    compared = list(compare.operands)
    difference, zero = producer(compared[0]), constant_number(compared[1])
    if difference is not None and difference.name == "arith.subi" and zero is not None and zero.value == 0:
        if predicate not in _SIGNED:
            return False
        compared = list(difference.operands)
    axes = [_axis_of(value, rank) for value in compared]
    return (axes == [COLUMN, ROW] and predicate in _ABOVE) or (axes == [ROW, COLUMN] and predicate in _BELOW)


class _Product(NamedTuple):
    """A multiplication of a value by a constant."""

    op: ir.Operation
    value: ir.Value
    factor: float


def _last_product(attention: Attention) -> _Product | None:
    """Returns the multiplication of scores by a constant that only masks of minus infinity follow.

    The factor of the maxima and differences of logits may then be one of the exponents. It is positive, so that the
    maximum is that of the same score, and at most 1, so that products are finite where the logits are. With a much
    smaller one, scores near the largest number could have equal weights.
    """
    tensor = origin(attention.logits, TENSOR_VIEWS)
    while tensor != attention.scores:
        op = producer(tensor)
        assert op is not None and op in attention.ops
        value = operations_of(op.regions[0].blocks[0])[-1].operands[0]
        source = producer(value)
        while source is not None:
            product = _constant_product(source)
            if product is not None:
                return product
            before = _masked(source)
            if before is None:
                return None
            value, source = before, producer(before)
        argument = ir.BlockArgument(value)
        if argument.owner.owner != op:
            return None
        tensor = origin(op.operands[argument.arg_number], TENSOR_VIEWS)
        if producer(tensor) not in attention.ops:
            return None
    return None


def _constant_product(op: ir.Operation) -> _Product | None:
    """Returns a multiplication of an f32 that nothing else reads by a constant."""
    if op.name != "arith.mulf" or not isinstance(op.results[0].type, ir.F32Type) or len(users_of(op.results[0])) != 1:
        return None
    for value, other in (op.operands, reversed(list(op.operands))):
        number = constant_number(other)
        if number is not None and _LEAST_FACTOR <= number.value <= 1:
            return _Product(op, value, number.value)
    return None


def _masked(op: ir.Operation) -> ir.Value | None:
    """Returns the value that an op replaces by minus infinity or not; None for another op."""
    if op.name == "arith.select":
        _, yes, no = op.operands
        return no if is_constant(yes, _LOWEST) else yes if is_constant(no, _LOWEST) else None
    if op.name != "arith.addf":
        return None
    for value, mask in (op.operands, reversed(list(op.operands))):
        select = producer(origin(mask, ("arith.extf",)))
        if select is not None and select.name == "arith.select" and _is_mask(select):
            return value
    return None


def _is_mask(select: ir.Operation) -> bool:
    """Returns whether a select is of zero and minus infinity."""
    _, yes, no = select.operands
    return any(is_constant(kept, 0.0) and is_constant(hidden, _LOWEST) for kept, hidden in ((yes, no), (no, yes)))


def _axis_of(value: ir.Value, rank: int) -> int | None:
    """Returns the axis that a value is the index along, in the body of an elementwise op: of queries or keys."""
    if isinstance(value.type, ir.IntegerType) and value.type.width < _POSITION_BITS:
        return None
    source = producer(origin(value, ("arith.index_cast", "arith.index_castui")))
    if source is None or source.name != "linalg.index":
        return None
    return {rank - 1: COLUMN, rank - 2: ROW}.get(ir.IntegerAttr(source.attributes["dim"]).value)
