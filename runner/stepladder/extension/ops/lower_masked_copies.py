"""`tc.lower_masked_copies`: lowers masked reads of A and B, and writes of narrow vectors to shared memory."""

from stepladder.extension.lib import memory, vectors
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir import types
from stepladder.mlir.bindings import ir, scf
from stepladder.mlir.traverse import producer, walk
from stepladder.mlir.types import is_workgroup_memory


class LowerMaskedCopies(Tc.Operation, name="lower_masked_copies"):
    """Lowers reads that are masked by all elements or none to loads under a condition, and narrow writes to stores.

    A masked `vector.transfer_read` becomes an `scf.if`: a `vector.load`, or the padding value. LLVM would lower a
    masked load to a branch for each element. A `vector.transfer_write` of less than 16 bytes to shared memory becomes a
    `vector.store` that is aligned to its size; `lower_transfers` lowers the others.

    Operands: a handle to any op; all transfers of vectors of rank 1 below are rewritten.
    Refuses: a mask that is not all elements or none by an `arith.select`.
    """

    target: Handle


_WIDEST = 16  # bytes of an access


def _condition(read: ir.Operation, mask: ir.Value, width: int) -> ir.Value | bool:
    """Returns whether a read takes all elements; else it takes none."""
    source = producer(mask)
    if source is not None and source.name == "arith.constant":
        constant = ir.DenseElementsAttr(source.attributes["value"])
        if constant.is_splat:
            return bool(ir.BoolAttr(constant.get_splat_value()).value)
    count = producer(source.operands[0]) if source is not None and source.name == "vector.create_mask" else None
    if count is not None and count.name == "arith.select":
        values = [producer(value) for value in list(count.operands)[1:]]
        numbers = [
            ir.IntegerAttr(value.attributes["value"]).value
            for value in values
            if value is not None and value.name == "arith.constant"
        ]
        if numbers == [width, 0]:
            return count.operands[0]
    raise Refusal(read, f"expected a mask of {width} elements or none")


def _lower_read(read: ir.Operation, rewriter: Rewriter) -> None:
    buffer, *indices, padding, mask = read.operands
    type_ = ir.VectorType(read.results[0].type)
    with ir.InsertionPoint(read), read.location:
        condition = _condition(read, mask, type_.shape[0])
        if condition is True:
            value = memory.load_vector(type_, buffer, *indices)
        else:
            zeros = vectors.repeated(padding, type_.shape[0])
            value = zeros
            if isinstance(condition, ir.Value):
                branch = scf.IfOp(condition, [type_], has_else=True)
                with ir.InsertionPoint(branch.then_block):
                    scf.yield_([memory.load_vector(type_, buffer, *indices)])
                with ir.InsertionPoint(branch.else_block):
                    scf.yield_([zeros])
                value = branch.results[0]
    read.results[0].replace_all_uses_with(value)
    rewriter.erase_op(read)


@transform_op(LowerMaskedCopies)
def lower_masked_copies(payload: ir.Operation, op: LowerMaskedCopies, rewriter: Rewriter) -> None:
    """Rewrites the transfers below `payload`; see the op."""
    for read in walk(payload, "vector.transfer_read"):
        has_mask = list(ir.DenseI32ArrayAttr(read.attributes["operandSegmentSizes"]))[-1]
        if has_mask and ir.VectorType(read.results[0].type).rank == 1:
            _lower_read(read, rewriter)
    for write in walk(payload, "vector.transfer_write"):
        value, buffer, *indices = write.operands
        type_ = ir.VectorType(value.type)
        bytes_ = type_.shape[0] * types.byte_width(type_.element_type)
        if type_.rank == 1 and bytes_ < _WIDEST and is_workgroup_memory(buffer.type):
            with ir.InsertionPoint(write), write.location:
                memory.store_vector(value, buffer, *indices)
            rewriter.erase_op(write)
