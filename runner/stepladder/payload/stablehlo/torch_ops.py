"""Ops of torch-mlir's dialect `tm_tensor` (sorts, running reductions, writes by indices) as those of StableHLO.

`torch_mlir.fx` writes them beside linalg ops, for `topk`, `sort`, `cumsum`, `index_put`, `scatter` and others.
"""

from __future__ import annotations

import math

from stepladder.mlir.bindings import ir
from stepladder.mlir.diagnostics import location_text
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.payload.stablehlo import orders
from stepladder.payload.stablehlo.builder import Tensor, created, integers, iota, neutral, where
from stepladder.runtime.errors import StepladderError

# Ops of bodies that combine two values, as ops of StableHLO.
_FOLDS = {
    **dict.fromkeys(("arith.addf", "arith.addi"), "stablehlo.add"),
    **dict.fromkeys(("arith.mulf", "arith.muli"), "stablehlo.multiply"),
    **dict.fromkeys(("arith.maximumf", "arith.maxsi"), "stablehlo.maximum"),
    **dict.fromkeys(("arith.minimumf", "arith.minsi"), "stablehlo.minimum"),
}
# Comparisons of neighbours that a sort leaves in their order, and whether the larger one is first.
_DESCENDING = {
    **dict.fromkeys(("oge", "ogt", "sge", "sgt"), True),
    **dict.fromkeys(("ole", "olt", "sle", "slt"), False),
}
_FLOAT_PREDICATES = ("false", "oeq", "ogt", "oge", "olt", "ole")
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")
# Elements of an axis, above which running reductions are those of blocks, with what the blocks before have.
_LONG = 1024


def rewrite(module: ir.Module) -> None:
    """Replaces the ops of the dialect.

    Args:
        module: with functions of linalg ops on tensors.

    Raises:
        StepladderError: another op of the dialect, one with a body of its own, or of dynamic sizes.
    """
    rewrites = {"tm_tensor.scan": _scanned, "tm_tensor.sort": _sorted, "tm_tensor.scatter": _scattered}
    for op in _ops_of(module):
        if op.name not in rewrites:
            _refuse(op, f"'{op.name}' is not computed", f"{', '.join(rewrites)}, and ops of linalg")
        if not _is_static(op):
            _refuse(
                op,
                f"'{op.name}' has dynamic sizes",
                "static ones, such as torch.export has by default, and those that follow from the arguments' sizes, as "
                "--bind gives them",
            )
        with ir.InsertionPoint(op), op.location:
            tensors = rewrites[op.name](op)
        for result, tensor in zip(op.results, tensors):
            result.replace_all_uses_with(tensor.value)
        op.erase()


def has_dynamic_sizes(root: ir.Module | ir.Operation) -> bool:
    """Returns whether an op of the dialect has dynamic sizes.

    Args:
        root: a module, or a function of it.
    """
    return any(not _is_static(op) for op in _ops_of(root))


def take_static_operands(function: ir.Operation) -> None:
    """Makes ops of the dialect static where their operands are casts of static tensors.

    Args:
        function: whose arguments have static shapes.
    """
    for op in _ops_of(function):
        outputs = len(op.operands) - len(op.results)
        for place, operand in enumerate(op.operands):
            cast = producer(operand)
            if cast is not None and cast.name == "tensor.cast":
                op.operands[place] = cast.operands[0]
        for result, output in zip(op.results, list(op.operands)[outputs:]):
            dynamic = result.type
            if dynamic != output.type:
                result.set_type(output.type)
                with ir.InsertionPoint.after(op), op.location:
                    cast = ir.Operation.create("tensor.cast", results=[dynamic], operands=[result])
                result.replace_all_uses_except(cast.results[0], cast)


def _ops_of(root: ir.Module | ir.Operation) -> list[ir.Operation]:
    return [op for op in walk(root) if op.name.startswith("tm_tensor.") and op.name != "tm_tensor.yield"]


