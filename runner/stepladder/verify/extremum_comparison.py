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
    op, rounded_op = _op_of(exact, value), _op_of(rounded, value)
    if op is None or rounded_op is None:
        return None
    extremum = indexed_extremum(op.op, op.output - len(op.op.inputs))
    assert extremum is not None
    terms, positions = on_host(op.spread(extremum.term)), on_host(op.spread(extremum.kept))
    extreme, none = (np.max, -np.inf) if extremum.largest else (np.min, np.inf)
    values = np.where(positions == indices.reshape(*terms.shape[:-1], 1), terms, none)
    errors = np.abs(extreme(terms, -1) - extreme(values, -1)).reshape(indices.shape)
    return errors, terms, np.abs(on_host(rounded_op.spread(extremum.term)) - terms)


def _op_of(program: Evaluation, value: int) -> StructuredOp | None:
    """Returns the op that makes a result which holds indices of extrema, in another shape."""
    maker = program.makers.get(value)
    while maker is not None and isinstance(maker[0], Reshape):
        value = maker[0].source
        maker = program.makers.get(value)
    if maker is None or not isinstance(maker[0], Generic) or indexed_extremum(maker[0], maker[1]) is None:
        return None
    return StructuredOp(program, maker[0], maker[1], tuple(slice(0, size) for size in program.shape(value)))
