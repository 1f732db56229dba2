"""Elements that bodies of linalg ops extract at the indices of their loops, as operands.

Front ends extract the single element of a tensor, such as a scale, or elements at positions that turn out to be those
of the loops once sizes are known. Fusion and epilogues support operands; they would treat an extraction as one at any
index.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.constant_numbers import constant_number
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import producer, walk

_GENERIC, _EXTRACT, _INDEX = "linalg.generic", "tensor.extract", "linalg.index"


def replace(function: ir.Operation) -> None:
    """Turns the tensors that `linalg.generic` ops read at the indices of their loops into operands.

    Args:
        function: a function; it is changed where each index is that of a loop with as many iterations as the axis has
            elements, in an elementwise op, or 0 along an axis of one.
    """
    for op in walk(function, _GENERIC):
        if len(op.results) != 1 or not ir.ShapedType(op.results[0].type).has_static_shape:
            continue
        sizes = _sizes(op)
        found = [(item, axes) for item in walk(op, _EXTRACT) if (axes := _axes(item, op, sizes)) is not None]
        if found:
            _read(op, found)


def _sizes(op: ir.Operation) -> list[int]:
    """Returns the iterations of the loops of an op whose result each loop runs along once; none for another."""
    map_ = indexing_maps(op)[-1]
    is_plain = map_ == ir.AffineMap.get_identity(map_.n_dims)
    return list(ir.RankedTensorType(op.results[0].type).shape) if is_plain else []


def _axes(extract: ir.Operation, op: ir.Operation, sizes: Sequence[int]) -> list[int | None] | None:
    """Returns the loop along each axis of a tensor that an op extracts an element of, None for its one element; None
    for an extraction at other indices, or on a condition."""
    source, *indices = extract.operands
    if extract.block != op.regions[0].blocks[0] or not ir.RankedTensorType(source.type).has_static_shape:
        return None
    axes: list[int | None] = []
    for size, index in zip(ir.RankedTensorType(source.type).shape, indices):
        maker, number = producer(index), constant_number(index)
        if maker is not None and maker.name == _INDEX:
            loop = ir.IntegerAttr(maker.attributes["dim"]).value
            if not sizes or size != sizes[loop] or loop in axes:
                return None
            axes.append(loop)
        elif size == 1 and number is not None and number.value == 0:
            axes.append(None)
        else:
            return None
    return axes


def _read(op: ir.Operation, found: Sequence[tuple[ir.Operation, Sequence[int | None]]]) -> None:
    """Replaces an op by one with operands for elements that it extracts."""
    *maps, result_map = indexing_maps(op)
    *inputs, output = op.operands
    zero = ir.AffineExpr.get_constant(0)
    new_maps = [
        ir.AffineMap.get(result_map.n_dims, 0, [zero if loop is None else ir.AffineExpr.get_dim(loop) for loop in axes])
        for _, axes in found
    ]
    with ir.InsertionPoint(op), op.location:
        sources = [item.operands[0] for item, _ in found]
        new, block = create_generic([*inputs, *sources], [output], [*maps, *new_maps, result_map])
    *arguments, last = block.arguments
    values: dict[ir.Value, ir.Value] = dict(zip(op.regions[0].blocks[0].arguments, [*arguments[: len(inputs)], last]))
    values |= {item.results[0]: argument for (item, _), argument in zip(found, arguments[len(inputs) :])}
    extracts = [item for item, _ in found]
    body = [item.operation for item in op.regions[0].blocks[0].operations]
    clone_ops([item for item in body if item not in extracts], values, ir.InsertionPoint(block))
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()
