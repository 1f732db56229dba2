"""The in-memory cache of the most recently used compiled kernels."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

_Kernel = TypeVar("_Kernel")
_KEPT = 512


class KernelCache(Generic[_Kernel]):
    """The most recently used compiled kernels, and a lock for each one that is being compiled.

    Args:
        limit: how many are kept.
    """

    def __init__(self, limit: int = _KEPT) -> None:
        self.limit = limit
        self.lock = threading.Lock()
        self.kernels: OrderedDict[object, _Kernel] = OrderedDict()
        self.running: dict[object, threading.Lock] = {}

    def find(self, key: object) -> _Kernel | None:
        """Returns the kernel of a key; None where it is not kept.

        Args:
            key: of the kernel.
        """
        with self.lock:
            if key in self.kernels:
                self.kernels.move_to_end(key)
            return self.kernels.get(key)

    def keep(self, key: object, kernel: _Kernel) -> None:
        """Keeps a kernel; beyond the limit, the least recently used one is dropped.

        Args:
            key: of the kernel.
            kernel: the kernel, or a function.
        """
        with self.lock:
            self.kernels[key] = kernel
            while len(self.kernels) > self.limit:
                self.kernels.popitem(last=False)

    @contextlib.contextmanager
    def only_one(self, key: object) -> Iterator[None]:
        """Enters a block that one thread at a time runs for a kernel: others that compile it wait.

        Args:
            key: of the kernel.
        """
        with self.lock:
            lock = self.running.setdefault(key, threading.Lock())
        with lock:
            try:
                yield
            finally:
                with self.lock:
                    self.running.pop(key, None)
