"""Fragments of the matrix units: which thread of a warp or of a warpgroup holds which element of a matrix.

Source: PTX ISA, "Matrix Fragments" of mma.sync and ldmatrix, "Register Fragments" of wgmma. The unit is a register of
32 bits, which holds two elements of 16 bits or four of 8 bits.
"""

from __future__ import annotations

import functools

import numpy as np

WARP = 32  # threads
WARPGROUP = 128
MATRIX_ROWS = 8  # of the matrices that ldmatrix and stmatrix move
ROW_BYTES = 16  # of a row of them
REGISTER_BITS = 32
_FOUR = 4  # threads that share a row of 8 x 8 elements
_TF32_DROPPED = 13  # bits of a float32 that tf32 does not have


class Fragment:
    """How the threads divide a matrix.

    Attributes:
        shape: rows and columns of the matrix.
        rows, columns: of the element that thread t holds in position r: int arrays (threads, *held).
    """

    def __init__(self, shape: tuple[int, int], rows: np.ndarray, columns: np.ndarray) -> None:
        self.shape = shape
        self.rows, self.columns = np.broadcast_arrays(rows, columns)
        self._places = (self.rows * shape[1] + self.columns).reshape(-1)
        self._held = np.empty(self._places.size, np.intp)
        self._held[self._places] = np.arange(self._places.size)

    def divide(self, matrix: np.ndarray) -> np.ndarray:
        """Returns the elements of matrices that threads hold.

        Args:
            matrix: array (..., rows, columns).

        Returns:
            Array (..., threads, *held).
        """
        flat = matrix.reshape(*matrix.shape[:-2], -1)
        return flat[..., self._places].reshape(*matrix.shape[:-2], *self.rows.shape)

    def join(self, elements: np.ndarray) -> np.ndarray:
        """Returns the matrices that threads hold.

        Args:
            elements: array (..., threads, *held).

        Returns:
            Array (..., rows, columns).
        """
        outer = elements.shape[: elements.ndim - self.rows.ndim]
        return elements.reshape(*outer, -1)[..., self._held].reshape(*outer, *self.shape)


def _in_warp() -> tuple[np.ndarray, np.ndarray]:
    """Returns the number of a thread's four in the warp and its position in it, each (32, 1, 1)."""
    thread = np.arange(WARP).reshape(-1, 1, 1)
    return thread // _FOUR, thread % _FOUR


def _per_register(bits: int) -> int:
    return max(1, REGISTER_BITS // bits)


@functools.cache
def mma_a(rows: int, k: int, bits: int) -> Fragment:
    """Returns how a warp holds A of mma.sync: (32, registers, elements of a register).

    Args:
        rows, k: of A, in elements.
        bits: of an element.
    """
    four, place = _in_warp()
    per = _per_register(bits)
    halves = rows // MATRIX_ROWS
    register = np.arange(rows * k // WARP // per).reshape(1, -1, 1)
    element = np.arange(per).reshape(1, 1, -1)
    return Fragment(
        (rows, k), four + MATRIX_ROWS * (register % halves), place * per + element + _FOUR * per * (register // halves)
    )


@functools.cache
def mma_b(k: int, columns: int, bits: int) -> Fragment:
    """Returns how a warp holds B of mma.sync, which is k x columns: (32, registers, elements of a register).

    Args:
        k, columns: of B, in elements.
        bits: of an element.
    """
    four, place = _in_warp()
    per = _per_register(bits)
    register = np.arange(columns * k // WARP // per).reshape(1, -1, 1)
    element = np.arange(per).reshape(1, 1, -1)
    return Fragment((k, columns), place * per + element + _FOUR * per * register, four)


@functools.cache
def mma_c(rows: int, columns: int) -> Fragment:
    """Returns the fragments of C and D of mma.sync: (32, rows / 8, 2), two adjacent elements of a row each.

    Args:
        rows, columns: of the matrix.
    """
    four, place = _in_warp()
    half = np.arange(rows // MATRIX_ROWS).reshape(1, -1, 1)
    return Fragment((rows, columns), four + MATRIX_ROWS * half, 2 * place + np.arange(2).reshape(1, 1, -1))


@functools.cache
def matrix(bits: int = 16, *, transposed: bool = False) -> Fragment:
    """Returns the fragments of one matrix of ldmatrix or stmatrix, 8 rows of 16 bytes: (32, elements of a register).

    Thread 8 j + r provides the address of row r of matrix j.

    Args:
        bits: of an element.
        transposed: whether a thread holds two adjacent elements of a column; for 16 bits only.
    """
    thread = np.arange(WARP).reshape(-1, 1)
    per = _per_register(bits)
    major, minor = thread // _FOUR, thread % _FOUR * per + np.arange(per)
    rows, columns = (minor, major) if transposed else (major, minor)
    return Fragment((MATRIX_ROWS, ROW_BYTES * 8 // bits), rows, columns)


@functools.cache
def accumulator(columns: int) -> Fragment:
    """Returns the fragments of the 64 x columns accumulator of wgmma: (128, columns / 2).

    Args:
        columns: of the accumulator, a multiple of 8.
    """
    thread = np.arange(WARPGROUP).reshape(-1, 1)
    number = np.arange(columns // 2).reshape(1, -1)
    rows = thread // WARP * 16 + thread % WARP // _FOUR + MATRIX_ROWS * (number // 2 % 2)
    return Fragment((64, columns), rows, 8 * (number // 4) + thread % _FOUR * 2 + number % 2)


def narrow(registers: np.ndarray, bits: int, signed: bool) -> np.ndarray:
    """Returns registers as integers of fewer than 8 bits: int8 array (..., elements of a register).

    Args:
        registers: int32 array (..., 1).
        bits: of an element.
        signed: whether the highest bit of an element is a sign.
    """
    integers = registers >> bits * np.arange(REGISTER_BITS // bits) & (1 << bits) - 1
    return np.where(signed & (integers >> (bits - 1) == 1), integers - (1 << bits), integers).astype(np.int8)


def as_tf32(values: np.ndarray) -> np.ndarray:
    """Returns float32 values truncated to tf32, as the matrix units read them.

    Args:
        values: float32 array of any shape.
    """
    return (np.ascontiguousarray(values).view(np.int32) >> _TF32_DROPPED << _TF32_DROPPED).view(np.float32)
