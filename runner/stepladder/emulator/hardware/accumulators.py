"""Accumulators of wgmma in registers, which may be in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.hardware.fragments import WARPGROUP, accumulator

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.hardware.asynchronous import Product


class AccumulatorRegisters:
    """The registers of a thread with its part of the accumulator of a wgmma.

    A product adds to whole matrices, which are divided among the threads when something else uses the registers.

    Attributes:
        products: those that write it, done or not.
        matrices: results of products in the registers of a warpgroup, by its first lane and its index among those that
            a thread has one after the other (None where it has one): arrays (64, columns).
    """

    __slots__ = ("_array", "_is_behind", "matrices", "products")

    def __init__(self, array: np.ndarray, products: Sequence[Product] = (), matrices: dict | None = None) -> None:
        self._array = array
        self._is_behind = bool(matrices)
        self.matrices: dict[tuple[int, int | None], np.ndarray] = dict(matrices or {})
        self.products = products

    @property
    def array(self) -> np.ndarray:
        """The registers of all threads, (T, *held), which are never modified."""
        if self._is_behind:
            self._array = self._array.copy()
            for (lane, number), matrix in self.matrices.items():
                self._part(self._array, lane, number, matrix.dtype)[...] = accumulator(matrix.shape[1]).divide(matrix)
            self._is_behind = False
        return self._array

    @property
    def count(self) -> int:
        """Registers of a thread, along the first dimension."""
        return self._array.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """The type of a register."""
        return self._array.dtype

    def after(self) -> AccumulatorRegisters:
        """Returns registers that hold the same, for a product to change."""
        return AccumulatorRegisters(self._array, self.products, self.matrices)

    @staticmethod
    def _part(array: np.ndarray, lane: int, number: int | None, dtype: np.dtype) -> np.ndarray:
        # Two adjacent accumulators of 16 bits are in one register.
        registers = array.view(dtype)[lane : lane + WARPGROUP]
        return registers if number is None else registers[:, number]

    def matrix(self, lane: int, number: int | None, columns: int, dtype: np.dtype) -> np.ndarray:
        """Returns the accumulator of a warpgroup, (64, columns), which is never modified.

        Args:
            lane: the first lane of the warpgroup.
            number: of the accumulator among those that a thread holds; None where it holds one.
            columns: of the accumulator.
            dtype: of its elements.
        """
        matrix = self.matrices.get((lane, number))
        if matrix is not None and matrix.shape[1] == columns and matrix.dtype == dtype:
            return matrix
        return accumulator(columns).join(self._part(np.ascontiguousarray(self.array), lane, number, dtype))

    def put(self, lane: int, number: int | None, matrix: np.ndarray) -> None:
        """Sets the accumulator of a warpgroup.

        Args:
            lane: the first lane of the warpgroup.
            number: of the accumulator among those that a thread holds; None where it holds one.
            matrix: array (64, columns); it is not modified afterwards.
        """
        before = self.matrices.get((lane, number))
        if before is not None and (before.shape != matrix.shape or before.dtype != matrix.dtype):
            self._array = self.array  # what the matrix does not replace
        self.matrices[lane, number] = matrix
        self._is_behind = True

    def read(self, fiber: Fiber, op: Instruction) -> np.ndarray:
        """Returns the accumulators for a use by threads; those of products in flight are NaN, and a finding.

        Args:
            fiber: the threads that use them.
            op: the instruction that uses them.
        """
        self.products = [product for product in self.products if not product.is_done]
        array = self.array
        mask = fiber.active
        for product in self.products:
            if mask[product.lanes].any():
                fiber.group.sanitizer.report(
                    "in-flight", "accesses accumulators of a product in flight: no wait for its group", op, product.op
                )
                array = array.copy()
                array[product.lanes].view(f"u{array.itemsize}")[:] = ~np.zeros((), f"u{array.itemsize}")
        return array

    @staticmethod
    def merged(parts: list[AccumulatorRegisters], masks: list, count: int) -> AccumulatorRegisters:
        """Returns the accumulators whose values are, in the lanes of each mask, those of the part.

        Args:
            parts: accumulators of the same type.
            masks: a bool array (T,) for each part.
            count: T, the number of lanes.
        """
        array = parts[0].array.copy()
        for part, mask in zip(parts[1:], masks[1:]):
            array[mask] = part.array[mask]
        return AccumulatorRegisters(array, [product for part in parts for product in part.products])
