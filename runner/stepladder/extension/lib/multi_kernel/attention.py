"""Attention: a softmax of the products of queries and keys, along the keys, multiplied by values.

The rule is that of one kernel, which keeps a tile of scores in registers: it is read on tensors, where a function is
divided, and again where the kernel is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.multi_kernel.products import is_product
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
_INNER = 2  # axes of scores: of queries and keys
_MAXIMA = ("arith.maxnumf", "arith.maximumf")
_LOWEST = (float("-inf"), float("nan"))


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
        scores: the products of queries and keys.
        logits: what elementwise ops make of them, whose softmax is taken.
    """

    ops: tuple[ir.Operation, ...]
    queries: Operand
    keys: Operand
    values: Operand
    result: Operand
    shape: tuple[int, ...]
    scores: ir.Value
    logits: ir.Value


def last_products(block: ir.Block) -> Iterator[ir.Operation]:
    """Yields the contractions of a block that may be the last products of attentions.

    Args:
        block: of a function on tensors.
    """
    yield from (op for op in operations_of(block) if is_product(op))


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
    weights, values, loops = _weights_of(second)
    if element_of(weights.type) != element_of(values.type):
        raise Refusal(
            second,
            f"weights of {element_of(weights.type)} and values of {element_of(values.type)}; accepted: of one type",
        )
    chain = _Chain()
    logits = chain.softmax(weights)
    scores = chain.scores(logits)
    first = defining_op(scores)
    _check_product(first)
    shape = _shape(scores)
    maps = indexing_maps(first)
    axes = dict(zip(_loops(first, maps[2]), _axes_of_scores(len(shape))))
    operands = [Operand(value, _axes(first, map_, axes), shape[:-2]) for value, map_ in zip(first.operands, maps[:2])]
    operands.sort(key=lambda operand: COLUMN in operand.axes)
    queries, keys = operands
    if ROW not in queries.axes or COLUMN in queries.axes or ROW in keys.axes or COLUMN not in keys.axes:
        raise Refusal(first, "scores whose last two axes are not those of queries and keys")
    result, rounding = _rounded(second, Operand(second.results[0], *loops[1]))
    value = Operand(values, *loops[0])
    if (
        ROW in value.axes
        or COLUMN not in value.axes
        or COLUMN in result.axes
        or len(result.axes) != len(result.outer) + 2
    ):
        raise Refusal(second, "values that depend on the query, or no sum along the keys")
    ops = tuple(in_order([first, *chain.ops, second, *rounding]))
    attention = Attention(ops, queries, keys, value, result, shape, scores, logits)
    _check(attention)
    return attention


def _check(attention: Attention) -> None:
    """Checks the types and layouts of an attention, and that nothing else reads what is between its ops."""
    last = attention.ops[-1]
    for operand in (attention.queries, attention.keys, attention.values, attention.result):
        size, element = _shape(operand.value)[-1], element_of(operand.value.type)
        if operand.axes[-1] != DEPTH or size not in DEPTHS:
            raise Refusal(last, f"heads of {size} elements, or not along the last axis; accepted: {DEPTHS}")
        if str(element) not in TYPES or element != element_of(attention.queries.value.type):
            raise Refusal(last, f"attention of {element}; accepted: {', '.join(TYPES)}, one for all")
    for op in attention.ops[:-1]:
        if any(user not in attention.ops for result in op.results for user in users_of(result)):
            raise Refusal(op, "a value between the products of an attention has other uses")


def is_constant(value: ir.Value, *numbers: float) -> bool:
    """Returns whether a value is a constant with one of some values.

    Args:
        value: of floating point.
        numbers: a NaN is equal to every NaN.
    """
    source = producer(value)
    if source is None or source.name != "arith.constant":
        return False
    constant = ir.FloatAttr(source.attributes["value"]).value
    return any(constant == number or (constant != constant and number != number) for number in numbers)


def _shape(value: ir.Value) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(value.type).shape)


def _axes_of_scores(rank: int) -> tuple[int, ...]:
    return (*range(rank - _INNER), ROW, COLUMN)


def _loops(op: ir.Operation, map_: ir.AffineMap) -> list[int]:
    """Returns the loops along the axes of an operand."""
    if not all(isinstance(item, ir.AffineDimExpr) for item in map_.results):
        raise Refusal(op, f"the indexing map {map_}; accepted: loops")
    return [item.position for item in map_.results]


def _axes(op: ir.Operation, map_: ir.AffineMap, axes: dict[int, int]) -> tuple[int, ...]:
    """Returns what the axes of an operand run along; a loop that scores do not have is that of a head."""
    operand_axes = tuple(axes.get(loop, DEPTH) for loop in _loops(op, map_))
    if operand_axes.count(DEPTH) != 1 or len(set(operand_axes)) != len(operand_axes):
        raise Refusal(op, "an operand whose heads have several axes, or none")
    return operand_axes


