"""Writes a planned matmul in the form that pipelines start from: `linalg.matmul` on tensors between buffers."""

from __future__ import annotations

import math

from stepladder.mlir.bindings import arith, bufferization, fill_builtin_region, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.types import reassociation
from stepladder.mlir.windows import window
from stepladder.payload.front.bodies import casts_of_one, structured
from stepladder.payload.front.planned import Elementwise, Input, Matrix, Plan, Read
from stepladder.payload.signature import result_types, set_signature


def rewrite(function: ir.Operation, plan: Plan) -> None:
    """Replaces the body of a function by a planned matmul.

    Arguments keep their indices and shapes; tensors become buffers, and results that are returned become last
    arguments. Operands are reshaped to matrices, without copies.

    Args:
        function: with one block.
        plan: what it computes.
    """
    body = function.regions[0].blocks[0]
    types = result_types(function)
    old = [op.operation for op in body.operations]
    for argument in body.arguments:
        if isinstance(argument.type, ir.RankedTensorType):
            argument.set_type(_buffer_of(argument.type))
    count = len(body.arguments)
    for number in sorted(result.matrix.argument for result in plan.results):
        if number >= count:
            body.add_argument(_buffer_of(types[number - count]), function.location)
    set_signature(function, [])
    with ir.InsertionPoint(old[-1]), plan.location:
        _emit(body, plan)
    end = old.pop()
    if len(end.operands):
        with ir.InsertionPoint(end), end.location:
            ir.Operation.create("func.return")
        old.append(end)
    for op in reversed(old):
        # Bodies of elementwise ops take scalars from outside.
        if op.name != "arith.constant" or not list(op.results[0].uses):
            op.erase()


def _buffer_of(type_: ir.Type) -> ir.MemRefType:
    shaped_type = ir.ShapedType(type_)
    return ir.MemRefType.get(list(shaped_type.shape), shaped_type.element_type)


def _emit(body: ir.Block, plan: Plan) -> None:
    """Emits the new body at the insertion point.

    Sums that begin from a narrower type than theirs begin from zeros, and the summand is added to the product: in the
    op that rounds it where that is all that follows, else in an op of its own. Sums of bf16 become sums of f32 that are
    rounded once.
    """
    acc_type = ir.Type.parse("f32" if plan.acc_type == "bf16" else plan.acc_type)
    adds = plan.start is not None and plan.start.stored != str(acc_type)
    a = _operand(body, plan.a, plan.batch, (plan.m, plan.k))
    b = _operand(body, plan.b, plan.batch, (plan.k, plan.n))
    buffers = [_placed(body, result.matrix, plan.shape_of(result)) for result in plan.results]
    if adds or (plan.start is None and (plan.consumers or plan.acc_type == "bf16")):
        start = _empty(plan.shape, acc_type)
    elif plan.start is not None and plan.start.argument != plan.c.matrix.argument:
        start = _to_tensor(_placed(body, plan.start, plan.shape), writable=True)
    else:
        start = _destination(plan, buffers[0])
    if adds or plan.start is None:
        is_integer = isinstance(acc_type, ir.IntegerType)
        zero = ir.IntegerAttr.get(acc_type, 0) if is_integer else ir.FloatAttr.get(acc_type, 0)
        start = _structured("linalg.fill", [arith.constant(acc_type, zero), start], {})
    product = _structured(_name(plan), [a, b, start], {"indexing_maps": _maps(plan)})
    rounds = False
    if adds or plan.acc_type == "bf16":
        # The type of the sums where the payload takes them: its own rounding, if that is next, is done here.
        is_one = len(plan.consumers) == 1 and not plan.others
        rounds = is_one and casts_of_one(structured(plan.consumers[0].op)) == ["arith.truncf"]
        element = ir.Type.parse(plan.consumers[0].element if rounds else plan.acc_type)
        product = _begin(body, plan, product, element, buffers[0] if rounds or plan.c.stage == 0 else None)
    stages = {plan.c.stage: product} if rounds else _consume(body, plan, product, buffers)
    with plan.location:
        for result, buffer in zip(plan.results, buffers):
            value = _reshaped(stages[result.stage], list(ir.MemRefType(buffer.type).shape))
            bufferization.materialize_in_destination(None, value, buffer, restrict=True, writable=True)


