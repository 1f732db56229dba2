"""Into which parts a reduction with few results is divided, so that a GPU has enough threads that compute them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from stepladder.extension.lib.element_bodies import VECTOR_BYTES, vector_bits
from stepladder.extension.lib.epilogues.folds import fold_of
from stepladder.extension.lib.multi_kernel.rows import LONG, RowOp, is_too_long
from stepladder.extension.lib.threads import WARP
from stepladder.mlir.bindings import ir

_BYTE = 8  # bits
# Threads of a block that reduces a long row, as `distribute_rows` has them.
_BLOCK = 256
# Threads of a kernel that saturate the memory: 1024 for each of 128 multiprocessors.
_ENOUGH_THREADS = 1 << 17
# Loads of a thread, one after the other, from which on a second kernel takes less time than is saved.
_MANY_LOADS = 32
# Loads of a thread of a part.
_FEWEST_LOADS = 4


@dataclass(frozen=True)
class Parts:
    """The parts of a reduction.

    Attributes:
        whole: reduced loops of which each iteration is a part.
        divided: another reduced loop that is divided; None without one.
        outer: into how many parts it is divided, a divisor of its iterations.
    """

    whole: tuple[int, ...]
    divided: int | None
    outer: int

    def count(self, sizes: list[int]) -> int:
        """Returns how many parts there are.

        Args:
            sizes: iterations of each loop of the reduction.
        """
        return math.prod(sizes[loop] for loop in self.whole) * self.outer


def parts_of(op: RowOp) -> Parts | None:
    """Returns the parts of a reduction whose results are so few that their threads load one value after the other for a
    long time; None for other ops, and where no loop can be divided.

    Args:
        op: on tensors.
    """
    is_fold = all(fold_of(op.op, number) is not None for number in range(op.outputs))
    if not op.reduced or not is_fold or any(None in loops for loops in op.maps[op.inputs :]):
        return None
    length = math.prod(op.sizes[loop] for loop in op.reduced)
    is_by_rows = op.is_reduction and op.is_over(op.rows())
    if is_by_rows and not is_too_long(op.rows(), length):
        return None
    width = VECTOR_BYTES * 8 // max([_BYTE, *map(vector_bits, _read(op))])
    lanes = _lanes(op, length, is_by_rows)
    loads = length // (lanes * width) if is_by_rows else length // WARP
    if loads < _MANY_LOADS or _threads(op, 1, lanes, width) >= _ENOUGH_THREADS:
        return None
    # With more parts, a thread of the second reduction would load more than one of the first.
    most = min(loads // _FEWEST_LOADS, math.isqrt(loads * lanes))
    counts: dict[int, tuple[int, Parts]] = {}
    for parts in _candidates(op, width):
        count = parts.count(op.sizes)
        threads = _threads(op, count, _lanes(op, length // count, _are_rows(op, parts)), width)
        counts[count] = threads, parts
    possible = [count for count in counts if 1 < count <= most]
    enough = [count for count in possible if counts[count][0] >= _ENOUGH_THREADS]
    return counts[min(enough) if enough else max(possible)][1] if possible else None


def _lanes(op: RowOp, length: int, are_rows: bool) -> int:
    """Returns how many threads reduce the terms of a result."""
    return _BLOCK if op.is_reduction and are_rows and length > LONG else WARP


def _threads(op: RowOp, count: int, lanes: int, width: int) -> int:
    """Returns how many threads reduce `count` parts of each result; those of outer loops, `width` results each."""
    results = math.prod(op.rows()) * count
    return results * lanes if op.is_reduction else -(-results // width) * lanes


def _are_rows(op: RowOp, parts: Parts) -> bool:
    """Returns whether the parts are rows: their loops are inside of those of the results."""
    reduced = [loop for loop in op.reduced if loop not in parts.whole]
    outer = [*op.kept, *parts.whole]
    return bool(reduced) and op.is_reduction and all(loop < reduced[0] for loop in outer)


def _candidates(op: RowOp, width: int) -> Iterator[Parts]:
    """Yields possible parts: whole iterations of outer loops, and parts of the next one, which consist of vectors where
    it is the innermost one."""
    for place, loop in enumerate(op.reduced):
        size, is_innermost = op.sizes[loop], op.is_reduction and loop == op.reduced[-1]
        for outer in _divisors(size):
            is_whole, is_aligned = outer == size, size // outer % width == 0
            if is_innermost and (is_whole or (size % width == 0 and not is_aligned)):
                continue
            whole = op.reduced[: place + is_whole]
            yield Parts(tuple(whole), None if is_whole or outer == 1 else loop, 1 if is_whole else outer)


def _read(op: RowOp) -> list[ir.Type]:
    """Returns the types of the operands that have reduced loops."""
    return [
        ir.RankedTensorType(operand.type).element_type
        for operand, loops in zip(op.op.operands, op.maps[: op.inputs])
        if set(loops) & set(op.reduced)
    ]


def _divisors(size: int) -> list[int]:
    """Returns the divisors of a number, in any order."""
    small = [number for number in range(1, math.isqrt(size) + 1) if size % number == 0]
    return [*small, *(size // number for number in small)]
