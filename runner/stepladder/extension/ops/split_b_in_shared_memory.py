"""`tc.split_b_in_shared_memory`: splits tiles of B into parts of tf32 in shared memory, not in a preceding kernel."""

import contextlib
import math
from collections.abc import Sequence

from stepladder.extension.lib import launches, memory, threads, tma, vectors
from stepladder.extension.lib.arithmetic import apply, digits, index, integer, less_than, zero_of
from stepladder.extension.lib.control_flow import create_if, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.register_stages import PREFETCH, erase_unused, stage_of
from stepladder.extension.lib.tf32_operands import erase_unread
from stepladder.extension.lib.tf32_parts import split
from stepladder.extension.lib.warpgroup_ops import WarpgroupMma3xtf32Registers
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, nvvm, scf
from stepladder.mlir.traverse import defining_op, users_of, walk


class SplitBInSharedMemory(Tc.Operation, name="split_b_in_shared_memory"):
    """Loads tiles of the unmodified B, and splits them in shared memory before the MMA.

    The threads of the MMA replace each element of a tile by its large part, and store the small part at the same
    position of a second tile, so that neither layout nor swizzle matters. A proxy fence and a named barrier order the
    stores before the reads of the MMA.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: a launch without one MMA of two parts with A in registers, which `tc.split_a_into_tf32` creates; a B that
        TMA does not load as it is, since it is N-major or have another pitch than multiples of 16 bytes.
    """

    target: Handle


_WIDTH = 4  # elements of a vector
_AT_ONCE = 8  # vectors that a thread loads before it splits the first of them: the loads overlap
_BARRIER = 8  # its index, after those of the epilogue and of the schedules


def _the_mma(launch: ir.Operation) -> ir.Operation:
    mmas = walk(launch, WarpgroupMma3xtf32Registers.OPERATION_NAME)
    if len(mmas) != 1:
        raise Refusal(launch, f"expected one MMA of two parts with A in registers, found {len(mmas)}")
    return mmas[0]


def _split_into(mma: ir.Operation, part: ir.Value) -> tuple[ir.Operation, ir.Value]:
    """Returns the op that writes a part of B to a workspace, and the buffer that it splits."""
    writer = next(user for user in users_of(part) if user.name == "linalg.generic")
    tma.check_buffer(mma, writer.operands[0], "B")
    return writer, writer.operands[0]


def _erase_loads(launch: ir.Operation, descriptor: ir.Operation, rewriter: Rewriter) -> None:
    """Erases the loads by a TMA descriptor, and their bytes from those that a stage expects."""
    loaded = 0
    for user in users_of(descriptor.results[0]):
        if user.name == tma.LOAD:
            view = defining_op(user.operands[0])
            box = ir.MemRefType(view.results[0].type)
            loaded += math.prod(box.shape) * types.byte_width(box.element_type)
            rewriter.erase_op(user)
            erase_unused(view, rewriter)
        elif user.name == PREFETCH:
            rewriter.erase_op(user)
    for expect in walk(launch, tma.EXPECT):
        tma.change_expected(expect, lambda bytes_: bytes_ - loaded)


