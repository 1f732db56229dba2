"""The statements of a function, or of inline PTX, made into instructions: blocks, branches, and where threads meet.

Threads that diverge at a branch reconverge at its immediate post-dominator, as in `core.control_flow`. A guard of an
instruction that threads wait or end in becomes a branch around it. A loop of pure instructions around one that polls
a value that others change waits for a change (`Flow._mark_spins`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.control_flow import Graph, join, jump
from stepladder.emulator.core.fibers import Convergence, Left
from stepladder.emulator.core.liveness import Liveness
from stepladder.emulator.core.program import UnknownOp
from stepladder.emulator.ptx import branch_tables, calls, forms, registry, syntax, unwritten
from stepladder.emulator.ptx.scopes import Scope, Slots
from stepladder.emulator.ptx.site import Site
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Builder, Instruction
    from stepladder.emulator.core.values import Value

# Not a trap: what follows it is where threads that did not reach it reconverge.
_ENDS = ("ret", "exit")


@dataclass
class _Line:
    """An instruction, the names around it, and the key of the loop that waits for its result."""

    statement: syntax.Statement
    scope: Scope
    spin: object = None


@dataclass
class _Part:
    """Instructions that follow each other: `labels` lead to the first; `branch` may leave after the last."""

    labels: list[object] = field(default_factory=list)
    lines: list[_Line] = field(default_factory=list)
    branch: _Line | None = None
    ends: bool = False  # whether nothing follows: it always branches, or threads end


class Flow:
    """A function's statements, or those of inline PTX.

    Args:
        builder: takes the instructions.
        slots: of the function.
        declare: declares a variable in a scope.
        locate: returns the location of a statement, for messages.
        name: returns what messages call a statement.
        functions: that calls are replaced by, by name, and the scope around them.
        target: that the forms of instructions are checked for, such as "sm_90a"; empty for any.
    """

    def __init__(
        self,
        builder: Builder,
        slots: Slots,
        declare: Callable[[Scope, syntax.Variable], None],
        locate: Callable[[syntax.Statement | syntax.Registers], str],
        name: Callable[[syntax.Statement], str],
        functions: tuple[Mapping[str, syntax.Function], Scope] | None = None,
        target: str = "",
    ) -> None:
        self.builder = builder
        self.slots = slots
        self.declare = declare
        self.locate = locate
        self.name = name
        self.functions = functions
        self.target = target
        self.inside: list[str] = []  # the functions that replace calls, one in the other
        self.parts = [_Part()]

    # Statements to parts.

    def add(self, block: syntax.Block, scope: Scope) -> None:
        """Adds statements, in a scope."""
        body = branch_tables.lowered(block.body)
        scope.labels |= {item.name: object() for item in body if isinstance(item, syntax.Label)}
        for item in body:
            try:
                self._add(item, scope)
            except StepladderError as error:
                self.builder.errors.append(error)

    def _add(self, item: syntax.Item, scope: Scope) -> None:
        if isinstance(item, syntax.Block):
            self.add(item, Scope(self.slots, scope))
        elif isinstance(item, syntax.Registers):
            try:
                scope.declare(item)
            except StepladderError as error:
                error.location = error.location or self.locate(item)
                raise
        elif isinstance(item, syntax.Variable):
            # Arguments of a call are memory of the thread.
            self.declare(scope, replace(item, space="local") if item.space == "param" else item)
            scope.spaces[item.name] = item.space
        elif isinstance(item, syntax.Label):
            self._label(scope.labels[item.name])
        elif isinstance(item, syntax.Statement):
            self._statement(item, scope)

    def _label(self, label: object) -> None:
        last = self.parts[-1]
        if last.lines or last.branch or last.ends:
            self.parts.append(_Part())
        self.parts[-1].labels.append(label)

    def _statement(self, statement: syntax.Statement, scope: Scope) -> None:
        family = registry.find(statement.opcode)
        if self.parts[-1].branch is not None or self.parts[-1].ends:
            self.parts.append(_Part())
        line = _Line(statement, scope)
        if statement.opcode[0] == "bra":
            self.parts[-1].branch = line
            self.parts[-1].ends = statement.guard is None
            return
        if statement.guard is not None and family is not None and family.waits:
            self._around(statement, scope)
            return
        if self.functions is not None and calls.callee_of(statement) in self.functions[0]:
            self._call(statement, scope)
            return
        if self.functions is not None and scope.register(calls.callee_of(statement)) is not None:
            items = calls.by_address(statement, *self.functions, self.inside)
            self.add(syntax.Block(tuple(items)), Scope(self.slots, scope))
            return
        self.parts[-1].lines.append(line)
        self.parts[-1].ends = statement.opcode[0] in _ENDS

    def _around(self, statement: syntax.Statement, scope: Scope) -> None:
        """Adds a guarded instruction after a branch around it."""
        assert statement.guard is not None
        name = f"behind {len(self.parts)}"
        scope.labels[name] = object()
        guard = syntax.Guard(statement.guard.name, not statement.guard.negated)
        line, column = statement.line, statement.column
        self._statement(syntax.Statement(("bra",), (syntax.Name(name),), guard, line, column), scope)
        self._statement(syntax.Statement(statement.opcode, statement.operands, None, line, column), scope)
        self._label(scope.labels[name])

    def _call(self, statement: syntax.Statement, scope: Scope) -> None:
        """Adds the body of a function in place of its call."""
        assert self.functions is not None
        function = self.functions[0][calls.callee_of(statement)]
        if function.name in self.inside:
            raise StepladderError(
                f"{function.name} calls itself: recursion is not supported", location=self.locate(statement)
            )
        try:
            body, inner, end = calls.in_place(statement, function, scope, Scope(self.slots, self.functions[1]))
        except StepladderError as error:
            raise StepladderError(error.message, location=self.locate(statement)) from None
        self.inside.append(function.name)
        self.add(body, inner)
        self.inside.pop()
        self._label(end)

    # Parts to instructions.

    def emit(self, outputs: Sequence[int] | None) -> None:
        """Emits all instructions.

        Args:
            outputs: slots that are used after the last instruction; None where threads end there.
        """
        if outputs is None and not self.parts[-1].ends:
            self._statement(syntax.Statement(("ret",)), Scope(self.slots))
        self.read = set[str]().union(
            *(line.statement.names_read() for part in self.parts for line in [*part.lines, part.branch] if line)
        )
        successors = [self._successors(number) for number in range(len(self.parts))]
        statements = [[line.statement for line in part.lines] for part in self.parts]
        graph = Graph([*successors, []], calls.failing(statements))
        order = sorted(number for number in graph.order() if number < len(self.parts))
        spins = self._mark_spins(graph, order)
        initial = self.builder.emit("registers", _initial)
        self.starts: dict[int, int] = {}
        self.branches: list[tuple[Instruction, int, int]] = []
        self.spans: dict[int, tuple[int, int]] = {}
        joins = {graph.after[number] for number in order if len(successors[number]) > 1} - {None}
        self._reset(spins, [0])
        for number in order:
            self.starts[number] = self.builder.here
            self._part(number, spins, successors[number], is_join=number in joins)
            self.spans[number] = self.starts[number], self.builder.here
        end = len(self.parts)
        self.starts[end] = self.builder.here
        if outputs is not None and end in joins:
            self.builder.emit("bra", join)
        self.spans[end] = self.starts[end], self.builder.here
        self._finish(graph, outputs or ())
        slots = [slot for slot, _ in self.slots.constants.values()]
        initial.results = (*slots, *self.slots.undefined)
        initial.attributes["constants"] = [value for _, value in self.slots.constants.values()]
        initial.attributes["undefined"] = [
            unwritten.initial(self.builder.slot_types[slot]) for slot in self.slots.undefined
        ]

    def _successors(self, number: int) -> list[int]:
        """Returns the successors of a part: the target of its branch, and the next part."""
        part = self.parts[number]
        successors = []
        if part.branch is not None:
            successors.append(self._target(part.branch))
        if not part.ends:
            successors.append(number + 1)
        return successors

    def _target(self, line: _Line) -> int:
        operand = line.statement.operands[0] if line.statement.operands else None
        label = line.scope.label(str(operand))
        for number, part in enumerate(self.parts):
            if label in part.labels:
                return number
        error = StepladderError(f"there is no label {operand}", location=self.locate(line.statement))
        self.builder.errors.append(error)
        return len(self.parts)

    def _part(self, number: int, spins: list, successors: list[int], *, is_join: bool) -> None:
        part = self.parts[number]
        if is_join:
            first = part.lines[0] if part.lines else part.branch
            if first is not None:
                self.builder.location = self.locate(first.statement)
            self.builder.emit(first.statement.mnemonic if first is not None else "bra", join)
        for line in part.lines:
            self._line(line)
        self._reset([spin for spin in spins if number not in spin[1]], successors)
        if part.branch is not None:
            self._branch(part.branch, number, successors)

    def _line(self, line: _Line) -> None:
        statement = line.statement
        outer = self.builder.location
        self.builder.location = self.locate(statement)
        try:
            family = registry.find(statement.opcode)
            if family is None:
                raise UnknownOp(self.name(statement), self.builder.location)
            site = Site(self.builder, statement, line.scope, family.name, name=self.name(statement), spin=line.spin)
            site.is_ignored = self._is_ignored(statement)
            forms.check(statement.opcode, family.name, self.target)
            family.decode(site)
            if site.rest:
                raise site.error(f"with .{site.rest[0]}")
        except StepladderError as error:
            error.location = error.location or self.builder.location
            self.builder.errors.append(error)
        except (IndexError, KeyError):
            self.builder.errors.append(
                StepladderError(
                    f"the emulator does not support {statement.mnemonic} in this form",
                    location=self.builder.location,
                )
            )
        self.builder.location = outer

    def _branch(self, line: _Line, number: int, successors: list[int]) -> None:
        statement = line.statement
        outer = self.builder.location
        self.builder.location = self.locate(statement)
        extra = set(statement.opcode[1:]) - {"uni"}
        if extra:
            self.builder.errors.append(UnknownOp(statement.mnemonic, self.builder.location))
        elif statement.guard is None:
            self.branches.append((self.builder.emit(self.name(statement), jump), number, successors[0]))
        else:
            register = line.scope.register(statement.guard.name.text)
            if register is None:
                self.builder.errors.append(
                    StepladderError(f"there is no predicate {statement.guard.name}", location=self.builder.location)
                )
            else:
                attributes = {"negated": statement.guard.negated}
                instruction = self.builder.emit(self.name(statement), _branch, (register.slot,), (), attributes)
                self.branches.append((instruction, number, successors[0]))
        self.builder.location = outer

    def _finish(self, graph: Graph, outputs: Sequence[int]) -> None:
        """Sets the target of each branch, its reconvergence point, and the slots that are merged there."""
        code = {number: self.builder.code[start:end] for number, (start, end) in self.spans.items()}
        unwritten.watch(graph, code, self.slots.names)
        liveness = Liveness(graph, code, len(self.parts), outputs)
        for instruction, number, target in self.branches:
            instruction.attributes["to"] = self.starts[target]
            if instruction.execute is not jump:
                liveness.set_join(instruction, number, self.starts)

    # Loops that wait.

    def _mark_spins(self, graph: Graph, order: Sequence[int]) -> list[tuple[object, set[int]]]:
        """Marks the instruction that polls in each loop that does nothing else; returns these loops.

        Such a loop waits for a change, whatever ends it: its instruction blocks until it has another result.
        """
        pure = {number for number in order if all(self._is_pure(line) for line in self.parts[number].lines)}
        after = {number: {other for other in graph.successors[number] if other in pure} for number in pure}
        spins = []
        for number in order:
            if number not in pure or not any(self._asks(line) for line in self.parts[number].lines):
                continue
            loop = {other for other in _reached(after, number) if number in _reached(after, other)}
            asking = [line for other in loop for line in self.parts[other].lines if self._asks(line)]
            if loop and len(asking) == 1 and not self._carries(loop):
                asking[0].spin = object()
                spins.append((asking[0].spin, loop))
        return spins

    def _is_pure(self, line: _Line) -> bool:
        family = registry.find(line.statement.opcode)
        return family is not None and family.is_pure

    def _asks(self, line: _Line) -> bool:
        family = registry.find(line.statement.opcode)
        return family is not None and family.asks(line.statement)

    def _carries(self, loop: set[int]) -> bool:
        """Whether a loop of pure instructions hands registers on to its next turn: then turns differ."""
        written_names: set[str] = set()
        early: set[str] = set()
        for number in sorted(loop):
            part = self.parts[number]
            for line in part.lines:
                target, *sources = line.statement.operands or (syntax.Sink(),)
                guard = line.statement.guard
                read_names = {name for source in sources for name in syntax.names_in(source)}
                read_names |= {guard.name.text} | syntax.names_in(target) if guard is not None else set()
                early |= read_names - written_names
                written_names |= syntax.names_in(target)
            if part.branch is not None and part.branch.statement.guard is not None:
                early |= {part.branch.statement.guard.name.text} - written_names
        return bool(early & written_names)

    def _is_ignored(self, statement: syntax.Statement) -> bool:
        """Whether no instruction reads what a statement writes first, which is no output of inline PTX either."""
        target = str(statement.operands[0]) if statement.operands else "$"
        return not target.startswith("$") and target not in self.read

    def _reset(self, spins: list[tuple[object, set[int]]], entry_parts: Sequence[int]) -> None:
        """Emits that loops that wait begin anew, where some parts are entered from outside of them."""
        keys = [key for key, loop in spins if any(number in loop for number in entry_parts)]
        if keys:
            self.builder.emit("loop", _begin_anew, (), (), {"keys": keys})


def _reached(after: dict[int, set[int]], start: int) -> set[int]:
    """Returns the parts that can be reached from one by at least one step."""
    reached: set[int] = set()
    pending = list(after[start])
    while pending:
        number = pending.pop()
        if number not in reached:
            reached.add(number)
            pending += after[number]
    return reached


def _initial(fiber: Fiber, op: Instruction) -> Value:
    """Sets what is constant, and registers that hold anything."""
    initial_values = [value(fiber) if callable(value) else value for value in op.attributes["constants"]]
    initial_values += op.attributes["undefined"]
    return initial_values[0] if len(initial_values) == 1 else tuple(initial_values)


def _begin_anew(fiber: Fiber, op: Instruction) -> None:
    """Forgets the recorded hints for wait loops."""
    for key in op.attributes["keys"]:
        if key in fiber.group.state:
            fiber.group.state[key][1][fiber.lanes] = False


def _branch(fiber: Fiber, op: Instruction, predicate: Value) -> None:
    """Branches where a predicate holds; both ways where threads differ."""
    predicate = fiber.agreed(predicate)
    is_negated, join_at = op.attributes["negated"], op.attributes["join"]
    if not isinstance(predicate, np.ndarray):
        if bool(predicate) != is_negated:
            fiber.place = op.attributes["to"]
        return
    if join_at is not None and not (fiber.stack and fiber.stack[-1].place == join_at):
        fiber.stack.append(Convergence(fiber.group, join_at, op.attributes["slots"], fiber.active))
    other = fiber.split(fiber.active & (predicate != is_negated))
    other.place = op.attributes["to"]
    fiber.group.ready.appendleft(other)
    fiber.group.ready.appendleft(fiber)
    raise Left
