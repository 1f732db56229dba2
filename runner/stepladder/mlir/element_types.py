"""Names and widths of element types."""

from __future__ import annotations

import re

_WIDTH = re.compile(r"[a-z]+(\d+)")


def bits_of_name(name: str) -> int:
    """Returns the width in bits of the element type that MLIR calls `name`, or 0 where the name has no width.

    The number after the leading letters is the width: 8 of f8E4M3FN, whose other digits are those of its exponent and
    its significand.

    Args:
        name: such as `f16`, `i8` or `index`.
    """
    match = _WIDTH.match(name)
    return int(match[1]) if match else 0
