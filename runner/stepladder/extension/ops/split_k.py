"""`tc.split_k`: splits the reduction of a tile among several blocks (split-K)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepladder.extension.lib import epilogue, launches, memory, threads
from stepladder.extension.lib.arithmetic import add, apply, index
from stepladder.extension.lib.control_flow import bounds_over_k, create_if_below, enclosing_loops
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.elementwise import Elementwise, Position, computes
from stepladder.extension.lib.epilogue import extents_of
from stepladder.extension.lib.split_k_workspace import (
    WIDTH,
    ClusterWorkspace,
    GlobalWorkspace,
    RegisterWorkspace,
    Workspace,
)
from stepladder.mlir.bindings import affine, arith, ir, scf, vector
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


# What operands have at the place of a vector, by arguments of the elementwise op's body.
Loaded = dict[ir.Value, ir.Value]

_MOST_TURNS = 4  # vectors of a thread whose operands are loaded ahead
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

    is_transposed = memory.is_transposed(_c_tile(_writer_of_c(accumulator)))
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
        sources = [source for tile in tiles if (source := memory.source_of_transpose(tile)) is not None]
        by_elements, along_row = bool(sources), not sources or workspace.transposed
        if sources and workspace.transposed:
            rows_of_c, columns_of_c = columns_of_c, rows_of_c
            elementwise = elementwise and elementwise.transposed(sources)
            pitches = [ir.MemRefType(source.type).get_strides_and_offset()[0][0] for source in sources]
            by_elements = any(pitch % WIDTH for pitch in pitches)
        writes = _Writes(elementwise, sources or tiles, accumulates, along_row, by_elements)
        reduction = _Reduction(workspace, writes, c_tile, rows_of_c, columns_of_c)
        turns = reduction.turns(threads.thread_id(), thread_count)
        loads_early = writes.can_load_early()
        if len(turns) <= _MOST_TURNS and (loads_early or all(limit is None for _, _, limit in turns)):
            # What does not depend on other blocks is computed while they are waited for.
            ready = [
                (workspace.runs(number), reduction.load(number) if loads_early else None) for number, _, _ in turns
            ]
            workspace.arrive_and_wait()
            for (number, own, limit), (runs, loaded) in zip(turns, ready):
                with create_if_below(own, limit):
                    reduction.create(number, runs, loaded)
        else:
            workspace.arrive_and_wait()
            reduction.create_loop(threads.thread_id(), thread_count)
        workspace.release()
    rewriter.erase_op(writer)


def _sum(values: list[ir.Value]) -> ir.Value:
    """Returns the sum of vectors, in order."""
    total, *others = values
    for value in others:
        total = add(total, value)
    return total


def _rounded(total: ir.Value, c_tile: ir.Value) -> ir.Value:
    """Returns a vector rounded to C's type."""
    rounded = ir.VectorType.get([WIDTH], ir.MemRefType(c_tile.type).element_type)
    return total if total.type == rounded else arith.truncf(rounded, total)


def _slice(total: ir.Value, first: int, length: int) -> ir.Value:
    """Returns adjacent elements of a vector."""
    return total if length == WIDTH else vector.shuffle(total, total, list(range(first, first + length)))


def _columns(position: Position, width: int) -> Iterator[ir.Value]:
    """Yields the columns of adjacent elements, each created when it is asked for."""
    for number in range(width):
        yield arith.addi(position.column, index(number)) if number else position.column


@dataclass(frozen=True)
class _Writes:
    """How reduced elements are written to C, or added to it.

    Attributes:
        elementwise: the op on them; None for none.
        tiles: the views of C, and of the results beside it, that are written.
        accumulates: whether to add.
        along_row: whether adjacent elements of a vector are in a row of these views, and not in a column.
        by_elements: whether elements are written one by one: vectors of a row are not aligned, or not in a row.
    """

    elementwise: Elementwise | None
    tiles: list[ir.Value]
    accumulates: bool
    along_row: bool
    by_elements: bool

    def can_load_early(self) -> bool:
        """Tells whether `load` makes what vectors need, at any time: no operand is what a block writes."""
        if self.elementwise is None or self.accumulates:
            return False
        operands, outputs = self.elementwise.operands, len(self.elementwise.outputs)
        reads_outputs = any(list(argument.uses) for argument in list(self.elementwise.body.arguments)[-outputs:])
        written = [memory.viewed(tile) for tile in self.tiles]
        further = operands[self.elementwise.products : len(operands) - outputs]
        return not reads_outputs and not any(memory.viewed(operand) in written for operand in further)

    def load(self, position: Position, width: int, columns: ir.Value | None) -> list[Loaded]:
        """Returns what the operands of the elementwise op have at the place of a vector, or of each of its elements.

        Args:
            position: of its first element in the tile, in a row inside of C.
            width: elements of the vector.
            columns: of the tile inside C, where other elements are read instead of those beyond; None for all.
        """
        assert self.elementwise is not None
        if not self.by_elements:
            column = epilogue.inside(position.column, columns, width)
            return [self.elementwise.load(Position(position.row, column), width)]
        places = [Position(position.row, epilogue.inside(own, columns, 1)) for own in _columns(position, width)]
        return [self.elementwise.load(place, None) for place in places]

    def create(
        self, value: ir.Value, position: Position, columns: ir.Value | None, loaded: list[Loaded] | None = None
    ) -> None:
        """Writes a vector, at the current insertion point.

        Args:
            value: the vector.
            position: of its first element in the tile.
            columns: of the tile inside C; None for all.
            loaded: what `load` returned for the position; loaded here if None.
        """
        if not self.by_elements:
            with create_if_below(position.column, columns):
                self._write(value, position, loaded[0] if loaded else None)
            return
        type_ = ir.VectorType(value.type)
        for number, own in enumerate(_columns(position, type_.shape[0])):
            with create_if_below(own, columns):
                element = memory.extract(value, [number], type_.element_type)
                self._write(element, Position(position.row, own), loaded[number] if loaded else None)

    def _write(self, value: ir.Value, position: Position, loaded: Loaded | None = None) -> None:
        """Writes what is computed of a vector or an element."""
        computed = [value] if self.elementwise is None else self.elementwise.compute(value, position, loaded=loaded)
        place = [position.row, position.column] if self.along_row else [position.column, position.row]
        for result, tile in zip(computed, self.tiles):
            memory.write(result, tile, place, self.accumulates)


