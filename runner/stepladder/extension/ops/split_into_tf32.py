"""`tc.split_into_tf32`: multiplies tiles of f32 by warpgroup MMAs of operands that are split into two of tf32."""

from collections.abc import Callable

from stepladder.extension.lib import launches, memory, pipeline, tma, warpgroup_ops
from stepladder.extension.lib.arithmetic import constant_value, index
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.tf32_parts import split
from stepladder.extension.lib.workspaces import (
    COPY,
    WORKSPACE,
    create_workspace,
    is_matrix_of_workspace,
    padded_columns,
)
from stepladder.mlir import types
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.traverse import attributes_of, defining_op, producer, users_of, walk


class SplitIntoTf32(Tc.Operation, name="split_into_tf32"):
    """Splits A and B into large and small parts in workspaces, and multiplies tiles of both.

    The large part of an element is its first 11 bits, rounded to nearest, and the small part what is left. A
    `linalg.generic` in front of the launch writes both to workspaces, one for each part. Where the matrix is a copy in
    a workspace itself, the op reads the source of the copy, which goes.

    Each stage has a tile of either part, which TMA loads alike, and `tc.warpgroup_mma_3xtf32` multiplies them.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: a launch without one MMA of tf32.
    """

    target: Handle


_WIDTH = 4  # bytes of an element
# What stands between a tile in shared memory and its loads; a cast where canonicalization has made offsets static.
_VIEWS = (*memory.VIEWS, "memref.cast")


def _copy_to(view: ir.Value) -> ir.Operation | None:
    """Returns the copy that fills the matrix of a workspace, or None where a value is none."""
    if not is_matrix_of_workspace(producer(view)):
        return None
    return next((user for user in users_of(view) if user.name == COPY and user.operands[1] == view), None)


def _create_parts(source: ir.Value) -> list[ir.Value]:
    """Returns views of workspaces with the large and the small part of a buffer, at the current insertion point."""
    type_ = ir.MemRefType(source.type)
    *outer, columns = type_.shape
    views = []
    for _ in range(2):
        padded = ir.MemRefType.get([*outer, padded_columns(columns, _WIDTH)], type_.element_type)
        views.append(memory.subview(create_workspace(padded), [0] * type_.rank, list(type_.shape)))
    identity = ir.AffineMap.get_identity(type_.rank)
    _, body = create_generic([source], views, [identity] * 3, {WORKSPACE: ir.UnitAttr.get()})
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=list(split(body.arguments[0], keeps_infinities=True)))
    return views


def _parts_of(buffer: ir.Value, rewriter: Rewriter) -> list[ir.Value]:
    """Returns what `_create_parts` returns of a buffer, or of what it is a copy of, which goes."""
    copy = _copy_to(buffer)
    if copy is None:
        return _create_parts(buffer)
    with ir.InsertionPoint(copy), copy.location:
        parts = _create_parts(copy.operands[0])
    rewriter.erase_op(copy)
    return parts


def _cloned(op: ir.Operation, operands: Callable[[ir.Value], ir.Value]) -> ir.Operation:
    """Returns a clone of an op behind it, with the operands that a function makes of its own."""
    with ir.InsertionPoint.after(op), op.location:
        return ir.Operation.create(
            op.name,
            results=[result.type for result in op.results],
            operands=[operands(operand) for operand in op.operands],
            attributes=attributes_of(op),
        )


class _Matrix:
    """A TMA descriptor of A or B, or of both where they are one buffer and have tiles alike.

    Args:
        create: the op that creates it.
    """

    def __init__(self, create: ir.Operation) -> None:
        self.create = create
        self.cast = defining_op(create.operands[0])
        self.buffer = self.cast.operands[0]

    def split(self, large: ir.Value, small: ir.Value) -> ir.Value:
        """Makes the descriptor one of the large part, and returns one of the small part."""
        with ir.InsertionPoint(self.create), self.create.location:
            type_ = self.cast.results[0].type
            unranked = [
                ir.Operation.create(self.cast.name, results=[type_], operands=[part]).results[0]
                for part in (large, small)
            ]
        before, descriptor = self.create.operands[0], self.create.results[0]
        created = _cloned(self.create, lambda value: unranked[1] if value == before else value).results[0]
        self.create.operands[0] = unranked[0]
        for user in users_of(descriptor):
            if user.name == "nvgpu.tma.prefetch.descriptor":
                _cloned(user, lambda value: created)
        return created


