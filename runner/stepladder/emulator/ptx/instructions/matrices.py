"""Matrices of a warp: ldmatrix, stmatrix, movmatrix, mma.sync, and wmma.

Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.types import Opaque
from stepladder.emulator.dialects import nvgpu, nvvm_matrix, nvvm_mbarrier, nvvm_wmma
from stepladder.emulator.dialects.llvm import Struct
from stepladder.emulator.hardware import fragments, sparse_operands
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.hardware.sparse_operands import Sparsity
from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.instructions import addresses
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_B32 = PtxType("b32", "b", 32)
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_SHARED = Opaque("!llvm.ptr<3>")
_GENERIC = Opaque("!llvm.ptr")


@instruction("ldmatrix.sync", "stmatrix.sync")
def move_matrices(site: Site) -> None:
    """Loads or stores one, two or four 8 x 8 matrices of 16 bits."""
    site.choice(("aligned",))
    site.choice(("m8n8",))
    count = _COUNTS[site.choice(tuple(_COUNTS))]
    is_transposed = site.flag("trans")
    site.choice(("shared", "shared::cta"), "")
    if site.type("b", (16,)).count != 1:
        raise site.error("with .b16x2: expected .b16")
    site.count(2)
    loads = site.family.startswith("ld")
    registers = site.elements(0 if loads else 1)
    base, offset = site.address(1 if loads else 0)
    if len(registers) != count:
        raise site.error(f"with {len(registers)} registers for {count} matrices")
    attributes = {"num": count, "layout": "<col>" if is_transposed else "<row>", "eltType": "b16"}
    if loads:

        def load(fiber: Fiber, op: Instruction, address: Value) -> Value:
            fragment = nvvm_matrix.ldmatrix(fiber, op, addresses.at(address, offset))
            if isinstance(fragment, AccumulatorRegisters):
                return tuple(fragment.array[:, number] for number in range(count))
            return fragment

        site.emit(load, [base], [site.write(register, 32) for register in registers], attributes)
        return

    def store(fiber: Fiber, op: Instruction, address: Value, *register_values: Value) -> None:
        nvvm_matrix.stmatrix(
            fiber, op, addresses.at(address, offset), *(np.asarray(value, np.int32) for value in register_values)
        )

    site.emit(store, [base, *(site.read(register, _B32) for register in registers)], (), attributes)


@instruction("movmatrix.sync")
def movmatrix(site: Site) -> None:
    """The 8 x 8 matrix that the threads of a warp hold, transposed."""
    for name in ("aligned", "m8n8", "trans"):
        site.choice((name,))
    site.type("b", (16,))
    site.count(2)
    site.emit(nvvm_mbarrier.movmatrix, [site.read(1, _B32)], [site.write(0, 32)])


# mma.sync.


def held(fiber: Fiber, registers: tuple, type_: PtxType) -> np.ndarray:
    """Returns the bits of registers as the elements of a matrix: (T, registers, elements of one register).

    Args:
        fiber: the threads.
        registers: their values, each uniform or (T,).
        type_: of an element.
    """
    width = 64 if type_.bits == 64 else 32
    columns = [values.lanes(np.asarray(value, f"i{width // 8}"), fiber.count) for value in registers]
    elements = np.ascontiguousarray(np.stack(columns, axis=1)[..., None])
    if type_.bits < 8:
        return fragments.narrow(elements, type_.bits, type_.kind == "s")
    return elements.view(type_.dtype if type_.kind != "s" else np.dtype(f"i{type_.bits // 8}"))


def registers_of(array: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns elements of a matrix as the bits of registers, each (T,).

    Args:
        array: (T, registers, elements of one register).
    """
    width = array.shape[2] * array.itemsize
    bits = np.ascontiguousarray(array).view(f"i{width}")[..., 0]
    return tuple(np.ascontiguousarray(bits[:, number]) for number in range(bits.shape[1]))


