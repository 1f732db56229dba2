"""Fibers: sets of threads that execute in step, diverge and reconverge."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.program import Body, Instruction
from stepladder.runtime.errors import FAILED, StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.values import Value


class Unsupported(StepladderError):
    """A form of an op that the emulator does not support; the message has its location."""

    def __init__(self, op: Instruction, text: str) -> None:
        super().__init__(f"the emulator does not support {op.name} {text}", location=op.location)


class TooManySteps(StepladderError):
    """A program that exceeds its limit of steps.

    Args:
        text: how far it came.
        location: of the op that it came to.
    """

    def __init__(self, text: str, location: str) -> None:
        super().__init__(text, location=location, status=FAILED, notes=["--max-steps allows more"])


class Blocked(Exception):
    """The op cannot go on yet, and is executed again later.

    Args:
        reason: what it waits for, for the message about a deadlock.
        ready: bool array (T,) of lanes that could go on without the others, or None.
        pauses: whether it could go on, and lets others go first: that is no progress.
    """

    def __init__(self, reason: str, ready: np.ndarray | None = None, *, pauses: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.ready = ready
        self.pauses = pauses


class Left(Exception):
    """The fiber is not scheduled any more: it ended, split, or waits at a reconvergence point."""


class Stopped(Exception):
    """The program has ended before its end."""


class Convergence:
    """A reconvergence point of threads that diverged, after a branch or a loop.

    Attributes:
        place: number of the instruction that they reconverge at.
        expected, arrived: bool arrays (T,).
        parts: the lanes that arrived, with their values for `slots`.
    """

    __slots__ = ("arrived", "expected", "group", "last", "parts", "place", "slots")

    def __init__(self, group: Group, place: int, slots: Sequence[int], expected: np.ndarray) -> None:
        self.group = group
        self.place = place
        self.slots = slots
        self.expected = expected.copy()
        self.arrived = np.zeros_like(expected)
        self.parts: list[tuple[np.ndarray, list]] = []
        self.last: Fiber | None = None
        group.convergences.append(self)

    def arrive(self, fiber: Fiber, mask: np.ndarray, lane_values: list) -> None:
        """Lets lanes of a fiber arrive, with their values; continues with all lanes after the last arrival.

        Args:
            fiber: whose lanes arrive.
            mask: bool array (T,) of those lanes.
            lane_values: their values, one for each of `slots`.
        """
        self.arrived |= mask
        self.parts.append((mask, lane_values))
        self.last = fiber
        if (self.arrived == self.expected).all():
            self._go_on(self.expected)

    def is_in_front_of(self, names: Container[str]) -> bool:
        """Whether the op after it, where a thread has arrived, has one of some names.

        Args:
            names: of ops.
        """
        return self.last is not None and self.last.code[self.place + 1].name in names

    def release(self) -> bool:
        """Lets those warps go on of which all threads have arrived; returns whether there are any."""
        group = self.group
        missing = np.zeros(group.warps, bool)
        missing[group.warp_of_lane[self.expected & ~self.arrived]] = True
        ready = self.arrived & ~missing[group.warp_of_lane]
        if not ready.any():
            return False
        self._go_on(ready)
        return True

    def leave(self, mask: np.ndarray) -> None:
        """Expects lanes no more, which have ended; continues with the others if all of these have arrived.

        Args:
            mask: bool array (T,) of those lanes.
        """
        self.expected = self.expected & ~mask
        if not self.expected.any():
            self.group.convergences.remove(self)
        elif (self.arrived == self.expected).all():
            self._go_on(self.expected)

    def _go_on(self, mask: np.ndarray) -> None:
        group, last = self.group, self.last
        assert last is not None
        env = list(last.env)
        masks = [part & mask for part, _ in self.parts]
        part_numbers = [number for number, part in enumerate(masks) if part.any()]
        for number, slot in enumerate(self.slots):
            env[slot] = values.merge(
                [self.parts[part][1][number] for part in part_numbers],
                [masks[part] for part in part_numbers],
                group.count,
                group.rank_of(slot),
            )
        stack = last.stack[: last.stack.index(self)] if self in last.stack else list(last.stack)
        group.ready.append(Fiber(group, last.code, self.place + 1, env, mask, stack))
        self.parts = [(part & ~mask, lane_values) for part, lane_values in self.parts if (part & ~mask).any()]
        self.expected = self.expected & ~mask
        self.arrived = self.arrived & ~mask
        if not self.expected.any():
            group.convergences.remove(self)


class Fiber:
    """Threads of one group that run in step.

    Attributes:
        group: the blocks that they belong to.
        count: T, the number of lanes, active or not.
        mask: bool array (T,) of those that are active, or None for all.
        lanes: their indices.
        warps: the indices of their warps, each once.
        env: values by slot.
        stack: the reconvergence points ahead, the outermost first.
        pending: what the op that waits has done already; it is executed again.
        acts_for: the threads that an active lane represents: "" for the lane itself, "warp" for the threads of its warp
            together, "matrix" for them as they move a matrix, "others" for some threads that would do the same.
        warpgroups: those of the active lanes, where they are known (`asynchronous.warpgroups`).
    """

    __slots__ = (
        "acts_for",
        "blocked",
        "code",
        "count",
        "env",
        "group",
        "lanes",
        "mask",
        "pending",
        "place",
        "stack",
        "warpgroups",
        "warps",
    )

    def __init__(
        self,
        group: Group,
        code: list[Instruction],
        place: int,
        env: list,
        mask: np.ndarray | None,
        stack: list | None = None,
    ) -> None:
        self.group = group
        self.code = code
        self.place = place
        self.env = env
        self.stack = stack or []
        self.pending: list | None = None
        self.blocked: Blocked | None = None
        self.acts_for = ""
        self.count = group.count
        self.narrow(mask)

    def narrow(self, mask: np.ndarray | None) -> None:
        """Makes these lanes the active ones.

        Args:
            mask: bool array (T,), or None for all lanes.
        """
        group = self.group
        self.mask = None if mask is None or mask.all() else mask
        self.warpgroups: list | None = None
        if self.mask is None:
            self.lanes, self.warps = group.all_lanes, group.all_warps
            return
        (self.lanes,) = self.mask.nonzero()
        present = np.zeros(group.warps, bool)
        present[group.warp_of_lane[self.lanes]] = True
        (self.warps,) = present.nonzero()

    @property
    def active(self) -> np.ndarray:
        """The active lanes as a bool array (T,)."""
        return self.group.all_active if self.mask is None else self.mask

    @property
    def wait(self) -> Blocked:
        """The event that a blocked fiber waits for."""
        assert self.blocked is not None
        return self.blocked

    def split(self, mask: np.ndarray) -> Fiber:
        """Splits these lanes off.

        Args:
            mask: bool array (T,) of active lanes.

        Returns:
            The fiber of these lanes, at the same instruction and with a copy of the values.
        """
        other = Fiber(self.group, self.code, self.place, list(self.env), mask, list(self.stack))
        other.pending = self.pending
        self.narrow(self.active & ~mask)
        return other

    def representatives(self) -> Fiber:
        """Returns the same fiber with one thread a warp, for operations of a whole warp."""
        mask = np.zeros(self.count, bool)
        warp_numbers = self.group.warp_of_lane[self.lanes]
        is_first = np.ones(len(warp_numbers), bool)
        np.not_equal(warp_numbers[1:], warp_numbers[:-1], out=is_first[1:])  # the lanes are in the order of their warps
        mask[self.lanes[is_first]] = True
        fiber = Fiber(self.group, self.code, self.place, self.env, mask, self.stack)
        fiber.acts_for = "warp"
        return fiber

    def first(self, value: Value, rank: int = 0) -> Value:
        """Returns the first active lane's part of a value.

        Args:
            value: uniform, or with leading lanes.
            rank: dimensions of the value without lanes.
        """
        return value if values.is_uniform(value, rank) else value[self.lanes[0]]

    def agreed(self, value: Value) -> Value:
        """Returns a scalar as a uniform one if all active lanes have the same, else as it is.

        Args:
            value: a scalar, uniform or (T,).
        """
        if not isinstance(value, np.ndarray):
            return value
        own = value if self.mask is None else value[self.lanes]
        return value if np.count_nonzero(own != own[0]) else own[0].item()

    def evaluate(self, body: Body, arguments: Sequence) -> list:
        """Returns the values that a body without control flow yields, given its arguments.

        Args:
            body: a region, whose instructions may not wait or part threads.
            arguments: one for each of its arguments; arrays of any shapes that broadcast.

        Returns:
            One value for each that the body yields.
        """
        env = self.env
        for slot, value in zip(body.arguments, arguments):
            env[slot] = value
        for op in body.code:
            result = op.execute(self, op, *[env[slot] for slot in op.operands])
            if len(op.results) == 1:
                env[op.results[0]] = result
            elif op.results:
                for slot, value in zip(op.results, result):
                    env[slot] = value
        return [env[slot] for slot in body.yields]
