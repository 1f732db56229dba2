"""Scalars, vectors and memrefs as MLIR's runner libraries print them, and C's format strings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from stepladder.emulator.core.elements import unsigned
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value

_SPECIFIER = re.compile(r"%([-+ #0]*)(\d+)?(\.\d+)?(hh|h|ll|l|j|z|t|L)?([diouxXeEfFgGaAcsp%])")


def number_text(value: Value, element: Scalar) -> str:
    """Returns a scalar as `vector.print` and the runner libraries print it.

    Args:
        value: a number of the type.
        element: its type: complex, floating-point, or integer.
    """
    if element.name.startswith("complex"):
        return f"({number_text(value.real, _PART)},{number_text(value.imag, _PART)})"
    if element.is_float:
        value = float(value)
        if np.isnan(value):
            return "-nan" if np.signbit(value) else "nan"
        return f"{value:g}"
    if element.width == 1 or element.name.startswith("ui"):
        return str(int(unsigned(value, element.width)))
    return str(int(value))


_PART = Scalar("f64", np.dtype(np.float64), 64)


def vector_text(value: np.ndarray, element: Scalar) -> str:
    """Returns a vector as `vector.print` prints it; one without dimensions as one of a single element.

    Args:
        value: an array of any rank, without lanes.
        element: the type of an element.
    """
    if value.ndim == 0:
        return f"( {number_text(value[()], element)} )"
    if value.ndim == 1:
        return "( " + ", ".join(number_text(number, element) for number in value) + " )"
    return "( " + ", ".join(vector_text(part, element) for part in value) + " )"


def memref_head(address: int, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> str:
    """Returns the description of an unranked memref, as the runner libraries print it.

    Args:
        address: of the allocation.
        offset: in elements.
        sizes, strides: of each dimension, in elements.
    """
    texts = (", ".join(map(str, numbers)) for numbers in (sizes, strides))
    sizes_text, strides_text = texts
    return (
        f"Unranked Memref base@ = {address:#x} rank = {len(sizes)} offset = {offset} sizes = [{sizes_text}] "
        f"strides = [{strides_text}]"
    )


def memref_data(array: np.ndarray, text: Callable) -> str:
    """Returns a memref's elements as the runner libraries print them, one row a line.

    Args:
        array: of any rank.
        text: returns the text of one element.
    """

    def part(array: np.ndarray) -> str:
        if array.ndim == 0:
            return text(array[()])
        between = ", " + "\n" * (array.ndim > 1) + " " * (rank - array.ndim + 1)
        return "[" + between.join(part(row) for row in array) + "]"

    rank = array.ndim
    return part(array) if rank else f"[{text(array[()])}]"


def variadic(text: str) -> list[tuple[int, int, str]]:
    """Returns where printf's arguments are in memory, as C promotes them: byte, bits and letter of each specifier.

    Args:
        text: the format.
    """
    specifiers: list[tuple[int, int, str]] = []
    place = 0
    for _, _, _, length, letter in _SPECIFIER.findall(text):
        if letter != "%":
            size = 8 if letter in "eEfFgGaAsp" or length in ("l", "ll", "j", "z", "t") else 4
            place = -(-place // size) * size
            specifiers.append((place, 8 * size, letter))
            place += size
    return specifiers


def formatted(text: str, arguments: Sequence[tuple]) -> str:
    """Returns the text that C's printf prints.

    Args:
        text: the format.
        arguments: for each specifier a scalar, or a text, and its width in bits.
    """
    remaining = list(arguments)

    def one(match: re.Match) -> str:
        flags, width, precision, _, letter = match.groups()
        if letter == "%":
            return "%"
        if not remaining:
            return match[0]
        value, bits = remaining.pop(0)
        form = f"%{flags}{width or ''}{precision or ''}"
        match letter:
            case "d" | "i":
                return (form + "d") % int(value)
            case "u" | "o" | "x" | "X":
                return (form + letter.replace("u", "d")) % int(unsigned(int(value), bits))
            case "c":
                return (form + "c") % chr(int(value) & 0xFF)
            case "s":
                return (form + "s") % value
            case "p":
                return f"{int(value):#x}"
            case "a" | "A":
                return float(value).hex()
        return (form + letter) % float(value)

    return _SPECIFIER.sub(one, text)
