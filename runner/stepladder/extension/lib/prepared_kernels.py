"""Kernels before a matmul's: they compute elementwise ops of operands, or sums of them, and write workspaces."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.extension.lib import memory, threads
from stepladder.extension.lib.arithmetic import apply, digits, equal, index, less_than
from stepladder.extension.lib.control_flow import create_if, operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.element_ops import created
from stepladder.extension.lib.epilogues.folds import Fold, fold_of
from stepladder.extension.lib.epilogues.partial_results import lane_id, over_lanes
from stepladder.extension.lib.vectors import repeated
from stepladder.mlir import types
from stepladder.mlir.bindings import affine, gpu, ir, memref, scf
from stepladder.mlir.constant_numbers import number_in
from stepladder.mlir.linalg_ops import axis_loops, indexing_maps
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import defining_op, origin, producer, walk
from stepladder.payload.front.rewrite import reshaped

_WIDEST = 16  # bytes of a load or a store


def shape_of(value: ir.Value) -> list[int]:
    """Returns the extents of a tensor or a buffer.

    Args:
        value: of static shape.
    """
    return list(ir.ShapedType(value.type).shape)


def unshaped(value: ir.Value) -> ir.Value:
    """Returns the tensor that another one is a reshape of, or itself.

    Args:
        value: a tensor.
    """
    return origin(value, TENSOR_VIEWS)


def number_of(maker: ir.Operation) -> ir.Operation | None:
    """Returns the constant whose copies an op makes, a scalar or a splat tensor; None where it does not.

    Args:
        maker: any op.
    """
    if maker.name == "linalg.fill":
        return producer(maker.operands[0])
    return maker if maker.name == "arith.constant" else None


def _is_constant(value: ir.Value) -> bool:
    maker = producer(unshaped(value))
    return maker is not None and number_of(maker) is not None


def _maker(value: ir.Value) -> ir.Operation | None:
    """Returns the op of which a tensor is the result, reshaped or as it is; None for a buffer's content."""
    maker = producer(unshaped(value))
    if maker is None or maker.name not in ("linalg.generic", "bufferization.to_tensor"):
        raise Refusal(maker or defining_op(value), "expected buffers, constants, or results of linalg.generic")
    return maker if maker.name == "linalg.generic" else None


def _extents(operand: ir.Value) -> list[int]:
    """Returns the extents of an operand; a scalar has none."""
    return shape_of(operand) if isinstance(operand.type, ir.RankedTensorType) else []


class _Operand:
    """An input of a `linalg.generic`: its axes, as loops or None for an index of 0, and what holds its elements."""

    def __init__(self, operand: ir.Value, map_: ir.AffineMap) -> None:
        self.value = operand
        self.shape = shape_of(operand)
        self.axes = axis_loops(map_)
        self.maker = _maker(operand)

    def indices(self, loops: Sequence[ir.Value]) -> list[ir.Value]:
        """Returns the indices of the element that an iteration reads."""
        return [index(0) if axis is None else loops[axis] for axis in self.axes]


