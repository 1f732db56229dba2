"""How many threads compute a row of a chain, and by which vectors."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from stepladder.extension.lib.element_bodies import VECTOR_BYTES, has_vectors, vector_bits
from stepladder.extension.lib.multi_kernel.rows import LONG, RowOp, length_of
from stepladder.extension.lib.threads import WARP
from stepladder.mlir.bindings import ir
from stepladder.mlir.reshapes import BUFFER_VIEWS, TENSOR_VIEWS
from stepladder.mlir.traverse import origin, producer, users_of

_BYTE = 8  # bits
# Threads of a block, by the least loads of 16 bytes in a row, of chains, which read it again, and of single reductions.
# On an H200, chains over 4096 rows of 16384 f16 took 65.8 us by 512 threads and 86.0 us by 256, over 2048 rows of 8192
# 19.3 and 17.2 us, over 64 rows of 163840 17.2 us and, by 1024 threads, 15.4 us; maxima of 280 rows of 16384 took 2.7
# us by 512 threads and 2.2 us by 256 (docs/results/row_threads.json).
_THREADS_OF_CHAINS = ((16384, 1024), (2048, 512), (0, 256))
_THREADS_OF_REDUCTIONS = ((16384, 1024), (8192, 512), (0, 256))
# Vectors of each operand that a thread of a block, or a lane, keeps in registers, where they are the whole row.
HELD, HELD_BY_LANES = 4, 8
# A warp computes a longer row, too, if lanes keep all of its vectors, and there are many rows: 32000 rows of 768 took
# 24.8 us so, and 57.1 us by blocks of 256 threads.
_MANY_ROWS = 1 << 9
# With fewer threads, a lane computes one vector of a row.
_FEW_THREADS = 1 << 15


def vector_width(ops: Sequence[RowOp], op: RowOp, rank: int, lanes: int) -> int:
    """Returns how many neighbouring columns a thread computes at once: as many as are 16 bytes of the widest operand of
    the chain that has the columns and is in memory; 1 where no operand has such vectors.

    Args:
        ops: of the chain, on buffers.
        op: one of them.
        rank: how many loops the rows have.
        lanes: threads of a row.
    """
    columns = op.columns(rank)
    if len(columns) != 1:
        return 1
    elements = [
        ir.MemRefType(operand.type).element_type
        for member in ops
        for operand, loops in zip(member.op.operands, member.maps)
        if _has_columns(loops, member.columns(rank)) and _is_in_memory(operand) and has_vectors(operand, 1)
    ]
    width = VECTOR_BYTES * 8 // max(map(vector_bits, elements)) if elements else 1
    while width > 1 and (op.sizes[columns[0]] % width or op.sizes[columns[0]] < lanes * width):
        width //= 2
    return width


def _has_columns(loops: list[int | None], columns: list[int]) -> bool:
    """Returns whether the elements of a row are neighbours in an operand."""
    return len(columns) == 1 and loops[-1:] == columns and loops.count(columns[0]) == 1


def _is_in_memory(buffer: ir.Value) -> bool:
    """Returns whether a buffer is an argument of the kernel; what ops of the chain compute for others has no memory."""
    source = producer(origin(buffer, BUFFER_VIEWS))
    return source is None or source.name != "memref.alloc"


def lanes_of_row(ops: Sequence[RowOp], rows: Sequence[int], threads: int) -> int:
    """Returns how many threads compute a row: a block where it is long, else lanes of a warp.

    Args:
        ops: of a chain, on buffers.
        rows: sizes of the loops over the rows. Those of a warp divide them, so that all of its lanes exchange values.
        threads: of a block.
    """
    rank, count = len(rows), math.prod(rows)
    vectors = max(-(-length_of(op, rank) // vector_width(ops, op, rank, 1)) for op in ops)
    if max(length_of(op, rank) for op in ops) > LONG and (vectors > WARP * HELD_BY_LANES or count < _MANY_ROWS):
        return threads
    lanes = math.gcd(vectors, WARP)
    if vectors > lanes * HELD or count * lanes < _FEW_THREADS:
        lanes = min(WARP, 1 << (vectors - 1).bit_length())
    return max(lanes, WARP // math.gcd(count, WARP))


def row_threads(length: int, width: int, *, is_chain: bool = False) -> int:
    """Returns the threads of a block that computes a row.

    Args:
        length: of the row.
        width: how many neighbouring columns a vector of 16 bytes has.
        is_chain: whether several ops are over the row.
    """
    loads = length if length % width else length // width
    table = _THREADS_OF_CHAINS if is_chain else _THREADS_OF_REDUCTIONS
    return next(threads for least, threads in table if loads >= least)


def block_threads(generics: Sequence[ir.Operation]) -> int:
    """Returns the threads of the blocks that compute a chain.

    Args:
        generics: the ops of the chain, on tensors.
    """
    ops = [RowOp(generic) for generic in generics]
    rank = len(next((op.kept for op in ops if op.reduced), []))
    width = min(column_width(op, op.columns(rank), inside=set(generics)) for op in ops)
    return max(row_threads(length_of(op, rank), width, is_chain=len(ops) > 1) for op in ops)


def column_width(op: RowOp, columns: Sequence[int], inside: Collection[ir.Operation] = ()) -> int:
    """Returns how many neighbouring columns are 16 bytes of the widest operand that has some of the columns.

    Args:
        op: on tensors.
        columns: loops.
        inside: ops of a chain; what they compute for each other does not count.
    """
    bits = [
        vector_bits(ir.ShapedType(operand.type).element_type)
        for operand, loops in list(zip(op.op.operands, op.maps))[: op.inputs]
        if set(loops) & set(columns) and producer(origin(operand, TENSOR_VIEWS)) not in inside
    ]
    for result, loops in zip(op.op.results, op.maps[op.inputs :]):
        if set(loops) & set(columns) and any(user not in inside for user in users_of(result)):
            bits.append(vector_bits(ir.ShapedType(result.type).element_type))
    return VECTOR_BYTES * 8 // max([_BYTE, *bits])
