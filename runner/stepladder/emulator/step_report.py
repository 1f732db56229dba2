"""Reports of steps whose IR was executed."""

from __future__ import annotations

import dataclasses

from stepladder.emulator.hardware.counters import Counters
from stepladder.emulator.memory.findings import Finding
from stepladder.verify.report import CheckReport

_SHOWN = 4  # findings in a message


@dataclasses.dataclass
class StepReport:
    """A step's IR as it ran.

    Attributes:
        step: its name.
        passed: whether all results are right and nothing was found; None where the IR is below what can be run.
        check: of the results; `findings`: what the sanitizer found; `counters`: what it cost, where
            that was counted.
        unknown: why it cannot be run.
        is_unchanged: whether the step left the IR as it was.
    """

    step: str
    passed: bool | None
    check: CheckReport | None = None
    findings: list[Finding] = dataclasses.field(default_factory=list)
    counters: Counters | None = None
    unknown: str = ""
    seconds: float = 0.0
    is_unchanged: bool = False

    def notes(self) -> list[str]:
        """Returns the first findings as notes of a message, and how many more there are."""
        more = len(self.findings) - _SHOWN
        findings = [finding.render() for finding in self.findings[:_SHOWN]]
        return [*findings, f"{more} more findings"] if more > 0 else findings
