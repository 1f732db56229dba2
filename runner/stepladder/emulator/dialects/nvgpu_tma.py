"""nvgpu: TMA loads and stores of boxes. Descriptors are `tma.Descriptor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.hardware import (
    mbarriers,
    tma,
)
from stepladder.mlir.tensor_maps import READ_EARLY
from stepladder.mlir.types import tensor_map_fills_nan, tensor_map_swizzle

if TYPE_CHECKING:
    from stepladder.emulator.hardware.mbarriers import MBarrier
    from stepladder.emulator.hardware.tma import Descriptor

from stepladder.emulator.dialects.nvgpu import address_of, mbarrier_at, of_lane, segments, where


@executes("nvgpu.tma.create.descriptor")
def tma_create_descriptor(fiber: Fiber, op: Instruction, view: MemRef, *box: Value) -> Value:
    """A descriptor of a tensor; what the hardware does not take is a finding.

    One that is read early (`tc.load_weights_early`) states that launches before do not write the tensor.
    """
    view.memory.is_kept |= READ_EARLY in op.attributes
    text = op.result_types[0].text
    item = view.element.bytes
    descriptor = tma.Descriptor(
        view.memory,
        view.start + int(view.offset) * item,
        view.element,
        tuple(int(size) for size in view.sizes),
        tuple(int(stride) for stride in view.strides),
        tuple(int(size) for size in box),
        tensor_map_swizzle(text),
        fills_nan=tensor_map_fills_nan(text),
    )
    for problem in descriptor.problems():
        fiber.group.sanitizer.report("descriptor", problem, op)
    return descriptor


@executes("nvgpu.tma.prefetch.descriptor", "nvgpu.tma.fence.descriptor")
def tma_prefetch_descriptor(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: descriptors do not change."""


@executes("nvgpu.tma.async.load")
def tma_async_load(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Lets each thread begin to load a box to its block, or to the blocks of a mask."""
    (view,), (barriers,), (descriptor,), coordinates, (number,), multicast, predicate = segments(op, operands)
    _check_box(op, view, descriptor)
    barrier = mbarrier_at(where(fiber, predicate) or fiber, op, barriers, number, operand=1)
    load_boxes(fiber, op, descriptor, coordinates, address_of(view), barrier, multicast, predicate)


def load_boxes(
    fiber: Fiber,
    op: Instruction,
    descriptor: Descriptor,
    coordinates: Sequence[Value],
    address: Value,
    barrier: MBarrier,
    multicast: Value = (),
    predicate: Value = (),
) -> None:
    """Begins the load of a box by each thread.

    Args:
        fiber: the threads.
        op: the instruction.
        descriptor: of the tensor.
        coordinates: where the box begins, the innermost first, each uniform or (T,).
        address, barrier: in shared memory, of the box and of the mbarrier that counts its bytes.
        multicast: (mask of blocks,), or () for the thread's own.
        predicate: (whether a thread does it,), or ().
    """
    fiber = where(fiber, predicate)
    if fiber is None:
        return
    group = fiber.group
    for lane in fiber.lanes:
        block = int(group.block_of_lane[lane])
        blocks = [block]
        if multicast:
            mask = of_lane(multicast[0], lane)
            blocks = [target for target in range(16) if mask >> target & 1]
        if max(blocks, default=0) >= group.blocks:
            group.sanitizer.report(
                "out-of-bounds", f"its destination is block {max(blocks)} of a cluster of {group.blocks} blocks", op
            )
            blocks = [target for target in blocks if target < group.blocks]
        place = of_lane(barrier, lane)
        warp = [group.warp_of_lane[lane]]
        barriers_of_blocks = {target: mbarriers.find_mbarrier(fiber, op, target, place, warp) for target in blocks}
        tma.load(
            fiber,
            op,
            descriptor,
            [of_lane(at, lane) for at in reversed(coordinates)],
            lane=int(lane),
            address=of_lane(address, lane),
            barriers=[(target, barrier) for target, barrier in barriers_of_blocks.items() if barrier is not None],
        )


def _check_box(op: Instruction, view: MemRef, descriptor: Descriptor) -> None:
    if not isinstance(descriptor, tma.Descriptor):
        raise Unsupported(op, "of a pointer to an array: expected a TMA descriptor, an argument with a box")
    if tuple(size for size in view.sizes if size != 1) != tuple(size for size in descriptor.box if size != 1):
        raise Unsupported(op, f"of a box of {list(descriptor.box)} in shared memory of {list(view.sizes)}")


@executes("nvgpu.tma.async.store")
def tma_async_store(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Lets each thread begin to store a box."""
    (view,), (descriptor,), coordinates, predicate = segments(op, operands)
    _check_box(op, view, descriptor)
    store_boxes(fiber, op, descriptor, coordinates, address_of(view), predicate)


def store_boxes(
    fiber: Fiber,
    op: Instruction,
    descriptor: Descriptor,
    coordinates: Sequence[Value],
    address: Value,
    predicate: Value,
) -> None:
    """Begins the store of a box by each thread.

    Args:
        fiber: the threads.
        op: the instruction.
        descriptor: of the tensor.
        coordinates: where the box begins, the innermost first, each uniform or (T,).
        address: of the source in shared memory, uniform or (T,).
        predicate: () or (value,): the threads that store.
    """
    fiber = where(fiber, predicate)
    if fiber is None:
        return
    for lane in fiber.lanes:
        tma.store(
            fiber,
            op,
            descriptor,
            [of_lane(at, lane) for at in reversed(coordinates)],
            lane=int(lane),
            address=of_lane(address, lane),
        )
