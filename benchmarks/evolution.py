"""Minimizes a function of several numbers within bounds: CMA-ES (Hansen, "The CMA Evolution Strategy: A Tutorial")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from box import Array, Box

# The covariance changes slowly: it is divided into its axes once in so many generations.
_DECOMPOSE_EVERY = 5


# Points of a generation.
POPULATION = 20


def evolve(
    objective: Callable[[Array], float],
    box: Box,
    start: Array,
    seed: int,
    generations: int,
    width: float = 0.25,
) -> Array:
    """Returns the best numbers that were tried.

    Every generation draws points from a normal distribution and moves its mean to the better half, its covariance
    towards their spread, and its width by how straight the mean moves. Points beyond the bounds are tried on them.

    Args:
        objective: what is minimized.
        box: bounds of the numbers.
        start: where the search begins.
        seed: of the random numbers.
        generations: number of them.
        width: standard deviation of the first generation, as a part of the bounds.
    """
    rng = np.random.default_rng(seed)
    size, parents = len(start), POPULATION // 2
    weights = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
    weights /= weights.sum()
    mass = 1 / (weights**2).sum()
    path_rate = (4 + mass / size) / (size + 4 + 2 * mass / size)
    width_rate = (mass + 2) / (size + mass + 5)
    rank_one = 2 / ((size + 1.3) ** 2 + mass)
    rank_parents = min(1 - rank_one, 2 * (mass - 2 + 1 / mass) / ((size + 2) ** 2 + mass))
    damping = 1 + 2 * max(0.0, np.sqrt((mass - 1) / (size + 1)) - 1) + width_rate
    expected = np.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))  # length of a normal vector
    mean = np.clip(box.place(start), 0.0, 1.0)
    path, width_path, covariance = np.zeros(size), np.zeros(size), np.eye(size)
    lengths, axes = np.ones(size), np.eye(size)
    best, lowest = np.array(start, float), objective(start)
    for generation in range(generations):
        if generation % _DECOMPOSE_EVERY == 0:
            values, axes = np.linalg.eigh((covariance + covariance.T) / 2)
            lengths = np.sqrt(np.maximum(values, 1e-20))
        steps = rng.standard_normal((POPULATION, size)) * lengths @ axes.T
        points = mean + width * steps
        clipped = np.clip(points, 0.0, 1.0)
        scores = np.array([objective(box.numbers(point)) for point in clipped])
        if scores.min() < lowest:
            lowest, best = scores.min(), box.numbers(clipped[scores.argmin()])
        chosen = steps[np.argsort(scores + ((points - clipped) ** 2).sum(1))[:parents]]
        step = weights @ chosen
        mean = np.clip(mean + width * step, -0.05, 1.05)
        width_path = (1 - width_rate) * width_path + np.sqrt(width_rate * (2 - width_rate) * mass) * (
            axes @ (axes.T @ step / lengths)
        )
        length = np.linalg.norm(width_path)
        steady = length / np.sqrt(1 - (1 - width_rate) ** (2 * (generation + 1))) < (1.4 + 2 / (size + 1)) * expected
        path = (1 - path_rate) * path + steady * np.sqrt(path_rate * (2 - path_rate) * mass) * step
        covariance = (
            (1 - rank_one - rank_parents) * covariance
            + rank_one * np.outer(path, path)
            + rank_parents * (chosen.T * weights) @ chosen
        )
        width = min(width * np.exp(width_rate / damping * (length / expected - 1)), 0.5)
    return best
