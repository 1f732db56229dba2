"""Accesses of a warp that a single thread releases by an arrival at an mbarrier.

The threads of a warp are one actor of the sanitizer. Where others of them have accessed shared memory since they last
came together (`Clocks.converged_at`), a thread that arrives alone releases the warp's clock up to then; what it has
done itself since is in the entry of an actor of its own (`Clocks.lone`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory.findings import NoSanitizer
from stepladder.emulator.memory.shadow import SharedShadow
from stepladder.emulator.memory.touches import TOGETHER

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.memory.clocks import Clocks


def release(fiber: Fiber, mask: np.ndarray, warps: np.ndarray) -> np.ndarray:
    """Returns what lanes release that arrive at an mbarrier, and advances their warps, as `Clocks.release`.

    Args:
        fiber: the threads.
        mask: bool array (T,) of the lanes that arrive.
        warps: theirs, each once.

    Returns:
        A clock: int array (actors,).
    """
    sanitizer = fiber.group.sanitizer
    if isinstance(sanitizer, NoSanitizer) or fiber.acts_for:
        return sanitizer.release(warps)
    late = warps[sanitizer.touched_at[warps] >= sanitizer.converged_at[warps]]
    if not late.size:
        return sanitizer.release(warps)
    lanes = np.flatnonzero(mask)
    of_warp = fiber.group.warp_of_lane[lanes]
    alone = [(int(warp), lanes[of_warp == warp]) for warp in late]
    alone = [(warp, int(own[0])) for warp, own in alone if len(own) == 1 and _others_touched(fiber, warp, int(own[0]))]
    agents = {warp: _agent(sanitizer, warp, lane) for warp, lane in alone}
    times = {warp: sanitizer.clocks[warp, warp] for warp in agents}
    own_times = {warp: sanitizer.clocks[warps[warps != warp], warp].max(initial=0) for warp in agents}
    clocks = sanitizer.release(warps)
    for warp, agent in agents.items():
        clocks[warp] = max(own_times[warp], sanitizer.converged_at[warp] - 1)
        clocks[agent] = times[warp]
    return clocks


def _others_touched(fiber: Fiber, warp: int, lane: int) -> bool:
    """Whether other threads of a warp have accessed shared memory since all of them came together."""
    group = fiber.group
    shadow = group.window.shadow if group.window is not None else None
    if not isinstance(shadow, SharedShadow):
        return False
    since = group.sanitizer.converged_at[warp]
    reader, writer = shadow.reading_lane, shadow.writing_lane
    is_read = (shadow.read_at[warp] >= since) & (reader >= 0) & (reader != lane)
    if (group.warp_of_lane[reader[is_read]] == warp).any():
        return True
    wrote = (shadow.writer == warp) & (shadow.written_at >= since)
    return bool((wrote & (writer != lane) & ((writer >= 0) | (writer == TOGETHER))).any())


def _agent(sanitizer: Clocks, warp: int, lane: int) -> int:
    if (warp, lane) not in sanitizer.lone:
        sanitizer.lone[warp, lane] = sanitizer.agent()
    return sanitizer.lone[warp, lane]


def excused(
    sanitizer: Clocks,
    actors: np.ndarray | int,
    others: np.ndarray | int,
    times: np.ndarray,
    lanes: np.ndarray | None,
    *,
    wrote: bool,
) -> np.ndarray:
    """Returns for each of several accesses whether it is a thread's that actors know of, though not of its whole warp.

    Accesses of several threads at once count as such: their threads are not recorded.

    Args:
        sanitizer: of the group.
        actors: that must be ordered after each access, an array (pairs,) or one for all.
        others: the actors that accessed, an array (pairs,) or one for all.
        times: of the accesses, int array (pairs,).
        lanes: of the accesses, int array (pairs,); None where they are not known.
        wrote: whether the accesses are writes, of which those of whole matrices are of all threads.

    Returns:
        bool array (pairs,).
    """
    is_excused = np.zeros(times.shape, bool)
    for (warp, lane), agent in sanitizer.lone.items():
        is_released = (others == warp) & (sanitizer.clocks[actors, agent] >= times)
        if lanes is not None:
            is_other = (lanes >= 0) & (lanes != lane) & (sanitizer.group.warp_of_lane[lanes] == warp)
            is_released &= ~(is_other | (lanes == TOGETHER) if wrote else is_other)
        is_excused |= is_released
    return is_excused


def explained(sanitizer: Clocks, actor: int, warp: int) -> str:
    """Returns what a message about a race adds where a thread of a warp has arrived alone.

    Args:
        sanitizer: of the group.
        actor: of the later access; `warp`: of the earlier one.
    """
    for (own, lane), agent in sanitizer.lone.items():
        if own == warp and sanitizer.clocks[actor, agent]:
            name = sanitizer.group.thread_name(lane)
            return (
                f": {name} arrived at an mbarrier for its warp, without a bar.warp.sync after the accesses of the "
                "other threads"
            )
    return ""
