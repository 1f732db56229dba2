"""Products of warpgroups (wgmma).

Sums stay in their registers while they are in flight (`dialects.llvm.Held`): a read before a wait is a finding.
Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.dialects import nvvm_wgmma
from stepladder.emulator.dialects.llvm import Held
from stepladder.emulator.hardware import register_operands, sparse_operands, warpgroups
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.hardware.sparse_operands import Sparsity
from stepladder.emulator.ptx import syntax, whole_sums
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.site import bits_of
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_B64 = PtxType("b64", "b", 64)
_B32 = PtxType("b32", "b", 32)
_PRED = PtxType("pred", "pred", 1)
_SUMS = {"f32": np.dtype(np.float32), "f16": np.dtype(np.int32), "s32": np.dtype(np.int32)}
_TRANSPOSED = ("f16", "bf16")
_A_REGISTERS = 4  # of a thread, for every type


@instruction("wgmma.fence", "wgmma.commit_group", waits=True)
def fence(site: Site) -> None:
    """Orders registers before products; or makes a group of products."""
    site.choice(("sync",))
    site.choice(("aligned",))
    site.count(0)
    commits = site.family.endswith("commit_group")
    site.emit(nvvm_wgmma.wgmma_commit if commits else nvvm_wgmma.wgmma_fence, (), ())


@instruction("wgmma.wait_group", waits=True)
def wait(site: Site) -> None:
    """Waits for all groups of products but the latest."""
    site.choice(("sync",))
    site.choice(("aligned",))
    site.count(1)
    site.emit(nvvm_wgmma.wgmma_wait, (), (), {"group": site.number(0)})


class _Form(NamedTuple):
    """A `wgmma.mma_async` as its modifiers and immediate operands state it.

    Attributes:
        product: what is multiplied.
        registers: of the accumulator.
        held_a: the registers of A; empty where A is in shared memory.
        scale: operand `scale-d`, by its index.
        selector: of a sparse A.
    """

    product: nvvm_wgmma.Product
    registers: Sequence[syntax.Operand]
    held_a: Sequence[syntax.Operand]
    scale: int
    selector: int


def _form(site: Site) -> _Form:
    """Consumes the modifiers of a product, and refuses forms that the instruction does not have."""
    is_sparse = site.family.endswith(".sp")
    site.choice(("sync",))
    site.choice(("aligned",))
    shape = site.match(r"m(\d+)n(\d+)k(\d+)")
    saturates = site.flag("satfinite")
    of_bits = [match[0] for match in (site.match("b1"), site.match("b1")) if match]
    type_names = [*(type_.name for type_ in site.types()), *of_bits]
    if shape is None or len(type_names) != 3:
        raise site.error("without a shape and three types: expected a shape, then the types of D, A and B")
    rows, columns, k = (int(number) for number in shape.groups())
    sums_type, a, b = type_names
    if saturates and sums_type != "s32":
        raise site.error("with .satfinite: only sums of .s32 have it")
    if of_bits:
        site.choice(("and",))
        site.choice(("popc",))
    if sums_type not in _SUMS:
        raise site.error(f"with sums of .{sums_type}: expected one of .{', .'.join(_SUMS)}")
    registers = site.elements(0)
    if len(registers) != columns // (4 if sums_type == "f16" else 2):
        raise site.error(f"with {len(registers)} registers for its sums")
    held_a = site.operands[1].elements if isinstance(site.operands[1], syntax.Vector) else ()
    if held_a and len(held_a) != _A_REGISTERS:
        raise site.error(f"with {len(held_a)} registers for A")
    scale = 5 if is_sparse else 3  # operands before scale-d: also metadata and its selector
    signs, are_transposed = _immediates(site, scale + 1, sums_type, a, held_a=bool(held_a))
    product = nvvm_wgmma.Product(
        rows,
        columns,
        k,
        a,
        b,
        sums_type,
        (not are_transposed[0], not are_transposed[1]),
        (signs[0] < 0, signs[1] < 0),
        True,
        saturates,
        is_sparse,
    )
    if not nvvm_wgmma.is_known(product):
        raise site.error("of this shape and these types: PTX has no such product")
    return _Form(product, registers, held_a, scale, _selector(site, a, k) if is_sparse else 0)


@instruction("wgmma.mma_async", "wgmma.mma_async.sp", waits=True)
def multiply(site: Site) -> None:
    """Begins a product of two operands in shared memory, or of A in registers; a sparse A has half of its elements."""
    form, registers, held_a, scale_place, selector = _form(site)
    is_sparse, sums_type = site.family.endswith(".sp"), form.sums
    slots = [site.write(register, 32) for register in registers]
    metadata = [site.read(3, _B32)] if is_sparse else []

    def execute(fiber: Fiber, op: Instruction, right: Value, keeps: Value, *others: Value) -> Value:
        sum_registers, left = others[: len(slots)], others[len(slots) :]
        dtype = _SUMS[sums_type]
        # Registers that nothing has written may be replaced, as those of outputs of inline PTX alone.
        is_new = keeps is False and all(value is None for value in sum_registers)
        sums = AccumulatorRegisters(np.zeros((fiber.count, len(sum_registers)), dtype)) if is_new else None
        result = begin(fiber, op, right, keeps, sums or _sums(fiber, op, sum_registers, dtype), left)
        return [Held(result, place) for place in range(len(sum_registers))]

    def whole(fiber: Fiber, op: Instruction, right: Value, keeps: Value, struct: Value, *left: Value) -> Value:
        sums = whole_sums.sums_of(fiber, op, struct)
        if isinstance(sums, list):
            sums = _sums(fiber, op, sums, _SUMS[sums_type])
        return begin(fiber, op, right, keeps, sums, left)

    def begin(
        fiber: Fiber, op: Instruction, right: Value, keeps: Value, sums: AccumulatorRegisters, left: Sequence[Value]
    ) -> AccumulatorRegisters:
        right = bits_of(fiber, op, right)
        sparsity = None
        if is_sparse:
            sparsity = Sparsity(bits_of(fiber, op, left[-1]), selector, is_ordered=True, rows=warpgroups.ROWS)
            left = left[:-1]
        if held_a:
            columns_of_a = np.stack([lanes_of(fiber, bits_of(fiber, op, value)) for value in left], axis=1)
            return nvvm_wgmma.multiply(
                fiber, op, form, sums, 0, right, keeps=keeps, registers=columns_of_a, sparsity=sparsity
            )
        return nvvm_wgmma.multiply(fiber, op, form, sums, left[0], right, keeps=keeps, sparsity=sparsity)

    scale = site.operands[scale_place]
    if isinstance(scale, syntax.Number):
        keeps = site.scope.slots.constant(("keeps", bool(scale.value)), 1, bool(scale.value))
    else:
        keeps = site.read(scale, _PRED)
    of_a = [site.read(register, _B32) for register in held_a] or [site.read(1, _B64)]
    attributes = {whole_sums.SUMS: len(slots), whole_sums.WHOLE: whole}
    if held_a:
        attributes[register_operands.SLOTS] = tuple(of_a)
    site.emit(execute, [site.read(2, _B64), keeps, *slots, *of_a, *metadata], slots, attributes, holds=True)


def _immediates(site: Site, first: int, sums: str, a: str, *, held_a: bool) -> tuple[list[int], list[int]]:
    """Returns the signs of A and B, and whether they are transposed, of the operands from `first` on.

    Raises:
        StepladderError: other operands than the types have.
    """
    of_signs = 0 if sums == "s32" else 2
    of_layouts = (1 if held_a else 2) if a in _TRANSPOSED else 0
    count = site.count(first + of_signs + of_layouts)
    numbers = [site.number(place) for place in range(first, count)]
    for number, accepted in zip(numbers, [(-1, 1)] * of_signs + [(0, 1)] * of_layouts):
        if number not in accepted:
            raise site.error(f"with the operand {number}: expected {accepted[0]} or {accepted[1]}")
    layouts = numbers[of_signs:]
    return numbers[:of_signs] or [1, 1], [*[0] * (2 - len(layouts)), *layouts]


def _selector(site: Site, type_: str, k: int) -> int:
    """Returns the sparsity selector.

    Raises:
        StepladderError: one that the product does not have.
    """
    selector, count = site.number(4), sparse_operands.selectors(nvvm_wgmma.bits_of(type_), k)
    if not 0 <= selector < count:
        raise site.error(f"with the sparsity selector {selector}: expected less than {count}")
    return selector


def lanes_of(fiber: Fiber, value: Value) -> np.ndarray:
    """Returns the bits of a 32-bit register for each lane: int32 array (T,).

    Args:
        fiber: the threads.
        value: uniform or (T,).
    """
    return values.lanes(np.asarray(value, np.int32), fiber.count)


def _sums(fiber: Fiber, op: Instruction, registers: Sequence[Value], dtype: np.dtype) -> AccumulatorRegisters:
    """Returns the sums that a product adds to: those of another one, which may be in flight, or scalars."""
    sums = registers[0].sums if type(registers[0]) is Held else None
    for place, value in enumerate(registers):
        if type(value) is not Held or value.sums is not sums or value.place != place:
            break
    else:
        assert sums is not None
        return sums
    if all(type(value) is Held for value in registers):
        array = np.stack([value.sums.array[:, value.place] for value in registers], axis=1)
        products = {id(product): product for value in registers for product in value.sums.products}
        return AccumulatorRegisters(array.view(dtype), list(products.values()))
    columns = [lanes_of(fiber, bits_of(fiber, op, value)) for value in registers]
    return AccumulatorRegisters(np.ascontiguousarray(np.stack(columns, axis=1)).view(dtype))
