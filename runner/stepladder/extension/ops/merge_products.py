"""`tc.merge_products`: makes one matmul of two that read one A, on tiles side by side in shared memory."""

from stepladder.extension.lib import launches, memory
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir, memref
from stepladder.mlir.linalg_ops import create_named_op, indexing_maps
from stepladder.mlir.traverse import attributes_of, defining_op, producer, users_of, walk


class MergeProducts(Tc.Operation, name="merge_products"):
    """Replaces two `linalg.matmul` ops on one tile of A by one, of twice as many columns.

    The tiles of both B become the halves of one tile in shared memory, along n, and so do both accumulator tiles. What
    reads or writes a tile takes a view of its half: the copies to the tiles of B, and the op that reads the products.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: other matmuls than two on one tile of A, in one block, whose tiles of B and of the accumulators are
        allocations of the same type.
    """

    target: Handle


def _allocation(matmul: ir.Operation, number: int) -> ir.Operation:
    """Returns the allocation that is an operand of a matmul."""
    source = producer(matmul.operands[number])
    if source is None or source.name != "memref.alloc":
        raise Refusal(matmul, f"operand {number} is not a whole tile in shared memory")
    return source


def _axis_of_n(matmul: ir.Operation) -> int:
    """Returns which axis of B's tile runs along n: the first where B is stored as n x k."""
    return 1 if indexing_maps(matmul)[1].results[0] == ir.AffineExpr.get_dim(2) else 0


def _joined(first: ir.Operation, second: ir.Operation, axis: int, rewriter: Rewriter) -> ir.Value:
    """Replaces two allocations of one type by views of the halves, along an axis, of a new one; returns that."""
    type_ = ir.MemRefType(first.results[0].type)
    if second.results[0].type != type_ or second.block != first.block:
        raise Refusal(second, f"expected a second tile of {type_} beside the first")
    shape = list(type_.shape)
    shape[axis] *= 2
    attributes = {name: item for name, item in attributes_of(first).items() if name != "operandSegmentSizes"}
    with ir.InsertionPoint(min(first, second, key=operations_of(first.block).index)), first.location:
        joined_buffer = memref.alloc(
            ir.MemRefType.get(shape, type_.element_type, memory_space=type_.memory_space), [], []
        )
        for name, attribute in attributes.items():
            defining_op(joined_buffer).attributes[name] = attribute
        for number, old in enumerate((first, second)):
            offsets = [number * extent if dimension == axis else 0 for dimension, extent in enumerate(type_.shape)]
            half = memory.subview(joined_buffer, offsets, list(type_.shape))
            _retype_views(old.results[0], half, rewriter)
            old.results[0].replace_all_uses_with(half)
    for old in (first, second):
        rewriter.erase_op(old)
    return joined_buffer


def _retype_views(tile: ir.Value, half: ir.Value, rewriter: Rewriter) -> None:
    """Replaces the views of a tile, of what is inside of a matrix, by those of its half: their types have strides."""
    for view in users_of(tile):
        if view.name != "memref.subview":
            continue
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        dynamic = list(view.operands)[1:]
        offsets, sizes = (
            [dynamic.pop(0) if number == unknown else number for number in ir.DenseI64ArrayAttr(view.attributes[name])]
            for name in ("static_offsets", "static_sizes")
        )
        with ir.InsertionPoint(view), view.location:
            rewriter.replace_op(view, [memory.subview(half, offsets, sizes)])


@transform_op(MergeProducts)
def merge_products(payload: ir.Operation, op: MergeProducts, rewriter: Rewriter) -> None:
    """Rewrites the matmuls of the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    matmuls = walk(launch, "linalg.matmul")
    if len(matmuls) != 2 or matmuls[0].operands[0] != matmuls[1].operands[0]:
        raise Refusal(launch, f"expected two matmuls of one A in the launch, found {len(matmuls)} matmuls")
    first, second = matmuls
    maps = [matmul.attributes.get("indexing_maps", None) for matmul in matmuls]
    if maps[0] != maps[1] or first.block != second.block:
        raise Refusal(second, "expected it beside the first matmul, with operands in the same layouts")
    tile_of_a = first.operands[0]
    tiles_of_b, accumulators = ([_allocation(matmul, number) for matmul in matmuls] for number in (1, 2))
    b = _joined(tiles_of_b[0], tiles_of_b[1], _axis_of_n(first), rewriter)
    accumulator = _joined(accumulators[0], accumulators[1], 1, rewriter)
    with ir.InsertionPoint(second), first.location:
        attributes = {} if maps[0] is None else {"indexing_maps": maps[0]}
        create_named_op("linalg.matmul", [tile_of_a, b], accumulator, attributes)
    for matmul in matmuls:
        rewriter.erase_op(matmul)
