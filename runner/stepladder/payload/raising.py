"""Raises a function on buffers and scalars to one on tensors, which may become several kernels.

A buffer becomes the tensor that it holds: an argument where an op reads what the caller put there, and a result where
an op writes it. Scalars become tensors of one element.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import attributes_of, origin, producer, walk
from stepladder.mlir.types import is_number
from stepladder.payload.aliases import reads_what_it_writes
from stepladder.payload.arguments import ALIAS, UPDATED
from stepladder.payload.raised_ops import (
    as_number,
    decides,
    deciding,
    is_output,
    names_a_symbol,
    reads_elements,
    stored_number,
)
from stepladder.payload.raised_views import VIEWS, element_order, read_view, tensor_of, write_view
from stepladder.payload.refusal import refuse
from stepladder.payload.rewrites import branches
from stepladder.payload.rewrites.unrolled_loops import AT_MOST
from stepladder.payload.signature import set_signature

_SOFTMAX = "linalg.softmax"
_ACCEPTED = (
    "accepted: linalg ops, memref.alloc, memref.copy, reshapes, casts, transposes and memref.subview of static sizes "
    "of buffers, memref.load, memref.store, bufferization.to_tensor, bufferization.to_buffer, "
    "bufferization.materialize_in_destination, ops on tensors, constants"
)
_ALLOCATIONS = ("memref.alloc", "memref.alloca")
_NOTHING = ("memref.dealloc",)
# Those that `payload.rewrites.unrolled_loops` writes out are gone.
_LOOPS = ("scf.for", "scf.forall", "scf.parallel", "scf.while")
# Encodings of generic and of global memory in NVVM.
_GLOBAL_SPACES = (0, 1)
_QUANTIZED = "linalg.quantized_"
_OF_NUMBERS = "accepted: linalg.fill, zero points, and the bodies of linalg.generic and linalg.map"


def is_raisable(function: ir.Operation) -> bool:
    """Returns whether a function has arguments or results that raising changes: static buffers, or scalars as
    arguments; the others are tensors.

    Args:
        function: a `func.func`.
    """
    if len(function.regions[0].blocks) != 1:
        return False
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    changes = [_is_buffer(item) or is_number(item) for item in type_.inputs]
    other_types = [item for item, is_changed in zip(type_.inputs, changes) if not is_changed]
    other_types += [item for item in type_.results if not _is_buffer(item)]
    has_changes = any(changes) or any(map(_is_buffer, type_.results))
    return has_changes and all(isinstance(item, ir.RankedTensorType) for item in other_types)


def _is_buffer(type_: ir.Type) -> bool:
    if not isinstance(type_, ir.MemRefType) or not type_.has_static_shape or not is_number(type_.element_type):
        return False
    return _is_global(type_.memory_space) and type_.affine_map == ir.AffineMap.get_identity(type_.rank)


def _is_global(space: ir.Attribute | None) -> bool:
    """Returns whether a memory space is global memory, in which the caller's buffers are."""
    if isinstance(space, ir.IntegerAttr):
        return space.value in _GLOBAL_SPACES
    return space is None or str(space) == "#gpu.address_space<global>"


def raised(function: ir.Operation) -> ir.Module:
    """Returns a module with a function on tensors that computes what a function on buffers does.

    Its arguments are those that are read, in their order. Its results are those of the function, and then what each
    buffer holds that is written, in the order of the arguments. One that is both names its result (`UPDATED`), and
    gives its memory to it (`ALIAS`).

    Args:
        function: for which `is_raisable` holds; it stays as it is.

    Raises:
        StepladderError: an op on buffers that has no counterpart on tensors, or one that reads elements of a buffer
            that it writes at other positions.
    """
    with function.location:
        module = ir.Module.create()
        types = [argument.type for argument in function.regions[0].blocks[0].arguments]
        with ir.InsertionPoint(module.body):
            new = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": function.attributes["sym_name"],
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get([], [])),
                },
                regions=1,
            )
        locations = [argument.location for argument in function.regions[0].blocks[0].arguments]
        block = new.regions[0].blocks.append(*map(_raised_type, types), arg_locs=locations)
    marks = _Raising(function, block).run()
    set_signature(new, [value.type for value in _terminator(block).operands])
    if any(mark is not None for mark in marks):
        i32, names = ir.IntegerType.get_signless(32), (UPDATED, ALIAS)
        numbers = (None if mark is None else ir.IntegerAttr.get(i32, mark) for mark in marks)
        dictionaries = ({} if number is None else dict.fromkeys(names, number) for number in numbers)
        new.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(item) for item in dictionaries])
    assert module.operation.verify()
    return module