def _begin(body: ir.Block, plan: Plan, product: ir.Value, element: ir.Type, buffer: ir.Value | None) -> ir.Value:
    """Emits an op that adds to the product what its sums begin from, if anything, and rounds it; returns the result.

    Args:
        body: of the function.
        plan: whose start is added.
        product: the sums without it.
        element: type of the result.
        buffer: C, if the result is stored there.
    """
    shape, axes = plan.shape, tuple(range(len(plan.shape)))
    sums = ir.RankedTensorType(product.type).element_type
    output = _empty(shape, element) if buffer is None else _destination(plan, buffer)
    inputs = [(product, axes)]
    start_number = None
    if plan.start is not None:
        is_output = buffer is not None and plan.start.argument == plan.c.matrix.argument
        if not is_output:
            matrix = _placed(body, plan.start, shape)
            inputs.append((_to_tensor(matrix, writable=plan.start.argument == plan.c.matrix.argument), axes))
        start_number = 1
    generic, block = _generic(inputs, output, len(shape))
    with ir.InsertionPoint(block):
        value: ir.Value = block.arguments[0]
        if start_number is not None:
            is_integer = isinstance(sums, ir.IntegerType)
            add, extend = (arith.addi, arith.extsi) if is_integer else (arith.addf, arith.extf)
            value = add(value, extend(sums, block.arguments[start_number]))
        ir.Operation.create("linalg.yield", operands=[value if element == sums else arith.truncf(element, value)])
    return generic.results[0]


def _consume(body: ir.Block, plan: Plan, product: ir.Value, buffers: list[ir.Value]) -> dict[int, ir.Value]:
    """Emits elementwise ops on the product; returns the product at each stage.

    Args:
        body: of the function.
        plan: whose elementwise ops are emitted.
        product: the sums.
        buffers: of the results.
    """
    stages = {0: product}
    shape = plan.shape
    buffer_of = {result.stage: buffer for result, buffer in zip(plan.results, buffers)}

    def operand(source: Input, value: ir.Value | None, *, writable: bool = False) -> tuple[ir.Value, tuple[int, ...]]:
        if isinstance(source, int):
            return stages[source], tuple(range(len(shape)))
        if source is None:
            assert value is not None  # a scalar
            return value, ()
        view = _placed(body, source, [shape[axis] for axis in source.axes])
        tensor = _to_tensor(view, writable=writable)
        return _extended(tensor, source.element) if source.element != source.stored else tensor, source.axes

    for item in plan.consumers:
        with item.op.location:
            inputs = [operand(read, value) for read, value in zip(item.inputs, item.op.operands)]
            if item.begin is not None:
                stages[item.stage] = _fold(item, inputs, plan)
                continue
            if item.output is not None:
                output = operand(item.output, None, writable=True)[0]
            elif item.stage in buffer_of:
                output = _destination(plan, buffer_of[item.stage])
            else:
                output = _empty(shape, ir.Type.parse(item.element))
            stages[item.stage] = _elementwise(item.op, inputs, output)
    return stages


def _fold(item: Elementwise, inputs: list[tuple[ir.Value, tuple[int, ...]]], plan: Plan) -> ir.Value:
    """Emits a reduction of the rows or columns of the product; inputs are values, and the loops along their axes."""
    (result,) = [result for result in plan.results if result.stage == item.stage]
    assert result.kept is not None  # it is a reduction
    element = ir.Type.parse(item.element)
    empty = _empty(plan.shape_of(result), element)
    begin = _structured("linalg.fill", [arith.constant(element, item.begin), empty], {})
    return _elementwise(item.op, inputs, begin, (result.kept,))


