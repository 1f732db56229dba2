"""Races between the threads of a warp: which lane wrote and read each granule of shared memory.

The threads of a warp are one actor of the sanitizer. What one of them, or all by a store of a matrix (`stmatrix`,
`wmma.store`), has written since they last met at a barrier or a `bar.warp.sync` (`Clocks.met_at`), another one may not
read or write, nor let TMA read or write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory.shadow import SharedShadow
from stepladder.emulator.memory.touches import SEVERAL, TOGETHER, Touch

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.memory.memory import Access
    from stepladder.emulator.memory.pages import Pages
    from stepladder.emulator.memory.reports import Reports


def touching(fiber: Fiber, access: Access) -> np.ndarray | None:
    """Returns the lane of each element that lanes access in shared memory.

    Args:
        fiber: the threads of the access.
        access: with lanes.

    Returns:
        int array (elements,), those that are not valid left out; None for other memory, or where lanes act for others.
    """
    if fiber.acts_for == "others" or access.memory.space != "shared":
        return None
    size = access.positions.size
    if fiber.acts_for in ("warp", "matrix"):
        lanes = np.full(size, SEVERAL if fiber.acts_for == "warp" else TOGETHER)
    else:
        lanes = np.repeat(fiber.lanes, size // len(fiber.lanes))
    return lanes if access.valid is None else lanes[access.valid.reshape(-1)]


def note(pages: Pages, lane_of: np.ndarray, touch: Touch) -> None:
    """Records which lane accesses each granule last: `SEVERAL` where several do at once.

    Args:
        pages: the summary of the granules.
        lane_of: int array of the shadow, (granules,); it is modified.
        touch: the access.
    """
    page_numbers = pages.of(touch)
    if touch.lanes is not None:
        pages.by_lanes[page_numbers] = True
    elif not pages.by_lanes[page_numbers].any():
        return
    if touch.lanes is None:
        touch.put(lane_of, SEVERAL)
        return
    touch.put(lane_of, touch.lanes)
    lane_of[touch.places[touch.of(lane_of) != touch.lanes]] = SEVERAL


def check(sanitizer: Reports, op: Instruction, touch: Touch, shadow: SharedShadow, *, writes: bool) -> None:
    """Adds a finding where a thread depends on another one of its warp, and nothing synchronizes them.

    A write by all threads of a warp together (stmatrix, wmma.store) begins when all of them have reached it.

    Args:
        sanitizer: of the group.
        op: the instruction.
        touch: what it accesses.
        shadow: of the memory.
        writes: whether the access is a write.
    """
    lanes = touch.lanes
    if lanes is None or (writes and (lanes < 0).any()):
        return
    meeting_times = sanitizer.met_at[touch.actors]
    other = touch.of(shadow.writing_lane)
    verb = "writes" if writes else "reads"
    wrong = (other != lanes) & (other != SEVERAL)
    if wrong.any():
        wrong &= (other >= 0) | ((other == TOGETHER) & (lanes >= 0))
        wrong &= (touch.of(shadow.writer) == touch.actors) & (touch.of(shadow.written_at) >= meeting_times)
        wrong &= touch.of(shadow.busy_writing) < 0
        _report(
            sanitizer, op, touch, wrong, f"{verb} {{}}, which {{}} of the same warp wrote", other, shadow.written_by
        )
    if writes:
        other = touch.of(shadow.reading_lane)
        wrong = (other >= 0) & (other != lanes)
        if wrong.any():
            wrong &= shadow.read_at[touch.actors, touch.shared_index] >= meeting_times
            wrong &= sanitizer.group.warp_of_lane[other] == touch.actors
            _report(sanitizer, op, touch, wrong, "writes {}, which {} of the same warp read", other, shadow.read_by)


def _report(
    sanitizer: Reports, op: Instruction, touch: Touch, wrong: np.ndarray, text: str, other: np.ndarray, by: np.ndarray
) -> None:
    if wrong.any():
        first = int(wrong.argmax())
        place = int(touch.places[first])
        lane = int(other[first])
        actor = "a store of a matrix" if lane == TOGETHER else sanitizer.group.thread_name(lane)
        did = text.format(sanitizer.where(touch.memory, place), actor)
        sanitizer.add("race", f"a thread {did}, without a barrier or a bar.warp.sync between them", op, int(by[place]))
