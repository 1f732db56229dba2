"""llvm: atomic loads, stores and updates, with the ordering that each states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepladder.emulator.core.elements import plain
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Opaque, Scalar
from stepladder.emulator.core.values import Value, lanes
from stepladder.emulator.dialects.llvm import Struct
from stepladder.emulator.hardware.reductions import ALIASES, combined
from stepladder.emulator.memory import atomics, memory, order, pointers

# Of `llvm.atomicrmw`, in the order of their encoding.
_KINDS = (
    "xchg",
    "add",
    "sub",
    "_and",
    "nand",
    "_or",
    "_xor",
    "max",
    "min",
    "umax",
    "umin",
    "fadd",
    "fsub",
    "fmax",
    "fmin",
    "uinc_wrap",
    "udec_wrap",
    "usub_cond",
    "usub_sat",
    "fmaximum",
    "fminimum",
)
_POINTER = Scalar("i64", np.dtype(np.int64), 64)


# LLVM's scopes on NVIDIA's GPUs; None orders nothing for other threads.
_SCOPES = {"": "sys", "device": "gpu", "cluster": "cluster", "block": "cta", "singlethread": None}


def _scope(op: Instruction) -> str | None:
    """Returns the scope that an op states."""
    name = op.attributes.get("syncscope", "")
    if name not in _SCOPES:
        known_scopes = ", ".join(f'"{scope}"' for scope in _SCOPES)
        raise Unsupported(op, f'with syncscope("{name}"): the target has {known_scopes}')
    return _SCOPES[name]


def _orders(op: Instruction, ordering: int, *, reads: bool = True, writes: bool = True) -> atomics.Orders | None:
    scope = _scope(op)
    if scope is None:
        return None
    return atomics.Orders(ordering in atomics.ACQUIRES, ordering in atomics.RELEASES, scope, reads, writes)


def update(
    fiber: Fiber,
    op: Instruction,
    pointer: Value,
    element: Scalar,
    function: Callable,
    *,
    ordering: int,
    writes: bool = True,
) -> np.ndarray:
    """Updates values in memory atomically; returns the previous ones, (T,).

    Args:
        fiber: the threads.
        op: the instruction.
        pointer: addresses, uniform or (T,).
        element: the type.
        function: returns the new value, given a lane and the previous value.
        ordering: of LLVM, by its encoding.
        writes: whether it is more than a load.
    """
    before = np.zeros(fiber.count, element.dtype)
    is_shared = pointers.is_shared(op.operand_types[0])
    pointers.check_alignment(fiber, op, pointer, op.attributes.get("alignment", element.bytes))
    for part, allocation, start in pointers.parts(fiber, op, pointer, shared=is_shared):
        view, place = pointers.elements(allocation, start, element, 0, 0)
        access = memory.locate(part, op, view, [place])
        previous = atomics.update(
            part,
            op,
            access,
            lambda number, old, part=part: function(part.lanes[number], old),
            _orders(op, ordering, writes=writes),
        )
        before[part.lanes] = previous
    return before


def load(fiber: Fiber, op: Instruction, pointer: Value, element: Scalar) -> Value:
    """Returns what an atomic load reads.

    Args:
        fiber: the threads.
        op: the instruction, with the attribute `ordering`.
        pointer: addresses, uniform or (T,).
        element: the type.
    """
    values = update(
        fiber, op, pointer, element, lambda lane, old: old, ordering=op.attributes["ordering"], writes=False
    )
    return plain(values[0]) if fiber.group.is_host else values


def store(fiber: Fiber, op: Instruction, pointer: Value, value: Value, element: Scalar) -> None:
    """Executes an atomic store.

    Args:
        fiber: the threads.
        op: the instruction, with the attribute `ordering`.
        pointer: addresses, uniform or (T,).
        value: uniform or (T,).
        element: the type.
    """
    own = lanes(np.asarray(value, element.dtype), fiber.count)
    before = np.zeros(fiber.count, element.dtype)
    for part, allocation, start in pointers.parts(fiber, op, pointer, shared=pointers.is_shared(op.operand_types[1])):
        view, place = pointers.elements(allocation, start, element, 0, 0)
        access = memory.locate(part, op, view, [place])
        ordering = op.attributes["ordering"]
        before[part.lanes] = atomics.update(
            part,
            op,
            access,
            lambda number, old, part=part: own[part.lanes[number]],
            _orders(op, ordering, reads=False),
        )


@executes("llvm.atomicrmw")
def atomicrmw(fiber: Fiber, op: Instruction, pointer: Value, value: Value) -> Value:
    """Combines a value with one in memory; returns the previous value."""
    element = op.operand_types[1]
    if isinstance(element, Opaque) or element.rank:
        raise Unsupported(op, f"of {op.operand_types[1]}")
    kind = _KINDS[op.attributes["bin_op"]]
    own = lanes(np.asarray(value, element.dtype), fiber.count)

    def after(lane: int, old: Value) -> Value:
        return _combined(op, kind, element, old, own[lane])

    previous = update(fiber, op, pointer, element, after, ordering=op.attributes["ordering"])
    return plain(previous[0]) if fiber.group.is_host else previous


def _combined(op: Instruction, kind: str, element: Scalar, old: Value, own: Value) -> Value:
    match kind:
        case "xchg":
            return own
        case "sub" | "fsub":
            return old - own
        case "nand":
            return ~(old & own)
        case "uinc_wrap" | "udec_wrap" | "usub_cond" | "usub_sat":
            unsigned = np.dtype(f"u{element.bytes}").type
            return _unsigned_update(kind, old.view(unsigned), own.view(unsigned)).view(element.dtype)
    if kind not in ALIASES and kind != "add":
        raise Unsupported(op, f"of {kind}")
    return combined(kind, element, old, own)


def _unsigned_update(kind: str, old: np.unsignedinteger, own: np.unsignedinteger) -> np.unsignedinteger:
    """Returns the result of an update of unsigned values: counts to a limit and back, differences of 0 and more."""
    one = old.dtype.type(1)
    match kind:
        case "uinc_wrap":
            return old + one if old < own else old - old
        case "udec_wrap":
            return own if old == 0 or old > own else old - one
        case "usub_cond":
            return old - own if old >= own else old
    return old - own if old >= own else old - old


@executes("llvm.cmpxchg")
def cmpxchg(fiber: Fiber, op: Instruction, pointer: Value, expected: Value, value: Value) -> Value:
    """Replaces a value where it is the expected one; returns the previous value, and whether it was replaced."""
    type_ = op.operand_types[1]
    element = _POINTER if isinstance(type_, Opaque) else type_
    compared_values, own = (lanes(np.asarray(number, element.dtype), fiber.count) for number in (expected, value))
    previous = update(
        fiber,
        op,
        pointer,
        element,
        lambda lane, old: own[lane] if old == compared_values[lane] else old,
        ordering=op.attributes["success_ordering"],
    )
    return Struct((previous, previous == compared_values))


@executes("llvm.fence")
def fence(fiber: Fiber, op: Instruction) -> None:
    """Orders the accesses of a thread before the fence and after it, with the atomic accesses on either side."""
    ordering, scope = op.attributes["ordering"], _scope(op)
    if scope is not None:
        order.fence(fiber, scope, acquires=ordering in atomics.ACQUIRES, releases=ordering in atomics.RELEASES)
