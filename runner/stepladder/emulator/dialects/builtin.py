"""Casts between types of different dialects: the value stays what it is."""

from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.hardware.asynchronous import Sums


@executes("builtin.unrealized_conversion_cast")
def cast(fiber, op, *operands):
    """Hands the value on; sums of a warpgroup as the vector of them that each thread holds."""
    if isinstance(operands[0], Sums):
        return operands[0].read(fiber, op).reshape(fiber.count, *op.result_types[0].shape)
    return operands[0] if len(operands) == 1 else operands


@lowers("builtin.module", "gpu.module")
def lower_module(builder, op) -> None:
    """A module: what stands in it."""
    if op.name == "gpu.module":
        builder.modules.append(op.attributes["sym_name"].value)
    for inner in op.regions[0].blocks[0].operations:
        builder.lower(inner.operation)
    if op.name == "gpu.module":
        builder.modules.pop()


@lowers("ml_program.global")
def lower_global(builder, op) -> None:
    """A global that no op of a payload may read: nothing."""


@lowers("gpu.module_end")
def lower_end(builder, op) -> None:
    """The end of a module: nothing."""
