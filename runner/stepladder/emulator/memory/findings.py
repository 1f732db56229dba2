"""Findings: errors of a program that a run reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value


@dataclass
class Finding:
    """Something that a program does wrong.

    Attributes:
        kind: "race", "out-of-bounds", "misaligned", "uninitialized", "in-flight", "deadlock", "divergent-barrier",
            "assumption", "assertion", "use-after-free", "transaction-bytes", "descriptor", "proxy", "unwaited",
            "order", "mbarrier", "registers", "poison", "launch" or "layout".
        message: what happens, with threads and addresses.
        op, location: the op that does it.
        other, other_location: the op that it conflicts with, or empty.
        count: how often it was seen.
        notes: which buffers its bytes are of, and the iterations of loops.
    """

    kind: str
    message: str
    op: str = ""
    location: str = ""
    other: str = ""
    other_location: str = ""
    count: int = 1
    notes: list[str] = field(default_factory=list)

    def render(self) -> str:
        """Returns the finding in the format of a compiler's diagnostics."""
        prefix = f"{self.location}: " if self.location else ""
        place = f"{self.op}: " if self.op and self.op != self.kind else ""
        lines = [f"{prefix}{self.kind}: {place}{self.message}"]
        if self.other:
            lines.append(
                f"{self.other_location}: note: the other operation is {self.other}"
                if self.other_location
                else f"note: the other operation is {self.other}"
            )
        lines += [f"note: {note}" for note in self.notes]
        if self.count > 1:
            lines.append(f"note: seen {self.count} times")
        return "\n".join(lines)

    def as_dict(self) -> dict:
        """Returns the finding for JSON."""
        return {
            name: getattr(self, name)
            for name in ("kind", "message", "op", "location", "other", "other_location", "count", "notes")
        }


@dataclass
class Findings:
    """All findings of a run, each once; `limit` different ones are kept. `explain` makes their notes."""

    limit: int = 50
    by_key: dict[tuple, Finding] = field(default_factory=dict)
    left_out: int = 0
    explain: Callable[[str, Instruction | None], list[str]] | None = None

    def add(
        self,
        kind: str,
        message: str,
        op: Instruction | None = None,
        other: Instruction | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Adds a finding about an instruction, and the one that it conflicts with.

        Args:
            kind: of `Finding.kind`.
            message: what happens; the text of the first of its kind at an instruction is kept.
            op: the instruction, or None for what no instruction does.
            other: the one that it conflicts with.
            notes: that follow those of `explain`.
        """
        key = kind, op.number if op is not None else message, other.number if other is not None else -1
        if key in self.by_key:
            self.by_key[key].count += 1
        elif len(self.by_key) >= self.limit:
            self.left_out += 1
        else:
            self.by_key[key] = Finding(
                kind,
                message,
                op.name if op is not None else "",
                op.location if op is not None else "",
                other.name if other is not None else "",
                other.location if other is not None else "",
                notes=[*([] if self.explain is None else self.explain(message, op)), *notes],
            )

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.by_key.values())


class NoSanitizer:
    """A sanitizer that checks only bounds: accesses outside of memory are skipped."""

    enabled = False

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


def _nothing(*args: Value, **kwargs: Value) -> None:
    return None
