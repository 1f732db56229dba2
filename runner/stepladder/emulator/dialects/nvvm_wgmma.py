"""nvvm: products of warpgroups, with operands that matrix descriptors name."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value
from stepladder.emulator.hardware import asynchronous, warpgroups
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.hardware.shared_memory_layouts import MatrixDescriptor
from stepladder.emulator.hardware.warpgroups import ROWS, Operand
from stepladder.mlir.printed import keyword, shape_numbers

if TYPE_CHECKING:
    from stepladder.emulator.hardware.asynchronous import Warpgroup
    from stepladder.emulator.hardware.sparse_operands import Sparsity

_SUMS = {"f32": np.float32, "f16": np.float16, "s32": np.int32}
# Types of sums by that of A, those of B where it may be another one, and columns: as ptxas (CUDA 13.0) accepts them.
_SUMS_OF = {
    **dict.fromkeys(("f16", "e4m3", "e5m2"), ("f16", "f32")),
    **dict.fromkeys(("bf16", "tf32"), ("f32",)),
    **dict.fromkeys(("s8", "u8", "b1"), ("s32",)),
}
_BESIDE = {name: kind for kind in (("e4m3", "e5m2"), ("s8", "u8")) for name in kind}
_COLUMNS = range(8, 257, 8)
_COLUMNS_OF_INTEGERS = (8, 24, *range(16, 257, 16))


@executes("nvvm.wgmma.fence.aligned")
def wgmma_fence(fiber: Fiber, op: Instruction) -> None:
    """Orders registers before products."""
    warpgroups.fence(asynchronous.warpgroups(fiber, op))


@executes("nvvm.wgmma.commit.group.sync.aligned")
def wgmma_commit(fiber: Fiber, op: Instruction) -> None:
    """Makes a group of products."""
    for warpgroup in asynchronous.warpgroups(fiber, op):
        warpgroup.commit()


@executes("nvvm.wgmma.wait.group.sync.aligned")
def wgmma_wait(fiber: Fiber, op: Instruction) -> None:
    """Waits for all groups of products but the latest."""
    for warpgroup in asynchronous.warpgroups(fiber, op):
        warpgroup.wait(op.attributes["group"])


@executes("nvvm.wgmma.mma_async")
def wgmma_mma_async(fiber: Fiber, op: Instruction, sums: AccumulatorRegisters, a: Value, b: Value) -> Value:
    """Begins a product of operands in shared memory."""
    attributes = op.attributes
    rows, columns, k = shape_numbers(attributes["shape"])
    types = [keyword(attributes[f"type{name}"]) for name in "ABD"]
    form = Product(
        rows,
        columns,
        k,
        types[0],
        types[1],
        types[2],
        (keyword(attributes["layoutA"]) == "row", keyword(attributes["layoutB"]) == "col"),
        (keyword(attributes["scaleA"]) == "neg", keyword(attributes["scaleB"]) == "neg"),
        keyword(attributes["scaleD"]) == "one",
        keyword(attributes.get("satfinite", "wrapped")) == "satfinite",
    )
    check_product(op, form)
    return multiply(fiber, op, form, sums, a, b)


@dataclass(frozen=True)
class Product:
    """The form of a wgmma instruction.

    Attributes:
        rows, columns, k: of the instruction.
        a, b, sums: element types of A, B and the accumulator, by PTX's names.
        along_k: of A and B, whether neighbours in memory are neighbours along k; `negated`: whether they are negated.
        keeps: whether the product is added to the accumulator; else it replaces it.
        is_sparse: whether A has half of its elements.
    """

    rows: int
    columns: int
    k: int
    a: str
    b: str
    sums: str
    along_k: tuple[bool, bool]
    negated: tuple[bool, bool]
    keeps: bool
    saturates: bool
    is_sparse: bool = False


def bits_of(type_: str) -> int:
    """Returns the bits of an element.

    Args:
        type_: of an operand, by PTX's name.
    """
    return 1 if type_ == "b1" else 8 * np.dtype(warpgroups.TYPES[type_]).itemsize


def is_known(form: Product) -> bool:
    """Whether wgmma has such types and such a shape.

    Args:
        form: of the product.
    """
    return (
        form.rows == ROWS
        and form.sums in _SUMS_OF.get(form.a, ())
        and form.b in _BESIDE.get(form.a, (form.a,))
        and form.columns in (_COLUMNS_OF_INTEGERS if form.sums == "s32" else _COLUMNS)
        and form.k * bits_of(form.a) == 8 * warpgroups.STEP_BYTES * (1 + form.is_sparse)
        and not (form.a == "b1" and (form.saturates or form.is_sparse))
    )


def check_product(op: Instruction, form: Product) -> None:
    """Checks the types and the shape of a product.

    Args:
        op: the instruction.
        form: of the product.

    Raises:
        Unsupported: types or a shape that wgmma does not have.
    """
    if not is_known(form):
        raise Unsupported(op, f"of {form.rows}x{form.columns}x{form.k} and {form.a} by {form.b}")


def multiply(
    fiber: Fiber,
    op: Instruction,
    form: Product,
    sums: AccumulatorRegisters,
    a: Value,
    b: Value,
    *,
    keeps: Value = None,
    registers: np.ndarray | None = None,
    sparsity: Sparsity | None = None,
) -> AccumulatorRegisters:
    """Begins products of the active warpgroups.

    Args:
        fiber: the threads, in whole warpgroups.
        op: the instruction.
        form: types and shape of the product.
        sums: the accumulators.
        a, b: descriptors of the operands in shared memory, uniform or (T,).
        keeps: in place of that of the form, uniform or (T,).
        registers: A in registers, (T, registers), in place of `a`.
        sparsity: the metadata of a sparse product.

    Returns:
        The accumulators, which are in flight.
    """
    result = sums.after()
    dtype = np.dtype(_SUMS[form.sums])
    cache: dict = {}
    for warpgroup in asynchronous.warpgroups(fiber, op):
        operands = [
            _operand(_agreed(op, warpgroup, value, "matrix descriptors"), type_, along, negative)
            for value, type_, along, negative in zip((a, b), (form.a, form.b), form.along_k, form.negated)
        ]
        if registers is not None:
            matrix = warpgroups.matrix_of(registers[warpgroup.lanes], form.a)
            operands[0] = Operand(None, form.a, True, form.negated[0], matrix)
        warpgroups.multiply(
            warpgroup,
            op,
            fiber,
            result,
            form.columns,
            *operands,
            dtype=dtype,
            keeps=form.keeps if keeps is None else bool(_agreed(op, warpgroup, keeps, "values of scale-d")),
            saturates=form.saturates,
            cache=cache,
            sparsity=sparsity,
        )
    return result


@functools.lru_cache(maxsize=256)
def _operand(bits: int, type_: str, along_k: bool, is_negated: bool) -> Operand:
    return Operand(MatrixDescriptor.decode(bits), type_, along_k, is_negated)


def _agreed(op: Instruction, warpgroup: Warpgroup, value: Value, label: str) -> int:
    """Returns the number of a warpgroup; a finding where its threads have different ones."""
    if not isinstance(value, np.ndarray):
        return int(value)
    own = value[warpgroup.lanes]
    if (own != own[0]).any():
        warpgroup.group.sanitizer.report("descriptor", f"the threads of a warpgroup have different {label}", op)
    return int(own[0])
