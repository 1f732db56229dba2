"""The rule of what a payload may hold: the ops of one matmul, and the data flow that pipelines compute.

Steps match the ops that they know and pass by the others, so that what they do not know would be lost. The rule
therefore looks at every op of a payload and follows every value and buffer from the arguments to the result. What it
does not accept is refused, whatever the knobs: `payload.find_problem` asks it, and every command asks `find_problem`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from enum import Enum

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.payload import linalg_bodies
from stepladder.payload.facts import type_bits
from stepladder.runtime.errors import StepladderError

ACCEPTED = (
    "accepted: one function of A, B and C with one linalg.matmul; in front of it a linalg.fill with 0; behind "
    "it a linalg.generic that rounds the sums with arith.truncf; arith.constant, tensor.empty, "
    "bufferization.to_tensor, bufferization.materialize_in_destination and func.return"
)

# Names that PTX takes for an entry point, to which "_kernel" is added.
_ENTRY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
# Symbols that steps add to the module.
_RESERVED = ("shared_memory",)


class Kind(Enum):
    """What a tensor or a buffer holds."""

    ARGUMENT = "an argument"
    EMPTY = "tensor.empty"
    ZEROS = "zeros"
    SUMS = "the sums of the matmul"
    ROUNDED = "the rounded sums"
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
    read: object = None


@dataclass
class Form:
    """How a payload that the rule accepts is written.

    Attributes:
        accumulates: whether the sums start from C.
        roles: function argument -> "a", "b" or "c"; a result that no argument takes has the number of one more.
        c_type: element type of what the result is stored as.
        name: `buffers` for a matmul on memrefs; `normal` for buffers at the boundary and tensors inside; `tensors` for
            a function of which an argument or a result is a tensor.
    """

    accumulates: bool
    roles: dict[int, str]
    c_type: str
    name: str


def check_form(module, matmul) -> Form:
    """Checks a module against the rule.

    Args:
        module: the payload.
        matmul: its one `linalg.matmul`, of static shapes.

    Raises:
        StepladderError: an op, an argument or a data flow that no pipeline computes; names it and what is accepted.
    """
    function = _the_function(module, matmul)
    return _Flow(function, matmul).form()


def refuse(op, message: str, *notes: str) -> StepladderError:
    """Returns the refusal of a payload for one of its ops or arguments."""
    return StepladderError(message, location=diagnostics.location_text(op.location), notes=notes or (ACCEPTED,))


def _the_function(module, matmul):
    """Returns the one function of a module, whose body's top level the matmul must be at."""
    body = module.operation.regions[0].blocks[0]
    functions = [op.operation for op in body.operations if op.operation.name == "func.func"]
    owner = matmul.parent
    if owner.name != "func.func" and owner.name != "builtin.module":
        raise refuse(matmul, f"linalg.matmul is inside '{owner.name}'; it must be at the top level of the function")
    for op in (op.operation for op in body.operations):
        is_unused_global = op.name == "ml_program.global"  # a reader of it would be refused where it is
        if op.name != "func.func" and not is_unused_global:
            raise refuse(op, f"'{op.name}' beside the function: a payload is one function")
    function = matmul.parent
    others = [_symbol(other) for other in functions if other != function]
    if others:
        raise refuse(
            function,
            f"{len(functions)} functions in the payload, and a pipeline takes one: beside "
            f"@{_symbol(function)} there is {', '.join(f'@{name}' for name in others)}",
        )
    name = _symbol(function)
    if not _ENTRY.fullmatch(name):
        raise refuse(
            function,
            f"the function's name '{name}' cannot be that of a kernel in PTX",
            "accepted: letters, digits, _ and $, not beginning with a digit",
        )
    if name in _RESERVED:
        raise refuse(function, f"the function's name '{name}' is that of a symbol that pipelines add: rename it")
    return function


def _symbol(function) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _is_memref(value) -> bool:
    return isinstance(value.type, ir.MemRefType)


