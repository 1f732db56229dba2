"""scf: loops and branches, lowered to jumps and reconvergence points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.control_flow import branch, inline, join, jump, move
from stepladder.emulator.core.fibers import Convergence, Fiber
from stepladder.emulator.core.places import Loop
from stepladder.emulator.core.program import Builder, Instruction
from stepladder.emulator.core.registry import lowers
from stepladder.emulator.core.types import BOOL, INDEX
from stepladder.emulator.core.values import Value
from stepladder.mlir.bindings import ir


def leave_unless(fiber: Fiber, op: Instruction, condition: Value, *carried: Value) -> None:
    """Exits a loop with the values that it carries; threads that exit split from those that continue.

    Args:
        fiber: the threads; it splits where the condition differs.
        op: the instruction; its attributes are `exit` (the index of the instruction after the loop) and `slots` (the
            results of the loop).
        condition: i1, uniform or (T,), of those that continue.
        carried: the values of the results for threads that exit.
    """
    condition = fiber.agreed(condition)
    exit_ = op.attributes["exit"]
    if not isinstance(condition, np.ndarray):
        if not condition:
            fiber.place = exit_
            for slot, value in zip(op.attributes["slots"], carried):
                fiber.env[slot] = value
        return
    leaving = fiber.active & ~condition
    if not fiber.stack or fiber.stack[-1].place != exit_:
        fiber.stack.append(Convergence(fiber.group, exit_, op.attributes["slots"], fiber.active))
    meeting = fiber.stack[-1]
    fiber.narrow(fiber.active & condition)
    meeting.arrive(fiber, leaving, list(carried))


def _normalized(fiber: Fiber, op: Instruction, *bounds: Value) -> Value:
    """Bounds that all threads agree on are uniform: loops over them do not diverge."""
    return tuple(fiber.agreed(value) for value in bounds)


def _is_less(fiber: Fiber, op: Instruction, number: Value, end: Value) -> Value:
    return number < end


def _is_less_unsigned(fiber: Fiber, op: Instruction, number: Value, end: Value) -> Value:
    width = op.operand_types[0].width
    return values.unsigned(number, width) < values.unsigned(end, width)


def _advance(fiber: Fiber, op: Instruction, number: Value, step: Value, *others: Value) -> Value:
    return (number + step, *others) if others else number + step


def _i1(builder: Builder) -> int:
    return builder.new_slot(BOOL)


@lowers("scf.for")
def lower_for(builder: Builder, op: ir.Operation) -> None:
    """`scf.for`: the bounds, a test, the body, a step, and back."""
    lower, upper, step, *initial = builder.used(op.operands)
    emit_loop(
        builder,
        op,
        lower,
        upper,
        step,
        initial,
        compare=_is_less_unsigned if "unsignedCmp" in op.attributes else _is_less,
    )


def emit_loop(
    builder: Builder,
    op: ir.Operation,
    lower: int,
    upper: int,
    step: int,
    initial: Sequence[int],
    *,
    compare: Callable = _is_less,
) -> None:
    """Emits a loop over the region of an op.

    Args:
        builder: of the program.
        op: with a region of one block, whose first argument is the induction variable.
        lower, upper, step: slots of the bounds and the step.
        initial: slots of the initial values of what the loop carries.
        compare: executes the comparison of the induction variable with the upper bound.
    """
    block = op.regions[0].blocks[0]
    number, *carried = builder.defined(block.arguments)
    results = builder.defined(op.results)
    type_ = builder.slot_types[lower]
    start, end_of_range, stride = (builder.new_slot(type_) for _ in range(3))
    builder.emit(op.name, _normalized, (lower, upper, step), (start, end_of_range, stride))
    builder.emit(op.name, move, (start, *initial), (number, *carried))
    test = builder.here
    goes_on = _i1(builder)
    builder.emit(op.name, compare, (number, end_of_range), (goes_on,))
    leave = builder.emit(op.name, leave_unless, (goes_on, *carried), attributes={"slots": results})
    builder.loops.append(Loop(op.name, builder.location, number, start, stride))
    end = builder.to_terminator(block)
    builder.loops.pop()
    yielded = builder.used(end.operands)
    builder.emit(op.name, _advance, (number, stride, *yielded), (number, *carried))
    builder.emit(op.name, jump, attributes={"to": test})
    leave.attributes["exit"] = builder.here
    builder.emit(op.name, join)


@lowers("scf.if")
def lower_if(builder: Builder, op: ir.Operation) -> None:
    """`scf.if`: one region or the other."""
    results = builder.defined(op.results)
    way = builder.emit("scf.if", branch, builder.used(op.operands), attributes={"slots": results})
    ends = []
    for number, region in enumerate(op.regions):
        if number == 1:
            ends.append(builder.emit("scf.if", jump))
            way.attributes["otherwise"] = builder.here
        if len(region.blocks):
            end = builder.to_terminator(region.blocks[0])
            if results:
                builder.emit("scf.if", move, builder.used(end.operands), results)
    for end in ends:
        end.attributes["to"] = builder.here
    way.attributes.setdefault("otherwise", builder.here)
    way.attributes["join"] = builder.here
    builder.emit("scf.if", join)


@lowers("scf.while")
def lower_while(builder: Builder, op: ir.Operation) -> None:
    """`scf.while`: the region before, which decides, and the one after."""
    before, after = (region.blocks[0] for region in op.regions)
    carried = builder.defined(before.arguments)
    after_arguments = builder.defined(after.arguments)
    results = builder.defined(op.results)
    builder.emit("scf.while", move, builder.used(op.operands), carried)
    test = builder.here
    condition = builder.to_terminator(before)
    condition_operands = builder.used(condition.operands)
    leave = builder.emit("scf.while", leave_unless, condition_operands, attributes={"slots": results})
    builder.emit("scf.while", move, condition_operands[1:], after_arguments)
    end = builder.to_terminator(after)
    builder.emit("scf.while", move, builder.used(end.operands), carried)
    builder.emit("scf.while", jump, attributes={"to": test})
    leave.attributes["exit"] = builder.here
    builder.emit("scf.while", join)


@lowers("scf.execute_region")
def lower_execute_region(builder: Builder, op: ir.Operation) -> None:
    """`scf.execute_region`: its blocks, inline."""
    inline(builder, op.regions[0], builder.defined(op.results))


@lowers("scf.index_switch")
def lower_index_switch(builder: Builder, op: ir.Operation) -> None:
    """`scf.index_switch`: the region of the case that matches, or the default, which is first."""
    results = builder.defined(op.results)
    number = builder.used(op.operands)
    default, *regions = op.regions
    ends, ways = [], []

    def emit_region(region: ir.Region) -> None:
        last = builder.to_terminator(region.blocks[0])
        if results:
            builder.emit(op.name, move, builder.used(last.operands), results)
        ends.append(builder.emit(op.name, jump))

    for case, region in zip(ir.DenseI64ArrayAttr(op.attributes["cases"]), regions):
        equal = _i1(builder)
        builder.emit(op.name, _equals, number, (equal,), {"case": case})
        ways.append(builder.emit(op.name, branch, (equal,), attributes={"slots": results}))
        emit_region(region)
        ways[-1].attributes["otherwise"] = builder.here
    emit_region(default)
    for end in ends:
        end.attributes["to"] = builder.here
    for way in ways:
        way.attributes["join"] = builder.here
    builder.emit(op.name, join)


def _equals(fiber: Fiber, op: Instruction, number: Value) -> Value:
    return number == op.attributes["case"]


def _constant(fiber: Fiber, op: Instruction) -> Value:
    return op.attributes["value"]


def _bounds(builder: Builder, op: ir.Operation, name: str, dynamic: list) -> list[int]:
    """Returns slots for bounds that are partly static: `dynamic` are the values for the others, in order."""
    unknown = ir.ShapedType.get_dynamic_size()
    slots = []
    for number in ir.DenseI64ArrayAttr(op.attributes[f"static{name}"]):
        if number == unknown:
            slots.append(builder.slots[dynamic.pop(0)])
        else:
            slots.append(_index(builder))
            builder.emit(op.name, _constant, (), (slots[-1],), {"value": number})
    return slots


def _index(builder: Builder) -> int:
    return builder.new_slot(INDEX)


def nest(
    builder: Builder, name: str, bounds: list[tuple[int, int, int]], numbers: list[int], body: Callable[[], None]
) -> None:
    """Emits a loop nest.

    Args:
        builder: of the program.
        name: of the instructions.
        bounds: slots (lower, upper, step) of each loop, the outermost first.
        numbers: slots of the induction variables.
        body: emits the body of the innermost loop.
    """
    if not bounds:
        body()
        return
    lower, upper, step = bounds[0]
    start, bound, stride, goes_on = _index(builder), _index(builder), _index(builder), _i1(builder)
    builder.emit(name, _normalized, (lower, upper, step), (start, bound, stride))
    builder.emit(name, move, (start,), (numbers[0],))
    test = builder.here
    builder.emit(name, _is_less, (numbers[0], bound), (goes_on,))
    leave = builder.emit(name, leave_unless, (goes_on,), attributes={"slots": ()})
    builder.loops.append(Loop(name, builder.location, numbers[0], start, stride))
    nest(builder, name, bounds[1:], numbers[1:], body)
    builder.loops.pop()
    builder.emit(name, _advance, (numbers[0], stride), (numbers[0],))
    builder.emit(name, jump, attributes={"to": test})
    leave.attributes["exit"] = builder.here
    builder.emit(name, join)


def _copied(fiber: Fiber, op: Instruction, *tensors: np.ndarray) -> Value:
    """Tensors that parts are inserted into, each a copy: it is the forall's own."""
    copies = tuple(np.array(tensor) for tensor in tensors)
    return copies if len(copies) != 1 else copies[0]