def _terminator(block: ir.Block) -> ir.Operation:
    """Returns the last op of a block.

    Args:
        block: with one op at least.
    """
    return block.operations[len(block.operations) - 1].operation


def _raised_type(type_: ir.Type) -> ir.Type:
    if isinstance(type_, ir.MemRefType):
        return tensor_of(type_)
    return ir.RankedTensorType.get([], stored_number(type_)) if is_number(type_) else type_


class _Raising:
    """Writes the function on tensors.

    Args:
        function: on buffers.
        block: of the new function, with an argument for each of the function's.
    """

    def __init__(self, function: ir.Operation, block: ir.Block) -> None:
        self.old = function.regions[0].blocks[0]
        self.block = block
        arguments = list(zip(self.old.arguments, block.arguments))
        # The current contents of buffers, scalars as tensors, and other values.
        self.held: dict[ir.Value, ir.Value] = {old: new for old, new in arguments if _is_memory(old)}
        self.numbers: dict[ir.Value, ir.Value] = {old: new for old, new in arguments if is_number(old.type)}
        self.known: dict[ir.Value, ir.Value] = dict(arguments)
        self.written: set[ir.Value] = set()

    def run(self) -> list[int | None]:
        """Raises all ops, and leaves out the arguments that nothing reads.

        Returns:
            The numbers of the results that the arguments hold afterwards; None of those that are not written.
        """
        *ops, end = (op.operation for op in self.old.operations)
        for op in ops:
            with ir.InsertionPoint(self.block), op.location:
                self._raise(op)
        results = [self._read(value, end) if _is_memory(value) else self.known[value] for value in end.operands]
        buffers = [value for value in self.old.arguments if value in self.written]
        numbers = {value: len(results) + place for place, value in enumerate(buffers)}
        results += [self.held[value] for value in buffers]
        with ir.InsertionPoint(self.block), end.location:
            ir.Operation.create("func.return", operands=results)
        marks: list[int | None] = []
        for old, new in reversed(list(zip(self.old.arguments, list(self.block.arguments)))):
            if _is_memory(old) and not list(new.uses):
                self.block.erase_argument(new.arg_number)
            else:
                marks.insert(0, numbers.get(old))
        return marks

    def _raise(self, op: ir.Operation) -> None:
        """Creates the counterpart of an op."""
        inner_operands = [value for inner in walk(op) for value in inner.operands]
        if op.name in _ALLOCATIONS:
            type_ = ir.MemRefType(op.results[0].type)
            if not type_.has_static_shape or len(op.operands):
                raise refuse(op, "a buffer whose size is not static", _ACCEPTED)
            self.held[op.results[0]] = ir.Operation.create("tensor.empty", results=[tensor_of(type_)]).results[0]
        elif op.name in _NOTHING or op.name in VIEWS:
            return
        elif op.name == "memref.copy":
            self._write(op.operands[1], self._read(op.operands[0], op), op)
        elif op.name == "memref.load":
            indices = [self._scalar(value) for value in list(op.operands)[1:]]
            self.known[op.results[0]] = _element(self._read(op.operands[0], op), indices)
        elif op.name == "memref.store":
            value, buffer, *indices = op.operands
            operands = [self._scalar(value), self._read(buffer, op), *map(self._scalar, indices)]
            new_tensor = ir.Operation.create("tensor.insert", results=[operands[1].type], operands=operands)
            self._write(buffer, new_tensor.results[0], op)
        elif op.name == "bufferization.to_tensor":
            self.known[op.results[0]] = self._read(op.operands[0], op)
        elif op.name == "bufferization.to_buffer":
            self.held[op.results[0]] = self.known[op.operands[0]]
        elif op.name == "bufferization.materialize_in_destination" and _is_memory(op.operands[1]):
            self._write(op.operands[1], self.known[op.operands[0]], op)
        elif op.name == "scf.if" and not len(op.results):
            self._raise_branch(op)
        elif decides(op):
            return
        elif op.name.startswith("linalg.") and any(
            _is_memory(value) or value in self.numbers for value in inner_operands
        ):
            self._raise_linalg(op, [value for value in dict.fromkeys(inner_operands) if value in self.numbers])
        elif any(_is_memory(value) for value in (*inner_operands, *op.results)) or any(map(names_a_symbol, walk(op))):
            limits = (
                f" whose bounds are not constant, or of more than {AT_MOST} iterations," if op.name in _LOOPS else ""
            )
            raise refuse(op, f"'{op.name}'{limits} in a function on buffers that is not a single kernel", _ACCEPTED)
        elif len(op.regions) and any(value in self.numbers for value in inner_operands):
            raise refuse(op, f"'{op.name}' of a scalar argument, in a function of several kernels", _OF_NUMBERS)
        else:
            numbers = {value: self._scalar(value) for value in inner_operands if value in self.numbers}
            self.known |= clone_ops([op], {**self.known, **numbers}, ir.InsertionPoint(self.block))

    def _raise_branch(self, op: ir.Operation) -> None:
        """Creates the ops of both branches, and chooses what each buffer holds after them."""
        contents, of_branches = self.held, []
        for region in op.regions:
            self.held = dict(contents)
            for inner in (item.operation for block in region.blocks for item in block.operations):
                if inner.name != "scf.yield":
                    self._check_branch(inner, op)
                    self._raise(inner)
            of_branches.append(self.held)
        self.held = {buffer: self._chosen(op, *(of_branch[buffer] for of_branch in of_branches)) for buffer in contents}

    def _check_branch(self, op: ir.Operation, branch: ir.Operation) -> None:
        """Refuses an op in a branch that must not be computed where the branch is not taken."""
        for inner in walk(op):
            is_of_buffers = inner.name in (*_ALLOCATIONS, *_NOTHING, *VIEWS, "memref.copy")
            if not is_of_buffers and not inner.name.startswith("bufferization."):
                branches.check(inner, branch)

    def _chosen(self, op: ir.Operation, left: ir.Value, right: ir.Value) -> ir.Value:
        """Returns the first of two tensors where the condition of an op holds, and else the second."""
        if left == right:
            return left
        chain = deciding(op.operands[0])
        leaves = [value for item in chain for value in item.operands] if chain else [op.operands[0]]
        numbers = [value for value in dict.fromkeys(leaves) if value in self.numbers]
        identity = ir.AffineMap.get_identity(ir.RankedTensorType(left.type).rank)
        constant = ir.AffineMap.get(identity.n_dims, 0, [])
        empty = ir.Operation.create("tensor.empty", results=[left.type]).results[0]
        tensors = [self.numbers[value] for value in numbers]
        new, body = create_generic([*tensors, left, right], [empty], [constant] * len(tensors) + [identity] * 3)
        arguments = list(body.arguments)
        with ir.InsertionPoint(body):
            values = dict(zip(numbers, map(as_number, arguments, (value.type for value in numbers))))
        values = clone_ops(chain, {**self.known, **values}, ir.InsertionPoint(body))
        with ir.InsertionPoint(body):
            selected = arith.select(values[op.operands[0]], *arguments[len(tensors) : len(tensors) + 2])
            ir.Operation.create("linalg.yield", operands=[selected])
        return new.results[0]

    def _raise_linalg(self, op: ir.Operation, numbers: Sequence[ir.Value]) -> None:
        """Creates a linalg op on tensors, and stores what it writes to buffers; scalars become its first operands."""
        if not len(op.regions) and op.name != _SOFTMAX:
            raise refuse(op, f"'{op.name}' on buffers", _ACCEPTED)
        outputs = [number for number in range(len(op.operands)) if is_output(op, number)]
        if reads_what_it_writes(op, outputs):
            problem = f"{op.name} reads the buffer that it writes, at other elements or iterations"
            raise refuse(op, problem, _ACCEPTED)
        loads = self._loads(op, outputs)
        operands = list(op.operands)
        values = [self._operand(op, number, number in outputs) for number in range(len(operands))]
        if numbers:
            new, block = self._with_numbers(op, numbers, values, outputs)
        else:
            new = ir.Operation.create(
                op.name,
                results=[values[number].type for number in outputs],
                operands=values,
                attributes=attributes_of(op),
                regions=len(op.regions),
            )
            types = [argument.type for region in op.regions for argument in region.blocks[0].arguments]
            block = new.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types)) if types else None
        if block is None:  # a softmax
            pass
        elif op.name == "linalg.fill" and numbers:
            with ir.InsertionPoint(block):
                ir.Operation.create("linalg.yield", operands=[block.arguments[0]])
        else:
            inner = op.regions[0].blocks[0]
            with ir.InsertionPoint(block):
                scalars = [as_number(argument, value.type) for value, argument in zip(numbers, block.arguments)]
            mapping = {
                **self.known,
                **dict(zip([*numbers, *inner.arguments], [*scalars, *list(block.arguments)[len(scalars) :]])),
            }
            for item in (item.operation for item in inner.operations):
                if item in loads:
                    with ir.InsertionPoint(block), item.location:
                        indices = [mapping[value] for value in list(item.operands)[1:]]
                        mapping[item.results[0]] = _element(loads[item], indices)
                else:
                    mapping |= clone_ops([item], mapping, ir.InsertionPoint(block))
        for number, result in zip(outputs, new.results):
            if _is_memory(operands[number]):
                self._write(operands[number], result, op)
        self.known |= dict(zip(op.results, new.results))

    def _loads(self, op: ir.Operation, outputs: Sequence[int]) -> dict[ir.Operation, ir.Value]:
        """Returns the loads in the body of a linalg op, each with the tensor that it reads."""
        output_buffers = [origin(op.operands[number], VIEWS) for number in outputs]
        loads = {}
        for inner in walk(op):
            buffers = [value for value in inner.operands if _is_memory(value)] if inner != op else []
            if not buffers:
                continue
            if inner.name != "memref.load" or inner.parent is None or inner.parent.operation != op:
                raise refuse(inner, f"'{inner.name}' of a buffer inside {op.name}", _ACCEPTED)
            if origin(buffers[0], VIEWS) in output_buffers:
                raise refuse(inner, f"{op.name} loads elements of the buffer that it writes", _ACCEPTED)
            loads[inner] = self._read(buffers[0], op)
        return loads

    def _scalar(self, value: ir.Value) -> ir.Value:
        """Returns a scalar outside of linalg ops; one that is an argument is the element of a tensor."""
        if value not in self.numbers:
            return self.known[value]
        return as_number(_element(self.numbers[value], []), value.type)

    def _operand(self, op: ir.Operation, number: int, is_output: bool) -> ir.Value:
        """Returns the tensor, or the scalar, for an operand of a linalg op; an empty one if it only writes it."""
        value = op.operands[number]
        if not _is_memory(value):
            return self.known[value]
        if is_output and not reads_elements(op, number):
            return ir.Operation.create("tensor.empty", results=[tensor_of(value.type)]).results[0]
        return self._read(value, op)

    def _with_numbers(
        self, op: ir.Operation, numbers: Sequence[ir.Value], values: Sequence[ir.Value], outputs: Sequence[int]
    ) -> tuple[ir.Operation, ir.Block]:
        """Creates a `linalg.generic` for an op that takes scalars; its body is empty."""
        if op.name not in ("linalg.generic", "linalg.fill", "linalg.map") and not op.name.startswith(_QUANTIZED):
            raise refuse(op, f"'{op.name}' has a scalar argument", _OF_NUMBERS)
        maps = element_order(op) if op.name == "linalg.map" else indexing_maps(op)
        inputs = [number for number in range(len(values)) if number not in outputs and op.name != "linalg.fill"]
        constant = ir.AffineMap.get(maps[-1].n_dims, 0, [])
        return create_generic(
            [*(self.numbers[number] for number in numbers), *(values[number] for number in inputs)],
            [values[number] for number in outputs],
            [*[constant] * len(numbers), *(maps[number] for number in (*inputs, *outputs))],
            {"iterator_types": op.attributes["iterator_types"]} if op.name == "linalg.generic" else {},
        )

    def _read(self, buffer: ir.Value, user: ir.Operation) -> ir.Value:
        """Returns the tensor that a buffer or a view holds, created where it is a view."""
        source = producer(buffer)
        if source is not None and source.name in VIEWS:
            return read_view(source, self._read(source.operands[0], user), self._places(source))
        if buffer not in self.held:
            raise refuse(
                user, f"a buffer of type {buffer.type} that is neither an argument nor an allocation", _ACCEPTED
            )
        return self.held[buffer]

    def _places(self, view: ir.Operation) -> list[ir.Value]:
        """Returns the scalars that a view takes beside its buffer."""
        return [self._scalar(value) for value in list(view.operands)[1:]]

    def _write(self, buffer: ir.Value, value: ir.Value, user: ir.Operation) -> None:
        """Notes what a buffer holds; of a view, the buffer that it is of changes."""
        source = producer(buffer)
        if source is not None and source.name in VIEWS:
            tensor = self._read(source.operands[0], user)
            self._write(source.operands[0], write_view(source, value, tensor, self._places(source)), user)
            return
        self._read(buffer, user)
        self.held[buffer] = value
        self.written.add(buffer)


def _element(tensor: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """Creates the op that takes an element of a tensor."""
    type_ = ir.RankedTensorType(tensor.type).element_type
    return ir.Operation.create("tensor.extract", results=[type_], operands=[tensor, *indices]).results[0]


def _is_memory(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)
