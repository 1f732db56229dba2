"""Indices of extrema in results: two nearly equal values may have either index, as rounding decides."""

from __future__ import annotations

import numpy as np

from stepladder.runtime.reference import Generic, Reshape
from stepladder.runtime.reference_extrema import indexed_extremum
from stepladder.verify.arrays import on_host
from stepladder.verify.reference_evaluation import Evaluation
from stepladder.verify.structured_evaluation import StructuredOp


def distances(
    exact: Evaluation, rounded: Evaluation, value: int, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Compares indices of extrema by the values at them; None for a result that holds none.

    Args:
        exact: the program.
        rounded: the same, which rounds its values.
        value: index of the result.
        indices: as a kernel found them.

    Returns:
        How far the value at each index is from the extremum, in the shape of the result, infinite where no value has
        the index; the values; and how far rounding moves them.
    """
    op, other = _op_of(exact, value), _op_of(rounded, value)
    if op is None or other is None:
        return None
    found = indexed_extremum(op.op, op.output - len(op.op.inputs))
    assert found is not None
    (loop,) = [loop for loop in op.loops if loop not in op.order]
    terms, kept = on_host(op.spread(found.term, loop)), on_host(op.spread(found.kept, loop))
    extreme, none = (np.max, -np.inf) if found.largest else (np.min, np.inf)
    picked = np.where(kept == indices.reshape(*terms.shape[:-1], 1), terms, none)
    errors = np.abs(extreme(terms, -1) - extreme(picked, -1)).reshape(indices.shape)
    return errors, terms, np.abs(on_host(other.spread(found.term, loop)) - terms)


def _op_of(program: Evaluation, value: int) -> StructuredOp | None:
    """Returns the op that makes a result which holds indices of extrema, in another shape."""
    made = program.makers.get(value)
    while made is not None and isinstance(made[0], Reshape):
        value = made[0].source
        made = program.makers.get(value)
    if made is None or not isinstance(made[0], Generic) or indexed_extremum(made[0], made[1]) is None:
        return None
    return StructuredOp(program, made[0], made[1], tuple(slice(0, size) for size in program.shape(value)))