def _check_operand(argument, number: int) -> None:
    """Refuses the type of an argument that is A, B or C."""
    type_ = argument.type
    if isinstance(type_, ir.MemRefType):
        if type_.affine_map != ir.AffineMap.get_identity(type_.rank):
            raise refuse(
                argument,
                f"argument {number} is {type_}; buffers must be row-major without gaps",
                f"accepted: {_plain(type_)}",
            )
        if type_.memory_space is not None:
            raise refuse(
                argument,
                f"argument {number} is {type_}; buffers must be in global memory, which is no memory space",
                f"accepted: {_plain(type_)}",
            )
    elif ir.RankedTensorType(type_).encoding is not None:
        raise refuse(argument, f"argument {number} is {type_}; tensors must be dense", f"accepted: {_plain(type_)}")


def _plain(type_) -> str:
    shaped = ir.ShapedType(type_)
    kind = "memref" if isinstance(type_, ir.MemRefType) else "tensor"
    return f"{kind}<{'x'.join(map(str, shaped.shape))}x{shaped.element_type}>"


def _check_unused(argument, number: int) -> None:
    """Refuses an argument that nothing reads and that cannot be made up to run the function."""
    type_ = argument.type
    is_number = isinstance(type_, (ir.IntegerType, ir.IndexType, ir.FloatType))
    is_shaped = isinstance(type_, (ir.MemRefType, ir.RankedTensorType)) and ir.ShapedType(type_).has_static_shape
    if not is_number and not is_shaped:
        raise refuse(
            argument,
            f"argument {number} is {type_}, which nothing uses",
            "accepted as an argument that nothing uses: a number, a buffer or tensor of static shape",
        )


