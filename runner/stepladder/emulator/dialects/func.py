"""func: functions of the host and of kernels, and their calls.

On the host a call executes the function to its end. In a kernel, where threads may diverge and wait inside it, the
instructions of the function replace the call, as GPU compilers inline it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepladder.emulator.core import control_flow
from stepladder.emulator.core import host as runtime
from stepladder.emulator.core.fibers import Fiber, Left
from stepladder.emulator.core.program import (
    Builder,
    Function,
    Instruction,
    decode_attributes,
)
from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.core.values import Value
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import StepladderError


def define(
    builder: Builder,
    op: ir.Operation,
    name: str,
    arguments: Sequence | None = None,
    begin: Callable[[], None] | None = None,
) -> None:
    """Adds a function and its instructions to the program; one without a body is left out.

    Args:
        builder: of the program.
        op: the function.
        name: of the function in the program.
        arguments: of the function; default: those of its first block.
        begin: emits what precedes its own instructions.
    """
    if not list(op.regions[0].blocks):
        return
    arguments = builder.defined(op.regions[0].blocks[0].arguments if arguments is None else arguments)
    function = Function(
        name,
        arguments,
        tuple(builder.slot_types[slot] for slot in arguments),
        attributes=decode_attributes(op),
        location=builder.location,
        chips=builder.chips,
    )
    function.code = control_flow.separate(builder, op.regions[0], begin)
    builder.functions[name] = function


@lowers("func.func")
def lower_func(builder: Builder, op: ir.Operation) -> None:
    """`func.func`: a function that can be called; one of a kernel's module is inlined."""
    if not builder.modules:
        define(builder, op, op.attributes["sym_name"].value)


def put_in_place(builder: Builder, op: ir.Operation, symbol: str) -> bool:
    """Emits, in a kernel, the instructions of a function in place of a call.

    Args:
        builder: of the program.
        op: the call.
        symbol: the name of the function.

    Returns:
        Whether the function has a body; nothing is emitted for one without.

    Raises:
        StepladderError: it calls itself.
    """
    callee = find(op, symbol)
    if callee is None or not list(callee.regions[0].blocks):
        return False
    if symbol in builder.callees:
        raise StepladderError(
            f"@{symbol} calls itself, which the emulator does not support in a kernel", location=builder.location
        )
    operands = builder.used(op.operands)
    results = builder.defined(op.results)
    arguments = builder.defined(callee.regions[0].blocks[0].arguments)
    if arguments:
        builder.emit(op.name, control_flow.move, operands, arguments)
    builder.callees.append(symbol)
    control_flow.inline(builder, callee.regions[0], results)
    builder.callees.pop()
    return True


def find(op: ir.Operation, symbol: str) -> Value:
    """Returns the function with a name in the nearest enclosing module, or None.

    Args:
        op: where the search begins.
        symbol: the name of the function.
    """
    scope = op.parent
    while scope is not None:
        if scope.name in ("builtin.module", "gpu.module"):
            for other in scope.regions[0].blocks[0].operations:
                inner = other.operation
                if "sym_name" in inner.attributes and inner.attributes["sym_name"].value == symbol:
                    return inner
        scope = scope.parent
    return None


@executes("func.return")
def return_(fiber: Fiber, op: Instruction, *results: Value) -> None:
    """Ends the function."""
    fiber.group.state["returned"] = list(results)
    raise Left


@lowers("func.call")
def lower_call(builder: Builder, op: ir.Operation) -> None:
    """`func.call`: of a function with a body, or of one that the emulator provides."""
    symbol = op.attributes["callee"].value
    if builder.in_kernel and put_in_place(builder, op, symbol):
        return
    attributes = decode_attributes(op)
    callee = find(op, symbol)
    if callee is None or not list(callee.regions[0].blocks):
        if symbol not in runtime.FUNCTIONS:
            raise StepladderError(
                f"there is no function @{symbol} with a body, and the emulator does not provide it",
                location=builder.location,
                notes=[f"it provides: {', '.join(sorted(runtime.FUNCTIONS))}"],
            )
        builder.emit(op.name, call_runtime, builder.used(op.operands), builder.defined(op.results), attributes)
        return
    builder.emit(op.name, call, builder.used(op.operands), builder.defined(op.results), attributes)


def call(fiber: Fiber, op: Instruction, *arguments: Value) -> Value:
    """Calls another function on the host."""
    machine = fiber.group.machine
    results = machine.call(machine.program.functions[op.attributes["callee"]], arguments)
    return results[0] if len(results) == 1 else tuple(results)


def call_runtime(fiber: Fiber, op: Instruction, *arguments: Value) -> Value:
    """Calls a function that the emulator provides."""
    return runtime.FUNCTIONS[op.attributes["callee"]](fiber, op, *arguments)


@lowers("func.constant")
def lower_constant(builder: Builder, op: ir.Operation) -> None:
    """`func.constant`: a function as a value, by its name."""
    builder.emit(op.name, _symbol, (), builder.defined(op.results), decode_attributes(op))


def _symbol(fiber: Fiber, op: Instruction) -> Value:
    return op.attributes["value"]


@executes("func.call_indirect")
def call_indirect(fiber: Fiber, op: Instruction, symbol: Value, *arguments: Value) -> Value:
    """Calls a function of the host that a value names."""
    machine = fiber.group.machine
    results = machine.call(machine.program.functions[symbol], arguments)
    return results[0] if len(results) == 1 else tuple(results)