def _is_static(op: ir.Operation) -> bool:
    return all(ir.RankedTensorType(value.type).has_static_shape for value in (*op.operands, *op.results))


def _refuse(op: ir.Operation, message: str, accepted: str) -> None:
    raise StepladderError(message, location=location_text(op.location), notes=[f"accepted: {accepted}"])


def _body(op: ir.Operation) -> tuple[list[ir.Operation], ir.Block, ir.Value]:
    """Returns the ops of a body, the body, and what it yields."""
    block = op.regions[0].blocks[0]
    *ops, end = [item.operation for item in block.operations]
    return ops, block, end.operands[0]


def _fold(op: ir.Operation) -> str | None:
    """Returns the op of StableHLO that a body is, "set" for one that yields the first value; None for another one."""
    ops, block, value = _body(op)
    if not ops and value == block.arguments[0]:
        return "set"
    is_one = len(ops) == 1 and value == ops[0].results[0] and set(ops[0].operands) == set(block.arguments)
    return _FOLDS.get(ops[0].name) if is_one else None


def _flag(op: ir.Operation, name: str) -> bool:
    return ir.BoolAttr(op.attributes[name]).value


def _to_last(rank: int, axis: int) -> tuple[list[int], list[int]]:
    """Returns the order of axes in which one is last, and the order that undoes it."""
    order = [item for item in range(rank) if item != axis] + [axis]
    return order, [order.index(item) for item in range(rank)]


def _scanned(op: ir.Operation) -> list[Tensor]:
    """Returns the reductions of all elements up to each, and of all elements."""
    fold = _fold(op)
    if fold in (None, "set"):
        _refuse(op, "a running reduction by a function of its own", "sums, products, maxima and minima")
    assert fold is not None
    if not _flag(op, "inclusive"):
        _refuse(op, "a running reduction without the element itself", "inclusive ones")
    x = Tensor(op.operands[0])
    order, back = _to_last(len(x.shape), ir.IntegerAttr(op.attributes["dimension"]).value)
    rows = _running(_wide(x.transpose(order), fold), fold).convert(x.element)
    return [rows.transpose(back), _last(rows)]


def _wide(x: Tensor, fold: str) -> Tensor:
    """Returns the values of a reduction: those of sums and products of 16 bits in f32."""
    is_sum = fold in ("stablehlo.add", "stablehlo.multiply")
    return x.convert(ir.F32Type.get()) if is_sum and str(x.element) in ("f16", "bf16") else x


def _last(rows: Tensor) -> Tensor:
    """Returns the last element of each row."""
    *batch, extent = rows.shape
    return rows.narrow(len(batch), extent - 1, 1).reshape(batch)


