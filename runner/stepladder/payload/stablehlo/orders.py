"""Sorts of StableHLO as comparisons of all elements along an axis with each other: n² for n elements."""

from __future__ import annotations

from collections.abc import Callable

from stepladder.mlir.bindings import ir
from stepladder.mlir.diagnostics import location_text
from stepladder.mlir.traverse import attributes_of, producer, walk
from stepladder.payload.stablehlo.builder import Tensor, constant, created, gather, iota, where
from stepladder.runtime.errors import StepladderError

# Elements of an axis that is sorted by comparisons of all with all.
LONGEST = 4096
# Ops of StableHLO that a body which compares elements may have: those of one element are those of many.
_ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("abs", "add", "and", "clamp", "compare", "constant", "convert", "divide", "maximum", "minimum", "multiply"),
        *("negate", "not", "or", "select", "sign", "subtract", "xor", "floor", "ceil"),
    )
)


def rewrite(module: ir.Module) -> None:
    """Replaces sorts, the largest elements, and comparisons by the total order of floating-point numbers.

    Args:
        module: with functions of StableHLO, and `made.top_k` of `functions`.

    Raises:
        StepladderError: a sort of too many elements, or by a function that is not elementwise.
    """
    for op in walk(module, "stablehlo.sort", "made.top_k"):
        with ir.InsertionPoint(op), op.location:
            values = _sorted(op) if op.name == "stablehlo.sort" else _largest(op)
        for result, value in zip(op.results, values):
            result.replace_all_uses_with(value.value)
        op.erase()
    for op in walk(module, "stablehlo.compare"):
        if "compare_type" in op.attributes and "TOTALORDER" in str(op.attributes["compare_type"]):
            with ir.InsertionPoint(op), op.location:
                tensor = _totally_ordered(op)
            op.results[0].replace_all_uses_with(tensor.value)
            op.erase()


def _check(op: ir.Operation, extent: int) -> None:
    if extent > LONGEST:
        raise StepladderError(
            f"a sort of {extent} numbers",
            location=location_text(op.location),
            notes=[f"accepted: up to {LONGEST}, which are compared with each other"],
        )


def _sorted(op: ir.Operation) -> list[Tensor]:
    """Returns the tensors that a sort orders by its body."""
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    tensors = [Tensor(operand) for operand in op.operands]
    axis %= len(tensors[0].shape)
    _check(op, tensors[0].shape[axis])
    order = [item for item in range(len(tensors[0].shape)) if item != axis] + [axis]
    back = [order.index(item) for item in range(len(order))]
    rows = [tensor.transpose(order) for tensor in tensors]
    shape = rows[0].shape
    pair_shape, rank = [*shape, shape[-1]], len(shape)
    # of the element whose index it is, and of the others; equal elements keep their order
    place, other_place = iota(pair_shape, rank - 1), iota(pair_shape, rank)
    is_behind = other_place < place
    operands = []
    for tensor in rows:
        element = tensor.expand(pair_shape, range(rank))
        other_elements = tensor.expand(pair_shape, [*range(rank - 1), rank])
        operands += [where(is_behind, element, other_elements), where(is_behind, other_elements, element)]
    # Of two elements, the one behind is asked whether it is before the other one.
    block = op.regions[0].blocks[0]
    is_before = _elementwise(block, operands, pair_shape) ^ is_behind
    # Of a comparison such as GE, which is true of equal elements, no element is before itself.
    places = _counted(is_before if _is_strict(block) else is_before & ~place.equals(other_place))
    return [result.transpose(back) for result in _at(rows, places, shape[-1])]


def _is_strict(block: ir.Block) -> bool:
    """Returns whether a body is a comparison that no element and itself fulfil."""
    last = producer(list(block.operations)[-1].operands[0])
    return (
        last is not None
        and last.name == "stablehlo.compare"
        and any(f" {direction}>" in str(last.attributes["comparison_direction"]) for direction in ("LT", "GT"))
    )


def _counted(is_before: Tensor) -> Tensor:
    """Returns how many elements are before each one.

    Args:
        is_before: (..., elements, others).
    """
    return is_before.convert(ir.IntegerType.get_signless(32)).sum([len(is_before.shape) - 1])


def _at(tensors: list[Tensor], places: Tensor, count: int) -> list[Tensor]:
    """Returns the first elements of sorted ones along the last axis.

    Args:
        tensors: what is sorted.
        places: of each element among the sorted ones.
        count: how many are returned.
    """
    indices = _numbers(places, count)
    return [_taken(tensor, indices) for tensor in tensors]


def _numbers(places: Tensor, count: int) -> Tensor:
    """Returns the indices of the elements at the first positions; arguments as of `_at`."""
    shape, rank = places.shape, len(places.shape)
    table_shape = [*shape[:-1], count, shape[-1]]
    is_there = places.expand(table_shape, [*range(rank - 1), rank]).equals(iota(table_shape, rank - 1))
    return where(is_there, iota(table_shape, rank), 0).sum([rank])


