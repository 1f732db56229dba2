"""Reductions of linalg ops: how a body folds values into the result so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant
from stepladder.extension.lib.control_flow import operations_of
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.neutral_elements import FOLDS, neutral_number
from stepladder.mlir.traverse import producer, users_of

# Folds of booleans that folds of their integers, 0 and 1, give.
_OF_BITS = ("arith.andi", "arith.ori", "arith.xori")
# Folds of negated terms, as upstream's canonicalization writes sums of these, and the folds that they are.
_DIFFERENCES = {"arith.subf": "arith.addf", "arith.subi": "arith.addi"}


@dataclass(frozen=True)
class Fold:
    """How an output is reduced.

    Attributes:
        op: the op of the body that folds a value into the result so far, or subtracts it.
        term: what it folds, or its negative.
        type: of the result so far: f32 for sums and products of 16 bits, which are rounded once; i32 for booleans.
    """

    op: ir.Operation
    term: ir.Value
    type: ir.Type

    @property
    def name(self) -> str:
        """The name of the op that folds two values."""
        return _DIFFERENCES.get(self.op.name, self.op.name)

    def neutral(self) -> ir.Value:
        """Returns the neutral element, at the current insertion point."""
        return constant(self.type, neutral_number(self.name, self.type))

    def term_in(self, values: Mapping[ir.Value, ir.Value]) -> ir.Value:
        """Returns what is folded, at the current insertion point.

        Args:
            values: the values that stand for those of the body.
        """
        term = values.get(self.term, self.term)
        if self.op.name not in _DIFFERENCES:
            return term
        if self.op.name == "arith.subf":
            return arith.negf(term)
        zero = arith.subi(term, term)  # a scalar or a vector
        return arith.subi(zero, term)

    def folded(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """Returns two values folded, at the current insertion point.

        Args:
            left: the result so far, or a value.
            right: a value of the same type.
        """
        return ir.Operation.create(self.name, results=[self.type], operands=[left, right]).results[0]


def fold_of(generic: ir.Operation, output: int) -> Fold | None:
    """Returns how an output is reduced; None where the body does more with the result so far than to fold into it.

    Args:
        generic: a `linalg.generic`.
        output: the index of the output.
    """
    body = generic.regions[0].blocks[0]
    end = operations_of(body)[-1]
    so_far = body.arguments[len(body.arguments) - len(end.operands) + output]
    op = producer(end.operands[output])
    if op is None or op.block != body or op.name not in (*FOLDS, *_DIFFERENCES):
        return None
    if op.name in _DIFFERENCES and op.operands[0] != so_far:
        return None
    terms = [operand for operand in op.operands if operand != so_far]
    if len(terms) != 1 or users_of(so_far) != [op] or len(list(op.results[0].uses)) != 1:
        return None
    type_ = op.results[0].type
    if str(type_) == "i1":
        return Fold(op, terms[0], ir.IntegerType.get_signless(32)) if op.name in _OF_BITS else None
    is_sum = op.name in ("arith.addf", "arith.mulf", "arith.subf")
    wide = ir.F32Type.get() if is_sum and isinstance(type_, (ir.F16Type, ir.BF16Type)) else type_
    return Fold(op, terms[0], wide)
