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


def touching(fiber: Fiber, access: Access, count: int) -> np.ndarray | None:
    """Returns the lane of each element that threads access in shared memory.

    Args:
        fiber: the threads of the access.
        access: of the elements.
        count: elements of each lane, or of each warp where the access has no dimension of lanes.

    Returns:
        int array (elements,); None for other memory, where lanes act for others, and where that is not known.
    """
    if fiber.acts_for == "others" or access.memory.space != "shared":
        return None
    if not access.per_lane:
        if access.valid is not None:
            return None
        alone = len(fiber.lanes) == len(fiber.warps) and not fiber.acts_for
        return fiber.lanes.repeat(count) if alone else np.full(len(fiber.warps) * count, SEVERAL)
    if fiber.acts_for in ("warp", "matrix"):
        return np.full(len(fiber.lanes) * count, SEVERAL if fiber.acts_for == "warp" else TOGETHER)
    return fiber.lanes.repeat(count)


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
    elif not np.count_nonzero(pages.by_lanes[page_numbers]):
        return
    if touch.lanes is None:
        touch.put(lane_of, SEVERAL)
        return
    touch.put(lane_of, touch.lanes)
    is_of_several = touch.of(lane_of) != touch.lanes
    if np.count_nonzero(is_of_several):
        lane_of[touch.places[is_of_several]] = SEVERAL


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
    if lanes is None or (writes and np.count_nonzero(lanes < 0)):
        return
    other = touch.of(shadow.writing_lane)
    verb = "writes" if writes else "reads"
    wrong = (other != lanes) & (other != SEVERAL)
    if np.count_nonzero(wrong):
        meeting_times = sanitizer.met_at[touch.actors]
        wrong &= (other >= 0) | ((other == TOGETHER) & (lanes >= 0))
        wrong &= (touch.of(shadow.writer) == touch.actors) & (touch.of(shadow.written_at) >= meeting_times)
        wrong &= touch.of(shadow.busy_writing) < 0
        _report(
            sanitizer, op, touch, wrong, f"{verb} {{}}, which {{}} of the same warp wrote", other, shadow.written_by
        )
    if writes:
        other = touch.of(shadow.reading_lane)
        wrong = (other >= 0) & (other != lanes)
        if np.count_nonzero(wrong):
            wrong &= shadow.read_at[touch.actors, touch.shared_index] >= sanitizer.met_at[touch.actors]
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