def _add_small_tile(generate: ir.Operation, small: ir.Value) -> ir.Value:
    """Loads tiles of the small part beside those of the large one.

    Args:
        generate: the op that creates the matrix descriptor of the large tile.
        small: the TMA descriptor of the small part.

    Returns:
        The matrix descriptor of the small tile.
    """
    alloc, descriptor = memory.shared_tile_of(generate, generate.operands[0]), generate.operands[1]
    replaced = {descriptor: small, alloc.results[0]: _cloned(alloc, lambda value: value).results[0]}

    def of_small(value: ir.Value) -> ir.Value:
        """Returns what stands for a value in the loads of the small part."""
        if value in replaced:
            return replaced[value]
        view = producer(value)
        if view is None or view.name not in _VIEWS or memory.alloc_of(value) != alloc:
            return value
        replaced[value] = _cloned(view, of_small).results[0]
        return replaced[value]

    for user in users_of(descriptor):
        if user.name == tma.LOAD and memory.alloc_of(user.operands[0]) == alloc:
            _cloned(user, of_small)
    return _cloned(generate, of_small).results[0]


def _expect_both(launch: ir.Operation) -> None:
    """Doubles the bytes that a stage expects."""
    for expect in walk(launch, tma.EXPECT):
        expected = constant_value(expect.operands[1])
        assert expected is not None, "tc.load_by_tma creates constant byte counts"
        with ir.InsertionPoint(expect), expect.location:
            expect.operands[1] = index(2 * expected)


@transform_op(SplitIntoTf32)
def split_into_tf32(payload: ir.Operation, op: SplitIntoTf32, rewriter: Rewriter) -> None:
    """Rewrites the MMA in the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    mmas = pipeline.mmas_below(launch)
    if len(mmas) != 1:
        raise Refusal(launch, f"expected one warpgroup MMA, found {len(mmas)}")
    (mma,) = mmas
    element = types.name_of(types.matrix_descriptor_tile(mma.operands[0].type).element_type)
    if element != "tf32":
        raise Refusal(mma, f"expected operands of tf32, not of {element}")
    generators = [defining_op(mma.operands[number]) for number in (0, 1)]
    matrices = {create: _Matrix(create) for create in (defining_op(each.operands[1]) for each in generators)}
    parts: dict[ir.Value, list[ir.Value]] = {}
    descriptors: dict[ir.Operation, ir.Value] = {}
    for create, matrix in matrices.items():
        if matrix.buffer not in parts:
            with ir.InsertionPoint(matrix.cast), matrix.cast.location:
                parts[matrix.buffer] = _parts_of(matrix.buffer, rewriter)
        descriptors[create] = matrix.split(*parts[matrix.buffer])
    small = [_add_small_tile(each, descriptors[defining_op(each.operands[1])]) for each in generators]
    _expect_both(launch)
    with ir.InsertionPoint(mma), mma.location:
        total = warpgroup_ops.multiply_split(list(mma.operands)[:2], small, mma.operands[2])
    rewriter.replace_op(mma, [total])
    for cast in dict.fromkeys(matrix.cast for matrix in matrices.values()):
        rewriter.erase_op(cast)
    for view in [producer(buffer) for buffer in parts]:
        if view is not None and is_matrix_of_workspace(view) and not list(view.results[0].uses):
            workspace = defining_op(view.operands[0])
            rewriter.erase_op(view)
            rewriter.erase_op(workspace)
