"""Updates: atomic ones by threads, and those by operations in flight (`red.async`, bulk copies and boxes that reduce).

Updates are unordered and do not race with each other, but they do race with other accesses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory import initialized
from stepladder.emulator.memory.shadow import GlobalShadow, SharedShadow

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.memory.memory import Access
    from stepladder.emulator.memory.sanitizer import Sanitizer
    from stepladder.emulator.memory.touches import Touch


def by_threads(sanitizer: Sanitizer, fiber: Fiber, op: Instruction, access: Access, *, reads: bool) -> None:
    """Checks atomic updates by threads, and records them.

    Args:
        sanitizer: of the group.
        fiber: the threads.
        op: the instruction.
        access: the elements.
        reads: whether an update reads what is there; else nothing needs to be.
    """
    touch = sanitizer.touch(fiber, access)
    if touch is None:
        return
    if reads:
        initialized.check_access(sanitizer, op, access)
    shadow = sanitizer.shadow_of(touch.memory)
    after_update = shadow.atomically[touch.places]
    _check(sanitizer, op, touch, shadow, after_update, reads=reads)
    sanitizer.note(op, touch, writes=True)
    shadow.note_kind(touch, updates=True)


def check(sanitizer: Sanitizer, op: Instruction, touch: Touch) -> None:
    """Adds findings about an update.

    Args:
        sanitizer: of the group.
        op: the instruction.
        touch: what is updated.
    """
    shadow = sanitizer.shadow_of(touch.memory)
    is_update = touch.of(shadow.atomically)
    if isinstance(shadow, SharedShadow):
        is_update = (touch.of(shadow.updating) > 0) | (is_update & (touch.of(shadow.busy_writing) < 0))
    _check(sanitizer, op, touch, shadow, is_update, reads=True)


def _check(
    sanitizer: Sanitizer,
    op: Instruction,
    touch: Touch,
    shadow: SharedShadow | GlobalShadow,
    is_update: np.ndarray,
    *,
    reads: bool,
) -> None:
    """Checks an update, given where another update was the last write."""
    other_touch, updated_touch = touch.where(~is_update), touch.where(is_update)
    if other_touch.places.size:
        if isinstance(shadow, SharedShadow) and reads:
            sanitizer.check_initialized(op, other_touch, shadow)
        sanitizer.check(op, other_touch, writes=True)
    if updated_touch.places.size:
        if isinstance(shadow, GlobalShadow):
            sanitizer.check_global(op, updated_touch, shadow.read, True, "read")
        else:
            sanitizer.check_readers(op, updated_touch, shadow)


def begin(op: Instruction, touch: Touch, shadow: SharedShadow) -> None:
    """Begins an update of shared memory: until `end`, only updates may access these bytes.

    Args:
        op: the instruction.
        touch: what is updated, each granule once.
        shadow: of the memory.
    """
    shadow.pages.begin_write(touch)
    touch.put(shadow.busy_writing, op.number)
    touch.put(shadow.updating, touch.of(shadow.updating) + 1)


def end(touch: Touch, shadow: SharedShadow) -> None:
    """Ends an update of shared memory.

    Args:
        touch: the object that was given to `begin`.
        shadow: of the memory.
    """
    updates_left = touch.of(shadow.updating) - 1
    touch.put(shadow.updating, updates_left)
    shadow.busy_writing[touch.places[updates_left == 0]] = -1
    if not updates_left.any():
        shadow.pages.end_write(touch)
