"""Refuses MLIR text that its parser takes, and that ends the process or that Python cannot read."""

from __future__ import annotations

import re

from stepladder.runtime.errors import StepladderError

_SYMBOL = re.compile(r'(?:@|\bsym_name = )"((?:[^"\\\n]|\\.)*\\(?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(rb'\\([0-9A-Fa-f]{2}|[nt"\\])')
_ESCAPED = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}
_RESOURCES = "{-#"
_NO_ALIGNMENT = '"0x00000000'
_KEY = re.compile(r'([\w$.-]+|"[^"\n]*")\s*:\s*$')
_KEY_LENGTH = 256  # of which messages show the end


def check_readable(text: str, name: str) -> None:
    """Checks names of symbols, which Python's bindings decode, and the alignments of resources, with which MLIR
    allocates memory: it ends the process for an alignment of 0.

    Args:
        text: MLIR.
        name: of its file, for the message.

    Raises:
        StepladderError: a name that is not UTF-8, or an alignment of 0, with the location.
    """
    for match in _SYMBOL.finditer(text) if "\\" in text else ():
        try:
            _ESCAPE.sub(_unescaped, match[1].encode()).decode()
        except UnicodeDecodeError:
            message = f'the name "{match[1]}" of a symbol is not UTF-8'
            raise StepladderError(message, location=_place(text, match.start(), name)) from None
    start = text.rfind(_RESOURCES)
    while start >= 0:
        start = text.find(_NO_ALIGNMENT, start + 1)
        key = _KEY.search(text[max(start - _KEY_LENGTH, 0) : max(start, 0)])
        if key is not None:
            raise StepladderError(
                f"the blob of resource {key[1]} has an alignment of 0, the first four bytes of its data",
                location=_place(text, start, name),
                notes=["accepted: a power of two, such as 0x04000000"],
            )


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits = match[1]
    return _ESCAPED.get(digits) or bytes.fromhex(digits.decode())


def _place(text: str, start: int, name: str) -> str:
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return f"{name}:{line}:{column}"
