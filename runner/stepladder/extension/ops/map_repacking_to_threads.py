"""`tc.map_repacking_to_threads`: converts the ops that fill workspaces to launches."""

import math

from stepladder.extension.lib import memory, threads, vectors
from stepladder.extension.lib.arithmetic import apply, index, less_than, times
from stepladder.extension.lib.control_flow import create_if_below, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.vector_bodies import compute_body
from stepladder.extension.lib.workspaces import COPY, ELEMENTWISE, WORKSPACE, is_matrix_of_workspace
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, gpu, ir, memref, scf, vector
from stepladder.mlir.traverse import defining_op, producer, walk


class MapRepackingToThreads(Tc.Operation, name="map_repacking_to_threads"):
    """Converts ops that fill workspaces to launches, before the launch that reads them.

    Such an op is a `memref.copy` to one workspace, or a `linalg.generic` that computes elements of several workspaces
    of the element at the same position of a buffer. Those of a function that follow one another become one
    `gpu.launch`, whose first blocks do what the first op does, and so on; but none reads there what another one writes.

    A thread copies `bytes` bytes: a vector of each of several rows. The vector is the widest that divides the rows of
    the source, of up to 16 bytes, so that all its addresses are aligned; adjacent threads have adjacent vectors. All
    loads of a thread come before its stores. Only blocks at the lower edge, whose rows are fewer, copy row by row.

    A copy of a `memref.transpose` goes through registers: a thread loads up to 4 bytes of each of several rows, and
    stores vectors of 16 bytes to the rows of the workspace that its columns become. Adjacent threads have adjacent
    columns, but four groups of a warp rows below one another, so that a warp loads whole sectors and stores 64 adjacent
    bytes.

    Operands: a handle to any op; all such ops below are rewritten.
    Attributes: threads, of a block; bytes, that a thread copies, or writes of a row of a transpose.
    Refuses: a copy to something else than the matrix of a workspace, or of a source that is not contiguous; an op that
        computes elements of others than those at the same position.
    """

    target: Handle
    threads: ir.IntegerAttr
    bytes: ir.IntegerAttr


_WIDEST = 16  # bytes of a load or a store
_TURNED = 4  # bytes of a load whose elements go to different rows
# Groups of a warp's threads that load rows below one another: of f32, 3.3 TB/s are read and written with 2, 4 or 8 of
# them, 1.1 TB/s with one, whose stores have 16 bytes in each of 32 rows. Measured on an H200.
_GROUPS, _WARP = 4, 32
_VIEWS = ("memref.subview", "memref.transpose", "memref.collapse_shape")
# Ops between copies of one launch: they access no elements.
_WITHOUT_ACCESS = (*_VIEWS, "memref.alloc", "memref.cast", "nvgpu.tma.create.descriptor", "arith.constant")


def _matrix(buffer: ir.Value) -> ir.Value:
    """Returns a buffer, or the matrices of a batch one below the other, as one matrix."""
    type_ = ir.MemRefType(buffer.type)
    if type_.rank == 2:
        return buffer
    *outer, columns = type_.shape
    groups = [list(range(type_.rank - 1)), [type_.rank - 1]]
    result = ir.MemRefType.get([math.prod(outer), columns], type_.element_type)
    return memref.collapse_shape(result, buffer, groups)


def _check(copy: ir.Operation, source: ir.Value) -> None:
    """Raises Refusal for a copy that is not of a contiguous buffer to the matrix of a workspace."""
    if not all(is_matrix_of_workspace(producer(target)) for target in list(copy.operands)[1:]):
        raise Refusal(copy, "expected a copy to the matrix of a workspace")
    if copy.name == ELEMENTWISE:
        maps = [ir.AffineMapAttr(attribute).value for attribute in copy.attributes["indexing_maps"]]
        inputs = list(ir.DenseI32ArrayAttr(copy.attributes["operandSegmentSizes"]))[0]
        if inputs != 1 or any(map_ != ir.AffineMap.get_identity(map_.n_dims) for map_ in maps):
            raise Refusal(copy, "expected elements that are computed of those at the same position of one buffer")
    type_ = ir.MemRefType(source.type)
    if type_.get_strides_and_offset()[0] != [math.prod(type_.shape[axis:]) for axis in range(1, type_.rank + 1)]:
        raise Refusal(copy, "expected a copy of a contiguous buffer")


