"""Attention: a softmax of the products of queries and keys, along the keys, multiplied by values.

The rule is that of one kernel, which keeps a tile of scores in registers: it is read on tensors, where a function is
divided, and again where the kernel is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.products import is_product
from stepladder.extension.lib.stages import in_order, inner_ops, is_elementwise
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.traverse import producer, users_of

DEPTH = -1  # the axis of a head; other axes are those of the scores
DEPTHS = (64, 128)
TYPES = ("f16", "bf16")
_MAXIMA = ("arith.maxnumf", "arith.maximumf")


@dataclass(frozen=True)
class Operand:
    """A tensor that is multiplied, or the result: its value, and what each of its axes runs along."""

    value: ir.Value
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Attention:
    """The ops of an attention.

    Attributes:
        ops: all, in order.
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

    @property
    def row(self) -> int:
        """The axis of queries."""
        return len(self.shape) - 2

    @property
    def column(self) -> int:
        """The axis of keys."""
        return len(self.shape) - 1

    def depth(self, operand: Operand) -> int:
        """Returns the elements of a head.

        Args:
            operand: one of the tensors.
        """
        return ir.ShapedType(operand.value.type).shape[-1]


def find(second: ir.Operation) -> Attention:
    """Returns the attention whose last product an op is.

    Args:
        second: a contraction on tensors.

    Raises:
        Refusal: it is none.
    """
    _check_product(second)
    weights, values = _weights_of(second)
    shape = tuple(ir.RankedTensorType(weights.type).shape)
    chain = _Chain(len(shape))
    logits = chain.softmax(weights)
    scores = chain.logits(logits)
    first = scores.owner.operation
    _check_product(first)
    maps = indexing_maps(first)
    loops = {loop: axis for axis, loop in enumerate(_loops(first, maps[2]))}
    operands = [Operand(value, _axes(first, map_, loops)) for value, map_ in zip(first.operands, maps[:2])]
    row, column = len(shape) - 2, len(shape) - 1
    operands.sort(key=lambda operand: column in operand.axes)
    queries, keys = operands
    if row not in queries.axes or column in queries.axes or row in keys.axes or column not in keys.axes:
        raise Refusal(first, "scores whose last two axes are not those of queries and keys")
    weighted = indexing_maps(second)
    place = list(second.operands).index(weights)
    loops = {loop: axis for axis, loop in enumerate(_loops(second, weighted[place]))}
    value = Operand(values, _axes(second, weighted[1 - place], loops))
    result, rounding = _rounded(second, _axes(second, weighted[2], loops))
    if row in value.axes or column not in value.axes or column in result.axes or len(result.axes) != len(shape):
        raise Refusal(second, "values that depend on the query, or no sum along the keys")
    ops = tuple(in_order([first, *chain.ops, second, rounding]))
    found = Attention(ops, queries, keys, value, result, shape, scores, logits)
    _check(found)
    return found


def last_products(block: ir.Block) -> Iterator[ir.Operation]:
    """Yields the contractions of a block that may be the last products of attentions.

    Args:
        block: of a function on tensors.
    """
    for op in operations_of(block):
        if is_product(op) and any(producer(operand) is not None for operand in op.operands[:2]):
            yield op


def _check(found: Attention) -> None:
    """Checks the types and layouts of an attention, and that nothing else reads what is between its ops."""
    last = found.ops[-1]
    for operand in (found.queries, found.keys, found.values, found.result):
        type_ = ir.RankedTensorType(operand.value.type)
        if operand.axes[-1] != DEPTH or type_.shape[-1] not in DEPTHS:
            raise Refusal(last, f"heads of {type_.shape[-1]} elements, or not along the last axis; accepted: {DEPTHS}")
        if str(type_.element_type) not in TYPES or type_.element_type != _element(found.queries.value):
            raise Refusal(last, f"attention of {type_.element_type}; accepted: {', '.join(TYPES)}, one for all")
    for op in found.ops[:-1]:
        if any(user not in found.ops for result in op.results for user in map(_outer(op.block), users_of(result))):
            raise Refusal(op, "a value between the products of an attention has other readers")


def _outer(block: ir.Block):  # noqa: ANN202
    def op_in(op: ir.Operation) -> ir.Operation:
        while op.block != block:
            assert op.parent is not None
            op = op.parent.operation
        return op

    return op_in


def _element(value: ir.Value) -> ir.Type:
    return ir.RankedTensorType(value.type).element_type


def _loops(op: ir.Operation, map_: ir.AffineMap) -> list[int]:
    """Returns the loops along the axes of an operand, each once."""
    if not all(isinstance(item, ir.AffineDimExpr) for item in map_.results):
        raise Refusal(op, f"the indexing map {map_}; accepted: loops")
    return [item.position for item in map_.results]


