"""Into which parts a reduction with few results is divided, so that a GPU has enough threads that compute them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from stepladder.extension.lib.element_bodies import VECTOR_BYTES, vector_bits
from stepladder.extension.lib.epilogues.folds import fold_of
from stepladder.extension.lib.multi_kernel.row_threads import column_width, row_threads
from stepladder.extension.lib.multi_kernel.rows import LONG, RowOp, is_too_long
from stepladder.extension.lib.threads import WARP
from stepladder.mlir.bindings import ir

# Threads of a kernel that saturate the memory: of those that load vectors of rows, and of those that reduce a column
# each (docs/results/column_parts.json).
_OF_ROWS, _OF_COLUMNS = 1 << 18, 1 << 16
# Loads of a thread, one after the other, from which on a second kernel takes less time than is saved.
_MANY_LOADS = 16
# Loads of a thread of a part, if a loop has such a divisor, and terms of a part in any case.
_FEWEST_LOADS, _FEWEST_TERMS = 4, 64
_BYTE = 8  # bits


@dataclass(frozen=True)
class Parts:
    """The parts of a reduction.

    Attributes:
        whole: reduced loops of which each iteration is a part.
        divided: another reduced loop that is divided into an outer and an inner one; None without one.
        outer: iterations of the outer one, a divisor of those of the loop.
        are_inner: whether each iteration of the inner one is a part, and not of the outer one.
    """

    whole: tuple[int, ...]
    divided: int | None
    outer: int
    are_inner: bool = False

    def count(self, sizes: list[int]) -> int:
        """Returns how many parts there are.

        Args:
            sizes: iterations of each loop of the reduction.
        """
        count = math.prod(sizes[loop] for loop in self.whole)
        if self.divided is None:
            return count
        return count * (sizes[self.divided] // self.outer if self.are_inner else self.outer)


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
    width = column_width(op, op.reduced if op.is_reduction else range(len(op.sizes)))
    lanes = _lanes(op, length, width, is_by_rows)
    loads = length // (lanes * width) if is_by_rows else length // WARP
    enough = _OF_ROWS if op.is_reduction else _OF_COLUMNS
    if loads < _MANY_LOADS or _threads(op, 1, lanes) >= enough:
        return None
    if (narrow := _beside_narrow_results(op, length)) is not None:
        return narrow
    # With more parts, a thread of the second reduction would load more than one of the first.
    most = min(loads // _FEWEST_LOADS, math.isqrt(loads * lanes))
    threads: dict[int, int] = {}
    by_count = {parts.count(op.sizes): parts for parts in _candidates(op, width)}
    for count, parts in by_count.items():
        threads[count] = _threads(op, count, _lanes(op, length // count, width, _are_rows(op, parts)))
    counts = sorted(count for count in by_count if 1 < count <= length // _FEWEST_TERMS)
    if not counts:
        return None
    possible = [count for count in counts if count <= most] or counts[:1]
    sufficient = [count for count in possible if threads[count] >= enough]
    return by_count[sufficient[0] if sufficient else possible[-1]]


def _beside_narrow_results(op: RowOp, length: int) -> Parts | None:
    """Returns parts that follow each other in memory, so that those of all results are vectors; None where neighbouring
    results are vectors themselves, or the loops do not have such parts.

    Otherwise, neighbouring threads load single elements of narrow rows, at different times
    (docs/results/reductions.json).
    """
    place = max(range(op.inputs), key=lambda number: len(op.counted(op.maps[number])))
    loops = op.counted(op.maps[place])
    beside = next((number for number, loop in enumerate(reversed(loops)) if loop in op.reduced), 0)
    columns = math.prod(op.sizes[loop] for loop in loops[len(loops) - beside :])
    width = VECTOR_BYTES * 8 // max(_BYTE, vector_bits(ir.ShapedType(op.op.operands[place].type).element_type))
    if not beside or columns % width == 0:
        return None
    found: list[tuple[int, Parts]] = []
    whole: tuple[int, ...] = ()
    for loop in reversed(loops[: len(loops) - beside]):
        if loop not in op.reduced:
            break
        for inner in sorted(_divisors(op.sizes[loop])):
            is_whole = inner == op.sizes[loop]
            parts = (
                Parts((*whole, loop), None, 1)
                if is_whole
                else Parts(whole, loop, op.sizes[loop] // inner, are_inner=True)
            )
            count = parts.count(op.sizes)
            if count * columns % width == 0 and 1 < count <= length // _FEWEST_TERMS:
                found.append((count, parts))
        whole = (*whole, loop)
    results = math.prod(op.sizes[loop] for loop in op.kept)
    enough = [parts for count, parts in found if results * count * WARP // width >= _OF_COLUMNS]
    return enough[0] if enough else found[-1][1] if found else None


def _lanes(op: RowOp, length: int, width: int, are_rows: bool) -> int:
    """Returns how many threads reduce the terms of a result."""
    return row_threads(length, width) if op.is_reduction and are_rows and length > LONG else WARP


def _threads(op: RowOp, count: int, lanes: int) -> int:
    """Returns how many threads reduce `count` parts of each result; a thread reduces a result along outer loops."""
    return math.prod(op.rows()) * count * (lanes if op.is_reduction else 1)


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


def _divisors(size: int) -> list[int]:
    """Returns the divisors of a number, in any order."""
    small = [number for number in range(1, math.isqrt(size) + 1) if size % number == 0]
    return [*small, *(size // number for number in small)]
