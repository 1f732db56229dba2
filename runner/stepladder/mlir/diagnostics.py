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
    found = _FILE_LOCATION.search(str(location))
    if not found:
        return ""
    name, line, column = found.groups()
    name = _payload_name.get() if name == "-" else name
    return f"{name}:{line}:{column}" if line != "0" else name  # a module as a whole has no line


def call_site(location: ir.Location | str) -> tuple[str, str, int]:
    """Returns file, function and line of the innermost location that a location is made of, which its text says first.

    Args:
        location: a location, or its text.
    """
    found = _CALL_SITE.search(str(location))
    return (found[2], found[1] or "(unknown)", int(found[3])) if found else ("(unknown)", "(unknown)", 0)


def shorten(text: str) -> str:
    """Returns the first line of `text`, cut to what fits a terminal line or three.

    Args:
        text: of any length.
    """
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + " ..."


def _convert(diagnostic: ir.DiagnosticInfo) -> Diagnostic:
    notes = []
    told = [note for note in diagnostic.notes if not note.message.startswith(_WHOLE_OP)]
    for note in told[:_MAX_NOTES]:
        where = location_text(note.location)
        notes.append(f"{where}: {shorten(note.message)}" if where else shorten(note.message))
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
    found: Diagnostic | None = None
    for part in text.split("at loc(")[1:]:
        place, _, message = part.partition("): ")
        where, message = location_text(place), shorten(message)
        if not message or message.startswith(_WHOLE_OP):
            continue
        if found is None:
            found = Diagnostic(where, message)
        elif len(found.notes) < _MAX_NOTES:
            message = "refused by the transform op here" if "silenceable failure" in message else message
            found.notes.append(f"{where}: {message}" if where else message)
    return found


@contextlib.contextmanager
def collect(context: ir.Context) -> Iterator[list[Diagnostic]]:
    """Collects the errors reported on `context` while the block runs, instead of printing them.

    Args:
        context: of the ops that are checked or run in the block.

    Yields:
        The errors so far, in the order in which they are reported.
    """
    found: list[Diagnostic] = []

    def keep(diagnostic: ir.DiagnosticInfo) -> bool:
        if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
            found.append(_convert(diagnostic))
        return True

    handler = context.attach_diagnostic_handler(keep)
    try:
        yield found
    finally:
        handler.detach()
