"""A of a sparse product (mma.sp, wgmma.mma_async.sp): half of its elements, and metadata with their positions.

Four bits of metadata are for a chunk of a row: two indices of two bits, the first one in the lower bits. They are of
elements of 16 or 8 bits, of pairs of elements of 4 bits, or of halves of elements of 32 bits.
Each warp of a warpgroup has 16 rows, with the metadata of a product of a warp. Source: PTX ISA, "Sparse matrix
storage", and the metadata layouts of "Matrix fragments ... with sparse matrix A".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.hardware import fragments

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value

_ROWS = 16
_FOUR = 4  # threads that hold rows g and g + 8, and the metadata of these
_CHUNKS = {32: 2, 16: 4, 8: 4, 4: 8}  # elements of a chunk, by their bits
_PART = 4  # chunks of a row whose metadata is in 16 bits
_SELECTORS = {4: 4, 8: 2, 16: 1}  # by the chunks of a row: how many parts of the threads can have its metadata


def selectors(bits: int, k: int) -> int:
    """Returns how many sparsity selectors a product takes; 0 for a product that is not known.

    Args:
        bits: of an element.
        k: of the product.
    """
    chunks = k // _CHUNKS[bits]
    return _SELECTORS.get(chunks, 0) if (chunks == max(_SELECTORS)) == (bits < 16) else 0


@dataclass(frozen=True)
class Sparsity:
    """The metadata of a product.

    Attributes:
        metadata: 32 bits of each thread, uniform or (T,).
        selector: which threads of four contribute theirs.
        is_ordered: whether the indices of a chunk must increase.
        rows: of A, several warps' of a product of a warpgroup.
    """

    metadata: Value
    selector: int
    is_ordered: bool = False
    rows: int = _ROWS

    def expand(self, fiber: Fiber, op: Instruction, packed: np.ndarray, threads: np.ndarray, bits: int) -> np.ndarray:
        """Returns A with its zeros: (warps, rows, k).

        Args:
            fiber: the threads.
            op: the instruction, for findings.
            packed: half of the elements, (warps, rows, k / 2).
            threads: the lanes of each warp.
            bits: of an element.
        """
        chunk = _CHUNKS[bits]
        metadata_words = values.lanes(np.asarray(self.metadata), fiber.count).astype(np.int64)[threads] & 0xFFFFFFFF
        nibbles = self._nibbles(metadata_words.reshape(len(threads), -1, _FOUR), 2 * packed.shape[-1] // chunk, bits)
        pair = np.stack([nibbles & 3, nibbles >> 2], axis=-1)
        self._check(fiber, op, pair, bits)
        if bits == fragments.REGISTER_BITS:
            places = pair[..., :1] // 2
        elif bits == 4:
            places = (2 * pair[..., None] + np.arange(2)).reshape(*pair.shape[:-1], -1)
        else:
            places = pair
        expanded = np.zeros((*pair.shape[:-1], chunk), packed.dtype)
        np.put_along_axis(expanded, places, packed.reshape(*pair.shape[:-1], -1), axis=-1)
        return expanded.reshape(*packed.shape[:-1], -1)

    def _nibbles(self, words: np.ndarray, chunks: int, bits: int) -> np.ndarray:
        """Returns the metadata of each chunk: int array (warps, rows, chunks), given words (warps, 8, 4)."""
        parts = words[..., None] >> 4 * np.arange(2 * _PART) & 15  # (warps, 8, 4, 8)
        count = _FOUR // _SELECTORS[chunks]  # threads that contribute
        selected_parts = parts[:, :, count * self.selector : count * (self.selector + 1)]
        # A thread has 16 bits of row g and of row g + 8; for elements of 8 bits and fewer, 32 bits of one of them.
        inner = _PART if bits >= 16 else 2 * _PART
        rows = np.moveaxis(selected_parts.reshape(*parts.shape[:2], -1, 2, inner), 3, 1)
        return rows.reshape(len(words), _ROWS, chunks)

    def _check(self, fiber: Fiber, op: Instruction, pair: np.ndarray, bits: int) -> None:
        """Reports indices that a product does not take."""
        first, second = pair[..., 0], pair[..., 1]
        if bits == fragments.REGISTER_BITS:
            wrong, expectation = (first % 2 == 1) | (second != first + 1), "0b0100 or 0b1110"
        elif self.is_ordered:
            wrong, expectation = first >= second, "two indices that increase"
        else:
            wrong, expectation = first == second, "two different indices"
        if wrong.any():
            warp, row, chunk = (int(number[0]) for number in np.nonzero(wrong))
            bits_there = int(pair[warp, row, chunk] @ (1, 4))
            row += warp * _ROWS % self.rows
            fiber.group.sanitizer.report(
                "descriptor",
                f"sparsity metadata 0b{bits_there:04b} of chunk {chunk} of row {row}: expected {expectation}",
                op,
            )
