"""Flattens regions of several blocks to one list of instructions with jumps and reconvergence points.

Threads that take different ways at a branch reconverge at its immediate post-dominator, the first block that all ways
reach. A value that is defined on one way only, or redefined in a loop, is merged there if a later instruction uses it
(`Graph.joined`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Convergence, Left
from stepladder.emulator.core.liveness import Liveness, bits_of
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.types import BOOL
from stepladder.mlir import diagnostics
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Builder
    from stepladder.emulator.core.values import Value
    from stepladder.mlir.bindings import ir

JUMPS = ("cf.br", "llvm.br")
BRANCHES = ("cf.cond_br", "llvm.cond_br")
SWITCHES = ("cf.switch", "llvm.switch")
ENDS = ("llvm.unreachable",)  # which no thread continues after, in any region


def move(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """Passes values to the arguments of a block, all at once."""
    return operands if len(operands) != 1 else operands[0]


def jump(fiber: Fiber, op: Instruction) -> None:
    """Jumps to another instruction."""
    fiber.place = op.attributes["to"]


def branch(fiber: Fiber, op: Instruction, condition: Value) -> None:
    """Continues or jumps; the fiber splits where the condition differs among its threads.

    Args:
        fiber: the threads that execute it.
        op: the instruction; its attributes are `otherwise` (the index to jump to where the condition is false), `join`
            (the index of the reconvergence point, or None) and `slots` (what is merged there).
        condition: i1, uniform or (T,).

    Raises:
        Left: the fiber has split, and the executing loop takes the next one that is ready.
    """
    condition = fiber.agreed(condition)
    otherwise, join = op.attributes["otherwise"], op.attributes["join"]
    if not isinstance(condition, np.ndarray):
        if not condition:
            fiber.place = otherwise
        return
    # Threads that leave a loop one after the other join those that left before.
    if join is not None and not (fiber.stack and fiber.stack[-1].place == join):
        fiber.stack.append(Convergence(fiber.group, join, op.attributes["slots"], fiber.active))
    other = fiber.split(fiber.active & ~condition)
    other.place = otherwise
    fiber.group.ready.appendleft(other)
    fiber.group.ready.appendleft(fiber)
    raise Left


def join(fiber: Fiber, op: Instruction) -> None:
    """Waits here for the threads that went another way, if there are any."""
    if fiber.stack and fiber.stack[-1].place == fiber.place - 1:
        meeting = fiber.stack[-1]
        meeting.arrive(fiber, fiber.active.copy(), [fiber.env[slot] for slot in meeting.slots])
        raise Left


def _is(fiber: Fiber, op: Instruction, value: Value) -> Value:
    return value == op.attributes["case"]


def separate(builder: Builder, region: ir.Region, begin: Callable[[], None] | None = None) -> list[Instruction]:
    """Returns the instructions of a region, whose arguments have slots already, as a list of its own.

    Args:
        builder: of the program.
        region: of one block or several.
        begin: emits the instructions before the region's own.
    """
    outer, builder.code = builder.code, []
    if begin is not None:
        begin()
    blocks = list(region.blocks)
    if len(blocks) == 1:
        builder.block(blocks[0], skip_terminator=False)
    else:
        _Flattened(builder, blocks)
    code, builder.code = builder.code, outer
    return code


def inline(builder: Builder, region: ir.Region, results: Sequence[int]) -> None:
    """Emits a region inline.

    The arguments of its first block have slots already.

    Args:
        builder: of the program.
        region: of one block or several.
        results: slots that the operands of the region's terminators are moved to.
    """
    blocks = list(region.blocks)
    if len(blocks) > 1:
        _Flattened(builder, blocks, results)
        return
    end = builder.block(blocks[0])
    if end is None:
        return
    if end.name in ENDS:
        builder.lower(end)
    elif results:
        builder.emit(end.name, move, builder.used(end.operands), results)


@dataclass
class _Way:
    """A successor of a terminator: the block, and what is passed to its arguments."""

    target: int
    operands: Sequence


@dataclass
class Graph:
    """The blocks by index, 0 the first: where each may go to.

    Attributes:
        failing: blocks in which an assertion ends threads, which the others do not wait for.
        after: the immediate post-dominator of each, None where ways end without one.
    """

    successors: list[list[int]]
    failing: frozenset[int] = frozenset()
    after: list[int | None] = field(init=False)

    def __post_init__(self) -> None:
        self.after = self._post_dominators()

    def order(self) -> list[int]:
        """Returns the blocks that can be reached, such that each follows those that dominate it."""
        postorder, visited = [], {0}
        stack = [(0, iter(self.successors[0]))]
        while stack:
            block, remaining = stack[-1]
            following = next((other for other in remaining if other not in visited), None)
            if following is None:
                postorder.append(block)
                stack.pop()
            else:
                visited.add(following)
                stack.append((following, iter(self.successors[following])))
        return postorder[::-1]

    def _post_dominators(self) -> list[int | None]:
        count = len(self.successors)
        end = count  # a block after all that leave
        everything = (1 << count + 1) - 1
        failing = set(self.failing)
        for block in reversed(self.order()):
            if self.successors[block] and failing.issuperset(self.successors[block]):
                failing.add(block)
        post_dominators = [everything] * count + [1 << end]
        is_changed = True
        while is_changed:
            is_changed = False
            for block in reversed(range(count)):
                common = everything
                ways = self.successors[block]
                for successor in [way for way in ways if way not in failing] or ways or [end]:
                    common &= post_dominators[successor]
                common |= 1 << block
                if common != post_dominators[block]:
                    post_dominators[block], is_changed = common, True
        joins: list[int | None] = []
        for block in range(count):
            others = post_dominators[block] & ~(1 << block)
            # The nearest one is post-dominated by all others.
            nearest = next((other for other in bits_of(others) if post_dominators[other] == others), None)
            joins.append(nearest if nearest != end and self._ends(block) else None)
        return joins

    def _ends(self, block: int) -> bool:
        """Whether any path from a block leaves the region."""
        return any(not self.successors[other] for other in self.between(block, None))

    def between(self, block: int, end: int | None) -> set[int]:
        """Returns the blocks on the paths from one block to another.

        Args:
            block: the number of the first block, which is included.
            end: the number of the block where paths end, which is not included; None for paths to the end of the
                function.
        """
        blocks, pending = {block}, [block]
        while pending:
            for successor in self.successors[pending.pop()]:
                if successor != end and successor not in blocks:
                    blocks.add(successor)
                    pending.append(successor)
        return blocks


class _Flattened:
    """The blocks of one region, emitted one after the other.

    Args:
        results: slots of what the ends of the region pass to what follows it; None where threads end there.
    """

    def __init__(self, builder: Builder, blocks: list, results: Sequence[int] | None = None) -> None:
        self.builder = builder
        self.results = results
        self.exit = len(blocks)  # a block after all others, to which the terminators of an inlined region jump
        self.number_of = {block: number for number, block in enumerate(blocks)}
        terminators = [list(block.operations)[-1].operation for block in blocks]
        self.ways = [self._ways(op) for op in terminators]
        successors = [[way.target for way in ways] for ways in self.ways]
        graph = Graph(successors if results is None else [*successors, []])
        order = [number for number in graph.order() if number != self.exit]
        for number in order[1:]:
            builder.defined(blocks[number].arguments)
        joins: set[int | None] = {graph.after[number] for number in order if len(self.ways[number]) > 1} - {None}
        self.starts: dict[int, int] = {}
        self.jumps: list[tuple[Instruction, int]] = []
        self.branches: list[tuple[Instruction, int]] = []
        self.spans: dict[int, tuple[int, int]] = {}
        for number in order:
            self.starts[number] = builder.here
            operations = [op.operation for op in blocks[number].operations]
            if number in joins:
                self._at(operations[0])
                builder.emit(operations[0].name, join)
            for op in operations[:-1]:
                builder.lower(op)
            self._terminator(number, operations[-1], blocks)
            self.spans[number] = self.starts[number], builder.here
        if results is not None:
            self.starts[self.exit] = builder.here
            if self.exit in joins:
                builder.emit(builder.lowered.name, join)
            self.spans[self.exit] = self.starts[self.exit], builder.here
        for instruction, target in self.jumps:
            instruction.attributes["to"] = self.starts[target]
        self._meet(graph)

    def _at(self, op: ir.Operation) -> None:
        self.builder.location, self.builder.op = diagnostics.location_text(op.location), op

    def _ways(self, op: ir.Operation) -> list[_Way]:
        """Returns the successors of a terminator: that of a false condition, or the default of a switch, first."""
        targets = [self.number_of[block] for block in op.successors]
        operands = list(op.operands)
        if op.name in JUMPS:
            return [_Way(targets[0], operands)]
        if op.name in (*BRANCHES, *SWITCHES):
            sizes = list(op.attributes["operandSegmentSizes"])[1:2]
            sizes += (
                list(op.attributes["operandSegmentSizes"])[2:]
                if op.name in BRANCHES
                else list(op.attributes["case_operand_segments"])
            )
            ways, remaining = [], operands[1:]
            for target, size in zip(targets, sizes):
                ways.append(_Way(target, remaining[:size]))
                remaining = remaining[size:]
            return ways
        if targets:
            raise StepladderError(
                f"the emulator does not support {op.name}", location=diagnostics.location_text(op.location)
            )
        if self.results is not None and op.name not in ENDS:
            return [_Way(self.exit, operands)]
        return []

    def _terminator(self, number: int, op: ir.Operation, blocks: list) -> None:
        builder = self.builder
        ways = self.ways[number]
        if not ways:
            builder.lower(op)
            return
        self._at(op)
        if op.name in BRANCHES:
            self._part(number, builder.slots[op.operands[0]], lambda: self._go(op, ways[0], blocks))
            self._go(op, ways[1], blocks)
            return
        if op.name in SWITCHES:
            for case, way in zip(_cases(op), ways[1:]):
                equal = builder.new_slot(BOOL)
                builder.emit(op.name, _is, (builder.slots[op.operands[0]],), (equal,), {"case": case})
                self._part(number, equal, lambda way=way: self._go(op, way, blocks))
        self._go(op, ways[0], blocks)

    def _part(self, number: int, condition: int, go: Callable[[], None]) -> None:
        """Emits a branch, and the way of those for whom the condition holds."""
        way = self.builder.emit(self.builder.lowered.name, branch, (condition,))
        self.branches.append((way, number))
        go()
        way.attributes["otherwise"] = self.builder.here

    def _go(self, op: ir.Operation, way: _Way, blocks: list) -> None:
        builder = self.builder
        if way.operands:
            to = self.results if way.target == self.exit else builder.used(blocks[way.target].arguments)
            assert to is not None, "threads end there, and hand nothing on"
            builder.emit(op.name, move, builder.used(way.operands), to)
        self.jumps.append((builder.emit(op.name, jump), way.target))

    def _meet(self, graph: Graph) -> None:
        """Sets the reconvergence point of each branch, and the values that are merged there from each path."""
        code = {number: self.builder.code[start:end] for number, (start, end) in self.spans.items()}
        liveness = Liveness(graph, code, self.exit, self.results or ())
        for instruction, number in self.branches:
            liveness.set_join(instruction, number, self.starts)


def _cases(op: ir.Operation) -> list[int]:
    """Returns the case values of a switch."""
    if "case_values" not in op.attributes:
        return []
    return [int(value) for value in op.attributes["case_values"]]
