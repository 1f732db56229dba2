"""async: each region executes in program order, so that its tokens and values are available at once."""

from __future__ import annotations

from stepladder.emulator.core.control_flow import move
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Builder, Instruction
from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.core.values import Value
from stepladder.mlir.bindings import ir


@lowers("async.execute")
def lower_execute(builder: Builder, op: ir.Operation) -> None:
    """`async.execute`: its region, inline."""
    dependency_count = list(op.attributes["operandSegmentSizes"])[0]
    block = op.regions[0].blocks[0]
    arguments = builder.defined(block.arguments)
    if arguments:
        builder.emit(op.name, move, builder.used(list(op.operands)[dependency_count:]), arguments)
    end = builder.to_terminator(block)
    token, *results = builder.defined(op.results)
    builder.emit(op.name, _token, (), (token,))
    if results:
        builder.emit(op.name, move, builder.used(end.operands), results)


def _token(fiber: Fiber, op: Instruction) -> None:
    return None


@executes("async.await")
def await_(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The value that something was to give."""
    return value if op.results else None


@executes("async.await_all")
def await_all(fiber: Fiber, op: Instruction, group: Value) -> None:
    """Nothing: all has been run."""


@executes("async.create_group")
def create_group(fiber: Fiber, op: Instruction, size: Value) -> Value:
    """A group of tokens, which are complete."""
    return None


@executes("async.add_to_group")
def add_to_group(fiber: Fiber, op: Instruction, token: Value, group: Value) -> int:
    """The number of a token in its group, which is not used."""
    return 0
