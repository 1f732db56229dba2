"""Blocks of matrices that a subgroup of 16 lanes loads, stores and multiplies: limits, and the elements of each lane.

A surface is a matrix as the hardware sees it: an address, the bytes of a row, the rows, and the bytes from one row to
the next. Elements beyond it are zeros in a load, and are not stored.

Source: the OpenCL C extensions cl_intel_subgroup_2d_block_io and cl_intel_subgroup_matrix_multiply_accumulate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.memory import memory, pointers

LANES = 16
BASE_ALIGNMENT = 64  # bytes
MIN, MAX = 64, 1 << 24  # bytes of a row and of a pitch; rows up to MAX
PITCH_MULTIPLE = 16  # bytes
_WIDTH_MULTIPLE = 4  # bytes
_MULTIPLY_ROWS = 8
_DWORD = 4  # bytes
# Elements by their bytes.
ELEMENTS = {size: Scalar(f"i{8 * size}", np.dtype(f"i{size}"), 8 * size) for size in (1, 2, 4, 8)}


@dataclass(frozen=True)
class Block:
    """The form of a 2D block operation.

    Attributes:
        bytes: of an element.
        rows, columns: of a block, in elements.
        blocks: side by side, along columns.
        order: "plain" (a lane holds adjacent columns of each row), "packed" (it holds one column, of which elements of
            adjacent rows share 32 bits) or "transposed" (it holds one row).
    """

    bytes: int
    rows: int
    columns: int
    blocks: int = 1
    order: str = "plain"

    def places(self, op: Instruction) -> tuple[np.ndarray, np.ndarray]:
        """Returns row and column of each element that a lane holds, in its order: arrays (16, count).

        Args:
            op: the instruction, for the error.

        Raises:
            Unsupported: the lanes do not divide the block evenly.
        """
        lane = np.arange(LANES)[:, None]
        if self.order == "transposed":
            if self.rows != LANES or self.bytes < _DWORD or self.blocks != 1:
                raise Unsupported(op, f"with a transpose: it is of {LANES} rows with elements of 32 or 64 bits")
            return lane + 0 * np.arange(self.columns), np.arange(self.columns) + 0 * lane
        columns_of_lane = self.columns // LANES
        if self.columns % LANES or (self.order == "packed" and (columns_of_lane != 1 or self.bytes >= _DWORD)):
            raise Unsupported(op, f"of blocks with {self.columns} columns of {8 * self.bytes} bits, {self.order}")
        element = np.arange(self.rows * columns_of_lane * self.blocks)
        block, inner = element // (self.rows * columns_of_lane), element % (self.rows * columns_of_lane)
        return (
            inner // columns_of_lane + 0 * lane,
            block * self.columns + lane * columns_of_lane + inner % columns_of_lane,
        )


def _uniform(fiber: Fiber, op: Instruction, names: Sequence[str], numbers: Sequence[Value]) -> None:
    """Reports lanes that are not active, and operands that differ between the lanes of a subgroup."""
    group, lanes = fiber.group, fiber.lanes
    if group.warp != LANES:
        raise Unsupported(op, f"in subgroups of {group.warp}: those of {LANES} execute it")
    if len(lanes) != len(fiber.warps) * LANES:
        group.sanitizer.report("divergent-barrier", "not all lanes of a subgroup execute it", op)
        return
    for name, number in zip(names, numbers):
        if isinstance(number, np.ndarray) and number.ndim:
            own = number[lanes].reshape(-1, LANES)
            if (own != own[:, :1]).any():
                group.sanitizer.report(
                    "divergent-barrier", f"the lanes of a subgroup have different values for {name}", op
                )


_NAMES = ("the address", "the width", "the height", "the pitch", "x", "y")


def _first(fiber: Fiber, number: Value, wrong: Value) -> int:
    """Returns the first number of an active lane for which `wrong` holds."""
    pairs = np.broadcast_arrays(np.asarray(number), np.asarray(wrong))
    if pairs[0].ndim == 0:
        return int(pairs[0])
    own = [pair[fiber.lanes] for pair in pairs]
    return int(own[0][own[1].argmax()])


def _check(fiber: Fiber, op: Instruction, block: Block, numbers: Sequence[Value]) -> None:
    """Reports what the hardware does not take."""
    _uniform(fiber, op, _NAMES, numbers)
    address, width, height, pitch, x, _ = numbers
    multiple = max(_WIDTH_MULTIPLE, block.bytes)
    step = max(1, _DWORD // block.bytes)
    pointers.check_alignment(fiber, op, address, BASE_ALIGNMENT)
    for number, wrong, text in (
        (
            width,
            (width % multiple != 0) | (width < MIN) | (width > MAX),
            f"rows of {{}} bytes; accepted: {MIN} to {MAX}, a multiple of {multiple}",
        ),
        (
            pitch,
            (pitch % PITCH_MULTIPLE != 0) | (pitch < MIN) | (pitch > MAX),
            f"the rows are {{}} bytes apart; accepted: {MIN} to {MAX}, a multiple of {PITCH_MULTIPLE}",
        ),
        (pitch, pitch < width, "the rows are {} bytes apart, and longer than that"),
        (height, (height < 1) | (height > MAX), f"{{}} rows: 1 to {MAX} are possible"),
        (x, x % step != 0, f"x = {{}}; accepted: a multiple of {step} for elements of {8 * block.bytes} bits"),
    ):
        own = np.asarray(wrong)
        if own.any() if own.ndim == 0 else own[fiber.lanes].any():
            fiber.group.sanitizer.report("misaligned", text.format(_first(fiber, number, wrong)), op)


def _located(
    fiber: Fiber, op: Instruction, block: Block, numbers: Sequence[Value]
) -> tuple[MemRef, list[np.ndarray], np.ndarray, int]:
    """Returns the matrix, the coordinates of what lanes hold, which are in the matrix, and how many a lane has."""
    numbers = [fiber.agreed(number) for number in numbers]
    _check(fiber, op, block, numbers)
    address, width, height, pitch, x, y = numbers
    element = ELEMENTS[block.bytes]
    sizes = [height, width // block.bytes]
    view = pointers.view_at(fiber, op, address, element, 0, sizes, [pitch // block.bytes, 1])
    lane = fiber.group.thread_of_lane % LANES
    rows, columns = (places[lane] for places in block.places(op))
    coordinates = [_column(y) + rows, _column(x) + columns]
    valid = np.ones(rows.shape, bool)
    for coordinate, size in zip(coordinates, sizes):
        valid = valid & (coordinate >= 0) & (coordinate < _column(size))
    return view, coordinates, valid, rows.shape[1]


def _column(number: Value) -> Value:
    return number.astype(np.int64)[:, None] if isinstance(number, np.ndarray) and number.ndim else int(number)


def load(fiber: Fiber, op: Instruction, block: Block, numbers: Sequence[Value]) -> np.ndarray:
    """Returns the loaded elements of the lanes, array (T, count) of integers of the element's width.

    Args:
        fiber: whose subgroups load.
        op: for findings.
        block: the form of the operation.
        numbers: address, width, height and pitch in bytes and rows; x and y in elements and rows.
    """
    view, coordinates, valid, count = _located(fiber, op, block, numbers)
    elements = memory.read(fiber, op, view, coordinates, (count,), None if valid.all() else valid, 0)
    return values.lanes(np.asarray(elements), fiber.count, 1)


def store(fiber: Fiber, op: Instruction, block: Block, numbers: Sequence[Value], value: Value) -> None:
    """Stores a block that lanes hold.

    Args:
        fiber: the threads, one subgroup or several.
        op: the instruction.
        block: of up to 8 rows, one and "plain".
        numbers: the operands that describe the surface and the position, as for `load`.
        value: the elements that lanes hold: (count,) or (T, count), of any type with as many bytes in all.

    Raises:
        Unsupported: a form of block that is not stored.
    """
    if block.rows > _MULTIPLY_ROWS or block.blocks != 1 or block.order != "plain":
        raise Unsupported(op, f"of {block.blocks} blocks of {block.rows} rows: one of up to {_MULTIPLY_ROWS} is stored")
    view, coordinates, valid, count = _located(fiber, op, block, numbers)
    elements = as_type(values.lanes(np.asarray(value), fiber.count, 1), view.element.dtype)
    memory.write(fiber, op, view, coordinates, elements, (count,), None if valid.all() else valid)


def prefetch(fiber: Fiber, op: Instruction, block: Block, numbers: Sequence[Value]) -> None:
    """Checks the operands of a prefetch, which does nothing else: there is no cache.

    Args:
        fiber: the threads, one subgroup or several.
        op: the instruction.
        block: its form.
        numbers: the operands that describe the surface and the position, as for `load`.
    """
    _check(fiber, op, block, [fiber.agreed(number) for number in numbers])


def as_type(elements: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Reinterprets the elements that lanes hold as elements of another type.

    Args:
        elements: array (T, count).
        dtype: of which a whole number fits into the bytes that a lane holds.

    Returns:
        Array (T, another count) of `dtype`.
    """
    return np.ascontiguousarray(elements).view(dtype)


def multiply(fiber: Fiber, op: Instruction, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns A and B of the subgroups of a matrix instruction, and the lanes of these: the latter (S, 16).

    A lane holds adjacent columns of each row of A, and a column of B.

    Args:
        fiber: whose subgroups multiply.
        op: for findings.
        a: (T, rows * columns / 16), of the type that is multiplied.
        b: (T, depth), likewise.

    Returns:
        Matrices (S, rows, depth) and (S, depth, 16), and the lanes.

    Raises:
        Unsupported: a subgroup with lanes that are not active.
    """
    _uniform(fiber, op, (), ())
    if len(fiber.lanes) % LANES:
        raise Unsupported(op, f"of a part of a subgroup: expected all {LANES} lanes")
    lanes = fiber.lanes.reshape(-1, LANES)
    depth = b.shape[1]
    depth_of_lane = max(1, depth // LANES)
    left = a[lanes].reshape(len(lanes), LANES, -1, depth_of_lane).transpose(0, 2, 1, 3).reshape(len(lanes), -1, depth)
    return left, b[lanes].swapaxes(1, 2), lanes
