"""Workspaces: buffers in global memory that a kernel writes for one after it, allocated once by the launcher."""

from __future__ import annotations

from stepladder.mlir.bindings import ir, memref
from stepladder.mlir.traverse import producer

# The attribute of a workspace's `memref.alloc`, and of the op that fills it: a `memref.copy`, or an elementwise
# `linalg.generic` of one buffer that fills several.
WORKSPACE = "workspace"
COPY = "memref.copy"
ELEMENTWISE = "linalg.generic"

# Bytes that rows of a workspace are a multiple of: a line of the L2 cache, and a multiple of what TMA takes.
_LINE = 128


def padded_columns(columns: int, width: int) -> int:
    """Returns the columns of a workspace for a matrix: more than it has, as a view of all columns would be folded, and
    could not be told from a tile.

    Args:
        columns: of the matrix.
        width: bytes of an element.
    """
    line = _LINE // width
    return (columns // line + 1) * line


def create_workspace(type_: ir.MemRefType) -> ir.Value:
    """Returns a new workspace, at the current insertion point in the host function."""
    alloc = memref.alloc(type_, [], [])
    alloc.owner.attributes[WORKSPACE] = ir.UnitAttr.get()
    return alloc


def create_copy(source: ir.Value, target: ir.Value) -> None:
    """Creates the copy of a buffer to a workspace, at the current insertion point."""
    ir.Operation.create(COPY, operands=[source, target], attributes={WORKSPACE: ir.UnitAttr.get()})


def is_workspace(value: ir.Value) -> bool:
    """Tells whether a value is a workspace."""
    source = producer(value)
    return source is not None and source.name == "memref.alloc" and WORKSPACE in source.attributes


def is_matrix_of_workspace(view: ir.Operation | None) -> bool:
    """Tells whether an op views the matrix in a workspace: all rows, and the columns before the padding."""
    return view is not None and view.name == "memref.subview" and is_workspace(view.operands[0])
