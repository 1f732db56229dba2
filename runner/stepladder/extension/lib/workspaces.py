"""Workspaces: buffers in global memory that a kernel writes for one after it, allocated once by the launcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.mlir.bindings import bufferization, ir, memref
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import defining_op, producer, walk
from stepladder.mlir.windows import strided_reads
from stepladder.payload.facts import MATMULS
from stepladder.payload.producers import Producer
from stepladder.payload.signature import set_signature

# The attribute of a workspace's `memref.alloc`, and of the op that fills it: a `memref.copy`, or an elementwise
# `linalg.generic` of one buffer that fills several.
WORKSPACE = "workspace"
# The attribute of a launch whose kernel copies a buffer to a workspace with its axes in another order: for each axis of
# the workspace, that of the buffer.
PERMUTATION = "permutation"
# Another one of a workspace whose rows have no padding: the buffer is the matrix, and views of it are tiles.
_WHOLE = "whole"
COPY = "memref.copy"
ELEMENTWISE = "linalg.generic"

# Bytes that rows of a workspace are a multiple of: a line of the L2 cache, and a multiple of what TMA takes.
_LINE = 128


def padded_columns(columns: int, width: int) -> int:
    """Returns the columns of a workspace for a matrix: more than it has, as a view of all columns would be folded, and
    could not be distinguished from a tile.

    Args:
        columns: of the matrix.
        width: bytes of an element.
    """
    line = _LINE // width
    return (columns // line + 1) * line


def create_workspace(type_: ir.MemRefType, *, is_whole: bool = False) -> ir.Value:
    """Returns a new workspace, at the current insertion point in the host function.

    Args:
        type_: of the buffer.
        is_whole: whether the buffer is the matrix; else a view of it without the padding of its rows is.
    """
    alloc = memref.alloc(type_, [], [])
    for name in (WORKSPACE, _WHOLE) if is_whole else (WORKSPACE,):
        alloc.owner.attributes[name] = ir.UnitAttr.get()
    return alloc


def create_copy(source: ir.Value, target: ir.Value) -> None:
    """Creates the copy of a buffer to a workspace, at the current insertion point.

    Args:
        source: a buffer.
        target: the workspace, or a view of it, of the same shape.
    """
    ir.Operation.create(COPY, operands=[source, target], attributes={WORKSPACE: ir.UnitAttr.get()})


def is_workspace(value: ir.Value) -> bool:
    """Returns whether a value is a workspace.

    Args:
        value: of any type.
    """
    source = producer(value)
    return source is not None and source.name == "memref.alloc" and WORKSPACE in source.attributes


def is_matrix_of_workspace(view: ir.Operation | None) -> bool:
    """Returns whether an op views the matrix in a workspace: all rows, and the columns before the padding.

    Args:
        view: any op; None, of a value that no op makes, views none.
    """
    if view is None or view.name != "memref.subview" or not is_workspace(view.operands[0]):
        return False
    return _WHOLE not in defining_op(view.operands[0]).attributes


def the_matmuls(payload: ir.Operation) -> list[ir.Operation]:
    """Returns the one matmul on tensors below an op, or both of a pair.

    Args:
        payload: a module or a function.

    Raises:
        Refusal: none, or more.
    """
    matmuls = walk(payload, *MATMULS)
    if len(matmuls) not in (1, 2):
        raise Refusal(payload, f"expected one matmul, or a pair, found {len(matmuls)}")
    return matmuls


def read_from_workspaces(
    matmul: ir.Operation,
    is_copied: Callable[[int, ir.Value], bool],
    copy: Callable[[ir.Value], ir.Value],
    rewriter: Rewriter,
    copies: dict[ir.Value, ir.Value],
) -> list[int]:
    """Makes a matmul read A or B from workspaces; one buffer that is A and B is copied once.

    Args:
        matmul: on tensors that are read from buffers.
        is_copied: returns, given the number of an operand and its buffer, whether it is read from a workspace.
        copy: creates the copy of a buffer and returns the view of it that is read, at the insertion point.
        rewriter: erases reads that nothing uses any more.
        copies: the views that are read, by buffer, of this matmul and of others; grows.

    Returns:
        The indices of the operands that are read from workspaces.

    Raises:
        Refusal: an operand that is not read from a buffer, or is to be copied and has several strides between the
            matrices of a batch.
    """
    numbers = []
    for number in range(2):
        source = producer(matmul.operands[number])
        is_joined = source is not None and source.name == "tensor.reshape"
        to_tensor = strided_reads(source) if source is not None and is_joined else source
        if to_tensor is None or to_tensor.name != "bufferization.to_tensor":
            raise Refusal(matmul, "expected operands that are read from buffers")
        buffer = to_tensor.operands[0]
        if not is_copied(number, buffer):
            continue
        if is_joined:
            raise Refusal(
                matmul, "only operands with one stride between the matrices of a batch are copied before the matmul"
            )
        with ir.InsertionPoint(to_tensor), matmul.location:
            view_of_copy = next((view for source, view in copies.items() if source == buffer), None)
            view = copy(buffer) if view_of_copy is None else view_of_copy
            copies[buffer] = view
            type_ = ir.MemRefType(view.type)
            tensor = bufferization.to_tensor(
                ir.RankedTensorType.get(type_.shape, type_.element_type), view, restrict=True
            )
        matmul.operands[number] = tensor
        numbers.append(number)
        if not list(to_tensor.results[0].uses):
            rewriter.erase_op(to_tensor)
    return numbers


def insert_producers(function: ir.Operation, producers: Sequence[Producer]) -> None:
    """Computes what arguments of a function represent, on tensors, and writes it to workspaces in their place.

    Args:
        function: on buffers; the arguments for results of the producers go.
        producers: what `payload.producers.separate` has moved out of it.
    """
    if not producers:
        return
    body = function.regions[0].blocks[0]
    first = operations_of(body)[0]
    for item in producers:
        argument = body.arguments[item.number]
        with ir.InsertionPoint(first), item.location:
            workspace = create_workspace(ir.MemRefType(argument.type), is_whole=True)
            mapping: dict[ir.Value, ir.Value] = {}
            for number in item.arguments:
                body_argument, buffer = item.body.arguments[number], body.arguments[number]
                is_tensor = isinstance(body_argument.type, ir.RankedTensorType)
                mapping[body_argument] = (
                    bufferization.to_tensor(body_argument.type, buffer, restrict=True) if is_tensor else buffer
                )
            *ops, end = operations_of(item.body)
            values = clone_ops(ops, mapping, ir.InsertionPoint(first))
            bufferization.materialize_in_destination(
                None, values[end.operands[0]], workspace, restrict=True, writable=True
            )
        argument.replace_all_uses_with(workspace)
    for item in reversed(producers):
        body.erase_argument(item.number)
    set_signature(function)
