"""What the body of an elementwise op computes or loads once for neighbouring elements of a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stepladder.extension.lib.arithmetic import constant_value
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.element_bodies import compute_ops, has_vectors
from stepladder.extension.lib.memory import load_vector
from stepladder.extension.lib.vectors import extract
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer, users_of

_LOAD = "memref.load"
# Comparisons of an index with a number that have one result for all neighbours that lie between two multiples.
_UNIFORM = (
    arith.CmpIPredicate.ult,
    arith.CmpIPredicate.uge,
    arith.CmpIPredicate.slt,
    arith.CmpIPredicate.sge,
)


class _Guard(NamedTuple):
    """A condition under which an index advances with the neighbours; elsewhere it is `otherwise`."""

    condition: ir.Value
    side: bool
    otherwise: int


class Neighbours:
    """The elements of a result at a multiple of `width` along a loop, and those behind it.

    A value of the body is the same for all of them, or an index that advances with them, from a multiple of `width` on.
    Loads at such an index are one vector. An index may be clamped, as that of an element of a slice is: where the
    element is outside of the slice, the load is another one, and nothing but a select reads it.

    Args:
        body: of a `linalg.generic` on buffers.
        loop: of the neighbours, the innermost one of the results.
        width: how many they are, a power of two.

    Attributes:
        shared: ops whose results are the same for all of them.
        loads: ops that are one vector.
    """

    def __init__(self, body: ir.Block, loop: int, width: int) -> None:
        self._loop, self.width = loop, width
        self._ops = operations_of(body)[:-1]
        self._same: set[ir.Value] = set()
        self._advancing: dict[ir.Value, tuple[_Guard, ...]] = {}
        self._body = body
        self.shared: list[ir.Operation] = []
        for item in self._ops:
            self._classify(item)
        self.loads = [item for item in self._ops if item.name == _LOAD and self._is_vector(item)]

    def _classify(self, item: ir.Operation) -> None:
        """Finds out how the results of an op depend on the neighbour."""
        if item.name == "linalg.index":
            if ir.IntegerAttr(item.attributes["dim"]).value == self._loop:
                self._advancing[item.results[0]] = ()
            else:
                self._add(item)
        elif all(map(self._is_same, item.operands)) or self._is_uniform(item):
            self._add(item)
        elif (guards := self._guards(item)) is not None:
            self._advancing[item.results[0]] = guards

    def _add(self, item: ir.Operation) -> None:
        self.shared.append(item)
        self._same.update(item.results)

    def _is_same(self, value: ir.Value) -> bool:
        source = producer(value)
        is_outside = value.owner != self._body if source is None else source.block != self._body
        return is_outside or value in self._same

    def _is_multiple(self, value: ir.Value) -> bool:
        number = constant_value(value)
        return number is not None and number % self.width == 0

    def _is_uniform(self, item: ir.Operation) -> bool:
        """Returns whether an op compares an index that advances, and all neighbours have the same result."""
        if item.name != "arith.cmpi" or self._advancing.get(item.operands[0]) != ():
            return False
        predicate = ir.IntegerAttr(item.attributes["predicate"]).value
        return predicate in _UNIFORM and self._is_multiple(item.operands[1])

    def _guards(self, item: ir.Operation) -> tuple[_Guard, ...] | None:
        """Returns when the result of an op is an index that advances; None where it is none."""
        if len(item.results) != 1 or not isinstance(item.results[0].type, ir.IndexType):
            return None
        if item.name in ("arith.addi", "arith.subi"):
            left, right = item.operands
            if item.name == "arith.addi" and left not in self._advancing:
                left, right = right, left
            return self._advancing.get(left) if self._is_multiple(right) else None
        if item.name != "arith.select" or not self._is_same(item.operands[0]):
            return None
        condition, *sides = item.operands
        for place, (value, other) in enumerate((sides, sides[::-1])):
            number = constant_value(other)
            if value in self._advancing and number is not None and self._is_multiple(other):
                return (*self._advancing[value], _Guard(condition, place == 0, number))
        return None

    def _is_vector(self, load: ir.Operation) -> bool:
        buffer, *indices = load.operands
        if not indices or indices[-1] not in self._advancing or not all(map(self._is_same, indices[:-1])):
            return False
        if not has_vectors(buffer, self.width):
            return False
        extent = ir.MemRefType(buffer.type).shape[-1]
        return all(
            0 <= guard.otherwise < extent and self._is_guarded(load.results[0], guard)
            for guard in self._advancing[indices[-1]]
        )

    def _is_guarded(self, value: ir.Value, guard: _Guard) -> bool:
        """Returns whether nothing depends on a value where the index does not advance."""
        for user in users_of(value):
            if user.block != self._body or not user.name.startswith(("arith.", "math.")):
                return False
            if user.name == "arith.select" and user.operands[0] == guard.condition:
                if user.operands[2 if guard.side else 1] != value:
                    continue
                return False
            if not all(self._is_guarded(result, guard) for result in user.results):
                return False
        return True

    def values(self, loops: Mapping[int, ir.Value]) -> list[dict[ir.Value, ir.Value]]:
        """Returns the values of the body that are computed once, for each of the neighbours.

        Args:
            loops: indices of the first one.
        """
        values: dict[ir.Value, ir.Value] = {}
        compute_ops([item for item in self._ops if self._is_known(item)], values, loops)
        vectors: dict[ir.Value, ir.Value] = {}
        for item in self.loads:
            buffer, *indices = item.operands
            type_ = ir.VectorType.get([self.width], item.results[0].type)
            vectors[item.results[0]] = load_vector(type_, buffer, *(values.get(value, value) for value in indices))
        shared = {value: values[value] for item in self.shared for value in item.results}
        return [
            shared | {value: extract(vector, [number], value.type) for value, vector in vectors.items()}
            for number in range(self.width)
        ]

    def _is_known(self, item: ir.Operation) -> bool:
        """Returns whether an op is computed for the first neighbour: what is shared, and indices."""
        return all(value in self._same or value in self._advancing for value in item.results)


def find_neighbours(body: ir.Block, loop: int, width: int) -> Neighbours | None:
    """Returns the neighbours whose loads are the most and widest vectors; None where no load is one, or the body has
    assertions, which come before what they guard.

    Args:
        body: of a `linalg.generic` on buffers.
        loop: of the neighbours.
        width: how many a thread computes, a power of two.
    """
    if not all(len(item.results) for item in operations_of(body)[:-1]):
        return None
    widths: Sequence[int] = [width >> shift for shift in range(width.bit_length() - 1)]
    found = [Neighbours(body, loop, one) for one in widths]
    best = max(found, key=lambda neighbours: len(neighbours.loads), default=None)
    return best if best is not None and best.loads else None
