"""Dead code of a function: operands that bodies do not use, and ops whose results have no users.

A body such as `x - x` of integers folds to a constant, and a choice between two equal values to this value. The operand
is then removed, so that the epilogue does not read it; if it was the product, the function may have no product left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, indexing_maps, loops_of
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import attributes_of, origin, producer, walk
from stepladder.payload.reference_views import VIEWS

_GENERIC = "linalg.generic"
# Scalar ops that upstream folds to a value that does not depend on one of their operands.
_FOLDING = frozenset(
    f"arith.{name}"
    for name in (
        *("select", "cmpi", "cmpf", "subi", "muli", "andi", "ori", "xori", "remsi", "remui"),
        *("maxsi", "minsi", "maxui", "minui"),
    )
)
_ALLOCATIONS = ("memref.alloc", "memref.alloca")
# Ops that write the buffer that is this operand of theirs, and nothing else.
_WRITES = {"memref.copy": 1, "memref.store": 1, "memref.dealloc": 0}
_PURE_DIALECTS = ("arith", "math", "tensor", "complex")
_PURE = ("memref.load", "memref.get_global", "bufferization.to_tensor", "linalg.index", "linalg.yield", "tensor.yield")


def fold(function: ir.Operation) -> None:
    """Folds bodies of `linalg.generic` on tensors, by upstream's folds, whose results no longer depend on an operand
    then, and leaves out operands that bodies do not read. Inputs that nothing has written are zeros, and slices that
    linalg ops overwrite become empty tensors.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, _GENERIC):
        if len(op.results) != len(op.regions[0].blocks[0].operations[-1].operands):
            continue  # on buffers
        for inner in reversed(list(op.regions[0].blocks[0].operations)):
            if inner.operation.results and _is_pure(inner.operation) and not any(_uses(inner.operation)):
                inner.operation.erase()
        _define_elements(op)
        if any(inner.name in _FOLDING for inner in walk(op)):
            _fold_body(op)
        _leave_out_operands(op)
    for slice_ in walk(function, "tensor.extract_slice"):
        _overwrite_empty(slice_)


def _define_elements(op: ir.Operation) -> None:
    """Has a body read zeros instead of inputs that nothing has written: which elements they have is up to us, and a
    kernel has no buffer for them."""
    body = op.regions[0].blocks[0]
    for operand, argument in zip(list(op.operands)[: len(op.operands) - len(op.results)], body.arguments):
        source = producer(origin(operand, (*TENSOR_VIEWS, "tensor.extract_slice")))
        is_number = isinstance(argument.type, (ir.FloatType, ir.IntegerType))
        if source is None or source.name != "tensor.empty" or not is_number or not list(argument.uses):
            continue
        is_float = isinstance(argument.type, ir.FloatType)
        zero = ir.FloatAttr.get(argument.type, 0.0) if is_float else ir.IntegerAttr.get(argument.type, 0)
        with ir.InsertionPoint.at_block_begin(body), op.location:
            constant = ir.Operation.create("arith.constant", [argument.type], attributes={"value": zero})
        argument.replace_all_uses_with(constant.results[0])


def _overwrite_empty(slice_: ir.Operation) -> None:
    """Has linalg ops that overwrite a slice write an empty tensor; the slice goes where nothing else reads it."""
    type_ = ir.RankedTensorType(slice_.results[0].type)
    for use in list(slice_.results[0].uses):
        op, place = use.owner.operation, use.operand_number
        if not op.name.startswith("linalg.") or len(op.regions) != 1 or not type_.has_static_shape:
            continue
        arguments = list(op.regions[0].blocks[0].arguments)
        is_output = len(arguments) == len(op.operands) and place >= len(op.operands) - len(op.results)
        if is_output and not list(arguments[place].uses):
            with ir.InsertionPoint(op), op.location:
                op.operands[place] = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    if not list(slice_.results[0].uses):
        slice_.erase()


def _uses(op: ir.Operation) -> Iterator[bool]:
    """Yields for each result of an op whether something reads it."""
    return (bool(list(result.uses)) for result in op.results)


def _fold_body(op: ir.Operation) -> None:
    """Replaces the body of an op by its folded form where that reads fewer of the op's operands."""
    body = op.regions[0].blocks[0]
    *inner, end = [item.operation for item in body.operations]
    indices = [item for item in inner if item.name == "linalg.index"]
    inner = [item for item in inner if item not in indices]
    captured = [value for value in _captured(op) if not _is_constant(value)]
    operands = [*body.arguments, *captured, *(item.results[0] for item in indices)]
    with op.location:
        module = ir.Module.create()
        type_ = ir.FunctionType.get([value.type for value in operands], [value.type for value in end.operands])
        with ir.InsertionPoint(module.body):
            attributes = {"sym_name": ir.StringAttr.get("body"), "function_type": ir.TypeAttr.get(type_)}
            alone = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = alone.regions[0].blocks.append(*type_.inputs, arg_locs=[op.location] * len(operands))
        point = ir.InsertionPoint(block)
        constants = [producer(value) for value in _captured(op) if _is_constant(value)]
        mapping = clone_ops(
            [item for item in constants if item is not None], dict(zip(operands, block.arguments)), point
        )
        mapping = clone_ops(inner, mapping, point)
        with point:
            ir.Operation.create("func.return", operands=[mapping[value] for value in end.operands])
    passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
    (alone,) = walk(module, "func.func")
    block = alone.regions[0].blocks[0]
    count = len(body.arguments)
    reads = [bool(list(argument.uses)) for argument in body.arguments]
    if [bool(list(argument.uses)) for argument in block.arguments][:count] == reads:
        return
    *ops, last = [item.operation for item in block.operations]
    mapping = clone_ops(ops, dict(zip(block.arguments, operands)), ir.InsertionPoint(end))
    for number, value in enumerate(last.operands):
        end.operands[number] = mapping[value]
    for item in reversed(inner):
        item.erase()


