"""The softmax of an attention: the reductions and elementwise ops between its products."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.multi_kernel.products import is_contraction
from stepladder.extension.lib.multi_kernel.stages import inner_ops, is_elementwise
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import defining_op, origin, producer

_MAXIMA = ("arith.maxnumf", "arith.maximumf")
_LOWEST = (float("-inf"), float("nan"))
_NO_SOFTMAX = "a softmax without the maximum or the sum of each row"


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


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """Returns the extents of a tensor.

    Args:
        value: the tensor.
    """
    return tuple(ir.RankedTensorType(value.type).shape)


def loops_along(op: ir.Operation, map_: ir.AffineMap) -> list[int]:
    """Returns the loops along the axes of an operand.

    Args:
        op: a linalg op.
        map_: the indexing map of the operand.

    Raises:
        Refusal: an axis is not that of a loop.
    """
    if not all(isinstance(item, ir.AffineDimExpr) for item in map_.results):
        raise Refusal(op, f"the indexing map {map_}; accepted: loops")
    return [item.position for item in map_.results]


def yielded(op: ir.Operation) -> ir.Value:
    """Returns what the body of a linalg op yields for its first result.

    Args:
        op: a linalg op.
    """
    return operations_of(op.regions[0].blocks[0])[-1].operands[0]


class Chain:
    """The elementwise ops and reductions between the two products.

    Args:
        inner: axes of the scores behind the outer ones: of queries and keys, or of keys alone.

    Attributes:
        ops: those that were passed.
        zeroes_hidden: whether weights are zero in rows whose logits are all minus infinity; else they are NaN.
    """

    def __init__(self, inner: int) -> None:
        self.inner = inner
        self.ops: list[ir.Operation] = []
        self.zeroes_hidden = False

    def softmax(self, weights: ir.Value) -> ir.Value:
        """Returns the tensor whose softmax along the last axis, maybe rounded, another one is.

        Args:
            weights: the softmax.

        Raises:
            Refusal: it is none.
        """
        quotient = self._body(weights)
        if quotient.name == "arith.truncf":
            quotient = self._scalar(quotient.operands[0], quotient)
        hidden = None
        if quotient.name == "arith.select" and is_constant(quotient.operands[1], 0.0):
            hidden = self._operand(quotient.operands[0], quotient, of_rows=True)
            quotient = self._scalar(quotient.operands[2], quotient)
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
        if hidden is not None:
            self._check_hidden(hidden, logits)
            self.zeroes_hidden = True
        return logits

    def scores(self, logits: ir.Value) -> ir.Value:
        """Returns the products that elementwise ops make a tensor of.

        Args:
            logits: the tensor.

        Raises:
            Refusal: it is not made of one product, or by other ops.
        """
        value = self._through(logits)
        source = producer(value)
        assert source is not None  # a tensor that is made of a product
        if is_contraction(source):
            return value
        self._take(source)
        products: set[ir.Value] = set()
        for place, map_ in enumerate(indexing_maps(source)[:-1]):
            operand = source.operands[place]
            if _is_whole(map_) and _is_made_of_product(operand):
                products.add(self.scores(operand))
            else:
                loops_along(source, map_)
        if len(products) != 1:
            raise Refusal(source, "logits that are not computed from one product")
        for inner in inner_ops(source):
            if not inner.startswith(("arith.", "math.")) and inner not in ("linalg.yield", "linalg.index"):
                raise Refusal(source, f"'{inner}' between the products of an attention")
        return products.pop()

    def _through(self, value: ir.Value) -> ir.Value:
        """Returns the tensor that another one is a view of, of which outer axes are divided or joined."""
        inner = shape_of(value)[-self.inner :]
        source = producer(value)
        while source is not None and source.name in TENSOR_VIEWS:
            self._note(source)
            value = source.operands[0]
            source = producer(value)
        if source is None:
            raise Refusal(ir.BlockArgument(value).owner.owner, "an argument in place of scores")
        if shape_of(value)[-self.inner :] != inner:
            raise Refusal(source, "a view of scores that is not of their outer axes")
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
        return self._scalar(yielded(op), op)

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
        source = self._fold(rows, of)
        arguments, last = source.regions[0].blocks[0].arguments, producer(yielded(source))
        if last is None or last.name not in names or set(last.operands) != {arguments[0], arguments[1]}:
            raise Refusal(source, _NO_SOFTMAX)
        fill = producer(origin(source.operands[1], TENSOR_VIEWS))
        if fill is None or fill.name != "linalg.fill" or not is_constant(fill.operands[0], *starts):
            raise Refusal(source, "a reduction whose initial value is not its neutral element")

    def _check_hidden(self, rows: ir.Value, logits: ir.Value) -> None:
        """Checks that a tensor tells whether all logits of a row are minus infinity, and notes the op."""
        source = self._fold(rows, logits)
        logit, so_far = source.regions[0].blocks[0].arguments
        last, start = producer(yielded(source)), repeated_number(origin(source.operands[1], TENSOR_VIEWS))
        is_all = last is not None and last.name == "arith.andi" and so_far in list(last.operands)
        compared = [value for value in last.operands if value != so_far] if is_all and last is not None else []
        test = producer(compared[0]) if compared else None
        if test is None or test.name != "arith.cmpf" or start is None or not start.value:
            raise Refusal(source, "weights that are zero in other rows than those without keys")
        is_equal = ir.IntegerAttr(test.attributes["predicate"]).value == arith.CmpFPredicate.OEQ
        if not (
            is_equal
            and origin(test.operands[0], ("arith.extf",)) == logit
            and is_constant(test.operands[1], float("-inf"))
        ):
            raise Refusal(source, "weights that are zero in other rows than those without keys")

    def _fold(self, rows: ir.Value, of: ir.Value) -> ir.Operation:
        """Returns the op that reduces a tensor along the last axis to another one, and notes it."""
        source = producer(rows)
        while source is not None and source.name in TENSOR_VIEWS:  # those that add an axis of one element
            self._note(source)
            rows = source.operands[0]
            source = producer(rows)
        if source is None or source.name != "linalg.generic" or self._through(source.operands[0]) != of:
            raise Refusal(defining_op(of), _NO_SOFTMAX)
        maps = indexing_maps(source)
        if len(maps) != 2 or not (_is_whole(maps[0]) and _is_of_rows(maps[1]) and rows == source.results[0]):
            raise Refusal(source, _NO_SOFTMAX)
        self._note(source)
        return source


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
    if is_contraction(source):
        return True
    return is_elementwise(source) and any(map(_is_made_of_product, source.operands))
