"""Follows the values and buffers of a payload's function, op by op, from the arguments to the result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.windows import is_window
from stepladder.payload import consumers, in_place, linalg_bodies, reductions
from stepladder.payload.arguments import check_attributes, check_operand, check_unused, is_memref, is_shaped
from stepladder.payload.contents import Contents, divides_batch, joins_batch
from stepladder.payload.form import PRODUCT, READ, Content, Form, Kind
from stepladder.payload.refusal import refuse, refuse_fill
from stepladder.payload.results import Results
from stepladder.runtime.problem import EpilogueOperand, epilogue_role


@dataclass
class Flow(Contents):
    """The values and buffers of a function, followed op by op.

    Attributes:
        roles: argument number -> "a", "b" or "c".
        start: the argument that the accumulators start from, or None for zeros.
        results: what is stored, and where.
        consumed: the scalar ops of elementwise ops on the product, in order; roundings alone are none.
        read: arguments that elementwise ops read -> the first op that does.
        copied: an elementwise op that only copies the product.
    """

    roles: dict[int, str] = field(default_factory=dict)
    start: int | None = None
    results: Results = field(default_factory=Results)
    consumed: list[str] = field(default_factory=list)
    read: dict[int, ir.Operation] = field(default_factory=dict)
    copied: ir.Operation | None = None

    def form(self) -> Form:
        """Follows the whole function; returns how the payload is written.

        Raises:
            StepladderError: an op, an argument or a data flow that no pipeline computes.
        """
        blocks = self.function.regions[0].blocks
        if len(blocks) != 1:
            raise refuse(self.function, f"the function has {len(blocks)} blocks; it must have a single block")
        arguments = list(blocks[0].arguments)
        for number, argument in enumerate(arguments):
            content = Content(Kind.ARGUMENT, number)
            if is_memref(argument):
                self.buffers[number] = content
            else:
                self.values[argument] = content
        for op in (op.operation for op in blocks[0].operations):
            self._follow(op)
        if not self.results.values:
            end = blocks[0].operations[len(blocks[0].operations) - 1]
            raise refuse(end, f"the result of {self.matmul.name} is unused: it must be returned or written to C")
        c = self.results.choose_c({*self.read, self.start})
        in_place.check(self.function, self.values, c)
        value = self.results.values[c]
        self.roles[c] = "c"
        results = self.results.further(c, self.roles)
        operands = self._operands(arguments, c)
        self._check_arguments(arguments)
        name = (
            "buffers"
            if is_memref(self.matmul.operands[2])
            else "normal"
            if c < len(arguments) and all(is_memref(arguments[n]) for n in self.roles if is_shaped(arguments[n]))
            else "tensors"
        )
        c_type = str(ir.ShapedType(value.type).element_type)
        sums_type = str(ir.ShapedType(self.matmul.operands[2].type).element_type)
        if self.copied is not None and not self.consumed and not results and c_type == sums_type:
            raise refuse(self.copied, f"{self.copied.name} is a copy of the product without other computation")
        windows = self.operand_windows(self.roles)
        accumulates = c in self.read or c == self.start
        return Form(accumulates, self.roles, c_type, name, tuple(self.consumed), operands, results, windows)

    def _follow(self, op: ir.Operation) -> None:
        match op.name:
            case "arith.constant":
                self.values[op.results[0]] = Content(Kind.NUMBER)
            case "tensor.empty":
                self.values[op.results[0]] = Content(Kind.EMPTY)
            case "bufferization.to_tensor":
                self.note_read(op)
            case "memref.reinterpret_cast" if not is_window(op):
                raise refuse(op, f"{op.name} has rows that overlap or exceed the buffer")
            # `front.rewrite` makes matrices of arguments.
            case "memref.collapse_shape" | "memref.expand_shape" | "memref.reinterpret_cast":
                self.views[op.results[0]] = self.number_of(op.operands[0], op)
            case "tensor.reshape" if divides_batch(op) or joins_batch(op):
                self.values[op.results[0]] = self.content_of(op.operands[0], op)
            case "linalg.fill":
                self._fill(op)
            case "linalg.matmul" | "linalg.batch_matmul" | "linalg.contract":
                self._multiply(op)
            case "linalg.generic" if linalg_bodies.rounds(op) or linalg_bodies.adds_and_rounds(op):
                self._round(op)
            case _ if reductions.is_reduction(op):
                self._reduce(op)
            case _ if consumers.is_consumer(op):
                self._consume(op)
            case "bufferization.materialize_in_destination":
                self._write(op)
            case "func.return":
                self._return(op)
            case _:
                raise refuse(op, f"'{op.name}' beside {self.matmul.name} is not supported: a pipeline would drop it")

    def _fill(self, op: ir.Operation) -> None:
        users = [use.owner.operation for use in op.results[0].uses] if len(op.results) else []
        if any(reductions.begins_with(user, op.results[0]) for user in users):
            self._begin(op, users)
            return
        if users and self.matmul not in users and all(map(consumers.is_consumer, users)):
            self._fill_operand(op)
            return
        value = op.operands[0].owner
        constant = None if isinstance(value, ir.Block) or value.name != "arith.constant" else value.attributes["value"]
        number = getattr(constant, "value", None)
        if number != 0 or math.copysign(1, number) < 0:
            raise refuse_fill(op, number)
        target = self.content_of(op.operands[1], op)
        if target.kind not in (Kind.ARGUMENT, Kind.EMPTY):
            raise refuse(op, f"linalg.fill overwrites {target.kind.value}")
        users = [] if is_memref(op.operands[1]) else [use.owner.operation for use in op.results[0].uses]
        other_users = [user for user in users if user != self.matmul]
        is_start = op.operands[1] == self.matmul.operands[2] if is_memref(op.operands[1]) else self.matmul in users
        if not is_start or not all(map(consumers.is_consumer, other_users)):
            raise refuse(op, f"linalg.fill has uses other than the initial value of {self.matmul.name}")
        self.store(op, Kind.ZEROS, target)

    def _begin(self, op: ir.Operation, users: list[ir.Operation]) -> None:
        """Notes what reductions begin with: copies of one constant."""
        if not all(reductions.begins_with(user, op.results[0]) for user in users):
            raise refuse(op, "linalg.fill computes the initial value of a reduction that another op reads as well")
        if self.values.get(op.operands[0], Content(Kind.EMPTY)).kind is not Kind.NUMBER:
            raise refuse(op, "linalg.fill has a scalar that is not a constant")
        target = self.content_of(op.operands[1], op)
        if target.kind not in (Kind.ARGUMENT, Kind.EMPTY):
            raise refuse(op, f"linalg.fill overwrites {target.kind.value}")
        self.store(op, Kind.INITIAL, target)

    def _fill_operand(self, op: ir.Operation) -> None:
        """Notes a splat tensor, which elementwise ops read."""
        number = self.values.get(op.operands[0], Content(Kind.EMPTY))
        if number.kind not in (Kind.NUMBER, Kind.ARGUMENT):
            raise refuse(op, "linalg.fill has a scalar that is neither a constant nor an argument of the function")
        if self.content_of(op.operands[1], op).kind is not Kind.EMPTY:
            raise refuse(op, "linalg.fill overwrites an argument with an operand of an elementwise op")
        if number.argument is not None:
            consumers.check_type(op, op.operands[0])
            self.read.setdefault(number.argument, op)
        self.values[op.results[0]] = Content(Kind.NUMBER if number.argument is None else Kind.DERIVED)

    def _multiply(self, op: ir.Operation) -> None:
        element = ir.ShapedType(op.operands[0].type).element_type
        if isinstance(element, ir.ComplexType):
            raise refuse(
                op, f"{op.name} of {element}, which kernels do not support", "accepted: products of real numbers"
            )
        if not linalg_bodies.multiplies_and_adds(op):
            raise refuse(
                op,
                f"{op.name} has a body that is not a product and a sum",
                f"accepted: the body that {op.name} has when none is written",
            )
        for role, operand in zip("ab", op.operands):
            content = self.content_of(operand, op)
            if content.kind is not Kind.ARGUMENT:
                raise refuse(op, f"{role.upper()} is {content.kind.value}; it must be an argument of the function")
            assert content.argument is not None  # content of this kind has one
            self.roles[content.argument] = self.roles.get(content.argument, "") + role
        start = self.content_of(op.operands[2], op)
        if start.kind not in (Kind.ARGUMENT, Kind.ZEROS):
            raise refuse(
                op,
                f"the initial value of {op.name} is {start.kind.value}",
                "accepted initial values: a linalg.fill with 0 (C = AB), C itself (C = AB + C)",
            )
        self.start = start.argument if start.kind is Kind.ARGUMENT else None
        if start.argument in self.roles:
            raise refuse(op, f"{op.name} takes argument {start.argument} as C and as A or B; C must be distinct")
        self.store(op, Kind.ACCUMULATORS, start)
        if is_memref(op.operands[2]):
            self.results.note(self.number_of(op.operands[2], op), op.operands[2], op)

    def _round(self, op: ir.Operation) -> None:
        source, target = (self.content_of(operand, op) for operand in op.operands)
        if source.kind is not Kind.ACCUMULATORS or self.start is not None or source.argument is not None:
            self._consume(op)
            return
        if is_memref(op.operands[1]):
            raise refuse(
                op, f"linalg.generic rounds something other than the accumulators of {self.matmul.name} on tensors"
            )
        if target.kind not in (Kind.ARGUMENT, Kind.EMPTY):
            raise refuse(op, f"{op.name} rounds to {target.kind.value}; accepted: tensor.empty or an argument")
        if bits_of_name(str(ir.ShapedType(op.operands[1].type).element_type)) not in (8, 16):
            rounded = ir.ShapedType(op.operands[1].type).element_type
            raise refuse(op, f"the accumulators are rounded to {rounded}; accepted: types of 8 and of 16 bits")
        if consumers.reads_output(op):  # C = AB + C, rounded once
            if target.kind is not Kind.ARGUMENT or target.argument is None:
                raise refuse(op, f"{op.name} adds {target.kind.value} to the accumulators; it must add C")
            self.read.setdefault(target.argument, op)
        self.store(op, Kind.ROUNDED, target)

    def _consume(self, op: ir.Operation) -> None:
        """Follows an elementwise op: on the product, or on arguments that it is combined with."""
        shape = list(ir.ShapedType(self.matmul.operands[2].type).shape)
        consumers.check(op, len(shape))
        inputs, output = consumers.parts(op)
        target = self.content_of(output, op)
        arguments = op.regions[0].blocks[0].arguments
        contents = [
            self.content_of(operand, op)
            for operand, argument in zip(inputs, arguments)
            if is_shaped(operand) and list(argument.uses)
        ]
        if len(op.results) and not list(op.results[0].uses):
            raise refuse(op, f"the result of {op.name} is unused")
        self._note_numbers(op)
        if consumers.reads_output(op):
            contents.append(target)
        for content in contents:
            if content.kind not in READ:
                raise refuse(op, f"{op.name} reads {content.kind.value}")
            if content.kind is Kind.ARGUMENT and content.argument is not None:
                self.read.setdefault(content.argument, op)
        if not any(content.kind in PRODUCT for content in contents):
            if is_memref(output) or (target.kind is not Kind.EMPTY and not consumers.reads_output(op)):
                raise refuse(op, f"{op.name} writes {target.kind.value} and does not read the result of linalg.matmul")
            self.values[op.results[0]] = Content(Kind.DERIVED)
            return
        identity = ir.AffineMap.get_identity(len(shape))
        for operand, map_ in zip(inputs, consumers.maps_of(op)):
            if is_shaped(operand) and self.content_of(operand, op).kind in PRODUCT and map_ != identity:
                raise refuse(op, f"{op.name} reads the product with the indexing map {map_}; it must be {identity}")
        if list(ir.ShapedType(output.type).shape) != shape:
            raise refuse(op, f"{op.name} computes {output.type} from the product; it must have the shape of C")
        if target.kind not in (Kind.ARGUMENT, Kind.EMPTY, *PRODUCT):
            raise refuse(op, f"{op.name} overwrites {target.kind.value}")
        body = [item.operation.name for item in op.regions[0].blocks[0].operations]
        names = [name for name in body if name not in ("linalg.yield", "arith.constant")]
        self.consumed += names
        self.copied = self.copied if names else op
        if is_memref(output):
            self.results.note(self.number_of(output, op), output, op)
        self.store(op, Kind.CONSUMED, target)

    def _note_numbers(self, op: ir.Operation) -> None:
        """Notes the arguments of the function that are scalars, and that an op computes with."""
        for number in consumers.numbers_of(op):
            self.read.setdefault(number, op)

    def _reduce(self, op: ir.Operation) -> None:
        """Follows a reduction of the rows or the columns of the product, or of elementwise ops on it."""
        reductions.reduction_of(op)
        inputs, output = consumers.parts(op)
        if len(ir.ShapedType(self.matmul.operands[2].type).shape) > 2:
            raise refuse(op, f"{op.name} reduces the products of a batch; accepted: reductions of a single matmul")
        if is_memref(output):
            raise refuse(op, f"{op.name} reduces to a buffer; accepted: reductions of tensors")
        begin = self.content_of(output, op)
        if begin.kind is not Kind.INITIAL:
            raise refuse(
                op, f"the initial value of {op.name} is {begin.kind.value}", "accepted: linalg.fill with a constant"
            )
        self._note_numbers(op)
        identity, is_of_product = ir.AffineMap.get_identity(2), False
        arguments = op.regions[0].blocks[0].arguments
        for operand, map_, argument in zip(inputs, consumers.maps_of(op), arguments):
            content = self.content_of(operand, op)
            if list(argument.uses) and content.kind not in READ:
                raise refuse(op, f"{op.name} reads {content.kind.value}")
            if list(argument.uses) and content.kind is Kind.ARGUMENT and content.argument is not None:
                self.read.setdefault(content.argument, op)
            if content.kind in PRODUCT:
                is_of_product = True
                if map_ != identity:
                    raise refuse(op, f"{op.name} reads the product with the indexing map {map_}; it must be {identity}")
        if not is_of_product:
            raise refuse(op, f"{op.name} does not read the result of {self.matmul.name}")
        body = [item.operation.name for item in op.regions[0].blocks[0].operations]
        self.consumed += [name for name in body if name not in ("linalg.yield", "arith.constant")]
        self.store(op, Kind.REDUCED, begin)

    def _operands(self, arguments: list[ir.BlockArgument], c: int) -> tuple[EpilogueOperand, ...]:
        """Gives the arguments that elementwise ops read their roles; returns what they are."""
        if self.start is not None and self.start != c:
            self.read.setdefault(self.start, self.matmul)
        numbers = sorted(number for number in self.read if number != c)
        for number in numbers:
            if number in self.roles:
                raise refuse(
                    self.read[number],
                    f"{self.read[number].name} takes argument {number}, which is {self.roles[number].upper()} too; an "
                    "operand of the epilogue must be another argument",
                )
        if len(numbers) > consumers.MAX_OPERANDS:
            op = self.read[numbers[consumers.MAX_OPERANDS]]
            raise refuse(
                op, f"elementwise ops read {len(numbers)} arguments; accepted: at most {consumers.MAX_OPERANDS}"
            )
        operands = []
        for place, number in enumerate(numbers):
            type_ = arguments[number].type
            self.roles[number] = epilogue_role(place)
            operands.append(
                EpilogueOperand(str(type_.element_type), tuple(type_.shape))
                if isinstance(type_, (ir.RankedTensorType, ir.MemRefType))
                else EpilogueOperand(str(type_), (), by_value=True)
            )
        return tuple(operands)

    def _take(self, op: ir.Operation, value: ir.Value, content: Content, c: int) -> None:
        """Notes a result, argument or new argument `c`."""
        if content.kind not in (*PRODUCT, Kind.REDUCED):
            raise refuse(op, f"{op.name} reads {content.kind.value}; it must read the result of {self.matmul.name}")
        if str(ir.ShapedType(value.type).element_type) == "i1":
            accepted = ", ".join(consumers.OPERAND_TYPES)
            raise refuse(op, f"{op.name} has an operand of type {value.type}; accepted element types: {accepted}")
        if value in self.results.values.values():
            raise refuse(op, "a value is stored or returned twice; each result must be a different value")
        if content.argument not in (None, c):
            raise refuse(
                op, f"the result is initialized from argument {content.argument} and written elsewhere; both must be C"
            )
        if c in self.roles:
            raise refuse(op, f"argument {c}, which is {self.roles[c].upper()}, is overwritten; C must be distinct")
        self.results.note(c, value, op)
        if content.kind is Kind.REDUCED:
            self.results.reduced.add(c)

    def _write(self, op: ir.Operation) -> None:
        source, target = op.operands
        if not is_memref(target):
            raise refuse(op, f"{op.name} writes a tensor; it must write C, a buffer")
        number = self.number_of(target, op)
        if number in self.written:
            raise refuse(op, f"argument {number} is written a second time")
        self.note_window(number, target, op)
        self._take(op, source, self.content_of(source, op), number)
        self.written[number] = op
        self.as_tensors[number] = op

    def _return(self, op: ir.Operation) -> None:
        if not op.operands:
            return
        for operand in op.operands:
            if not isinstance(operand.type, ir.RankedTensorType):
                raise refuse(op, f"the function returns a value of type {operand.type}: it must return tensors")
        arguments = self.function.regions[0].blocks[0].arguments
        if self.results.values:
            raise refuse(op, "results are returned as well as written to buffers; accepted: one of the two")
        if len(op.operands) > 1:
            for place, operand in enumerate(op.operands):
                content = self.content_of(operand, op)
                if content.argument is not None:
                    raise refuse(
                        op,
                        f"result {place} of {len(op.operands)} is initialized from argument {content.argument}",
                        "accepted: tensor.empty as initial values, or bufferization.materialize_in_destination",
                    )
                self._take(op, operand, content, len(arguments) + place)
            return
        content = self.content_of(op.operands[0], op)
        if content.argument is not None and is_memref(arguments[content.argument]):
            raise refuse(
                op,
                f"the result is initialized from argument {content.argument}, a buffer, and returned as a tensor",
                "accepted: bufferization.materialize_in_destination to the buffer",
            )
        self._take(op, op.operands[0], content, len(arguments) if content.argument is None else content.argument)

    def _check_arguments(self, arguments: list[ir.BlockArgument]) -> None:
        for number, argument in enumerate(arguments):
            if number in self.roles:
                check_operand(argument, number)
                if number in self.written and number not in self.results.values:
                    raise refuse(
                        self.written[number], f"argument {number} is {self.roles[number].upper()} and is written"
                    )
            elif number in self.written or list(argument.uses):
                raise refuse(argument, f"argument {number} is used, but is not A, B or C")
            else:
                check_unused(argument, number)
        for number in self.as_buffers & set(self.as_tensors):
            raise refuse(
                self.as_tensors[number],
                f"argument {number} is used as a tensor here and as a buffer by linalg ops; accepted: one of the two",
            )
        check_attributes(self.function)
