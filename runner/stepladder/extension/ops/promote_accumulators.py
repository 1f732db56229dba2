"""`tc.promote_accumulators`: adds products of fp8 to accumulators in f32, outside of the tensor core."""

from stepladder.extension.lib import tma_pipeline, vectors, warpgroup_ops
from stepladder.extension.lib.arithmetic import zero_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer, walk


class PromoteAccumulators(Tc.Operation, name="promote_accumulators"):
    """Accumulates products of fp8 from zero, and adds them to the accumulator by `arith.addf`.

    A warpgroup MMA sums the products of a whole k step, `nvgpu.mma.sync` those of 32 of k. Where the registers of a
    thread do not hold two accumulators, the attribute `columns` limits the columns of a warpgroup MMA, which is divided
    into equal parts, one after the other. A warpgroup MMA that already starts from zero, as that of a single k step,
    stays as it is, and so do products of other types.

    Operands: a handle to any op.
    Attributes: `columns`, a multiple of 8.
    Refuses: a warpgroup MMA that may be in flight when the addition reads it; accumulators that are not f32; columns
    that are not a positive multiple of 8, or without equal parts of 32 columns or more.
    """

    target: Handle
    columns: ir.IntegerAttr


_MMA_SYNC = "nvgpu.mma.sync"
_MULTIPLE, _LEAST_PART = 8, 32  # columns


def _promote(mma: ir.Operation, columns: int) -> None:
    """Divides a warpgroup MMA into MMAs that start from zero, and adds their results to the accumulator."""
    accumulator = mma.operands[2]
    if warpgroup_ops.in_flight(mma) != 0:
        raise Refusal(mma, "expected a product that is complete (waitGroup = 0) before it is added")
    type_ = types.accumulator_vector(accumulator.type)
    if types.name_of(type_.element_type) != "f32":
        raise Refusal(mma, f"expected accumulators of f32, found {types.name_of(type_.element_type)}")
    rows, all_columns = type_.shape
    columns = _equal_parts(mma, all_columns, columns)
    with ir.InsertionPoint(mma), mma.location:
        zero = warpgroup_ops.init_accumulator(types.accumulator(rows, columns, type_.element_type))
        total = warpgroup_ops.as_vector(accumulator)
        for first in range(0, all_columns, columns):
            step = warpgroup_ops.as_vector(warpgroup_ops.add_columns(mma, first, zero))
            total = _add(total, step, first // _MULTIPLE)
        result = warpgroup_ops.of_vector(total, accumulator.type)
    mma.results[0].replace_all_uses_with(result)


def _equal_parts(mma: ir.Operation, columns: int, limit: int) -> int:
    """Returns the most columns, up to `limit`, of equal parts of a product; ptxas spills the sums of unequal ones."""
    matrices = columns // _MULTIPLE
    widths = [width for width in range(1, matrices + 1) if matrices % width == 0 and width * _MULTIPLE <= limit]
    if not widths or (columns > limit and widths[-1] * _MULTIPLE < _LEAST_PART):
        raise Refusal(
            mma,
            f"registers hold the sums of {limit} of {columns} columns beside the accumulators, and {columns} columns "
            f"have no equal parts of {_LEAST_PART} to {limit}: take a tile of other sizes, or fast_accum = true",
        )
    return widths[-1] * _MULTIPLE


def _add(sums: ir.Value, step: ir.Value, first: int) -> ir.Value:
    """Returns sums of a thread, to which those of some of the matrices of 8 columns, from `first` on, are added."""
    if step.type == sums.type:
        return arith.addf(sums, step)
    offsets = [0, first, 0, 0]
    part = arith.addf(vectors.extract_slice(sums, offsets, step.type), step)
    return vectors.insert_slice(part, sums, offsets)


def _promote_fragment(mma: ir.Operation) -> None:
    """Lets an `nvgpu.mma.sync` start from zero, and adds its result to the accumulator."""
    accumulator = mma.operands[2]
    type_ = ir.VectorType(accumulator.type)
    uses = list(mma.results[0].uses)
    with ir.InsertionPoint(mma), mma.location:
        mma.operands[2] = arith.constant(type_, zero_of(type_))
    with ir.InsertionPoint.after(mma), mma.location:
        total = arith.addf(accumulator, mma.results[0])
    for use in uses:
        use.owner.operation.operands[use.operand_number] = total


@transform_op(PromoteAccumulators)
def promote_accumulators(payload: ir.Operation, op: PromoteAccumulators, rewriter: Rewriter) -> None:
    """Rewrites the products of fp8 below `payload`; see the op."""
    columns = op.columns.value
    if columns < _MULTIPLE or columns % _MULTIPLE:
        raise Refusal(payload, f"columns must be a positive multiple of {_MULTIPLE}, got {columns}")
    for mma in tma_pipeline.mmas_below(payload):
        start = producer(mma.operands[2])
        starts_from_zero = start is not None and start.name in warpgroup_ops.INIT_ACCUMULATORS
        if types.is_fp8(types.matrix_descriptor_tile(mma.operands[1].type).element_type) and not starts_from_zero:
            _promote(mma, columns)
            rewriter.erase_op(mma)
    for mma in walk(payload, _MMA_SYNC):
        if types.is_fp8(ir.VectorType(mma.operands[0].type).element_type):
            _promote_fragment(mma)
