"""Findings of the sanitizer: their messages, and the ops that they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory import exchanged, lone_arrivals
from stepladder.emulator.memory.clocks import Clocks
from stepladder.emulator.memory.findings import Findings
from stepladder.emulator.memory.touches import Touch

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.granularity import Granularity
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import MemRef, Value
    from stepladder.emulator.memory.memory import Allocation


class Reports(Clocks):
    """Adds findings about one group of blocks.

    Attributes:
        findings: where they go, shared by all groups of a run.
        instructions: of the program, by index.
        granularity: of what is looked at as one.
    """

    def __init__(self, findings: Findings, instructions: Sequence[Instruction], *, granularity: Granularity) -> None:
        super().__init__()
        self.findings = findings
        self.instructions = instructions
        self.granularity = granularity

    def granule_of(self, memory: Allocation) -> int:
        """Returns the bytes of an allocation that the sanitizer treats as one unit.

        Args:
            memory: the allocation.
        """
        return self.granularity.shared if memory.space == "shared" else self.granularity.elsewhere

    def out_of_bounds(
        self, fiber: Fiber, op: Instruction, view: MemRef, coordinates: Sequence[Value], wrong: np.ndarray, rank: int
    ) -> None:
        """Adds the finding that lanes access elements outside of a view.

        Args:
            fiber: the threads of the access.
            op: the instruction.
            view: of memory.
            coordinates: of the elements, with or without lanes.
            wrong: bool array of the elements outside, with the active lanes leading or without lanes.
            rank: dimensions of what one lane accesses.
        """
        first = tuple(np.argwhere(wrong)[0])
        lane = fiber.lanes[first[0]] if wrong.ndim > rank and wrong.shape[0] == len(fiber.lanes) else fiber.lanes[0]
        place = []
        for coordinate in coordinates:
            if isinstance(coordinate, np.ndarray):
                full = np.broadcast_to(
                    coordinate,
                    np.broadcast_shapes(
                        coordinate.shape, (1,) * (coordinate.ndim - rank) + wrong.shape[wrong.ndim - rank :]
                    ),
                )
                coordinate = (
                    full[(lane, *first[wrong.ndim - rank :])]
                    if full.ndim > rank and full.shape[0] > 1
                    else full[(0,) * (full.ndim - rank) + first[wrong.ndim - rank :]]
                )
            place.append(int(coordinate))
        sizes = [int(np.ravel(size)[0]) for size in view.sizes]
        self.add(
            "out-of-bounds",
            f"{fiber.group.thread_name(int(lane))} touches element {place} of "
            f"{'x'.join(map(str, sizes))}x{view.element.name}"
            f"{f' ({view.memory.name})' if view.memory.name else ''}",
            op,
        )

    def misaligned(self, fiber: Fiber, op: Instruction, address: int, alignment: int) -> None:
        """Adds the finding that an address is not a multiple of what the access requires.

        Args:
            fiber: the threads of the access.
            op: the instruction.
            address: in bytes.
            alignment: bytes.
        """
        self.add(
            "misaligned",
            f"{fiber.group.thread_name(fiber.lanes[0])}: address {address:#x} is not a multiple of {alignment} bytes",
            op,
        )

    def report(self, kind: str, message: str, op: Instruction | None, other: Instruction | None = None) -> None:
        """Adds a finding of a given kind.

        Args:
            kind: of the finding.
            message: without the location.
            op: the instruction that it is about, if there is one.
            other: the instruction that it conflicts with, if there is one.
        """
        self.findings.add(kind, message, op, other)

    def add(self, kind: str, message: str, op: Instruction, other: int = -1) -> None:
        """Adds a finding about an instruction.

        Args:
            kind: of the finding.
            message: without the location.
            op: the instruction.
            other: the number of the instruction that it conflicts with; -1 for none.
        """
        conflicting = self.instructions[other] if other >= 0 else None
        self.findings.add(kind, message, op, conflicting, exchanged.notes(op, conflicting) if kind == "race" else ())

    def race(self, op: Instruction, touch: Touch, first: int, verb: str, did: str, actor: int, by: int) -> None:
        """Adds the finding that nothing orders two accesses.

        Args:
            op: the instruction of the later access.
            touch: its pairs of an actor and a granule.
            first: the index of the pair.
            verb: what the later access does: "reads" or "writes".
            did: what the earlier access did: "read" or "wrote".
            actor: of the earlier access.
            by: the number of its instruction.
        """
        self.add(
            "race",
            f"{self.actor_name(touch.actor(first))} {verb} {self.where(touch.memory, touch.places[first])}, which "
            f"{self.actor_name(actor)} {did}, without synchronization between them"
            + lone_arrivals.explained(self, touch.actor(first), actor),
            op,
            by,
        )

    def actor_name(self, actor: int) -> str:
        """Returns the name of an actor: a warp or an asynchronous copy.

        Args:
            actor: its index.
        """
        return self.group.warp_name(actor) if actor < self.group.warps else "an asynchronous copy"

    def where(self, memory: Allocation, place: int | np.integer) -> str:
        """Returns the text that describes the address of a granule.

        Args:
            memory: the allocation.
            place: the number of the granule in it.
        """
        offset = int(place) * self.granule_of(memory)
        if memory.space == "shared":
            block, offset = divmod(offset, memory.size)
            rank = f" of the cluster's block {block}" if memory.copies > 1 else ""
            return f"byte {offset:#x} of shared memory{rank}"
        return f"byte {offset:#x} of {memory.name or 'global memory'}"
