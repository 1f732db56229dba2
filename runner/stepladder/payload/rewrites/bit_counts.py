"""Counts of bits (`math.ctpop`, `math.ctlz`, `math.cttz`) as shifts, masks and sums, which all that follows computes.

Masks leave out the copies of the sign that arithmetic shifts fill in. LLVM makes `popc` of the count of ones again.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import element_of

_BYTE = 8  # bits
_WIDTHS = (8, 16, 32, 64)


def lower(function: ir.Operation) -> None:
    """Replaces the counts of integers of 8 to 64 bits, scalars and tensors.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, "math.ctpop", "math.ctlz", "math.cttz"):
        type_ = op.results[0].type
        element = element_of(type_)
        if not isinstance(element, ir.IntegerType) or element.width not in _WIDTHS:
            continue
        with ir.InsertionPoint(op), op.location:
            bits = _Bits(type_, element)
            x = op.operands[0]
            match op.name:
                case "math.ctpop":
                    count = bits.ones(x)
                case "math.ctlz":
                    count = bits.ones(bits.inverted(bits.below_first(x)))
                case _:  # the zeros after the last one are all that x - 1 has and x has not
                    minus_one = bits.of("arith.addi", x, bits.number(-1))
                    count = bits.ones(bits.of("arith.andi", bits.inverted(x), minus_one))
        op.results[0].replace_all_uses_with(count)
        op.erase()


class _Bits:
    """Creates ops on integers of a type, at the insertion point.

    Args:
        type_: of integers, or tensors of them; `element`: of one.
    """

    def __init__(self, type_: ir.Type, element: ir.IntegerType) -> None:
        self.type, self.element, self.width = type_, element, element.width

    def of(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        """Creates an op on two integers."""
        return ir.Operation.create(name, results=[self.type], operands=[left, right]).results[0]

    def number(self, value: int) -> ir.Value:
        """Creates a constant."""
        half = 1 << (self.width - 1)
        number: ir.Attribute = ir.IntegerAttr.get(self.element, (value + half) % (2 * half) - half)
        if isinstance(self.type, ir.ShapedType):
            number = ir.DenseElementsAttr.get_splat(self.type, number)
        return ir.Operation.create("arith.constant", results=[self.type], attributes={"value": number}).results[0]

    def inverted(self, x: ir.Value) -> ir.Value:
        """Inverts all bits."""
        return self.of("arith.xori", x, self.number(-1))

    def shifted(self, x: ir.Value, distance: int) -> ir.Value:
        """Shifts to the right."""
        return self.of("arith.shrsi", x, self.number(distance))

    def below_first(self, x: ir.Value) -> ir.Value:
        """Sets all bits below the first one that is set."""
        distance = 1
        while distance < self.width:
            x = self.of("arith.ori", x, self.shifted(x, distance))
            distance *= 2
        return x

    def ones(self, x: ir.Value) -> ir.Value:
        """Counts the bits that are set: of pairs, of fours, of bytes, and of all."""
        for distance in (1, 2, 4):
            mask = self.number(((1 << self.width) - 1) // ((1 << distance) + 1))
            high = self.of("arith.andi", self.shifted(x, distance), mask)
            x = self.of("arith.addi", high, self.of("arith.andi", x, mask))
        if self.width == _BYTE:
            return x
        low_bits = self.number(((1 << self.width) - 1) // 0xFF)
        return self.shifted(self.of("arith.muli", x, low_bits), self.width - _BYTE)