class _Tiles:
    """The stages of both parts of B's tile, as vectors in the order of their addresses.

    Args:
        large, small: the allocations, of stages x boxes x rows x columns.
        stage: to split.
    """

    def __init__(self, large: ir.Operation, small: ir.Operation, stage: ir.Value) -> None:
        self.buffers = (large.results[0], small.results[0])
        self.stage = stage
        type_ = ir.MemRefType(self.buffers[0].type)
        self.vector = ir.VectorType.get([_WIDTH], type_.element_type)
        self.shape = [*type_.shape[1:-1], type_.shape[-1] // _WIDTH]
        self.count = math.prod(self.shape)

    def _place(self, number: ir.Value) -> list[ir.Value]:
        boxes, *inner = self.shape
        box, row, column = digits(number, self.shape) if boxes > 1 else [index(0), *digits(number, inner)]
        return [self.stage, box, row, apply(lambda x: x * _WIDTH, column)]

    def _load(self, place: Sequence[ir.Value], condition: ir.Value | None) -> ir.Value:
        """Returns a vector, or zeros where a condition is false."""
        if condition is None:
            return memory.load_vector(self.vector, self.buffers[0], *place)
        branch = scf.IfOp(condition, [self.vector], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.yield_([self._load(place, None)])
        with ir.InsertionPoint(branch.else_block):
            scf.yield_([arith.constant(self.vector, zero_of(self.vector))])
        return branch.results[0]

    def _store(self, pair: Sequence[ir.Value], place: Sequence[ir.Value], condition: ir.Value | None) -> None:
        with contextlib.nullcontext() if condition is None else create_if(condition):
            for vector, buffer in zip(pair, self.buffers):
                memory.store_vector(vector, buffer, *place)

    def split(self, thread: ir.Value, first: int, thread_count: int) -> None:
        """Splits vectors at the insertion point, _AT_ONCE of each thread or what there is.

        Args:
            thread: its index.
            first: the vector of the first thread.
            thread_count: from a vector of a thread to its next one.
        """
        numbers = range(first, min(first + _AT_ONCE * thread_count, self.count), thread_count)
        places = [self._place(apply(lambda x, below=number: x + below, thread)) for number in numbers]
        conditions = [
            None if number + thread_count <= self.count else less_than(thread, index(self.count - number))
            for number in numbers
        ]
        read = [self._load(place, condition) for place, condition in zip(places, conditions)]
        stacked = vectors.stack({(place,): vector for place, vector in enumerate(read)}, [len(read)])
        parts = split(stacked, keeps_infinities=True)
        for number, (place, condition) in enumerate(zip(places, conditions)):
            pair = [vectors.extract(part, [number], self.vector) for part in parts]
            self._store(pair, place, condition)


def _split_tiles(tiles: _Tiles, thread_count: int) -> None:
    """Splits a stage at the insertion point, after which the MMA may read both parts."""
    thread = threads.thread_id()
    for first in range(0, tiles.count, _AT_ONCE * thread_count):
        tiles.split(thread, first, thread_count)
    tma.fence_async_proxy()
    nvvm.barrier(barrier_id=integer(_BARRIER, 32), number_of_threads=integer(thread_count, 32))


def _before_split_of_a(mma: ir.Operation) -> ir.InsertionPoint:
    """Returns where a thread has loaded its elements of A, whose latency the split of B hides."""
    ops = operations_of(mma.block)
    before = ops[: ops.index(mma)]
    return ir.InsertionPoint.after([op for op in before if op.name == "memref.load"][-1])


@transform_op(SplitBInSharedMemory)
def split_b_in_shared_memory(payload: ir.Operation, op: SplitBInSharedMemory, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    mma = _the_mma(launch)
    generates = [defining_op(mma.operands[place]) for place in (1, 4)]
    large, small = (memory.shared_tile_of(generate, generate.operands[0]) for generate in generates)
    descriptors = [defining_op(generate.operands[1]) for generate in generates]
    casts = [defining_op(descriptor.operands[0]) for descriptor in descriptors]
    parts = [cast.operands[0] for cast in casts]
    writer, source = _split_into(mma, parts[0])

    with ir.InsertionPoint(descriptors[0]), descriptors[0].location:
        type_ = casts[0].results[0].type
        descriptors[0].operands[0] = ir.Operation.create(casts[0].name, results=[type_], operands=[source]).results[0]
    generates[1].operands[1] = descriptors[0].results[0]
    _erase_loads(launch, descriptors[1], rewriter)
    for unused in (descriptors[1], *casts, writer):
        rewriter.erase_op(unused)
    for part in parts:
        erase_unread(part, rewriter)

    with _before_split_of_a(mma), mma.location:
        _split_tiles(
            _Tiles(large, small, stage_of(generates[0], large)), launches.launch_sizes(launch, launches.BLOCK)[0]
        )
