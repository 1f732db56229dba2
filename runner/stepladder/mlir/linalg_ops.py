"""Linalg ops: creates named and generic ones, and reads indexing maps; upstream's builders take long to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepladder.mlir import bindings
from stepladder.mlir.bindings import ir

# Ops whose definition has one input and one output, instead of segments of them.
_ONE_INPUT = ("linalg.transpose", "linalg.broadcast")


def create_named_op(
    name: str,
    inputs: Sequence[ir.Value],
    output: ir.Value,
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> ir.Operation:
    """Creates a linalg op with one output and the body that its name implies, at the insertion point.

    Args:
        name: of the op, such as `linalg.add`.
        inputs: scalars, tensors or buffers.
        output: the tensor or the buffer that the op writes.
        attributes: of the op, beside the sizes of its operand segments.

    Returns:
        The op; it has a result if the output is a tensor.
    """
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1])} if name not in _ONE_INPUT else {}
    op = ir.Operation.create(
        name,
        results=[output.type] if isinstance(output.type, ir.RankedTensorType) else [],
        operands=[*inputs, output],
        attributes={**segments, **(attributes or {})},
        regions=1,
    )
    bindings.fill_builtin_region(op)
    return op


def create_generic(
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    maps: Sequence[ir.AffineMap],
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> tuple[ir.Operation, ir.Block]:
    """Creates a `linalg.generic` at the insertion point; loops that no output has are reductions.

    Args:
        inputs: scalars, tensors or buffers.
        outputs: tensors, of which each has a result, or buffers.
        maps: indexing maps of inputs and outputs, in order.
        attributes: of the op, beside those that the arguments give.

    Returns:
        The op, and the block of its body, which is empty and has an argument for each operand.
    """
    output_loops = {loop for map_ in maps[len(inputs) :] for loop in loops_of(map_)}
    kinds = ["parallel" if loop in output_loops else "reduction" for loop in range(maps[0].n_dims)]
    iterators = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    op = ir.Operation.create(
        "linalg.generic",
        results=[output.type for output in outputs if isinstance(output.type, ir.RankedTensorType)],
        operands=[*inputs, *outputs],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
            "iterator_types": ir.ArrayAttr.get(iterators),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(outputs)]),
            **(attributes or {}),
        },
        regions=1,
    )
    types = [
        ir.ShapedType(operand.type).element_type
        if isinstance(operand.type, (ir.RankedTensorType, ir.MemRefType))
        else operand.type
        for operand in op.operands
    ]
    return op, op.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))


def indexing_maps(op: ir.Operation) -> list[ir.AffineMap]:
    """Returns the indexing maps of a linalg op, one for each operand.

    Args:
        op: named or `linalg.generic`.
    """
    return [ir.AffineMapAttr(attribute).value for attribute in bindings.indexing_maps_of(op)]


def loops_of(map_: ir.AffineMap) -> list[int]:
    """Returns the loops that run along the axes of an operand, without axes of one element.

    Args:
        map_: an indexing map, from loops to axes.
    """
    return [item.position for item in map_.results if isinstance(item, ir.AffineDimExpr)]


def axis_loops(map_: ir.AffineMap) -> list[int | None]:
    """Returns the loop along each axis of an operand, None where the map has another expression.

    Args:
        map_: an indexing map, from loops to axes.
    """
    return [item.position if isinstance(item, ir.AffineDimExpr) else None for item in map_.results]


def create_loop_index(loop: int) -> ir.Value:
    """Returns the index of a loop, by a `linalg.index` in the body of a linalg op, at the insertion point.

    Args:
        loop: its index.
    """
    return ir.Operation.create(
        "linalg.index",
        results=[ir.IndexType.get()],
        attributes={"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), loop)},
    ).results[0]


def with_swapped_loops(map_: ir.AffineMap, batches: int = 0) -> ir.AffineMap:
    """Returns an indexing map with the loops of rows and columns swapped.

    Args:
        map_: whose results are loops and constants.
        batches: loops of a batch, which precede those of rows and columns.
    """
    first, second = (ir.AffineExpr.get_dim(batches + number) for number in range(2))
    results = [second if loop == first else first if loop == second else loop for loop in map_.results]
    return ir.AffineMap.get(map_.n_dims, 0, results)


def product_name(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> str:
    """Returns the name that a matmul or a batch has with other indexing maps: `linalg.batch_matmul` has no map of an
    operand that is both broadcast and transposed, `linalg.contract` has.

    Args:
        op: the matmul.
        maps: of A, B and C.
    """
    if op.name != "linalg.batch_matmul":
        return op.name
    *_, column, k = range(maps[0].n_dims)
    is_general = any(
        len(map_.results) < len(maps[2].results) and axis_loops(map_)[-1] != last
        for map_, last in zip(maps, (k, column))
    )
    return "linalg.contract" if is_general else op.name
