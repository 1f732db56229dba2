"""Layouts of types of the llvm dialect in memory: sizes, alignments, and offsets of fields."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_FLOAT_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}


@dataclass(frozen=True)
class Layout:
    """A type in memory.

    Attributes:
        kind: "number", "pointer", "vector", "array" or "struct".
        name: of a number, as MLIR has it.
        bytes: from one to the next in an array; `alignment` in bytes.
        parts: of a struct its fields, of an array or a vector its element, once; `offsets` of the fields.
        count: elements of an array or a vector, fields of a struct.
    """

    kind: str
    name: str
    bytes: int
    alignment: int
    parts: tuple[Layout, ...] = ()
    offsets: tuple[int, ...] = ()
    count: int = 0

    def part(self, number: int) -> Layout:
        """Returns the type of an element or a field.

        Args:
            number: of the element or the field, from 0 on.
        """
        return self.parts[number if self.kind == "struct" else 0]

    def offset(self, number: int) -> int:
        """Returns the bytes before an element or a field.

        Args:
            number: of the element or the field, from 0 on.
        """
        return self.offsets[number] if self.kind == "struct" else number * self.parts[0].bytes

    @property
    def smallest(self) -> int:
        """Bytes of the smallest number or pointer in it."""
        return min((part.smallest for part in self.parts), default=max(self.bytes, 1))


@functools.cache
def layout(text: str) -> Layout:
    """Returns the layout of a type, given its text.

    Args:
        text: such as `!llvm.struct<(i32, ptr)>`.

    Raises:
        ValueError: a type that has none, or an unknown one.
    """
    text = text.strip().removeprefix("!llvm.")
    if text in _FLOAT_BYTES:
        return Layout("number", text, _FLOAT_BYTES[text], _FLOAT_BYTES[text])
    if match := re.fullmatch(r"i(\d+)", text):
        size = max(1, 1 << (int(match[1]) - 1).bit_length() >> 3)
        return Layout("number", text, size, size)
    if re.fullmatch(r"ptr(<\d+>)?", text):
        return Layout("pointer", "ptr", 8, 8)
    if match := re.fullmatch(r"vector<(\d+(?:x\d+)*)x(\w+)>", text):
        element = layout(match[2])
        count = 1
        for size in match[1].split("x"):
            count *= int(size)
        # Elements of a part of a byte, such as i1, follow each other without gaps.
        integer = re.fullmatch(r"i(\d+)", match[2])
        bits = count * (int(integer[1]) if integer else 8 * element.bytes)
        size = 1 << (-(-bits // 8) - 1).bit_length()
        return Layout("vector", "", size, size, (element,), count=count)
    if match := re.fullmatch(r"array<(\d+) x (.*)>", text, re.DOTALL):
        element = layout(match[2])
        return Layout("array", "", int(match[1]) * element.bytes, element.alignment, (element,), count=int(match[1]))
    if match := re.fullmatch(r'struct<(?:"[^"]*", )?(packed )?\((.*)\)>', text, re.DOTALL):
        return _struct([layout(field) for field in fields(match[2])], bool(match[1]))
    raise ValueError(text)


def _struct(parts: list[Layout], packed: bool) -> Layout:
    place, alignment, offsets = 0, 1, []
    for part in parts:
        if not packed:
            place = -(-place // part.alignment) * part.alignment
            alignment = max(alignment, part.alignment)
        offsets.append(place)
        place += part.bytes
    return Layout("struct", "", -(-place // alignment) * alignment, alignment, tuple(parts), tuple(offsets), len(parts))


def fields(text: str) -> list[str]:
    """Returns the parts of a list of types that commas divide.

    Args:
        text: types as MLIR prints them, without the parentheses around the list.
    """
    texts, depth = [""], 0
    for letter in text:
        depth += (letter in "(<[") - (letter in ")>]")
        if letter == "," and not depth:
            texts.append("")
        else:
            texts[-1] += letter
    return [field.strip() for field in texts if field.strip()]
