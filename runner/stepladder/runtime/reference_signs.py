"""Which integer arguments of a reference program have no op that reads their sign: they accept unsigned arrays too."""

from __future__ import annotations

from collections.abc import Iterator

from stepladder.runtime.reference import Constant, Generic, Insert, Instruction, Operation, Program, Reshape, Slice
from stepladder.runtime.reference_operations import GATHER

_SIGNED = frozenset(
    f"arith.{name}"
    for name in (
        *("ceildivsi", "divsi", "extsi", "floordivsi", "index_cast", "maxsi", "minsi", "remsi", "shrsi", "sitofp"),
    )
) | {"math.absi"}
# From slt to sge.
_SIGNED_PREDICATES = range(2, 6)
# Ops that make a number that is not of the bits of their operand.
_UNSIGNED = ("arith.cmpi", "arith.extui", "arith.uitofp")


def without_sign(program: Program) -> frozenset[int]:
    """Returns the arguments, by number, of which no op reads the sign, also after ops on their bits.

    Args:
        program: of a payload.
    """
    return frozenset(
        number
        for number, item in enumerate(program.arguments)
        if item.type in ("i8", "i16", "i32", "i64") and not _reads_sign(program, item.value, item.type)
    )


def _reads_sign(program: Program, value: int, type_: str) -> bool:
    """Returns whether an op reads the sign of elements of a value of a program.

    StableHLO has no extension of unsigned numbers: their signed extension is masked, so that the sign does not matter.
    """
    bits, masks = {value}, set[int]()
    for item in program.instructions:
        match item:
            case Constant() if item.number == 2 ** int(type_[1:]) - 1:
                masks.add(item.result)
            case Generic() if _is_extension(item, bits):
                readers = [other for other in program.instructions if _takes(other, item.results[0])]
                if not all(_masks(reader, masks) for reader in readers) or item.results[0] in _results(program):
                    return True
            case Reshape() | Slice():
                bits |= {item.result} if item.source in bits else set()
            case Insert():
                bits |= {item.result} if not bits.isdisjoint((item.source, item.target)) else set()
            case Generic():
                operands = zip(item.arguments, (*item.inputs, *item.outputs))
                own = {argument for argument, operand in operands if operand in bits}
                if any(_read_sign(item, own, bits)):
                    return True
                bits |= {result for result, yielded in zip(item.results, item.yields) if yielded in own}
    return False


def _is_extension(generic: Generic, bits: set[int]) -> bool:
    """Returns whether an op extends the elements of a value as signed numbers, and does no more."""
    return [op.name for op in generic.body] == ["arith.extsi"] and generic.inputs[0] in bits


def _takes(item: Instruction, value: int) -> bool:
    """Returns whether an instruction reads a value, as a whole or in its body."""
    match item:
        case Reshape() | Slice():
            return item.source == value
        case Insert():
            return value in (item.source, item.target)
        case Generic():
            return value in (*item.inputs, *item.outputs) or any(value in op.operands for op in item.body)
    return False


def _masks(item: Instruction, masks: set[int]) -> bool:
    """Returns whether an instruction keeps the low bits of the elements of its operand, and does no more."""
    if not isinstance(item, Generic) or [op.name for op in item.body] != ["arith.andi"]:
        return False
    operands = set(item.body[0].operands)
    return item.arguments[0] in operands and not operands.isdisjoint(masks)


def _results(program: Program) -> set[int]:
    return {value for _, value in program.outputs()}


def _read_sign(generic: Generic, own: set[int], bits: set[int]) -> Iterator[bool]:
    """Yields for each op of a body whether it reads a sign; adds to `own` the values of the body that have the bits."""
    for op in generic.body:
        source = op.operands[:1] if op.name == GATHER else op.operands
        if own.isdisjoint(source) and bits.isdisjoint(source):
            continue
        yield _is_signed(op)
        if op.name not in _UNSIGNED:
            own.add(op.result)


def _is_signed(op: Operation) -> bool:
    return op.name in _SIGNED or (op.name == "arith.cmpi" and op.attribute in _SIGNED_PREDICATES)
