"""Registers that hold A of wgmma: writes of them between products.

A product reads its registers until the wait for its group, and reads what was written to them before the last
`wgmma.fence`. Source: PTX ISA, "wgmma.fence" and "wgmma.wait_group".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.hardware import asynchronous
from stepladder.emulator.hardware.fragments import WARPGROUP

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value

SLOTS = "registers of A"  # attribute of a product with A in registers: their slots
# Ops that rename registers: ptxas removes moves, and casts of the same bits become none. Inline PTX has an op of its
# own name before it and after it, which moves values to its registers and back.
_RENAMES = ("llvm.bitcast", "llvm.inline_asm", "nvvm.inline_ptx", "builtin.unrealized_conversion_cast")
_MOVE = "mov."


def watch(code: Sequence[Instruction]) -> None:
    """Lets the instructions that write registers of A of some product check each write.

    Args:
        code: the instructions of a kernel or of a module; `execute` of those changes, and SLOTS of products.
    """
    products = [op for op in code if SLOTS in op.attributes]
    if not products:
        return
    origins = _origins(code)
    for op in products:
        op.attributes[SLOTS] = _known_as(op.attributes[SLOTS], origins)
    watched_slots = frozenset().union(*(op.attributes[SLOTS] for op in products))
    for op in code:
        written_slots = watched_slots.intersection(op.results)
        if written_slots and not _renames(op):
            op.execute = _watched(op.execute, written_slots)


def _renames(op: Instruction) -> bool:
    return op.name in _RENAMES or op.name.startswith(_MOVE)


def _origins(code: Sequence[Instruction]) -> dict[int, set[int]]:
    """Returns the slots that ops which rename registers read, by the slot that they write."""
    origins: dict[int, set[int]] = {}
    for op in code:
        if not _renames(op):
            continue
        is_each = len(op.operands) == len(op.results)
        for number, slot in enumerate(op.results):
            origins.setdefault(slot, set()).update(op.operands[number : number + 1] if is_each else op.operands)
    return origins


def _known_as(slots: Iterable[int], origins: Mapping[int, set[int]]) -> frozenset[int]:
    """Returns registers with all that they are renamed from."""
    registers, new = set(slots), set(slots)
    while new:
        new = set().union(*(origins.get(slot, ()) for slot in new)) - registers
        registers |= new
    return frozenset(registers)


def _watched(execute: Callable, slots: frozenset[int]) -> Callable:
    def checked(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        _note(fiber, op, slots)
        return execute(fiber, op, *operands)

    return checked


def _note(fiber: Fiber, op: Instruction, slots: frozenset[int]) -> None:
    """Reports a write to registers of a product in flight; the write is after the last fence."""
    known_warpgroups = asynchronous.known_warpgroups(fiber.group)
    if not known_warpgroups:
        return
    for number in np.bincount(fiber.lanes // WARPGROUP).nonzero()[0].tolist():
        if number not in known_warpgroups:
            continue
        warpgroup = known_warpgroups[number]
        warpgroup.unfenced |= slots
        for product in warpgroup.products():
            if not slots.isdisjoint(product.op.attributes.get(SLOTS, ())):
                fiber.group.sanitizer.report(
                    "in-flight",
                    "writes an A register of a product in flight: no wait for its group",
                    op,
                    product.op,
                )
