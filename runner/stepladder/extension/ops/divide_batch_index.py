"""`tc.divide_batch_index`: tiles of a batch are in A, B or C that have several strides between their matrices."""

from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import digits
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import bufferization, ir
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import attributes_of, defining_op, producer, users_of, walk
from stepladder.mlir.windows import division_of, strided_reads, window, without_repeats

# Slices of the result in the loop, with the operand that they are of.
_SLICES = {"tensor.extract_slice": 0, "tensor.parallel_insert_slice": 1}


class DivideBatchIndex(Tc.Operation, name="divide_batch_index"):
    """Stores the tiles of a batch to a C of which the batch has several dimensions, each with a stride of its own, and
    loads those of such an A or B.

    The loop over tiles then makes C itself, and tiles are at the quotients and remainders of the batch index by the
    extents of these dimensions. A result that no `tensor.reshape` divides stays as it is, as does an operand that none
    joins. An operand that several matmuls share has axes of a stride of 0; these are dropped.

    Operands: a handle to ops with `scf.forall` below, whose first index is that of the batch.
    Refuses: a joined operand of which no such loop takes slices; a divided result that no such loop makes, or of which
        the loop reads what C holds; tiles of several matrices.
    """

    target: Handle


@transform_op(DivideBatchIndex)
def divide_batch_index(payload: ir.Operation, op: DivideBatchIndex, rewriter: Rewriter) -> None:
    """Rewrites the loop below `payload`; see the op."""
    for join in walk(payload, "tensor.reshape"):
        if strided_reads(join) is not None:
            _read_divided(join, rewriter)
    for store in walk(payload, "bufferization.materialize_in_destination"):
        division = division_of(store)
        if division is None:
            continue
        loop = producer(division.operands[0])
        if loop is None or loop.name != "scf.forall":
            raise Refusal(division, "expected the result of a loop over tiles")
        number = ir.OpResult(division.operands[0]).result_number
        place = len(loop.operands) - len(loop.results) + number
        start = producer(loop.operands[place])
        if start is None or start.name != "tensor.empty":
            raise Refusal(loop, "expected a loop over tiles that does not read C, which has several strides in a batch")
        type_ = ir.RankedTensorType(division.results[0].type)
        with ir.InsertionPoint(loop), store.location:
            loop.operands[place] = bufferization.to_tensor(type_, store.operands[1], restrict=True, writable=True)
        body = loop.regions[0].blocks[0]
        result = body.arguments[len(body.arguments) - len(loop.results) + number]
        with ir.InsertionPoint.at_block_begin(body), loop.location:
            indices = digits(body.arguments[0], type_.shape[:-2])
        users = users_of(result)
        for value in (result, loop.results[number]):
            value.set_type(type_)
        for user in users:
            _divide(user, body.arguments[0], indices, rewriter)
        rewriter.replace_op(division, [loop.results[number]])


def _read_divided(join: ir.Operation, rewriter: Rewriter) -> None:
    """Makes the loop over tiles read A or B at the divided batch index, in place of a reshape to one dimension."""
    users = users_of(join.results[0])
    loops = {user.parent.operation for user in users if user.parent is not None}
    if len(loops) != 1 or (loop := loops.pop()).name != "scf.forall":
        raise Refusal(join, "expected slices of A or B in a loop over tiles")
    body, source = loop.regions[0].blocks[0], join.operands[0]
    with ir.InsertionPoint.at_block_begin(body), loop.location:
        indices = digits(body.arguments[0], ir.RankedTensorType(source.type).shape[:-2])
    read = defining_op(source)
    strides, _ = ir.MemRefType(read.operands[0].type).get_strides_and_offset()
    indices = [index for index, stride in zip(indices, strides) if stride != 0]
    source = _without_repeats(read)
    join.results[0].replace_all_uses_with(source)
    for user in users:
        _divide(user, body.arguments[0], indices, rewriter)
    rewriter.erase_op(join)
    if not list(read.results[0].uses):
        view = defining_op(read.operands[0])
        rewriter.erase_op(read)
        rewriter.erase_op(view)


def _without_repeats(read: ir.Operation) -> ir.Value:
    """Returns what an op reads without the axes of a stride of 0, along which matmuls share their matrices."""
    type_ = ir.MemRefType(read.operands[0].type)
    whole = without_repeats(type_)
    if whole == type_:
        return read.results[0]
    strides, offset = whole.get_strides_and_offset()
    tensor = ir.RankedTensorType.get(whole.shape, whole.element_type)
    with ir.InsertionPoint(read), read.location:
        view = window(defining_op(read.operands[0]).operands[0], offset, whole.shape, strides)
        return bufferization.to_tensor(tensor, view, restrict=True)


def _divide(user: ir.Operation, batch: ir.Value, indices: Sequence[ir.Value], rewriter: Rewriter) -> None:
    """Replaces a slice at a batch index, or the insertion of one, by that at the divided index."""
    offsets, sizes, strides = numbers_of(user) if user.name in _SLICES else ([], [], [])
    operands, first = list(user.operands), _SLICES.get(user.name, 0) + 1
    if sizes[:1] != [1] or operands[first : first + 1] != [batch]:
        raise Refusal(user, "expected slices at the batch index of the loop, of one matrix each")
    segments = list(ir.DenseI32ArrayAttr(user.attributes["operandSegmentSizes"]))
    segments[first] += len(indices) - 1
    count = len(indices)
    attributes = attributes_of(user) | {
        "static_offsets": ir.DenseI64ArrayAttr.get(offsets[:1] * count + offsets[1:]),
        "static_sizes": ir.DenseI64ArrayAttr.get([1] * count + sizes[1:]),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * count + strides[1:]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
    }
    operands[first : first + 1] = indices
    with ir.InsertionPoint(user), user.location:
        types = [result.type for result in user.results]
        new_op = ir.Operation.create(user.name, results=types, operands=operands, attributes=attributes)
    if types:
        rewriter.replace_op(user, list(new_op.results))
    else:
        rewriter.erase_op(user)
