"""nvvm.inline_ptx: PTX in text, of the forms that steps write."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Blocked, Fiber
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import lowers
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects import nvgpu_tma
from stepladder.emulator.dialects.nvgpu import of_lane
from stepladder.emulator.dialects.nvvm import (
    arrive_in_cluster,
    fence_async,
    map_address,
    mbarrier_try_wait_parity,
)
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.hardware.tma import Descriptor

_INT = Scalar("i32", np.dtype(np.int32), 32)


def _add_box(fiber: Fiber, op: Instruction, descriptor: Descriptor, *operands: Value) -> None:
    """Lets each thread begin to add a box to a tensor."""
    *coordinates, address = operands
    nvgpu_tma.store_boxes(fiber, op, descriptor, coordinates, address, add=True)


def _number_at(fiber: Fiber, op: Instruction, address: int) -> tuple[np.ndarray, int] | None:
    """Returns global memory as 32-bit integers, and which of them an address is; None and a finding for none."""
    allocation = fiber.group.machine.heap.find(address)
    if allocation is None or address % _INT.bytes or address + _INT.bytes > allocation.address + allocation.size:
        fiber.group.sanitizer.report("out-of-bounds", f"there is no number in global memory at {address:#x}", op)
        return None
    return allocation.typed(_INT.dtype), (address - allocation.address) // _INT.bytes


def _acquire(
    fiber: Fiber,
    op: Instruction,
    address: Value,
    is_there: Callable[[int | np.integer, int], bool],
    wanted: Callable[[int | np.integer], str],
) -> None:
    """Waits until a number at an address is as it should be, and knows then what those knew who wrote it.

    Args:
        is_there: tells from a lane and the number that stands there whether its wait is over.
        wanted: says what a lane waits for.
    """
    ready = np.zeros(fiber.count, bool)
    missing = ""
    for lane in fiber.lanes:
        place = of_lane(address, lane)
        found = _number_at(fiber, op, place)
        number = 0 if found is None else int(found[0][found[1]])
        ready[lane] = found is None or is_there(lane, number)
        if not ready[lane]:
            missing = f"the number at {place:#x} to be {wanted(lane)}, where {number} stands"
    if not ready[fiber.lanes].all():
        raise Blocked(missing, ready if ready.any() else None)
    group = fiber.group
    for lane in fiber.lanes:
        warp = group.warp_of_lane[lane]
        for known in group.machine.published.get(of_lane(address, lane), ()):
            group.sanitizer.acquire([warp], known.get(group.number))
            group.sanitizer.learn(warp, {owner: clocks for owner, clocks in known.items() if owner != group.number})


def _publish(fiber: Fiber, lane: int | np.integer, address: int) -> None:
    """Notes, besides what is noted at an address, what a lane knows that releases a number there."""
    group = fiber.group
    if group.sanitizer.enabled:
        clocks = group.sanitizer.release([group.warp_of_lane[lane]])
        group.machine.published.setdefault(address, []).append(group.sanitizer.known | {group.number: clocks})


def _acquire_number(fiber: Fiber, op: Instruction, address: Value, number: Value) -> None:
    """Waits until another number stands at an address."""
    _acquire(
        fiber, op, address, lambda lane, now: now == of_lane(number, lane), lambda lane: f"{of_lane(number, lane)}"
    )


def _acquire_half(fiber: Fiber, op: Instruction, address: Value, before: Value, half: Value) -> None:
    """Waits until a number at an address is in the other half than it was before: below `half`, or not."""

    def was_below(lane: int | np.integer) -> bool:
        return of_lane(before, lane) < of_lane(half, lane)

    _acquire(
        fiber,
        op,
        address,
        lambda lane, now: (now < of_lane(half, lane)) != was_below(lane),
        lambda lane: f"{of_lane(half, lane)} or more" if was_below(lane) else f"less than {of_lane(half, lane)}",
    )


def _release_number(fiber: Fiber, op: Instruction, address: Value, number: Value) -> None:
    """Writes a number, for those who acquire it to know what the writer knows."""
    for lane in fiber.lanes:
        place = of_lane(address, lane)
        found = _number_at(fiber, op, place)
        if found is None:
            continue
        numbers, index = found
        numbers[index] = of_lane(number, lane)
        fiber.group.machine.published.pop(place, None)
        _publish(fiber, lane, place)


def _count_up(fiber: Fiber, op: Instruction, address: Value, last: Value) -> Value:
    """Adds one to a number, or begins again behind the last; who acquires it knows what all knew who did so. Returns
    what it was."""
    before = np.zeros(fiber.count, op.result_types[0].dtype)
    for lane in fiber.lanes:
        place = of_lane(address, lane)
        found = _number_at(fiber, op, place)
        if found is None:
            continue
        numbers, index = found
        before[lane] = numbers[index]
        numbers[index] = 0 if numbers[index] >= of_lane(last, lane) else numbers[index] + 1
        _publish(fiber, lane, place)
    return before


# Texts, with what stands for operands left as it is, and what they do.
_TEXTS = [
    (re.compile(pattern), function)
    for pattern, function in (
        (r"mapa\.shared::cluster\.u32 \{\$w0\}, \{\$r0\}, \{\$r1\};", map_address),
        (r"mbarrier\.arrive\.shared::cluster\.b64 _, \[\{\$r0\}\];", arrive_in_cluster),
        (r"fence\.proxy\.async;", fence_async),
        (
            (
                r"cp\.reduce\.async\.bulk\.tensor\.\dd\.global\.shared::cta\.add\.tile\.bulk_group "
                r"\[\{\$r0\}, \{\{\$r1\}(, \{\$r\d\})*\}\], \[\{\$r\d\}\];"
            ),
            _add_box,
        ),
        (
            (
                r"\{\.reg \.pred p; \.reg \.b32 now; WAIT: ld\.acquire\.gpu\.global\.b32 now, \[\{\$r0\}\]; "
                r"setp\.ne\.b32 p, now, \{\$r1\}; @p bra WAIT;\}"
            ),
            _acquire_number,
        ),
        (r"st\.release\.gpu\.global\.b32 \[\{\$r0\}\], \{\$r1\};", _release_number),
        (r"atom\.release\.gpu\.global\.inc\.u32 \{\$w0\}, \[\{\$r0\}\], \{\$r1\};", _count_up),
        (
            (
                r"\{\.reg \.pred p, q; \.reg \.b32 now; setp\.ge\.u32 q, \{\$r1\}, \{\$r2\}; WAIT: "
                r"ld\.acquire\.gpu\.global\.b32 now, \[\{\$r0\}\]; setp\.ge\.xor\.u32 p, now, \{\$r2\}, q; "
                r"@!p bra WAIT;\}"
            ),
            _acquire_half,
        ),
        # The loop that MLIR makes of nvvm.mbarrier.try_wait.parity.
        (
            (
                r"\{ \.reg \.pred P1; LAB_WAIT: mbarrier\.try_wait\.parity\.shared\.b64 P1, "
                r"\[\{\$r0\}\], \{\$r1\}, \{\$r2\}; "
                r"@P1 bra\.uni DONE; bra\.uni LAB_WAIT; DONE: \}"
            ),
            mbarrier_try_wait_parity,
        ),
    )
]


def run_text(text: str) -> Value:
    """Returns what runs PTX, with {$r0}, {$r1}, ... for what is read and {$w0}, ... for what is written; or None."""
    text = " ".join(text.split())
    return next((function for pattern, function in _TEXTS if pattern.fullmatch(text)), None)


@lowers("nvvm.inline_ptx")
def lower_inline_ptx(builder: Builder, op: ir.Operation) -> None:
    """PTX in text, of the forms that steps write."""
    attributes = decode_attributes(op)
    run = run_text(attributes["ptxCode"])
    if run is None or any(attributes["operandSegmentSizes"][1:]):
        raise StepladderError(
            f"the emulator does not know the PTX of {op.name}: {attributes['ptxCode']}", location=builder.location
        )
    builder.emit(op.name, run, builder.used(op.operands), builder.defined(op.results), attributes)
