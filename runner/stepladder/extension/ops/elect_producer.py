"""`tc.elect_producer`: the thread of the producer that issues loads is elected."""

from stepladder.extension.lib import launches, threads
from stepladder.extension.lib.arithmetic import constant_value, equal, index
from stepladder.extension.lib.control_flow import create_if, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, ir, nvvm
from stepladder.mlir.traverse import producer, walk


class ElectProducer(Tc.Operation, name="elect_producer"):
    """Lets the first warp of the producer elect the thread that issues loads, by `nvvm.elect.sync`.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: a launch without specialized warps, or whose producer is not the first thread of its last warpgroup.
    """

    target: Handle


def _producer(launch: ir.Operation, first: int) -> ir.Operation:
    """Returns the `scf.if` of the thread that issues loads, whose index is `first`."""
    releases = [op for op in walk(launch, "nvvm.setmaxregister") if "decrease" in str(op.attributes["action"])]
    if len(releases) != 1:
        raise Refusal(launch, "expected a launch with specialized warps")
    branches = [op for op in operations_of(releases[0].block) if op.name == "scf.if"]
    if len(branches) == 1:
        comparison = producer(branches[0].operands[0])
        if (
            comparison is not None
            and comparison.name == "arith.cmpi"
            and ir.IntegerAttr(comparison.attributes["predicate"]).value == arith.CmpIPredicate.eq
            and constant_value(comparison.operands[1]) == first
            and (number := producer(comparison.operands[0])) is not None
            and number.name == "gpu.thread_id"
        ):
            return branches[0]
    raise Refusal(releases[0], "expected the first thread of the warpgroup to issue loads")


@transform_op(ElectProducer)
def elect_producer(payload: ir.Operation, op: ElectProducer, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    first = launches.launch_sizes(launch, launches.BLOCK)[0] - threads.WARPGROUP
    leader = _producer(launch, first)
    with ir.InsertionPoint(leader), leader.location:
        loads = equal(threads.uniform_warp_id(), index(first // threads.WARP))
        with create_if(loads):
            is_elected = nvvm.elect_sync()
    leader.move_after(is_elected.owner)
    leader.operands[0] = is_elected
