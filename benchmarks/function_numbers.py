"""The numbers of functions of public models: what they compute, random arguments, and errors of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import stepladder


def expected(
    kind: str,
    x: Any,  # noqa: ANN401
    weights: Sequence[Any],
    linear: Callable,
    silu: Callable,
    relu: Callable,
    norm: Callable,
) -> tuple:
    """Returns the results of a function, computed with the operations of a library.

    Args:
        kind: of the function.
        x: the input.
        weights: in the order of the arguments.
        linear, silu, relu, norm: the operations.
    """
    if kind == "projections":
        return tuple(linear(x, weight) for weight in weights)
    if kind == "mlp":
        return (linear(relu(linear(x, weights[0])), weights[1]),)
    scale, (gate, up, down) = weights[:-3], weights[-3:]
    inner = norm(x, *scale) if scale else x
    y = linear(silu(linear(inner, gate)) * linear(inner, up), down)
    return (x + y if scale else y,)


def random_arrays(function: stepladder.Function) -> list[np.ndarray]:
    """Returns arguments: normal numbers, divided by the root of the rows' length in weights.

    Args:
        function: whose arguments they are.
    """
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(item.shape, np.float32) for item in function.inputs]
    return [
        (array if number == 0 or array.ndim == 1 else array / np.float32(array.shape[1] ** 0.5)).astype(
            ml_dtypes.bfloat16
        )
        for number, array in enumerate(arrays)
    ]


def error_of(got: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the norm of the error over that of the numbers.

    Args:
        got, wanted: arrays of one shape.
    """
    return float(np.linalg.norm(got.astype(np.float64) - wanted) / np.linalg.norm(wanted))


def distance(got: Any, wanted: Any) -> float:  # noqa: ANN401
    """Returns the norm of the error over that of the numbers; infinite for NaN.

    Args:
        got, wanted: tensors of one shape.
    """
    found = float((got.double() - wanted.double()).norm() / wanted.double().norm())
    return found if found == found else float("inf")
