"""Errors that a user can act on, and the exit statuses of the command line.

Bad input raises a `StepladderError`: one message that names the error and what would be accepted. The command line
prints it without a traceback and exits with its `status`.
"""

from __future__ import annotations

import contextlib

# Exit statuses of `stepladder` and `stepladder-opt`. They are part of the command line's contract.
OK = 0
FAILED = 1  # the work was done and failed: wrong results, a failed step
BAD_INPUT = 2  # nothing was done: the input, an option or a file is not acceptable
NOT_EXECUTED = 3  # no kernel was launched: no GPU, no driver, or a bundle for another GPU


class StepladderError(Exception):
    """An error with a message for the user.

    Args:
        message: what is wrong, naming the thing, its value and what would be accepted.
        location: `file:line:column` or `file` of the offending text, where there is one.
        notes: further lines, each shown as a `note:` below the error.
        status: exit status of the process.
        traceback: the traceback, as text, of a Python error that code of a plug-in raised.
    """

    def __init__(
        self,
        message: str,
        *,
        location: str | None = None,
        notes: tuple[str, ...] | list[str] = (),
        status: int = BAD_INPUT,
        traceback: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.notes = tuple(notes)
        self.status = status
        self.traceback = traceback

    def render(self, *, verbose: bool = False) -> str:
        """Returns the text for a terminal, in the form compilers use: `location: error: message`, then notes.

        Args:
            verbose: whether to include the traceback; otherwise a note names the option that shows it.
        """
        prefix = f"{self.location}: " if self.location else ""
        lines = [_lines(f"{prefix}error: {self.message}")]
        lines += [_lines(f"note: {note}") for note in self.notes]
        if self.traceback:
            lines.append(self.traceback if verbose else "note: --verbose-errors shows the traceback")
        return "\n".join(lines)


def printable(text: object) -> str:
    """Returns a line in which control characters are escaped: names of files may have some that change a terminal.

    Bytes of names that are not UTF-8, which Python keeps as halves of surrogate pairs, are escaped too.

    Args:
        text: a line, or a path.
    """
    with contextlib.suppress(UnicodeEncodeError):  # other halves of surrogate pairs, which are no bytes
        text = str(text).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(text))


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def reason(error: Exception) -> str:
    """Returns the system's message for a failed access; errors raised by libraries may have no `strerror`.

    Args:
        error: what the access raised.
    """
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def cause(error: StepladderError) -> str:
    """Returns the message of a refusal to execute a kernel, for sentences that say what happens instead.

    Args:
        error: whose message may end with "no kernel was launched".
    """
    return error.message.removesuffix("; no kernel was launched")


def suggest(name: str, accepted: list[str] | tuple[str, ...]) -> str:
    """Returns " (did you mean 'x'?)" for the accepted name closest to `name`, or an empty string.

    Args:
        name: what was given.
        accepted: the names that would be accepted.
    """
    import difflib

    close = difflib.get_close_matches(name, accepted, n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""
