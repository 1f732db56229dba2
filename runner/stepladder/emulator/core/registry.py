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
    """Registers what executes the ops with these names."""
    return _register(EXECUTED, names)


def checks(*names: str) -> Callable[[Callable], Callable]:
    """Registers what adds checks to what executes the ops with these names: a function of the op of MLIR and that."""
    return _register(CHECKED, names)


def execution(op: ir.Operation) -> Callable:
    """Returns what executes an op, with the checks that its flags ask for."""
    execute = EXECUTED[op.name]
    return CHECKED[op.name](op, execute) if op.name in CHECKED else execute


def lowers(*names: str) -> Callable[[Callable], Callable]:
    """Registers what makes instructions of the ops with these names."""
    return _register(LOWERED, names)


def shared(name: str) -> Callable[[Callable], Callable]:
    """Registers how much shared memory an op takes: a function from the op to (bytes, alignment, symbol).

    Ops with the same symbol have the same place; without one (None) each has its own. Bytes of None stand for what
    the launch gives: dynamic shared memory. A result of None stands for an op that takes none.
    """
    return _register(SHARED, (name,))


def _register(table: dict[str, Callable], names: tuple[str, ...]) -> Callable[[Callable], Callable]:
    def decorator(function: Callable) -> Callable:
        for name in names:
            assert name not in table, f"{name} is registered twice"
            table[name] = function
        return function

    return decorator
