"""Bounds of several numbers that a fit varies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Box:
    """The least and the most value of each number; a place in it is a part of that range, from 0 to 1."""

    least: Array
    most: Array

    def numbers(self, place: Array) -> Array:
        """Returns the numbers at a place.

        Args:
            place: a part of each range.
        """
        return self.least + (self.most - self.least) * place

    def place(self, numbers: Array) -> Array:
        """Returns where numbers are, as parts of the ranges.

        Args:
            numbers: of which there are as many.
        """
        return (numbers - self.least) / (self.most - self.least)