@dataclass(frozen=True)
class _Reduction:
    """The reduction of vectors over the splits.

    Adjacent threads reduce adjacent vectors, of a block's own rows or in turn with the other blocks.

    Attributes:
        workspace: with the splits.
        writes: what is written of their sum.
        c_tile: the view of C.
        rows, columns: of the tile inside C; None for all.
    """

    workspace: Workspace
    writes: _Writes
    c_tile: ir.Value
    rows: ir.Value | None
    columns: ir.Value | None

    def _own(self, number: ir.Value) -> ir.Value:
        """Returns the number in the tile of a vector of the block's share."""
        return apply(lambda split, own: split * self.workspace.share + own, self.workspace.split, number)

    def turns(self, thread: ir.Value, thread_count: int) -> list[tuple[ir.Value, ir.Value, ir.Value | None]]:
        """Returns the numbers of a thread's vectors, each with a value that must be below a limit; None for none.

        Args:
            thread: its number.
            thread_count: of a block.
        """
        share, blocks = self.workspace.share, 1 if self.workspace.share else self.workspace.splits
        count, step = share or self.workspace.vectors, blocks * thread_count
        first = thread if share else self._of_blocks(thread, thread_count)
        turns = []
        for begin in range(0, count, step):
            own = arith.addi(first, index(begin)) if begin else first
            turns.append((self._own(own) if share else own, own, index(count) if begin + step > count else None))
        return turns

    def _of_blocks(self, thread: ir.Value, thread_count: int) -> ir.Value:
        return apply(lambda split, own: split * thread_count + own, self.workspace.split, thread)

    def create_loop(self, thread: ir.Value, thread_count: int) -> None:
        """Creates the reduction of all vectors of a thread.

        Args:
            thread: its number.
            thread_count: of a block.
        """
        share, splits = self.workspace.share, self.workspace.splits
        is_even = share > 0 and share % thread_count == 0  # so that the number of turns is a constant
        if share:
            loop = scf.ForOp(index(0) if is_even else thread, index(share), index(thread_count))
        else:
            first = self._of_blocks(thread, thread_count)
            loop = scf.ForOp(first, index(self.workspace.vectors), index(splits * thread_count))
        with ir.InsertionPoint(loop.body):
            number = loop.induction_variable
            if is_even:
                number = arith.addi(thread, number)
            vector_ = self._own(number) if share else number
            self.create(vector_, self.workspace.runs(vector_))
            scf.yield_([])

    def load(self, number: ir.Value) -> list[list[Loaded]]:
        """Returns what operands have at the places of the runs of a vector, or at others where the vector is not in C.

        Args:
            number: of the vector in the tile, or a larger one.
        """
        runs = self.workspace.runs(epilogue.inside(number, index(self.workspace.vectors), 1))
        width = WIDTH // len(runs)
        rows = {row: epilogue.inside(row, self.rows, 1) for row, _ in runs}
        return [self.writes.load(Position(rows[row], column), width, self.columns) for row, column in runs]

    def create(
        self, number: ir.Value, runs: Sequence[tuple[ir.Value, ir.Value]], loaded: list[list[Loaded]] | None = None
    ) -> None:
        """Creates the reduction of a vector, at the current insertion point.

        Args:
            number: of the vector in the tile.
            runs: rows and columns of the vector.
            loaded: what `load` returned for it; loaded here if None.
        """
        workspace = self.workspace
        limit = index(workspace.vectors) if workspace.share * workspace.splits > workspace.vectors else None
        # Runs of several rows are predicated one by one.
        of_all, of_each = (self.rows, None) if len({row for row, _ in runs}) == 1 else (None, self.rows)
        with create_if_below(number, limit), create_if_below(runs[0][0], of_all):
            total = _sum(workspace.load(number))
            if self.writes.elementwise is None:
                total = _rounded(total, self.c_tile)
            length = WIDTH // len(runs)
            for run, (row, column) in enumerate(runs):
                part, known = _slice(total, run * length, length), loaded[run] if loaded else None
                with create_if_below(row, of_each):
                    self.writes.create(part, Position(row, column), self.columns, known)
