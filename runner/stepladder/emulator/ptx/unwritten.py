"""Reads of registers that nothing has written: findings where a thread executes them.

Such a register has all bits set here, which is NaN. These instructions are no such reads, because compilers move and
combine undefined values:

- a `mov`: its result is undefined like its source, and a pair of registers of which one is written counts as written
- a `cvt` that makes a pair of a written and an undefined register
- the store of a byte: nvcc copies the byte of an object without members
- a `prmt` of two registers, by which LLVM makes vectors with undefined elements; of two undefined registers, the result
  is undefined
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from stepladder.emulator.core.types import BOOL
from stepladder.emulator.ptx import whole_sums
from stepladder.emulator.ptx.guards import Guarded

if TYPE_CHECKING:
    from stepladder.emulator.core.control_flow import Graph
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.types import Type
    from stepladder.emulator.core.values import Value


_BYTES = (".b8", ".u8", ".s8")


class Unwritten(int):
    """The value of a register before it is written, which computes as any other value."""


def initial(type_: Type) -> Unwritten:
    """Returns what a register holds before it is written: all bits set.

    Args:
        type_: of the register.
    """
    return Unwritten(1 if type_ == BOOL else -1)


def watch(graph: Graph, code: Mapping[int, Sequence[Instruction]], names: Mapping[int, str]) -> None:
    """Lets the instructions that may read registers before they are written report where they do.

    A write under a guard may leave a register as it is, and a `mov` moves what is not written.

    Args:
        graph: the blocks by index; the first one is the entry.
        code: the instructions of each block that is reached; `execute` of some changes.
        names: of the registers, by slot.
    """
    begin = min(code)
    unwritten = dict.fromkeys(code, 0)
    unwritten[begin] = sum(1 << slot for slot in names)
    pending = [begin]
    while pending:
        number = pending.pop()
        after = unwritten[number]
        for op in code[number]:
            after = _after(op, after)
        for successor in graph.successors[number]:
            if successor in unwritten and after & ~unwritten[successor]:
                unwritten[successor] |= after
                pending.append(successor)
    for number, instructions in code.items():
        unwritten_slots = unwritten[number]
        for op in instructions:
            if not (_moves(op) or _stores_byte(op)):
                _watch(op, unwritten_slots, names)
            unwritten_slots = _after(op, unwritten_slots)


def _after(op: Instruction, unwritten: int) -> int:
    """Returns, as bits, the slots that may be unwritten after an instruction, of those before it."""
    if isinstance(op.execute, Guarded):
        return unwritten
    if _moves(op) and len(op.operands) == len(op.results) == 1:
        target = 1 << op.results[0]
        return unwritten | target if unwritten >> op.operands[0] & 1 else unwritten & ~target
    is_unwritten = _selects_bytes(op) and all(unwritten >> slot & 1 for slot in op.operands[:2])
    for slot in op.results:
        unwritten = unwritten | 1 << slot if is_unwritten else unwritten & ~(1 << slot)
    return unwritten


def _moves(op: Instruction) -> bool:
    return op.name.rpartition(" ")[2].startswith("mov.")


def _stores_byte(op: Instruction) -> bool:
    name = op.name.rpartition(" ")[2]
    return name.startswith("st.") and name.endswith(_BYTES)


def _makes_pair(op: Instruction) -> bool:
    return op.name.rpartition(" ")[2].startswith("cvt.") and len(op.operands) == 2


def _selects_bytes(op: Instruction) -> bool:
    return op.name.startswith("prmt.")


def _watch(op: Instruction, unwritten: int, names: Mapping[int, str]) -> None:
    """Lets an instruction report the registers among these that it reads."""
    places = {place: slot for place, slot in enumerate(op.operands) if unwritten >> slot & 1}
    if whole_sums.SUMS in op.attributes:
        # A product need not keep the sums that it is given.
        places = {place: slot for place, slot in places.items() if slot not in op.results}
    if not places or (_makes_pair(op) and len(places) == 1):
        return
    names_by_place = {place: names[slot] for place, slot in places.items()}
    if _selects_bytes(op):
        if {0, 1} <= places.keys():
            op.execute = _unwritten_of_two(op.execute)
        names_by_place = {place: name for place, name in names_by_place.items() if place > 1}
    if isinstance(op.execute, Guarded):
        first = 1 + op.execute.results
        inner = {place - first: name for place, name in names_by_place.items() if place >= first}
        op.execute.execute = _reporting(op.execute.execute, inner)
        names_by_place = {place: name for place, name in names_by_place.items() if place == 0}
    op.execute = _reporting(op.execute, names_by_place)


def _reporting(execute: Callable, names: Mapping[int, str]) -> Callable:
    """Returns what reports the operands that are not written, by position, before it executes."""
    if not names:
        return execute

    def run(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        unwritten_names = [name for place, name in names.items() if type(operands[place]) is Unwritten]
        if unwritten_names:
            text = f"reads {', '.join(dict.fromkeys(unwritten_names))}, which nothing has written"
            fiber.group.sanitizer.report("uninitialized", text, op)
        return execute(fiber, op, *operands)

    return run


def _unwritten_of_two(execute: Callable) -> Callable:
    """Returns what results in a value that is not written where the first two operands are such."""

    def run(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        is_unwritten = all(type(operand) is Unwritten for operand in operands[:2])
        return operands[0] if is_unwritten else execute(fiber, op, *operands)

    return run
