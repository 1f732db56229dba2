"""`tc.prefetch_weights`: prefetches the first weights of a block to L2 while its producer prepares to load."""

from stepladder.extension.lib import dependent_launch, launches, threads, tma
from stepladder.extension.lib.arithmetic import index, less_than
from stepladder.extension.lib.control_flow import create_if_below, enclosing_loops, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, llvm, memref, nvvm, scf
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.tensor_maps import READ_EARLY
from stepladder.mlir.traverse import defining_op, walk


class PrefetchWeights(Tc.Operation, name="prefetch_weights"):
    """Makes consumers prefetch the rows of the boxes that a block's first k steps load early.

    The threads of the consumer warpgroups prefetch a row each, from the pointer to the matrix, before they wait for
    anything. Rows and columns beyond the matrix are left out. A matrix that is a part of a buffer, or in a batch, is
    not prefetched.

    Operands: a handle to any op with one `gpu.launch` below, whose producer loads weights early.
    Attributes: steps, of k.
    Refuses: a launch without early loads.
    """

    target: Handle
    steps: ir.IntegerAttr


_GLOBAL = "!llvm.ptr<1>"
# Ops of the producer's branch that its threads do for the loads, which prefetches do not need.
_OF_LOADS = (tma.EXPECT, tma.WAIT, "nvgpu.mbarrier.init", "nvvm.fence.mbarrier.init", "nvgpu.tma.prefetch.descriptor")


def _early_branch(launch: ir.Operation) -> ir.Operation:
    """Returns the `scf.if` with the early loads, the first of the launch that has such loads."""
    for op in operations_of(launch.regions[0].blocks[0]):
        if any(READ_EARLY in defining_op(load.operands[2]).attributes for load in walk(op, tma.LOAD)):
            return op
    raise Refusal(launch, "expected loads of weights before the wait for the previous kernel")


def _matrix(load: ir.Operation) -> ir.Value:
    """Returns the matrix that a load reads a box of."""
    return defining_op(defining_op(load.operands[2]).operands[0]).operands[0]


def _prefetch_rows(load: ir.Operation, matrix: ir.Value, thread_count: int) -> None:
    """Creates prefetches of the rows of a load's box, before it, by all threads below `thread_count`."""
    rows = types.tensor_map_box(load.operands[2].type)[0]
    type_ = ir.MemRefType(matrix.type)
    (pitch, _), offset = type_.get_strides_and_offset()
    column, first = list(load.operands)[3:5]
    i64, width = ir.IntegerType.get_signless(64), types.byte_width(type_.element_type)
    with ir.InsertionPoint(load), load.location:
        start = memref.extract_aligned_pointer_as_index(matrix)
        loop = scf.ForOp(threads.thread_id(), index(rows), index(thread_count))
        with ir.InsertionPoint(loop.body):
            row = arith.addi(first, loop.induction_variable)
            with create_if_below(row, index(type_.shape[0])), create_if_below(column, index(type_.shape[1])):
                place = arith.addi(arith.addi(arith.muli(row, index(pitch)), column), index(offset))
                address = arith.index_cast(i64, arith.addi(start, arith.muli(place, index(width))))
                nvvm.prefetch(llvm.inttoptr(ir.Type.parse(_GLOBAL), address), cache_level=nvvm.PrefetchCacheLevel.L2)
            scf.yield_([])


@transform_op(PrefetchWeights)
def prefetch_weights(payload: ir.Operation, op: PrefetchWeights, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    early = _early_branch(launch)
    matrices = [_matrix(load) for load in walk(early, tma.LOAD)]
    if any(not isinstance(matrix.owner, ir.Block) or ir.MemRefType(matrix.type).rank != 2 for matrix in matrices):
        return
    thread_count = launches.launch_sizes(launch, launches.BLOCK)[0] - threads.WARPGROUP
    with ir.InsertionPoint(early), early.location:
        branch = scf.IfOp(less_than(threads.thread_id(), index(thread_count)))
        with ir.InsertionPoint(branch.then_block):
            end = scf.yield_([]).operation
    clone_ops(operations_of(early.regions[0].blocks[0])[:-1], {}, ir.InsertionPoint(end))
    loads = walk(branch.operation, tma.LOAD)
    loops = enclosing_loops(loads[0])
    for loop, last in zip(loops, dependent_launch.ends_after(loops, op.steps.value)):
        loop.operands[1] = last
    for load in loads:
        _prefetch_rows(load, _matrix(load), thread_count)
    for item in (*loads, *walk(branch.operation, *_OF_LOADS)):
        rewriter.erase_op(item)
