"""`tc.prepare_operands`: computes what makes A and B by kernels in front of the matmul's, which write workspaces."""

import math
from collections.abc import Sequence

from stepladder.extension.lib import memory, threads
from stepladder.extension.lib.arithmetic import apply, digits, index, less_than
from stepladder.extension.lib.control_flow import create_if, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.elementwise import create_scalar_op
from stepladder.extension.lib.launches import launch_kernel
from stepladder.extension.lib.workspaces import WORKSPACE, create_workspace, is_workspace
from stepladder.mlir import types
from stepladder.mlir.bindings import gpu, ir, memref
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import defining_op, producer, walk
from stepladder.payload.front.rewrite import reshaped


class PrepareOperands(Tc.Operation, name="prepare_operands"):
    """Converts the `linalg.generic` on tensors that a workspace is written from to a kernel in front of the matmul's.

    A thread computes a vector of adjacent elements, the widest that divides the rows of the result and is of at most 16
    bytes in every type that is loaded or stored; adjacent threads have adjacent vectors. Each scalar op of the body
    becomes the same op on vectors, so that values are rounded where the body rounds them. What operands hold for whole
    rows of the innermost loop is loaded once. Where an op reads the result of another one through a reshape, so that
    they are not fused, the kernel computes that where it is read.

    Operands: a handle to the module.
    Attributes: threads, of a block.
    Refuses: a workspace that is written from anything else than such ops, reshapes of their results, and buffers and
        constants, which are copied; reductions, and results that are written in another order than that of the loops.
    """

    target: Handle
    threads: ir.IntegerAttr


_WIDEST = 16  # bytes of a load or a store
_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape", "tensor.cast")


def _shape(value: ir.Value) -> list[int]:
    return list(ir.ShapedType(value.type).shape)


