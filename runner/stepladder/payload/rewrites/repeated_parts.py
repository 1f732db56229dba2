"""Concatenations of one tensor, or of parts of one, several times: broadcasts, of which matmuls read each part once.

Heads of queries that share keys are given the keys of each, one after the other (`k, k, k`), or each several times
(`k0, k0, k1, k1`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.reshapes import reshaped
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import producer, walk

_SLICE = "tensor.extract_slice"


def repeat(function: ir.Operation) -> None:
    """Replaces each `tensor.concat` of one static tensor several times, or of all parts of one along the dimension,
    each as often, by a `linalg.broadcast` and a reshape.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, "tensor.concat"):
        type_ = ir.RankedTensorType(op.operands[0].type)
        if not type_.has_static_shape or any(value.type != type_ for value in op.operands):
            continue
        axis = ir.IntegerAttr(op.attributes["dim"]).value
        runs = [list(run) for _, run in itertools.groupby(op.operands)]
        if len(runs) == 1 and len(runs[0]) > 1:
            source, parts = op.operands[0], 1
        elif len({len(run) for run in runs}) == 1 and len(runs[0]) > 1:
            source, parts = _source_of([run[0] for run in runs], axis), len(runs)
        else:
            continue
        if source is not None:
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_repeated(source, axis, parts, len(runs[0])))
            op.erase()


def _source_of(parts: Sequence[ir.Value], axis: int) -> ir.Value | None:
    """Returns the tensor that consists of parts along an axis, in their order; None where there is none."""
    sources: list[ir.Value] = []
    end = 0
    for part in parts:
        slice_ = producer(part)
        if slice_ is None or slice_.name != _SLICE or len(slice_.operands) > 1:
            return None
        offsets, sizes, steps = numbers_of(slice_)
        expected = [end if dimension == axis else 0 for dimension in range(len(sizes))]
        if sizes != list(ir.RankedTensorType(part.type).shape) or offsets != expected or set(steps) != {1}:
            return None
        sources.append(slice_.operands[0])
        end += sizes[axis]
    shape, of_part = (list(ir.RankedTensorType(value.type).shape) for value in (sources[0], parts[0]))
    of_part[axis] = end
    return sources[0] if len({*sources}) == 1 and shape == of_part else None


def _repeated(source: ir.Value, axis: int, parts: int, count: int) -> ir.Value:
    """Returns a tensor of which each of some parts along an axis is repeated, at the insertion point."""
    type_ = ir.RankedTensorType(source.type)
    shape = list(type_.shape)
    before, after, size = shape[:axis], shape[axis + 1 :], shape[axis] // parts
    divided = [*before, parts, size, *after] if parts > 1 else shape
    if parts > 1:
        groups = [[place] for place in range(axis)] + [[axis, axis + 1]]
        source = reshaped(source, divided, groups + [[place] for place in range(axis + 2, len(divided))])
    place = axis + (parts > 1)  # of the copies: before the elements of a part
    whole = [*divided[:place], count, *divided[place:]]
    empty = ir.Operation.create("tensor.empty", [ir.RankedTensorType.get(whole, type_.element_type)]).results[0]
    copies = create_named_op("linalg.broadcast", [source], empty, {"dimensions": ir.DenseI64ArrayAttr.get([place])})
    joined = 2 + (parts > 1)
    groups = [[number] for number in range(axis)] + [list(range(axis, axis + joined))]
    groups += [[number] for number in range(axis + joined, len(whole))]
    return reshaped(copies.results[0], [*before, parts * count * size, *after], groups)
