"""Gradients of max poolings, `stablehlo.select_and_scatter`, as sums over the windows that have an element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import number_in
from stepladder.mlir.traverse import producer, walk
from stepladder.payload.stablehlo.builder import Tensor, concatenate, constant, created, integers, iota, where

# Elements of a window at most: each is a slice.
_MOST = 64
_DIRECTIONS = ("GE", "GT", "LE", "LT")


def rewrite(module: ir.Module) -> None:
    """Replaces ops that select an extremum of each window and add to zeros, without padding, as JAX writes them; others
    stay.

    Args:
        module: with functions of StableHLO.
    """
    for op in walk(module, "stablehlo.select_and_scatter"):
        direction = _direction(op)
        if direction is None:
            continue
        with ir.InsertionPoint(op), op.location:
            result = _scattered(op, direction)
        op.results[0].replace_all_uses_with(result.value)
        op.erase()


def _direction(op: ir.Operation) -> str | None:
    """Returns the comparison by which an op keeps an element beside the next one; None for an op of another form."""
    value, _, start = op.operands
    select, scatter = ([item.operation for item in region.blocks[0].operations] for region in op.regions)
    arguments = [list(region.blocks[0].arguments) for region in op.regions]
    zero = producer(start)
    number = number_in(zero.attributes["value"]) if zero is not None and zero.name == "stablehlo.constant" else None
    has_padding = "padding" in op.attributes and any(ir.DenseIntElementsAttr(op.attributes["padding"]))
    is_known = (
        ir.RankedTensorType(value.type).has_static_shape
        and "window_dimensions" in op.attributes
        and math.prod(_numbers(op, "window_dimensions")) <= _MOST
        and not has_padding
        and number is not None
        and number.value == 0
        and [item.name for item in select] == ["stablehlo.compare", "stablehlo.return"]
        and list(select[0].operands) == arguments[0]
        and [item.name for item in scatter] == ["stablehlo.add", "stablehlo.return"]
        and set(scatter[0].operands) == set(arguments[1])
    )
    text = str(select[0].attributes["comparison_direction"]) if is_known else ""
    return next((direction for direction in _DIRECTIONS if direction in text), None)


def _numbers(op: ir.Operation, name: str) -> list[int]:
    """Returns an attribute of the axes, 1 by default."""
    if name not in op.attributes:
        return [1] * ir.RankedTensorType(op.operands[0].type).rank
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def _scattered(op: ir.Operation, direction: str) -> Tensor:
    """Returns the sums at each element of the values of windows that select it."""
    value, source = Tensor(op.operands[0]), Tensor(op.operands[1])
    sizes, steps = _numbers(op, "window_dimensions"), _numbers(op, "window_strides")
    place = _places(value, source.shape, sizes, steps, direction)
    # An element is at the beginning of a window, or in one of those that begin before.
    groups = [-(-extent // step) for extent, step in zip(value.shape, steps)]
    before = [-(-size // step) - 1 for size, step in zip(sizes, steps)]
    shape = [extent for pair in zip(groups, steps) for extent in pair]
    total: Tensor | None = None
    for shifts in itertools.product(*(range(count + 1) for count in before)):
        at, is_inside = constant(0, shape, place.element), None
        for axis, (shift, size, step) in enumerate(zip(shifts, sizes, steps)):
            along = iota(shape, 2 * axis + 1) + shift * step
            at = at * size + along
            if shift * step + step > size:
                is_element = along < size
                is_inside = is_element if is_inside is None else is_inside & is_element
        chosen = _of_groups(place, groups, before, shifts, shape, -1).equals(at)
        chosen = chosen if is_inside is None else chosen & is_inside
        term = where(chosen, _of_groups(source, groups, before, shifts, shape, 0), 0)
        total = term if total is None else total + term
    assert total is not None  # there is a shift of 0
    whole = total.reshape([group * step for group, step in zip(groups, steps)])
    return whole.slice([0] * len(groups), value.shape)


def _places(value: Tensor, counts: Sequence[int], sizes: Sequence[int], steps: Sequence[int], direction: str) -> Tensor:
    """Returns the number of the element that each window selects."""
    best: Tensor | None = None
    place: Tensor | None = None
    for number, first in enumerate(itertools.product(*map(range, sizes))):
        ends = [begin + (count - 1) * step + 1 for begin, count, step in zip(first, counts, steps)]
        part = created(
            "stablehlo.slice",
            ir.RankedTensorType.get(list(counts), value.element),
            value.value,
            start_indices=integers(first),
            limit_indices=integers(ends),
            strides=integers(steps),
        )
        element, here = Tensor(part), constant(number, counts, ir.IntegerType.get_signless(32))
        if best is None or place is None:
            best, place = element, here
            continue
        is_kept = best.compared(direction, element)
        best, place = where(is_kept, best, element), where(is_kept, place, here)
    assert place is not None  # a window has an element
    return place


def _of_groups(
    of_windows: Tensor,
    groups: Sequence[int],
    before: Sequence[int],
    shifts: Sequence[int],
    shape: Sequence[int],
    outside: int,
) -> Tensor:
    """Returns values of the windows that begin some groups before each element's; with `outside` where none do."""
    for axis, (count, extra) in enumerate(zip(groups, before)):
        behind = count - of_windows.shape[axis]
        parts = [of_windows]
        for place, extent in ((0, extra), (len(parts) + 1, behind)):
            if extent > 0:
                filled = [extent if item == axis else other for item, other in enumerate(of_windows.shape)]
                parts.insert(place, constant(outside, filled, of_windows.element))
        of_windows = concatenate(parts, axis)
    starts = [extra - shift for extra, shift in zip(before, shifts)]
    return of_windows.slice(starts, groups).expand(shape, range(0, len(shape), 2))
