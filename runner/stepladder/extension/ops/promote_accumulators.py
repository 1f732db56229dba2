"""`tc.promote_accumulators`: adds the product of each k step to accumulators in f32 registers."""

from stepladder.extension.lib import pipeline, warpgroup_ops
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer


class PromoteAccumulators(Tc.Operation, name="promote_accumulators"):
    """Accumulates the product of a k step from zero, and adds it to the accumulator by `arith.addf`.

    A product that already starts from zero, as that of a single k step, stays as it is.

    Operands: a handle to any op.
    Refuses: an MMA that may be in flight when the addition reads it; accumulators that are not f32.
    """

    target: Handle


@transform_op(PromoteAccumulators)
def promote_accumulators(payload: ir.Operation, op: PromoteAccumulators, rewriter: Rewriter) -> None:
    """Rewrites the warpgroup MMAs below `payload`; see the op."""
    for mma in pipeline.mmas_below(payload):
        accumulator = mma.operands[2]
        before = producer(accumulator)
        if before is not None and before.name in warpgroup_ops.INIT_ACCUMULATORS:
            continue
        if warpgroup_ops.in_flight(mma) != 0:
            raise Refusal(mma, "expected a product that is complete (waitGroup = 0) before it is added")
        name = types.name_of(types.accumulator_vector(accumulator.type).element_type)
        if name != "f32":
            raise Refusal(mma, f"expected accumulators of f32, found {name}")
        uses = list(mma.results[0].uses)
        with ir.InsertionPoint(mma), mma.location:
            mma.operands[2] = warpgroup_ops.init_accumulator(accumulator.type)
        with ir.InsertionPoint.after(mma), mma.location:
            sums = [warpgroup_ops.as_vector(value) for value in (accumulator, mma.results[0])]
            total = warpgroup_ops.of_vector(arith.addf(*sums), accumulator.type)
        for use in uses:
            use.owner.operation.operands[use.operand_number] = total
