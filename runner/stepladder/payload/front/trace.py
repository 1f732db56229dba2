"""Follows the values and buffers of a function to the contraction in it, through views, transposes and casts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.reshapes import groups_of
from stepladder.payload.arguments import check_attributes, check_operand, check_unused
from stepladder.payload.front import bodies
from stepladder.payload.front.digits import Digits, axis, equate, flat, split
from stepladder.payload.front.parts import VIEWS, Parts, takes_part
from stepladder.payload.front.traced import Consumer, Contraction
from stepladder.payload.front.views import Origin, Place, View, new_view
from stepladder.payload.reductions import is_reduction
from stepladder.payload.refusal import refuse, refuse_fill

ACCEPTED = (
    "accepted: one contraction of two arguments, by any linalg op that multiplies and adds; around it views "
    "(collapse_shape, expand_shape, linalg.transpose), extensions of A and B, and the rounding of the sums"
)
_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape", "memref.collapse_shape", "memref.expand_shape")
_WHOLE = ("tensor.cast", "memref.cast", *VIEWS)
_FILLED = (Origin.EMPTY, Origin.ZEROS, Origin.CONSTANT)
_ALLOCATIONS = ("tensor.empty", "bufferization.alloc_tensor", "memref.alloc", "memref.alloca")


@dataclass
class Trace:
    """The values and buffers of a function, followed op by op.

    Attributes:
        function: with one block.
        values: what each tensor holds; for a memref, the view of its buffer.
        contents: what each buffer that was written holds, by index; its axes are those of the buffer.
        written: arguments that are written, with the last op that does it.
        contraction: once it is met.
        reduction: the first op that sums, or reduces in another way, and is no contraction.
        consumers: the elementwise ops on the product and its reductions, in order.
        results: what the function returns, and the op.
        parts: parts of arguments.
    """

    function: ir.Operation
    values: dict[ir.Value, View] = field(default_factory=dict)
    contents: dict[int, View] = field(default_factory=dict)
    written: dict[int, ir.Operation] = field(default_factory=dict)
    contraction: Contraction | None = None
    reduction: ir.Operation | None = None
    consumers: list[Consumer] = field(default_factory=list)
    results: list[tuple[View, ir.Operation]] = field(default_factory=list)
    parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        self.parts = Parts(len(self.function.regions[0].blocks[0].arguments))

    def home(self, number: int) -> View:
        """Returns a buffer that the function writes: an argument, or a part of one.

        Args:
            number: of the buffer.
        """
        arguments = self.function.regions[0].blocks[0].arguments
        return self.parts.homes[number] if number in self.parts.homes else self.values[arguments[number]]

    def follow(self) -> None:
        """Follows the whole function.

        Raises:
            StepladderError: an op that the front does not support, with its location.
        """
        blocks = self.function.regions[0].blocks
        if len(blocks) != 1:
            raise refuse(self.function, f"the function has {len(blocks)} blocks; it must have a single block")
        check_attributes(self.function)
        for number, argument in enumerate(blocks[0].arguments):
            if not list(argument.uses):
                check_unused(argument, number)
                continue
            if not isinstance(argument.type, (ir.MemRefType, ir.RankedTensorType)):
                continue
            check_operand(argument, number)
            view = new_view(Origin.ARGUMENT, bodies.shape_of(argument, self.function), _element(argument))
            self.values[argument] = replace(view, place=Place(number, view.storage), buffer=number)
        for op in (op.operation for op in blocks[0].operations):
            self._follow(op)

    def _follow(self, op: ir.Operation) -> None:
        match op.name:
            case "arith.constant":
                self._constant(op)
            case name if name in _ALLOCATIONS:
                shape, number = bodies.shape_of(op.results[0], op), -2 - len(self.values)
                self.values[op.results[0]] = replace(
                    new_view(Origin.EMPTY, shape, _element(op.results[0]), op), buffer=number
                )
            case "memref.dealloc":
                pass
            case "bufferization.to_tensor":
                if "restrict" not in op.attributes:
                    raise refuse(
                        op,
                        "bufferization.to_tensor without 'restrict': pipelines need to know that no two buffers "
                        "overlap",
                        "accepted: bufferization.to_tensor %buffer restrict : ...",
                    )
                read_only = None if "writable" in op.attributes else op
                self.values[op.results[0]] = replace(self._read(op.operands[0], op), read_only=read_only)
            case name if name in _RESHAPES:
                self._reshape(op)
            case "tensor.extract_slice" if takes_part(op):
                self.values[op.results[0]] = self.parts.of_tensor(op, self._read(op.operands[0], op))
            case name if name in VIEWS and takes_part(op):
                self.values[op.results[0]] = self.parts.of_buffer(op, self._view(op.operands[0], op))
            case name if name in _WHOLE:
                self._whole(op)
            case "memref.transpose":
                order = bodies.permutation(op)
                view = self._view(op.operands[0], op)
                axes = tuple(view.axes[number] for number in order)
                self.values[op.results[0]] = replace(view, axes=axes)
            case "bufferization.materialize_in_destination" | "memref.copy":
                if not isinstance(op.operands[1].type, ir.MemRefType):
                    raise refuse(op, f"{op.name} writes a tensor; it must write C, a buffer")
                value = self._read(op.operands[0], op)
                number = self._view(op.operands[1], op).buffer
                if number in self.written and value.origin is Origin.PRODUCT:
                    raise refuse(op, f"argument {number} is written a second time")
                self._write(op, op.operands[1], value)
            case "func.return":
                self._return(op)
            case "linalg.fill":
                self._fill(op)
            case name if name.startswith("linalg.") and len(op.regions) == 1 and name != "linalg.index":
                self._structured(bodies.structured(op))
            case _:
                raise refuse(
                    op, f"'{op.name}' beside the contraction is not supported: a pipeline would drop it", ACCEPTED
                )

    def _view(self, value: ir.Value, op: ir.Operation) -> View:
        """Returns the view that a tensor or a memref is."""
        if value not in self.values:
            raise refuse(op, f"{op.name} has an operand of type {value.type}; accepted: tensors and buffers", ACCEPTED)
        return self.values[value]

    def _read(self, value: ir.Value, op: ir.Operation) -> View:
        """Returns what a tensor, or a buffer now, holds."""
        view = self._view(value, op)
        content = self.contents.get(view.buffer) if isinstance(value.type, ir.MemRefType) else None
        return view if content is None else replace(content, axes=view.axes)

    def _write(self, op: ir.Operation, target: ir.Value, value: View, result: int = 0) -> None:
        """Notes that an op's output, a tensor or all of a buffer, holds a value from now on."""
        if not isinstance(target.type, ir.MemRefType):
            self.values[op.results[result]] = value
            return
        buffer = self._view(target, op)
        if value.origin is Origin.ARGUMENT:
            value = value.fresh()
        self._equate(op, buffer.axes, value.axes)
        self.contents[buffer.buffer] = replace(value, buffer=buffer.buffer)
        if buffer.buffer >= 0:
            self.written[buffer.buffer] = op

    def _equate(self, op: ir.Operation, left: tuple[Digits, ...], right: tuple[Digits, ...]) -> None:
        if len(left) != len(right) or not all(map(equate, left, right)):
            raise refuse(
                op, f"{op.name}: the dimensions of its operands are expanded in ways that do not nest", ACCEPTED
            )

    def _constant(self, op: ir.Operation) -> None:
        if not isinstance(op.results[0].type, ir.RankedTensorType):
            return
        value = op.attributes["value"]
        zeros = isinstance(value, ir.DenseElementsAttr) and value.is_splat and _is_zero(value.get_splat_value())
        shape = bodies.shape_of(op.results[0], op)
        self.values[op.results[0]] = new_view(
            Origin.ZEROS if zeros else Origin.OTHER, shape, _element(op.results[0]), op
        )

    def _reshape(self, op: ir.Operation) -> None:
        view = self._view(op.operands[0], op)
        groups = groups_of(op)
        shape = bodies.shape_of(op.results[0], op)
        if "collapse" in op.name:
            axes = [tuple(digit for number in group for digit in view.axes[number]) for group in groups]
        else:
            axes = []
            for digits, group in zip(view.axes, groups):
                parts = split(digits, [shape[number] for number in group])
                if parts is None:
                    raise refuse(op, f"{op.name} expands a dimension differently from how it was collapsed", ACCEPTED)
                axes += parts
            axes += [axis(1) for _ in shape[len(axes) :]]  # of a tensor without axes
        self.values[op.results[0]] = replace(view, axes=tuple(axes))

    def _whole(self, op: ir.Operation) -> None:
        """Notes a cast that keeps the shape, or a slice that takes everything and drops axes of 1."""
        view = self._view(op.operands[0], op)
        source, shape = bodies.shape_of(op.operands[0], op), bodies.shape_of(op.results[0], op)
        if [size for size in source if size != 1] != [size for size in shape if size != 1]:
            raise refuse(
                op, f"{op.name} takes a part of a buffer; operands must be whole buffers without gaps", ACCEPTED
            )
        digits_of_long = [digits for digits, size in zip(view.axes, source) if size != 1]
        axes = tuple(digits_of_long.pop(0) if size != 1 else axis(1) for size in shape)
        self.values[op.results[0]] = replace(view, axes=axes)

    def _fill(self, op: ir.Operation) -> None:
        attribute = bodies.constant_of(op.operands[0])
        target = self._view(op.operands[1], op)
        may_begin = isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) and len(op.results) > 0
        if not _is_zero(attribute) and not may_begin:
            raise refuse_fill(op, getattr(attribute, "value", None))
        _check_writable(target)
        origin = Origin.ZEROS if _is_zero(attribute) else Origin.CONSTANT
        self._write(op, op.operands[1], replace(target, origin=origin, op=op))

    def _return(self, op: ir.Operation) -> None:
        for operand in op.operands:
            if not isinstance(operand.type, ir.RankedTensorType):
                raise refuse(op, f"the function returns a value of type {operand.type}: it must return tensors")
            self.results.append((self._read(operand, op), op))

    def _structured(self, item: bodies.Structured) -> None:
        """Follows a contraction, a transpose, a copy or a cast; any other op makes what no operand may be."""
        factors = bodies.factors(item)
        reduces = any(loop not in item.maps[-1] and size > 1 for loop, size in enumerate(item.sizes))
        if factors is not None and (reduces or self.contraction is None):
            self._contract(item, factors)
            return
        casts = bodies.casts_of_one(item)
        if casts is not None and self._recast(item, casts):
            return
        if any(self._is_product(operand, item.op) for operand in item.op.operands):
            if reduces and is_reduction(item.op):
                self._fold(item)
            else:
                self._consume(item)
            return
        if reduces and self.reduction is None:
            self.reduction = item.op
        for number, output in enumerate(item.outputs):
            opaque = new_view(Origin.OTHER, bodies.shape_of(output, item.op), _element(output), item.op)
            self._write(item.op, output, opaque, number)

    def _recast(self, item: bodies.Structured, casts: list[str]) -> bool:
        """Follows a transpose, a copy or a cast; returns False where a kernel does not do the casts."""
        op = item.op
        source = self._read(item.inputs[0], op)
        if source.origin in (Origin.ZEROS, Origin.CONSTANT, Origin.EMPTY) or (
            source.origin is Origin.PRODUCT and casts
        ):
            return False
        if not set(casts) <= set(bodies.EXTENSIONS):
            return False
        if source.origin is Origin.ARGUMENT:
            source = source.fresh()
        loops = {loop: digits for loop, digits in zip(item.maps[0], source.axes) if loop is not None}
        if not set(loops) <= set(item.maps[1]):
            return False
        axes = tuple(
            axis(1) if loop is None else loops.setdefault(loop, axis(item.sizes[loop])) for loop in item.maps[1]
        )
        self._write(op, item.outputs[0], replace(source, axes=axes, element=_element(item.outputs[0])))
        return True

    def _is_product(self, value: ir.Value, op: ir.Operation) -> bool:
        """Returns whether an operand is the product, or made of it."""
        return isinstance(value.type, (ir.RankedTensorType, ir.MemRefType)) and (
            self._read(value, op).origin is Origin.PRODUCT
        )

    def _consume(self, item: bodies.Structured) -> None:
        """Follows an elementwise op on the product."""
        op = item.op
        if not bodies.is_elementwise(item):
            raise refuse(op, f"{op.name} is not elementwise on the sums")
        target = self._read(item.outputs[0], op)
        inputs, loops = self._inputs(item)
        reads_output = bodies.reads_output(item)
        if reads_output or target.place is not None:
            _check_writable(target)
            self._equate_loops(op, loops, item.maps[-1], target)
        axes = tuple(
            axis(1) if loop is None else loops.setdefault(loop, axis(item.sizes[loop])) for loop in item.maps[-1]
        )
        element = _element(item.outputs[0])
        self.consumers.append(Consumer(op, inputs, target if reads_output else None, element))
        product = View(
            Origin.PRODUCT, axes, (), element, target.place, op=op, stage=len(self.consumers), element=element
        )
        self._write(op, item.outputs[0], product)

    def _fold(self, item: bodies.Structured) -> None:
        """Follows a reduction of the product."""
        op = item.op
        if isinstance(item.outputs[0].type, ir.MemRefType):
            raise refuse(op, f"{op.name} reduces to a buffer; accepted: reductions of tensors")
        begin = self._read(item.outputs[0], op)
        if begin.origin not in (Origin.ZEROS, Origin.CONSTANT) or begin.op is None or begin.op.name != "linalg.fill":
            raise refuse(
                op, f"the initial value of {op.name} is {begin.origin.value}", "accepted: linalg.fill with a constant"
            )
        inputs, loops = self._inputs(item)
        product = next(view for view in inputs if view is not None and view.origin is Origin.PRODUCT)
        if {*flat(digit for digits in loops.values() for digit in digits)} != {*product.digits()}:
            raise refuse(op, f"{op.name} repeats the product along a loop; accepted: reductions of its rows or columns")
        axes = tuple(axis(1) if loop is None else loops[loop] for loop in item.maps[-1])
        element = _element(item.outputs[0])
        self.consumers.append(Consumer(op, inputs, None, element, bodies.constant_of(begin.op.operands[0])))
        view = View(Origin.REDUCED, axes, (), element, op=op, stage=len(self.consumers), element=element)
        self._write(op, item.outputs[0], view)

    def _inputs(self, item: bodies.Structured) -> tuple[tuple[View | None, ...], dict[int, Digits]]:
        """Returns what the inputs of an op on the product are, and the digits of its loops."""
        loops: dict[int, Digits] = {}
        inputs: list[View | None] = []
        for value, map_ in zip(item.inputs, item.maps):
            if not isinstance(value.type, (ir.RankedTensorType, ir.MemRefType)):
                inputs.append(None)
                continue
            view = self._read(value, item.op)
            view = view.fresh() if view.origin is Origin.ARGUMENT else view
            self._equate_loops(item.op, loops, map_, view)
            inputs.append(view)
        return tuple(inputs), loops

    def _equate_loops(self, op: ir.Operation, loops: dict[int, Digits], map_: list[int | None], view: View) -> None:
        """Makes the axes of an operand those of the loops along them."""
        for loop, digits in zip(map_, view.axes):
            if loop is not None:
                self._equate(op, (loops.setdefault(loop, digits),), (digits,))

    def _contract(self, item: bodies.Structured, factors: tuple[int, int]) -> None:
        op = item.op
        if self.contraction is not None:
            place = diagnostics.location_text(self.contraction.op.location)
            raise refuse(op, f"a second contraction, {op.name}, beside that of {place}; accepted: one")
        a, b = (self._read(item.inputs[number], op).fresh() for number in factors)
        start = self._read(item.outputs[0], op)
        _check_writable(start)
        loops: dict[int, Digits] = {}
        for view, number in ((a, factors[0]), (b, factors[1]), (start, 2)):
            self._equate_loops(op, loops, item.maps[number], view)
        axes = tuple(axis(1) if loop is None else loops[loop] for loop in item.maps[2])
        element = _element(item.outputs[0])
        product = View(Origin.PRODUCT, axes, (), element, start.place, op=op, element=element)
        self.contraction = Contraction(op, a, b, start, product)
        self._write(op, item.outputs[0], product)


def _check_writable(target: View) -> None:
    """Refuses an output that is read from a buffer for reading only."""
    if target.read_only is not None:
        raise refuse(
            target.read_only,
            "bufferization.to_tensor without 'writable', and C is written through it",
            "accepted: bufferization.to_tensor %C restrict writable : ...",
        )


def _element(value: ir.Value) -> str:
    return str(ir.ShapedType(value.type).element_type)


def _is_zero(attribute: ir.Attribute | None) -> bool:
    """Returns whether an attribute is the constant 0, and not -0.0."""
    number = getattr(attribute, "value", None)
    return isinstance(number, (int, float)) and number == 0 and math.copysign(1, number) > 0
