"""`tc.split_k`: splits the reduction of a tile among several blocks (split-K)."""

from contextlib import nullcontext

from stepladder.extension.lib import launches, memory, threads, transposes
from stepladder.extension.lib.arithmetic import apply
from stepladder.extension.lib.control_flow import bounds_over_k, create_if, create_if_below, enclosing_loops
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.elementwise import Elementwise, computes
from stepladder.extension.lib.epilogues.epilogue import extents_of
from stepladder.extension.lib.split_k_reduction import Reduction, Writes
from stepladder.extension.lib.split_k_workspace import (
    WIDTH,
    ClusterWorkspace,
    GlobalWorkspace,
    RegisterWorkspace,
    Workspace,
)
from stepladder.mlir.bindings import affine, arith, ir
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import defining_op, walk


class SplitK(Tc.Operation, name="split_k"):
    """Makes `splits` blocks compute a tile, each a slice of the k steps.

    Each block stores its accumulator to a workspace. After all blocks of the tile have stored, each reduces a share of
    the tile's elements over the splits, in order, and writes or adds the result to C, rounded to C's type. An
    elementwise op on the product is computed once, on the reduced elements; what it reads is loaded before the blocks
    wait for each other, if a thread reduces few vectors and the op does not read what is written. The result does not
    depend on the order in which blocks arrive. A tile of a transposed C (`memref.transpose`) is written to C itself:
    from shared memory in vectors of a row of C, where rows are a multiple of four elements, else (and from register
    order) element by element.

    The workspace is in distributed shared memory (`workspace = "cluster"`; `"registers"`: in register order, for
    `tc.push_partial_sums`) or in global memory (`"memory"`). In the first case the blocks of a tile form a cluster and
    synchronize at its barrier, twice: the second time keeps a block from exiting while others read its shared memory.
    In the second case they are adjacent in the grid, or one of each of adjacent clusters, and synchronize by a
    semaphore for each tile. Blocks that wait for each other must be resident together: they start in the order of their
    ids, and the blocks of a tile must fit on the GPU at once.

    Operands: a handle to any op with one `gpu.launch` below, on buffers, with a loop over k.
    Attributes: splits; threads of a block, that reduce; workspace, "cluster", "registers" or "memory".
    Refuses: fewer k steps than splits; for a workspace in shared memory, more splits than a portable cluster has
        blocks, or a launch with clusters; rows of C that are not a multiple of four elements.
    """

    target: Handle
    splits: ir.IntegerAttr
    threads: ir.IntegerAttr
    workspace: ir.StringAttr


_MAX_TURNS = 4  # vectors of a thread whose operands are loaded ahead
_WORKSPACES = {"cluster": ClusterWorkspace, "registers": RegisterWorkspace, "memory": GlobalWorkspace}


