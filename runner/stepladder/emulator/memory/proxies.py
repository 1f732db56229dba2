"""The async proxy: fences between accesses of threads (generic proxy) and those of TMA and wgmma."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.memory.sanitizer import Sanitizer
    from stepladder.emulator.memory.shadow import SharedShadow
    from stepladder.emulator.memory.touches import Touch


def check_global(sanitizer: Sanitizer, op: Instruction, touch: Touch, verb: str) -> None:
    """Checks that a fence for the async proxy, or a wait for another block, precedes an access by TMA to global memory.

    Args:
        sanitizer: of the group.
        op: the instruction that begins the access.
        touch: the access.
        verb: "reads" or "writes", for the message.
    """
    last = sanitizer.shadow_of_global(touch.memory).write
    if not last.any:
        return
    groups = touch.of(last.owner) - 1
    own = groups == sanitizer.group.number
    if own.any():
        actor = np.where(own, touch.of(last.actor), 0)
        unseen = own & (touch.of(last.at) > sanitizer.fenced_global[actor])
        unseen[unseen] = ~np.isin(touch.of(last.by)[unseen], list(sanitizer.through_proxy))
        if unseen.any():
            place = int(touch.places[unseen.argmax()])
            sanitizer.add(
                "proxy",
                f"{verb} {sanitizer.where(touch.memory, place)} through the async proxy, and no "
                "fence.proxy.async for global memory follows the write",
                op,
                int(last.by[place]),
            )
            return
    for number, (warp, time) in sanitizer.last_synchronized.items():
        theirs = groups == number
        if theirs.any() and sanitizer.fenced_global[warp] < time:
            place = int(touch.places[theirs.argmax()])
            sanitizer.add(
                "proxy",
                f"{verb} {sanitizer.where(touch.memory, place)} through the async proxy, and no "
                "fence.proxy.async follows the wait for the block that wrote it",
                op,
            )


def check_shared(sanitizer: Sanitizer, op: Instruction, touch: Touch, shadow: SharedShadow) -> None:
    """Checks that the async proxy sees the writes of threads to shared memory that it reads.

    A fence is of the warp that wrote, after the write, and before what orders the two accesses. Products of warpgroups
    also see what is ordered before a fence that each of their own warps has passed.

    Args:
        sanitizer: of the group.
        op: the instruction that begins to read.
        touch: what it reads, by one actor.
        shadow: of the memory.
    """
    index = touch.shared_index
    writer = shadow.writer[index]
    generic = (writer >= 0) & ~shadow.asynchronously[index]
    if not generic.any():
        return
    assert isinstance(touch.actors, int)
    unseen = generic & (shadow.written_at[index] > sanitizer.fenced_for(touch.actors)[writer])
    if unseen.any():
        first = int(unseen.argmax())
        place = touch.places[first]
        is_late = sanitizer.fences[writer[first], 0] >= shadow.written_at[place]
        missing = (
            "the fence.proxy.async after the write is not ordered before the read: it belongs in front of the barrier"
            if is_late
            else "no fence.proxy.async follows the write"
        )
        text = f"reads {sanitizer.where(touch.memory, place)} through the async proxy, and {missing}"
        sanitizer.add("proxy", text, op, int(shadow.written_by[place]))
