"""Inline wgmma whose accumulators are all fields of one struct: it takes and gives the struct, not 128 registers.

MLIR takes a struct apart before each product and puts one together after it. Executed one by one, these moves
take as long as the product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stepladder.emulator.dialects import llvm
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Builder, Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.mlir.bindings import ir

# Attribute of an instruction: how many registers of sums it has, after its first two operands, and what executes it
# with a struct in place of them.
SUMS, WHOLE = "sums", "whole"
_JUMPS = {"to", "otherwise"}  # attributes of what leads elsewhere


def take_struct(builder: Builder, op: ir.Operation, start: int, bits: Callable) -> None:
    """Changes what inline PTX was made into, where it is a product of all fields of a struct that nothing else uses.

    Args:
        builder: whose latest instructions are what `op` was made into: values into registers, the PTX, a struct.
        op: of MLIR.
        start: number of the first of them.
        bits: makes bits of a register of a value: (fiber, value, type, width).
    """
    code = builder.code
    into, product, struct = code[start], code[-2], code[-1]
    count = product.attributes.get(SUMS)
    if count is None or any(_JUMPS & set(other.attributes) for other in code[start:]):
        return
    registers = product.results
    if (
        into.results[:count] != registers
        or struct.operands != registers
        or product.operands[2 : 2 + count] != registers
    ):
        return
    block = hash(op.block)
    fields = next((other for other in reversed(code[:start]) if other.results == into.operands[:count]), None)
    if fields is None or fields.execute is not llvm.fields_for_ptx or fields.cache["block"] != block:
        return
    positions = fields.attributes["positions"]
    path = positions[0][:-1]
    if positions != [[*path, number] for number in range(count)]:
        return
    if any(len(list(value.uses)) != 1 for value in list(op.operands)[:count]):
        return
    types, widths = into.attributes["types"], into.attributes["widths"]
    product.attributes |= {"path": path, "types": types[:count], "widths": widths[:count], "bits": bits}
    product.operands = (*product.operands[:2], *fields.operands, *product.operands[2 + count :])
    product.results = struct.results
    product.execute = product.attributes[WHOLE]
    into.operands, into.results = into.operands[count:], into.results[count:]
    into.attributes = {"types": types[count:], "widths": widths[count:]}
    fields.operands = fields.results = ()
    fields.execute = _nothing
    code.pop()
    builder.instructions.pop()


def _nothing(fiber: Fiber, op: Instruction) -> None:
    return None


def sums_of(fiber: Fiber, op: Instruction, struct: Value) -> AccumulatorRegisters | list:
    """Returns the accumulator registers of a struct for a product, or the values of its fields.

    Args:
        fiber: the threads.
        op: the instruction, with the path to the struct and the types of the fields as attributes.
        struct: the operand.
    """
    for place in op.attributes["path"]:
        struct = struct.fields[place] if isinstance(struct, llvm.Struct) else struct
    if type(struct) is AccumulatorRegisters and struct.count == op.attributes[SUMS]:
        return struct
    types, widths, bits = (op.attributes[name] for name in ("types", "widths", "bits"))
    fields = [llvm.field_for_ptx(struct, [number]) for number in range(op.attributes[SUMS])]
    return [bits(fiber, value, type_, width) for value, type_, width in zip(fields, types, widths)]