def _running(rows: Tensor, fold: str) -> Tensor:
    """Returns the running reductions along the last axis."""
    *batch, extent = rows.shape
    start, rank = neutral(fold, rows.element), len(rows.shape)
    if extent <= _LONG:
        pair_shape = [*batch, extent, extent]
        is_taken = iota(pair_shape, rank - 1) >= iota(pair_shape, rank)
        terms = where(is_taken, rows.expand(pair_shape, [*range(rank - 1), rank]), start.expand(pair_shape, []))
        return terms.reduce(fold, start, [rank])
    block = math.isqrt(extent - 1) + 1
    count = -(-extent // block)
    padded = _padded(rows, start, 0, count * block - extent)
    in_block = _running(padded.reshape([*batch, count, block]), fold)
    earlier_blocks = _padded(_running(_last(in_block), fold), start, 1, -1)
    sums = in_block.combined(fold.removeprefix("stablehlo."), earlier_blocks.expand(in_block.shape, range(rank)))
    return sums.reshape(padded.shape).narrow(rank - 1, 0, extent)


def _padded(rows: Tensor, value: Tensor, before: int, after: int) -> Tensor:
    """Returns rows with elements before and after them; a negative number removes elements."""
    rank = len(rows.shape)
    shape = [*rows.shape[:-1], rows.shape[-1] + before + after]
    lists = {
        name: integers([*([0] * (rank - 1)), number])
        for name, number in (("edge_padding_low", before), ("edge_padding_high", after), ("interior_padding", 0))
    }
    type_ = ir.RankedTensorType.get(shape, rows.element)
    return Tensor(created("stablehlo.pad", type_, rows.value, value.value, **lists))


def _sorted(op: ir.Operation) -> list[Tensor]:
    """Returns tensors in the order of the first one; equal elements keep theirs, and NaN counts as the largest.

    Where slices alone read the first elements, as of `topk`, the others are not computed.
    """
    is_descending = _is_descending(op)
    if is_descending is None:
        _refuse(op, "a sort by a function of its own", "one comparison of the elements of the first tensor")
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    tensors = [Tensor(operand) for operand in op.operands]
    order, back = _to_last(len(tensors[0].shape), axis)
    extent = tensors[0].shape[axis]
    slices = [user for result in op.results for user in users_of(result)]
    count = max((_first_elements(item, axis) or extent for item in slices), default=extent)
    rows = [tensor.transpose(order) for tensor in tensors]
    kept = [row.transpose(back) for row in orders.ordered(op, rows, count, is_descending=bool(is_descending))]
    if count < extent:
        for result, tensor in zip(op.results, kept):
            for item in users_of(result):
                item.operands[0] = tensor.value
    return tensors if count < extent else kept


def _is_descending(op: ir.Operation) -> bool | None:
    """Returns whether the body of a sort keeps neighbours of which the first one is larger; None for another body."""
    ops, block, value = _body(op)
    if len(ops) != 1 or value != ops[0].results[0] or list(ops[0].operands) != list(block.arguments)[:2]:
        return None
    predicates = {"arith.cmpf": _FLOAT_PREDICATES, "arith.cmpi": _INTEGER_PREDICATES}.get(ops[0].name, ())
    number = ir.IntegerAttr(ops[0].attributes["predicate"]).value if predicates else 0
    return _DESCENDING.get(predicates[number]) if number < len(predicates) else None


def _first_elements(user: ir.Operation, axis: int) -> int | None:
    """Returns how many elements from the first one on a slice has along an axis; None for another op."""
    if user.name != "tensor.extract_slice":
        return None
    first, size, step = (
        list(ir.DenseI64ArrayAttr(user.attributes[f"static_{name}"]))[axis] for name in ("offsets", "sizes", "strides")
    )
    return size if first == 0 and step == 1 else None


def _scattered(op: ir.Operation) -> list[Tensor]:
    """Returns a tensor with values written to it, by a scatter of StableHLO.

    Axes of the updates after the first one are the last axes of the tensor; along the others, an update has one
    element.
    """
    fold = _fold(op)
    if fold is None:
        _refuse(op, "a scatter by a function of its own", "those that set, add, multiply, or take an extremum")
    updates, indices, x = (Tensor(operand) for operand in op.operands)
    rank, windows = len(x.shape), len(updates.shape) - 1
    axes = list(ir.DenseI64ArrayAttr(op.attributes["dimension_map"]))
    numbers = ir.Attribute.parse(
        f"#stablehlo.scatter<update_window_dims = {list(range(1, windows + 1))}, "
        f"inserted_window_dims = {list(range(rank - windows))}, scatter_dims_to_operand_dims = {axes}, "
        "index_vector_dim = 1>"
    )
    made = ir.Operation.create(
        "stablehlo.scatter",
        results=[x.type],
        operands=[x.value, indices.value, updates.value],
        attributes={"scatter_dimension_numbers": numbers},
        regions=1,
    )
    scalar = ir.RankedTensorType.get([], x.element)
    body = made.regions[0].blocks.append(scalar, scalar)
    with ir.InsertionPoint(body):
        old, new = body.arguments
        ir.Operation.create(
            "stablehlo.return", operands=[new if fold == "set" else created(str(fold), scalar, old, new)]
        )
    return [Tensor(made.results[0])]
