"""The slots that are live where the paths of a branch join: those whose values are merged there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from stepladder.emulator.core.program import Instruction

if TYPE_CHECKING:
    from stepladder.emulator.core.control_flow import Graph


class Liveness:
    """The slots that each block of a graph assigns, and those that are live at its beginning, as bits.

    Args:
        graph: the blocks by index.
        code: the instructions of each block, and of the end of the region.
        end: the number of the end.
        results: the slots that are read after the end.
    """

    def __init__(
        self, graph: Graph, code: Mapping[int, Sequence[Instruction]], end: int, results: Sequence[int]
    ) -> None:
        self.graph = graph
        used_slots: dict[int, int] = {}
        self.assigned: dict[int, int] = {}
        for number, instructions in code.items():
            used_slots[number], self.assigned[number] = data_flow(instructions)
        for slot in results:
            used_slots[end] |= 1 << slot
        self.live = dict.fromkeys(self.assigned, 0)
        is_changed = True
        while is_changed:
            is_changed = False
            for number in reversed(self.assigned):
                behind = 0
                for successor in graph.successors[number]:
                    behind |= self.live[successor]
                live_slots = used_slots[number] | behind & ~self.assigned[number]
                if live_slots != self.live[number]:
                    self.live[number], is_changed = live_slots, True

    def set_join(self, branch: Instruction, number: int, starts: Mapping[int, int]) -> None:
        """Sets where the paths of a branch join, and the slots that are merged there from each path.

        Args:
            branch: its attributes `join` and `slots` are set.
            number: of the block that it ends.
            starts: the position of the first instruction of each block.
        """
        after = self.graph.after[number]
        branch.attributes["join"] = None if after is None else starts[after]
        if after is not None:
            assigned_slots = 0
            for block in self.graph.between(number, after):
                assigned_slots |= self.assigned[block]
            branch.attributes["slots"] = tuple(bits_of(self.live[after] & assigned_slots))


def bits_of(bits: int) -> Iterator[int]:
    """Yields the positions of the bits that are set, the lowest first.

    Args:
        bits: an integer of any width, not negative.
    """
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def data_flow(code: Sequence[Instruction]) -> tuple[int, int]:
    """Returns, as bits, the slots that instructions use before they assign them, and those that they assign.

    Args:
        code: instructions in order.

    Returns:
        Two integers with one bit for each slot.
    """
    used_slots = assigned_slots = 0
    for op in code:
        for slot in op.operands:
            used_slots |= (1 << slot) & ~assigned_slots
        for body in op.regions:
            inner, own = data_flow(body.code)
            for slot in body.yields:
                inner |= (1 << slot) & ~own
            for slot in body.arguments:
                inner &= ~(1 << slot)
            used_slots |= inner & ~assigned_slots
        # A loop of another dialect assigns its results where threads leave it.
        for slot in (*op.results, *op.attributes.get("slots", ())):
            assigned_slots |= 1 << slot
    return used_slots, assigned_slots