@transform_op(SplitK)
def split_k(payload: ir.Operation, op: SplitK, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    splits, thread_count = op.splits.value, op.threads.value
    if splits == 1:
        return
    launch = launches.find_launch(payload)
    if op.workspace.value not in _WORKSPACES:
        raise Refusal(launch, f"workspace = '{op.workspace.value}' is none of {', '.join(_WORKSPACES)}")
    matmul = next(iter(walk(launch, "linalg.matmul")), None)
    loops = enclosing_loops(matmul) if matmul is not None else []
    if matmul is None or not loops:
        raise Refusal(launch, f"k has one step, which {splits} blocks cannot split")
    loop = loops[-1]
    lower, upper, step = bounds_over_k(loop)
    steps = -(-(upper - lower) // step)
    per_split = -(-steps // splits)
    if per_split * (splits - 1) >= steps:
        raise Refusal(loop, f"k has {steps} steps, and {splits} splits of {per_split} steps leave some splits empty")
    accumulator = matmul.operands[2]
    rows, columns = ir.MemRefType(accumulator.type).shape
    if columns % WIDTH:
        raise Refusal(matmul, f"rows of a tile of {rows} x {columns} are not a multiple of {WIDTH} elements")

    is_transposed = transposes.is_transposed(_c_tile(_writer_of_c(accumulator)))
    workspace: Workspace = _WORKSPACES[op.workspace.value](launch, splits, thread_count, rewriter, is_transposed)
    # The reduction uses all threads that the mapping to warpgroups will launch.
    launches.set_launch_sizes(workspace.launch, launches.BLOCK, [thread_count, 1, 1])
    with ir.InsertionPoint.after(defining_op(workspace.split)), workspace.launch.location:
        begin = apply(lambda split: split * (per_split * step) + lower, workspace.split)
        end = affine.AffineMinOp(
            ir.AffineMap.get(0, 1, [ir.AffineExpr.get_symbol(0) + per_split * step, ir.AffineExpr.get_constant(upper)]),
            [begin],
        ).result
        # No split is empty. Without this assumption, LLVM merges the accumulators of a loop that runs and one that does
        # not, and the moves between MMAs make ptxas serialize wgmma (C7515).
        _assume(arith.cmpi(arith.CmpIPredicate.slt, begin, end))
    loop.operands[0], loop.operands[1] = begin, end
    _reduce_splits(workspace, accumulator, thread_count, rewriter)


def _assume(condition: ir.Value) -> None:
    """Creates an `llvm.intr.assume`."""
    ir.Operation.create(
        "llvm.intr.assume", operands=[condition], attributes={"op_bundle_sizes": ir.DenseI32ArrayAttr.get([])}
    )


def _writer_of_c(accumulator: ir.Value) -> ir.Operation:
    """Returns the linalg op that writes the accumulator tile to C."""
    for user, position in memory.linalg_uses(accumulator):
        if user.name in ("linalg.copy", "linalg.generic") and position == 0:
            return user
    raise Refusal(defining_op(accumulator), "no linalg.copy or linalg.generic writes the accumulator tile to C")


def _c_tile(writer: ir.Operation) -> ir.Value:
    """Returns the tile of C that an op writes."""
    return writer.operands[len(writer.operands) - 1]


def _initialize_to_zero(accumulator: ir.Value, rewriter: Rewriter) -> bool:
    """Replaces an initialization of the accumulator from C by one to zero: C is added once, by the reduction.

    Returns:
        Whether the accumulator was initialized from C.
    """
    copies = [
        user for user, position in memory.linalg_uses(accumulator) if user.name == "linalg.copy" and position == 1
    ]
    for copy in copies:
        with ir.InsertionPoint(copy), copy.location:
            element_type = ir.MemRefType(accumulator.type).element_type
            zero = 0 if isinstance(element_type, ir.IntegerType) else 0.0
            create_named_op("linalg.fill", [arith.constant(element_type, zero)], accumulator)
        rewriter.erase_op(copy)
    return bool(copies)


def _reduce_splits(workspace: Workspace, accumulator: ir.Value, thread_count: int, rewriter: Rewriter) -> None:
    """Replaces the op that writes the accumulator tile to C by a store to the workspace and a reduction to C."""
    writer = _writer_of_c(accumulator)
    elementwise = Elementwise(writer) if writer.name == "linalg.generic" and computes(writer) else None
    accumulates = _initialize_to_zero(accumulator, rewriter)
    c_tile = _c_tile(writer) if elementwise is None else elementwise.outputs[0]
    rows, columns = ir.MemRefType(accumulator.type).shape
    pitch, step = ir.MemRefType(c_tile.type).get_strides_and_offset()[0]
    if step == 1 and pitch % WIDTH:
        raise Refusal(
            writer,
            f"rows of C have {pitch} elements, and splits are reduced {WIDTH} adjacent elements at a time: "
            f"make its rows a multiple of {WIDTH} elements",
        )
    with ir.InsertionPoint(writer), writer.location:
        workspace.store(accumulator)
        rows_of_c, columns_of_c = extents_of(c_tile, (rows, columns))
        tiles = [c_tile] if elementwise is None else elementwise.outputs
        sources = [source for tile in tiles if (source := transposes.source_of_transpose(tile)) is not None]
        by_elements, along_row = bool(sources), not sources or workspace.transposed
        if sources and workspace.transposed:
            rows_of_c, columns_of_c = columns_of_c, rows_of_c
            elementwise = elementwise and elementwise.transposed(sources)
            pitches = [ir.MemRefType(source.type).get_strides_and_offset()[0][0] for source in sources]
            by_elements = any(pitch % WIDTH for pitch in pitches)
        writes = Writes(elementwise, sources or tiles, accumulates, along_row, by_elements)
        reduction = Reduction(workspace, writes, c_tile, rows_of_c, columns_of_c)
        _create_reduction(workspace, reduction, thread_count, loads_early=writes.can_load_early())
        workspace.release()
    rewriter.erase_op(writer)


def _create_reduction(workspace: Workspace, reduction: Reduction, thread_count: int, *, loads_early: bool) -> None:
    """Creates the wait for the other splits and the sums of what they stored: unrolled if each thread has few turns."""
    turns = reduction.turns(threads.thread_id(), thread_count)
    if len(turns) > _MAX_TURNS or not (loads_early or all(limit is None for _, _, limit in turns)):
        workspace.arrive_and_wait()
        reduction.create_loop(threads.thread_id(), thread_count)
        return
    # Ops that do not depend on other blocks are computed before the wait for these.
    ready = [(workspace.runs(number), reduction.load(number) if loads_early else None) for number, _, _ in turns]
    workspace.arrive_and_wait()
    for condition, count in reduction.even_shares(thread_count):
        with create_if(condition) if condition else nullcontext():
            totals = [reduction.total(number) for number, _, _ in turns[:count]]
            for total, (runs, operands) in zip(totals, ready):
                reduction.write(total, runs, operands, reduction.rows)
    if not reduction.is_even(thread_count):
        for (number, own, limit), (runs, operands) in zip(turns, ready):
            with create_if_below(own, limit):
                reduction.create(number, runs, operands)
