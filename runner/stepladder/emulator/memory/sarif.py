"""Findings in SARIF 2.1.0, the format in which CI systems take results of static analysis."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from stepladder import __version__
from stepladder.emulator.memory.findings import Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LOCATION = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<column>\d+))?")


def sarif_log(findings: Iterable[Finding], file: str) -> dict[str, Any]:
    """Returns a SARIF log with one result for each finding.

    Args:
        findings: of a run.
        file: of the IR, for findings without a location.
    """
    findings = list(findings)
    kinds = list(dict.fromkeys(finding.kind for finding in findings))
    driver = {"name": "stepladder emulate", "version": __version__, "rules": [{"id": kind} for kind in kinds]}
    results = [_result(finding, file, kinds.index(finding.kind)) for finding in findings]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(finding: Finding, file: str, rule: int) -> dict[str, Any]:
    op = f"{finding.op}: " if finding.op else ""
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": "; ".join([f"{op}{finding.message}", *finding.notes])},
        "locations": [_location(finding.location, file)],
        "occurrenceCount": finding.count,
    }
    if finding.other:
        other_location = _location(finding.other_location, file)
        result["relatedLocations"] = [
            {**other_location, "message": {"text": f"the other operation is {finding.other}"}}
        ]
    return result


def _location(text: str, file: str) -> dict[str, Any]:
    """Returns a location `file:line:column` as SARIF has it; only the file where the text is another."""
    match = _LOCATION.fullmatch(text)
    physical: dict[str, Any] = {"artifactLocation": {"uri": match["file"] if match else file}}
    if match:
        region = {"startLine": int(match["line"])}
        if match["column"]:
            region["startColumn"] = int(match["column"])
        physical["region"] = region
    return {"physicalLocation": physical}
