"""index: arithmetic of 64 bits. `arith` registers the ops that it has in the same form."""

from __future__ import annotations

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.arith import compare_integers
from stepladder.mlir.printed import keyword

_BITS = 64


@executes("index.constant", "index.bool.constant")
def constant(fiber: Fiber, op: Instruction) -> Value:
    """A constant."""
    return op.attributes["value"]


@executes("index.sizeof")
def sizeof(fiber: Fiber, op: Instruction) -> Value:
    """The bits of an index."""
    return _BITS


@executes("index.cmp")
def cmp(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """Compares indices."""
    if "predicate" not in op.cache:
        op.cache["predicate"] = keyword(op.attributes["pred"])
    return compare_integers(op.cache["predicate"], left, right, _BITS)
