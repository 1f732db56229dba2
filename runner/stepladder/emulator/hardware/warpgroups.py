"""Products of warpgroups (wgmma): operands in shared memory, accumulators in registers."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.hardware import fragments, register_operands, shared_memory_layouts
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.hardware.asynchronous import Warpgroup, bytes_touched, granules_of
from stepladder.emulator.hardware.shared_memory_layouts import MatrixDescriptor
from stepladder.emulator.memory.touches import Granules, Touch

if TYPE_CHECKING:
    from stepladder.emulator.hardware.sparse_operands import Sparsity
    from stepladder.emulator.memory.memory import Allocation

ROWS = 64  # of one instruction
STEP_BYTES = 32  # of A along k, for every type; B of a sparse product has twice as many

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
_HELD = {**TYPES, "b1": np.uint8}  # eight elements of one bit each
_UNIT = np.dtype(np.complex128)  # of 16 bytes, which are moved and never interpreted
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
    """Returns operands converted to a type in which their products are exact: float32, or int32 for integers.

    Args:
        values: array of any shape; its last dimension is k for elements of one bit.
        type_: the PTX type of the operands.
    """
    if type_ == "tf32":
        return fragments.as_tf32(values)
    if type_ == "b1":
        return np.unpackbits(values, axis=-1, bitorder="little").astype(np.int32)
    return values.astype(np.int32 if type_ in ("s8", "u8") else np.float32)


def added(sums: np.ndarray, products: np.ndarray, *, saturates: bool = False) -> np.ndarray:
    """Returns the accumulator plus the products of one instruction, in the accumulator type.

    The hardware does not say in which order it adds the products of one instruction, nor with how many bits where they
    are of 8 bits: here they are added in float32, and the result is rounded once to the accumulator type.

    Args:
        sums: of any shape, in their own type; or one scalar.
        products: of the same shape, float32 or int32; they are not kept.
        saturates: whether integers stop at the limits of their type; else they wrap around.
    """
    if products.dtype == sums.dtype == np.float32:
        return np.add(sums, products, out=products)
    if products.dtype.kind == "f":
        return (sums.astype(np.float32) + products).astype(sums.dtype)
    total = sums.astype(np.int64) + products
    if saturates:
        total = np.clip(total, *(getattr(np.iinfo(sums.dtype), name) for name in ("min", "max")))
    return total.astype(sums.dtype)


def matrix_of(registers: np.ndarray, type_: str) -> np.ndarray:
    """Returns the operand A of wgmma, (64, k), that a warpgroup holds in registers.

    Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16": each warp holds 16 rows, as for mma.sync.

    Args:
        registers: array (128, registers) of 32 bits each.
        type_: the PTX type of the elements.
    """
    dtype = np.dtype(_HELD[type_])
    fragment = fragments.mma_a(ROWS // 4, STEP_BYTES // dtype.itemsize, 8 * dtype.itemsize)
    elements = np.ascontiguousarray(registers, np.int32)[..., None].view(dtype)
    return fragment.join(elements.reshape(4, fragments.WARP, *elements.shape[1:])).reshape(ROWS, -1)


def fence(warpgroups: list[Warpgroup]) -> None:
    """Orders earlier accesses of threads to registers before the products that use these.

    Args:
        warpgroups: that execute the fence.
    """
    for warpgroup in warpgroups:
        warpgroup.is_fenced = True
        warpgroup.unfenced = frozenset()


def multiply(
    warpgroup: Warpgroup,
    op: Instruction,
    fiber: Fiber,
    sums: AccumulatorRegisters,
    columns: int,
    a: Operand,
    b: Operand,
    *,
    dtype: np.dtype,
    number: int | None = None,
    keeps: bool = True,
    saturates: bool = False,
    cache: dict | None = None,
    sparsity: Sparsity | None = None,
) -> None:
    """Begins a product of a warpgroup.

    Args:
        warpgroup: that multiplies.
        op: the instruction.
        fiber: the threads.
        sums: the accumulator of the product, which is marked as in flight.
        columns: N of the instruction.
        a, b: the operands, in shared memory or registers.
        dtype: of the accumulator's elements.
        number: of the accumulator among those of a thread; None where it has one.
        keeps: whether the product is added to the accumulator; else it replaces it.
        saturates: whether sums of integers saturate.
        cache: operands that other warpgroups have read for the same instruction.
        sparsity: the metadata of an A with half of its elements.
    """
    group = warpgroup.group
    item = np.dtype(_HELD[a.type]).itemsize
    k_of_a = STEP_BYTES // item
    k = k_of_a if sparsity is None else 2 * k_of_a
    if not sums.products and not warpgroup.is_fenced:
        before = "the write to its accumulators" if keeps else "the last access to its accumulator registers"
        group.sanitizer.report("order", f"no wgmma.fence between {before} and the product", op)
    if not warpgroup.unfenced.isdisjoint(op.attributes.get(register_operands.SLOTS, ())):
        group.sanitizer.report("order", "no wgmma.fence between the write to its A registers and the product", op)
    values, touches = [], []
    for operand, rows, length in ((a, ROWS, k_of_a), (b, columns, k)):
        if not operand.along_k and operand.type not in _TRANSPOSABLE:
            group.sanitizer.report("descriptor", f"an operand of {operand.type} must be K-major", op)
        values_and_touch = _read(warpgroup, op, fiber, operand, rows, length, item, cache)
        values.append(values_and_touch[0])
        touches.append(values_and_touch[1])
    if sparsity is not None:
        lanes = np.arange(warpgroup.lanes.start, warpgroup.lanes.stop).reshape(-1, fragments.WARP)
        packed_elements = values[0].reshape(len(lanes), -1, k_of_a)
        values[0] = sparsity.expand(fiber, op, packed_elements, lanes, 8 * item).reshape(ROWS, k)
    product = values[0] @ values[1].T
    if a.negated != b.negated:
        product = -product
    lane = warpgroup.lanes.start
    before = sums.matrix(lane, number, columns, dtype) if keeps else np.zeros((), dtype)
    sums.put(lane, number, added(before, product, saturates=saturates))
    sums.products = [*(product for product in sums.products if not product.is_done), warpgroup.begin(op, touches)]
    if group.counters is not None:
        group.counters.products(fiber, op, ROWS * columns * k, warps=len(warpgroup.warps))


class _Place:
    """Where an operand is in the shared memory of a cluster.

    Attributes:
        elements: int array (rows, k), in elements from the first of shared memory.
        end: the byte of its block's shared memory where it ends.
        units: its pieces of 16 bytes, in the order in which `gather` takes them; None where they are not aligned.
    """

    def __init__(
        self, descriptor: MatrixDescriptor, base: int, shape: tuple[int, int], item: int, *, along_k: bool
    ) -> None:
        addresses = descriptor.addresses(*shape, item, along_k=along_k)
        self.shape = shape
        self.along_k = along_k
        self.end = int(addresses.max()) + item
        self.elements = (base + addresses) // item
        self.per = shared_memory_layouts.UNIT // item
        self.starts = base + (addresses[:, :: self.per] if along_k else addresses[:: self.per])
        is_aligned = not (self.starts % shared_memory_layouts.UNIT).any()
        self.units = self.starts // shared_memory_layouts.UNIT if is_aligned else None
        self._granules: dict[int, Granules] = {}

    def gather(self, window: Allocation, dtype: np.dtype) -> np.ndarray:
        """Returns the elements as they are in shared memory, an array (rows, k)."""
        if self.units is None:
            return window.typed(dtype)[self.elements]
        elements = window.typed(_UNIT)[self.units].view(dtype)
        if self.along_k:
            return elements
        rows, k = self.shape
        return elements.reshape(-1, k, self.per).swapaxes(1, 2).reshape(rows, k)

    def granules(self, granule: int) -> Granules:
        """Returns its granules of `granule` bytes."""
        if granule not in self._granules:
            self._granules[granule] = granules_of(self.starts, shared_memory_layouts.UNIT, granule)
        return self._granules[granule]


@functools.lru_cache(maxsize=256)
def _place(
    descriptor: MatrixDescriptor, base: int, rows: int, k: int, item: int, size: int, along_k: bool
) -> _Place | int:
    """Returns where an operand is; the byte where it ends if that is outside of shared memory of `size` bytes."""
    place = _Place(descriptor, base, (rows, k), item, along_k=along_k)
    return place if place.end <= size else place.end


def _read(
    warpgroup: Warpgroup,
    op: Instruction,
    fiber: Fiber,
    operand: Operand,
    rows: int,
    k: int,
    item: int,
    cache: dict | None,
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
    if operand.along_k and 0 < descriptor.swizzle < k * item:
        text = f"an operand has {k * item} bytes along k, more than the {descriptor.swizzle} of the swizzle"
        group.sanitizer.report("descriptor", text, op)
    base = warpgroup.block * window.size
    dtype = np.dtype(_HELD[operand.type])
    place = _place(descriptor, base, rows, k, item, window.size, operand.along_k)
    if isinstance(place, int):
        group.sanitizer.report(
            "out-of-bounds",
            f"an operand ends at byte {place} of shared memory, and a block has {window.size}",
            op,
        )
        return _read_inside(warpgroup, operand, rows, k, item)
    key = place, operand.type
    values = None if cache is None else cache.get(key)
    if values is None:
        values = exact(place.gather(window, dtype), operand.type)
        if cache is not None:
            cache[key] = values
    sanitizer = group.sanitizer
    if not sanitizer.enabled:
        return values, None
    granule = sanitizer.granule_of(window)
    return values, Touch.once(window, warpgroup.agent, place.granules(granule), granule)


def _read_inside(
    warpgroup: Warpgroup, operand: Operand, rows: int, k: int, item: int
) -> tuple[np.ndarray, Touch | None]:
    """Returns what there is of an operand that ends outside of shared memory, as `_read` does."""
    window, descriptor = warpgroup.group.shared, operand.descriptor
    assert descriptor is not None
    unit = shared_memory_layouts.UNIT
    addresses = descriptor.addresses(rows, k, item, along_k=operand.along_k)
    addresses = np.minimum(addresses, (window.size - unit) // unit * unit)
    base = warpgroup.block * window.size
    values = window.typed(np.dtype(_HELD[operand.type]))[(base + addresses) // item]
    units = addresses[:, :: unit // item] if operand.along_k else addresses[:: unit // item]
    return exact(values, operand.type), bytes_touched(warpgroup.group, window, warpgroup.agent, base + units, unit)
