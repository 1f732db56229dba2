"""Reductions of StableHLO as others, which become reductions of one value that kernels and references compute: running
sums, windows, and the indices of extrema."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer, walk
from stepladder.payload.stablehlo.builder import created, integers

# Ops of a body that reduces; the order of the two values does not matter.
_FOLDS = ("stablehlo.add", "stablehlo.maximum", "stablehlo.minimum", "stablehlo.multiply")
# Slices that an axis of windows becomes at most.
_MAX_SLICES = 32
# Bodies of `argmax` and `argmin`, whose arguments are a, b (values) and i, j (indices); the numbers of others count
# their ops from 0. With each, the directions of its comparisons for a maximum and a minimum.
_PLACES = [
    (  # JAX
        [
            ("stablehlo.compare", "a", "b"),
            ("stablehlo.compare", "a", "a"),  # a is NaN
            ("stablehlo.or", 0, 1),
            ("stablehlo.compare", "a", "b"),
            ("stablehlo.compare", "i", "j"),
            ("stablehlo.and", 3, 4),
            ("stablehlo.or", 2, 5),
            ("stablehlo.select", 2, "a", "b"),
            ("stablehlo.select", 6, "i", "j"),
            ("stablehlo.return", 7, 8),
        ],
        (["GT", "NE", "EQ", "LT"], ["LT", "NE", "EQ", "LT"]),
    ),
    (  # torch-mlir; of a row with NaN, the order of the reduction decides, and NaN is what one order gives
        [
            ("stablehlo.compare", "a", "b"),
            ("stablehlo.select", 0, "a", "b"),
            ("stablehlo.compare", "a", "b"),
            ("stablehlo.minimum", "i", "j"),
            ("stablehlo.select", 0, "i", "j"),
            ("stablehlo.select", 2, 3, 4),
            ("stablehlo.return", 1, 5),
        ],
        (["GE", "EQ"], ["LE", "EQ"]),
    ),
]
# Infinities as MLIR writes them: the negative one, and the positive one.
_INFINITE = {
    "f16": ("0xFC00", "0x7C00"),
    "bf16": ("0xFF80", "0x7F80"),
    "f32": ("0xFF800000", "0x7F800000"),
    "f64": ("0xFFF0000000000000", "0x7FF0000000000000"),
}


def rewrite(module: ir.Module) -> None:
    """Replaces windows and indices of extrema where they have the forms that JAX or torch-mlir writes; others stay.

    Args:
        module: with functions of StableHLO.
    """
    for op in walk(module, "stablehlo.reduce_window"):
        _replace_window(op)
    for op in walk(module, "stablehlo.reduce"):
        if not list(ir.DenseI64ArrayAttr(op.attributes["dimensions"])):  # of scalars, and the neutral element of each
            for result, operand in zip(op.results, op.operands):
                result.replace_all_uses_with(operand)
            op.erase()
            continue
        _replace_places(op)


def rewrite_unsigned_places(module: ir.Module) -> None:
    """Replaces the indices of extrema that are integers without a sign, before these become others.

    Args:
        module: with functions of StableHLO.
    """
    for op in walk(module, "stablehlo.reduce"):
        if len(op.operands) == len("aibj") and _is_unsigned(_tensor(op.operands[1]).element_type):
            _replace_places(op)


def _is_unsigned(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.is_unsigned


def _tensor(value: ir.Value) -> ir.RankedTensorType:
    return ir.RankedTensorType(value.type)


def _like(value: ir.Value, shape: Sequence[int]) -> ir.Type:
    return ir.RankedTensorType.get(list(shape), _tensor(value).element_type)


def _broadcast(value: ir.Value, shape: Sequence[int], axes: Sequence[int]) -> ir.Value:
    """Returns a value repeated to a shape; its axes are those of the result in `axes`."""
    dimensions = integers(axes)
    return created("stablehlo.broadcast_in_dim", _like(value, shape), value, broadcast_dimensions=dimensions)


def _compare(direction: str, left: ir.Value, right: ir.Value) -> ir.Value:
    type_ = ir.RankedTensorType.get(_tensor(left).shape, ir.IntegerType.get_signless(1))
    attribute = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
    return created("stablehlo.compare", type_, left, right, comparison_direction=attribute)


def _reduced(fold: str, value: ir.Value, start: ir.Value, axis: int) -> ir.Value:
    """Returns a reduction along an axis, by a body of one op."""
    shape = [extent for number, extent in enumerate(_tensor(value).shape) if number != axis]
    op = ir.Operation.create(
        "stablehlo.reduce",
        results=[_like(value, shape)],
        operands=[value, start],
        attributes={"dimensions": integers([axis])},
        regions=1,
    )
    number = _like(value, [])
    body = op.regions[0].blocks.append(number, number)
    with ir.InsertionPoint(body):
        ir.Operation.create("stablehlo.return", operands=[created(fold, number, *body.arguments)])
    return op.results[0]


def _replace_window(op: ir.Operation) -> None:
    """Replaces a reduction of windows by slices and a fold along each axis, and a running one by a masked reduction."""
    if len(op.operands) != 2 or not _tensor(op.operands[0]).has_static_shape:
        return
    value, start = op.operands
    shape, rank = _tensor(value).shape, _tensor(value).rank
    body = op.regions[0].blocks[0]
    inner = [item.operation for item in body.operations]
    if len(inner) != 2 or inner[0].name not in _FOLDS or set(inner[0].operands) != set(body.arguments):
        return
    fold = inner[0].name

    def numbers(name: str, default: int) -> list[int]:
        return list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else [default] * rank

    windows, strides = numbers("window_dimensions", 1), numbers("window_strides", 1)
    if any(step != 1 for name in ("base_dilations", "window_dilations") for step in numbers(name, 1)):
        return
    flat = [0] * (2 * rank)
    if "padding" in op.attributes:
        padding = ir.DenseIntElementsAttr(op.attributes["padding"])
        flat = [padding[0]] * (2 * rank) if padding.is_splat else list(padding)
    around = list(zip(flat[::2], flat[1::2]))
    axes = [axis for axis in range(rank) if windows[axis] > 1 or strides[axis] > 1 or around[axis] != (0, 0)]
    if any(before < 0 or after < 0 for before, after in around):
        return
    is_running = len(axes) == 1 and windows[axes[0]] == shape[axes[0]] and strides[axes[0]] == 1
    ends = (shape[axes[0]] - 1, 0) if axes else (0, 0)
    if not (is_running and around[axes[0]] in (ends, ends[::-1])) and any(windows[axis] > _MAX_SLICES for axis in axes):
        return
    with ir.InsertionPoint(op), op.location:
        if is_running and around[axes[0]] in (ends, ends[::-1]):
            value = _running(fold, value, start, axes[0], is_reverse=around[axes[0]] != ends)
        else:
            for axis in axes:
                value = _along(fold, value, start, axis, windows[axis], strides[axis], around[axis])
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _running(fold: str, value: ir.Value, start: ir.Value, axis: int, *, is_reverse: bool) -> ir.Value:
    """Returns the reduction of all elements up to each one along an axis, or from it on."""
    shape = list(_tensor(value).shape)
    pair_shape = [*shape[: axis + 1], *shape[axis:]]
    rows = _broadcast(value, pair_shape, [number + (number >= axis) for number in range(len(shape))])
    places = ir.RankedTensorType.get(pair_shape, ir.IntegerType.get_signless(32))
    of_result, of_element = (
        created("stablehlo.iota", places, iota_dimension=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number))
        for number in (axis, axis + 1)
    )
    is_taken = _compare("LE" if is_reverse else "GE", of_result, of_element)
    terms = created("stablehlo.select", rows.type, is_taken, rows, _broadcast(start, pair_shape, []))
    return _reduced(fold, terms, start, axis + 1)


def _along(
    fold: str, value: ir.Value, start: ir.Value, axis: int, window: int, stride: int, around: tuple[int, int]
) -> ir.Value:
    """Returns the reduction of windows along one axis: slices of the elements, with `start` around them."""
    shape = list(_tensor(value).shape)
    parts = [value]
    for place, count in ((0, around[0]), (len(parts) + 1, around[1])):
        if count:
            parts.insert(place, _broadcast(start, [*shape[:axis], count, *shape[axis + 1 :]], []))
    shape[axis] += sum(around)
    dimension = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
    if len(parts) > 1:
        value = created("stablehlo.concatenate", _like(value, shape), *parts, dimension=dimension)
    count = (shape[axis] - window) // stride + 1
    type_ = _like(value, [*shape[:axis], count, *shape[axis + 1 :]])
    result = None
    for first in range(window):
        begin, end, steps = [0] * len(shape), list(shape), [1] * len(shape)
        begin[axis], end[axis], steps[axis] = first, first + (count - 1) * stride + 1, stride
        part = created(
            "stablehlo.slice",
            type_,
            value,
            start_indices=integers(begin),
            limit_indices=integers(end),
            strides=integers(steps),
        )
        result = part if result is None else created(fold, type_, result, part)
    assert result is not None  # a window has an element
    return result


def _replace_places(op: ir.Operation) -> None:
    """Replaces `argmax` and `argmin` by an extremum, and the least index that has it or NaN."""
    if len(op.operands) != 4 or not _tensor(op.operands[0]).has_static_shape:
        return
    axes = list(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    value, places, start, first_place = op.operands
    iota = producer(places)
    if len(axes) != 1 or iota is None or iota.name != "stablehlo.iota":
        return
    if ir.IntegerAttr(iota.attributes["iota_dimension"]).value != axes[0]:
        return
    is_maximum = _is_maximum(op.regions[0].blocks[0])
    if is_maximum is None or not _is_least(start, is_maximum=is_maximum):
        return
    (axis,), shape = axes, list(_tensor(value).shape)
    index = _tensor(places).element_type
    is_unsigned = _is_unsigned(index)
    most = (1 << ir.IntegerType(index).width - (not is_unsigned)) - 1
    if shape[axis] > most + 1 or not _is_place_or_more(first_place):  # indices wrap, or the start's index comes first
        return
    place_type = ir.IntegerType.get_signless(32) if is_unsigned else index
    largest = ir.IntegerAttr.get(place_type, shape[axis] if is_unsigned else min(shape[axis], most))
    with ir.InsertionPoint(op), op.location:
        fold = "stablehlo.maximum" if is_maximum else "stablehlo.minimum"
        extremum = _reduced(fold, value, start, axis)
        other_axes = [number for number in range(len(shape)) if number != axis]
        is_place = _compare("EQ", value, _broadcast(extremum, shape, other_axes))
        if isinstance(_tensor(value).element_type, ir.FloatType):
            is_place = created("stablehlo.or", is_place.type, is_place, _compare("NE", value, value))
        if is_unsigned:
            type_ = ir.RankedTensorType.get(shape, place_type)
            places = created("stablehlo.iota", type_, iota_dimension=iota.attributes["iota_dimension"])
        number = ir.RankedTensorType.get([], place_type)
        beyond = created("stablehlo.constant", number, value=ir.DenseElementsAttr.get_splat(number, largest))
        candidates = created("stablehlo.select", places.type, is_place, places, _broadcast(beyond, shape, []))
        first = _reduced("stablehlo.minimum", candidates, beyond, axis)
        if is_unsigned:
            first = created("stablehlo.convert", op.results[1].type, first)
    for result, replacement in zip(op.results, (extremum, first)):
        result.replace_all_uses_with(replacement)
    op.erase()


def _is_least(start: ir.Value, *, is_maximum: bool) -> bool:
    """Returns whether the start of an extremum is a constant that no value is below, or above for a minimum."""
    constant = producer(start)
    if constant is None or constant.name != "stablehlo.constant":
        return False
    element = str(_tensor(start).element_type)
    limits = _INFINITE.get(element)
    if limits is None and element[0] == "i":
        bits = int(element[1:])
        limits = (str(-(1 << (bits - 1))), str((1 << (bits - 1)) - 1))
    least = limits[not is_maximum] if limits else ""
    return str(constant.attributes["value"]).startswith(f"dense<{least}>")


def _is_place_or_more(start: ir.Value) -> bool:
    """Returns whether the index that a reduction starts from is a constant that is not negative."""
    constant = producer(start)
    return (
        constant is not None
        and constant.name == "stablehlo.constant"
        and not str(constant.attributes["value"]).startswith("dense<-")
    )


def _is_maximum(body: ir.Block) -> bool | None:
    """Returns whether a body finds the index of a maximum, or else of a minimum; None for another body."""
    for form, (greater, less) in _PLACES:
        directions = _directions(body, form)
        if directions in (greater, less):
            return directions == greater
    return None


def _directions(body: ir.Block, form: Sequence[tuple[str | int, ...]]) -> list[str]:
    """Returns the directions of the comparisons in a body of a form; nothing for another body."""
    inner = [item.operation for item in body.operations]
    # The arguments are the values and indices of one side, and those of the other.
    arguments: dict[str | int, ir.Value] = dict(zip("aibj", body.arguments))
    if len(inner) != len(form) or len(body.arguments) != len(arguments):
        return []
    for number, (op, (name, *operands)) in enumerate(zip(inner, form)):
        if op.name != name or list(op.operands) != [arguments[operand] for operand in operands]:
            return []
        if op.results:
            arguments[number] = op.results[0]
    compares = [op for op in inner if op.name == "stablehlo.compare"]
    if any("TOTALORDER" in str(op.attributes["compare_type"]) for op in compares if "compare_type" in op.attributes):
        return []
    return [str(op.attributes["comparison_direction"]).split()[-1].rstrip(">") for op in compares]