def _axes(op: ir.Operation, map_: ir.AffineMap, axes: dict[int, int]) -> tuple[int, ...]:
    """Returns what the axes of an operand run along; a loop that scores do not have is that of a head."""
    found = tuple(axes.get(loop, DEPTH) for loop in _loops(op, map_))
    if found.count(DEPTH) != 1 or len(set(found)) != len(found):
        raise Refusal(op, "an operand whose heads have several axes, or none")
    return found


def _yielded(op: ir.Operation, number: int = 0) -> ir.Value:
    return operations_of(op.regions[0].blocks[0])[-1].operands[number]


def _check_product(op: ir.Operation) -> None:
    """Checks that an op adds products of two operands to zeros, in f32."""
    if len(op.operands) != 3 or len(op.results) != 1 or not op.name.startswith("linalg."):
        raise Refusal(op, f"'{op.name}'; accepted: products of two tensors")
    a, b, c = op.regions[0].blocks[0].arguments
    total = producer(_yielded(op))
    fill = producer(op.operands[2])
    if total is None or total.name != "arith.addf" or not isinstance(c.type, ir.F32Type) or c not in total.operands:
        raise Refusal(op, "products that are not summed in f32")
    product = next((producer(value) for value in total.operands if value != c), None)
    factors = [_without(value, "arith.extf") for value in product.operands] if product is not None else []
    if product is None or product.name != "arith.mulf" or set(factors) != {a, b}:
        raise Refusal(op, "no sum of products of two elements")
    if fill is None or fill.name != "linalg.fill" or not is_constant(fill.operands[0], 0.0):
        raise Refusal(op, "sums that do not begin from zero")


def _without(value: ir.Value, name: str) -> ir.Value:
    """Returns what an op of a name is applied to, or the value itself."""
    source = producer(value)
    return source.operands[0] if source is not None and source.name == name else value


def is_constant(value: ir.Value, *numbers: float) -> bool:
    """Tells whether a value is a constant, one of some numbers.

    Args:
        value: of floating point.
        numbers: a NaN is equal to every NaN.
    """
    source = producer(value)
    if source is None or source.name != "arith.constant":
        return False
    held = ir.FloatAttr(source.attributes["value"]).value
    return any(held == number or (held != held and number != number) for number in numbers)  # noqa: PLR0124


def _weights_of(second: ir.Operation) -> tuple[ir.Value, ir.Value]:
    """Returns the operand that elementwise ops make, and the other one."""
    a, b = list(second.operands)[:2]
    for weights, values in ((a, b), (b, a)):
        source = producer(weights)
        if source is not None and source.name == "linalg.generic" and is_elementwise(source):
            return weights, values
    raise Refusal(second, "a product of no softmax")


def _rounded(second: ir.Operation, axes: tuple[int, ...]) -> tuple[Operand, ir.Operation]:
    """Returns the result, rounded to 16 bits, and the op that rounds it."""
    users = users_of(second.results[0])
    if len(users) != 1 or not is_elementwise(users[0]) or len(users[0].operands) != 2:
        raise Refusal(second, "a result that is not rounded by the one op that reads it")
    op = users[0]
    if sorted(inner_ops(op)) != ["arith.truncf", "linalg.yield"]:
        raise Refusal(op, "a result that is not rounded by the one op that reads it")
    read, written = (_loops(op, map_) for map_ in indexing_maps(op))
    by_loop = dict(zip(read, axes))
    return Operand(op.results[0], tuple(by_loop[loop] for loop in written)), op