def _yielded(op: ir.Operation) -> ir.Value:
    """Returns what the body of a linalg op yields for its first result."""
    return operations_of(op.regions[0].blocks[0])[-1].operands[0]


def _check_product(op: ir.Operation) -> None:
    """Checks that an op adds products of two operands to zeros, in f32."""
    if len(op.operands) != 3 or len(op.results) != 1 or not op.name.startswith("linalg."):
        raise Refusal(op, f"'{op.name}'; accepted: products of two tensors")
    a, b, c = op.regions[0].blocks[0].arguments
    total = producer(_yielded(op))
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


def _weights_of(second: ir.Operation) -> tuple[ir.Value, ir.Value, tuple[_Axes, _Axes]]:
    """Returns the operand that elementwise ops make, the other one, and the axes of that and of the result."""
    maps = indexing_maps(second)
    for place in (0, 1):
        weights = second.operands[place]
        source = producer(origin(weights, TENSOR_VIEWS))
        if source is not None and source.name == "linalg.generic" and is_elementwise(source):
            shape = _shape(weights)
            axes = dict(zip(_loops(second, maps[place]), _axes_of_scores(len(shape))))
            values, result = (_axes(second, maps[other], axes) for other in (1 - place, 2))
            return weights, second.operands[1 - place], ((values, shape[:-2]), (result, shape[:-2]))
    raise Refusal(second, "a product that does not read a softmax")


def _rounded(second: ir.Operation, result: Operand) -> tuple[Operand, list[ir.Operation]]:
    """Returns the result, rounded to 16 bits, and the ops between."""
    ops: list[ir.Operation] = []
    while True:
        users = users_of(result.value)
        if len(users) != 1:
            raise Refusal(second, "a result that is not rounded by the one op that reads it")
        ops.append(users[0])
        if users[0].name not in TENSOR_VIEWS:
            break
        result = _viewed(result, users[0])
    op = ops[-1]
    if not is_elementwise(op) or sorted(inner_ops(op)) != ["arith.truncf", "linalg.yield"]:
        raise Refusal(op, "a result that is not rounded by the one op that reads it")
    input_loops, output_loops = (_loops(op, map_) for map_ in indexing_maps(op))
    by_loop = dict(zip(input_loops, result.axes))
    return Operand(op.results[0], tuple(by_loop[loop] for loop in output_loops), result.outer), ops


def _viewed(result: Operand, view: ir.Operation) -> Operand:
    """Returns a view of the result, of which outer axes are divided or joined."""
    outer = len(result.outer)
    shape = _shape(view.results[0])
    if result.axes != (*range(outer), ROW, DEPTH) or shape[-2:] != _shape(result.value)[-2:]:
        raise Refusal(view, "a view of the result of an attention that is not of its outer axes")
    return Operand(view.results[0], (*range(len(shape) - 2), ROW, DEPTH), shape[:-2])


