"""Elementwise ops of XeTile programs between the sums of a product and their store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.xetile.tile_matrices import Operand, Start
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.traverse import attributes_of, producer
from stepladder.mlir.xetile.tile_type import numbers

_ELEMENTWISE = ("arith.", "math.")
_OF_SUMS = "what is stored must be computed from the sums by elementwise ops"


@dataclass
class Epilogue:
    """The epilogue of a tile of C: the elementwise ops on its elements.

    Args:
        sums: the vector of a product's sums.
        c: the matrix that the result is stored to.
        operand_of: returns the matrix that a load reads, and where its tile begins.

    Attributes:
        ops: elementwise ops on vectors, and broadcasts of rows, in order.
        operands: matrices of C's extents, and rows of as many columns, that are read beside the sums, each once.
    """

    sums: ir.Value
    c: Operand
    operand_of: Callable[[ir.Operation, ir.Value], Operand]
    ops: list[ir.Operation] = field(default_factory=list)
    operands: list[Operand] = field(default_factory=list)
    _sources: dict[ir.Value, Operand] = field(default_factory=dict)
    _reads_sums: bool = False

    def read(self, store: ir.Operation) -> None:
        """Reads what computes the value that is stored.

        Args:
            store: the `store_tile`.

        Raises:
            Refusal: it is not made of the sums, or by other ops.
        """
        self._add(store.operands[0], store)
        if not self._reads_sums:
            raise Refusal(store, _OF_SUMS)

    def _add(self, value: ir.Value, user: ir.Operation) -> None:
        """Adds what computes a value, which an op uses."""
        source = producer(value)
        if value == self.sums:
            self._reads_sums = True
            return
        if source in self.ops or value in self._sources:
            return
        if source is None:
            raise Refusal(user, _OF_SUMS)
        if source.name == "xetile.load_tile":
            self._read_operand(value, source)
            return
        if source.name == "xetile.broadcast":
            rows = ir.VectorType(source.operands[0].type).shape[0]
            if numbers(source.attributes["dims"], "dims") != (0,) or rows != 1:
                raise Refusal(source, "expected a broadcast of one row, along dimension 0")
        elif not source.name.startswith(_ELEMENTWISE) or not isinstance(value.type, ir.VectorType):
            raise Refusal(
                source, f"{source.name} is not supported after a product; accepted: elementwise ops on vectors"
            )
        elif source.name == "arith.constant" and not ir.DenseElementsAttr(source.attributes["value"]).is_splat:
            raise Refusal(user, "a constant must be a splat")
        for operand in source.operands:
            self._add(operand, source)
        self.ops.append(source)

    def _read_operand(self, value: ir.Value, load: ir.Operation) -> None:
        """Adds a matrix that is read: a tile at the position of C's, or a row of C's columns."""
        starts, shape = self.c.starts, self.c.matrix.shape
        if ir.VectorType(value.type).shape[0] < ir.VectorType(self.sums.type).shape[0]:
            starts, shape = (Start(), starts[1]), (1, shape[1])
        operand = self.operand_of(load, load.operands[0])
        if operand.matrix.is_transposed or operand.starts != starts or operand.matrix.shape != shape:
            raise Refusal(load, f"expected a row-major matrix of {shape[0]} x {shape[1]} at the offsets of C's tile")
        if operand != self.c and operand not in self.operands:
            self.operands.append(operand)
        self._sources[value] = operand

    @staticmethod
    def is_row(operand: Operand) -> bool:
        """Returns whether an operand is a row.

        Args:
            operand: of the epilogue.
        """
        return operand.matrix.shape[0] == 1

    def write(self, sums: ir.Value, operands: Sequence[ir.Value], c: ir.Value, adds_c: bool) -> ir.Operation:
        """Creates a `linalg.generic` that computes C, at the insertion point.

        Args:
            sums: the tensor or buffer of the sums.
            operands: the others, in order; rows have one dimension.
            c: what is written.
            adds_c: whether C is added to the sums first.

        Returns:
            The op; it has a result where C is a tensor.
        """
        rows, columns = (ir.AffineExpr.get_dim(axis) for axis in (0, 1))
        identity = ir.AffineMap.get(2, 0, [rows, columns])
        own = [ir.AffineMap.get(2, 0, [columns]) if self.is_row(operand) else identity for operand in self.operands]
        generic, block = create_generic([sums, *operands], [c], [identity, *own, identity])
        first, *others, element_of_c = block.arguments
        values: dict[ir.Value, ir.Value] = {}
        for vector, operand in self._sources.items():
            values[vector] = element_of_c if operand == self.c else others[self.operands.index(operand)]
        with ir.InsertionPoint(block):
            is_float = isinstance(first.type, ir.FloatType)
            values[self.sums] = (arith.addf if is_float else arith.addi)(first, element_of_c) if adds_c else first
            for op in self.ops:
                values[op.results[0]] = _element(op, values)
            end = values[self.ops[-1].results[0]] if self.ops else values[self.sums]
            ir.Operation.create("linalg.yield", operands=[end])
        return generic


def _element(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> ir.Value:
    """Returns what an op on vectors makes of one element, at the insertion point."""
    if op.name == "xetile.broadcast":
        return values[op.operands[0]]
    type_ = ir.VectorType(op.results[0].type).element_type
    attributes = {name: value for name, value in attributes_of(op).items() if name != "wg_map"}
    if op.name == "arith.constant":
        attributes["value"] = ir.DenseElementsAttr(attributes["value"]).get_splat_value()
    operands = [values[operand] for operand in op.operands]
    return ir.Operation.create(op.name, results=[type_], operands=operands, attributes=attributes).results[0]
