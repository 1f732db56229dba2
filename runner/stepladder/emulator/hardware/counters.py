"""Counts the memory traffic and the instructions of a kernel, as a profiler does.

For each op that accesses memory it counts the executions by a warp and the bytes that the threads request; for global
memory the sectors of 32 bytes that contain them; for shared memory the wavefronts, which are passes over the 32 banks
of 4 bytes. A warp's access of 4 bytes a thread takes one wavefront at best, of 8 bytes two (16 threads each), of 16
bytes four. Wavefronts beyond these are bank conflicts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.memory.sanitizer import WARP

if TYPE_CHECKING:
    from stepladder.emulator.memory.memory import Access

SECTOR = 32  # bytes
BANKS = 32
BANK = 4  # bytes
ROW_OF_BANKS = BANKS * BANK
_COSTS = 4096  # patterns whose costs are kept
ROW = 16  # bytes of a row of an 8 x 8 matrix of 16-bit elements, which one thread's address points to


def _runs(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the values of an array, each once, in order, and how often each is there.

    `np.unique` takes longer: keys of neighbouring threads are nearly in order, and its hash table does not profit.
    """
    keys = np.sort(keys, axis=None)
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[starts], np.diff(starts, append=keys.size)


@dataclass
class Traffic:
    """Cost of one op: executions by warps, bytes, sectors (global), wavefronts and those above the minimum
    (shared)."""

    op: str
    location: str
    space: str
    kind: str
    executions: int = 0
    bytes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    conflicts: int = 0

    def as_dict(self) -> dict:
        """Returns the counters for JSON."""
        return dict(vars(self))