# Shapes by the type of A and B: source as above, "Matrix Fragments".
_SHAPES = {
    "f16": ((16, 8, 8), (16, 8, 16)),
    "bf16": ((16, 8, 8), (16, 8, 16)),
    "tf32": ((16, 8, 4), (16, 8, 8)),
    "f64": ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)),
    "s8": ((8, 8, 16), (16, 8, 16), (16, 8, 32)),
    "s4": ((8, 8, 32), (16, 8, 32), (16, 8, 64)),
    "b1": ((8, 8, 128), (16, 8, 128), (16, 8, 256)),
    "e4m3": ((16, 8, 16), (16, 8, 32)),
}


# Of products whose A has half of its elements.
_SPARSE_SHAPES = {
    "f16": ((16, 8, 16), (16, 8, 32)),
    "bf16": ((16, 8, 16), (16, 8, 32)),
    "tf32": ((16, 8, 8), (16, 8, 16)),
    "s8": ((16, 8, 64),),
    "s4": ((16, 8, 128),),
    "e4m3": ((16, 8, 64),),
}

_SUMS = {
    "f16": ("f16", "f32"),
    "e4m3": ("f16", "f32"),
    "f64": ("f64",),
    **dict.fromkeys(("s8", "s4", "b1"), ("s32",)),
}
_ALIKE = {"u8": "s8", "u4": "s4", "e5m2": "e4m3"}  # types that may be multiplied with each other
_NARROW = {"s4": PtxType("s4", "s", 4), "u4": PtxType("u4", "u", 4), "b1": PtxType("b1", "u", 1)}


@instruction("mma.sync", "mma.sp.sync", "mma.sp::ordered_metadata.sync")
def mma(site: Site) -> None:
    """A product of a warp, of fragments in registers; of a sparse one, A has half of its elements."""
    is_sparse, is_ordered = site.family != "mma.sync", "ordered" in site.family
    (rows, columns, k), (a, b, c), saturates = _form_of_mma(site, is_sparse=is_sparse)
    is_binary = a.name == "b1"
    differs = is_binary and site.choice(("xor", "and")) == "xor"
    if is_binary:
        site.choice(("popc",))
    site.count(6 if is_sparse else 4)
    parts = [site.elements(number) for number in (1, 2, 3)]
    width = 64 if c.bits == 64 else 32
    inner = 64 if a.bits == 64 else 32
    reads = [
        site.read(register, PtxType(f"b{size}", "b", size))
        for part, size in zip(parts, (inner, inner, width))
        for register in part
    ]
    counts = [len(part) for part in parts]
    expected_counts = _register_counts(rows, columns, k, a, c)
    if is_sparse:
        expected_counts[0] //= 2
        reads.append(site.read(4, _B32))
    if counts != expected_counts:
        raise site.error(f"with {', '.join(map(str, counts))} registers for A, B and C")
    selector = _selector(site, a.bits, k) if is_sparse else 0

    def execute(fiber: Fiber, op: Instruction, *registers: Value) -> Value:
        first, second = counts[0], counts[0] + counts[1]
        left = held(fiber, registers[:first], a)
        right = held(fiber, registers[first:second], b)
        sums = held(fiber, registers[second : sum(counts)], c).reshape(fiber.count, -1, 2)
        result = nvgpu.multiply_in_warps(
            fiber,
            op,
            left,
            right,
            sums,
            (rows, columns, k),
            tf32=a.name == "tf32",
            saturates=saturates,
            differs=differs,
            sparsity=Sparsity(registers[-1], selector, is_ordered) if is_sparse else None,
        )
        return registers_of(result.reshape(fiber.count, counts[2], -1))

    site.emit(execute, reads, [site.write(register, width) for register in site.elements(0)])


