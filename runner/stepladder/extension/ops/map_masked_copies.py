"""`tc.map_masked_copies`: distributes copies to shared memory over threads, with zeros beyond the edges of A and B."""

from dataclasses import dataclass

from stepladder.extension.lib import memory, threads
from stepladder.extension.lib.arithmetic import apply, index
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues import epilogue
from stepladder.mlir.bindings import arith, ir, vector
from stepladder.mlir.traverse import producer, users_of, walk


class MapMaskedCopies(Tc.Operation, name="map_masked_copies"):
    """Makes each copy to a shared tile transfers of vectors, which the threads of a block take in turn.

    Thread t takes vectors t, t + threads, t + 2 threads and so on of the tile, row by row. Where a tile extends beyond
    its matrix, a vector outside is zeros: its read is masked, by all of its elements or none, and the `linalg.fill` of
    the whole tile is erased. A vector never crosses an edge, because its width divides the rows of the matrix.

    Operands: a handle to ops with the copies, which have the attribute `operand`, below.
    Attributes: operand, the name of that attribute; threads, of a block; width, elements of a vector.
    Refuses: rows of a matrix that are no multiple of the width; a tile that is no multiple of the vectors of all
        threads; rows of a tile that are neither a multiple of those vectors nor a part of them.
    """

    target: Handle
    operand: ir.StringAttr
    threads: ir.IntegerAttr
    width: ir.IntegerAttr


@dataclass(frozen=True)
class _Copy:
    """A copy to a tile.

    Attributes:
        op: the `linalg.copy`.
        tile: the buffer in shared memory.
        fill: the `linalg.fill` of the tile; None where the copy fills all of it.
    """

    op: ir.Operation
    tile: ir.Operation
    fill: ir.Operation | None


def _find(copy: ir.Operation) -> _Copy:
    tile = memory.shared_tile_of(copy, copy.operands[1])
    fills = [user for user in users_of(tile.results[0]) if user.name == "linalg.fill" and user.block == copy.block]
    return _Copy(copy, tile, fills[0] if fills else None)


def _check_rows(copy: ir.Operation, width: int) -> None:
    """Checks that no vector of the matrix crosses the end of a row."""
    type_ = ir.MemRefType(copy.operands[0].type)
    strides, _ = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    if strides[1] != 1 or strides[0] == unknown or strides[0] % width:
        raise Refusal(copy, f"the rows of the matrix are no multiple of {width} elements")


def _and(left: ir.Value | None, right: ir.Value | None) -> ir.Value | None:
    if left is None or right is None:
        return right if left is None else left
    return arith.andi(left, right)


def _below(value: ir.Value, extent: ir.Value | None) -> ir.Value | None:
    """Returns whether `value` is below an extent, which is signed: it is negative after the last step."""
    return None if extent is None else arith.cmpi(arith.CmpIPredicate.slt, value, extent)


def _distribute(copy: _Copy, block: int, width: int) -> None:
    """Creates the transfers of a thread, at the insertion point."""
    source, tile = copy.op.operands[0], copy.tile.results[0]
    type_ = ir.MemRefType(tile.type)
    rows, columns = type_.shape
    row_extent, column_extent = epilogue.extents_of(source, [rows, columns])
    across = columns // width  # vectors of a row
    thread = threads.thread_id()
    zero = arith.constant(type_.element_type, 0 if isinstance(type_.element_type, ir.IntegerType) else 0.0)
    vector_type = ir.VectorType.get([width], type_.element_type)
    mask_type = ir.VectorType.get([width], ir.IntegerType.get_signless(1))
    identity = ir.AffineMap.get(2, 0, [ir.AffineExpr.get_dim(1)])
    for number in range(rows * across // block):
        if block % across == 0:
            first = number * (block // across)
            row = apply(lambda t, first=first: ir.AffineExpr.get_floor_div(t, across) + first, thread)
            column = apply(lambda t: ir.AffineExpr.get_mod(t, across) * width, thread)
        else:
            # As an expression of the thread, which is 0, where rows have an edge: `cp.async` takes no mask that folds.
            first = number // (across // block)
            row = (
                index(first)
                if row_extent is None
                else apply(lambda t, first=first: ir.AffineExpr.get_floor_div(t, across) + first, thread)
            )
            first = number % (across // block) * block * width
            column = apply(lambda t, first=first: t * width + first, thread)
        inside = _and(_below(row, row_extent), _below(column, column_extent))
        mask = None
        if inside is not None:
            mask = vector.create_mask(mask_type, [arith.select(inside, index(width), index(0))])
        value = vector.transfer_read(vector_type, source, [row, column], identity, zero, [True], mask=mask)
        vector.transfer_write(None, value, tile, [row, column], identity, [True])


@transform_op(MapMaskedCopies)
def map_masked_copies(payload: ir.Operation, op: MapMaskedCopies, rewriter: Rewriter) -> None:
    """Rewrites the copies below `payload`; see the op."""
    block, width = op.threads.value, op.width.value
    for copy in walk(payload, "linalg.copy"):
        if op.operand.value not in copy.attributes:
            continue
        masked_copy = _find(copy)
        rows, columns = ir.MemRefType(masked_copy.tile.results[0].type).shape
        _check_rows(copy, width)
        across = columns // width
        if columns % width or rows * across % block or (block % across and across % block):
            raise Refusal(
                copy,
                f"a tile of {rows} x {columns} cannot be divided evenly among {block} threads in vectors of {width}",
            )
        with ir.InsertionPoint(copy), copy.location:
            _distribute(masked_copy, block, width)
        view = producer(copy.operands[1])
        rewriter.erase_op(copy)
        if masked_copy.fill is not None:
            rewriter.erase_op(masked_copy.fill)
        if view is not None and view != masked_copy.tile and not list(view.results[0].uses):
            rewriter.erase_op(view)
