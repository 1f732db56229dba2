"""The text of LLVM IR as MLIR's LLVM writes it and as llvmlite's LLVM, an older one, reads it.

They differ in floating-point constants. The newer LLVM writes the shortest decimal number that rounds to a constant,
and where none is short its bits (`f0x3F3504F3`), and has words for infinities and NaN. The older one takes decimal
numbers that the type holds exactly, and else the bits of the number as a double (`0x3FE6A09E60000000`).
"""

from __future__ import annotations

import re
import struct

from stepladder.runtime.element_types import element_type

_NAMES = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_TYPE = re.compile(r"\b(half|bfloat|float|double)\b")
_CONSTANT = re.compile(r'"[^"]*"|(?<![\w.%@$#!])(f0x[0-9A-F]+|[+-]?\d+\.\d+(?:e[+-]\d+)?|[+-](?:inf|qnan)\b)')
# What a line with a constant has, and most lines have not.
_HINT = re.compile(r"\d\.\d|f0x|inf|qnan")
# Lines that hold no constants of the program: metadata, attributes, the names of files.
_OTHER = re.compile(r"\s*(?:!|;|attributes |source_filename|target )")


def for_older_llvm(text: str) -> str:
    """Returns LLVM IR with its floating-point constants as an older LLVM reads them.

    Args:
        text: LLVM IR as MLIR's LLVM writes it.
    """
    return "\n".join(line if _OTHER.match(line) else _line(line) for line in text.split("\n"))


def _line(line: str) -> str:
    """Returns a line; a constant is of the type that is named last before it."""
    if not _HINT.search(line) or not _CONSTANT.search(line):
        return line
    types = [(match.end(), _NAMES[match.group(1)]) for match in _TYPE.finditer(line)]

    def replaced(match: re.Match[str]) -> str:
        if match.group(1) is None:  # a text in quotes
            return match.group(0)
        earlier_types = [name for end, name in types if end <= match.start()]
        return _constant(match.group(1), earlier_types[-1]) if earlier_types else match.group(1)

    return _CONSTANT.sub(replaced, line)


def _constant(text: str, type_: str) -> str:
    import numpy as np  # few kernels have such constants

    dtype = np.dtype(np.float64) if type_ == "f64" else element_type(type_).dtype
    if text.startswith("f0x"):
        bits = np.array([int(text[3:], 16)], f"u{dtype.itemsize}")
        value = float(bits.view(dtype)[0])
    elif text[1:] == "qnan":
        value = float("nan") if text[0] == "+" else -float("nan")
    else:
        exact = float(text)
        value = float(np.asarray(exact).astype(dtype))
        if value == exact and text[1:] != "inf":
            return text
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