def _captured(op: ir.Operation) -> list[ir.Value]:
    """Returns the values from outside of an op that its body reads, each once."""
    inner_values = {value for inner in walk(op) if inner != op for value in inner.results}
    inner_values |= {
        value for inner in walk(op) for region in inner.regions for block in region.blocks for value in block.arguments
    }
    operands = [value for inner in walk(op) if inner != op for value in inner.operands]
    return [value for value in dict.fromkeys(operands) if value not in inner_values]


def _is_constant(value: ir.Value) -> bool:
    source = producer(value)
    return source is not None and source.name == "arith.constant"


def _leave_out_operands(op: ir.Operation) -> None:
    """Creates an op again without the inputs that its body does not read, if the others have all of its loops."""
    body = op.regions[0].blocks[0]
    count = len(op.operands) - len(op.results)
    maps = indexing_maps(op)
    used_operands = [number for number in range(count) if list(body.arguments[number].uses)]
    places = [*used_operands, *range(count, len(op.operands))]
    loops = {loop for number in places for loop in loops_of(maps[number])}
    if len(used_operands) == count or len(loops) < maps[0].n_dims:
        return
    generic_attributes = ("indexing_maps", "operandSegmentSizes")
    attributes = {name: value for name, value in attributes_of(op).items() if name not in generic_attributes}
    with ir.InsertionPoint(op), op.location:
        operands = list(op.operands)
        new, block = create_generic(
            [operands[number] for number in used_operands],
            operands[count:],
            [maps[number] for number in places],
            attributes,
        )
    mapping: dict[ir.Value, ir.Value] = {
        body.arguments[number]: argument for number, argument in zip(places, block.arguments)
    }
    clone_ops([item.operation for item in body.operations], mapping, ir.InsertionPoint(block))
    for old, result in zip(op.results, new.results):
        old.replace_all_uses_with(result)
    op.erase()


def eliminate(function: ir.Operation, is_product: Callable[[ir.Operation], bool]) -> None:
    """Erases the ops at the top level of a function that neither results nor buffers of the caller depend on.

    A buffer that the function allocates is read by what a result depends on, or its writes go too. Ops that are not
    known to do nothing else stay, with what they read. A function none of whose products would stay is not changed: the
    rule of payloads says why nothing takes them.

    Args:
        function: of one block; another one stays as it is.
        is_product: tells whether an op may be a contraction.
    """
    if len(function.regions[0].blocks) != 1:
        return
    ops = [op.operation for op in function.regions[0].blocks[0].operations]
    writers: dict[ir.Value, list[ir.Operation]] = {}
    pending: list[ir.Operation] = []
    for op in ops:
        buffers = _written(op)
        if buffers is None:
            pending.append(op)
        for buffer in buffers or ():
            writers.setdefault(buffer, []).append(op)
    inside, live = set(ops), set[ir.Operation]()
    while pending:
        op = pending.pop()
        if op in live:
            continue
        live.add(op)
        for value in _values_of(op):
            source = producer(value)
            if source in inside and source not in live:
                pending.append(source)
            pending += writers.pop(origin(value, VIEWS), ())
    products = [op for op in ops if is_product(op)]
    if products and live.isdisjoint(products):
        return
    for op in reversed(ops):
        if op not in live:
            op.erase()


def _values_of(op: ir.Operation) -> Iterator[ir.Value]:
    """Yields the values that an op and the ops in it take; those that are made in it are no op of the function's."""
    for inner in walk(op):
        yield from inner.operands


def _written(op: ir.Operation) -> list[ir.Value] | None:
    """Returns the buffers of the function that an op writes, where it does nothing else beside its results; None for an
    op that may."""
    if any(not _is_pure(inner) for inner in walk(op) if inner != op):
        return None
    if op.name.startswith("linalg."):
        targets = list(op.operands)[len(op.operands) - _outputs_of(op) :]
        targets = [value for value in targets if isinstance(value.type, ir.MemRefType)]
    elif op.name in _WRITES:
        targets = [op.operands[_WRITES[op.name]]]
    else:
        is_known = _is_pure(op) or op.name in (*VIEWS, *_ALLOCATIONS)
        return [] if is_known and op.name.rpartition(".")[2] != "yield" else None
    buffers = [origin(value, VIEWS) for value in targets]
    sources = [producer(buffer) for buffer in buffers]
    return buffers if all(item is not None and item.name in _ALLOCATIONS for item in sources) else None


def _outputs_of(op: ir.Operation) -> int:
    """Returns how many of an op's last operands are its outputs."""
    if "operandSegmentSizes" in op.attributes:
        return list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[-1]
    return 1


def _is_pure(op: ir.Operation) -> bool:
    """Returns whether an op only makes its results, of scalars, tensors and buffers that it reads."""
    if any(isinstance(result.type, ir.MemRefType) for result in op.results) and op.name != "memref.get_global":
        return False
    return op.name in _PURE or op.name.partition(".")[0] in _PURE_DIALECTS