def _form_of_mma(site: Site, *, is_sparse: bool) -> tuple[tuple[int, int, int], tuple[PtxType, PtxType, PtxType], bool]:
    """Consumes the modifiers of a product up to its types, and refuses forms that the instruction does not have.

    Returns:
        Rows, columns and k; the types of A, B and the sums; whether the sums saturate.
    """
    site.choice(("aligned",))
    shape = site.match(r"m(\d+)n(\d+)k(\d+)")
    layouts = [modifier for modifier in site.rest if modifier in ("row", "col")]
    if layouts != ["row", "col"]:
        raise site.error("with these layouts: expected .row.col")
    site.flag("row", "col")
    saturates = site.flag("satfinite")
    site.flag("kind::f8f6f4")
    narrow = [_NARROW[match[0]] for match in (site.match("[su]4|b1"), site.match("[su]4|b1")) if match]
    operand_types = site.types()
    if narrow:
        operand_types[1:1] = narrow
    if shape is None or len(operand_types) != 4:
        names = ", ".join(f".{type_.name}" for type_ in operand_types) or "none"
        raise site.error(f"with the types {names}: expected a shape, then the types of D, A, B and C")
    d, a, b, c = operand_types
    if saturates and d.name != "s32":
        raise site.error("with .satfinite: only sums of .s32 have it")
    rows, columns, k = (int(number) for number in shape.groups())
    kind, other = (_ALIKE.get(type_.name, type_.name) for type_ in (a, b))
    shapes = _SPARSE_SHAPES if is_sparse else _SHAPES
    if kind != other or d.name != c.name:
        raise site.error("with these types: expected one type of A and B, and one of C and D")
    if (rows, columns, k) not in shapes.get(kind, ()):
        names = ", ".join(f"m{m}n{n}k{k}" for m, n, k in shapes.get(kind, ())) or "another type"
        raise site.error(f"of this shape and .{a.name}: expected one of {names}")
    sums = _SUMS.get(kind, ("f32",))
    if d.name not in sums:
        raise site.error(f"with sums of .{d.name}: expected .{' or .'.join(sums)}")
    return (rows, columns, k), (a, b, c), saturates


def _selector(site: Site, bits: int, k: int) -> int:
    """Returns the sparsity selector of a product.

    Raises:
        StepladderError: one that the product does not have.
    """
    selector, count = site.number(5), sparse_operands.selectors(bits, k)
    if not 0 <= selector < count:
        raise site.error(f"with the sparsity selector {selector}: expected less than {count}")
    return selector


