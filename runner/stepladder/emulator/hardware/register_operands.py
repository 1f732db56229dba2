"""Registers that hold A of wgmma: writes of them between products, in kernels in PTX.

A product reads its registers until the wait for its group, and reads what was written to them before the last
`wgmma.fence`. Source: PTX ISA, "wgmma.fence" and "wgmma.wait_group".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.hardware import asynchronous
from stepladder.emulator.hardware.fragments import WARPGROUP

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value

SLOTS = "registers of A"  # attribute of a product with A in registers: their slots
_MOVE = "mov."  # renames a register, as ptxas removes it


def watch(code: Sequence[Instruction]) -> None:
    """Lets the instructions that write registers of A of some product check each write.

    Args:
        code: the instructions of a kernel; `execute` of those changes.
    """
    watched = {slot for op in code for slot in op.attributes.get(SLOTS, ())}
    for op in code if watched else ():
        written = frozenset(watched.intersection(op.results))
        if written and not op.name.startswith(_MOVE):
            op.execute = _watched(op.execute, written)


def _watched(execute: Callable, written: frozenset[int]) -> Callable:
    def checked(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        _note(fiber, op, written)
        return execute(fiber, op, *operands)

    return checked


def _note(fiber: Fiber, op: Instruction, written: frozenset[int]) -> None:
    """Reports a write to registers of a product in flight; the write is behind the last fence."""
    known = asynchronous.known_warpgroups(fiber.group)
    if not known:
        return
    for number in np.unique(fiber.lanes // WARPGROUP).tolist():
        if number not in known:
            continue
        warpgroup = known[number]
        warpgroup.unfenced |= written
        for product in warpgroup.products():
            if not written.isdisjoint(product.op.attributes.get(SLOTS, ())):
                fiber.group.sanitizer.report(
                    "in-flight",
                    "writes a register that holds A of a product in flight: nothing has waited for it",
                    op,
                    product.op,
                )