@lowers("scf.forall")
def lower_forall(builder: Builder, op: ir.Operation) -> None:
    """`scf.forall`: one iteration after the other; parts are inserted into the shared outputs in place."""
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    dynamic = list(op.operands)
    groups = []
    for size in sizes[:3]:
        groups.append(dynamic[:size])
        dynamic = dynamic[size:]
    bounds = list(
        zip(*(_bounds(builder, op, name, group) for name, group in zip(("LowerBound", "UpperBound", "Step"), groups)))
    )
    block = op.regions[0].blocks[0]
    arguments = builder.defined(block.arguments)
    numbers, outputs = list(arguments[: len(bounds)]), arguments[len(bounds) :]
    if outputs:
        builder.emit(op.name, _copied, builder.used(dynamic), outputs)

    def body() -> None:
        end = builder.block(block)
        if end is not None:
            for region in end.regions:
                for inner in region.blocks[0].operations:
                    builder.lower(inner.operation)

    nest(builder, op.name, bounds, numbers, body)
    builder.emit(op.name, move, outputs, builder.defined(op.results))


@lowers("scf.parallel")
def lower_parallel(builder: Builder, op: ir.Operation) -> None:
    """`scf.parallel`: one iteration after the other; its results are what the iterations have together."""
    block = op.regions[0].blocks[0]
    numbers = list(builder.defined(block.arguments))
    slots = builder.used(op.operands)
    rank = len(numbers)
    bounds = list(zip(slots[:rank], slots[rank : 2 * rank], slots[2 * rank : 3 * rank]))
    results = builder.defined(op.results)
    if results:
        builder.emit(op.name, move, slots[3 * rank :], results)

    def body() -> None:
        end = builder.to_terminator(block)
        for result, value, region in zip(results, end.operands, end.regions):
            combine = region.blocks[0]
            arguments = builder.defined(combine.arguments)
            builder.emit(op.name, move, (result, *builder.used([value])), arguments)
            last = builder.to_terminator(combine)
            builder.emit(op.name, move, builder.used(last.operands), (result,))

    nest(builder, op.name, bounds, numbers, body)
