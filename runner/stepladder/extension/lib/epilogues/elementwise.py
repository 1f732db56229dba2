"""The elementwise op that consumes a tile of the product, computed on vectors of adjacent elements of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepladder.extension.lib import memory
from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.extension.lib.epilogues.reduced_results import find_reduced
from stepladder.extension.lib.epilogues.vector_bodies import compute_body, needed_values
from stepladder.extension.lib.vectors import repeated
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import axis_loops, create_named_op, with_swapped_loops
from stepladder.mlir.traverse import walk

# The attribute of the op, and of the buffers of the product.
MARK = "operand_c"
# The attribute of a call, where tiles extend beyond C: rows and columns of a warp's product, of which only some are
# inside of C.
WARP_TILE = "warp_tile"

_ROW, _COLUMN = 0, 1  # loops of the op


@dataclass(frozen=True)
class Position:
    """Where the elements of a vector are in the tile: `column`, and those after it, of `row`.

    Attributes:
        residues: of row and column, both modulo the elements of the vector; None for a column that is a multiple of
            them, in any row.
    """

    row: ir.Value
    column: ir.Value
    residues: tuple[int, int] | None = None


@dataclass(frozen=True)
class Outlined:
    """An elementwise op in a function of its own (`tc.outline_consumer`, `tc.outline_masked_consumer`).

    Attributes:
        call: of the function.
        function: the function.
        tiles: the buffers in shared memory of the block's products: one, or those of a pair.
        row, column: where in them the warp's part begins.
        rows, columns: extents of the warp's part.
        elementwise: the op, on the operands of the call.
        outputs: the warp's tiles, or the block's, of C and of the results beside it.
        is_of_block: whether the operands of the op are those of the block, so that positions count from its tile.
    """

    call: ir.Operation
    function: ir.Operation
    tiles: list[ir.Operation]
    row: ir.Value
    column: ir.Value
    rows: int
    columns: int
    elementwise: Elementwise
    outputs: list[ir.Value]
    is_of_block: bool

    @property
    def tile(self) -> ir.Operation:
        """The buffer of the first product; that of a second one has the same type."""
        return self.tiles[0]

    def position(self, row: ir.Value, column: ir.Value) -> Position:
        """Returns the position in the operands of an element of the block's product, at the insertion point.

        Args:
            row: of the element in the block's product, an index.
            column: of the element in the block's product, an index.
        """
        if self.is_of_block:
            return Position(row, column)
        return Position(arith.subi(row, self.row), arith.subi(column, self.column))

    def load(self, width: int, row: ir.Value, column: ir.Value) -> list[ir.Value]:
        """Returns adjacent elements of each product, at the insertion point.

        Args:
            width: how many, as a vector.
            row, column: of the first in the block's products.
        """
        vector = ir.VectorType.get([width], ir.MemRefType(self.tile.results[0].type).element_type)
        return [memory.load_vector(vector, tile.results[0], row, column) for tile in self.tiles]

    def erase(self, rewriter: Rewriter) -> None:
        """Erases call and function, after other ops have replaced them.

        Args:
            rewriter: that erases ops.
        """
        rewriter.erase_op(self.call)
        rewriter.erase_op(self.function)


def find_outlined(payload: ir.Operation) -> Outlined | None:
    """Returns the outlined op of a module, or None where there is none.

    Args:
        payload: the module.

    Raises:
        Refusal: several calls of outlined ops, or not exactly one outlined function.
    """
    calls = [call for call in walk(payload, "func.call") if MARK in call.attributes]
    functions = [function for function in walk(payload, "func.func") if MARK in function.attributes]
    if not calls:
        return None
    if len(calls) != 1 or len(functions) != 1:
        raise Refusal(calls[0], "expected one call of one function with an elementwise op on the product")
    (call,), (function,) = calls, functions
    (generic,) = walk(function, "linalg.generic")
    products = products_of(generic)
    tiles, (row, column, *others) = list(call.operands)[:products], list(call.operands)[products:]
    is_of_block = WARP_TILE in call.attributes
    rows, columns = (
        ir.DenseI64ArrayAttr(call.attributes[WARP_TILE])
        if is_of_block
        else ir.MemRefType(generic.operands[0].type).shape
    )
    elementwise = Elementwise(generic, [*tiles, *others])
    buffers = [memory.shared_tile_of(call, tile) for tile in tiles]
    return Outlined(call, function, buffers, row, column, rows, columns, elementwise, elementwise.outputs, is_of_block)


def is_elementwise(op: ir.Operation, rank: int = 2) -> bool:
    """Returns whether a `linalg.generic` computes each element of one row-major tile from those at the same position.

    Args:
        op: any op.
        rank: of the tile.
    """
    if op.name != "linalg.generic":
        return False
    maps = [ir.AffineMapAttr(attribute).value for attribute in op.attributes["indexing_maps"]]
    outputs = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[1]
    identity = ir.AffineMap.get_identity(rank)
    return all(map_ == identity for map_ in (maps[0], *maps[-outputs:]))


def products_of(op: ir.Operation) -> int:
    """Returns how many products an op reads: its first operands in shared memory, or one.

    Args:
        op: a `linalg.generic` on buffers.
    """
    others = [
        not isinstance(operand.type, ir.MemRefType) or not types.is_workgroup_memory(operand.type)
        for operand in op.operands
    ]
    return max(1, others.index(True)) if any(others) else 1


def zeros_of(product: ir.Operation) -> ir.Value:
    """Returns zeros for a matmul on tensors to start from, at the insertion point.

    Args:
        product: the matmul.
    """
    type_ = ir.RankedTensorType(product.results[0].type)
    element = type_.element_type
    zero = arith.constant(element, 0 if isinstance(element, ir.IntegerType) else 0.0)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    return create_named_op("linalg.fill", [zero], empty).results[0]


def computes(op: ir.Operation) -> bool:
    """Returns whether the body of an op does more than to round its first operand, or to copy it.

    Args:
        op: with a body of scalar ops.
    """
    names = [inner.name for inner in operations_of(op.regions[0].blocks[0])]
    return len(op.operands) != 2 or names not in (["arith.truncf", "linalg.yield"], ["linalg.yield"])


class Elementwise:
    """A `linalg.generic` on buffers whose first operand is the product, or whose first two are a pair of products.

    Attributes:
        products: how many they are (`products_of`).
        outputs: the buffers of its results.
        reduced: those that are reduced, and not stored themselves.
        stored: indices of the others.

    Args:
        op: the op.
        operands: its operands, where those of the op represent them.

    Raises:
        Refusal: the op is not elementwise, or takes a value that is no constant from outside of its body.
    """

    def __init__(self, op: ir.Operation, operands: Sequence[ir.Value] | None = None) -> None:
        if not is_elementwise(op):
            raise Refusal(op, "expected an elementwise op on the product, with results of its shape")
        self.op = op
        self.operands = list(op.operands if operands is None else operands)
        self.body = op.regions[0].blocks[0]
        self.products = products_of(op)
        self.outputs = self.operands[len(self.operands) - len(op.regions[0].blocks[0].operations[-1].operands) :]
        self.maps = [ir.AffineMapAttr(attribute).value for attribute in op.attributes["indexing_maps"]]
        self.reduced = find_reduced(self.outputs)
        reduced = {item.output for item in self.reduced}
        self.stored = [number for number in range(len(self.outputs)) if number not in reduced]

    def transposed(self, outputs: Sequence[ir.Value]) -> Elementwise:
        """Returns the op on the transposed product: positions are those of its results' transposes.

        Args:
            outputs: the buffers of the results, of which those of the op are transposes.
        """
        inputs = len(self.operands) - len(outputs)
        transpose = Elementwise(self.op, [*self.operands[:inputs], *outputs])
        transpose.maps[:inputs] = map(with_swapped_loops, self.maps[:inputs])
        return transpose

    def stores(self, sums: ir.Value | Sequence[ir.Value], position: Position) -> list[tuple[ir.Value, ir.Value]]:
        """Returns what is stored for a vector of the product, or an element, each with the output that it goes to.

        Arguments as for `compute`; results that are reductions are left out.

        Args:
            sums: a vector of the product, or an element; of a pair of products, one of each.
            position: of its elements, all inside of C.
        """
        results = self.compute(sums, position, self.stored)
        return [(value, self.outputs[number]) for number, value in zip(self.stored, results)]

    def load(
        self,
        position: Position,
        width: int | None,
        results: Sequence[int] | None = None,
        initial_values: Mapping[ir.Value, ir.Value] | None = None,
    ) -> dict[ir.Value, ir.Value]:
        """Returns what the further operands have at the position of a vector of the product, by arguments of the body.

        Args:
            position: of the vector's elements, all inside of C.
            width: of the vector; None for one element.
            results: those of the op that are computed; all if None.
            initial_values: of the operands that are not loaded here, by arguments of the body; None for none.
        """
        needed, operand_values = needed_values(self.op, results), dict(initial_values or {})
        for argument, operand, map_ in list(zip(self.body.arguments, self.operands, self.maps))[self.products :]:
            if argument in needed and argument not in operand_values:
                operand_values[argument] = _load(operand, map_, position, width)
        return operand_values

    def compute(
        self,
        sums: ir.Value | Sequence[ir.Value],
        position: Position,
        results: Sequence[int] | None = None,
        operand_values: dict[ir.Value, ir.Value] | None = None,
        *,
        rounds_pairs: bool = False,
    ) -> list[ir.Value]:
        """Returns the op's results for a vector of the product, or for one element of it, at the insertion point.

        Args:
            sums: a vector of rank 1, or a scalar, of the product; of a pair of products, one of each.
            position: of its elements, all inside of C.
            results: which are computed; all if None.
            operand_values: what `load` has returned for the vector; loaded here if None.
            rounds_pairs: whether one instruction rounds two elements (`paired_roundings`), as of sm_80 and later.

        Raises:
            Refusal: a body that does not end in `linalg.yield`.
        """
        products = [sums] if isinstance(sums, ir.Value) else list(sums)
        first = products[0].type
        width = ir.VectorType(first).shape[0] if isinstance(first, ir.VectorType) else None
        values: dict[ir.Value, ir.Value] = dict(zip(self.body.arguments, products))
        values |= self.load(position, width, results) if operand_values is None else operand_values
        return compute_body(self.op, values, width, results, rounds_pairs=rounds_pairs)


def _load(operand: ir.Value, map_: ir.AffineMap, position: Position, width: int | None) -> ir.Value:
    """Returns the elements of an operand that belong to those at a position; a scalar is the same everywhere."""
    if not isinstance(operand.type, ir.MemRefType):
        return operand if width is None else repeated(operand, width)
    type_ = ir.MemRefType(operand.type)
    loops = axis_loops(map_)

    def element(column: ir.Value) -> ir.Value:
        place = {_ROW: position.row, _COLUMN: column, None: None}
        indices = [index(0) if place[loop] is None else place[loop] for loop in loops]
        return ir.Operation.create("memref.load", results=[type_.element_type], operands=[operand, *indices]).results[0]

    if width is None:
        return element(position.column)
    if _COLUMN not in loops:
        return repeated(element(position.column), width)
    is_aligned = _is_aligned(type_, width, loops, position.residues) and memory.begins_at_multiple(operand, width)
    if loops[-1] == _COLUMN and is_aligned:
        places = {_ROW: position.row, _COLUMN: position.column}
        indices = [index(0) if loop is None else places[loop] for loop in loops]
        return memory.load_vector(ir.VectorType.get([width], type_.element_type), operand, *indices)
    elements = [
        element(arith.addi(position.column, index(number)) if number else position.column) for number in range(width)
    ]
    vector = ir.VectorType.get([width], type_.element_type)
    return ir.Operation.create("vector.from_elements", results=[vector], operands=elements).results[0]


def _is_aligned(
    type_: ir.MemRefType, width: int, loops: Sequence[int | None], residues: tuple[int, int] | None
) -> bool:
    """Returns whether a vector of `width` elements of a view begins at a multiple of them.

    A tile begins at multiples of its rows and columns, which are multiples of `width`. Where nothing is known of the
    vector's position in it (`residues`), rows must begin at multiples of `width`, whatever the first one.
    """
    strides, _ = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    is_vector = types.byte_width(type_.element_type) * width in (4, 8, 16, 32)
    if not is_vector or strides[-1] != 1 or unknown in strides:
        return False
    if residues is None:
        return all(stride % width == 0 for stride in strides[:-1])
    places = (0 if loop is None else residues[loop] * stride for loop, stride in zip(loops, strides))
    return sum(places) % width == 0
