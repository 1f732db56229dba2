"""Attributes that the bindings have no accessors for, read from the text that MLIR prints.

Functions take an attribute, most of them its text too, or an op. A text of another form than MLIR prints raises
`ValueError`.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from stepladder.mlir import bindings
from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name

if TYPE_CHECKING:
    import numpy as np

_KEYWORD = re.compile(r"(\w+)>?$")
_CHIP = re.compile(r'chip = "(\w+)"')
_INTEGER_SET = re.compile(r"affine_set<(.*?) : \((.*)\)>")
_COMPLEX = re.compile(r"\(([^(),<>]+),([^(),<>]+)\)")
_BYTES = re.compile(r'"0x([0-9A-Fa-f]*)"')
_NUMBER = re.compile(r"[-+\w.]+")

# Of `arith::AtomicRMWKind`, in the order of their encoding, which differ between versions of MLIR.
ATOMIC_KINDS = bindings.atomic_kinds()


def without_names(op: ir.Operation) -> str:
    """Returns the text of an op, without the names of its operands.

    MLIR numbers all values of a function to print one of its ops with names.

    Args:
        op: without regions.
    """
    return op.clone().get_asm(assume_verified=True)


def keyword(attribute: ir.Attribute | str) -> str:
    """Returns the keyword of an enumeration: "row" of `#nvvm.mma_layout<row>`, "x" of `#gpu<dim x>`.

    Args:
        attribute: the enumeration, or its text.

    Raises:
        ValueError: the text has no keyword.
    """
    return _keyword(str(attribute))


@functools.lru_cache(maxsize=1024)  # the emulator asks at each execution
def _keyword(text: str) -> str:
    match = _KEYWORD.search(text)
    if match is None:
        raise ValueError(f"'{text}' ends with no keyword")
    return match[1]


def shape_numbers(attribute: ir.Attribute | str) -> list[int]:
    """Returns the sizes of a shape with named dimensions: 64, 8, 16 of `#nvvm.shape<m = 64, n = 8, k = 16>`.

    Args:
        attribute: the shape, or its text.
    """
    return [int(number) for number in re.findall(r"= (\d+)", str(attribute))]


def constant_range(attribute: ir.Attribute | str) -> tuple[int, int]:
    """Returns the bounds of a `#llvm.constant_range<i32, 0, 8>`, the upper one exclusive.

    Args:
        attribute: the range, or its text.
    """
    numbers = re.findall(r"-?\d+", str(attribute).split(",", 1)[1])
    return int(numbers[0]), int(numbers[1])


def chip_of(targets: ir.Attribute | str) -> str | None:
    """Returns the GPU, such as "sm_90a", that the targets of a `gpu.module` name; None where they name none.

    Args:
        targets: the attribute of the module, or its text.
    """
    match = _CHIP.search(str(targets))
    return match[1] if match else None


def chips_of(targets: ir.Attribute | str) -> tuple[str, ...]:
    """Returns all GPUs that the targets of a `gpu.module` name.

    Args:
        targets: the attribute of the module, or its text.
    """
    return tuple(_CHIP.findall(str(targets)))


def memory_space(attribute: ir.Attribute | None) -> str:
    """Returns "global", "shared" or "private" for a memory space: an integer, a `#gpu.address_space`, or none.

    Args:
        attribute: of a memref's type.
    """
    text = "" if attribute is None else str(attribute)
    if "workgroup" in text or text.startswith("3"):
        return "shared"
    if "private" in text or text.startswith("5"):
        return "private"
    return "global"


def integer_set(attribute: ir.Attribute | str) -> tuple[ir.AffineMap, list[bool]]:
    """Returns the expressions of an integer set as a map, and which of them must be 0; others must not be less.

    Args:
        attribute: the set, or its text.

    Raises:
        ValueError: the text is no integer set.
    """
    inside = _INTEGER_SET.fullmatch(str(attribute))
    if inside is None:
        raise ValueError(f"'{attribute}' is not an integer set")
    constraints = [part.strip() for part in inside[2].split(",")]
    equalities = ["==" in constraint for constraint in constraints]
    expressions = ", ".join(re.split("==|>=", constraint)[0] for constraint in constraints)
    return ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<{inside[1]} -> ({expressions})>")).value, equalities


def dense_numbers(attribute: ir.Attribute, dtype: np.dtype) -> np.ndarray:
    """Returns the numbers of a `dense` attribute, in row-major order; one number for a splat.

    MLIR prints a number in decimal, the bits of one that decimal does not say, such as an infinity, and the bytes of
    all numbers where they are many.

    Args:
        attribute: the elements, of integers, truth values or floating-point numbers.
        dtype: of the result, with the bits of the element type, or with more for integers, whose sign is then lost.
    """
    import numpy as np  # few payloads have constants

    inside = str(attribute).partition("dense<")[2].rpartition("> :")[0]
    if blob := _BYTES.fullmatch(inside):
        element = str(ir.ShapedType(ir.DenseElementsAttr(attribute).type).element_type)
        width = -(-(bits_of_name(element) or 64) // 8)  # of index: 64 bits
        rows = np.frombuffer(bytes.fromhex(blob[1]), np.uint8).reshape(-1, width)
        return np.pad(rows, ((0, 0), (0, dtype.itemsize - width))).view(dtype).reshape(-1)
    bits = np.dtype(f"u{dtype.itemsize}")
    is_integer = dtype.kind in "iub"

    def number(text: str) -> np.ndarray:
        if text in ("true", "false"):
            return np.array(text == "true", dtype)
        if text.startswith("0x"):
            return np.array(int(text, 16), bits).view(dtype)
        return np.array(int(text) if is_integer else float(text)).astype(dtype)

    return np.array([number(text) for text in _NUMBER.findall(inside)], dtype)


def complex_numbers(printed: ir.Operation | ir.Attribute | str) -> list[complex]:
    """Returns the complex numbers in a constant's text, in row-major order; one for a splat.

    Args:
        printed: the constant, its value, or their text.
    """
    return [complex(float(real), float(imaginary)) for real, imaginary in _COMPLEX.findall(str(printed))]