def _is_transposed(copy: ir.Operation) -> bool:
    """Returns whether an op copies the transpose of a buffer."""
    source = producer(copy.operands[0])
    return source is not None and source.name == "memref.transpose"


def _targets(copy: ir.Operation) -> list[ir.Value]:
    """Returns the workspaces that an op fills."""
    return [_matrix(defining_op(view).operands[0]) for view in list(copy.operands)[1:]]


class _Copy:
    """The copy of a matrix by a launch.

    Args:
        copy: the op that fills workspaces.
        block: threads of a block.
        bytes_: that a thread copies.

    Attributes:
        blocks: of the launch.
    """

    def __init__(self, copy: ir.Operation, block: int, bytes_: int) -> None:
        source = copy.operands[0]
        _check(copy, source)
        self.copy, self.block = copy, block
        self.source, self.targets = _matrix(source), _targets(copy)
        self.rows, self.columns = ir.MemRefType(self.source.type).shape
        self.element_type = ir.MemRefType(source.type).element_type
        width = types.byte_width(self.element_type)
        self.vector = math.gcd(self.columns, _WIDEST // width)
        self.unroll = max(1, bytes_ // (self.vector * width))
        self.across = -(-self.columns // (block * self.vector))
        self.blocks = self.across * -(-self.rows // self.unroll)

    def emit(self, block: ir.Value) -> None:
        """Creates the copy of what a block copies, at the insertion point.

        Args:
            block: its index, among `blocks`.
        """
        row = apply(lambda b: ir.AffineExpr.get_floor_div(b, self.across) * self.unroll, block)
        column = apply(
            lambda b, t: ir.AffineExpr.get_mod(b, self.across) * (self.block * self.vector) + t * self.vector,
            block,
            threads.thread_id(),
        )
        exceeds = self.columns % (self.block * self.vector) != 0
        with create_if_below(column, index(self.columns) if exceeds else None):
            if self.rows % self.unroll == 0:
                self._copy_all(row, column)
                return
            is_whole = less_than(row, index(max(0, self.rows - self.unroll + 1)))
            branch = scf.IfOp(is_whole, has_else=True)
            with ir.InsertionPoint(branch.then_block):
                self._copy_all(row, column)
                scf.yield_([])
            with ir.InsertionPoint(branch.else_block):
                loop = scf.ForOp(row, index(self.rows), index(1))
                with ir.InsertionPoint(loop.body):
                    self._copy_row(loop.induction_variable, column)
                    scf.yield_([])
                scf.yield_([])

    def _load(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """Returns the thread's vector of a row of the source, or its element."""
        if self.vector == 1:
            return memref.load(self.source, [row, column])
        return memory.load_vector(ir.VectorType.get([self.vector], self.element_type), self.source, row, column)

    def _store(self, value: ir.Value, row: ir.Value, column: ir.Value) -> None:
        """Stores a vector or an element to the target, or what is computed of it to each target."""
        values = [value]
        if self.copy.name == ELEMENTWISE:
            element = self.copy.regions[0].blocks[0].arguments[0]
            width = ir.VectorType(value.type).shape[0] if isinstance(value.type, ir.VectorType) else None
            values = compute_body(self.copy, {element: value}, width)
        for result, target in zip(values, self.targets):
            if isinstance(result.type, ir.VectorType):
                memory.store_vector(result, target, row, column)
            else:
                memref.store(result, target, [row, column])

    def _copy_row(self, row: ir.Value, column: ir.Value) -> None:
        self._store(self._load(row, column), row, column)

    def _rows(self, row: ir.Value) -> list[ir.Value]:
        return [_plus(row, number) for number in range(self.unroll)]

    def _copy_all(self, row: ir.Value, column: ir.Value) -> None:
        rows = self._rows(row)
        for row_index, value in [(row_index, self._load(row_index, column)) for row_index in rows]:
            self._store(value, row_index, column)


class _TransposedCopy(_Copy):
    """The copy of a matrix, or of each matrix of a batch, to its transpose by a launch.

    A thread reads `vector` adjacent elements, of up to 4 bytes, of each of several rows, and writes vectors of `wide`
    elements of `vector` rows of the target. The groups of a warp read the same columns of other rows.
    """

    def __init__(self, copy: ir.Operation, block: int, bytes_: int) -> None:
        source = defining_op(copy.operands[0]).operands[0]
        _check(copy, source)
        if block % _WARP:
            raise Refusal(copy, f"threads is {block}, not a multiple of {_WARP}")
        type_ = ir.MemRefType(source.type)
        self.copy, self.block = copy, block
        self.source, self.targets = _matrix(source), _targets(copy)
        *batch, self.rows, self.columns = type_.shape
        self.element_type = type_.element_type
        width = types.byte_width(self.element_type)
        self.vector = math.gcd(self.columns, max(1, _TURNED // width))
        self.unroll = bytes_ // width
        self.wide = min(_WIDEST // width, self.unroll)
        self.width = block // _GROUPS * self.vector  # columns of a block
        self.height = self.unroll * _GROUPS  # and its rows
        self.across = -(-self.columns // self.width)
        self.down = -(-self.rows // self.height)
        self.matrices = math.prod(batch)
        self.blocks = self.across * self.down * self.matrices

    def emit(self, block: ir.Value) -> None:
        """Creates the copy of what a block copies, at the insertion point.

        Args:
            block: its index, among `blocks`.
        """
        if self.matrices == 1:
            self.first_row = self.first_target = None
            within = block
        else:
            matrix = apply(lambda b: ir.AffineExpr.get_floor_div(b, self.across * self.down), block)
            self.first_row, self.first_target = times(matrix, self.rows), times(matrix, self.columns)
            within = apply(lambda b: ir.AffineExpr.get_mod(b, self.across * self.down), block)
        self._emit_within(within)

    def _emit_within(self, block: ir.Value) -> None:
        """Creates the copy of what a block of a matrix copies."""
        lanes = _WARP // _GROUPS  # of a group, side by side
        thread = threads.thread_id()
        row = apply(
            lambda b, t: (
                ir.AffineExpr.get_floor_div(b, self.across) * self.height
                + ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(t, _WARP), lanes) * self.wide
            ),
            block,
            thread,
        )
        column = apply(
            lambda b, t: (
                ir.AffineExpr.get_mod(b, self.across) * self.width
                + ir.AffineExpr.get_floor_div(t, _WARP) * (lanes * self.vector)
                + ir.AffineExpr.get_mod(t, lanes) * self.vector
            ),
            block,
            thread,
        )
        with create_if_below(column, index(self.columns) if self.columns % self.width else None):
            if self.rows % self.height == 0:
                self._copy_all(row, column)
                return
            branch = scf.IfOp(
                less_than(_plus(row, self.height - self.wide * (_GROUPS - 1)), index(self.rows + 1)), has_else=True
            )
            with ir.InsertionPoint(branch.then_block):
                self._copy_all(row, column)
                scf.yield_([])
            with ir.InsertionPoint(branch.else_block):
                for first in self._first_rows(row):
                    last = arith.minsi(_plus(first, self.wide), index(self.rows))
                    loop = scf.ForOp(first, last, index(1))
                    with ir.InsertionPoint(loop.body):
                        self._copy_row(loop.induction_variable, column)
                        scf.yield_([])
                scf.yield_([])

    def _first_rows(self, row: ir.Value) -> list[ir.Value]:
        """Returns the first rows of a thread's vectors, from that of the first: a group has every fourth vector."""
        return [_plus(row, first * _GROUPS) for first in range(0, self.unroll, self.wide)]

    def _load(self, row: ir.Value, column: ir.Value) -> ir.Value:
        return super()._load(_sum(self.first_row, row), column)

    def _elements(self, value: ir.Value) -> list[ir.Value]:
        """Returns the elements of what `_load` returns."""
        if self.vector == 1:
            return [value]
        return [vectors.extract(value, [number], self.element_type) for number in range(self.vector)]

    def _store_transposed(self, values: list[ir.Value], row: ir.Value, column: ir.Value) -> None:
        """Stores elements of a row of the source, or vectors of several, to the column `row` of the target's rows."""
        for number, value in enumerate(values):
            self._store(value, _sum(self.first_target, _plus(column, number)), row)

    def _copy_row(self, row: ir.Value, column: ir.Value) -> None:
        self._store_transposed(self._elements(self._load(row, column)), row, column)

    def _copy_all(self, row: ir.Value, column: ir.Value) -> None:
        type_ = ir.VectorType.get([self.wide], self.element_type)
        rows = [[_plus(first, number) for number in range(self.wide)] for first in self._first_rows(row)]
        parts = [[self._elements(self._load(row_index, column)) for row_index in part] for part in rows]
        for part, (first, *_) in zip(parts, rows):
            target_vectors = [
                vector.from_elements(type_, [elements[number] for elements in part]) for number in range(self.vector)
            ]
            self._store_transposed(target_vectors, first, column)


def _plus(value: ir.Value, number: int) -> ir.Value:
    return apply(lambda x: x + number, value) if number else value


def _sum(first: ir.Value | None, value: ir.Value) -> ir.Value:
    return value if first is None else apply(lambda x, y: x + y, first, value)


def _function_of(copy: ir.Operation) -> str:
    """Returns the name of the function around an op."""
    function = copy.parent
    if function is None or function.name != "func.func":
        raise Refusal(copy, "expected a copy at the top level of a function")
    return ir.StringAttr(function.attributes["sym_name"]).value


def _buffer(value: ir.Value) -> ir.Value:
    """Returns what a buffer is a view of, or the buffer."""
    source = producer(value)
    return _buffer(source.operands[0]) if source is not None and source.name in _VIEWS else value


def _groups(payload: ir.Operation) -> list[list[ir.Operation]]:
    """Returns the ops below `payload` that fill workspaces, those that one launch does together."""
    groups: list[list[ir.Operation]] = []
    targets: list[ir.Value] = []
    for copy in [copy for copy in walk(payload, COPY, ELEMENTWISE) if WORKSPACE in copy.attributes]:
        if not groups or _buffer(copy.operands[0]) in targets or not _follows(copy, groups[-1][-1]):
            groups.append([])
            targets = []
        groups[-1].append(copy)
        targets += [_buffer(target) for target in list(copy.operands)[1:]]
    return groups


def _follows(copy: ir.Operation, other: ir.Operation) -> bool:
    """Returns whether an op comes after another one in a function, with no access to memory in between."""
    if copy.parent != other.parent:
        return False
    ops = operations_of(other.block)
    between = ops[ops.index(other) + 1 : ops.index(copy)]
    return all(op.name in _WITHOUT_ACCESS for op in between)


def _emit(copies: list[_Copy], block: ir.Value) -> None:
    """Creates the body of a launch, at the insertion point.

    Args:
        copies: whose blocks follow one another.
        block: number of the block among those of the first copy and the next ones.
    """
    first, *others = copies
    if not others:
        first.emit(block)
        return
    branch = scf.IfOp(less_than(block, index(first.blocks)), has_else=True)
    with ir.InsertionPoint(branch.then_block):
        first.emit(block)
        scf.yield_([])
    with ir.InsertionPoint(branch.else_block):
        _emit(others, _plus(block, -first.blocks))
        scf.yield_([])


@transform_op(MapRepackingToThreads)
def map_repacking_to_threads(payload: ir.Operation, op: MapRepackingToThreads, rewriter: Rewriter) -> None:
    """Rewrites the copies below `payload`; see the op."""
    block = op.threads.value
    for number, group in enumerate(_groups(payload)):
        # The kernel of the matmul keeps its name: outlining gives launches without one that of the function.
        name = ir.FlatSymbolRefAttr.get(f"{_function_of(group[0])}_repack_{number}")
        with ir.InsertionPoint(group[-1]), group[-1].location:
            kinds = [_TransposedCopy if _is_transposed(copy) else _Copy for copy in group]
            copies = [kind(copy, block, op.bytes.value) for kind, copy in zip(kinds, group)]
            sizes = [index(size) for size in (sum(copy.blocks for copy in copies), 1, 1, block, 1, 1)]
            launch = ir.Operation.create(
                "gpu.launch",
                operands=sizes,
                attributes={
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]),
                    "module": name,
                    "function": name,
                },
                regions=1,
            )
            ids = [ir.IndexType.get()] * 12
            body = launch.regions[0].blocks.append(*ids, arg_locs=[group[-1].location] * len(ids))
            with ir.InsertionPoint(body):
                _emit(copies, gpu.block_id(gpu.Dimension.x))
                gpu.terminator()
        for copy in group:
            source = defining_op(copy.operands[0]) if _is_transposed(copy) else None
            rewriter.erase_op(copy)
            if source is not None and not list(source.results[0].uses):
                rewriter.erase_op(source)