class _Generic:
    """A `linalg.generic` whose result has an axis for each parallel loop, in their order; loops after them are sums.

    Attributes:
        sizes: how often each loop runs.
        last: number of the innermost loop.
        fold: how values are folded over the loops that the result has no axis for; None where it has all.
    """

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self.body = op.regions[0].blocks[0]
        *maps, output_map = indexing_maps(op)
        *inputs, output = op.operands
        *arguments, result = self.body.arguments
        parallel = ir.AffineMap.get_identity(output_map.n_dims).get_submap(list(range(len(output_map.results))))
        self.fold: Fold | None = None
        if output_map.n_dims > len(output_map.results):
            self.fold = fold_of(op, 0)
        if len(op.results) != 1 or output_map != parallel or (self.fold is None and list(result.uses)):
            raise Refusal(op, "expected parallel loops, and one result that is written in their order, or sums of it")
        self.sizes = shape_of(output) + [1] * (output_map.n_dims - len(output_map.results))
        self.last = len(self.sizes) - 1
        self.operands: dict[ir.Value, _Operand] = {}
        self.constants: dict[ir.Value, ir.Value] = {}
        for argument, operand, map_ in zip(arguments, inputs, maps):
            for axis, size in zip(map_.results, _extents(operand)):
                if isinstance(axis, ir.AffineDimExpr):
                    self.sizes[axis.position] = size
            if not list(argument.uses):
                continue
            if not isinstance(operand.type, ir.RankedTensorType) or _is_constant(operand):
                self.constants[argument] = operand
            else:
                self.operands[argument] = _Operand(operand, map_)

    def needs_elements(self) -> bool:
        """Returns whether the body reads the index of the innermost loop, which elements of a vector differ in."""
        return any(ir.IntegerAttr(op.attributes["dim"]).value == self.last for op in walk(self.op, "linalg.index"))


