"""nvgpu: products of warpgroups."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.dialects.nvgpu import address_of, of_lane
from stepladder.emulator.hardware import asynchronous, fragments, warpgroups
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.hardware.asynchronous import Warpgroup
from stepladder.emulator.hardware.shared_memory_layouts import GROUP, MatrixDescriptor
from stepladder.emulator.hardware.warpgroups import ROWS, STEP_BYTES, TYPES, Operand
from stepladder.emulator.memory import memory
from stepladder.mlir.types import warpgroup_tile

# PTX's names of element types.
_PTX_TYPES = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "i8": "s8"}


@dataclass(frozen=True)
class Tile:
    """An operand in shared memory: boxes beside each other, each `box_bytes`, with rows of `swizzle` bytes.

    Attributes:
        address: of its first byte, uniform or (T,).
        type: PTX's name of the element type.
    """

    address: object
    box_bytes: int
    swizzle: int
    type: str

    def at(self, lane: int, *, along_k: bool, block: int, step: int) -> Operand:
        """Returns the operand that one instruction reads.

        Args:
            lane: whose address is taken.
            along_k: whether the elements along k are adjacent.
            block: the number of the 64 rows.
            step: the number of the step along k.
        """
        item = np.dtype(TYPES[self.type]).itemsize
        if along_k:
            box, within = divmod(step * STEP_BYTES, self.swizzle)
            offset = block * ROWS * self.swizzle + box * self.box_bytes + within
        else:
            offset = block * ROWS * item // self.swizzle * self.box_bytes + step * STEP_BYTES // item * self.swizzle
        return Operand(
            MatrixDescriptor(of_lane(self.address, lane) + offset, self.box_bytes, GROUP * self.swizzle, self.swizzle),
            self.type,
            along_k,
        )


# Returns an operand of one instruction, given the warpgroup, the index of the 64 rows and the step along k.
_OperandOf = Callable[[Warpgroup, int, int], Operand]


@executes("nvgpu.warpgroup.generate.descriptor", "tc.warpgroup_generate_descriptor")
def warpgroup_generate_descriptor(fiber: Fiber, op: Instruction, view: MemRef, descriptor: Value) -> Value:
    """An operand: a view of boxes x rows x columns, or of rows and columns whose boxes follow each other."""
    if not descriptor.swizzle:
        raise Unsupported(op, "of a tile without a swizzle")
    element = warpgroup_tile(op.result_types[0].text)[2]
    box = view.strides[0] * view.element.bytes if view.rank == 3 else view.sizes[0] * descriptor.swizzle
    return Tile(address_of(view), int(box), descriptor.swizzle, _PTX_TYPES.get(element, element))


@executes("tc.warpgroup_describe_tile")
def warpgroup_describe_tile(fiber: Fiber, op: Instruction, view: MemRef) -> Value:
    """An operand that threads have written: a view of boxes x rows x columns."""
    element = warpgroup_tile(op.result_types[0].text)[2]
    box = view.strides[0] * view.element.bytes
    return Tile(address_of(view), int(box), op.attributes["swizzle"], _PTX_TYPES.get(element, element))


@executes("nvgpu.warpgroup.mma.init.accumulator", "tc.warpgroup_init_accumulator")
def warpgroup_mma_init_accumulator(fiber: Fiber, op: Instruction) -> Value:
    """AccumulatorRegisters of zero."""
    rows, columns, element = warpgroup_tile(op.result_types[0].text)
    kind = {"f32": np.float32, "f16": np.float16, "i32": np.int32}[element]
    return AccumulatorRegisters(np.zeros((fiber.count, rows // ROWS, columns // 2), kind))


@executes("nvgpu.warpgroup.mma", "tc.warpgroup_mma")
def warpgroup_mma(fiber: Fiber, op: Instruction, a: Tile, b: Tile, sums: AccumulatorRegisters) -> Value:
    """Begins a product, and waits for all but the latest `waitGroup` ones (default: 1)."""
    result = sums.after()
    left = _in_shared_memory(a, along_k="transposeA" not in op.attributes)
    right = _in_shared_memory(b, along_k="transposeB" not in op.attributes)
    blocks, steps = _extents(op, a)
    _multiply(fiber, op, result, blocks, steps, [(left, right)], pending=op.attributes.get("waitGroup", 1))
    return result


@executes("tc.warpgroup_mma_registers")
def warpgroup_mma_registers(fiber: Fiber, op: Instruction, a: np.ndarray, b: Tile, sums: AccumulatorRegisters) -> Value:
    """Begins a product of A in registers by 16 rows of B's tile, as a group of its own."""
    result = sums.after()
    step = op.attributes["step"]
    left = _in_registers(np.ascontiguousarray(a).view(np.int32)[..., 0][:, :, None], b.type, first=step)
    right = _in_shared_memory(b, along_k="transposeB" not in op.attributes)
    _multiply(fiber, op, result, a.shape[1], range(step, step + 1), [(left, right)])
    return result


@executes("tc.warpgroup_mma_3xtf32")
def warpgroup_mma_3xtf32(
    fiber: Fiber,
    op: Instruction,
    a: Tile,
    b: Tile,
    sums: AccumulatorRegisters,
    small_a: Tile,
    small_b: Tile,
) -> Value:
    """Sums the products of large and small parts, and then of the large ones, from zero, and adds them to the
    accumulator."""
    parts_of_a = [_in_shared_memory(part, along_k=True) for part in (a, small_a)]
    blocks, steps = _extents(op, a)
    return _sum_of_three(fiber, op, sums, blocks, steps, parts_of_a, (b, small_b))