def _elementwise(
    op: ir.Operation,
    inputs: list[tuple[ir.Value, tuple[int, ...]]],
    output: ir.Value,
    kept: tuple[int, ...] | None = None,
) -> ir.Value:
    """Emits an op with the body of another one.

    Args:
        op: the other one.
        inputs: values, and the loops along their axes.
        output: a tensor.
        kept: of a reduction of a matrix, the loops that its output has; else None.
    """
    rank = ir.RankedTensorType(output.type).rank if kept is None else 2
    generic, block = _generic(inputs, output, rank, kept)
    body = op.regions[0].blocks[0]
    ops = [inner.operation for inner in body.operations]
    clone_ops(ops, dict(zip(body.arguments, block.arguments)), ir.InsertionPoint(block))
    return generic.results[0]


def _extended(tensor: ir.Value, element: str) -> ir.Value:
    """Emits the extension of a tensor."""
    type_ = ir.RankedTensorType(tensor.type)
    wide_type = ir.Type.parse(element)
    axes = tuple(range(type_.rank))
    generic, block = _generic([(tensor, axes)], _empty(list(type_.shape), wide_type), type_.rank)
    with ir.InsertionPoint(block):
        extend = arith.extsi if isinstance(wide_type, ir.IntegerType) else arith.extf
        ir.Operation.create("linalg.yield", operands=[extend(wide_type, block.arguments[0])])
    return generic.results[0]


def _generic(
    inputs: list[tuple[ir.Value, tuple[int, ...]]],
    output: ir.Value,
    rank: int,
    kept: tuple[int, ...] | None = None,
) -> tuple[ir.Operation, ir.Block]:
    """Emits a `linalg.generic`, and returns it with its body, which is empty.

    Args:
        inputs: values, and the loops along their axes.
        output: a tensor.
        rank: how many loops it has.
        kept: the loops along its axes; the others are reductions. None where it has all of them.
    """
    loops = [*(axes for _, axes in inputs), tuple(range(rank)) if kept is None else kept]
    maps = [ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_dim(axis) for axis in axes]) for axes in loops]
    return create_generic([value for value, _ in inputs], [output], maps)


def _empty(shape: list[int], element: ir.Type) -> ir.Value:
    return ir.Operation.create("tensor.empty", results=[ir.RankedTensorType.get(shape, element)]).results[0]


def _structured(name: str, operands: list[ir.Value], attributes: dict[str, ir.Attribute]) -> ir.Value:
    """Emits a linalg op with one output, the last operand, and the body that its name says."""
    segments = ir.DenseI32ArrayAttr.get([len(operands) - 1, 1])
    op = ir.Operation.create(
        name,
        results=[operands[-1].type],
        operands=operands,
        attributes={"operandSegmentSizes": segments, **attributes},
        regions=1,
    )
    fill_builtin_region(op)
    return op.results[0]


def _name(plan: Plan) -> str:
    """Returns the op for a plan; `linalg.batch_matmul` has no operand that is both broadcast and transposed."""
    if plan.batch is None:
        return "linalg.matmul"
    is_general = any(matrix.is_broadcast and matrix.is_transposed for matrix in (plan.a, plan.b))
    return "linalg.contract" if is_general else "linalg.batch_matmul"


def _operand(body: ir.Block, operand: Matrix, batch: int | None, shape: tuple[int, int]) -> ir.Value:
    stored_shape = [shape[1], shape[0]] if operand.is_transposed else list(shape)
    if batch is not None and not operand.is_broadcast:
        stored_shape = [batch, *stored_shape]
    return _reshaped(_to_tensor(_placed(body, operand, stored_shape), writable=False), stored_shape)


def _placed(body: ir.Block, operand: Matrix | Read, shape: list[int]) -> ir.Value:
    """Returns the buffer of an operand with given extents: an argument, or a part of one."""
    argument = body.arguments[operand.argument]
    if operand.part is None:
        return reshaped(argument, shape)
    extents = [*operand.part.batch, *shape[1:]] if operand.part.batch else shape
    return window(argument, operand.part.offset, extents, operand.part.strides)


