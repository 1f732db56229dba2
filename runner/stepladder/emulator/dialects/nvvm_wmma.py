"""nvvm: WMMA: loads, products and stores of matrices that a warp holds.

The distribution of elements over threads is opaque on hardware. Here the elements are distributed in order, and again
from the first one where threads hold more elements than the matrix has: by rows, or by columns for an operand that is
loaded by columns, which the product must state too.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Opaque, Scalar
from stepladder.emulator.core.values import Value, is_uniform, lanes
from stepladder.emulator.dialects import nvgpu
from stepladder.emulator.dialects.gpu_mma import ROW_ALIGNMENT, WarpMatrix, matrix_alignment
from stepladder.emulator.dialects.llvm import Struct
from stepladder.emulator.hardware import warpgroups
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.hardware.fragments import WARP
from stepladder.emulator.hardware.synchronization import by_value
from stepladder.emulator.hardware.warps import narrowed, together
from stepladder.emulator.memory import memory, pointers
from stepladder.mlir.printed import keyword
from stepladder.mlir.types import mma_matrix

SATURATES = "saturates"  # attribute of a product of PTX whose integers stop at the limits of their type
_REGISTER_BYTES = 4
_F16_REGISTERS = 8  # of A and B, for every shape


@dataclass(frozen=True)
class _Fragment:
    """A matrix in a warp.

    Attributes:
        rows, columns: of the matrix; `type`: of an element, by PTX's name.
        registers: of a thread; `by_columns`: the order of the elements.
    """

    rows: int
    columns: int
    type: str
    registers: int
    by_columns: bool

    @functools.cached_property
    def dtype(self) -> np.dtype:
        """NumPy's type of an element."""
        return np.dtype(
            {"f32": np.float32, "f64": np.float64, "s32": np.int32}.get(self.type, warpgroups.TYPES.get(self.type))
        )

    @property
    def has_vectors(self) -> bool:
        """Whether a register is a vector of two; else it is a scalar, one element or several."""
        return self.type == "f16"

    @functools.cached_property
    def held(self) -> int:
        """Elements that a thread holds."""
        return self.registers * max(1, _REGISTER_BYTES // self.dtype.itemsize)

    def divide(self, matrices: np.ndarray) -> np.ndarray:
        """Returns what threads hold of matrices: (warps, rows, columns) to (warps, 32, elements)."""
        flat = (matrices.swapaxes(1, 2) if self.by_columns else matrices).reshape(len(matrices), -1)
        copies = 32 * self.held // flat.shape[1]
        return np.tile(flat, (1, copies)).reshape(len(matrices), 32, self.held)

    def join(self, elements: np.ndarray) -> np.ndarray:
        """Returns the matrices that threads hold: (warps, 32, elements) to (warps, rows, columns)."""
        flat = elements.reshape(len(elements), -1)[:, : self.rows * self.columns]
        if self.by_columns:
            return flat.reshape(len(elements), self.columns, self.rows).swapaxes(1, 2)
        return flat.reshape(len(elements), self.rows, self.columns)


def _fragment(op: Instruction, operand: str, type_: str, *, by_columns: bool) -> _Fragment:
    m, n, k = (op.attributes[name] for name in "mnk")
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[operand]
    kinds = ("f16", "f32", "f64", "s32", *warpgroups.TYPES)
    if type_ not in kinds:
        raise Unsupported(op, f"of {type_}")
    fragment = _Fragment(rows, columns, type_, 1, by_columns and operand != "c")
    registers = _F16_REGISTERS if type_ == "f16" and operand != "c" else rows * columns // 32 // fragment.held
    return _Fragment(rows, columns, type_, registers, fragment.by_columns)


def _of_access(op: Instruction, operand: str) -> _Fragment:
    if "fragment" not in op.cache:
        op.cache["fragment"] = _fragment(
            op, operand, keyword(op.attributes["eltype"]), by_columns=keyword(op.attributes["layout"]) == "col"
        )
    return op.cache["fragment"]


def _registers(fiber: Fiber, fragment: _Fragment, elements: np.ndarray, threads: np.ndarray) -> Value:
    """Returns a struct of registers of what threads hold, (warps, 32, elements)."""
    elements_of_threads = np.zeros((fiber.count, fragment.held), fragment.dtype)
    elements_of_threads[threads] = elements
    if fragment.has_vectors:
        pairs = elements_of_threads.reshape(fiber.count, fragment.registers, -1)
        return Struct(tuple(pairs[:, number] for number in range(fragment.registers)))
    if fragment.type in ("f32", "f64", "s32"):
        return AccumulatorRegisters(elements_of_threads)
    return AccumulatorRegisters(elements_of_threads.view(np.int32))


def _held(fiber: Fiber, fragment: _Fragment, registers: Value, threads: np.ndarray) -> np.ndarray:
    """Returns what threads hold of a matrix, (warps, 32, elements), given their registers."""
    rank = 1 if fragment.has_vectors else 0
    elements = np.stack([lanes(register, fiber.count, rank)[threads] for register in registers], axis=2)
    if not fragment.has_vectors:
        kind = fragment.dtype if fragment.type in ("f32", "f64", "s32") else np.dtype(np.int32)
        elements = np.ascontiguousarray(elements.astype(kind, copy=False)).view(fragment.dtype)
    return elements.reshape(*threads.shape, fragment.held)


def _elements(
    fiber: Fiber, op: Instruction, fragment: _Fragment, pointer: Value, stride: Value, operand_type: Opaque
) -> list[tuple]:
    """Returns, by their memory and their stride, fibers of one thread a warp and the elements of their matrices."""
    accesses = []
    for mask, (own,) in by_value(fiber, stride):
        part = fiber if mask is fiber.active else narrowed(fiber, mask)
        accesses += _elements_of(part, op, fragment, pointer, own, operand_type)
    return accesses


def _elements_of(
    fiber: Fiber, op: Instruction, fragment: _Fragment, pointer: Value, stride: int, operand_type: Opaque
) -> list[tuple]:
    """Returns the same of threads with one stride."""
    representatives = fiber.representatives()
    if not is_uniform(pointer):
        own = pointer[fiber.lanes]
        if (
            own != pointer[representatives.lanes][np.searchsorted(fiber.warps, fiber.group.warp_of_lane[fiber.lanes])]
        ).any():
            fiber.group.sanitizer.report("descriptor", "threads of a warp give different addresses of one matrix", op)
    item = fragment.dtype.itemsize
    pointers.check_alignment(fiber, op, pointer, matrix_alignment(fragment.rows, fragment.columns, item))
    if stride * item % ROW_ALIGNMENT:
        fiber.group.sanitizer.report(
            "misaligned", f"rows are {stride * item} bytes apart, not a multiple of {ROW_ALIGNMENT}", op
        )
    shape = fragment.rows, fragment.columns
    row, column = np.arange(fragment.rows)[:, None], np.arange(fragment.columns)[None, :]
    offsets = column * stride + row if keyword(op.attributes["layout"]) == "col" else row * stride + column
    element = Scalar(fragment.type, fragment.dtype, 8 * item)
    accesses = []
    for part, allocation, start in pointers.parts(
        representatives, op, pointer, shared=pointers.is_shared(operand_type)
    ):
        view, places = pointers.elements(allocation, start, element, offsets, 2)
        access = memory.locate(part, op, view, [places], shape)
        accesses.append((part, access if access.per_lane else memory.with_lanes(access, len(part.lanes))))
    return accesses


@executes("nvvm.wmma.load")
def load_or_number(fiber: Fiber, op: Instruction, pointer: Value, stride: Value) -> Value:
    """A matrix from memory; a number where each thread holds one, as of A and B of f64."""
    registers = load(fiber, op, pointer, stride)
    return registers.array[:, 0] if isinstance(op.result_types[0], Scalar) else registers


def load(fiber: Fiber, op: Instruction, pointer: Value, stride: Value) -> Value:
    """Returns a struct of the registers of a matrix from memory.

    Args:
        fiber: the threads.
        op: the load.
        pointer: of the matrix, uniform or (T,).
        stride: of its rows or columns, in elements.
    """
    fragment = _of_access(op, keyword(op.attributes["frag"]))
    threads = nvgpu.warps_of(fiber, op)
    group = fiber.group
    matrices = np.zeros((group.warps, fragment.rows, fragment.columns), fragment.dtype)
    for part, access in _elements(fiber, op, fragment, pointer, stride, op.operand_types[0]):
        matrices[part.warps] = memory.take(part, op, access, is_matrix=True)
    return _registers(fiber, fragment, fragment.divide(matrices[fiber.warps]), threads)


@executes("nvvm.wmma.store")
def store(fiber: Fiber, op: Instruction, pointer: Value, *operands: Value) -> None:
    """A matrix to memory."""
    *registers, stride = operands
    fragment = _of_access(op, "c")
    threads = nvgpu.warps_of(fiber, op)
    group = fiber.group
    matrices = np.zeros((group.warps, fragment.rows, fragment.columns), fragment.dtype)
    matrices[fiber.warps] = fragment.join(_held(fiber, fragment, registers, threads))
    for part, access in _elements(fiber, op, fragment, pointer, stride, op.operand_types[0]):
        memory.put(together(part), op, access, matrices[part.warps], is_matrix=True)


@executes("nvvm.wmma.mma")
def mma(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """A product added to a matrix."""
    if "fragments" not in op.cache:
        types = [keyword(op.attributes[name]) for name in ("eltypeA", "eltypeA", "eltypeB")]
        columns = [keyword(op.attributes["layoutA"]) == "col", keyword(op.attributes["layoutB"]) == "col", False]
        op.cache["fragments"] = [
            _fragment(op, operand, type_, by_columns=by_columns)
            for operand, type_, by_columns in zip("abc", types, columns)
        ]
    fragments = op.cache["fragments"]
    threads = nvgpu.warps_of(fiber, op)
    matrices, remaining = [], operands
    for fragment in fragments:
        matrices.append(fragment.join(_held(fiber, fragment, remaining[: fragment.registers], threads)))
        remaining = remaining[fragment.registers :]
    a, b, c = matrices
    if a.dtype == np.float64:
        total = c + a @ b
    else:
        product = warpgroups.exact(a, fragments[0].type) @ warpgroups.exact(b, fragments[1].type)
        total = warpgroups.added(c, product, saturates=bool(op.attributes.get(SATURATES)))
    if fiber.group.counters is not None:
        fiber.group.counters.products(fiber, op, math.prod(op.attributes[name] for name in "mnk"))
    return _registers(fiber, fragments[2], fragments[2].divide(total), threads)


def _sums(op: Instruction, type_: Opaque) -> _Fragment:
    """Returns the fragment that a `!gpu.mma_matrix` is of; those of C alone are cast to registers and back."""
    rows, columns, element, operand = mma_matrix(type_.text)
    if (operand, element) != ("COp", "f32"):
        raise Unsupported(op, f"of {type_.text}")
    return _Fragment(rows, columns, element, rows * columns // WARP, by_columns=False)


def registers_of(fiber: Fiber, op: Instruction, matrix: WarpMatrix) -> Value:
    """Returns what threads hold of a matrix of the gpu dialect.

    Args:
        fiber: the threads.
        op: a cast of the matrix.
        matrix: of f32, of C.
    """
    fragment = _sums(op, op.operand_types[0])
    return _registers(fiber, fragment, fragment.divide(matrix.array[fiber.warps]), nvgpu.warps_of(fiber, op))


def matrix_of(fiber: Fiber, op: Instruction, registers: AccumulatorRegisters) -> WarpMatrix:
    """Returns a matrix of the gpu dialect that threads hold.

    Args:
        fiber: the threads.
        op: a cast to the matrix.
        registers: of f32, of C.
    """
    fragment = _sums(op, op.result_types[0])
    array = np.zeros((fiber.group.warps, fragment.rows, fragment.columns), fragment.dtype)
    elements = _held(fiber, fragment, registers.read(fiber, op).T, nvgpu.warps_of(fiber, op))
    array[fiber.warps] = fragment.join(elements)
    return WarpMatrix(array, fiber.group)
