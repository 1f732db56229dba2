"""`tc.map_repacking_to_threads`: converts the copies to workspaces to launches."""

import math

from stepladder.extension.lib import memory, threads
from stepladder.extension.lib.arithmetic import apply, index, less_than
from stepladder.extension.lib.control_flow import create_if_below
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.workspaces import COPY, WORKSPACE, is_matrix_of_workspace
from stepladder.mlir import types
from stepladder.mlir.bindings import gpu, ir, memref, scf
from stepladder.mlir.traverse import defining_op, walk


class MapRepackingToThreads(Tc.Operation, name="map_repacking_to_threads"):
    """Converts each copy to a workspace to a `gpu.launch` of its own, in front of the launch that reads it.

    A thread copies `bytes` bytes: a vector of each of several rows. The vector is the widest that divides the rows of
    the source, of up to 16 bytes, so that all its addresses are aligned; adjacent threads have adjacent vectors. All
    loads of a thread come before its stores. Only blocks at the lower edge, whose rows are fewer, copy row by row.

    Operands: a handle to any op; all copies below are rewritten.
    Attributes: threads, of a block; bytes, that a thread copies.
    Refuses: a copy to something else than the matrix of a workspace, or of a source that is not contiguous.
    """

    target: Handle
    threads: ir.IntegerAttr
    bytes: ir.IntegerAttr


_WIDEST = 16  # bytes of a load


def _matrix(buffer: ir.Value) -> ir.Value:
    """Returns a buffer, or the matrices of a batch one below the other, as one matrix."""
    type_ = ir.MemRefType(buffer.type)
    if type_.rank == 2:
        return buffer
    *outer, columns = type_.shape
    groups = [list(range(type_.rank - 1)), [type_.rank - 1]]
    result = ir.MemRefType.get([math.prod(outer), columns], type_.element_type)
    return memref.collapse_shape(result, buffer, groups)


class _Copy:
    """The copy of a matrix by a launch.

    Args:
        copy: the `memref.copy`.
        threads: of a block.
        bytes_: that a thread copies.
    """

    def __init__(self, copy: ir.Operation, block: int, bytes_: int) -> None:
        source, target = copy.operands
        view = defining_op(target)
        type_ = ir.MemRefType(source.type)
        if not is_matrix_of_workspace(view):
            raise Refusal(copy, "expected a copy to the matrix of a workspace")
        if type_.get_strides_and_offset()[0] != [math.prod(type_.shape[axis:]) for axis in range(1, type_.rank + 1)]:
            raise Refusal(copy, "expected a copy of a contiguous buffer")
        self.block = block
        self.source, self.target = _matrix(source), _matrix(view.operands[0])
        self.rows, self.columns = ir.MemRefType(self.source.type).shape
        self.element_type = type_.element_type
        width = types.byte_width(self.element_type)
        self.vector = math.gcd(self.columns, _WIDEST // width)
        self.unroll = max(1, bytes_ // (self.vector * width))
        self.across = -(-self.columns // (block * self.vector))
        self.down = -(-self.rows // self.unroll)

    def load(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """Returns the thread's vector of a row, or its element."""
        if self.vector == 1:
            return memref.load(self.source, [row, column])
        return memory.load_vector(ir.VectorType.get([self.vector], self.element_type), self.source, row, column)

    def store(self, value: ir.Value, row: ir.Value, column: ir.Value) -> None:
        """Stores what `load` returned."""
        if self.vector == 1:
            memref.store(value, self.target, [row, column])
        else:
            memory.store_vector(value, self.target, row, column)

    def emit(self) -> None:
        """Creates the body of the launch, at the insertion point."""
        block = gpu.block_id(gpu.Dimension.x)
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
                    self.store(self.load(loop.induction_variable, column), loop.induction_variable, column)
                    scf.yield_([])
                scf.yield_([])

    def _copy_all(self, row: ir.Value, column: ir.Value) -> None:
        rows = [apply(lambda r, n=number: r + n, row) if number else row for number in range(self.unroll)]
        for each, value in [(each, self.load(each, column)) for each in rows]:
            self.store(value, each, column)


def _function_of(copy: ir.Operation) -> str:
    """Returns the name of the function around an op."""
    function = copy.parent
    if function is None or function.name != "func.func":
        raise Refusal(copy, "expected a copy at the top level of a function")
    return ir.StringAttr(function.attributes["sym_name"]).value


@transform_op(MapRepackingToThreads)
def map_repacking_to_threads(payload: ir.Operation, op: MapRepackingToThreads, rewriter: Rewriter) -> None:
    """Rewrites the copies below `payload`; see the op."""
    block = op.threads.value
    copies = [copy for copy in walk(payload, COPY) if WORKSPACE in copy.attributes]
    for number, copy in enumerate(copies):
        # The kernel of the matmul keeps its name: outlining gives launches without one that of the function.
        name = ir.FlatSymbolRefAttr.get(f"{_function_of(copy)}_repack_{number}")
        with ir.InsertionPoint(copy), copy.location:
            found = _Copy(copy, block, op.bytes.value)
            sizes = [index(size) for size in (found.across * found.down, 1, 1, block, 1, 1)]
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
            body = launch.regions[0].blocks.append(*ids, arg_locs=[copy.location] * len(ids))
            with ir.InsertionPoint(body):
                found.emit()
                gpu.terminator()
        rewriter.erase_op(copy)
