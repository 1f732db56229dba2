"""`tc.unroll_loops`: replaces the loops of a function by copies of their bodies."""

from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.control_flow import BOUNDS, constant_bounds, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.stages import one_function
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import walk


class UnrollLoops(Tc.Operation, name="unroll_loops"):
    """Replaces each `scf.for` of a function on tensors by its iterations, one after the other.

    Upstream's unrolling takes one factor for all loops, which here differ.

    Operands: a handle to a module with one public function. Attributes: `at_most`, iterations of a loop;
    `at_most_in_all`, those of all loops without a loop inside, as many as each runs in the function. Refuses a loop
    whose bounds and step are not constants, more iterations, and a function on buffers, which no step after it divides.
    """

    target: Handle
    at_most: ir.IntegerAttr
    at_most_in_all: ir.IntegerAttr


@transform_op(UnrollLoops)
def unroll_loops(payload: ir.Operation, op: UnrollLoops, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    function = one_function(payload)
    body = function.regions[0].blocks[0]
    for argument in body.arguments:
        if isinstance(argument.type, ir.MemRefType):
            raise Refusal(
                function,
                f"argument {argument.arg_number} is {argument.type}; accepted: functions on tensors, to which "
                "`stepladder compile` rewrites those on buffers",
            )
    total = 0
    while True:
        loop = next((item for item in operations_of(body) if item.name == "scf.for"), None)
        if loop is None:
            return
        bounds = constant_bounds(loop)
        if bounds is None or bounds[2] <= 0:
            raise Refusal(loop, "a loop around kernels; accepted: constant bounds and a positive constant step")
        iterations = range(*bounds)
        if len(iterations) > op.at_most.value:
            raise Refusal(
                loop,
                f"a loop of {len(iterations)} iterations, of which each launches kernels; accepted: at most "
                f"{op.at_most.value}",
            )
        total += len(iterations) if len(walk(loop, "scf.for")) == 1 else 0
        if total > op.at_most_in_all.value:
            raise Refusal(
                loop,
                f"loops of more than {op.at_most_in_all.value} iterations in all, of which each launches kernels; "
                f"accepted: at most {op.at_most_in_all.value}",
            )
        rewriter.replace_op(loop, _unrolled(loop, iterations))


def _unrolled(loop: ir.Operation, iterations: range) -> list[ir.Value]:
    """Copies the body of a loop before it, once for each iteration; returns the results of the last one."""
    block = loop.regions[0].blocks[0]
    *ops, end = operations_of(block)
    values = list(loop.operands)[BOUNDS:]
    with ir.InsertionPoint(loop), loop.location:
        for number in iterations:
            mapping: dict[ir.Value, ir.Value] = dict(zip(block.arguments, [index(number), *values]))
            new = clone_ops(ops, mapping, ir.InsertionPoint(loop))
            values = [new.get(value, value) for value in end.operands]
    return values
