"""What the supported GPUs allow a kernel, by target name.

Source: the CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.runtime.errors import StepladderError, suggest

REGISTER_FILE = 64 * 1024  # registers a block


@dataclass(frozen=True)
class Target:
    """A GPU target: `shared_memory` is the most bytes a block may have, after opting in to dynamic ones."""

    name: str
    shared_memory: int

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Returns (major, minor)."""
        digits = self.name.removeprefix("sm_").rstrip("a")
        return int(digits[:-1]), int(digits[-1])


TARGETS = {
    target.name: target
    for target in (
        Target("sm_75", 64 * 1024),
        Target("sm_80", 163 * 1024),
        Target("sm_86", 99 * 1024),
        Target("sm_89", 99 * 1024),
        Target("sm_90", 227 * 1024),
        Target("sm_90a", 227 * 1024),
    )
}


def find(name: str) -> Target:
    """Returns the target called `name`, or raises an error that lists those there are."""
    if name in TARGETS:
        return TARGETS[name]
    digits = name.removeprefix("sm_")
    if digits.isdigit() and int(digits) < 75:
        reason = "has no tensor cores" if int(digits) < 70 else "is one that ptxas 13 no longer assembles for"
        raise StepladderError(f"target '{name}' {reason}", notes=[f"targets: {', '.join(TARGETS)}"])
    raise StepladderError(
        f"unknown target '{name}'{suggest(name, list(TARGETS))}", notes=[f"targets: {', '.join(TARGETS)}"]
    )
