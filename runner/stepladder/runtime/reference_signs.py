"""Which arguments of a reference program are integers whose sign no op reads: those without one are such arrays too."""

from __future__ import annotations

from collections.abc import Iterator

from stepladder.runtime.reference import Generic, Insert, Operation, Program, Reshape, Slice
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
        if item.type in ("i8", "i16", "i32", "i64") and not _reads_sign(program, item.value)
    )


def _reads_sign(program: Program, value: int) -> bool:
    """Returns whether an op reads the sign of elements of a value of a program."""
    bits = {value}
    for item in program.instructions:
        match item:
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
