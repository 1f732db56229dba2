"""The granularity of the sanitizer in bytes: no more than the smallest access of any instruction of a program."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stepladder.emulator.core import types
from stepladder.emulator.core.program import Instruction, Program
from stepladder.mlir.llvm_layouts import layout

_MAX, _MAX_SHARED = 4, 16

# Ops whose accesses follow from a value, not from their types.
_BY_POINTER = {"llvm.load", "llvm.store"}

# Ops that access shared memory as bytes, whatever its contents are.
_BYTES = {"memref.get_global", "memref.view", "memref.reinterpret_cast", "memref.alloc"}

# What takes a pointer, or is inline PTX, and how many bytes of shared memory it accesses at least, by the beginning of
# its name: 16 where it accesses none.
_POINTERS = {
    **dict.fromkeys(("nvvm.ldmatrix", "nvvm.stmatrix", "nvvm.wmma.", "nvvm.wgmma.", "nvvm.cp.async.bulk."), 16),
    **dict.fromkeys(("nvvm.mbarrier.", "nvvm.cp.async.mbarrier."), 8),
    "nvvm.cp.async.shared.global": 4,
    **dict.fromkeys(("llvm.getelementptr", "llvm.ptrtoint", "llvm.inttoptr", "llvm.addrspacecast"), 16),
    **dict.fromkeys(("llvm.mlir.", "llvm.icmp", "llvm.select", "llvm.extractvalue", "llvm.insertvalue"), 16),
    **dict.fromkeys(("llvm.br", "llvm.cond_br", "llvm.return", "nvvm.prefetch", "nvvm.mapa"), 16),
    **dict.fromkeys(("builtin.", "gpu.launch_func", "func."), 16),
}
_INLINE = ("llvm.inline_asm", "nvvm.inline_ptx")
_PTX = {
    **dict.fromkeys(("wgmma", "cp.reduce", "ldmatrix", "stmatrix", "mma", "wmma", "fence", "membar"), 16),
    **dict.fromkeys(("bar", "barrier", "bra", "setp", "selp", "mov", "elect", "setmaxnreg", "griddepcontrol"), 16),
    **dict.fromkeys(("add", "sub", "mul", "mad", "and", "or", "shl", "shr", "cvt", "cvta", "shfl", "mapa"), 16),
    "mbarrier": 8,
    "cp.async": 4,
}


@dataclass(frozen=True)
class Granularity:
    """The granularity of the sanitizer in bytes, in shared memory and elsewhere: powers of two."""

    elsewhere: int = 2
    shared: int = 2


def granularity_of(program: Program) -> Granularity:
    """Returns the bytes that the sanitizer treats as one unit: the smallest element that is accessed, 4 at most.

    In shared memory they are the smallest access, 16 at most, where all accesses are known.

    Args:
        program: whose instructions are looked at.
    """
    sizes = [_MAX]
    for op in _of_each_kind(program.instructions):
        for type_ in (*op.operand_types, *op.result_types):
            if isinstance(type_, types.Buffer) and op.name not in _BYTES:
                sizes.append(type_.element.bytes)
        if op.name in _BY_POINTER:
            sizes.append(_accessed(op) or _MAX)
    smallest = min(sizes)
    in_shared = {_in_shared(op) for op in _of_each_kind(program.instructions)}
    return Granularity(smallest, smallest if None in in_shared else min([_MAX_SHARED, *filter(None, in_shared)]))


def _of_each_kind(instructions: Iterable[Instruction]) -> Iterator[Instruction]:
    """Yields one instruction of each name and each types, and all loads and stores: their attributes differ too."""
    # Programs have many instructions of few kinds. A type that is decoded twice only makes one more kind.
    kinds = set()
    for op in instructions:
        kind = op.name, *map(id, op.operand_types), None, *map(id, op.result_types)
        if op.name in _BY_POINTER or kind not in kinds:
            kinds.add(kind)
            yield op


def _accessed(op: Instruction) -> int | None:
    """Returns how many bytes the smallest access of a load or a store has, which structs and arrays have several of;
    None of a jump behind it, which has its name."""
    held = op.operand_types if op.name == "llvm.store" else op.result_types
    if not held:
        return None
    type_ = held[0]
    if isinstance(type_, types.Opaque):
        size = _smallest(type_.text)
    else:
        size = math.prod(type_.static_shape) * type_.element.bytes
    return min(size, op.attributes.get("alignment", size))


def _smallest(text: str) -> int:
    try:
        return layout(text).smallest
    except ValueError:  # of no type that is loaded or stored
        return _MAX


def _in_shared(op: Instruction) -> int | None:
    """Returns how many bytes of shared memory an instruction accesses at least; None where that is not known."""
    types_ = (*op.operand_types, *op.result_types)
    if op.name in _BY_POINTER:
        return _accessed(op)
    inline = next((name for name in _INLINE if op.name.startswith(name)), None)
    if inline is not None:
        opcode = op.name[len(inline) :].strip()
        return next((size for name, size in _PTX.items() if opcode == name or opcode.startswith(f"{name}.")), None)
    if any(isinstance(type_, types.Opaque) and type_.text.startswith("!llvm.ptr") for type_ in types_):
        return next((size for name, size in _POINTERS.items() if op.name.startswith(name)), None)
    if op.name == "memref.memory_space_cast":
        return None
    buffers = [type_ for type_ in types_ if isinstance(type_, types.Buffer) and type_.space == "shared"]
    sizes = [type_.element.bytes for type_ in buffers if op.name not in _BYTES]
    return min([8 if "mbarrier" in op.name else _MAX_SHARED, *sizes])
