"""The registry of functions that execute ops.

A dialect's module registers a function for each of its ops:

    @executes("arith.addf")
    def addf(fiber, op, left, right):
        return left + right

`fiber` is the set of threads that execute in step (`fibers.Fiber`), `op` the instruction (`program.Instruction`: its
attributes as Python values, its types, its location). The values of the operands follow (`values` describes them). The
function returns a value, None for an op without results, or a tuple for several results. It raises `fibers.Blocked` if
it cannot proceed yet, and is called again later.

Ops with regions or branches are lowered instead (`@lowers("scf.for")`): the function gets the `program.Builder` and
the op of MLIR, and emits instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.mlir.bindings import ir

EXECUTED: dict[str, Callable] = {}
CHECKED: dict[str, Callable] = {}
LOWERED: dict[str, Callable] = {}
SHARED: dict[str, Callable] = {}


def executes(*names: str) -> Callable[[Callable], Callable]:
    """Registers a function that executes ops.

    Args:
        names: of the ops.

    Returns:
        A decorator of a function of the fiber, the instruction and its operands, which returns the function.
    """
    return _register(EXECUTED, names)


def checks(*names: str) -> Callable[[Callable], Callable]:
    """Registers a function that adds checks to the execution of ops.

    Args:
        names: of the ops.

    Returns:
        A decorator of a function of the MLIR op and the function that executes it, which returns one to execute
        instead.
    """
    return _register(CHECKED, names)


def execution(op: ir.Operation) -> Callable:
    """Returns the function that executes an op, with the checks that its flags require.

    Args:
        op: whose name is registered with `executes`.
    """
    execute = EXECUTED[op.name]
    return CHECKED[op.name](op, execute) if op.name in CHECKED else execute


def lowers(*names: str) -> Callable[[Callable], Callable]:
    """Registers a function that emits the instructions of ops.

    Args:
        names: of the ops.

    Returns:
        A decorator of a function of the `program.Builder` and the MLIR op, which returns the function.
    """
    return _register(LOWERED, names)


def shared(name: str) -> Callable[[Callable], Callable]:
    """Registers a function that returns the shared memory of an op: (bytes, alignment, symbol).

    Ops with the same symbol share one allocation; an op without one (None) has its own. Bytes of None represent the
    dynamic shared memory of the launch. A result of None represents an op without shared memory.

    Args:
        name: of the op.

    Returns:
        A decorator of a function of the instruction, which returns the function.
    """
    return _register(SHARED, (name,))


def _register(table: dict[str, Callable], names: tuple[str, ...]) -> Callable[[Callable], Callable]:
    def decorator(function: Callable) -> Callable:
        for name in names:
            assert name not in table, f"{name} is registered twice"
            table[name] = function
        return function

    return decorator
