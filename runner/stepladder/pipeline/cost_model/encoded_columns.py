"""Columns of few different values: each value once, and for each setting its index."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
# Values up to which a table finds those that occur; larger ones are sorted.
TABLE = 1 << 16


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of few different values, as their indices in a list: short to copy, and few values to compare with.

    Args:
        options: the values, an array.
        codes: of each setting, the index of its value.
    """

    options: Array
    codes: Array

    @classmethod
    def of(cls, values: Array) -> Coded:
        """Returns a column of values.

        Args:
            values: one a setting.
        """
        if values.dtype.kind != "i" or not values.size or values.min() < 0 or values.max() >= TABLE:
            return cls(*np.unique(values, return_inverse=True))
        options, codes = numbered(values, int(values.max()) + 1)
        return cls(options, codes)

    def take(self, rows: Array) -> Coded:
        """Returns the values of some settings.

        Args:
            rows: indices of settings.
        """
        return Coded(self.options, self.codes.take(rows))

    @functools.cached_property
    def values(self) -> Array:
        """Returns the values as an array."""
        return self.options[self.codes]

    @functools.cached_property
    def floats(self) -> Array:
        """Returns the values as floating-point numbers."""
        return self.options.astype(float)[self.codes]


def numbered(values: Array, most: int) -> tuple[Array, Array]:
    """Returns the distinct values, and the index of each value among them.

    Args:
        values: integers.
        most: above all of them; at most a few times TABLE.
    """
    occurs = np.zeros(most, bool)
    occurs[values] = True
    distinct = np.flatnonzero(occurs)
    indices = np.empty(most, np.int64)
    indices[distinct] = np.arange(len(distinct))
    return distinct, indices[values]