@dataclass
class _Flow:
    """The values and buffers of a function, followed op by op.

    Attributes:
        values: what each tensor or number holds, by value.
        buffers: what each memref argument holds now.
        written: arguments that were written, and by which op.
        as_tensors: memref arguments that were read or written as tensors, `as_buffers` those that linalg ops wrote.
        used: arguments that an op takes.
    """

    function: object
    matmul: object
    values: dict = field(default_factory=dict)
    buffers: dict[int, _Content] = field(default_factory=dict)
    written: dict[int, object] = field(default_factory=dict)
    as_tensors: dict[int, object] = field(default_factory=dict)
    as_buffers: set[int] = field(default_factory=set)
    roles: dict[int, str] = field(default_factory=dict)
    accumulates: bool = False
    result: tuple[int, object] | None = None  # C's number, and the value or buffer that holds it

    def form(self) -> Form:
        """Follows the whole function; see `check_form`."""
        blocks = self.function.regions[0].blocks
        if len(blocks) != 1:
            raise refuse(self.function, f"the function has {len(blocks)} blocks; it must have one, without branches")
        arguments = list(blocks[0].arguments)
        for number, argument in enumerate(arguments):
            content = _Content(Kind.ARGUMENT, number)
            if _is_memref(argument):
                self.buffers[number] = content
            else:
                self.values[argument] = content
        for op in (op.operation for op in blocks[0].operations):
            self._follow(op)
        if self.result is None:
            end = blocks[0].operations[len(blocks[0].operations) - 1]
            raise refuse(end, "nothing takes the result of linalg.matmul: it must be returned or written to C")
        c, value = self.result
        self.roles[c] = "c"
        self._check_arguments(arguments)
        name = (
            "buffers"
            if _is_memref(self.matmul.operands[2])
            else "normal"
            if c < len(arguments) and all(map(_is_memref, (arguments[n] for n in self.roles)))
            else "tensors"
        )
        return Form(self.accumulates, self.roles, str(ir.ShapedType(value.type).element_type), name)

    def _follow(self, op) -> None:
        match op.name:
            case "arith.constant":
                self.values[op.results[0]] = _Content(Kind.NUMBER)
            case "tensor.empty":
                self.values[op.results[0]] = _Content(Kind.EMPTY)
            case "bufferization.to_tensor":
                self._read(op)
            case "linalg.fill":
                self._fill(op)
            case "linalg.matmul":
                self._multiply(op)
            case "linalg.generic" if linalg_bodies.rounds(op):
                self._round(op)
            case "linalg.generic":
                raise refuse(op, "linalg.generic computes something other than the rounding of the sums to C's type")
            case "bufferization.materialize_in_destination":
                self._write(op)
            case "func.return":
                self._return(op)
            case _:
                raise refuse(op, f"'{op.name}' beside linalg.matmul: a pipeline would lose it")

    def _number(self, buffer, op) -> int:
        """Returns which argument a buffer is."""
        if not isinstance(buffer.owner, ir.Block):
            raise refuse(op, f"{op.name} takes a buffer that is no argument of the function")
        return ir.BlockArgument(buffer).arg_number

    def _content(self, operand, op) -> _Content:
        """Returns what an operand, a tensor or a buffer, holds when an op takes it."""
        content = self.buffers[self._number(operand, op)] if _is_memref(operand) else self.values[operand]
        if content.read is not None and "restrict" not in content.read.attributes:
            raise refuse(
                content.read,
                "bufferization.to_tensor without 'restrict': pipelines need to know that no two buffers overlap",
                "accepted: bufferization.to_tensor %buffer restrict : ...",
            )
        return content

    def _read(self, op) -> None:
        number = self._number(op.operands[0], op)
        content = self.buffers[number]
        self.values[op.results[0]] = _Content(content.kind, content.argument, op)
        if list(op.results[0].uses):
            self.as_tensors[number] = op

    def _store(self, op, kind: Kind, target) -> None:
        """Notes that an op's output, of which `target` is what it held, holds `kind` from now on."""
        output = op.operands[len(op.operands) - 1]
        if not _is_memref(output):
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

    def _fill(self, op) -> None:
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
            if _is_memref(op.operands[1])
            else [use.owner for use in op.results[0].uses] == [self.matmul]
        )
        if not is_start:
            raise refuse(op, "linalg.fill makes zeros that are not, or not only, what linalg.matmul starts from")
        self._store(op, Kind.ZEROS, target)

    def _multiply(self, op) -> None:
        if not linalg_bodies.multiplies_and_adds(op):
            raise refuse(
                op,
                "linalg.matmul has a body that is not a product and a sum",
                "accepted: the body that linalg.matmul has when none is written",
            )
        for role, operand in zip("ab", op.operands):
            content = self._content(operand, op)
            if content.kind is not Kind.ARGUMENT:
                raise refuse(op, f"{role.upper()} is {content.kind.value}; it must be an argument of the function")
            if content.argument in self.roles:
                raise refuse(op, "linalg.matmul takes one argument of the function twice; A, B and C must be three")
            self.roles[content.argument] = role
        start = self._content(op.operands[2], op)
        if start.kind not in (Kind.ARGUMENT, Kind.ZEROS):
            raise refuse(
                op,
                f"linalg.matmul starts from {start.kind.value}",
                "C = AB starts from a linalg.fill with 0, C = AB + C from C itself",
            )
        self.accumulates = start.kind is Kind.ARGUMENT
        if start.argument in self.roles:
            raise refuse(op, "linalg.matmul takes one argument of the function twice; A, B and C must be three")
        self._store(op, Kind.SUMS, start)
        if _is_memref(op.operands[2]):
            self.result = (start.argument, op.operands[2])

    def _round(self, op) -> None:
        source, target = (self._content(operand, op) for operand in op.operands)
        if source.kind is not Kind.SUMS or _is_memref(op.operands[1]):
            raise refuse(op, "linalg.generic rounds something other than the sums of linalg.matmul on tensors")
        if self.accumulates or source.argument is not None:
            raise refuse(
                op,
                f"the sums begin in argument {source.argument} and are rounded to another type: they must "
                "begin in a tensor.empty",
                "C = AB + C accumulates in C's own type",
            )
        self._used_once(op.operands[0], op)
        if target.kind not in (Kind.ARGUMENT, Kind.EMPTY):
            raise refuse(op, f"the rounding overwrites {target.kind.value}")
        if type_bits(ir.ShapedType(op.operands[1].type).element_type) not in (8, 16):
            raise refuse(op, f"the sums are rounded to {ir.ShapedType(op.operands[1].type).element_type}")
        self._store(op, Kind.ROUNDED, target)

    def _used_once(self, value, op) -> None:
        if len(list(value.uses)) != 1:
            raise refuse(
                op,
                f"{self.values[value].kind.value} are used {len(list(value.uses))} times; they must go "
                "to one place, the result",
            )

    def _take(self, op, value, content: _Content, c: int) -> None:
        """Notes the result, argument or new argument `c`."""
        if content.kind not in (Kind.SUMS, Kind.ROUNDED):
            raise refuse(op, f"{op.name} takes {content.kind.value}; it must take the result of linalg.matmul")
        self._used_once(value, op)
        if self.result is not None:
            raise refuse(op, "a second result; a pipeline computes one")
        if content.argument not in (None, c):
            raise refuse(
                op, f"the result begins in argument {content.argument} and ends in another place; both must be C"
            )
        if c in self.roles:
            raise refuse(
                op, f"the result overwrites argument {c}, which is {self.roles[c].upper()}; A, B and C must be three"
            )
        self.result = (c, value)

    def _write(self, op) -> None:
        source, target = op.operands
        if not _is_memref(target):
            raise refuse(op, f"{op.name} writes a tensor; it must write C, a buffer")
        number = self._number(target, op)
        if number in self.written:
            raise refuse(op, f"argument {number} is written a second time")
        self._take(op, source, self._content(source, op), number)
        self.written[number] = op
        self.as_tensors[number] = op

    def _return(self, op) -> None:
        if not op.operands:
            return
        if len(op.operands) > 1 or not isinstance(op.operands[0].type, ir.RankedTensorType):
            raise refuse(op, f"the function returns {len(op.operands)} values: it must return one tensor, the product")
        content = self._content(op.operands[0], op)
        arguments = self.function.regions[0].blocks[0].arguments
        if content.argument is not None and _is_memref(arguments[content.argument]):
            raise refuse(
                op,
                f"the result begins in argument {content.argument}, a buffer, and is returned as a tensor",
                "accepted: bufferization.materialize_in_destination to the buffer",
            )
        self._take(op, op.operands[0], content, len(arguments) if content.argument is None else content.argument)

    def _check_arguments(self, arguments: list) -> None:
        for number, argument in enumerate(arguments):
            if number in self.roles:
                _check_operand(argument, number)
                if number in self.written and self.roles[number] != "c":
                    raise refuse(
                        self.written[number], f"argument {number} is {self.roles[number].upper()} and is written"
                    )
            elif number in self.written or list(argument.uses):
                raise refuse(argument, f"argument {number} is used and is none of A, B and C")
            else:
                _check_unused(argument, number)
        for number in self.as_buffers & set(self.as_tensors):
            raise refuse(
                self.as_tensors[number],
                f"argument {number} is used as a tensor here and as a buffer by linalg ops; it must be one of both",
            )
        name = "arg_attrs"
        for number, entry in enumerate(self.function.attributes[name] if name in self.function.attributes else ()):
            for attribute in (ir.DictAttr(entry)[index].name for index in range(len(ir.DictAttr(entry)))):
                if attribute.startswith("bufferization."):
                    raise refuse(
                        arguments[number],
                        f"argument {number} has the attribute {attribute}",
                        "accepted: no attribute about bufferization, which a pipeline decides",
                    )
