"""Scatter tiles in XeGPU: loads and stores of elements with offsets of their own."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import zero_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.xetile.xegpu_layouts import COLUMNS
from stepladder.extension.lib.xetile.xegpu_vectors import check_scalars
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.printed import memory_space
from stepladder.mlir.xetile.tile_type import TileType


def offsets_type(tile: TileType) -> ir.VectorType:
    """Returns the type of a scatter tile's offsets.

    Args:
        tile: its type.
    """
    return ir.VectorType.get(list(tile.shape), ir.IndexType.get())


def scattered_base(op: ir.Operation, tile: TileType, base: ir.Value) -> ir.Value:
    """Returns the memref of a scatter tile.

    Args:
        op: the `xetile.init_tile`, for refusals.
        tile: its type.
        base: its base.

    Raises:
        Refusal: a tile that lanes cannot share, or a base without a size.
    """
    if len(tile.shape) != 2 or tile.shape[1] % COLUMNS:
        raise Refusal(
            op,
            f"a scatter tile of {tile.vector} cannot be distributed to lanes; accepted: rows of a multiple "
            f"of {COLUMNS} elements",
        )
    check_scalars(op, tile.element)
    type_ = ir.MemRefType(base.type)
    is_whole = type_.has_static_shape and type_.get_strides_and_offset() == ([1], 0)
    if not is_whole or memory_space(type_.memory_space) != "global":
        raise Refusal(
            op, f"the base is {type_}: a scatter tile in lanes is of a static memref of global memory, without gaps"
        )
    return base


@dataclass(frozen=True)
class Scattered:
    """An access to a scatter tile.

    Attributes:
        tile: its type.
        base: its memref.
        offsets: of its elements.
        mask: of the elements that are accessed, as far as they are in the memref.
    """

    tile: TileType
    base: ir.Value
    offsets: ir.Value
    mask: ir.Value

    def _inside(self) -> ir.Value:
        """Returns the mask of the elements that the access has and the memref too; a negative offset is a large one."""
        type_ = offsets_type(self.tile)
        (count,) = ir.MemRefType(self.base.type).shape
        size = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(ir.IndexType.get(), count))
        within = arith.cmpi(arith.CmpIPredicate.ult, self.offsets, arith.constant(type_, size))
        return arith.andi(within, self.mask)

    def load(self, padding: ir.Attribute | None) -> ir.Value:
        """Creates the load; elements that are not loaded are the padding.

        Args:
            padding: a number of the element type; None for zero.

        Returns:
            The vector.
        """
        inside, type_ = self._inside(), self.tile.vector
        elements = _xegpu("load", [self.base, self.offsets, inside], [type_]).results[0]
        filler = ir.DenseElementsAttr.get_splat(type_, padding) if padding is not None else zero_of(type_)
        return arith.select(inside, elements, arith.constant(type_, filler))

    def store(self, value: ir.Value) -> None:
        """Creates the store.

        Args:
            value: the vector.
        """
        _xegpu("store", [value, self.base, self.offsets, self._inside()], [])


def _xegpu(name: str, operands: list[ir.Value], results: list[ir.Type]) -> ir.Operation:
    """Creates an access of rows of 16 elements."""
    layout = ir.Attribute.parse(f"#xegpu.layout<inst_data = [1, {COLUMNS}]>")
    attributes = {"layout": layout}
    return ir.Operation.create(f"xegpu.{name}", results=results, operands=operands, attributes=attributes).operation
