"""Scalars that kernels take by value, such as alpha and beta of C = alpha AB + beta C."""

from __future__ import annotations

import ctypes

import numpy as np


def bits_of(number: np.ndarray) -> int:
    """Returns the bytes of a number of up to 8 bytes as an integer, the first byte lowest.

    Args:
        number: an array of one element.
    """
    return int.from_bytes(number.tobytes(), "little")


class HostNumber:
    """A scalar in host memory, which the driver reads at every launch: what a kernel's parameter has by value.

    Args:
        bits: as `bits_of` returns them.

    Attributes:
        address: of its 8 bytes, of which the driver reads as many as the parameter has; valid as long as this object.
    """

    def __init__(self, bits: int = 0) -> None:
        self._memory = ctypes.c_uint64(bits)
        self.address = ctypes.addressof(self._memory)

    def getPtr(self) -> int:
        """Returns `address`."""
        return self.address

    def upload(self, array: np.ndarray) -> None:
        """Sets the scalar for the launches that follow.

        Args:
            array: of one element.
        """
        self._memory.value = bits_of(array)
