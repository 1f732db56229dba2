"""The blocks of a launch: how many there are, how many threads each has, and the shared memory of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stepladder.emulator.memory.sanitizer import WARP


@dataclass(frozen=True)
class Blocks:
    """The blocks of a launch, which has as many clusters of one size as fill the grid.

    Attributes:
        block: threads along x, y and z.
        grid: blocks along x, y and z.
        cluster: blocks of a cluster along x, y and z.
        window_bytes: shared memory of a block.
        layout: maps the contents of shared memory to offsets, `groups.DYNAMIC` and `groups.LAUNCHED` to values.
        warp: threads of a warp, or of a subgroup where a kernel states its size.
    """

    block: Sequence[int]
    grid: Sequence[int] = (1, 1, 1)
    cluster: Sequence[int] = (1, 1, 1)
    window_bytes: int = 0
    layout: Mapping = field(default_factory=dict)
    warp: int = WARP

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return math.prod(self.block)

    @property
    def clusters(self) -> int:
        """Clusters of the grid."""
        return math.prod(self._clusters)

    @property
    def _clusters(self) -> list[int]:
        """Clusters along x, y and z."""
        return [size // of for size, of in zip(self.grid, self.cluster)]

    def ids(self, cluster: int) -> np.ndarray:
        """Returns the indices of the blocks of a cluster, an array (blocks, 3).

        Args:
            cluster: its index in the grid, in which x is the fastest dimension.
        """
        along_x, along_y, _ = self._clusters
        place = (cluster % along_x, cluster // along_x % along_y, cluster // (along_x * along_y))
        first = [size * number for size, number in zip(self.cluster, place)]
        z, y, x = np.indices(tuple(reversed(self.cluster)))
        return np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1) + first
