"""Shared memory of the other blocks of a cluster, by addresses as `mapa` makes them: the block's rank stands above."""

from __future__ import annotations

import numpy as np

from stepladder.emulator import memory, synchronization, values

POINTER = "!llvm.ptr<7>"


def read(fiber, op, pointer, element, shape=()):
    """Returns the elements of `shape` at an address, uniform or (T,), in the shared memory of a block of the cluster.

    What ends behind that block's shared memory becomes a finding and is left out.
    """
    group = fiber.group
    address = values.lanes(np.asarray(pointer), fiber.count, 0)
    block = (address >> memory.RANK_SHIFT) - 1
    block = np.where(block < 0, group.block_of_lane, block)
    if group.sanitizer.enabled:
        synchronization.note_remote(fiber, op, block, "reads shared memory")
    item, count = element.dtype.itemsize, int(np.prod(shape, dtype=int))
    place = (address % (1 << memory.RANK_SHIFT))[fiber.lanes]
    window = group.window
    inside = (place + count * item <= window.size)[:, None] & np.ones(count, bool)
    if not inside.all():
        view = memory.contiguous(window, element, (window.size // item,))
        group.sanitizer.out_of_bounds(fiber, op, view, [place[:, None] // item + np.arange(count)], ~inside, 1)
    positions = (block[fiber.lanes] * (window.size // item) + place // item)[:, None] + np.arange(count)
    access = memory.Access(window, element, positions, None if inside.all() else inside, True)
    group.sanitizer.read(fiber, op, access)
    if group.counters is not None:
        group.counters.access(fiber, op, access, "load")
    return memory.spread(fiber, memory.gather(access).reshape(-1, *shape))
