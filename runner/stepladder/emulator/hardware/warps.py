"""Ops that all threads of a warp or of a block execute alike, executed once.

Before a step maps a product or a tile to the registers of a warp, every thread of the warp executes all of it, on the
same operands. The first active thread executes it for all threads with the same operands. An op that no step has mapped
to threads yet executes once a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.values import Value


def narrowed(fiber: Fiber, mask: np.ndarray) -> Fiber:
    """Returns a fiber of some lanes, with the same values.

    Args:
        fiber: the threads.
        mask: bool array (T,) of the lanes.
    """
    narrow = Fiber(fiber.group, fiber.code, fiber.place, fiber.env, mask)
    narrow.acts_for = fiber.acts_for
    return narrow


def alike(fiber: Fiber, numbers: Sequence[Value]) -> Iterator[Fiber]:
    """Yields the fiber in parts, for each of which every one of some numbers is the same for all threads.

    Args:
        fiber: the threads.
        numbers: uniform, or (T,).
    """
    differing = [number for number in numbers if isinstance(number, np.ndarray) and number.ndim]
    if not differing:
        yield fiber
        return
    table = np.stack(differing, axis=1)
    for row in np.unique(table[fiber.lanes], axis=0):
        yield narrowed(fiber, fiber.active & (table == row).all(axis=1))


def varying(fiber: Fiber, views: Sequence, operands: Sequence) -> list[np.ndarray]:
    """Returns the values that an op depends on and that differ between threads, arrays (T, ...).

    Args:
        fiber: the threads.
        views: MemRefs that the op accesses.
        operands: the other scalars and vectors that it depends on, uniform or with lanes.
    """
    numbers = [number for view in views for number in (view.offset, *view.sizes, *view.strides)] + list(operands)
    numbers = [number for number in numbers if isinstance(number, np.ndarray) and len(number) == fiber.count]
    return numbers + [fiber.group.copy_of_lane(view.memory) for view in views if view.memory.space == "private"]


def once_a_warp(fiber: Fiber, numbers: Sequence[np.ndarray]) -> tuple[Fiber, np.ndarray | None]:
    """Returns a fiber of the lanes that execute an op for their warp.

    Args:
        fiber: the threads.
        numbers: what the op depends on that differs between threads (`varying`).

    Returns:
        The fiber, and for each lane (T,) the number of the one that does it for this lane; None where each does its
        own.
    """
    leader = _first(fiber, fiber.group.warp_of_lane)
    is_same = np.ones(fiber.count, bool)
    for array in numbers:
        # Bits, since NaN does not equal NaN.
        bits = array.view(f"u{array.dtype.itemsize}")
        is_same &= (bits == bits[leader]).reshape(fiber.count, -1).all(axis=1)
    own = np.arange(fiber.count)
    leader = np.where(is_same, leader, own)
    leads = fiber.active & (leader == own)
    if leads.sum() == len(fiber.lanes):
        return fiber, None
    return _for_others(fiber, leads), leader


def is_of_block(fiber: Fiber, numbers: Sequence[np.ndarray]) -> bool:
    """Returns whether the active threads of each block have the same values.

    Args:
        fiber: the threads.
        numbers: arrays (T,), as `varying` returns them.
    """
    leader = _first(fiber, fiber.group.block_of_lane)
    return all((array == array[leader])[fiber.lanes].all() for array in numbers)


def meet_in_blocks(fiber: Fiber) -> None:
    """Orders the past of each active warp before what the others of its block do next, as a barrier does.

    Args:
        fiber: the threads.
    """
    group = fiber.group
    if group.blocks == 1:
        group.sanitizer.synchronize(fiber.warps)
        return
    for block in np.unique(group.block_of_lane[fiber.lanes]):
        group.sanitizer.synchronize(fiber.warps[fiber.warps // group.warps_per_block == block])


def once_a_block(fiber: Fiber) -> Fiber:
    """Returns a fiber of the first active lane of each block.

    Args:
        fiber: the threads.
    """
    return _for_others(fiber, fiber.active & (_first(fiber, fiber.group.block_of_lane) == np.arange(fiber.count)))


def together(fiber: Fiber) -> Fiber:
    """Returns a fiber of the same threads, in which those of each warp move matrices together.

    Args:
        fiber: the threads.
    """
    merged = narrowed(fiber, fiber.active)
    merged.acts_for = "matrix"
    return merged


def _for_others(fiber: Fiber, mask: np.ndarray) -> Fiber:
    narrow = narrowed(fiber, mask)
    narrow.acts_for = "others"
    return narrow


def _first(fiber: Fiber, unit: np.ndarray) -> np.ndarray:
    """Returns, for each lane, the first active one of its unit, given the units' indices (T,)."""
    first = np.zeros(fiber.count, np.int64)
    # The first lane is last, so that its value is kept.
    first[unit[fiber.lanes[::-1]]] = fiber.lanes[::-1]
    return first[unit]
