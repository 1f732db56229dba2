"""Layouts of tiles in shared memory: TMA boxes, swizzles, and operands of wgmma.

Source: CUDA programming guide, "TMA Swizzle"; PTX ISA, "Tensor Swizzling Modes" and "Asynchronous Warpgroup Level
Matrix Shared Memory Layout".
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepladder.emulator.core.values import Value

UNIT = 16  # bytes: the unit that a swizzle permutes
GROUP = 8  # rows after which a swizzle repeats itself


def swizzled(addresses: Value, swizzle: int) -> Value:
    """Returns where bytes of shared memory are under a swizzle.

    Bits 4 to 6 of an address (4 to 5, 4) are exchanged by bits 7 to 9 of it (7 to 8, 7): of the address itself, not of
    the offset in a tile.

    Args:
        addresses: in bytes, an int or an array.
        swizzle: bytes that a row is swizzled over: 128, 64 or 32, or 0 for none.
    """
    return addresses ^ ((addresses >> 3) & (swizzle - UNIT if swizzle else 0))


@functools.lru_cache(maxsize=256)
def _box_offsets(box: tuple[int, ...], item: int, swizzle: int) -> np.ndarray:
    offsets = np.arange(box[-1], dtype=np.int64) * item
    # A row narrower than its swizzle still takes as many bytes.
    pitch = max(box[-1] * item, swizzle)
    for size in reversed(box[:-1]):
        offsets = (np.arange(size, dtype=np.int64) * pitch).reshape(-1, *(1,) * offsets.ndim) + offsets
        pitch *= size
    return offsets


def box_addresses(address: int, box: Sequence[int], item: int, swizzle: int) -> np.ndarray:
    """Returns the address of each element of a box that TMA moves: int array of the box's shape.

    Args:
        address: where the box begins, in bytes.
        box: its sizes, the outermost first.
        item: bytes of an element.
        swizzle: as `swizzled` takes it.
    """
    return swizzled(address + _box_offsets(tuple(box), item, swizzle), swizzle)


_MODES = {0: 0, 1: 128, 2: 64, 3: 32}


@dataclass(frozen=True)
class MatrixDescriptor:
    """An operand of wgmma in shared memory, as in the 64 bits of its descriptor.

    Attributes:
        start: address of its first byte.
        leading, stride: bytes; what they are between depends on the layout (`addresses`).
        swizzle: bytes that rows are swizzled over: 128, 64 or 32, or 0 for none.
        base: the field for tiles that do not begin where a swizzle does.
    """

    start: int
    leading: int
    stride: int
    swizzle: int
    base: int = 0

    @staticmethod
    def decode(bits: int) -> MatrixDescriptor:
        """Returns the matrix descriptor that a 64-bit word encodes.

        Source: PTX ISA, "Matrix Descriptor Format".

        Args:
            bits: the word, signed or unsigned.
        """
        bits &= (1 << 64) - 1
        return MatrixDescriptor(
            (bits & 0x3FFF) << 4,
            (bits >> 16 & 0x3FFF) << 4,
            (bits >> 32 & 0x3FFF) << 4,
            _MODES[bits >> 62],
            bits >> 49 & 7,
        )

    def encode(self) -> int:
        """Returns the 64-bit word."""
        mode = next(number for number, swizzle in _MODES.items() if swizzle == self.swizzle)
        return (
            (self.start >> 4 & 0x3FFF)
            | (self.leading >> 4) << 16
            | (self.stride >> 4) << 32
            | self.base << 49
            | mode << 62
        )

    @property
    def is_aligned(self) -> bool:
        """Whether the operand begins in the first row of a swizzle's pattern, as a `base` of 0 requires."""
        return self.start % (GROUP * self.swizzle) < self.swizzle if self.swizzle else True

    def addresses(self, rows: int, k: int, item: int, *, along_k: bool) -> np.ndarray:
        """Returns the address of each element, int array (rows, k): of A, or of the transpose of B.

        Along k, rows of m (or n) follow each other, eight to a group, groups `stride` bytes apart; without a
        swizzle, steps of 16 bytes along k are `leading` bytes apart. Along m (or n), eight rows of k make a group,
        groups are `stride` bytes apart, and what is further along m than a row `leading`; without a swizzle it is the
        other way round.

        Args:
            rows: of m or n.
            item: bytes of an element.
            along_k: whether neighbours in memory are neighbours along k.
        """
        return swizzled(
            self.start + _operand_offsets(self.leading, self.stride, self.swizzle, rows, k, item, along_k), self.swizzle
        )


@functools.lru_cache(maxsize=256)
def _operand_offsets(
    leading: int, stride: int, swizzle: int, rows: int, k: int, item: int, along_k: bool
) -> np.ndarray:
    width = swizzle or UNIT
    if along_k:
        row, across = np.arange(rows)[:, None], np.arange(k) * item
        beside = leading if not swizzle else width
        return row // GROUP * stride + row % GROUP * width + across // width * beside + across % width
    row, across = np.arange(k), np.arange(rows)[:, None] * item
    below, beside = (stride, leading) if swizzle else (leading, stride)
    return row // GROUP * below + row % GROUP * width + across // width * beside + across % width
