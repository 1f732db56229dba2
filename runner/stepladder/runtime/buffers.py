"""Device memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.runtime.session import Session


@dataclass(frozen=True)
class Borrowed:
    """Device memory that another library owns: its address, its bytes, and the GPU that it is on."""

    session: Session
    address: int
    size: int


class Buffer:
    """Device memory, aligned to at least 256 bytes.

    The memory comes from the driver's memory pool in stream order. It is ready when the constructor returns, for any
    stream, and goes back to the pool by `free` or with the last reference.

    Args:
        session: the open GPU.
        size: bytes.

    Attributes:
        session: as given.
        size: as given.
        address: device address.

    Raises:
        CudaError: the GPU has too little memory left.
    """

    def __init__(self, session: Session, size: int) -> None:
        self.session = session
        self.size = size
        with session.cuda.checked(f"allocating {size} bytes"):
            # An array without elements has an address too.
            self._memory = session.gpu.allocate(max(size, 1), stream=session.stream)
            session.stream.sync()
        self.address = int(self._memory.handle)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The bytes as a one-dimensional array, for PyTorch and other libraries."""
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.address, False), "version": 2}

    def free(self) -> None:
        """Waits for all enqueued work and gives the memory back."""
        self.session.synchronize()
        with self.session.cuda.checked("freeing a buffer"):
            self._memory.close()

    def upload(self, array: np.ndarray) -> None:
        """Copies a host array into the buffer, and waits for it.

        Args:
            array: contiguous, of the buffer's size.

        Raises:
            ValueError: the array is of another size or not contiguous.
            CudaError: an earlier kernel, or the copy, failed.
        """
        self._check(array)
        self.session.synchronize()
        self.session.cuda.call("cuMemcpyHtoD", self.address, array.ctypes.data, self.size)
        # A copy from pageable memory may return while its last bytes are in flight.
        self.session.synchronize()

    def download(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Returns the content as a new host array, after all enqueued work.

        Args:
            shape: extents of the array.
            dtype: its element type; together with the shape it must give the buffer's size.

        Raises:
            ValueError: the array is of another size.
            CudaError: an earlier kernel, or the copy, failed.
        """
        array = np.empty(shape, dtype)
        self._check(array)
        self.session.synchronize()
        self.session.cuda.call("cuMemcpyDtoH", array.ctypes.data, self.address, self.size)
        return array

    def copy_from(self, source: Buffer) -> None:
        """Enqueues a copy of another buffer of the same size into this one.

        Args:
            source: of the same size, on the same GPU.

        Raises:
            CudaError: the copy cannot be enqueued.
        """
        with self.session.cuda.checked("copying a buffer"):
            self._memory.copy_from(source._memory, stream=self.session.stream)

    def _check(self, array: np.ndarray) -> None:
        if array.nbytes != self.size or not array.flags.c_contiguous:
            raise ValueError(f"a contiguous array of {self.size} bytes is needed, got {array.nbytes}")
