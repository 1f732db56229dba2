"""Operands of an MMA of f32 that are split into two of tf32: workspaces, TMA descriptors and stages of both parts."""

from collections.abc import Callable

from stepladder.extension.lib import memory, tma, tma_pipeline
from stepladder.extension.lib.dialect import Refusal, Rewriter
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
from stepladder.mlir.traverse import attributes_of, defining_op, producer, users_of

_WIDTH = 4  # bytes of an element
# Ops between a tile in shared memory and its loads; a cast where canonicalization has made offsets static.
_VIEWS = (*memory.VIEWS, "memref.cast")


def copy_to(view: ir.Value) -> ir.Operation | None:
    """Returns the copy that fills the matrix of a workspace, or None where a value is none.

    Args:
        view: a buffer.
    """
    if not is_matrix_of_workspace(producer(view)):
        return None
    return next((user for user in users_of(view) if user.name == COPY and user.operands[1] == view), None)


def _create_parts(source: ir.Value) -> list[ir.Value]:
    """Returns views of workspaces with the large and the small part of a buffer, at the current insertion point.

    Raises:
        Refusal: a part of a buffer, with gaps between its rows.
    """
    type_ = ir.MemRefType(source.type)
    view = producer(source)
    stored_type = (
        ir.MemRefType(view.operands[0].type) if view is not None and view.name == "memref.transpose" else type_
    )
    if types.strides_of(stored_type) != types.row_major_strides(stored_type.shape):
        raise Refusal(
            defining_op(source),
            "an operand that is a part of a buffer must have dense rows: only whole buffers are split before the "
            "matmul; allow_tf32 = true multiplies parts, and pipeline mma_sync splits them",
        )
    *outer, columns = type_.shape
    views = []
    for _ in range(2):
        padded_type = ir.MemRefType.get([*outer, padded_columns(columns, _WIDTH)], type_.element_type)
        views.append(memory.subview(create_workspace(padded_type), [0] * type_.rank, list(type_.shape)))
    identity = ir.AffineMap.get_identity(type_.rank)
    _, body = create_generic([source], views, [identity] * 3, {WORKSPACE: ir.UnitAttr.get()})
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=list(split(body.arguments[0], keeps_infinities=True)))
    return views


def parts_of(buffer: ir.Value, rewriter: Rewriter) -> list[ir.Value]:
    """Returns views of workspaces with the large and the small part of a buffer; of a copy, which is
    erased, those of its source.

    Args:
        buffer: before the launch; the parts are created at the insertion point, or in place of the copy.
        rewriter: of the transform op.

    Raises:
        Refusal: a part of a buffer, with gaps between its rows.
    """
    copy = copy_to(buffer)
    if copy is None:
        return _create_parts(buffer)
    with ir.InsertionPoint(copy), copy.location:
        parts = _create_parts(copy.operands[0])
    rewriter.erase_op(copy)
    return parts


def cloned(op: ir.Operation, operands: Callable[[ir.Value], ir.Value]) -> ir.Operation:
    """Returns a clone of an op after it, with the operands that a function makes of its own.

    Args:
        op: without regions.
        operands: returns the operand of the clone for one of the op.
    """
    with ir.InsertionPoint.after(op), op.location:
        return ir.Operation.create(
            op.name,
            results=[result.type for result in op.results],
            operands=[operands(operand) for operand in op.operands],
            attributes=attributes_of(op),
        )


class Matrix:
    """A TMA descriptor of A or B, or of both where they are one buffer and have tiles alike.

    Args:
        create: the op that creates it.
    """

    def __init__(self, create: ir.Operation) -> None:
        self.create = create
        self.cast = defining_op(create.operands[0])
        self.buffer = self.cast.operands[0]

    def split(self, large: ir.Value, small: ir.Value) -> ir.Value:
        """Makes the descriptor one of the large part, and returns one of the small part.

        Args:
            large, small: the matrices of the parts.
        """
        with tma.before_descriptor(self.create):
            type_ = self.cast.results[0].type
            unranked_views = [
                ir.Operation.create(self.cast.name, results=[type_], operands=[part]).results[0]
                for part in (large, small)
            ]
        before, descriptor = self.create.operands[0], self.create.results[0]
        small_descriptor = cloned(self.create, lambda value: unranked_views[1] if value == before else value).results[0]
        self.create.operands[0] = unranked_views[0]
        for user in users_of(descriptor):
            if user.name == "nvgpu.tma.prefetch.descriptor":
                cloned(user, lambda value: small_descriptor)
        return small_descriptor


def add_small_tile(generate: ir.Operation, small: ir.Value) -> ir.Value:
    """Loads tiles of the small part beside those of the large one.

    Args:
        generate: the op that creates the matrix descriptor of the large tile.
        small: the TMA descriptor of the small part.

    Returns:
        The matrix descriptor of the small tile.
    """
    alloc, descriptor = memory.shared_tile_of(generate, generate.operands[0]), generate.operands[1]
    replacements = {descriptor: small, alloc.results[0]: cloned(alloc, lambda value: value).results[0]}

    def of_small(value: ir.Value) -> ir.Value:
        """Returns the replacement of a value in the loads of the small part."""
        if value in replacements:
            return replacements[value]
        view = producer(value)
        if view is None or view.name not in _VIEWS or memory.alloc_of(value) != alloc:
            return value
        replacements[value] = cloned(view, of_small).results[0]
        return replacements[value]

    for user in users_of(descriptor):
        if user.name == tma.LOAD and memory.alloc_of(user.operands[0]) == alloc:
            cloned(user, of_small)
    return cloned(generate, of_small).results[0]


def the_mma(launch: ir.Operation) -> ir.Operation:
    """Returns the one MMA of a launch.

    Args:
        launch: a `gpu.launch` with the pipeline.

    Raises:
        Refusal: it has none or several, or operands of another type than tf32.
    """
    mmas = tma_pipeline.mmas_below(launch)
    if len(mmas) != 1:
        raise Refusal(launch, f"expected one warpgroup MMA, found {len(mmas)}")
    (mma,) = mmas
    element = types.name_of(types.matrix_descriptor_tile(mma.operands[0].type).element_type)
    if element != "tf32":
        raise Refusal(mma, f"expected operands of tf32, not of {element}")
    return mma


def erase_unread(buffer: ir.Value, rewriter: Rewriter) -> None:
    """Erases the view and the workspace that a buffer is where nothing reads it, with the copy to it.

    Args:
        buffer: before the launch.
        rewriter: of the transform op.
    """
    view = producer(buffer)
    copy = copy_to(buffer)
    if view is None or not is_matrix_of_workspace(view) or any(user != copy for user in users_of(buffer)):
        return
    if copy is not None:
        rewriter.erase_op(copy)
    workspace = defining_op(view.operands[0])
    rewriter.erase_op(view)
    rewriter.erase_op(workspace)
