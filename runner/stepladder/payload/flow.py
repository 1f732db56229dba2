"""Follows the values and buffers of a payload's function, op by op, from the arguments to the result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name
from stepladder.payload import linalg_bodies
from stepladder.payload.arguments import check_attributes, check_operand, check_unused, is_memref
from stepladder.payload.refusal import refuse


class Kind(Enum):
    """What a tensor or a buffer holds."""

    ARGUMENT = "an argument"
    EMPTY = "tensor.empty"
    ZEROS = "zeros"
    ACCUMULATORS = "the accumulators of the matmul"
    ROUNDED = "the rounded accumulators"
    NUMBER = "a constant"


@dataclass(frozen=True)
class _Content:
    """What a value or a buffer holds.

    Attributes:
        kind: of what.
        argument: the argument whose storage the tensor began in, or None for storage of its own.
        read: the `bufferization.to_tensor` that it came through, or None.
    """

    kind: Kind
    argument: int | None = None
    read: ir.Operation | None = None


@dataclass
class Form:
    """How a payload that the rule accepts is written.

    Attributes:
        accumulates: whether the accumulators start from C.
        roles: function argument -> "a", "b" or "c"; a result that no argument takes has the number of one more.
        c_type: element type of what the result is stored as.
        name: `buffers` for a matmul on memrefs; `normal` for buffers at the boundary and tensors inside; `tensors` for
            a function of which an argument or a result is a tensor.
    """

    accumulates: bool
    roles: dict[int, str]
    c_type: str
    name: str


@dataclass
class Flow:
    """The values and buffers of a function, followed op by op.

    Attributes:
        function: the payload's function.
        matmul: its one matmul or batch of them.
        values: what each tensor or number holds, by value.
        views: which argument a reshaped buffer is.
        buffers: what each memref argument holds now, by argument number.
        written: the op that wrote each argument.
        as_tensors: the last op that read or wrote each memref argument as a tensor.
        as_buffers: memref arguments that linalg ops wrote.
        roles: argument number -> "a", "b" or "c".
        accumulates: whether the accumulators start from C.
        result: C's number, and the value or buffer that holds the product.
    """

    function: ir.Operation
    matmul: ir.Operation
    values: dict[ir.Value, _Content] = field(default_factory=dict)
    views: dict[ir.Value, int] = field(default_factory=dict)
    buffers: dict[int, _Content] = field(default_factory=dict)
    written: dict[int, ir.Operation] = field(default_factory=dict)
    as_tensors: dict[int, ir.Operation] = field(default_factory=dict)
    as_buffers: set[int] = field(default_factory=set)
    roles: dict[int, str] = field(default_factory=dict)
    accumulates: bool = False
    result: tuple[int, ir.Value] | None = None

    def form(self) -> Form:
        """Follows the whole function; returns how the payload is written.

        Raises:
            StepladderError: an op, an argument or a data flow that no pipeline computes.
        """
        blocks = self.function.regions[0].blocks
        if len(blocks) != 1:
            raise refuse(self.function, f"the function has {len(blocks)} blocks; it must have one, without branches")
        arguments = list(blocks[0].arguments)
        for number, argument in enumerate(arguments):
            content = _Content(Kind.ARGUMENT, number)
            if is_memref(argument):
                self.buffers[number] = content
            else:
                self.values[argument] = content
        for op in (op.operation for op in blocks[0].operations):
            self._follow(op)
        if self.result is None:
            end = blocks[0].operations[len(blocks[0].operations) - 1]
            raise refuse(end, f"nothing takes the result of {self.matmul.name}: it must be returned or written to C")
        c, value = self.result
        self.roles[c] = "c"
        self._check_arguments(arguments)
        name = (
            "buffers"
            if is_memref(self.matmul.operands[2])
            else "normal"
            if c < len(arguments) and all(map(is_memref, (arguments[n] for n in self.roles)))
            else "tensors"
        )
        return Form(self.accumulates, self.roles, str(ir.ShapedType(value.type).element_type), name)

    def _follow(self, op: ir.Operation) -> None:
        match op.name:
            case "arith.constant":
                self.values[op.results[0]] = _Content(Kind.NUMBER)
            case "tensor.empty":
                self.values[op.results[0]] = _Content(Kind.EMPTY)
            case "bufferization.to_tensor":
                self._read(op)
            case "memref.collapse_shape" | "memref.expand_shape":  # `front.rewrite` makes matrices of arguments
                self.views[op.results[0]] = self._number(op.operands[0], op)
            case "linalg.fill":
                self._fill(op)
            case "linalg.matmul" | "linalg.batch_matmul" | "linalg.contract":
                self._multiply(op)
            case "linalg.generic" if linalg_bodies.rounds(op):
                self._round(op)
            case "linalg.generic":
                raise refuse(
                    op, "linalg.generic computes something other than the rounding of the accumulators to C's type"
                )
            case "bufferization.materialize_in_destination":
                self._write(op)
            case "func.return":
                self._return(op)
            case _:
                raise refuse(op, f"'{op.name}' beside {self.matmul.name}: a pipeline would lose it")

    def _number(self, buffer: ir.Value, op: ir.Operation) -> int:
        """Returns which argument a buffer is."""
        if buffer in self.views:
            return self.views[buffer]
        if not isinstance(buffer.owner, ir.Block):
            raise refuse(op, f"{op.name} takes a buffer that is no argument of the function")
        return ir.BlockArgument(buffer).arg_number

    def _content(self, operand: ir.Value, op: ir.Operation) -> _Content:
        """Returns what an operand, a tensor or a buffer, holds when an op takes it."""
        content = self.buffers[self._number(operand, op)] if is_memref(operand) else self.values[operand]
        if content.read is not None and "restrict" not in content.read.attributes:
            raise refuse(
                content.read,
                "bufferization.to_tensor without 'restrict': pipelines need to know that no two buffers overlap",
                "accepted: bufferization.to_tensor %buffer restrict : ...",
            )
        return content

    def _read(self, op: ir.Operation) -> None:
        number = self._number(op.operands[0], op)
        content = self.buffers[number]
        self.values[op.results[0]] = _Content(content.kind, content.argument, op)
        if list(op.results[0].uses):
            self.as_tensors[number] = op

    def _store(self, op: ir.Operation, kind: Kind, target: _Content) -> None:
        """Notes that an op's output, of which `target` is what it held, holds `kind` from now on."""
        output = op.operands[len(op.operands) - 1]
        if not is_memref(output):
            if target.read is not None and "writable" not in target.read.attributes:
                raise refuse(
                    target.read,
                    "bufferization.to_tensor without 'writable', and C is written through it",
                    "accepted: bufferization.to_tensor %C restrict writable : ...",
                )
            self.values[op.results[0]] = _Content(kind, target.argument)
            return
        number = self._number(output, op)
        self.buffers[number] = _Content(kind, number)
        self.written[number] = op
        self.as_buffers.add(number)

    def _fill(self, op: ir.Operation) -> None:
        value = op.operands[0].owner
        constant = None if isinstance(value, ir.Block) or value.name != "arith.constant" else value.attributes["value"]
        number = getattr(constant, "value", None)
        if number != 0 or math.copysign(1, number) < 0:
            found = f": {number}" if isinstance(number, (int, float)) else ""
            raise refuse(
                op,
                f"linalg.fill starts the accumulator from something other than the constant 0{found}",
                "C = AB starts from zero, C = AB + C from C itself",
            )
        target = self._content(op.operands[1], op)
        if target.kind not in (Kind.ARGUMENT, Kind.EMPTY):
            raise refuse(op, f"linalg.fill overwrites {target.kind.value}")
        is_start = (
            op.operands[1] == self.matmul.operands[2]
            if is_memref(op.operands[1])
            else [use.owner for use in op.results[0].uses] == [self.matmul]
        )
        if not is_start:
            raise refuse(op, f"linalg.fill makes zeros that are not, or not only, what {self.matmul.name} starts from")
        self._store(op, Kind.ZEROS, target)

    def _multiply(self, op: ir.Operation) -> None:
        if not linalg_bodies.multiplies_and_adds(op):
            raise refuse(
                op,
                f"{op.name} has a body that is not a product and a sum",
                f"accepted: the body that {op.name} has when none is written",
            )
        for role, operand in zip("ab", op.operands):
            content = self._content(operand, op)
            if content.kind is not Kind.ARGUMENT:
                raise refuse(op, f"{role.upper()} is {content.kind.value}; it must be an argument of the function")
            assert content.argument is not None  # content of this kind has one
            self.roles[content.argument] = self.roles.get(content.argument, "") + role
        start = self._content(op.operands[2], op)
        if start.kind not in (Kind.ARGUMENT, Kind.ZEROS):
            raise refuse(
                op,
                f"{op.name} starts from {start.kind.value}",
                "C = AB starts from a linalg.fill with 0, C = AB + C from C itself",
            )
        self.accumulates = start.kind is Kind.ARGUMENT
        if start.argument in self.roles:
            raise refuse(op, f"{op.name} takes argument {start.argument} as C and as A or B; C must be another")
        self._store(op, Kind.ACCUMULATORS, start)
        if is_memref(op.operands[2]):
            self.result = (self._number(op.operands[2], op), op.operands[2])

    def _round(self, op: ir.Operation) -> None:
        source, target = (self._content(operand, op) for operand in op.operands)
        if source.kind is not Kind.ACCUMULATORS or is_memref(op.operands[1]):
            raise refuse(
                op, f"linalg.generic rounds something other than the accumulators of {self.matmul.name} on tensors"
            )
        if self.accumulates or source.argument is not None:
            raise refuse(
                op,
                f"the accumulators begin in argument {source.argument} and are rounded to another type: they must "
                "begin in a tensor.empty",
                "C = AB + C accumulates in C's own type",
            )
        self._used_once(op.operands[0], op)
        if target.kind not in (Kind.ARGUMENT, Kind.EMPTY):
            raise refuse(op, f"the rounding overwrites {target.kind.value}")
        if bits_of_name(str(ir.ShapedType(op.operands[1].type).element_type)) not in (8, 16):
            raise refuse(op, f"the accumulators are rounded to {ir.ShapedType(op.operands[1].type).element_type}")
        self._store(op, Kind.ROUNDED, target)

    def _used_once(self, value: ir.Value, op: ir.Operation) -> None:
        """Refuses a value that other ops take beside the one given."""
        if len(list(value.uses)) != 1:
            raise refuse(
                op,
                f"{self.values[value].kind.value} are used {len(list(value.uses))} times; they must go "
                "to one place, the result",
            )

    def _take(self, op: ir.Operation, value: ir.Value, content: _Content, c: int) -> None:
        """Notes the result, argument or new argument `c`."""
        if content.kind not in (Kind.ACCUMULATORS, Kind.ROUNDED):
            raise refuse(op, f"{op.name} takes {content.kind.value}; it must take the result of {self.matmul.name}")
        self._used_once(value, op)
        if self.result is not None:
            raise refuse(op, "a second result; a pipeline computes one")
        if content.argument not in (None, c):
            raise refuse(
                op, f"the result begins in argument {content.argument} and ends in another place; both must be C"
            )
        if c in self.roles:
            raise refuse(op, f"the result overwrites argument {c}, which is {self.roles[c].upper()}; C must be another")
        self.result = (c, value)

    def _write(self, op: ir.Operation) -> None:
        source, target = op.operands
        if not is_memref(target):
            raise refuse(op, f"{op.name} writes a tensor; it must write C, a buffer")
        number = self._number(target, op)
        if number in self.written:
            raise refuse(op, f"argument {number} is written a second time")
        self._take(op, source, self._content(source, op), number)
        self.written[number] = op
        self.as_tensors[number] = op

    def _return(self, op: ir.Operation) -> None:
        if not op.operands:
            return
        if len(op.operands) > 1 or not isinstance(op.operands[0].type, ir.RankedTensorType):
            raise refuse(op, f"the function returns {len(op.operands)} values: it must return one tensor, the product")
        content = self._content(op.operands[0], op)
        arguments = self.function.regions[0].blocks[0].arguments
        if content.argument is not None and is_memref(arguments[content.argument]):
            raise refuse(
                op,
                f"the result begins in argument {content.argument}, a buffer, and is returned as a tensor",
                "accepted: bufferization.materialize_in_destination to the buffer",
            )
        self._take(op, op.operands[0], content, len(arguments) if content.argument is None else content.argument)

    def _check_arguments(self, arguments: list[ir.BlockArgument]) -> None:
        for number, argument in enumerate(arguments):
            if number in self.roles:
                check_operand(argument, number)
                if number in self.written and self.roles[number] != "c":
                    raise refuse(
                        self.written[number], f"argument {number} is {self.roles[number].upper()} and is written"
                    )
            elif number in self.written or list(argument.uses):
                raise refuse(argument, f"argument {number} is used and is none of A, B and C")
            else:
                check_unused(argument, number)
        for number in self.as_buffers & set(self.as_tensors):
            raise refuse(
                self.as_tensors[number],
                f"argument {number} is used as a tensor here and as a buffer by linalg ops; it must be one of both",
            )
        check_attributes(self.function)
