"""llvm: loads and stores of vectors under a mask: of neighbours, packed, or at an address for each element."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Opaque, Shaped, Type
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.nvgpu import where
from stepladder.emulator.memory import pointers


def _rows(fiber: Fiber, value: Value) -> np.ndarray:
    return values.lanes(np.asarray(value), fiber.count, 1)


def _neighbours(fiber: Fiber, pointer: Value, offsets: np.ndarray, type_: Shaped) -> np.ndarray:
    """Returns the address of each element in each lane: (T, elements)."""
    return values.lanes(np.asarray(pointer), fiber.count)[:, None] + offsets * type_.element.bytes


def _packed(mask: np.ndarray) -> np.ndarray:
    """Returns the position of each element among those whose mask is set: (T, elements)."""
    return np.cumsum(mask, axis=1) - mask


def _is_shared(type_: Type) -> bool:
    """Whether a pointer, or each of a vector, is of shared memory."""
    return pointers.is_shared(type_ if isinstance(type_, Opaque) else Opaque(type_.element.name))


def _check(fiber: Fiber, op: Instruction, addresses: np.ndarray, mask: np.ndarray) -> None:
    """Reports addresses that are not aligned as the op states: of each element, or of the first of neighbours."""
    stated_alignment = op.attributes.get("alignment") or 1
    if stated_alignment == 1:
        return
    columns = range(addresses.shape[1]) if "gather" in op.name or "scatter" in op.name else (0,)
    for column in columns:
        part = where(fiber, (mask[:, column] if len(columns) > 1 else mask.any(axis=1),))
        if part is not None:
            pointers.check_alignment(part, op, addresses[:, column], stated_alignment)


def _read(fiber: Fiber, op: Instruction, addresses: np.ndarray, mask: np.ndarray, otherwise: Value) -> np.ndarray:
    """Returns elements where the mask is set, and those of `otherwise` where it is not: (T, elements)."""
    _check(fiber, op, addresses, mask)
    element = op.result_types[0].element
    result = np.array(np.broadcast_to(_rows(fiber, otherwise), mask.shape), element.dtype)
    for column in range(mask.shape[1]):
        part = where(fiber, (mask[:, column],))
        if part is not None:
            elements = pointers.read(part, op, addresses[:, column], element, shared=_is_shared(op.operand_types[0]))
            result[part.lanes, column] = values.lanes(np.asarray(elements), fiber.count)[part.lanes]
    return result


def _write(fiber: Fiber, op: Instruction, value: Value, addresses: np.ndarray, mask: np.ndarray) -> None:
    """Writes the elements of a vector whose mask is set."""
    _check(fiber, op, addresses, mask)
    element, value = op.operand_types[0].element, _rows(fiber, value)
    for column in range(mask.shape[1]):
        part = where(fiber, (mask[:, column],))
        if part is not None:
            is_shared = _is_shared(op.operand_types[1])
            pointers.write(part, op, addresses[:, column], value[:, column], element, shared=is_shared)


@executes("llvm.intr.masked.load", "llvm.intr.masked.gather", "llvm.intr.masked.expandload")
def load(fiber: Fiber, op: Instruction, pointer: Value, mask: Value, *otherwise: Value) -> Value:
    """Elements of a vector from neighbours, from an address each, or, one after the other, where the mask is set."""
    type_ = op.result_types[0]
    mask = _rows(fiber, mask)
    pass_through = otherwise[0] if otherwise else np.zeros(type_.shape, type_.element.dtype)
    return _read(fiber, op, _addresses(fiber, op, pointer, mask, type_), mask, pass_through)


@executes("llvm.intr.masked.store", "llvm.intr.masked.scatter", "llvm.intr.masked.compressstore")
def store(fiber: Fiber, op: Instruction, value: Value, pointer: Value, mask: Value) -> None:
    """Elements of a vector to neighbours, to an address each, or one after the other, where the mask is set."""
    mask = _rows(fiber, mask)
    _write(fiber, op, value, _addresses(fiber, op, pointer, mask, op.operand_types[0]), mask)


def _addresses(fiber: Fiber, op: Instruction, pointer: Value, mask: np.ndarray, type_: Shaped) -> np.ndarray:
    """Returns the address of each element of a vector in each lane: (T, elements)."""
    if op.name.endswith(("gather", "scatter")):
        return _rows(fiber, pointer)
    is_packed = op.name.endswith(("expandload", "compressstore"))
    return _neighbours(fiber, pointer, _packed(mask) if is_packed else np.arange(mask.shape[1]), type_)
