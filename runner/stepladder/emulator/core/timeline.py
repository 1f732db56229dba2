"""A timeline of a run in the format of Chrome's trace viewer: execution and waits of warps, asynchronous operations.

The unit of time is an instruction of the emulator, which executes fibers one after the other: a timeline shows the
order of events, what each warp waits for, and which asynchronous operations are in flight at the same time. It does not
show how long anything takes on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.program import Instruction

LIMIT = 1_000_000  # events; a trace viewer takes some hundred megabytes

# Rows of asynchronous operations are below the rows of warps.
_FLIGHT_ROWS = 1_000_000


@dataclass(frozen=True)
class _Flight:
    """An asynchronous operation in flight; `flight` is its key."""

    flight: object
    group: Group
    row: int
    since: int
    name: str
    details: dict[str, str]


class Timeline:
    """The events of a run.

    Attributes:
        now: instructions executed so far, of all fibers.
        left_out: events beyond LIMIT, which are not kept.
    """

    def __init__(self) -> None:
        self.now = 0
        self.left_out = 0
        self._events: list[dict[str, Any]] = []
        self._waits: dict[tuple[int, int], tuple[int, str, str]] = {}
        self._open: dict[int, _Flight] = {}
        self._groups: dict[int, Group] = {}
        self._flights: dict[int, list[str]] = {}

    def executed(
        self, fiber: Fiber, began: int, first: Instruction, last: Instruction, blocked_reason: str | None
    ) -> None:
        """Notes that a fiber has executed instructions from `began` to now.

        Args:
            fiber: whose warps did.
            began: the time of the first.
            first, last: the instructions.
            blocked_reason: what the last one waits for; None where the fiber ended or split.
        """
        group = fiber.group
        self._groups[group.number] = group
        ran = self.now - began
        for warp in fiber.warps:
            key = group.number, int(warp)
            waiting = self._waits.get(key)
            if waiting is not None and ran:
                since, op, reason = self._waits.pop(key)
                if since < began:
                    self._add(group, int(warp), since, began, f"wait: {op}", {"for": reason})
            if ran:
                self._add(group, int(warp), began, self.now, first.name, {"from": _at(first), "to": _at(last)})
            if blocked_reason is not None and key not in self._waits:
                self._waits[key] = self.now, f"{last.name} {_at(last)}", blocked_reason

    def begins(self, group: Group, row: str, op: Instruction, flight: object, description: str = "") -> None:
        """Notes that an asynchronous operation begins.

        Args:
            group: its blocks.
            row: what carries it out, for example `TMA`: operations in flight at the same time have a row each.
            op: that begins it.
            flight: its key; `ends` is called with the same one.
            description: what it does.
        """
        rows = self._flights.setdefault(group.number, [])
        busy = {flight.row for flight in self._open.values() if flight.group is group}
        number = next((n for n, name in enumerate(rows) if name == row and n not in busy), len(rows))
        if number == len(rows):
            rows.append(row)
        self._groups[group.number] = group
        self._open[id(flight)] = _Flight(
            flight, group, number, self.now, op.name, {"at": op.location, "what": description}
        )

    def ends(self, flight: object) -> None:
        """Notes that an asynchronous operation completes, at the wait for it.

        Args:
            flight: the object given to `begins`; one that has not begun is ignored.
        """
        operation = self._open.pop(id(flight), None)
        if operation is not None:
            self._add(
                operation.group,
                _FLIGHT_ROWS + operation.row,
                operation.since,
                self.now,
                operation.name,
                operation.details,
            )

    def _add(self, group: Group, row: int, since: int, until: int, name: str, details: dict[str, str]) -> None:
        if len(self._events) >= LIMIT:
            self.left_out += 1
            return
        event = {"name": name, "ph": "X", "pid": group.number, "tid": row, "ts": since, "dur": max(1, until - since)}
        self._events.append({**event, "args": details})

    def to_json(self) -> dict[str, Any]:
        """Returns the trace as JSON data, for chrome://tracing, Perfetto and others that read the format.

        Waits and operations that have not ended, as in a deadlock, last until the end of the run.
        """
        for flight in list(self._open.values()):
            self.ends(flight.flight)
        for (number, warp), (since, op, reason) in self._waits.items():
            self._add(self._groups[number], warp, since, self.now, f"wait: {op}", {"for": reason})
        self._waits.clear()
        names = [event for group in self._groups.values() for event in self._names(group)]
        return {
            "traceEvents": [*names, *self._events],
            "otherData": {"unit": "instructions of the emulator", "events left out": self.left_out},
        }

    def _names(self, group: Group) -> Iterable[dict[str, Any]]:
        yield {"name": "process_name", "ph": "M", "pid": group.number, "args": {"name": group.name}}
        rows = [(0, "the host")] if group.is_host else [(warp, group.warp_name(warp)) for warp in range(group.warps)]
        rows += [(_FLIGHT_ROWS + n, row) for n, row in enumerate(self._flights.get(group.number, []))]
        for number, name in rows:
            yield {"name": "thread_name", "ph": "M", "pid": group.number, "tid": number, "args": {"name": name}}
            yield {
                "name": "thread_sort_index",
                "ph": "M",
                "pid": group.number,
                "tid": number,
                "args": {"sort_index": number},
            }


def _at(op: Instruction) -> str:
    return f"{op.name} {op.location}"