@dataclass
class Counters:
    """All that was counted in a run.

    Attributes:
        traffic: by the index of the op, the memory and whether it loads or stores.
        instructions: of the matrix units, by op: executions by a warp.
        multiply_adds: multiplications and additions of the matrix units.
        barriers: executions by a warp, by op.
        blocks: blocks that ran, which the counts of a block (`per_block`) are averages over.
    """

    traffic: dict[tuple[int, str, str], Traffic] = field(default_factory=dict)
    instructions: dict[str, int] = field(default_factory=dict)
    multiply_adds: int = 0
    barriers: dict[str, int] = field(default_factory=dict)
    blocks: int = 0
    _costs: dict[tuple, tuple] = field(default_factory=dict)

    def access(self, fiber: Fiber, op: Instruction, access: Access, kind: str) -> None:
        """Counts an access of threads.

        Args:
            fiber: the threads.
            op: which the counters are for.
            access: what they touch.
            kind: "load" or "store".
        """
        memory = access.memory
        if fiber.group.is_host or memory.space == "private":
            return
        row = self._row(op, memory.space, kind)
        item = access.element.dtype.itemsize
        warps = fiber.group.warp_of_lane[fiber.lanes]
        row.executions += len(fiber.warps)
        if not access.per_lane:
            count = access.positions.size if access.valid is None else int(access.valid.sum())
            row.bytes += count * item * len(fiber.lanes)
            addresses = np.repeat(
                (access.positions if access.valid is None else access.positions[access.valid]).reshape(1, -1) * item,
                len(fiber.warps),
                axis=0,
            )
            if addresses.size:
                self._count(row, memory.space, fiber.warps, addresses, item)
            return
        addresses = access.positions.reshape(len(fiber.lanes), -1) * item
        if access.valid is not None:
            is_active = access.valid.reshape(len(fiber.lanes), -1)
            row.bytes += int(is_active.sum()) * item
            lanes = is_active.any(axis=1)
            addresses, warps = np.where(is_active, addresses, addresses[:, :1])[lanes], warps[lanes]
        else:
            row.bytes += addresses.size * item
        if addresses.size:
            self._count(row, memory.space, warps, addresses, item)

    def _count(self, row: Traffic, space: str, warps: np.ndarray, addresses: np.ndarray, item: int) -> None:
        """Counts sectors or wavefronts: `addresses` (threads, elements) of elements of `item` bytes."""
        # The cost of an access depends on its address only through the position in a row of banks.
        begin = int(addresses.min()) // ROW_OF_BANKS * ROW_OF_BANKS
        pattern = addresses - begin, warps - warps[0]
        key = space, item, addresses.shape, *(array.tobytes() for array in pattern)
        cost = self._costs.get(key)
        if cost is None:
            if len(self._costs) >= _COSTS:
                self._costs.clear()
            before = row.sectors, row.wavefronts, row.conflicts
            self._count_pattern(row, space, pattern[1], pattern[0], item)
            after = row.sectors, row.wavefronts, row.conflicts
            self._costs[key] = tuple(new - old for new, old in zip(after, before))
        else:
            row.sectors += cost[0]
            row.wavefronts += cost[1]
            row.conflicts += cost[2]

    def _count_pattern(self, row: Traffic, space: str, warps: np.ndarray, addresses: np.ndarray, item: int) -> None:
        if space == "global":
            sectors = addresses // SECTOR
            row.sectors += len(_runs(warps[:, None].astype(np.int64) << 44 | sectors)[0])
            return
        width = addresses.shape[1] * item
        # Threads whose accesses make one pass at best.
        together = max(1, WARP * BANK // max(width, BANK))
        first = np.r_[True, warps[1:] != warps[:-1]]
        place = np.arange(len(warps)) - np.maximum.accumulate(np.where(first, np.arange(len(warps)), 0))
        phases = warps.astype(np.int64) * WARP + place // together
        passes = max(1, width // (WARP * BANK)) if width > WARP * BANK else 1
        self._wavefronts(row, np.repeat(phases, addresses.shape[1]), addresses.reshape(-1), fewest=passes)

    def _wavefronts(self, row: Traffic, phases: np.ndarray, addresses: np.ndarray, fewest: int = 1) -> None:
        """Counts passes: in each phase, the most rows that one bank has to give."""
        words, _ = _runs(phases << 32 | addresses // BANK)
        phase, word = words >> 32, words & 0xFFFFFFFF
        banks, rows = _runs(phase * BANKS + word % BANKS)
        of_phase = banks // BANKS
        starts = np.flatnonzero(np.r_[True, of_phase[1:] != of_phase[:-1]])
        passes = np.maximum.reduceat(rows, starts)
        row.wavefronts += int(passes.sum())
        row.conflicts += int((passes - fewest).clip(min=0).sum())

    def matrix(self, fiber: Fiber, op: Instruction, access: Access, kind: str) -> None:
        """Counts an access of a warp to a whole matrix, in rows of 16 bytes, eight to a pass (as ldmatrix does it).

        How a warp's threads divide a matrix of WMMA among them is not specified; this is the fewest passes that rows
        of the matrix allow. `fiber` has one thread a warp.

        Args:
            fiber: one thread for each warp.
            op: the instruction.
            access: arrays of positions (rows, columns), with or without lanes.
            kind: "load" or "store".
        """
        memory = access.memory
        row = self._row(op, memory.space, kind)
        item = access.element.dtype.itemsize
        positions = (
            access.positions
            if access.per_lane
            else np.broadcast_to(access.positions, (len(fiber.lanes), *access.positions.shape))
        )
        row.executions += len(fiber.lanes)
        row.bytes += positions.size * item
        if memory.space == "global":
            warps = fiber.group.warp_of_lane[fiber.lanes]
            self._count(row, "global", warps, positions.reshape(len(warps), -1) * item, item)
            return
        # The dimension along which elements are neighbours makes the rows.
        if positions.shape[2] > 1 and positions[0, 0, 1] - positions[0, 0, 0] != 1:
            positions = np.swapaxes(positions, 1, 2)
        self.rows(row, positions * item, item)

    def rows(self, row: Traffic, addresses: np.ndarray, item: int) -> None:
        """Counts rows of 16 bytes, eight below each other to a pass: `addresses` (matrices, rows, columns).

        Args:
            row: which is counted in.
            addresses: of elements in shared memory, in bytes.
            item: bytes of an element.
        """
        count, height, width = addresses.shape
        per = max(1, ROW // item)
        starts = addresses[:, :, ::per]
        high = 8
        if height % high or width % per:
            high = 1
        # (matrix, group of eight rows, piece of a row) is a phase.
        groups = starts.reshape(count, height // high, high, -1)
        phases = np.arange(groups.size // high).reshape(count, height // high, 1, -1)
        words = groups[..., None] + np.arange(0, ROW, BANK)
        wide = np.broadcast_to(phases[..., None], words.shape)
        self._wavefronts(row, wide.reshape(-1).astype(np.int64), words.reshape(-1))

    def ldmatrix(self, op: Instruction, phases: np.ndarray, addresses: np.ndarray) -> None:
        """Counts a load of rows of 16 bytes, which takes one pass for each phase at best.

        Args:
            op: the instruction.
            phases: the phase of each row: int array (rows,).
            addresses: the byte where each row begins: int array (rows,).
        """
        row = self._row(op, "shared", "load")
        row.executions += 1
        row.bytes += addresses.size * ROW
        words = addresses[:, None] + np.arange(0, ROW, BANK)
        self._wavefronts(row, np.repeat(phases.astype(np.int64), ROW // BANK), words.reshape(-1))

    def bulk(self, op: Instruction, space: str, kind: str, size: int) -> None:
        """Counts bytes that a copy engine moves for one op.

        Args:
            op: which the counters are for.
            space: "global" or "shared".
            kind: "load" or "store".
            size: bytes.
        """
        row = self._row(op, space, kind)
        row.executions += 1
        row.bytes += size
        row.sectors += -(-size // SECTOR) if space == "global" else 0

    def products(self, fiber: Fiber, op: Instruction, multiply_adds: int, warps: int = 1) -> None:
        """Counts an instruction of the matrix units that all active warps execute.

        Args:
            fiber: the threads.
            op: which the counters are for.
            multiply_adds: multiplications, each with an addition, of one instruction.
            warps: warps that execute one instruction together: 1, or 4 for a warpgroup.
        """
        executions = len(fiber.warps) // warps
        self.instructions[op.name] = self.instructions.get(op.name, 0) + executions
        self.multiply_adds += multiply_adds * executions

    def barrier(self, fiber: Fiber, op: Instruction) -> None:
        """Counts a barrier, once for each warp.

        Args:
            fiber: the threads that execute it.
            op: the instruction.
        """
        self.barriers[op.name] = self.barriers.get(op.name, 0) + len(fiber.warps)

    def add(self, other: Counters) -> None:
        """Adds the counts of another run, except the number of blocks.

        Args:
            other: of the same program.
        """
        for key, row in other.traffic.items():
            if key in self.traffic:
                own_row = self.traffic[key]
                for name in ("executions", "bytes", "sectors", "wavefronts", "conflicts"):
                    setattr(own_row, name, getattr(own_row, name) + getattr(row, name))
            else:
                self.traffic[key] = row
        for own, others in ((self.instructions, other.instructions), (self.barriers, other.barriers)):
            for name, count in others.items():
                own[name] = own.get(name, 0) + count
        self.multiply_adds += other.multiply_adds

    def forget(self) -> None:
        """Forgets the costs of access patterns."""
        self._costs.clear()

    def _row(self, op: Instruction, space: str, kind: str) -> Traffic:
        key = op.number, space, kind
        if key not in self.traffic:
            self.traffic[key] = Traffic(op.name, op.location, space, kind)
        return self.traffic[key]

    def total(self, name: str, space: str | None = None) -> int:
        """Returns the sum of a field of `Traffic` over ops.

        Args:
            name: of the field.
            space: the memory whose accesses are added; None adds all.
        """
        return sum(getattr(row, name) for row in self.traffic.values() if space in (None, row.space))

    def as_dict(self) -> dict:
        """Returns everything for JSON."""
        of_global = {name: self.total(name, "global") for name in ("bytes", "sectors")}
        of_shared = {name: self.total(name, "shared") for name in ("bytes", "wavefronts", "conflicts")}
        blocks = max(self.blocks, 1)
        return {
            "blocks": self.blocks,
            "global": of_global,
            "shared": of_shared,
            "per_block": {
                "global": {name: number / blocks for name, number in of_global.items()},
                "shared": {name: number / blocks for name, number in of_shared.items()},
                "multiply_adds": self.multiply_adds / blocks,
            },
            "instructions": self.instructions,
            "multiply_adds": self.multiply_adds,
            "barriers": self.barriers,
            "accesses": [row.as_dict() for row in self.traffic.values()],
        }