class _Chain:
    """The elementwise ops and reductions between the two products.

    Attributes:
        ops: those that were passed.
    """

    def __init__(self) -> None:
        self.ops: list[ir.Operation] = []

    def softmax(self, weights: ir.Value) -> ir.Value:
        """Returns the tensor whose softmax along the last axis, maybe rounded, another one is."""
        quotient = self._body(weights)
        if quotient.name == "arith.truncf":
            quotient = self._scalar(quotient.operands[0], quotient)
        if quotient.name != "arith.divf":
            raise Refusal(quotient, f"'{quotient.name}'; accepted: exponentials divided by their sum")
        exponentials = self._operand(quotient.operands[0], quotient)
        total = self._operand(quotient.operands[1], quotient, of_rows=True)
        power = self._body(exponentials)
        if power.name != "math.exp" or not isinstance(power.results[0].type, ir.F32Type):
            raise Refusal(power, f"'{power.name}'; accepted: exponentials in f32")
        difference = self._scalar(power.operands[0], power)
        if difference.name != "arith.subf":
            raise Refusal(difference, "exponentials of values that are not differences")
        logits = self._operand(difference.operands[0], difference)
        largest = self._operand(difference.operands[1], difference, of_rows=True)
        self._reduction(largest, _MAXIMA, logits, _LOWEST)
        self._reduction(total, ("arith.addf",), exponentials, (0.0,))
        return logits

    def scores(self, logits: ir.Value) -> ir.Value:
        """Returns the products that elementwise ops make a tensor of."""
        value = self._through(logits)
        source = producer(value)
        assert source is not None  # a tensor that is made of a product
        if is_product(source):
            return value
        self._take(source)
        products: set[ir.Value] = set()
        for place, map_ in enumerate(indexing_maps(source)[:-1]):
            operand = source.operands[place]
            if _is_whole(map_) and _is_made_of_product(operand):
                products.add(self.scores(operand))
            else:
                _loops(source, map_)
        if len(products) != 1:
            raise Refusal(source, "logits that are not computed from one product")
        for inner in inner_ops(source):
            if not inner.startswith(("arith.", "math.")) and inner not in ("linalg.yield", "linalg.index"):
                raise Refusal(source, f"'{inner}' between the products of an attention")
        return products.pop()

    def _through(self, value: ir.Value) -> ir.Value:
        """Returns the tensor that another one is a view of, of which outer axes are divided or joined."""
        source = producer(value)
        while source is not None and source.name in TENSOR_VIEWS:
            if _shape(source.operands[0])[-2:] != _shape(value)[-2:]:
                raise Refusal(source, "a view of scores that is not of their outer axes")
            self._note(source)
            value = source.operands[0]
            source = producer(value)
        if source is None:
            raise Refusal(ir.BlockArgument(value).owner.owner, "an argument in place of scores")
        return value

    def _note(self, op: ir.Operation) -> None:
        if op not in self.ops:
            self.ops.append(op)

    def _take(self, op: ir.Operation) -> None:
        """Notes an elementwise op, over all axes in order."""
        if op.name != "linalg.generic" or not is_elementwise(op) or not _is_whole(indexing_maps(op)[-1]):
            raise Refusal(op, f"'{op.name}' between the products of an attention is not elementwise on the scores")
        self._note(op)

    def _body(self, tensor: ir.Value) -> ir.Operation:
        """Returns the op whose result is an element of a tensor."""
        op = producer(self._through(tensor))
        assert op is not None
        self._take(op)
        return self._scalar(_yielded(op), op)

    def _scalar(self, value: ir.Value, user: ir.Operation) -> ir.Operation:
        """Returns the op that makes a number of a body, maybe in the body of the op whose result the body reads."""
        source = producer(value)
        return source if source is not None else self._body(self._operand(value, user))

    def _operand(self, value: ir.Value, user: ir.Operation, *, of_rows: bool = False) -> ir.Value:
        """Returns the tensor that a number of a body is an element of: the one of the iteration, or of its row."""
        if producer(value) is not None:
            raise Refusal(user, f"'{user.name}' of what its op computes")
        argument = ir.BlockArgument(value)
        op = argument.owner.owner
        map_ = indexing_maps(op)[argument.arg_number]
        if not (_is_of_rows(map_) if of_rows else _is_whole(map_)):
            raise Refusal(op, f"the indexing map {map_} in a softmax")
        tensor = op.operands[argument.arg_number]
        return tensor if of_rows else self._through(tensor)

    def _reduction(self, rows: ir.Value, names: Sequence[str], of: ir.Value, starts: Sequence[float]) -> None:
        """Checks that a tensor is the reduction of another one along the last axis, and notes the op."""
        source = producer(rows)
        while source is not None and source.name in TENSOR_VIEWS:  # those that add an axis of one element
            self._note(source)
            rows = source.operands[0]
            source = producer(rows)
        if source is None or source.name != "linalg.generic" or self._through(source.operands[0]) != of:
            raise Refusal(defining_op(of), "a softmax without the maximum or the sum of each row")
        maps, arguments = indexing_maps(source), source.regions[0].blocks[0].arguments
        last, fill = producer(_yielded(source)), producer(origin(source.operands[1], TENSOR_VIEWS))
        is_fold = last is not None and last.name in names and set(last.operands) == {arguments[0], arguments[1]}
        if not (_is_whole(maps[0]) and _is_of_rows(maps[1]) and is_fold and rows == source.results[0]):
            raise Refusal(source, "a softmax without the maximum or the sum of each row")
        if fill is None or fill.name != "linalg.fill" or not is_constant(fill.operands[0], *starts):
            raise Refusal(source, "a reduction whose initial value is not its neutral element")
        self._note(source)


def _is_whole(map_: ir.AffineMap) -> bool:
    """Returns whether an operand has all axes, in order."""
    return map_ == ir.AffineMap.get_identity(map_.n_dims)


def _is_of_rows(map_: ir.AffineMap) -> bool:
    """Returns whether an operand has all axes but the last, in order, and maybe one of one element."""
    rows = [ir.AffineExpr.get_dim(axis) for axis in range(map_.n_dims - 1)]
    return list(map_.results) in (rows, [*rows, ir.AffineExpr.get_constant(0)])


def _is_made_of_product(value: ir.Value) -> bool:
    """Returns whether elementwise ops make a tensor of a product."""
    source = producer(origin(value, TENSOR_VIEWS))
    if source is None or not source.name.startswith("linalg."):
        return False
    if is_product(source):
        return True
    return is_elementwise(source) and any(map(_is_made_of_product, source.operands))
