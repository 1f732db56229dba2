"""affine: loops, conditions, and accesses by maps."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from stepladder.emulator.core.control_flow import branch, join, jump, move
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.core.types import BOOL, INDEX, Scalar
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.affine import compiled
from stepladder.emulator.dialects.scf import emit_loop, nest
from stepladder.emulator.dialects.vector_memory import contiguous_places
from stepladder.emulator.hardware.reductions import atomic_kind, combined
from stepladder.emulator.memory import memory
from stepladder.mlir.bindings import ir
from stepladder.mlir.printed import integer_set


def _bound(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """The greatest (or least) result of a map."""
    results = op.attributes["function"](*operands)
    best = results[0]
    for other in results[1:]:
        best = op.attributes["of_two"](best, other)
    return best if isinstance(best, np.ndarray) else int(best)


def _part(function: Callable[..., tuple], first: int, end: int) -> Callable[..., tuple]:
    """Returns a function that returns some of another one's results."""
    return lambda *numbers: function(*numbers)[first:end]


def _emit_bound(builder: Builder, op: ir.Operation, affine_map: Value, operands: Value, of_two: Value) -> int:
    slot = builder.new_slot(INDEX)
    builder.emit(op.name, _bound, builder.used(operands), (slot,), {"function": compiled(affine_map), "of_two": of_two})
    return slot


def _number(fiber: Fiber, op: Instruction) -> Value:
    return op.attributes["value"]


def _constant(builder: Builder, op: ir.Operation, value: int) -> int:
    slot = builder.new_slot(INDEX)
    builder.emit(op.name, _number, (), (slot,), {"value": value})
    return slot


@lowers("affine.for")
def lower_for(builder: Builder, op: ir.Operation) -> None:
    """`affine.for`: a loop whose bounds are maps."""
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands = list(op.operands)
    low, high = operands[: sizes[0]], operands[sizes[0] : sizes[0] + sizes[1]]
    attributes = decode_attributes(op)
    lower = _emit_bound(builder, op, attributes["lowerBoundMap"], low, np.maximum)
    upper = _emit_bound(builder, op, attributes["upperBoundMap"], high, np.minimum)
    step = _constant(builder, op, attributes["step"])
    emit_loop(builder, op, lower, upper, step, builder.used(operands[sum(sizes[:2]) :]))


@lowers("affine.parallel")
def lower_parallel(builder: Builder, op: ir.Operation) -> None:
    """`affine.parallel`: one iteration after the other; its results are what the iterations have together."""
    attributes = decode_attributes(op)
    operands = list(op.operands)
    bounds = []
    start = 0
    for name, of_two in (("lower", np.maximum), ("upper", np.minimum)):
        affine_map = attributes[f"{name}BoundsMap"]
        count = affine_map.n_inputs
        function, first = compiled(affine_map), 0
        slots = []
        for group in attributes[f"{name}BoundsGroups"]:
            group = int(group)
            slot = builder.new_slot(INDEX)
            part = _part(function, first, first + group)
            builder.emit(
                op.name,
                _bound,
                builder.used(operands[start : start + count]),
                (slot,),
                {"function": part, "of_two": of_two},
            )
            slots.append(slot)
            first += group
        bounds.append(slots)
        start += count
    steps = [_constant(builder, op, step) for step in attributes["steps"]]
    block = op.regions[0].blocks[0]
    numbers = list(builder.defined(block.arguments))
    results = builder.defined(op.results)
    kinds = [atomic_kind(kind) for kind in attributes.get("reductions", [])]
    for slot, kind in zip(results, kinds):
        builder.emit(op.name, _initial, (), (slot,), {"kind": kind})

    def body() -> None:
        end = builder.to_terminator(block)
        for slot, kind, value in zip(results, kinds, builder.used(end.operands)):
            builder.emit(op.name, _combine, (slot, value), (slot,), {"kind": kind})

    nest(builder, op.name, list(zip(*bounds, steps)), numbers, body)


def neutral(kind: str, element: Scalar) -> object:
    """Returns the neutral element of a reduction.

    Args:
        kind: as `arith::AtomicRMWKind` names it.
        element: the type.
    """
    if element.is_float:
        return element.dtype.type(
            {"addf": 0, "mulf": 1, "maximumf": -np.inf, "maxnumf": np.nan, "minimumf": np.inf, "minnumf": np.nan}[kind]
        )
    half = 1 << (element.width - 1)
    return {
        "addi": 0,
        "muli": 1,
        "maxs": -half,
        "mins": half - 1,
        "maxu": 0,
        "minu": -1,
        "ori": 0,
        "andi": -1,
        "xori": 0,
    }[kind]


def _initial(fiber: Fiber, op: Instruction) -> Value:
    return neutral(op.attributes["kind"], op.result_types[0].element)


def _combine(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    kind: str = op.attributes["kind"]
    return combined(kind, op.result_types[0].element, left, right)


def _holds(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """Whether all conditions of an integer set hold."""
    result = True
    for value, is_equality in zip(op.attributes["function"](*operands), op.attributes["equalities"]):
        result = operator.and_(result, value == 0 if is_equality else value >= 0)
    return result if isinstance(result, np.ndarray) else bool(result)


@lowers("affine.if")
def lower_if(builder: Builder, op: ir.Operation) -> None:
    """`affine.if`: one region or the other, by an integer set."""
    affine_map, equalities = integer_set(op.attributes["condition"])
    condition = builder.new_slot(BOOL)
    builder.emit(
        op.name,
        _holds,
        builder.used(op.operands),
        (condition,),
        {"function": compiled(affine_map), "equalities": equalities},
    )
    results = builder.defined(op.results)
    way = builder.emit(op.name, branch, (condition,), attributes={"slots": results})
    end = None
    for number, region in enumerate(op.regions):
        if number == 1:
            end = builder.emit(op.name, jump)
            way.attributes["otherwise"] = builder.here
        if len(region.blocks):
            last = builder.to_terminator(region.blocks[0])
            if results:
                builder.emit(op.name, move, builder.used(last.operands), results)
    if end is not None:
        end.attributes["to"] = builder.here
    way.attributes.setdefault("otherwise", builder.here)
    way.attributes["join"] = builder.here
    builder.emit(op.name, join)


def _places(op: Instruction, operands: Value) -> tuple:
    if "function" not in op.cache:
        op.cache["function"] = compiled(op.attributes["map"])
    return op.cache["function"](*operands)


@executes("affine.load")
def load(fiber: Fiber, op: Instruction, view: Value, *operands: Value) -> Value:
    """One element, at the result of a map."""
    return memory.read(fiber, op, view, _places(op, operands))


@executes("affine.store")
def store(fiber: Fiber, op: Instruction, value: Value, view: Value, *operands: Value) -> None:
    """One element, at the result of a map."""
    memory.write(fiber, op, view, _places(op, operands), value)


@executes("affine.vector_load")
def vector_load(fiber: Fiber, op: Instruction, view: Value, *operands: Value) -> Value:
    """A vector from consecutive elements, from the result of a map on."""
    shape = op.result_types[0].shape
    return memory.read(fiber, op, view, contiguous_places(shape, _places(op, operands)), shape)


@executes("affine.vector_store")
def vector_store(fiber: Fiber, op: Instruction, value: Value, view: Value, *operands: Value) -> None:
    """A vector to consecutive elements, from the result of a map on."""
    shape = op.operand_types[0].shape
    memory.write(fiber, op, view, contiguous_places(shape, _places(op, operands)), value, shape)


@executes("affine.prefetch")
def prefetch(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: there is no cache."""
