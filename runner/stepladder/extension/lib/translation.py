"""Creates the ops of a launch again, with other values for some of theirs, and erases the old ones."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.control_flow import BOUNDS, body_of, operations_of, terminator_of
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.mlir.bindings import ir, scf
from stepladder.mlir.traverse import attributes_of, walk


class Translation:
    """Translates the ops of one launch, in order, after the old ones.

    A subclass overrides `operation`, for the ops that become others, and `expanded` and `types_of`, for the values that
    loops and branches carry. The old ops stay until the end, so that they can be asked.

    Attributes:
        values: the replacements of a value of the launch, one or several; a value that is not in it is its own
            replacement.
    """

    def __init__(self, launch: ir.Operation) -> None:
        self.launch = launch
        self.values: dict[ir.Value, list[ir.Value]] = {}

    def run(self, rewriter: Rewriter) -> None:
        """Translates the launch.

        Args:
            rewriter: that erases the old ops.
        """
        old = operations_of(body_of(self.launch))[:-1]
        with ir.InsertionPoint(terminator_of(body_of(self.launch))), self.launch.location:
            self.begin()
            for op in old:
                self.translate(op)
        for op in reversed(old):
            rewriter.erase_op(op)

    def begin(self) -> None:
        """Creates what is before all other ops."""

    def operation(self, op: ir.Operation) -> bool:
        """Creates what an op becomes; returns False for one that is cloned.

        Args:
            op: of the launch; loops and branches are not given to it.
        """
        raise NotImplementedError

    def expanded(self, op: ir.Operation, like: ir.Value, value: ir.Value) -> list[ir.Value]:
        """Returns the replacement of a value where `op` makes it the carried value `like`.

        Args:
            op: a loop, or the end of a region.
            like: the carried value: a result of a loop or a branch, or an argument of a loop's body.
            value: of the launch before its translation.
        """
        return self.values.get(value, [value])

    def types_of(self, like: ir.Value) -> list[ir.Type]:
        """Returns the types of the replacements of a carried value.

        Args:
            like: the carried value.
        """
        return [like.type]

    def carry(self, op: ir.Operation, like: ir.Value, value: ir.Value) -> None:
        """Notes that `like` carries what `value` is.

        Args:
            op: a loop, or the end of a region.
            like: the carried value.
            value: of the launch before its translation.
        """

    def one(self, value: ir.Value) -> ir.Value:
        """Returns the replacement of a value that has a single one.

        Args:
            value: of the launch before its translation.
        """
        replacements = self.values.get(value, [value])
        assert len(replacements) == 1, "several values stand for it"
        return replacements[0]

    def translate(self, op: ir.Operation) -> None:
        """Creates what an op becomes.

        Args:
            op: of the launch, after those that make its operands.
        """
        with op.location:
            if op.name == "scf.for":
                self._for(op)
            elif op.name == "scf.if":
                self._if(op)
            elif not self.operation(op):
                self.clone(op)

    def clone(self, op: ir.Operation) -> None:
        """Creates an op as it is.

        Args:
            op: of the launch, after those that make its operands.

        Raises:
            Refusal: an operand with several replacements.
        """
        for inner in walk(op):
            for operand in inner.operands:
                if len(self.values.get(operand, [operand])) != 1:
                    raise Refusal(op, f"{op.name} of a tile or a vector that several stand for")
        copy = op.clone().operation
        for inner in walk(copy):
            for number, operand in enumerate(inner.operands):
                if operand in self.values:
                    inner.operands[number] = self.one(operand)
        for old, new in zip(op.results, copy.results):
            self.values[old] = [new]

    def _for(self, op: ir.Operation) -> None:
        old = body_of(op)
        carried_values, initial_operands = list(old.arguments)[1:], list(op.operands)[BOUNDS:]
        initial = [self.expanded(op, like, value) for like, value in zip(carried_values, initial_operands)]
        bounds = [self.one(operand) for operand in list(op.operands)[:BOUNDS]]
        loop = scf.ForOp(*bounds, [value for values in initial for value in values])
        for name, attribute in attributes_of(op).items():
            loop.operation.attributes[name] = attribute
        arguments, results = list(loop.body.arguments), list(loop.results)
        self.values[old.arguments[0]] = [arguments.pop(0)]
        for argument, result, value, values in zip(carried_values, op.results, initial_operands, initial):
            self.values[argument], arguments = arguments[: len(values)], arguments[len(values) :]
            self.values[result], results = results[: len(values)], results[len(values) :]
            self.carry(op, argument, value)
            self.carry(op, result, value)
        with ir.InsertionPoint(loop.body):
            self._body(old, carried_values)

    def _body(self, old: ir.Block, likes: Sequence[ir.Value]) -> None:
        for inner in operations_of(old)[:-1]:
            self.translate(inner)
        end = terminator_of(old)
        results = []
        for like, value in zip(likes, end.operands):
            self.carry(end, like, value)
            results += self.expanded(end, like, value)
        with end.location:
            scf.yield_(results)

    def _if(self, op: ir.Operation) -> None:
        likes = list(op.results)
        types = [self.types_of(like) for like in likes]
        has_else = len(op.regions[1].blocks) > 0
        branch = scf.IfOp(
            self.one(op.operands[0]), [type_ for result_types in types for type_ in result_types], has_else=has_else
        )
        results = list(branch.results)
        for like, result_types in zip(likes, types):
            self.values[like], results = results[: len(result_types)], results[len(result_types) :]
        blocks = [branch.then_block] + ([branch.else_block] if has_else else [])
        for old, new in zip(op.regions, blocks):
            with ir.InsertionPoint(new):
                self._body(old.blocks[0], likes)
