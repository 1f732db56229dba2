"""llvm: arithmetic, comparisons and conversions, which are those of arith and math under other names.

Those of fast math are ignored; `poison` checks those of integers.
"""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.elements import unsigned, wrapped
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import EXECUTED, executes
from stepladder.emulator.core.types import Opaque
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects import arith, math
from stepladder.emulator.memory.pointers import check_alignment

_POINTER_BITS = 64

_SAME = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
    "shl": "shli",
    "ashr": "shrsi",
    "lshr": "shrui",
    "sdiv": "divsi",
    "udiv": "divui",
    "srem": "remsi",
    "urem": "remui",
    "fadd": "addf",
    "fsub": "subf",
    "fmul": "mulf",
    "fdiv": "divf",
    "frem": "remf",
    "fneg": "negf",
    "fcmp": "cmpf",
    "sext": "extsi",
    "zext": "extui",
    "trunc": "trunci",
    "fpext": "extf",
    "fptrunc": "truncf",
    "sitofp": "sitofp",
    "uitofp": "uitofp",
    "fptosi": "fptosi",
    "fptoui": "fptoui",
    "select": "select",
    "intr.umin": "minui",
    "intr.umax": "maxui",
    "intr.smin": "minsi",
    "intr.smax": "maxsi",
    "intr.minimum": "minimumf",
    "intr.maximum": "maximumf",
    "intr.minnum": "minnumf",
    "intr.maxnum": "maxnumf",
}
_MATH = {
    "intr.fma": "fma",
    "intr.fmuladd": "fma",
    "intr.fabs": "absf",
    "intr.sqrt": "sqrt",
    "intr.exp": "exp",
    "intr.exp2": "exp2",
    "intr.log": "log",
    "intr.log2": "log2",
    "intr.sin": "sin",
    "intr.cos": "cos",
    "intr.floor": "floor",
    "intr.ceil": "ceil",
}

for _prefix, _table in (("arith", _SAME), ("math", _MATH)):
    for _name, _other in _table.items():
        executes(f"llvm.{_name}")(EXECUTED[f"{_prefix}.{_other}"])


@executes("llvm.icmp")
def icmp(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """Compares integers, or addresses."""
    type_ = op.operand_types[0]
    width = _POINTER_BITS if isinstance(type_, Opaque) else type_.element.width
    return arith.compare_integers(arith.PREDICATES[op.attributes["predicate"]], left, right, width)


@executes("llvm.ptrtoint", "llvm.ptrtoaddr")
def ptrtoint(fiber: Fiber, op: Instruction, pointer: Value) -> Value:
    """An address as an integer: its lower bits."""
    return wrapped(pointer, op.result_types[0].element)


@executes("llvm.inttoptr")
def inttoptr(fiber: Fiber, op: Instruction, number: Value) -> Value:
    """An integer as an address: without a sign."""
    address = unsigned(number, op.operand_types[0].element.width)
    return address.astype(np.int64) if isinstance(address, np.ndarray) else address


@executes("llvm.addrspacecast")
def addrspacecast(fiber: Fiber, op: Instruction, pointer: Value) -> Value:
    """The same address: those of shared memory and of global memory differ in every space."""
    return pointer


@executes("llvm.freeze", "llvm.intr.expect")
def same(fiber: Fiber, op: Instruction, value: Value, *others: Value) -> Value:
    """The same value."""
    return value


@executes("llvm.intr.assume")
def assume(fiber: Fiber, op: Instruction, condition: Value, *operands: Value) -> None:
    """Nothing, where the condition holds, and pointers are aligned as bundles of operands state."""
    remaining = list(operands)
    for tag, size in zip(op.attributes.get("op_bundle_tags", ()), op.attributes.get("op_bundle_sizes", ())):
        bundle, remaining = remaining[:size], remaining[size:]
        if str(tag).strip('"') == "align":
            pointer, multiple, *offset = bundle
            check_alignment(fiber, op, pointer - offset[0] if offset else pointer, int(fiber.first(multiple)))
    wrong = fiber.lanes[~np.broadcast_to(condition, fiber.count)[fiber.lanes].astype(bool)]
    if len(wrong):
        fiber.group.sanitizer.report("assumption", f"does not hold for {fiber.group.thread_name(wrong[0])}", op)


@executes("llvm.intr.lifetime.start", "llvm.intr.lifetime.end")
def nothing(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: private memory is there all the time."""
