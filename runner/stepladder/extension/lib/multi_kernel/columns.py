"""Columns of a tensor that kernels of matmuls write in place: stages that assemble them, and their pitches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Rewriter
from stepladder.extension.lib.multi_kernel.donation import kept_operands
from stepladder.extension.lib.multi_kernel.stages import EXTENTS, kind_of
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import callee_of, origin, producer, symbol_of, users_of
from stepladder.mlir.types import row_major_strides


def pitches(stage: ir.Operation, shape: Sequence[int], parts: Iterable[Sequence[int]]) -> list[list[int] | None]:
    """Returns the strides of the parts of a tensor that a stage assembles, in elements; None for parts whose elements
    follow each other, and for those that are no rows with a pitch.

    Args:
        stage: that assembles them, a `func.func`.
        shape: extents of the tensor.
        parts: extents of the parts, as the kernels that write them have them.
    """
    strides = row_major_strides(shape)
    part_strides = [reshaped(sizes, strides, part) for sizes, part in zip(_extents_of(stage), parts)]
    return [None if item == row_major_strides(part) else item for item, part in zip(part_strides, parts)]


def reshaped(shape: Sequence[int], strides: Sequence[int], others: Sequence[int]) -> list[int] | None:
    """Returns the strides of a view of all elements with other extents; None where it has none.

    Args:
        shape, strides: of a buffer.
        others: extents of the view, of as many elements.
    """
    axes = [(size, stride) for size, stride in zip(shape, strides) if size != 1]
    new_strides: list[int] = []
    for size in reversed(others):
        if size == 1:
            new_strides.append(new_strides[-1] if new_strides else 1)
            continue
        count, step = axes.pop() if axes else (0, 0)
        while axes and count < size and axes[-1][1] == count * step:
            count *= axes.pop()[0]
        if not count or count % size:
            return None
        new_strides.append(step)
        if count > size:
            axes.append((count // size, size * step))
    return list(reversed(new_strides))


def dissolve(body: ir.Block, functions: Iterable[ir.Operation], rewriter: Rewriter) -> None:
    """Inlines the stages that assemble columns, if matmul kernels cannot write these in place, so that they fuse.

    Matmul kernels cannot write them if another kernel computes a part, or if another op reads one.

    Args:
        body: of the function.
        functions: of the module.
        rewriter: of the transform op.
    """
    stages = {symbol_of(item): item for item in functions}
    for call in (item for item in operations_of(body) if item.name == "func.call"):
        stage = stages[callee_of(call)]
        if EXTENTS not in stage.attributes or _is_written_in_place(call, stage, stages):
            continue
        inner = operations_of(stage.regions[0].blocks[0])
        mapping: dict[ir.Value, ir.Value] = dict(zip(stage.regions[0].blocks[0].arguments, call.operands))
        clones = clone_ops(inner[:-1], mapping, ir.InsertionPoint(call))
        rewriter.replace_op(call, [clones[value] for value in inner[-1].operands])
        rewriter.erase_op(stage)


def _is_written_in_place(call: ir.Operation, stage: ir.Operation, stages: dict[str, ir.Operation]) -> bool:
    """Returns whether kernels of matmuls write the parts that a stage assembles, each of which nothing else reads."""
    types = []
    for value in kept_operands(call, stage):
        source = producer(root := origin(value, TENSOR_VIEWS))
        if source is None or source.name != "func.call" or len(source.results) > 1:
            return False
        writer = stages[callee_of(source)]
        if kind_of(writer) != "matmul" or _readers(root) != [call]:
            return False
        types.append(ir.RankedTensorType(root.type).shape)
    shape = ir.RankedTensorType(call.results[0].type).shape
    return all(reshaped(sizes, row_major_strides(shape), part) for sizes, part in zip(_extents_of(stage), types))


def _extents_of(stage: ir.Operation) -> list[list[int]]:
    """Returns the extents of the parts in the tensor that a stage assembles."""
    return [list(ir.DenseI64ArrayAttr(item)) for item in ir.ArrayAttr(stage.attributes[EXTENTS])]


def _readers(value: ir.Value) -> list[ir.Operation]:
    """Returns the ops that read a tensor or views of it."""
    users = users_of(value)
    for op in users:  # grows in the loop
        if op.name in TENSOR_VIEWS:
            users += users_of(op.results[0])
    return [op for op in users if op.name not in TENSOR_VIEWS]