class ElementsKernel:
    """A kernel that computes the result of a `linalg.generic`, and of others that it reads, element by element.

    Args:
        generic: the op.
        output: the buffer of the result.

    Attributes:
        buffers: that the kernel takes, the output last.
        vector: elements that a thread computes.
        elements: of the result.
    """

    def __init__(self, generic: ir.Operation, output: ir.Value) -> None:
        self.generics: dict[ir.Operation, _Generic] = {}
        self.places: dict[ir.Value, int] = {}
        self.buffers: list[ir.Value] = []
        self.parameters: list[ir.Value] = []
        self.first = generic
        self.elements = math.prod(shape_of(output))
        self.vector = self._width(generic, _WIDEST // _bytes(output))
        self.buffers.append(output)

    def blocks(self, block_threads: int) -> int:
        """Returns the blocks of the grid.

        Args:
            block_threads: threads of a block.
        """
        return -(-self.elements // (block_threads * self.vector))

    def _width(self, op: ir.Operation, widest: int) -> int:
        """Collects what an op reads; returns how many adjacent elements a thread computes, `widest` at most."""
        generic = self.generics[op] = _Generic(op)
        width = math.gcd(generic.sizes[-1], widest) if generic.sizes and not generic.needs_elements() else 1
        for operand in generic.operands.values():
            runs = generic.last in operand.axes
            if operand.maker is not None:
                inner = self._width(operand.maker, widest if runs else 1)
                if runs:
                    width = math.gcd(width, inner) if operand.axes[-1] == generic.last else 1
                continue
            source = defining_op(unshaped(operand.value)).operands[0]
            if operand.value not in self.places:
                self.places[operand.value] = len(self.buffers)
                self.buffers.append(reshaped(source, operand.shape))
            if runs:
                width = math.gcd(width, _WIDEST // _bytes(source))
        return width

    def emit(self, parameters: Sequence[ir.Value], block_threads: int) -> None:
        """Creates the body of the kernel, at the insertion point.

        Args:
            parameters: that represent `buffers`.
            block_threads: threads of a block.
        """
        self.parameters = list(parameters)
        block, thread = gpu.block_id(gpu.Dimension.x), threads.thread_id()
        first = apply(lambda b, t: (b * block_threads + t) * self.vector, block, thread)
        if self.elements % (block_threads * self.vector) == 0:
            self._store(first)
            return
        with create_if(less_than(first, index(self.elements))):
            self._store(first)

    def _store(self, first: ir.Value) -> None:
        """Computes and stores the vector that begins at an element, counted in row-major order."""
        generic = self.generics[self.first]
        value = self._computed(generic, first, self.vector)
        output, loops = self.parameters[-1], digits(first, generic.sizes)
        if self.vector == 1:
            memref.store(value, output, loops)
        else:
            memory.store_vector(repeated(value, self.vector), output, *loops)

    def _computed(self, generic: _Generic, first: ir.Value, width: int) -> ir.Value:
        """Returns elements of an op's result from a given one on, or the scalar that all of them are."""
        if generic.fold is not None:
            raise Refusal(generic.op, "a sum that another op reads")
        return self._body_value(generic, digits(first, generic.sizes), width)

    def _body_value(self, generic: _Generic, loops: Sequence[ir.Value], width: int) -> ir.Value:
        """Returns what the body of an op yields, or folds, from an iteration on."""
        values = {argument: self._constant(generic, operand) for argument, operand in generic.constants.items()}
        for argument, operand in generic.operands.items():
            values[argument] = self._read(generic, operand, loops, width)
        *body, end = operations_of(generic.body)
        for inner in body:
            if generic.fold is not None and inner == generic.fold.op:
                term = generic.fold.term
                return generic.fold.term_in({term: self._outside(generic, term, values)})
            if inner.name == "linalg.index":
                values[inner.results[0]] = loops[ir.IntegerAttr(inner.attributes["dim"]).value]
                continue
            operands = [self._outside(generic, value, values) for value in inner.operands]
            vector_width = width if any(isinstance(value.type, ir.VectorType) for value in operands) else None
            if vector_width is not None:
                operands = [repeated(value, vector_width) for value in operands]
            values[inner.results[0]] = created(inner, operands, vector_width)
        return self._outside(generic, end.operands[0], values)

    def _read(self, generic: _Generic, operand: _Operand, loops: Sequence[ir.Value], width: int) -> ir.Value:
        """Returns the elements of an operand for a vector of the result; one scalar if they are the same."""
        runs = width > 1 and generic.last in operand.axes
        indices = operand.indices(loops)
        if operand.maker is not None:
            element = _linear(indices, operand.shape)
            return self._computed(self.generics[operand.maker], element, width if runs else 1)
        buffer = self.parameters[self.places[operand.value]]
        if not runs:
            return memref.load(buffer, indices)
        type_ = ir.VectorType.get([width], ir.MemRefType(buffer.type).element_type)
        if operand.axes[-1] == generic.last:
            return memory.load_vector(type_, buffer, *indices)
        place = operand.axes.index(generic.last)
        elements = []
        for number in range(width):
            indices[place] = apply(lambda x, number=number: x + number, loops[generic.last])
            elements.append(memref.load(buffer, indices))
        return ir.Operation.create("vector.from_elements", results=[type_], operands=elements).results[0]

    def _outside(self, generic: _Generic, value: ir.Value, values: dict[ir.Value, ir.Value]) -> ir.Value:
        """Returns the replacement of a value of the body, or a copy of a constant from outside."""
        return values[value] if value in values else self._constant(generic, value)

    def _constant(self, generic: _Generic, value: ir.Value) -> ir.Value:
        maker = producer(unshaped(value))
        number = number_of(maker) if maker is not None else None
        if number is None or number.name != "arith.constant":
            raise Refusal(generic.op, "the body captures a value that is not a constant")
        attribute = number_in(number.attributes["value"])
        if attribute is None:
            raise Refusal(generic.op, "the body captures a constant that is not a splat")
        type_ = ir.ShapedType(value.type).element_type if isinstance(value.type, ir.RankedTensorType) else value.type
        return ir.Operation.create("arith.constant", results=[type_], attributes={"value": attribute}).results[0]


class SumsKernel(ElementsKernel):
    """A kernel that folds the values of a `linalg.generic` over the loops that its result has no axis for.

    A warp folds those of an element where they are neighbours in memory, each lane every 32nd; else a thread does.
    Arguments as for `ElementsKernel`.
    """

    def __init__(self, generic: ir.Operation, output: ir.Value) -> None:
        super().__init__(generic, output)
        self.sums = self.generics[generic]
        self.start = generic.operands[len(generic.operands) - 1]
        fold = self.sums.fold
        if fold is None or str(fold.type) != "i32" or not _is_constant(self.start):
            raise Refusal(generic, "expected i32 sums or products with a constant initial value")
        self.fold = fold
        parallel = len(shape_of(output))
        self.reduced = self.sums.sizes[parallel:]
        self.terms = math.prod(self.reduced)
        longest = max(self.sums.operands.values(), key=lambda operand: len(operand.axes))
        self.lanes = threads.WARP if longest.axes[-1] == self.sums.last and self.terms >= threads.WARP else 1

    def blocks(self, block_threads: int) -> int:
        """Returns the blocks of the grid.

        Args:
            block_threads: threads of a block.
        """
        return -(-self.elements * self.lanes // block_threads)

    def _width(self, op: ir.Operation, widest: int) -> int:
        return super()._width(op, 1)

    def emit(self, parameters: Sequence[ir.Value], block_threads: int) -> None:
        """Creates the body of the kernel, at the insertion point.

        Args:
            parameters: that represent `buffers`.
            block_threads: threads of a block.
        """
        self.parameters = list(parameters)
        at_once = block_threads // self.lanes
        block, thread = gpu.block_id(gpu.Dimension.x), threads.thread_id()
        element = apply(lambda b, t: b * at_once + ir.AffineExpr.get_floor_div(t, self.lanes), block, thread)
        if self.elements % at_once == 0:
            self._fold(element)
            return
        with create_if(less_than(element, index(self.elements))):
            self._fold(element)

    def _fold(self, element: ir.Value) -> None:
        """Computes and stores an element."""
        fold = self.fold
        places = digits(element, self.sums.sizes[: -len(self.reduced)])
        lane = lane_id() if self.lanes > 1 else index(0)
        # Not an scf.for: later steps search for the loop over k.
        loop = affine.AffineForOp(0, -(-self.terms // self.lanes), iter_args=[fold.neutral()])
        with ir.InsertionPoint(loop.body):
            (so_far,) = loop.inner_iter_args
            number = apply(lambda i, x: i * self.lanes + x, loop.induction_variable, lane)
            affine.yield_([fold.folded(so_far, self._value(number, places))])
        total = over_lanes(fold, loop.results[0], (16, 8, 4, 2, 1) if self.lanes > 1 else ())
        total = fold.folded(self._constant(self.sums, self.start), total)
        if self.lanes == 1:
            memref.store(total, self.parameters[-1], places)
            return
        with create_if(equal(lane, index(0))):
            memref.store(total, self.parameters[-1], places)

    def _value(self, number: ir.Value, places: Sequence[ir.Value]) -> ir.Value:
        """Returns the value of an iteration of the folded loops, the neutral element after the last one."""
        if self.terms % self.lanes == 0:
            return self._body_value(self.sums, [*places, *digits(number, self.reduced)], 1)
        branch = scf.IfOp(less_than(number, index(self.terms)), [self.fold.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.yield_([self._body_value(self.sums, [*places, *digits(number, self.reduced)], 1)])
        with ir.InsertionPoint(branch.else_block):
            scf.yield_([self.fold.neutral()])
        return branch.results[0]


def prepared_kernel(generic: ir.Operation, output: ir.Value) -> ElementsKernel:
    """Returns the kernel that computes the result of a `linalg.generic`.

    Args:
        generic: the op, on tensors.
        output: the buffer of the result.
    """
    output_map = indexing_maps(generic)[-1]
    return (SumsKernel if output_map.n_dims > len(output_map.results) else ElementsKernel)(generic, output)


def _bytes(buffer: ir.Value) -> int:
    return int(types.byte_width(ir.MemRefType(buffer.type).element_type))


def _linear(indices: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """Returns the number of an element in row-major order."""
    if not indices:
        return index(0)

    def total(*parts: ir.AffineExpr) -> ir.AffineExpr:
        sum_ = parts[0]
        for part, size in zip(parts[1:], shape[1:]):
            sum_ = sum_ * size + part
        return sum_

    return apply(total, *indices)
