"""Attention: a softmax of the products of queries and keys, along the keys, multiplied by values.

The rule is that of one kernel, which keeps a tile of scores in registers: it is read on tensors, where a function is
divided, and again where the kernel is written.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.multi_kernel.attention_softmax import Chain, is_constant, loops_along, shape_of, yielded
from stepladder.extension.lib.multi_kernel.products import is_contraction
from stepladder.extension.lib.multi_kernel.stages import in_order, inner_ops, is_elementwise
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import defining_op, origin, producer, users_of
from stepladder.mlir.types import element_of

# Axes of operands: of a head, of queries and of keys. Others are indices of outer axes of the scores.
DEPTH, ROW, COLUMN = -1, -2, -3
DEPTHS = (64, 128)
TYPES = ("f16", "bf16")
# Of the function of an attention whose products, as kernels of their own, would be those of vectors.
VECTOR_PRODUCTS = "vector_products"
# Numbers of 16 bits that an f32 weight becomes the sum of: its error is at most 2^-18 in bf16 and 2^-24 in f16, where
# results are rounded to 2^-9 and 2^-12.
_WIDE_TERMS = 2


@dataclass(frozen=True)
class Operand:
    """A tensor that is multiplied, or the result.

    Attributes:
        value: the tensor.
        axes: what each of its axes runs along.
        outer: extents of the outer axes that `axes` counts; their product is the same for all operands.
    """

    value: ir.Value
    axes: tuple[int, ...]
    outer: tuple[int, ...]


@dataclass(frozen=True)
class Attention:
    """The ops of an attention.

    Attributes:
        ops: all, in order, with the views between them.
        queries, keys, values, result: the tensors; the last axis of each is that of a head.
        shape: of the scores: outer axes, then those of queries and keys.
        has_rows: whether scores have an axis of queries; else there is one query.
        scores: the products of queries and keys.
        logits: what elementwise ops make of them, whose softmax is taken.
        terms: numbers of the values' type that a weight is the sum of; 1 where the payload rounds weights.
        zeroes_hidden: whether results are zero where all logits of a row are minus infinity; else they are NaN.
    """

    ops: tuple[ir.Operation, ...]
    queries: Operand
    keys: Operand
    values: Operand
    result: Operand
    shape: tuple[int, ...]
    has_rows: bool
    scores: ir.Value
    logits: ir.Value
    terms: int
    zeroes_hidden: bool

    @property
    def inner(self) -> int:
        """Axes of scores behind the outer ones."""
        return len(_inner_axes(self.has_rows))


def last_products(block: ir.Block) -> Iterator[ir.Operation]:
    """Yields the contractions of a block that may be the last products of attentions.

    Args:
        block: of a function on tensors.
    """
    yield from (op for op in operations_of(block) if is_contraction(op))


def find_last(block: ir.Block) -> Attention:
    """Returns the attention that a function computes.

    Args:
        block: of the function, on tensors.

    Raises:
        Refusal: the last contraction of the function is not the last product of an attention, or there is none.
    """
    products = list(last_products(block))
    if not products:
        raise Refusal(block.owner, "expected the products of an attention, found none")
    return find(products[-1])


def find(second: ir.Operation) -> Attention:
    """Returns the attention whose last product an op is.

    Args:
        second: a contraction on tensors.

    Raises:
        Refusal: it is none.
    """
    _check_product(second)
    try:
        return _find(second, has_rows=True)
    except Refusal:
        # Passes drop the axis of a single query, so that heads are the last axis but one of the scores.
        with contextlib.suppress(Refusal):
            return _find(second, has_rows=False)
        raise


def _find(second: ir.Operation, *, has_rows: bool) -> Attention:
    """Returns an attention whose scores have an axis of queries, or none."""
    inner = _inner_axes(has_rows)
    weights, values, loops = _weights_of(second, inner)
    weight, value_type = element_of(weights.type), element_of(values.type)
    if weight != value_type and not isinstance(weight, ir.F32Type):
        raise Refusal(
            second, f"weights of {weight} and values of {value_type}; accepted: of one type, or weights of f32"
        )
    chain = Chain(len(inner))
    logits = chain.softmax(weights)
    scores = chain.scores(logits)
    first = defining_op(scores)
    _check_product(first)
    shape = shape_of(scores)
    outer = shape[: -len(inner)]
    maps = indexing_maps(first)
    axes = dict(zip(loops_along(first, maps[2]), (*range(len(outer)), *inner)))
    operands = [Operand(value, _axes(first, map_, axes), outer) for value, map_ in zip(first.operands, maps[:2])]
    operands.sort(key=lambda operand: COLUMN in operand.axes)
    queries, keys = operands
    if (ROW in queries.axes) != has_rows or COLUMN in queries.axes or ROW in keys.axes or COLUMN not in keys.axes:
        raise Refusal(first, "scores whose last two axes are not those of queries and keys")
    result, rounding = _rounded(second, Operand(second.results[0], *loops[1]), has_rows=has_rows)
    value = Operand(values, *loops[0])
    if (
        ROW in value.axes
        or COLUMN not in value.axes
        or COLUMN in result.axes
        or len(result.axes) != len(result.outer) + len(inner)
    ):
        raise Refusal(second, "values that depend on the query, or no sum along the keys")
    ops = tuple(in_order([first, *chain.ops, second, *rounding]))
    terms = 1 if weight == value_type else _WIDE_TERMS
    shape = (*outer, shape[-len(inner)] if has_rows else 1, shape[-1])
    attention = Attention(
        ops, queries, keys, value, result, shape, has_rows, scores, logits, terms, chain.zeroes_hidden
    )
    _check(attention)
    return attention


def heads_of_keys(attention: Attention) -> int:
    """Returns how many neighbouring heads of queries share keys and values.

    Args:
        attention: the attention.
    """
    return math.gcd(*map(_repeated, (attention.keys, attention.values)))


def _repeated(operand: Operand) -> int:
    """Returns the product of the last outer axes, up to one that an operand has."""
    count = 1
    for axis in reversed(range(len(operand.outer))):
        if axis in operand.axes:
            break
        count *= operand.outer[axis]
    return count


def tile_of(attention: Attention, columns: int) -> int:
    """Returns the keys of a tile of the kernel: half as many where one tile would have all, and none were copied ahead.

    Args:
        attention: the attention.
        columns: keys of a tile, at most.
    """
    return columns if attention.shape[-1] > columns else columns // 2


def _check(attention: Attention) -> None:
    """Checks the types and layouts of an attention, and that nothing else reads what is between its ops."""
    last = attention.ops[-1]
    for operand in (attention.queries, attention.keys, attention.values, attention.result):
        size, element = shape_of(operand.value)[-1], element_of(operand.value.type)
        if operand.axes[-1] != DEPTH or size not in DEPTHS:
            raise Refusal(last, f"heads of {size} elements, or not along the last axis; accepted: {DEPTHS}")
        if str(element) not in TYPES or element != element_of(attention.queries.value.type):
            raise Refusal(last, f"attention of {element}; accepted: {', '.join(TYPES)}, one for all")
    for op in attention.ops[:-1]:
        if any(user not in attention.ops for result in op.results for user in users_of(result)):
            raise Refusal(op, "a value between the products of an attention has other uses")


def _inner_axes(has_rows: bool) -> tuple[int, ...]:
    """Returns the axes of scores behind the outer ones."""
    return (ROW, COLUMN) if has_rows else (COLUMN,)


def _axes(op: ir.Operation, map_: ir.AffineMap, axes: dict[int, int]) -> tuple[int, ...]:
    """Returns what the axes of an operand run along; a loop that scores do not have is that of a head."""
    operand_axes = tuple(axes.get(loop, DEPTH) for loop in loops_along(op, map_))
    if operand_axes.count(DEPTH) != 1 or len(set(operand_axes)) != len(operand_axes):
        raise Refusal(op, "an operand whose heads have several axes, or none")
    return operand_axes


def _check_product(op: ir.Operation) -> None:
    """Checks that an op adds products of two operands to zeros, in f32."""
    if len(op.operands) != 3 or len(op.results) != 1 or not op.name.startswith("linalg."):
        raise Refusal(op, f"'{op.name}'; accepted: products of two tensors")
    a, b, c = op.regions[0].blocks[0].arguments
    total = producer(yielded(op))
    fill = producer(origin(op.operands[2], TENSOR_VIEWS))
    if total is None or total.name != "arith.addf" or not isinstance(c.type, ir.F32Type) or c not in total.operands:
        raise Refusal(op, "products that are not accumulated in f32")
    product = next((producer(value) for value in total.operands if value != c), None)
    factors = [origin(value, ("arith.extf",)) for value in product.operands] if product is not None else []
    if product is None or product.name != "arith.mulf" or set(factors) != {a, b}:
        raise Refusal(op, "a body that is not a sum of products of two elements")
    if fill is None or fill.name != "linalg.fill" or not is_constant(fill.operands[0], 0.0):
        raise Refusal(op, "sums with an initial value other than zero")


_Axes = tuple[tuple[int, ...], tuple[int, ...]]


def _weights_of(second: ir.Operation, inner: Sequence[int]) -> tuple[ir.Value, ir.Value, tuple[_Axes, _Axes]]:
    """Returns the operand that elementwise ops make, the other one, and the axes of that and of the result."""
    maps = indexing_maps(second)
    for place in (0, 1):
        weights = second.operands[place]
        source = producer(origin(weights, TENSOR_VIEWS))
        if source is not None and source.name == "linalg.generic" and is_elementwise(source):
            shape = shape_of(weights)
            outer = shape[: -len(inner)]
            axes = dict(zip(loops_along(second, maps[place]), (*range(len(outer)), *inner)))
            values, result = (_axes(second, maps[other], axes) for other in (1 - place, 2))
            return weights, second.operands[1 - place], ((values, outer), (result, outer))
    raise Refusal(second, "a product that does not read a softmax")


def _rounded(second: ir.Operation, result: Operand, *, has_rows: bool) -> tuple[Operand, list[ir.Operation]]:
    """Returns the result, rounded to 16 bits, and the ops between."""
    ops: list[ir.Operation] = []
    while True:
        users = users_of(result.value)
        if len(users) != 1:
            raise Refusal(second, "a result that is not rounded by the one op that reads it")
        ops.append(users[0])
        if users[0].name not in TENSOR_VIEWS:
            break
        result = _viewed(result, users[0], (ROW, DEPTH) if has_rows else (DEPTH,))
    op = ops[-1]
    if not is_elementwise(op) or sorted(inner_ops(op)) != ["arith.truncf", "linalg.yield"]:
        raise Refusal(op, "a result that is not rounded by the one op that reads it")
    input_loops, output_loops = (loops_along(op, map_) for map_ in indexing_maps(op))
    by_loop = dict(zip(input_loops, result.axes))
    return Operand(op.results[0], tuple(by_loop[loop] for loop in output_loops), result.outer), ops


def _viewed(result: Operand, view: ir.Operation, inner: Sequence[int]) -> Operand:
    """Returns a view of the result, of which the axes before some inner ones are divided or joined."""
    count = len(inner)
    shape = shape_of(view.results[0])
    is_outer = shape[-count:] == shape_of(result.value)[-count:]
    if result.axes != (*range(len(result.outer)), *inner) or not is_outer:
        raise Refusal(view, "a view of the result of an attention that is not of its outer axes")
    outer = shape[:-count]
    return Operand(view.results[0], (*range(len(outer)), *inner), outer)
