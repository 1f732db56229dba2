"""The reduction of split-K: vectors of the tile are summed over the splits, and written to C.

Each block reduces a share of them (`split_k_workspace`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepladder.extension.lib import memory, vectors
from stepladder.extension.lib.arithmetic import add, apply, equal, index, less_than
from stepladder.extension.lib.control_flow import create_if_below
from stepladder.extension.lib.epilogues import epilogue
from stepladder.extension.lib.epilogues.elementwise import Elementwise, Position
from stepladder.extension.lib.split_k_workspace import Workspace
from stepladder.mlir.bindings import arith, ir, scf, vector

# Elements of operands at the position of a vector, by arguments of the elementwise op's body.
Loaded = dict[ir.Value, ir.Value]


def _sum(values: list[ir.Value]) -> ir.Value:
    """Returns the sum of vectors, in order."""
    total, *others = values
    for value in others:
        total = add(total, value)
    return total


def _rounded(total: ir.Value, c_tile: ir.Value) -> ir.Value:
    """Returns a vector rounded to C's type."""
    type_ = ir.VectorType.get(ir.VectorType(total.type).shape, ir.MemRefType(c_tile.type).element_type)
    return total if total.type == type_ else arith.truncf(type_, total)


def _slice(total: ir.Value, first: int, length: int) -> ir.Value:
    """Returns adjacent elements of a vector."""
    if length == ir.VectorType(total.type).shape[0]:
        return total
    return vector.shuffle(total, total, list(range(first, first + length)))


def _columns(position: Position, width: int) -> Iterator[ir.Value]:
    """Yields the columns of adjacent elements, each created when it is asked for."""
    for number in range(width):
        yield arith.addi(position.column, index(number)) if number else position.column


