"""`tc.load_weights_early`: loads the first tiles of the larger operand before the previous kernel has ended."""

import math

from stepladder.extension.lib import dependent_launch, launches, memory, tma, tma_pipeline
from stepladder.extension.lib.control_flow import body_of, enclosing_loops
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.workspaces import is_workspace
from stepladder.mlir.bindings import arith, ir, scf
from stepladder.mlir.tensor_maps import READ_EARLY, READ_ONCE
from stepladder.mlir.traverse import defining_op, origin, walk
from stepladder.mlir.windows import CAST


class LoadWeightsEarly(Tc.Operation, name="load_weights_early"):
    """Fills the stages of the pipeline with the larger operand before the block waits for the previous kernel.

    The producer's thread expects the bytes of both operands for the first k steps, as many as there are stages, and
    issues the loads of the larger one. It initializes the mbarriers itself, so that it waits for no other thread,
    except in clusters whose blocks load for each other. Then the block waits. The loop over k loads the other operand
    of these steps, and both operands of the following ones. The previous kernel must not write the larger operand: an
    attribute of the ops that create its descriptors states that it is read early.

    The next kernel may begin when all blocks have waited: what precedes this kernel has ended by then.

    Operands: a handle to any op with one `gpu.launch` below, with specialized warps and a dependent launch.
    Refuses: a launch that does not wait for the previous kernel, or without one thread that issues all loads; operands
        of the same size; a larger operand that a kernel before the matmul writes to a workspace.
    """

    target: Handle


_SIDES = ("operand_a", "operand_b")
_VIEWS = ("memref.cast", "memref.subview", "memref.collapse_shape", "memref.expand_shape", CAST)


def _side(load: ir.Operation) -> str:
    """Returns which operand's tiles a load writes, by the attribute of their buffer."""
    attributes = memory.shared_tile_of(load, load.operands[0]).attributes
    return next(side for side in _SIDES if side in attributes)


def _matrices(loads: list[ir.Operation]) -> set[ir.Value]:
    """Returns the matrices that loads read boxes of: of a pair of products there are two."""
    return {defining_op(defining_op(load.operands[2]).operands[0]).operands[0] for load in loads}


def _larger_side(launch: ir.Operation) -> str:
    """Returns which operand has more elements."""
    loads = walk(launch, tma.LOAD)
    sizes = [
        sum(math.prod(ir.MemRefType(matrix.type).shape) for matrix in _matrices(of_side))
        for of_side in ([load for load in loads if _side(load) == side] for side in _SIDES)
    ]
    if sizes[0] == sizes[1]:
        raise Refusal(launch, f"expected operands of different sizes, found two of {sizes[0]} elements")
    return _SIDES[sizes.index(max(sizes))]


def _mark(launch: ir.Operation, weights: list[ir.Operation]) -> None:
    """States on the descriptors of loads that their matrices are read early, and once."""
    for load in weights:
        create = defining_op(load.operands[2])
        if is_workspace(origin(create.operands[0], _VIEWS)):
            raise Refusal(launch, "a preceding kernel writes the larger operand, which would be read early")
        for name in (READ_EARLY, READ_ONCE):
            create.attributes[name] = ir.UnitAttr.get()


def _skip_early_steps(role: ir.Block, side: str, stages: int, rewriter: Rewriter) -> None:
    """Makes the producer expect and load the larger operand only after the steps that are loaded early."""
    (expect,) = walk(role.owner, tma.EXPECT)
    loads = walk(role.owner, tma.LOAD)
    weights = [load for load in loads if _side(load) == side]
    loops = enclosing_loops(expect)
    if not loops:
        for op in (expect, *weights):
            rewriter.erase_op(op)
        return
    ends = dependent_launch.ends_after(loops, stages)
    with ir.InsertionPoint(expect), expect.location:
        late = None
        for loop, end in zip(loops, ends):
            follows = arith.cmpi(arith.CmpIPredicate.sge, body_of(loop).arguments[0], end)
            late = follows if late is None else arith.ori(late, follows)
    assert late is not None  # there is a loop
    for first, ops in ((expect, [expect]), (weights[-1], weights)):
        with ir.InsertionPoint(first), first.location:
            branch = scf.IfOp(late)
        with ir.InsertionPoint(branch.then_block):
            end = scf.yield_([]).operation
        for op in ops:
            op.move_before(end)


def _keep_early_loads(copy: ir.Operation, side: str, stages: int, rewriter: Rewriter) -> None:
    """Makes a copy of what the producer does to one that loads the larger operand to all stages."""
    loads = walk(copy, tma.LOAD)
    loops = enclosing_loops(loads[0])
    for loop, end in zip(loops, dependent_launch.ends_after(loops, stages)):
        loop.operands[1] = end
    for op in (*(load for load in loads if _side(load) != side), *walk(copy, tma.WAIT)):
        rewriter.erase_op(op)


@transform_op(LoadWeightsEarly)
def load_weights_early(payload: ir.Operation, op: LoadWeightsEarly, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    allow, wait = dependent_launch.trigger(launch), dependent_launch.control(launch, "wait")
    role = dependent_launch.producer_of(launch)
    side, stages = _larger_side(launch), tma_pipeline.stages_of(launch)
    _mark(launch, [load for load in walk(launch, tma.LOAD) if _side(load) == side])
    copy = dependent_launch.copy_producer(launch, role, wait)
    _keep_early_loads(copy, side, stages, rewriter)
    dependent_launch.begin_with(launch, copy)
    _skip_early_steps(role, side, stages, rewriter)
    if allow is not None:
        allow.move_after(wait)
