"""Products of warpgroups (wgmma): operands in shared memory, accumulators in registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.hardware import fragments, shared_memory_layouts
from stepladder.emulator.hardware.asynchronous import AccumulatorRegisters, Warpgroup, bytes_touched
from stepladder.emulator.hardware.shared_memory_layouts import MatrixDescriptor

if TYPE_CHECKING:
    from stepladder.emulator.memory.shadow import Touch

ROWS = 64  # of one instruction
STEP_BYTES = 32  # of it along k, for every type

# Element types of operands, by PTX's names.
TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
}
_TRANSPOSABLE = ("f16", "bf16")


@dataclass(frozen=True)
class Operand:
    """A or B of one instruction.

    Attributes:
        descriptor: where it is in shared memory; None for A in registers, whose elements are `values` (rows, k).
        type: of its elements, by PTX's name.
        along_k: whether neighbours in memory are neighbours along k.
    """

    descriptor: MatrixDescriptor | None
    type: str
    along_k: bool
    negated: bool = False
    values: np.ndarray | None = None


def exact(values: np.ndarray, type_: str) -> np.ndarray:
    """Returns operands in a type that has their products exactly: float32, or int32 for integers."""
    if type_ == "tf32":
        return fragments.as_tf32(values)
    return values.astype(np.int32 if type_ in ("s8", "u8") else np.float32)


def added(sums: np.ndarray, products: np.ndarray, *, saturates: bool = False) -> np.ndarray:
    """Returns the accumulator plus the products of one instruction, in the accumulator type.

    The hardware does not say in which order it adds the products of one instruction, nor with how many bits where they
    are of 8 bits: here they are added in float32, and the result is rounded once to the accumulator type.

    Args:
        sums: of any shape, in their own type.
        products: of the same shape, float32 or int32.
        saturates: whether integers stop at the limits of their type; else they wrap around.
    """
    if products.dtype.kind == "f":
        return (sums.astype(np.float32) + products).astype(sums.dtype)
    total = sums.astype(np.int64) + products
    if saturates:
        total = np.clip(total, *(getattr(np.iinfo(sums.dtype), name) for name in ("min", "max")))
    return total.astype(sums.dtype)


def matrix_of(registers: np.ndarray, type_: str) -> np.ndarray:
    """Returns A, (64, k), that a warpgroup holds in registers of 32 bits: (128, registers).

    Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16": of each warp 16 rows, as for mma.sync.
    """
    dtype = np.dtype(TYPES[type_])
    fragment = fragments.mma_a(ROWS // 4, STEP_BYTES // dtype.itemsize, 8 * dtype.itemsize)
    held = np.ascontiguousarray(registers, np.int32)[..., None].view(dtype)
    return fragment.join(held.reshape(4, fragments.WARP, *held.shape[1:])).reshape(ROWS, -1)


def fence(warpgroups: list[Warpgroup]) -> None:
    """Orders what threads did to registers before products that use them."""
    for warpgroup in warpgroups:
        warpgroup.is_fenced = True


def multiply(
    warpgroup: Warpgroup,
    op: Instruction,
    fiber: Fiber,
    sums: AccumulatorRegisters,
    held: np.ndarray,
    columns: int,
    a: Operand,
    b: Operand,
    *,
    keeps: bool = True,
    saturates: bool = False,
) -> None:
    """Begins a product of a warpgroup.

    Args:
        sums: the accumulator of the product, which is marked as in flight.
        held: the accumulators of each thread, an array (128, columns / 2), changed in place.
        columns: N of the instruction.
        keeps: whether the product is added to the accumulator; else it replaces it.
    """
    group = warpgroup.group
    item = np.dtype(TYPES[a.type]).itemsize
    k = STEP_BYTES // item
    if not sums.products and not warpgroup.is_fenced:
        before = "what wrote its sums" if keeps else "what used the registers of its sums"
        group.sanitizer.report("order", f"no wgmma.fence is between it and {before}", op)
    values, touches = [], []
    for operand, rows in ((a, ROWS), (b, columns)):
        if not operand.along_k and operand.type not in _TRANSPOSABLE:
            group.sanitizer.report("descriptor", f"{operand.type} is read along k only", op)
        read = _read(warpgroup, op, fiber, operand, rows, k, item)
        values.append(read[0])
        touches.append(read[1])
    product = values[0] @ values[1].T
    if a.negated != b.negated:
        product = -product
    held[...] = added(
        held if keeps else np.zeros_like(held), fragments.accumulator(columns).divide(product), saturates=saturates
    )
    sums.products = [*(product for product in sums.products if not product.is_done), warpgroup.begin(op, touches)]
    if group.counters is not None:
        group.counters.products(fiber, op, ROWS * columns * k, warps=len(warpgroup.warps))


def _read(
    warpgroup: Warpgroup, op: Instruction, fiber: Fiber, operand: Operand, rows: int, k: int, item: int
) -> tuple[np.ndarray, Touch | None]:
    """Returns an operand as an array (rows, k) in a type for exact products, and its Touch."""
    group = warpgroup.group
    window = group.shared
    descriptor = operand.descriptor
    if descriptor is None:
        assert operand.values is not None
        return exact(operand.values, operand.type), None
    if not descriptor.is_aligned and not descriptor.base:
        group.sanitizer.misaligned(fiber, op, descriptor.start, shared_memory_layouts.GROUP * descriptor.swizzle)
    addresses = descriptor.addresses(rows, k, item, along_k=operand.along_k)
    if addresses.max() + item > window.size:
        group.sanitizer.report(
            "out-of-bounds",
            f"an operand ends at byte {addresses.max() + item} of shared memory, and a block has {window.size}",
            op,
        )
        addresses = np.minimum(
            addresses,
            (window.size - shared_memory_layouts.UNIT) // shared_memory_layouts.UNIT * shared_memory_layouts.UNIT,
        )
    base = warpgroup.block * window.size
    values = window.typed(np.dtype(TYPES[operand.type]))[(base + addresses) // item]
    per = shared_memory_layouts.UNIT // item
    units = addresses[:, ::per] if operand.along_k else addresses[::per]
    return exact(values, operand.type), bytes_touched(
        group, window, warpgroup.agent, base + units, shared_memory_layouts.UNIT
    )
