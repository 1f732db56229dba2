"""`--verify-diagnostics`: compares the error of a payload with its `expected-error` comments, as in mlir-opt."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stepladder.runtime.errors import FAILED, StepladderError

_ANNOTATION = re.compile(r"//\s*expected-(?:error|note|remark|warning)")
_EXPECTED = re.compile(r"//\s*expected-error\s*(?:@([+-]\d+|above|below|unknown))?\s*\{\{(.+)\}\}\s*$")
_OFFSETS = {None: 0, "above": -1, "below": 1}


@dataclass(frozen=True)
class Expected:
    """An `expected-error` comment: its own line, the line of the error (None for none in the input), and its text."""

    written: int
    line: int | None
    text: str


def expected_errors(text: str, name: str) -> list[Expected]:
    """Returns the errors that the comments of a payload expect.

    Args:
        text: the payload; its first line has the number 1.
        name: the file it came from, for messages.

    Raises:
        StepladderError: an annotation of another form, or of a note, a remark or a warning.
    """
    errors = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not _ANNOTATION.search(line):
            continue
        match = _EXPECTED.search(line)
        if match is None:
            raise StepladderError(
                f"'{line.strip()}' is not an annotation that --verify-diagnostics takes",
                location=f"{name}:{number}",
                notes=[
                    "accepted: // expected-error {{text}}, with @+N, @-N, @above, @below or @unknown before the text"
                ],
            )
        place, message = match.groups()
        at = None if place == "unknown" else number + (_OFFSETS[place] if place in _OFFSETS else int(place))
        errors.append(Expected(number, at, message))
    return errors


def mismatches(expected: list[Expected], error: StepladderError | None, name: str) -> list[StepladderError]:
    """Returns the differences between the expected errors and the actual one; none if they agree.

    Args:
        expected: what the comments of the payload say.
        error: what the run of the payload raised.
        name: the payload's file, for messages, and to tell its lines from those of scripts.
    """
    missing = list(expected)
    diagnostic = error
    if error is not None:
        line = _line(error, name)
        for candidate in missing:
            if candidate.line == line and candidate.text in error.message:
                missing.remove(candidate)
                diagnostic = None
                break
    errors = [
        StepladderError(
            f"expected error '{candidate.text}' "
            + (f"at line {candidate.line}" if candidate.line else "without a line of the input")
            + " was not produced",
            location=f"{name}:{candidate.written}",
            status=FAILED,
        )
        for candidate in missing
    ]
    if diagnostic is not None:
        errors.append(
            StepladderError(
                f"unexpected error: {diagnostic.message}",
                location=diagnostic.location,
                notes=diagnostic.notes,
                status=FAILED,
                traceback=diagnostic.traceback,
            )
        )
    return errors


def _line(error: StepladderError, name: str) -> int | None:
    place = (error.location or "").removeprefix(f"{name}:")
    line = place.partition(":")[0]
    return int(line) if place != error.location and line.isdigit() else None
