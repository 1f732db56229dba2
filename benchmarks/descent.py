"""Minimizes a function of the logarithms of times that a model predicts, by descents on linearizations of the model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from box import Array, Box

# Of the range of a constant: by how much it differs for a derivative.
_DIFFERENCE = 0.01
# Steps of a descent: their number, the first one as a part of how far a linearization is trusted, and how the means of
# the gradient and of its square decay (Kingma and Ba, "Adam: A Method for Stochastic Optimization").
_STEPS, _FIRST_STEP, _MEAN_DECAY, _SQUARE_DECAY = 150, 0.25, 0.9, 0.99
# How trust grows after a round that gains, and falls after one that does not; below the least, the search ends.
_GROWTH, _FALL, _MIN_TRUST, _MAX_TRUST = 1.2, 0.4, 0.003, 0.3


def descend(
    logarithms: Callable[[Array], Array],
    judge: Callable[[Array], tuple[float, Array]],
    box: Box,
    start: Array,
    rounds: int,
    trust: float = 0.2,
    pull: float = 0.0,
) -> Array:
    """Returns the best constants that were tried.

    Every round linearizes the logarithms about the best constants, descends from these to the least value near them,
    and keeps what it finds if the model itself agrees.

    Args:
        logarithms: of predicted times, by constants.
        judge: the value of logarithms, which is minimized, and its derivatives by them.
        box: bounds of the constants.
        start: where the search begins.
        rounds: number of linearizations.
        trust: how far a constant moves in the first round at most, as a part of its range.
        pull: what it costs to move a constant from the start through its whole range; in parts of the range, squared.
    """
    origin = box.place(start)
    best, predicted = origin, logarithms(start)
    lowest = judge(predicted)[0]
    slopes: Array | None = None
    for _ in range(rounds):
        slopes = _slopes(logarithms, predicted, box, best) if slopes is None else slopes
        point = _descent(judge, predicted, slopes, best, trust, origin, pull)
        new_times = logarithms(box.numbers(point))
        value = judge(new_times)[0] + pull * float(((point - origin) ** 2).sum())
        if value < lowest:
            best, predicted, lowest, slopes = point, new_times, value, None
            trust = min(trust * _GROWTH, _MAX_TRUST)
        else:
            trust *= _FALL
        if trust < _MIN_TRUST:
            break
    return box.numbers(best)


def _slopes(logarithms: Callable[[Array], Array], predicted: Array, box: Box, point: Array) -> Array:
    """Returns the derivatives of the logarithms by every constant, as a part of its range, a column each."""
    slopes = np.empty((len(predicted), len(point)))
    for number, part in enumerate(point):
        neighbour = point.copy()
        neighbour[number] += _DIFFERENCE if part + _DIFFERENCE <= 1 else -_DIFFERENCE
        slopes[:, number] = (logarithms(box.numbers(neighbour)) - predicted) / (neighbour[number] - part)
    return slopes


def _descent(
    judge: Callable[[Array], tuple[float, Array]],
    predicted: Array,
    slopes: Array,
    point: Array,
    trust: float,
    origin: Array,
    pull: float,
) -> Array:
    """Returns the best point near another one where logarithms are linear."""
    low, high = np.maximum(point - trust, 0.0), np.minimum(point + trust, 1.0)
    position, best, lowest = point, point, np.inf
    mean, square = np.zeros(len(point)), np.zeros(len(point))
    for step in range(_STEPS):
        value, derivatives = judge(predicted + slopes @ (position - point))
        value += pull * float(((position - origin) ** 2).sum())
        if value < lowest:
            lowest, best = value, position
        gradient = slopes.T @ derivatives + 2 * pull * (position - origin)
        mean = _MEAN_DECAY * mean + (1 - _MEAN_DECAY) * gradient
        square = _SQUARE_DECAY * square + (1 - _SQUARE_DECAY) * gradient**2
        direction = (
            mean / (1 - _MEAN_DECAY ** (step + 1)) / (np.sqrt(square / (1 - _SQUARE_DECAY ** (step + 1))) + 1e-12)
        )
        position = np.clip(position - trust * _FIRST_STEP * (1 - step / _STEPS) * direction, low, high)
    return best
