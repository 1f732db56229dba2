"""`wg_map`: which elements of a work-group tile each subgroup owns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # slow to import, and only programs with maps need it
    import numpy as np


class Wrong(Exception):
    """The error of an invalid op, with what would be accepted.

    Args:
        message: for the user.
        op: the op to point at, an `ir.Operation`; default: the verified one.
    """

    def __init__(self, message: str, op: object = None) -> None:
        super().__init__(message)
        self.op = op


@dataclass(frozen=True)
class WgMap:
    """A `#xetile.wg_map`.

    Attributes:
        sg_layout: subgroups along each dimension; the linear number of a subgroup is row-major in it.
        sg_data: the block of a subgroup.
    """

    sg_layout: tuple[int, int]
    sg_data: tuple[int, int]

    def __str__(self) -> str:
        return f"#xetile.wg_map<{{sg_layout = {list(self.sg_layout)}, sg_data = {list(self.sg_data)}}}>"

    @property
    def subgroups(self) -> int:
        """Number of subgroups of the work-group."""
        return math.prod(self.sg_layout)

    @property
    def transposed(self) -> WgMap:
        """The map with both dimensions exchanged."""
        return WgMap((self.sg_layout[1], self.sg_layout[0]), (self.sg_data[1], self.sg_data[0]))

    def check_shape(self, shape: Sequence[int]) -> None:
        """Checks that a tile is distributed evenly.

        Args:
            shape: rows and columns of the tile.

        Raises:
            Wrong: a dimension that is not.
        """
        for axis, size in enumerate(shape):
            subgroups, block = self.sg_layout[axis], self.sg_data[axis]
            round_ = subgroups * block
            if size % block:
                raise Wrong(f"sg_data[{axis}] = {block} does not divide the {size} elements of dimension {axis}")
            if size % round_ and round_ % size:
                raise Wrong(
                    f"sg_layout[{axis}] * sg_data[{axis}] = {round_} and dimension {axis} of {size} elements must "
                    "divide one another"
                )

    def indices(self, axis: int, size: int) -> np.ndarray:
        """Returns the elements along a dimension that each subgroup owns, in order: an int array (subgroups, n).

        Blocks are assigned round-robin. Where there are more subgroups along the dimension than blocks, those beyond
        begin at the first block again and share its data.

        Args:
            axis: 0 or 1.
            size: of the tile along it.
        """
        subgroups, block = self.sg_layout[axis], self.sg_data[axis]
        import numpy as np

        linear = np.arange(self.subgroups)
        place = linear // self.sg_layout[1] if axis == 0 else linear % self.sg_layout[1]
        rounds = max(1, size // (subgroups * block))
        blocks = place[:, None] + subgroups * np.arange(rounds)  # indices of the blocks that it owns
        elements = blocks[:, :, None] * block + np.arange(block)
        return elements.reshape(self.subgroups, rounds * block) % size

    def share(self, shape: Sequence[int]) -> tuple[int, int]:
        """Returns the rows and columns of a tile that a subgroup owns.

        Args:
            shape: rows and columns of the tile.
        """
        rows, columns = (self.indices(axis, shape[axis]).shape[1] for axis in (0, 1))
        return rows, columns

    def shares(self, shape: Sequence[int]) -> bool:
        """Whether several subgroups own the same element of a tile.

        Args:
            shape: rows and columns of the tile.
        """
        return any(self.sg_layout[axis] * self.sg_data[axis] > size for axis, size in enumerate(shape))

    def owns_alike(self, other: WgMap, shape: Sequence[int], *, transposed: bool = False) -> bool:
        """Whether each subgroup owns the same elements of a tile under another map.

        Args:
            shape: of the tile.
            transposed: whether the other map is of the transposed tile.
        """
        if self.subgroups != other.subgroups:
            return False
        import numpy as np

        axes = (1, 0) if transposed else (0, 1)
        return all(
            np.array_equal(self.indices(axis, size), other.indices(axes[axis], size)) for axis, size in enumerate(shape)
        )