def _taken(x: Tensor, indices: Tensor) -> Tensor:
    """Returns elements along the last axis: a gather of the tensor's rows, one after the other."""
    *batch, extent = x.shape
    count, rows = indices.shape[-1], 1
    for size in batch:
        rows *= size
    flat = indices.reshape([rows, count]) + iota([rows, count], 0) * extent
    elements = gather(x.reshape([rows * extent]), flat.reshape([rows, count, 1]), [0], [1], [True])
    return elements.reshape([*batch, count])


def _elementwise(block: ir.Block, operands: list[Tensor], shape: list[int]) -> Tensor:
    """Returns what a body of single elements computes, of many."""
    tensors: dict[ir.Value, Tensor] = dict(zip(block.arguments, operands))
    *ops, end = [item.operation for item in block.operations]
    for op in ops:
        if op.name not in _ELEMENTWISE:
            raise StepladderError(f"a sort by a function with '{op.name}'", location=location_text(op.location))
        type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(op.results[0].type).element_type)
        attributes = attributes_of(op)
        values = [tensors[operand].value if operand in tensors else operand for operand in op.operands]
        values = [item if Tensor(item).shape else Tensor(item).expand(shape, []).value for item in values]
        if op.name == "stablehlo.constant":
            value = ir.DenseElementsAttr(attributes["value"]).get_splat_value()
            attributes["value"] = ir.DenseElementsAttr.get_splat(type_, value)
        tensors[op.results[0]] = Tensor(created(op.name, type_, *values, **attributes))
    (result,) = end.operands
    return tensors[result] if result in tensors else Tensor(result).expand(shape, [])


def _largest(op: ir.Operation) -> list[Tensor]:
    """Returns the largest elements along the last axis and their indices; NaN is largest, and equal ones keep their
    order."""
    x = Tensor(op.operands[0])
    _check(op, x.shape[-1])
    indices = _numbers(_places(x, _less, is_descending=True), Tensor(op.results[0]).shape[-1])
    return [_taken(x, indices), indices.convert(Tensor(op.results[1]).element)]


def ordered(op: ir.Operation, rows: list[Tensor], count: int, *, is_descending: bool) -> list[Tensor]:
    """Returns the first elements along the last axis in the order of the first tensor, of all tensors; equal elements
    keep theirs, and NaN is largest.

    Args:
        op: the sort.
        rows: the tensors.
        count: how many elements.
        is_descending: whether the largest one is first.

    Raises:
        StepladderError: too many elements.
    """
    _check(op, rows[0].shape[-1])
    return _at(rows, _places(rows[0], _less_or_number, is_descending=is_descending), count)


def _places(x: Tensor, less: Callable[[Tensor, Tensor], Tensor], *, is_descending: bool) -> Tensor:
    """Returns the place of each element among those along the last axis; equal ones keep their order."""
    pair_shape, rank = [*x.shape, x.shape[-1]], len(x.shape)
    element, other_elements = x.expand(pair_shape, range(rank)), x.expand(pair_shape, [*range(rank - 1), rank])
    pair = (element, other_elements) if is_descending else (other_elements, element)
    is_before = less(*pair)
    is_equal = ~less(*reversed(pair)) & ~is_before
    return _counted(is_before | (is_equal & (iota(pair_shape, rank) < iota(pair_shape, rank - 1))))


def _less_or_number(x: Tensor, y: Tensor) -> Tensor:
    """Returns x < y; NaN is the largest, and -0 is equal to 0."""
    return (x < y) | (~x.is_nan() & y.is_nan()) if isinstance(x.element, ir.FloatType) else x < y


def _less(x: Tensor, y: Tensor) -> Tensor:
    """Returns x < y by the total order: -0 is less than 0, and NaN, without a sign, is the largest."""
    if not isinstance(x.element, ir.FloatType):
        return x < y
    is_zero = x.equals(0.0) & y.equals(0.0)
    ones = constant(1.0, x.shape, x.element)
    return (x < y) | (~x.is_nan() & y.is_nan()) | (is_zero & (ones / x < 0.0) & (ones / y > 0.0))


def _totally_ordered(op: ir.Operation) -> Tensor:
    """Returns a comparison by the total order."""
    x, y = (Tensor(operand) for operand in op.operands)
    direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    if direction in ("LT", "GE"):
        result = _less(x, y)
    elif direction in ("GT", "LE"):
        result = _less(y, x)
    else:
        result = _less(x, y) | _less(y, x)
        direction = "GE" if direction == "EQ" else "LT"
    return ~result if direction in ("GE", "LE") else result
