"""MLIR diagnostics, reduced to one location, one message and a few notes.

MLIR reports through handlers on the context and through `MLIRError`. Some diagnostics have a whole op, thousands of
lines long, as their text.
"""

from __future__ import annotations

import contextlib
import contextvars
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stepladder.mlir.bindings import ir

_MAX_NOTES = 3
_MAX_TEXT = 300
# The note that prints the op, which the location names.
_WHOLE_OP = "see current operation"
# Options of other tools, which end messages about ops and attributes of unknown dialects.
_OTHER_TOOLS = re.compile(r"\. If this is intended, please .*")
_CALL_SITE = re.compile(r'(?:"([^"]*)"\()?"([^"]*)":(\d+):\d+')
_FILE_LOCATION = re.compile(r'"([^"]+)":(\d+):(\d+)')


# A payload is parsed from text, whose locations MLIR calls "-".
_payload_name: contextvars.ContextVar[str] = contextvars.ContextVar("payload_name", default="<stdin>")


def name_payload(name: str) -> None:
    """Sets the file that locations in the payload are of, from here on.

    Args:
        name: of the file, as messages show it.
    """
    _payload_name.set(name)


@contextlib.contextmanager
def keeping_payload_name() -> Iterator[None]:
    """Returns a context that parses other payloads; after it, locations are of the file that they were of before."""
    name = _payload_name.get()
    try:
        yield
    finally:
        _payload_name.set(name)


@dataclass
class Diagnostic:
    """One error or warning: `location` is `file:line:column`, or empty where MLIR knows none."""

    location: str
    message: str
    notes: list[str] = field(default_factory=list)


def location_text(location: ir.Location | str) -> str:
    """Returns `file:line:column` for an MLIR location, the innermost one of a nest, or an empty string.

    Args:
        location: a location, or its text.
    """
    if isinstance(location, ir.FileLineColLoc) and location.filename == "-":  # of a payload: to print it takes longer
        name, line = _payload_name.get(), location.start_line
        return f"{name}:{line}:{location.start_col}" if line else name
    match = _FILE_LOCATION.search(str(location))
    if not match:
        return ""
    name, line, column = match.groups()
    name = _payload_name.get() if name == "-" else name
    return f"{name}:{line}:{column}" if line != "0" else name  # a module as a whole has no line


def call_site(location: ir.Location | str) -> tuple[str, str, int]:
    """Returns file, function and line of the innermost location of a nest, which is the first in the location's text.

    Args:
        location: a location, or its text.
    """
    match = _CALL_SITE.search(str(location))
    return (match[2], match[1] or "(unknown)", int(match[3])) if match else ("(unknown)", "(unknown)", 0)


def shorten(text: str) -> str:
    """Returns the first line of `text` without advice about other tools, cut to what fits a terminal line or three.

    Args:
        text: of any length.
    """
    line = _OTHER_TOOLS.sub("", text.strip().splitlines()[0]) if text.strip() else ""
    return line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + " ..."


def _convert(diagnostic: ir.DiagnosticInfo) -> Diagnostic:
    notes = []
    notes_shown = [note for note in diagnostic.notes if not note.message.startswith(_WHOLE_OP)]
    for note in notes_shown[:_MAX_NOTES]:
        location = location_text(note.location)
        notes.append(f"{location}: {shorten(note.message)}" if location else shorten(note.message))
    return Diagnostic(location_text(diagnostic.location), shorten(diagnostic.message), notes)


def from_error(error: ir.MLIRError) -> list[Diagnostic]:
    """Returns the diagnostics that an `MLIRError` carries.

    Args:
        error: of the bindings.
    """
    return [_convert(diagnostic) for diagnostic in error.error_diagnostics]


def from_text(text: str) -> Diagnostic | None:
    """Returns the diagnostic in the text of the `ValueError` that the transform interpreter raises, or None.

    The text holds one `at loc(...): message` after another: the error, then its notes. A `tc` op that refuses adds its
    own location in the script, followed by itself.

    Args:
        text: of the error.
    """
    error: Diagnostic | None = None
    for part in text.split("at loc(")[1:]:
        place, _, message = part.partition("): ")
        location, message = location_text(place), shorten(message)
        if not message or message.startswith(_WHOLE_OP):
            continue
        if error is None:
            error = Diagnostic(location, message)
        elif len(error.notes) < _MAX_NOTES:
            message = "refused by the transform op here" if "silenceable failure" in message else message
            error.notes.append(f"{location}: {message}" if location else message)
    return error


@contextlib.contextmanager
def collect(context: ir.Context) -> Iterator[list[Diagnostic]]:
    """Collects the errors reported on `context` while the block runs, instead of printing them.

    Args:
        context: of the ops that are checked or run in the block.

    Yields:
        The errors so far, in the order in which they are reported.
    """
    diagnostics: list[Diagnostic] = []

    def keep(diagnostic: ir.DiagnosticInfo) -> bool:
        if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
            diagnostics.append(_convert(diagnostic))
        return True

    handler = context.attach_diagnostic_handler(keep)
    try:
        yield diagnostics
    finally:
        handler.detach()
