"""What a result of a linalg op on buffers holds before the op."""

from __future__ import annotations

from dataclasses import dataclass, field

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir.bindings import ir
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import origin


@dataclass
class Initial:
    """The initial content of an output: a scalar, or the elements of a buffer; neither if it is not initialized.

    Attributes:
        number: the scalar.
        buffer: that is copied.
        ops: fills and copies that initialize the output.
    """

    number: ir.Value | None = None
    buffer: ir.Value | None = None
    ops: list[ir.Operation] = field(default_factory=list)


def initial_of(generic: ir.Operation, place: int, argument: ir.Value) -> Initial:
    """Returns what an output holds before the op: what the last fill or copy has written.

    Args:
        generic: a `linalg.generic` on buffers.
        place: of the output among the operands.
        argument: of the body, for the output's elements.

    Raises:
        Refusal: the op reads an output that nothing initializes, or a copy initializes another view of it.
    """
    output = generic.operands[place]
    root = origin(output, BUFFER_VIEWS)
    initial = Initial()
    for item in operations_of(generic.block):
        if item == generic:
            break
        if item.name not in ("linalg.fill", "memref.copy") or origin(item.operands[1], BUFFER_VIEWS) != root:
            continue
        if item.name == "memref.copy" and item.operands[1] != output:
            raise Refusal(item, "a copy to another view of the result")
        initial.ops.append(item)
        is_fill = item.name == "linalg.fill"
        initial.number, initial.buffer = (item.operands[0], None) if is_fill else (None, item.operands[0])
    if list(argument.uses) and initial.number is None and initial.buffer is None:
        raise Refusal(generic, "the op reads a result that nothing initializes")
    return initial
