"""Functions of the host."""

from stepladder.emulator.core import control_flow
from stepladder.emulator.core.machine import Left
from stepladder.emulator.core.program import Function, decode_attributes
from stepladder.emulator.core.registry import executes, lowers


def define(builder, op, name: str) -> None:
    """Adds a function, with its instructions, to what the builder has made; one without a body is left out."""
    if not list(op.regions[0].blocks):
        return
    arguments = builder.defined(op.regions[0].blocks[0].arguments)
    function = Function(
        name,
        arguments,
        tuple(builder.slot_types[slot] for slot in arguments),
        attributes=decode_attributes(op),
        location=builder.location,
    )
    function.code = control_flow.separate(builder, op.regions[0])
    builder.functions[name] = function


@lowers("func.func")
def lower_func(builder, op) -> None:
    """`func.func`: a function that can be called."""
    define(builder, op, op.attributes["sym_name"].value)


@executes("func.return")
def return_(fiber, op, *results):
    """Ends the function."""
    fiber.group.state["returned"] = list(results)
    raise Left


@executes("func.call")
def call(fiber, op, *arguments):
    """Calls another function on the host."""
    machine = fiber.group.machine
    results = machine.call(machine.program.functions[op.attributes["callee"]], arguments)
    return results[0] if len(results) == 1 else tuple(results)