class _Chain:
    """The elementwise ops and reductions between the two products.

    Args:
        rank: of the scores.

    Attributes:
        ops: those that were passed.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.ops: list[ir.Operation] = []

    def softmax(self, weights: ir.Value) -> ir.Value:
        """Returns the tensor whose softmax along the last axis, maybe rounded, another one is."""
        quotient = self._body(weights, "arith.truncf")
        if quotient.name == "arith.truncf":
            quotient = self._scalar(quotient.operands[0], quotient)
        power, total = self._quotient(quotient)
        difference = self._scalar(power.operands[0], power)
        if difference.name != "arith.subf":
            raise Refusal(difference, "exponentials of no differences")
        logits, _ = self._operand(difference.operands[0], difference)
        largest, of_rows = self._operand(difference.operands[1], difference)
        if not of_rows:
            raise Refusal(difference, "differences that are not to the maximum of the row")
        self._reduction(largest, _MAXIMA, logits, (float("-inf"), float("nan")))
        self._reduction(total, ("arith.addf",), self._exponentials, (0.0,))
        return logits

    def logits(self, logits: ir.Value) -> ir.Value:
        """Returns the products that elementwise ops make a tensor of."""
        source = producer(logits)
        assert source is not None
        if is_product(source):
            return logits
        self._take(source)
        found: list[ir.Value] = []
        for place, map_ in enumerate(indexing_maps(source)[:-1]):
            value = source.operands[place]
            if self._is_whole(map_) and _is_made_of_product(value):
                found.append(self.logits(value))
            elif not all(isinstance(item, ir.AffineDimExpr) for item in map_.results):
                raise Refusal(source, f"the indexing map {map_}; accepted: loops")
        if len(set(found)) != 1:
            raise Refusal(source, "logits that are not made of one product")
        for inner in inner_ops(source):
            if not inner.startswith(("arith.", "math.")) and inner not in ("linalg.yield", "linalg.index"):
                raise Refusal(source, f"'{inner}' between the products of an attention")
        return found[0]

    def _quotient(self, quotient: ir.Operation) -> tuple[ir.Operation, ir.Value]:
        """Returns the op that makes the exponentials, and the tensor of their sums."""
        if quotient.name != "arith.divf":
            raise Refusal(quotient, f"'{quotient.name}'; accepted: exponentials divided by their sum")
        self._exponentials, _ = self._operand(quotient.operands[0], quotient)
        total, of_rows = self._operand(quotient.operands[1], quotient)
        power = self._body(self._exponentials, "math.exp")
        if not of_rows or power.name != "math.exp" or not isinstance(power.results[0].type, ir.F32Type):
            raise Refusal(quotient, "no exponentials in f32 divided by their sum")
        return power, total

    def _take(self, op: ir.Operation) -> None:
        """Notes an elementwise op, over all axes in order."""
        if op.name != "linalg.generic" or not is_elementwise(op) or not self._is_whole(indexing_maps(op)[-1]):
            raise Refusal(op, f"'{op.name}' between the products of an attention is not elementwise on the scores")
        if op not in self.ops:
            self.ops.append(op)

    def _is_whole(self, map_: ir.AffineMap) -> bool:
        return map_ == ir.AffineMap.get_identity(self.rank)

    def _body(self, tensor: ir.Value, name: str) -> ir.Operation:
        """Returns the op whose result is an element of a tensor."""
        op = producer(tensor)
        if op is None:
            raise Refusal(tensor.owner.owner, f"an argument where '{name}' is expected")
        self._take(op)
        return self._scalar(_yielded(op), op)

    def _scalar(self, value: ir.Value, user: ir.Operation) -> ir.Operation:
        """Returns the op that makes a number of a body, maybe in the body of the op whose result the body reads."""
        source = producer(value)
        if source is not None:
            return source
        tensor, of_rows = self._operand(value, user)
        if of_rows:
            raise Refusal(user, "a number of each row")
        return self._body(tensor, "linalg.generic")

    def _operand(self, value: ir.Value, user: ir.Operation) -> tuple[ir.Value, bool]:
        """Returns the tensor that a number of a body is an element of, and whether it has one for each row."""
        if producer(value) is not None:
            raise Refusal(user, f"'{user.name}' of what its op computes")
        argument = ir.BlockArgument(value)
        op = argument.owner.owner
        map_ = indexing_maps(op)[argument.arg_number]
        dims = [ir.AffineExpr.get_dim(axis) for axis in range(self.rank - 1)]
        if self._is_whole(map_):
            return op.operands[argument.arg_number], False
        if list(map_.results) == dims:
            return op.operands[argument.arg_number], True
        raise Refusal(op, f"the indexing map {map_} in a softmax; accepted: all axes, or those of rows")

    def _reduction(self, rows: ir.Value, names: Iterable[str], of: ir.Value, starts: Sequence[float]) -> None:
        """Checks that a tensor is the reduction of another one along the last axis, and notes the op."""
        op = producer(rows)
        if op is None or op.name != "linalg.generic" or len(op.operands) != 2 or op.operands[0] != of:
            raise Refusal(op or rows.owner.owner, "no reduction of the rows of a softmax")
        maps = indexing_maps(op)
        dims = [ir.AffineExpr.get_dim(axis) for axis in range(self.rank - 1)]
        last, fill = producer(_yielded(op)), producer(op.operands[1])
        is_fold = last is not None and last.name in names and set(last.operands) == set(op.regions[0].blocks[0].arguments)
        if not self._is_whole(maps[0]) or list(maps[1].results) != dims or not is_fold:
            raise Refusal(op, "no reduction of the rows of a softmax")
        if fill is None or fill.name != "linalg.fill" or not is_constant(fill.operands[0], *starts):
            raise Refusal(op, "a reduction that begins from another number than its neutral one")
        self.ops.append(op)


def _is_made_of_product(value: ir.Value) -> bool:
    """Tells whether elementwise ops make a tensor of a product."""
    source = producer(value)
    if source is None or not source.name.startswith("linalg."):
        return False
    if is_product(source):
        return True
    return is_elementwise(source) and any(_is_made_of_product(operand) for operand in source.operands)