def _register_counts(rows: int, columns: int, k: int, a: PtxType, c: PtxType) -> list[int]:
    """Returns how many registers a thread has for A, B and C."""
    per, sums = max(1, 32 // a.bits), max(1, 32 // c.bits)
    return [rows * k // 32 // per, columns * k // 32 // per, rows * columns // 32 // sums]


# wmma.


def _attributes(site: Site, operand: str, type_: PtxType) -> dict:
    shape = site.match(r"m(\d+)n(\d+)k(\d+)")
    if shape is None:
        raise site.error("without a shape: expected one such as .m16n16k16")
    m, n, k = (int(number) for number in shape.groups())
    return {"m": m, "n": n, "k": k, "eltype": f"<{type_.name}>", "frag": f"<{operand}>"}


@instruction("wmma.load", "wmma.store")
def move_fragment(site: Site) -> None:
    """Loads or stores a matrix of a warp."""
    loads = site.family.endswith("load")
    operand = site.choice(("a", "b", "c") if loads else ("d",))
    site.choice(("sync",))
    site.choice(("aligned",))
    layout = site.choice(("row", "col"))
    space = site.choice(("global", "shared", "shared::cta"), "")
    (type_,) = site.types(1)
    attributes = _attributes(site, operand.replace("d", "c"), type_)
    attributes["layout"] = f"<{layout}>"
    count = site.count(2, 3)
    width = 64 if type_.bits == 64 else 32
    pointer_type = _SHARED if space.startswith("shared") else _GENERIC
    stride = [site.read(2, PtxType("b32", "b", 32))] if count == 3 else []
    if loads:
        base, offset = site.address(1)
        targets = site.elements(0)

        def load(fiber: Fiber, op: Instruction, address: Value, *strides: Value) -> Value:
            op.operand_types = (pointer_type,)
            fragment = nvvm_wmma.load(fiber, op, addresses.at(address, offset), strides[0] if strides else _stride(op))
            return _to_bits(fiber, fragment)

        site.emit(load, [base, *stride], [site.write(register, width) for register in targets], attributes)
        return
    base, offset = site.address(0)
    sources = site.elements(1)

    def store(fiber: Fiber, op: Instruction, address: Value, *registers: Value) -> None:
        op.operand_types = (pointer_type,)
        strides = registers[len(sources) :]
        parts = [_of_bits(fiber, value, type_) for value in registers[: len(sources)]]
        nvvm_wmma.store(fiber, op, addresses.at(address, offset), *parts, strides[0] if strides else _stride(op))

    reads = [site.read(register, PtxType(f"b{width}", "b", width)) for register in sources]
    site.emit(store, [base, *reads, *stride], (), attributes)


def _stride(op: Instruction) -> int:
    """Returns the leading dimension of a matrix without gaps between its rows or columns."""
    rows, columns = {"a": "mk", "b": "kn", "c": "mn"}[op.attributes["frag"][1:-1]]
    return op.attributes[rows if "col" in op.attributes["layout"] else columns]


def _to_bits(fiber: Fiber, fragment: Value) -> Value:
    """Returns the registers of a fragment as bits: a tuple, or that of the only one."""
    if isinstance(fragment, Struct):  # of pairs of two halves
        return tuple(np.ascontiguousarray(field).view(np.int32)[:, 0] for field in fragment.fields)
    bits = np.ascontiguousarray(fragment.array).view(f"i{fragment.array.itemsize}")
    registers = [np.ascontiguousarray(bits[:, number]) for number in range(bits.shape[1])]
    return tuple(registers) if len(registers) > 1 else registers[0]


def _of_bits(fiber: Fiber, value: Value, type_: PtxType) -> np.ndarray:
    """Returns a register's bits as nvvm's ops take the register."""
    if type_.name == "f16":
        return np.ascontiguousarray(values.lanes(np.asarray(value, np.int32), fiber.count))[:, None].view(np.float16)
    width = 8 if type_.bits == 64 else 4
    bits = np.ascontiguousarray(values.lanes(np.asarray(value, f"i{width}"), fiber.count))
    return bits.view(type_.dtype) if type_.name in ("f32", "f64") else bits


@instruction("wmma.mma.sync")
def wmma(site: Site) -> None:
    """A product added to a matrix of a warp."""
    site.choice(("aligned",))
    a_layout = site.choice(("row", "col"))
    b_layout = site.choice(("row", "col"))
    saturates = site.flag("satfinite")
    site.flag("rn")
    operand_types = site.types()
    d, a, b, c = (
        operand_types
        if len(operand_types) == 4
        else (operand_types[0], types.find("f16"), types.find("f16"), operand_types[-1])
    )
    if a is None or b is None or d.name not in ("f16", "f32", "f64", "s32") or a.name != b.name:
        raise site.error("with these types: expected sums of .f16, .f32, .f64 or .s32, and one type of A and B")
    attributes = _attributes(site, "c", c)
    attributes |= {
        "eltypeA": f"<{a.name}>",
        "eltypeB": f"<{d.name}>",
        "layoutA": f"<{a_layout}>",
        "layoutB": f"<{b_layout}>",
        nvvm_wmma.SATURATES: saturates,
    }
    if saturates and d.kind == "f":
        raise site.error("with .satfinite: only sums of .s32 have it")
    if c.name != d.name:
        raise site.error(f"with C of .{c.name} and D of .{d.name}: expected one type")
    site.count(4)
    parts = [site.elements(number) for number in (1, 2, 3)]
    kinds = [type_ for part, type_ in zip(parts, (a, b, c)) for _ in part]
    width = 64 if d.bits == 64 else 32
    inner = 64 if a.bits == 64 else 32

    def execute(fiber: Fiber, op: Instruction, *registers: Value) -> Value:
        operands = [_of_bits(fiber, value, kind) for value, kind in zip(registers, kinds)]
        return _to_bits(fiber, nvvm_wmma.mma(fiber, op, *operands))

    reads = [
        site.read(register, PtxType(f"b{size}", "b", size))
        for part, size in zip(parts, (inner, inner, width))
        for register in part
    ]
    site.emit(execute, reads, [site.write(register, width) for register in site.elements(0)], attributes)