@dataclass(frozen=True)
class Writes:
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
        """Returns whether `load` makes what vectors need, at any time: no operand is what a block writes."""
        if self.elementwise is None or self.accumulates:
            return False
        operands, outputs = self.elementwise.operands, len(self.elementwise.outputs)
        reads_outputs = any(list(argument.uses) for argument in list(self.elementwise.body.arguments)[-outputs:])
        buffers = [memory.viewed(tile) for tile in self.tiles]
        further = operands[self.elementwise.products : len(operands) - outputs]
        return not reads_outputs and not any(memory.viewed(operand) in buffers for operand in further)

    def load(self, position: Position, width: int, columns: ir.Value | None) -> list[Loaded]:
        """Returns what the operands of the elementwise op have at the position of a vector, or of each of its elements.

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
        self, value: ir.Value, position: Position, columns: ir.Value | None, operands: list[Loaded] | None = None
    ) -> None:
        """Writes a vector, at the current insertion point.

        Args:
            value: the vector.
            position: of its first element in the tile.
            columns: of the tile inside C; None for all.
            operands: what `load` returned for the position; loaded here if None.
        """
        if not self.by_elements:
            with create_if_below(position.column, columns):
                self._write(value, position, operands[0] if operands else None)
            return
        type_ = ir.VectorType(value.type)
        for number, own in enumerate(_columns(position, type_.shape[0])):
            with create_if_below(own, columns):
                element = vectors.extract(value, [number], type_.element_type)
                self._write(element, Position(position.row, own), operands[number] if operands else None)

    def _write(self, value: ir.Value, position: Position, operand_values: Loaded | None = None) -> None:
        """Writes what is computed of a vector or an element."""
        results = (
            [value]
            if self.elementwise is None
            else self.elementwise.compute(value, position, operand_values=operand_values)
        )
        place = [position.row, position.column] if self.along_row else [position.column, position.row]
        for result, tile in zip(results, self.tiles):
            memory.write(result, tile, place, self.accumulates)


@dataclass(frozen=True)
class Reduction:
    """The reduction of vectors over the splits.

    Adjacent threads reduce adjacent vectors, of a block's own rows or in turn with the other blocks.

    Attributes:
        workspace: with the splits.
        writes: what is written of their sum.
        c_tile: the view of C.
        rows, columns: of the tile inside C; None for all.
    """

    workspace: Workspace
    writes: Writes
    c_tile: ir.Value
    rows: ir.Value | None
    columns: ir.Value | None

    def _own(self, number: ir.Value) -> ir.Value:
        """Returns the index in the tile of a vector of the block's share."""
        return apply(lambda split, own: split * self.workspace.share + own, self.workspace.split, number)

    def turns(self, thread: ir.Value, thread_count: int) -> list[tuple[ir.Value, ir.Value, ir.Value | None]]:
        """Returns the indices of a thread's vectors, each with a value that must be below a limit; None for none.

        Args:
            thread: its index.
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

    def is_even(self, thread_count: int) -> bool:
        """Returns whether all threads of a block have equally many vectors.

        Args:
            thread_count: of a block.
        """
        return self.workspace.share > 0 and self.workspace.share % thread_count == 0

    def even_shares(self, thread_count: int) -> list[tuple[ir.Value | None, int]]:
        """Returns, where threads have equally many vectors, which blocks have how many: a condition (None for all
        blocks), and their number.

        Args:
            thread_count: of a block.
        """
        share, split = self.workspace.share, self.workspace.split
        if not self.is_even(thread_count):
            return []
        full, remainder = divmod(self.workspace.vectors, share)
        is_full = less_than(split, index(full)) if full < self.workspace.splits else None
        shares: list[tuple[ir.Value | None, int]] = [(is_full, share // thread_count)]
        if remainder:
            shares.append((equal(split, index(full)), remainder // thread_count))
        return shares

    def create_loop(self, thread: ir.Value, thread_count: int) -> None:
        """Creates the reduction of all vectors of a thread.

        Args:
            thread: its index.
            thread_count: of a block.
        """
        share, splits = self.workspace.share, self.workspace.splits
        is_even = self.is_even(thread_count)
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
        """Returns what operands have at the positions of the runs of a vector, or at others where the vector is not in
        C.

        Args:
            number: of the vector in the tile, or a larger one.
        """
        runs = self.workspace.runs(epilogue.inside(number, index(self.workspace.vectors), 1))
        width = self.workspace.width // len(runs)
        rows = {row: epilogue.inside(row, self.rows, 1) for row, _ in runs}
        return [self.writes.load(Position(rows[row], column), width, self.columns) for row, column in runs]

    def create(
        self, number: ir.Value, runs: Sequence[tuple[ir.Value, ir.Value]], operands: list[list[Loaded]] | None = None
    ) -> None:
        """Creates the reduction of a vector, at the current insertion point.

        Args:
            number: of the vector in the tile.
            runs: rows and columns of the vector.
            operands: what `load` returned for it; loaded here if None.
        """
        workspace = self.workspace
        limit = index(workspace.vectors) if workspace.share * workspace.splits > workspace.vectors else None
        has_one_row = len({row for row, _ in runs}) == 1
        with create_if_below(number, limit), create_if_below(runs[0][0], self.rows if has_one_row else None):
            self.write(self.total(number), runs, operands, None if has_one_row else self.rows)

    def total(self, number: ir.Value) -> ir.Value:
        """Returns the sum of a vector over the splits, rounded if nothing else is computed of it.

        Args:
            number: of the vector in the tile.
        """
        total = _sum(self.workspace.load(number))
        return total if self.writes.elementwise else _rounded(total, self.c_tile)

    def write(
        self,
        total: ir.Value,
        runs: Sequence[tuple[ir.Value, ir.Value]],
        operands: list[list[Loaded]] | None,
        rows: ir.Value | None,
    ) -> None:
        """Writes the sum of a vector.

        Args:
            total: the sum.
            runs, operands: as for `create`.
            rows: of the tile inside C, where others are left out; None for none.
        """
        length = self.workspace.width // len(runs)
        for run, (row, column) in enumerate(runs):
            part, operands_of_run = _slice(total, run * length, length), operands[run] if operands else None
            with create_if_below(row, rows):
                self.writes.create(part, Position(row, column), self.columns, operands_of_run)
