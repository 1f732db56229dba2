"""`tc.copy_tiles_ahead`: copies the tiles of the next iteration of a loop while those of this one are used."""

from stepladder.extension.lib import copying_loops, launches
from stepladder.extension.lib.arithmetic import less_than
from stepladder.extension.lib.control_flow import body_of, create_if, operations_of
from stepladder.extension.lib.copying_loops import BARRIER, COMMIT, COPY
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import walk


class CopyTilesAhead(Tc.Operation, name="copy_tiles_ahead"):
    """Copies the tiles that an iteration of a loop reads one iteration before, by `cp.async`.

    The tiles have two stages, which iterations use in turn. The first ones are copied before the loop. An
    iteration waits for its own, and then begins to copy the next ones to the other stage, which all threads have read
    before the barrier: the barrier at the end of the loop is erased.

    Operands: a handle to any op with one `gpu.launch`, in which one loop copies tiles: it begins with the copies, their
    commit, a wait for them and a barrier, and ends with a barrier.
    Refuses: other loops.
    """

    target: Handle


@transform_op(CopyTilesAhead)
def copy_tiles_ahead(payload: ir.Operation, op: CopyTilesAhead, rewriter: Rewriter) -> None:
    """Rewrites the loop in the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    loop = copying_loops.find(launch)
    body = operations_of(body_of(loop))
    barriers = [item for item in body if item.name == BARRIER]
    commits = [item for item in body if item.name == COMMIT]
    if len(commits) != 1 or len(barriers) != 2:
        raise Refusal(loop, f"{len(commits)} commits and {len(barriers)} barriers; accepted: one and two")
    begins = body[: body.index(commits[0])]
    lower, end, step = list(loop.operands)[:3]
    iteration = body_of(loop).arguments[0]
    clone_ops([*begins, commits[0]], {iteration: lower}, ir.InsertionPoint(loop))
    with ir.InsertionPoint.after(barriers[0]), loop.location:
        following = arith.addi(iteration, step)
        point = create_if(less_than(following, end))
    clone_ops(begins, {iteration: following}, point)
    # Groups that are empty after the last tile are complete.
    commits[0].move_after(_last_if(loop))
    for item in reversed(begins):
        if item.name == COPY:
            rewriter.erase_op(item)
    rewriter.erase_op(barriers[1])


def _last_if(loop: ir.Operation) -> ir.Operation:
    """Returns the op of the loop that copies the next tiles."""
    return next(item for item in operations_of(body_of(loop)) if item.name == "scf.if" and walk(item, COPY))
