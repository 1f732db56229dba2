"""Writes a planned matmul in the form that pipelines start from: `linalg.matmul` on tensors between buffers."""

from __future__ import annotations

import math

from stepladder.mlir.bindings import arith, bufferization, fill_builtin_region, ir
from stepladder.payload.front.plan import Matrix, Plan


def rewrite(function: ir.Operation, plan: Plan) -> None:
    """Replaces the body of a function by a planned matmul.

    Arguments keep their numbers and shapes; tensors become buffers, and a result that is returned becomes a last
    argument. Operands are reshaped to matrices, without copies.

    Args:
        function: with one block.
        plan: what it computes.
    """
    body = function.regions[0].blocks[0]
    returned = list(ir.FunctionType(_type_of(function)).results)
    for op in reversed(list(body.operations)):
        op.operation.erase()
    for argument in body.arguments:
        if isinstance(argument.type, ir.RankedTensorType):
            argument.set_type(_buffer_of(argument.type))
    if plan.c.argument == len(body.arguments):
        body.add_argument(_buffer_of(returned[0]), function.location)
    _set_signature(function, body)
    with ir.InsertionPoint(body), plan.location:
        _emit(body, plan)


def _type_of(function: ir.Operation) -> ir.Type:
    return ir.TypeAttr(function.attributes["function_type"]).value


def _buffer_of(type_: ir.Type) -> ir.MemRefType:
    shaped = ir.ShapedType(type_)
    return ir.MemRefType.get(list(shaped.shape), shaped.element_type)


def _set_signature(function: ir.Operation, body: ir.Block) -> None:
    count = len(body.arguments)
    if "arg_attrs" in function.attributes:
        known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(known + [ir.DictAttr.get({})] * (count - len(known)))
    if "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]
    types = ir.FunctionType.get([argument.type for argument in body.arguments], [])
    function.attributes["function_type"] = ir.TypeAttr.get(types)


def _emit(body: ir.Block, plan: Plan) -> None:
    """Emits the new body at the insertion point."""
    acc_type = ir.Type.parse(plan.acc_type)
    a = _operand(body, plan.a, (plan.m, plan.k))
    b = _operand(body, plan.b, (plan.k, plan.n))
    buffer = _matrix(body.arguments[plan.c.argument], [plan.m, plan.n])
    is_rounded = plan.rounding_location is not None
    c = _to_tensor(buffer, writable=True) if not is_rounded else None
    start = c if c is not None else _empty([plan.m, plan.n], acc_type)
    if not plan.accumulates:
        is_integer = isinstance(acc_type, ir.IntegerType)
        zero = arith.constant(
            acc_type, ir.IntegerAttr.get(acc_type, 0) if is_integer else ir.FloatAttr.get(acc_type, 0)
        )
        start = _structured("linalg.fill", [zero, start], {})
    product = _structured("linalg.matmul", [a, b, start], {"indexing_maps": _maps(plan)})
    if plan.rounding_location is not None:
        with plan.rounding_location:
            product = _round(product, _to_tensor(buffer, writable=True))
    bufferization.materialize_in_destination(None, product, buffer, restrict=True, writable=True)
    ir.Operation.create("func.return")


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


def _operand(body: ir.Block, operand: Matrix, shape: tuple[int, int]) -> ir.Value:
    stored = [shape[1], shape[0]] if operand.is_transposed else list(shape)
    return _to_tensor(_matrix(body.arguments[operand.argument], stored), writable=False)


def _to_tensor(buffer: ir.Value, *, writable: bool) -> ir.Value:
    type_ = ir.MemRefType(buffer.type)
    result = ir.RankedTensorType.get(type_.shape, type_.element_type)
    return bufferization.to_tensor(result, buffer, restrict=True, writable=writable)


def _matrix(buffer: ir.Value, shape: list[int]) -> ir.Value:
    """Returns a row-major buffer as one of two dimensions."""
    type_ = ir.MemRefType(buffer.type)
    given = list(type_.shape)
    if given == shape:
        return buffer
    groups = _groups(given, shape)
    if groups is not None:
        return _reshape("memref.collapse_shape", buffer, shape, groups)
    if len(given) > 1:
        buffer = _reshape("memref.collapse_shape", buffer, [math.prod(given)], [list(range(len(given)))])
    return _reshape("memref.expand_shape", buffer, shape, [[0, 1]] if given else [])


def _groups(given: list[int], shape: list[int]) -> list[list[int]] | None:
    """Returns which dimensions collapse to the two of a matrix; None where a dimension would be split."""
    for rows in range(1, len(given)):
        if [math.prod(given[:rows]), math.prod(given[rows:])] == shape:
            return [list(range(rows)), list(range(rows, len(given)))]
    return None


def _reshape(name: str, buffer: ir.Value, shape: list[int], groups: list[list[int]]) -> ir.Value:
    index = ir.IntegerType.get_signless(64)
    reassociation = ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(index, number) for number in group]) for group in groups]
    )
    type_ = ir.MemRefType.get(shape, ir.MemRefType(buffer.type).element_type)
    attributes: dict[str, ir.Attribute] = {"reassociation": reassociation}
    if name == "memref.expand_shape":
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(shape)
    return ir.Operation.create(name, results=[type_], operands=[buffer], attributes=attributes).results[0]


def _maps(plan: Plan) -> ir.ArrayAttr:
    m, n, k = (ir.AffineExpr.get_dim(number) for number in range(3))
    a, b = ([k, m] if plan.a.is_transposed else [m, k]), ([n, k] if plan.b.is_transposed else [k, n])
    return ir.ArrayAttr.get([ir.AffineMapAttr.get(ir.AffineMap.get(3, 0, results)) for results in (a, b, [m, n])])


def _round(product: ir.Value, target: ir.Value) -> ir.Value:
    """Emits the rounding of the sums to C's type."""
    wide, narrow = (ir.ShapedType(value.type).element_type for value in (product, target))
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(2))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([identity] * 2),
        "iterator_types": ir.ArrayAttr.get([parallel] * 2),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
    }
    op = ir.Operation.create(
        "linalg.generic", results=[target.type], operands=[product, target], attributes=attributes, regions=1
    )
    block = op.regions[0].blocks.append(wide, narrow)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[arith.truncf(narrow, block.arguments[0])])
    return op.results[0]