def _destination(plan: Plan, buffer: ir.Value) -> ir.Value:
    """Returns the tensor that the result is made in: C, or an empty one where the batch of C has several strides."""
    type_ = ir.MemRefType(buffer.type)
    if type_.rank == len(plan.shape):
        return _to_tensor(buffer, writable=True)
    return _empty(plan.shape, type_.element_type)


def _reshaped(matrices: ir.Value, shape: list[int]) -> ir.Value:
    """Returns matrices of a batch whose dimensions are those of a buffer, or are one dimension: of several strides.

    Upstream's fusion of elementwise ops would divide the matmul itself for a `tensor.expand_shape`.
    """
    type_ = ir.RankedTensorType(matrices.type)
    if type_.rank == len(shape):
        return matrices
    numbers = ir.Attribute.parse(f"dense<{shape}> : tensor<{len(shape)}xi64>")
    extents = arith.constant(ir.RankedTensorType.get([len(shape)], ir.IntegerType.get_signless(64)), numbers)
    result = ir.RankedTensorType.get(shape, type_.element_type)
    return ir.Operation.create("tensor.reshape", [result], [matrices, extents]).results[0]


def _to_tensor(buffer: ir.Value, *, writable: bool) -> ir.Value:
    type_ = ir.MemRefType(buffer.type)
    result = ir.RankedTensorType.get(type_.shape, type_.element_type)
    return bufferization.to_tensor(result, buffer, restrict=True, writable=writable)


def reshaped(buffer: ir.Value, shape: list[int]) -> ir.Value:
    """Returns a row-major buffer as one of other dimensions, without a copy.

    Args:
        buffer: a contiguous memref.
        shape: the new extents, with as many elements.
    """
    type_ = ir.MemRefType(buffer.type)
    extents = list(type_.shape)
    if extents == shape:
        return buffer
    groups = _groups(extents, shape) if 1 < len(shape) <= len(extents) else None
    if groups is not None:
        return _reshape("memref.collapse_shape", buffer, shape, groups)
    if not shape:
        return _reshape("memref.collapse_shape", buffer, shape, [])
    if len(extents) > 1:
        buffer = _reshape("memref.collapse_shape", buffer, [math.prod(extents)], [list(range(len(extents)))])
    if len(extents) != 0 and len(shape) == 1:
        return buffer
    return _reshape("memref.expand_shape", buffer, shape, [list(range(len(shape)))] if extents else [])


def _groups(extents: list[int], shape: list[int]) -> list[list[int]] | None:
    """Returns which dimensions collapse to those of a shape; None where a dimension would be split."""
    groups: list[list[int]] = []
    place = 0
    for size in shape:
        group: list[int] = []
        while place < len(extents) and (not group or math.prod(extents[number] for number in group) < size):
            group.append(place)
            place += 1
        if math.prod(extents[number] for number in group) != size or not group:
            return None
        groups.append(group)
    groups[-1] += range(place, len(extents))  # of extent 1
    return groups


def _reshape(name: str, buffer: ir.Value, shape: list[int], groups: list[list[int]]) -> ir.Value:
    type_ = ir.MemRefType.get(shape, ir.MemRefType(buffer.type).element_type)
    attributes: dict[str, ir.Attribute] = {"reassociation": reassociation(groups)}
    if name == "memref.expand_shape":
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(shape)
    return ir.Operation.create(name, results=[type_], operands=[buffer], attributes=attributes).results[0]


def _maps(plan: Plan) -> ir.ArrayAttr:
    count = 3 if plan.batch is None else 4
    *batch, m, n, k = (ir.AffineExpr.get_dim(number) for number in range(count))
    axes = []
    for matrix, rows, columns in ((plan.a, m, k), (plan.b, k, n)):
        outer = [] if matrix.is_broadcast else batch
        axes.append([*outer, columns, rows] if matrix.is_transposed else [*outer, rows, columns])
    axes.append([*batch, m, n])
    return ir.ArrayAttr.get([ir.AffineMapAttr.get(ir.AffineMap.get(count, 0, results)) for results in axes])