@executes("tc.warpgroup_mma_3xtf32_registers")
def warpgroup_mma_3xtf32_registers(
    fiber: Fiber,
    op: Instruction,
    a: np.ndarray,
    b: Tile,
    sums: AccumulatorRegisters,
    small_a: np.ndarray,
    small_b: Tile,
) -> Value:
    """Sums the products of split operands as `warpgroup_mma_3xtf32`, with both parts of A in registers."""
    parts = [np.broadcast_to(part, (fiber.count, *part.shape[-3:])) for part in (a, small_a)]
    parts_of_a = [_in_registers(np.ascontiguousarray(part, np.float32).view(np.int32), b.type) for part in parts]
    _, blocks, steps, _ = parts[0].shape
    return _sum_of_three(fiber, op, sums, blocks, range(steps), parts_of_a, (b, small_b))


def _in_shared_memory(tile: Tile, *, along_k: bool) -> _OperandOf:
    def operand(warpgroup: Warpgroup, block: int, step: int) -> Operand:
        return tile.at(warpgroup.lanes.start, along_k=along_k, block=block, step=step)

    return operand


def _in_registers(registers: np.ndarray, type_: str, *, first: int = 0) -> _OperandOf:
    """Returns A in registers, int32 array (T, blocks, steps, registers); `first` is the step of the first ones."""

    def operand(warpgroup: Warpgroup, block: int, step: int) -> Operand:
        elements = np.ascontiguousarray(registers[warpgroup.lanes, block, step - first])
        return Operand(None, type_, True, values=warpgroups.matrix_of(elements, type_))

    return operand


def _extents(op: Instruction, a: Tile) -> tuple[int, range]:
    """Returns how many times 64 rows A's tile has, and the steps along k of its products."""
    rows, k, _ = warpgroup_tile(op.operand_types[0].text)
    return rows // ROWS, range(k * np.dtype(TYPES[a.type]).itemsize // STEP_BYTES)


def _multiply(
    fiber: Fiber,
    op: Instruction,
    sums: AccumulatorRegisters,
    blocks: int,
    steps: range,
    factors: Sequence[tuple[_OperandOf, _OperandOf]],
    *,
    pending: int | None = None,
) -> None:
    """Begins products of each warpgroup as one group, which are added to the sums in the order of the factors; waits
    for all but the latest `pending` groups."""
    columns = warpgroup_tile(op.operand_types[1].text)[1]
    groups = asynchronous.warpgroups(fiber, op)
    warpgroups.fence(groups)
    for warpgroup in groups:
        for block, (left, right), step in itertools.product(range(blocks), factors, steps):
            a, b = left(warpgroup, block, step), right(warpgroup, 0, step)
            warpgroups.multiply(warpgroup, op, fiber, sums, columns, a, b, dtype=sums.dtype, number=block)
        warpgroup.commit()
        if pending is not None:
            warpgroup.wait(pending)


def _sum_of_three(
    fiber: Fiber,
    op: Instruction,
    sums: AccumulatorRegisters,
    blocks: int,
    steps: range,
    parts_of_a: Sequence[_OperandOf],
    parts_of_b: tuple[Tile, Tile],
) -> AccumulatorRegisters:
    """Returns the accumulator plus the three products of parts of tf32, which are summed from zero, the small ones
    first; the parts of A and B are the large and the small one."""
    large_a, small_a = parts_of_a
    large_b, small_b = (_in_shared_memory(part, along_k=True) for part in parts_of_b)
    step_sums = AccumulatorRegisters(np.zeros_like(sums.array))
    factors = [(small_a, large_b), (large_a, small_b), (large_a, large_b)]
    _multiply(fiber, op, step_sums, blocks, steps, factors, pending=0)
    return AccumulatorRegisters(sums.read(fiber, op) + step_sums.read(fiber, op))


@executes("nvgpu.warpgroup.mma.store")
def warpgroup_mma_store(fiber: Fiber, op: Instruction, sums: AccumulatorRegisters, view: MemRef) -> None:
    """Stores the accumulator, each thread the elements that it holds.

    The first warpgroup of a block stores from the view's first row on, and each further one 64 rows below the one
    before it: the number of the thread along x counts, as it does in what MLIR makes of the op.
    """
    _store(fiber, op, sums, view, np.broadcast_to(fiber.group.thread_id[0], fiber.count))


@executes("tc.warpgroup_mma_store")
def own_warpgroup_mma_store(fiber: Fiber, op: Instruction, sums: AccumulatorRegisters, view: MemRef) -> None:
    """Stores the accumulator, each thread the elements that it holds, to a view of each warpgroup."""
    _store(fiber, op, sums, view, fiber.group.thread_of_lane % fragments.WARPGROUP)


def _store(fiber: Fiber, op: Instruction, sums: AccumulatorRegisters, view: MemRef, number: np.ndarray) -> None:
    """Stores the accumulator, given the number of each thread, (T,)."""
    array = sums.read(fiber, op)
    blocks, count = array.shape[1:]
    fragment = fragments.accumulator(2 * count)
    thread = number % fragments.WARPGROUP
    first = number // fragments.WARPGROUP * ROWS
    rows = (fragment.rows[thread] + first[:, None])[:, None] + ROWS * np.arange(blocks).reshape(1, -1, 1)
    columns = np.broadcast_to(fragment.columns[thread][:, None], rows.shape)
    # Rows of further warpgroups are after the rows of the view's type.
    last = max(int(fiber.first(view.sizes[0])), int(first[fiber.lanes].max()) + ROWS * blocks)
    view = view.view(view.offset, (last, view.sizes[1]), view.strides)
    memory.write(fiber, op, view, [rows, columns], array, (blocks, count))
