"""Scatters of StableHLO: each position of the tensor is compared with all positions that are written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.diagnostics import location_text
from stepladder.mlir.traverse import walk
from stepladder.payload.stablehlo.builder import Tensor, constant, gather, iota, neutral, where
from stepladder.runtime.errors import StepladderError

# The combination of the previous value with the one that is written.
_FOLDS = ("stablehlo.add", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum")
_LISTS = (
    *("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims"),
    "scatter_dims_to_operand_dims",
)
# Sums of these types are computed in f32.
_NARROW = ("f16", "bf16")


def rewrite(module: ir.Module) -> None:
    """Replaces scatters by comparisons and reductions.

    Args:
        module: with functions of StableHLO.

    Raises:
        StepladderError: a scatter of several tensors, or whose body is not one op.
    """
    for op in walk(module, "stablehlo.scatter"):
        fold = _fold(op)
        if len(op.results) != 1 or fold is None:
            raise StepladderError(
                "a scatter of several tensors, or by a function of its own",
                location=location_text(op.location),
                notes=["accepted: those of one tensor that set, add, multiply, or take the larger or smaller value"],
            )
        with ir.InsertionPoint(op), op.location:
            tensor = _scattered(op, fold)
        op.results[0].replace_all_uses_with(tensor.value)
        op.erase()


def _fold(op: ir.Operation) -> str | None:
    """Returns the op that combines values, "set" for the one that is written; None for another body."""
    block = op.regions[0].blocks[0]
    *ops, end = [item.operation for item in block.operations]
    if not ops and list(end.operands) == [block.arguments[len(block.arguments) - 1]]:
        return "set"
    if len(ops) == 1 and ops[0].name in _FOLDS and set(ops[0].operands) == set(block.arguments):
        return ops[0].name if list(end.operands) == [ops[0].results[0]] else None
    return None


def _dimensions(attribute: ir.Attribute) -> tuple[dict[str, list[int]], int]:
    """Returns the lists of dimension numbers by name, and the axis of the indices that has their coordinates."""
    text = str(attribute)
    numbers = {}
    for name in _LISTS:
        match = re.search(rf"\b{name} = \[([\d, ]*)\]", text)
        numbers[name] = [int(item) for item in match[1].split(",") if item.strip()] if match else []
    at = re.search(r"index_vector_dim = (\d+)", text)
    return numbers, int(at[1]) if at else 0


def _scattered(op: ir.Operation, fold: str) -> Tensor:
    """Returns a tensor with values written to it.

    The windows that are written are cut along the axes of their positions, so that each of what is left has one
    position along these axes, and the extent of the tensor along the others.
    """
    x, indices, updates = (Tensor(operand) for operand in op.operands)
    numbers, vector = _dimensions(op.attributes["scatter_dimension_numbers"])
    axes = numbers["scatter_dims_to_operand_dims"]
    if vector == len(indices.shape):
        indices = indices.reshape([*indices.shape, 1])
    indices = indices.transpose([axis for axis in range(len(indices.shape)) if axis != vector] + [vector])
    batch = indices.shape[:-1]
    places = [_column(indices, number) for number in range(len(axes))]
    of_batch = [axis - (axis > vector) for axis in numbers["scatter_indices_batching_dims"]]
    for axis, batch_axis in zip(numbers["input_batching_dims"], of_batch):
        axes, places = [*axes, axis], [*places, iota(batch, batch_axis)]
    windows = numbers["update_window_dims"]
    other_axes = [axis for axis in range(len(updates.shape)) if axis not in windows]
    left_out = {*numbers["inserted_window_dims"], *numbers["input_batching_dims"]}
    kept_axes = [axis for axis in range(len(x.shape)) if axis not in left_out]
    sizes = dict.fromkeys(range(len(x.shape)), 1) | {
        axis: updates.shape[window] for axis, window in zip(kept_axes, windows)
    }
    # A window that is the whole extent of an axis has its position at 0; others are cut.
    for axis in kept_axes:
        if sizes[axis] != x.shape[axis] and axis not in axes:
            axes, places = [*axes, axis], [*places, constant(0, batch, indices.element)]
    is_inside = None
    for axis, at in zip(axes, places):
        is_hit = (at >= 0) & (at <= x.shape[axis] - sizes[axis])
        is_inside = is_hit if is_inside is None else is_inside & is_hit
    cut_axes = [axis for axis in kept_axes if axis in axes]
    rest = [axis for axis in kept_axes if axis not in axes]
    window = dict(zip(kept_axes, windows))
    updates = updates.transpose([*other_axes, *(window[axis] for axis in cut_axes), *(window[axis] for axis in rest)])
    place_shape = [*batch, *(sizes[axis] for axis in cut_axes)]
    count = 1
    for extent in place_shape:
        count *= extent
    flat = updates.reshape([count, *(x.shape[axis] for axis in rest)])
    lines: dict[int, Tensor] = {}
    for axis, at in zip(axes, places):
        at = at.expand(place_shape, range(len(batch)))
        if axis in cut_axes:
            at = at + iota(place_shape, len(batch) + cut_axes.index(axis)).convert(at.element)
        lines[axis] = at.reshape([count])
    if is_inside is not None:
        is_inside = is_inside.expand(place_shape, range(len(batch))).reshape([count])
    indexed_axes = sorted(axes)
    order = [*indexed_axes, *rest]
    transposed = x.transpose(order)
    hits = _hits([lines[axis] for axis in indexed_axes], [x.shape[axis] for axis in indexed_axes], is_inside, count)
    result = _set(transposed, hits, flat) if fold == "set" else _folded(transposed, hits, flat, fold)
    return result.transpose([order.index(axis) for axis in range(len(order))])


def _column(indices: Tensor, number: int) -> Tensor:
    return indices.narrow(len(indices.shape) - 1, number, 1).reshape(indices.shape[:-1])


def _hits(lines: Sequence[Tensor], extents: Sequence[int], is_inside: Tensor | None, count: int) -> Tensor:
    """Returns whether an element is written to a position, (extents, elements).

    Args:
        lines: the positions along each axis, one for each element.
        extents: of the tensor along these axes.
        is_inside: whether an element is written; None for all.
        count: how many elements there are.
    """
    hit_shape = [*extents, count]
    hits = constant(True, hit_shape, ir.IntegerType.get_signless(1))
    if is_inside is not None:
        hits = is_inside.expand(hit_shape, [len(extents)])
    for axis, line in enumerate(lines):
        at = line.expand(hit_shape, [len(extents)])
        hits = hits & at.equals(iota(hit_shape, axis).convert(line.element))
    return hits


def _set(x: Tensor, hits: Tensor, updates: Tensor) -> Tensor:
    """Returns a tensor with the last element that is written to each position.

    Args:
        x: (positions, rest).
        hits: (positions, elements).
        updates: (elements, rest).
    """
    rank = len(hits.shape) - 1
    least = constant(-1, [], ir.IntegerType.get_signless(32))
    last = where(hits, iota(hits.shape, rank), -1).reduce("stablehlo.maximum", least, [rank])
    sizes = [1, *updates.shape[1:]]
    elements = gather(updates, last.reshape([*last.shape, 1]), [0], sizes, [True, *([False] * (len(sizes) - 1))])
    return where((last >= 0).expand(x.shape, range(rank)), elements, x)


def _folded(x: Tensor, hits: Tensor, updates: Tensor, fold: str) -> Tensor:
    """Returns a tensor with the elements that are written to each position combined; arguments as of `_set`."""
    rank, element = len(hits.shape) - 1, x.element
    if fold == "stablehlo.add" and str(element) in _NARROW:
        x, updates = x.convert(ir.F32Type.get()), updates.convert(ir.F32Type.get())
    start = neutral(fold, x.element)
    term_shape = [*hits.shape, *updates.shape[1:]]
    terms = updates.expand(term_shape, range(rank, len(term_shape)))
    hit_terms = where(hits.expand(term_shape, range(rank + 1)), terms, start.expand(term_shape, []))
    reduction = hit_terms.reduce(fold, start, [rank])
    return x.combined(fold.removeprefix("stablehlo."), reduction).convert(element)