def _write(store: ir.Operation, number: int, block_threads: int) -> None:
    """Launches a kernel that computes what a `bufferization.materialize_in_destination` writes, at the insertion point.

    Args:
        store: the op, which writes a workspace.
        number: of the kernel.
        block_threads: threads of a block.
    """
    value, buffer = store.operands
    source = _unshaped(value)
    generic = defining_op(source)
    if generic.name == "bufferization.to_tensor" or _number(generic) is not None:
        generic = _copied(source)
    if generic.name != "linalg.generic":
        raise Refusal(generic, "expected a workspace that is written from a linalg.generic")
    function = generic.parent
    assert function is not None  # the op is at its top level
    output = reshaped(_as_it_is_read(store, buffer), _shape(source))
    kernel = _Kernel(generic, output)
    name = f"{ir.StringAttr(function.attributes['sym_name']).value}_prepare_{number}"
    blocks = -(-kernel.elements // (block_threads * kernel.vector))
    launch_kernel(function, name, (blocks, block_threads), kernel.buffers, kernel.emit, [WORKSPACE])


def _copied(value: ir.Value) -> ir.Operation:
    """Returns a `linalg.generic` that copies a tensor: elementwise ops that change nothing have folded to it."""
    type_ = ir.RankedTensorType(value.type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    generic, body = create_generic([value], [empty], [ir.AffineMap.get_identity(type_.rank)] * 2)
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=[body.arguments[0]])
    return generic


def _as_it_is_read(store: ir.Operation, workspace: ir.Value) -> ir.Value:
    """Returns a workspace in place of another that is only read through a reshape: one of the extents that it has then,
    so that the matmul's kernel computes no indices of others."""
    readers = [use.owner.operation for use in workspace.uses if use.owner.operation != store]
    views = [view for view in readers if view.name in ("memref.collapse_shape", "memref.expand_shape")]
    if len(views) != 1 or len(readers) != 1:
        return workspace
    (view,) = views
    found = create_workspace(ir.MemRefType(view.results[0].type), whole=True)
    view.results[0].replace_all_uses_with(found)
    return found


def _unshaped(value: ir.Value) -> ir.Value:
    maker = producer(value)
    while maker is not None and maker.name in _RESHAPES:
        value = maker.operands[0]
        maker = producer(value)
    return value


def _number(maker: ir.Operation) -> ir.Operation | None:
    """Returns the constant whose copies an op makes, a number or a tensor of copies; None where it does not."""
    if maker.name == "linalg.fill":
        return producer(maker.operands[0])
    return maker if maker.name == "arith.constant" else None


def _is_constant(value: ir.Value) -> bool:
    maker = producer(_unshaped(value))
    return maker is not None and _number(maker) is not None


def _maker(value: ir.Value) -> ir.Operation | None:
    """Returns the op of which a tensor is the result, reshaped or as it is; None for a buffer's content."""
    maker = producer(_unshaped(value))
    if maker is None or maker.name not in ("linalg.generic", "bufferization.to_tensor"):
        raise Refusal(maker or defining_op(value), "expected buffers, constants, or results of linalg.generic")
    return maker if maker.name == "linalg.generic" else None


class _Operand:
    """An input of a `linalg.generic`: its axes, as loops or None for an index of 0, and what holds its elements."""

    def __init__(self, operand: ir.Value, map_: ir.AffineMap) -> None:
        self.value = operand
        self.shape = _shape(operand)
        self.axes = [item.position if isinstance(item, ir.AffineDimExpr) else None for item in map_.results]
        self.maker = _maker(operand)

    def indices(self, loops: Sequence[ir.Value]) -> list[ir.Value]:
        """Returns the indices of the element that an iteration reads."""
        return [index(0) if axis is None else loops[axis] for axis in self.axes]


class _Generic:
    """A `linalg.generic` with parallel loops, whose result has an axis for each loop, in their order."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self.body = op.regions[0].blocks[0]
        *maps, written = indexing_maps(op)
        *inputs, output = op.operands
        self.sizes = _shape(output)
        self.last = len(self.sizes) - 1
        *arguments, result = self.body.arguments
        if len(op.results) != 1 or written != ir.AffineMap.get_identity(len(self.sizes)) or list(result.uses):
            raise Refusal(op, "expected parallel loops, and one result that is written in their order")
        self.operands: dict[ir.Value, _Operand] = {}
        self.constants: dict[ir.Value, ir.Value] = {}
        for argument, operand, map_ in zip(arguments, inputs, maps):
            if not list(argument.uses):
                continue
            if not isinstance(operand.type, ir.RankedTensorType) or _is_constant(operand):
                self.constants[argument] = operand
            else:
                self.operands[argument] = _Operand(operand, map_)

    def needs_elements(self) -> bool:
        """Tells whether the body reads the index of the innermost loop, which elements of a vector differ in."""
        return any(ir.IntegerAttr(op.attributes["dim"]).value == self.last for op in walk(self.op, "linalg.index"))


class _Kernel:
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
        self.elements = math.prod(_shape(output))
        self.vector = self._width(generic, _WIDEST // _bytes(output))
        self.buffers.append(output)

    def _width(self, op: ir.Operation, widest: int) -> int:
        """Collects what an op reads; returns how many adjacent elements a thread computes, `widest` at most."""
        generic = self.generics[op] = _Generic(op)
        found = math.gcd(generic.sizes[-1], widest) if generic.sizes and not generic.needs_elements() else 1
        for operand in generic.operands.values():
            runs = generic.last in operand.axes
            if operand.maker is not None:
                inner = self._width(operand.maker, widest if runs else 1)
                if runs:
                    found = math.gcd(found, inner) if operand.axes[-1] == generic.last else 1
                continue
            read = defining_op(_unshaped(operand.value)).operands[0]
            if operand.value not in self.places:
                self.places[operand.value] = len(self.buffers)
                self.buffers.append(reshaped(read, operand.shape))
            if runs:
                found = math.gcd(found, _WIDEST // _bytes(read))
        return found

    def emit(self, parameters: Sequence[ir.Value], block_threads: int) -> None:
        """Creates the body of the kernel, at the insertion point.

        Args:
            parameters: that stand for `buffers`.
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
            memory.store_vector(_broadcast(value, self.vector), output, *loops)

    def _computed(self, generic: _Generic, first: ir.Value, width: int) -> ir.Value:
        """Returns elements of an op's result from a given one on, or the number that all of them are."""
        loops = digits(first, generic.sizes)
        values = {argument: self._constant(generic, operand) for argument, operand in generic.constants.items()}
        for argument, operand in generic.operands.items():
            values[argument] = self._read(generic, operand, loops, width)
        for inner in operations_of(generic.body):
            if inner.name == "linalg.yield":
                return self._outside(generic, inner.operands[0], values)
            if inner.name == "linalg.index":
                values[inner.results[0]] = loops[ir.IntegerAttr(inner.attributes["dim"]).value]
                continue
            operands = [self._outside(generic, value, values) for value in inner.operands]
            widened = width if any(isinstance(value.type, ir.VectorType) for value in operands) else None
            if widened is not None:
                operands = [_broadcast(value, widened) for value in operands]
            values[inner.results[0]] = create_scalar_op(inner, operands, widened)
        raise Refusal(generic.op, "expected a body that ends in linalg.yield")

    def _read(self, generic: _Generic, operand: _Operand, loops: Sequence[ir.Value], width: int) -> ir.Value:
        """Returns the elements of an operand for a vector of the result; one number where they are the same."""
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
        """Returns what stands for a value of the body, or a copy of a constant from outside."""
        return values[value] if value in values else self._constant(generic, value)

    def _constant(self, generic: _Generic, value: ir.Value) -> ir.Value:
        maker = producer(_unshaped(value))
        number = _number(maker) if maker is not None else None
        if number is None or number.name != "arith.constant":
            raise Refusal(generic.op, "the body takes a value from outside that is no constant")
        attribute = number.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr):
            if not attribute.is_splat:
                raise Refusal(generic.op, "the body takes a constant of several numbers")
            attribute = attribute.get_splat_value()
        type_ = ir.ShapedType(value.type).element_type if isinstance(value.type, ir.RankedTensorType) else value.type
        return ir.Operation.create("arith.constant", results=[type_], attributes={"value": attribute}).results[0]


def _bytes(buffer: ir.Value) -> int:
    return int(types.byte_width(ir.MemRefType(buffer.type).element_type))


def _linear(indices: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """Returns the number of an element in row-major order."""
    if not indices:
        return index(0)

    def total(*parts: ir.AffineExpr) -> ir.AffineExpr:
        found = parts[0]
        for part, size in zip(parts[1:], shape[1:]):
            found = found * size + part
        return found

    return apply(total, *indices)


def _broadcast(value: ir.Value, width: int) -> ir.Value:
    if isinstance(value.type, ir.VectorType):
        return value
    type_ = ir.VectorType.get([width], value.type)
    return ir.Operation.create("vector.broadcast", results=[type_], operands=[value]).results[0]


@transform_op(PrepareOperands)
def prepare_operands(payload: ir.Operation, op: PrepareOperands, rewriter: Rewriter) -> None:
    """Rewrites what workspaces below `payload` are written from; see the op."""
    stores = [
        store for store in walk(payload, "bufferization.materialize_in_destination") if is_workspace(store.operands[1])
    ]
    for number, store in enumerate(stores):
        with ir.InsertionPoint(store), store.location:
            _write(store, number, op.threads.value)
        rewriter.erase_op(store)
