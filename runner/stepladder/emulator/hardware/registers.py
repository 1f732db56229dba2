"""Registers of the warpgroups of a block (setmaxnreg).

A block has the registers that its threads were launched with. `setmaxnreg.inc` blocks until enough of them are released
by `setmaxnreg.dec`. Source: PTX ISA, "setmaxnreg".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Blocked
from stepladder.emulator.core.groups import LAUNCHED
from stepladder.emulator.hardware import asynchronous
from stepladder.emulator.hardware.fragments import WARPGROUP
from stepladder.runtime.targets import REGISTER_UNIT, registers_of_thread

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.program import Instruction

KIND = "registers"
COUNTS = range(24, 257, REGISTER_UNIT)  # of a thread, that setmaxnreg takes


def at_launch(threads: int, *, limit: int | None = None, blocks: int | None = None) -> int:
    """Returns the most registers that a thread of a block may be launched with.

    Args:
        threads: of the block.
        limit: that the kernel states for a thread (`maxnreg`).
        blocks: that the kernel states for a multiprocessor (`minnctapersm`, `minctasm`).
    """
    registers_that_fit = registers_of_thread(threads * (blocks or 1))
    return -(-min(registers_that_fit, limit or registers_that_fit) // REGISTER_UNIT) * REGISTER_UNIT


def of_kernel(threads: int, attributes: Mapping[str, object]) -> dict[str, int]:
    """Returns the entries that a launch adds to `Group.layout`.

    Args:
        threads: of a block.
        attributes: of a kernel of the LLVM dialect, by name; `nvvm.maxnreg` and `nvvm.minctasm` are read.
    """
    limit, blocks = (attributes.get(f"nvvm.{name}") for name in ("maxnreg", "minctasm"))
    return {
        LAUNCHED: at_launch(
            threads,
            limit=limit if isinstance(limit, int) else None,
            blocks=blocks if isinstance(blocks, int) else None,
        )
    }


def change(fiber: Fiber, op: Instruction, count: int, *, grows: bool) -> None:
    """Sets the registers of a thread of each active warpgroup to `count`.

    Args:
        fiber: whose active threads reach the op.
        op: for findings.
        count: of a thread, afterwards.
        grows: whether the op is `setmaxnreg.inc`; else it is `setmaxnreg.dec`.

    Raises:
        Blocked: a warpgroup requests more registers than the block has left.
    """
    group = fiber.group
    if count not in COUNTS:
        group.sanitizer.report(
            KIND,
            f"{count} registers per thread: setmaxnreg takes multiples of {COUNTS.step} from {COUNTS.start} to "
            f"{COUNTS[-1]}",
            op,
        )
        return
    late = []
    ready = np.zeros(fiber.count, bool)
    for warpgroup in asynchronous.warpgroups(fiber, op):
        registers = _held(group, warpgroup.block)
        number = warpgroup.lanes.start
        registers.setdefault(number, _launched(group))
        changed_warps = group.state.setdefault((KIND, "changed"), set())
        # How many a thread begins with, up to what fits, is ptxas's choice.
        if number in changed_warps and (registers[number] > count if grows else registers[number] < count):
            group.sanitizer.report(
                KIND,
                f"{'requests' if grows else 'keeps'} {count} registers per thread, and each has {registers[number]}",
                op,
            )
        has, others = (_launched(group) * len(registers), sum(registers.values()) - registers[number])
        if others + count > has and count > registers[number]:
            late.append(
                f"{count} registers per thread, {count * WARPGROUP} in all: the block has {has * WARPGROUP}, and its "
                f"other warpgroups hold {others * WARPGROUP} of them"
            )
        else:
            registers[number] = count
            changed_warps.add(number)
            ready[warpgroup.lanes] = True
    if late:
        _explain(group, op, late[0])
        raise Blocked(late[0], ready if ready.any() else None)


def _launched(group: Group) -> int:
    return group.layout.get(LAUNCHED, at_launch(group.threads))


def _held(group: Group, block: int) -> dict[int, int]:
    """Returns the registers that a thread of each warpgroup of a block has, by the warpgroup's first lane."""
    key = KIND, block
    if key not in group.state:
        first = block * group.threads
        group.state[key] = dict.fromkeys(range(first, first + group.threads, WARPGROUP), _launched(group))
    return group.state[key]


def _explain(group: Group, op: Instruction, text: str) -> None:
    """Describes the warps that wait for registers, for the message about a deadlock."""
    waits = group.state.setdefault((KIND, "waits"), {})
    if op.number not in waits:
        group.on_deadlock.append(lambda: _report(group, op, waits))
    waits[op.number] = text


def _report(group: Group, op: Instruction, waits: dict[int, str]) -> None:
    if any(fiber.code[fiber.place] is op for fiber in group.blocked):
        group.sanitizer.report(
            KIND, f"no setmaxnreg.dec releases the registers that it requests: {waits[op.number]}", op
        )
