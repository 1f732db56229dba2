"""Updates of a matrix by lanes, element by element: what 2D block operations have no form of.

The block of a subgroup is written to shared local memory, from which each lane takes what it has written itself: its
column. No lane reads what another one wrote, so that no barrier is needed, and a compiler may keep the numbers in
registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import index, less_than
from stepladder.extension.lib.control_flow import body_of
from stepladder.extension.lib.launches import BLOCK, launch_sizes
from stepladder.extension.lib.xegpu_layouts import COLUMNS, ROWS, instruction
from stepladder.mlir.bindings import arith, ir, memref, scf, vector

Action = Callable[[ir.Value, list[ir.Value]], object]
_SHARED = 3
_DYNAMIC = -(2**63)


@dataclass(frozen=True)
class Scratch:
    """Shared local memory of a launch: a block of 8 x 16 elements for each subgroup.

    Attributes:
        buffer: the memory.
        descriptor: of it, in XeGPU.
    """

    buffer: ir.Value
    descriptor: ir.Value


def make_scratch(launch: ir.Operation, element: ir.Type) -> Scratch:
    """Allocates the memory at the begin of a launch.

    Args:
        launch: a `gpu.launch`, whose subgroups get a block each.
        element: type of the elements.

    Returns:
        The memory and its descriptor.
    """
    subgroups = max(math.prod(launch_sizes(launch, BLOCK)) // COLUMNS, 1)
    space = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _SHARED)
    type_ = ir.MemRefType.get([ROWS * subgroups, COLUMNS], element, memory_space=space)
    described = ir.Type.parse(f"!xegpu.mem_desc<{ROWS * subgroups}x{COLUMNS}x{element}>")
    with ir.InsertionPoint.at_block_begin(body_of(launch)), launch.location:
        buffer = memref.alloc(type_, [], [])
        made = ir.Operation.create("xegpu.create_mem_desc", results=[described], operands=[buffer])
    return Scratch(buffer, made.results[0])


def update_elements(
    op: ir.Operation,
    scratch: Scratch,
    value: ir.Value,
    places: Sequence[ir.Value],
    sizes: Sequence[int],
    action: Action,
) -> None:
    """Lets lanes update the elements of a matrix that a block covers, where they are within it.

    Args:
        op: for refusals.
        scratch: of the launch, of elements of the block's type.
        value: the block, of 16 columns or a multiple, or of one.
        places: row and column of its first element in the matrix.
        sizes: rows and columns of the matrix.
        action: creates the update of an element, of its value, row and column.

    Raises:
        Refusal: another number of columns.
    """
    type_ = ir.VectorType(value.type)
    rows, columns = type_.shape
    is_column = columns == 1
    if is_column:  # every lane gets the numbers of all rows
        value, columns = vector.broadcast(ir.VectorType.get([rows, COLUMNS], type_.element_type), value), COLUMNS
    height = math.gcd(rows, ROWS)
    layout = instruction(op, [height, columns])
    lane, subgroup = (_gpu_index(name) for name in ("lane_id", "subgroup_id"))
    first = arith.muli(subgroup, index(ROWS))
    piece_type = ir.VectorType.get([height, COLUMNS], type_.element_type)
    for row in range(0, rows, height):
        for column in range(0, columns, COLUMNS):
            piece = vector.extract_strided_slice(piece_type, value, [row, column], [height, COLUMNS], [1, 1])
            ir.Operation.create(
                "xegpu.store_matrix",
                operands=[piece, scratch.descriptor, first, index(0)],
                attributes={"const_offsets": ir.DenseI64ArrayAttr.get([_DYNAMIC] * 2), "layout": layout},
            )
            if is_column:
                at = [arith.addi(places[0], arith.addi(lane, index(row))), places[1]]
                inside = arith.andi(less_than(lane, index(height)), _within(at, sizes))
                _when(inside, scratch, [arith.addi(first, lane), lane], at, action)
                continue
            across = arith.addi(places[1], arith.addi(lane, index(column)))
            for inner in range(height):
                at = [arith.addi(places[0], index(row + inner)), across]
                _when(_within(at, sizes), scratch, [arith.addi(first, index(inner)), lane], at, action)


def _gpu_index(name: str) -> ir.Value:
    """Returns the number that an op of the dialect `gpu` gives, such as "lane_id"."""
    return ir.Operation.create(f"gpu.{name}", results=[ir.IndexType.get()]).results[0]


def _within(at: Sequence[ir.Value], sizes: Sequence[int]) -> ir.Value:
    """Returns whether an element is within a matrix; a negative index is a large unsigned one."""
    row, column = (less_than(place, index(size)) for place, size in zip(at, sizes))
    return arith.andi(row, column)


def _when(condition: ir.Value, scratch: Scratch, own: list[ir.Value], at: list[ir.Value], action: Action) -> None:
    branch = scf.IfOp(condition, [], has_else=False)
    with ir.InsertionPoint(branch.then_block):
        action(memref.load(scratch.buffer, own), at)
        scf.yield_([])
