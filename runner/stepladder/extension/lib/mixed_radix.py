"""Indices as sums of digits, whose quotients and remainders are known when an op is created.

An index of an operand's element is a row and a step of k. Through reshapes and groups it becomes quotients and
remainders of sums of multiples of these. Each is a digit of one of them, in a mixed radix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stepladder.extension.lib.arithmetic import apply, index
from stepladder.mlir.bindings import ir


@dataclass(frozen=True)
class Digit:
    """A digit of an index: the index divided by `divisor`, modulo `size`.

    Attributes:
        base: name of the index.
        divisor, size: at least 1.
        is_first: whether no digit of the index is above it, so that the quotient is below `size` anyway.
    """

    base: str
    divisor: int
    size: int
    is_first: bool = True


class NoDigits(Exception):
    """A quotient is no sum of multiples of digits."""


@dataclass(frozen=True)
class Index:
    """A sum of multiples of digits, and a constant.

    Attributes:
        terms: the digits and their factors, each digit once, in an order of their own.
        constant: at least 0.
    """

    terms: tuple[tuple[Digit, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(base: str, size: int, divisor: int = 1) -> Index:
        """Returns the quotient of an index and a divisor.

        Args:
            base: name of the index.
            size: of the quotient.
            divisor: of the index.
        """
        return Index(((Digit(base, divisor, size), 1),)) if size > 1 else Index()

    @property
    def last(self) -> int:
        """Its largest value."""
        return self.constant + sum((digit.size - 1) * factor for digit, factor in self.terms)

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return replace(self, constant=self.constant + other)
        factors = dict(self.terms)
        for digit, factor in other.terms:
            factors[digit] = factors.get(digit, 0) + factor
        return Index(_joined(factors), self.constant + other.constant)

    def __mul__(self, factor: int) -> Index:
        return Index(tuple((digit, own * factor) for digit, own in self.terms), self.constant * factor)

    def divided(self, divisor: int) -> tuple[Index, Index]:
        """Returns quotient and remainder.

        Args:
            divisor: at least 1.

        Raises:
            NoDigits: they depend on digits that only the values have.
        """
        quotient, remainder = Index(constant=self.constant // divisor), Index(constant=self.constant % divisor)
        for digit, factor in self.terms:
            if factor % divisor == 0:
                quotient += Index(((digit, factor // divisor),))
                continue
            parts = divisor // factor if divisor % factor == 0 else 0
            if parts and parts < digit.size and digit.size % parts == 0:
                above = Digit(digit.base, digit.divisor * parts, digit.size // parts, digit.is_first)
                quotient += Index(((above, 1),))
                digit = Digit(digit.base, digit.divisor, parts, is_first=False)
            remainder += Index(((digit, factor),))
        if remainder.last >= divisor:
            raise NoDigits
        return quotient, remainder

    def depends_on(self, base: str) -> bool:
        """Returns whether an index is part of it.

        Args:
            base: name of the index.
        """
        return any(digit.base == base for digit, _ in self.terms)

    def value(self, bases: Mapping[str, ir.Value]) -> ir.Value:
        """Returns the index, computed at the insertion point.

        Args:
            bases: the indices by name.
        """
        if not self.terms:
            return index(self.constant)
        names = list(dict.fromkeys(digit.base for digit, _ in self.terms))

        def total(*numbers: ir.AffineExpr) -> ir.AffineExpr:
            sum_ = ir.AffineExpr.get_constant(self.constant)
            for digit, factor in self.terms:
                part = ir.AffineExpr.get_floor_div(numbers[names.index(digit.base)], digit.divisor)
                sum_ = sum_ + (part if digit.is_first else ir.AffineExpr.get_mod(part, digit.size)) * factor
            return sum_

        return apply(total, *(bases[name] for name in names))


def _joined(factors: dict[Digit, int]) -> tuple[tuple[Digit, int], ...]:
    """Returns digits and factors, where a digit and the one above it with a matching factor are one."""
    for low, factor in factors.items():
        for high, other in factors.items():
            if (high.base, high.divisor, other) == (low.base, low.divisor * low.size, factor * low.size):
                remaining = {digit: own for digit, own in factors.items() if digit not in (low, high)}
                joined_digit = Digit(low.base, low.divisor, low.size * high.size, high.is_first)
                return _joined({**remaining, joined_digit: remaining.get(joined_digit, 0) + factor})
    return tuple(sorted(factors.items(), key=lambda item: (item[0].base, item[0].divisor, item[0].size)))


def linear(place: Sequence[Index], shape: Sequence[int]) -> Index:
    """Returns the number of an element in row-major order.

    Args:
        place: an index for each dimension.
        shape: the extents.
    """
    number = Index()
    for part, size in zip(place, shape):
        number = number * size + part
    return number


def digits(number: Index, shape: Sequence[int]) -> list[Index]:
    """Returns the indices of an element, by its linear index in row-major order.

    Args:
        number: of the element.
        shape: the extents.

    Raises:
        NoDigits: they depend on digits that only the values have.
    """
    remainders: list[Index] = []
    for size in reversed(shape[1:]):
        number, remainder = number.divided(size)
        remainders.append(remainder)
    return [number, *reversed(remainders)] if shape else []
