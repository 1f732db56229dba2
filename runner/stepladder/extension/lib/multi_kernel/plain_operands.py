"""Elementwise ops without operands that they do not need: tensors that they only write over, and repeated constants."""

from __future__ import annotations

from stepladder.extension.lib.arithmetic import constant
from stepladder.extension.lib.dialect import Rewriter
from stepladder.extension.lib.multi_kernel.stages import is_elementwise, is_start
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import create_generic, create_named_op, indexing_maps
from stepladder.mlir.traverse import attributes_of, producer, walk
from stepladder.payload.consumers import reads_output


def simplify(function: ir.Operation, rewriter: Rewriter) -> None:
    """Has elementwise ops begin from empty tensors, and compute with scalars in place of splat tensors. What
    such an op reads of its output is an input, so that it makes a result of its own.

    Args:
        function: on tensors; it is changed.
        rewriter: of the transform op.
    """
    # Listed first: the ops in the body of one that is replaced are gone.
    for op in [op for op in walk(function) if is_elementwise(op) and not is_start(op)]:
        if reads_output(op):
            op = _with_output_as_input(op, rewriter)
        _begin_from_empty(op)
        if op.name == "linalg.generic":
            _inline_numbers(op, rewriter)


def _with_output_as_input(op: ir.Operation, rewriter: Rewriter) -> ir.Operation:
    *inputs, output = op.operands
    old, maps = op.regions[0].blocks[0], indexing_maps(op)
    with ir.InsertionPoint(op), op.location:
        new, body = create_generic([*inputs, output], [output], [*maps, maps[-1]])
        mapping: dict[ir.Value, ir.Value] = dict(zip(old.arguments, body.arguments))
        clone_ops([inner.operation for inner in old.operations], mapping, ir.InsertionPoint(body))
    rewriter.replace_op(op, new.results)
    return new


def _begin_from_empty(op: ir.Operation) -> None:
    last = len(op.operands) - 1
    begin = producer(op.operands[last])
    if begin is None or begin.name != "tensor.empty":
        with ir.InsertionPoint(op), op.location:
            op.operands[last] = ir.Operation.create("tensor.empty", results=[op.results[0].type]).results[0]


def _inline_numbers(op: ir.Operation, rewriter: Rewriter) -> None:
    *inputs, output = op.operands
    numbers = [repeated_number(value) for value in inputs]
    kept_places = [place for place, number in enumerate(numbers) if number is None]
    if len(kept_places) == len(inputs):
        return
    old, maps = op.regions[0].blocks[0], indexing_maps(op)
    end = old.operations[0].operation
    with ir.InsertionPoint(op), op.location:
        if not kept_places and len(old.operations) == 1 and end.operands[0] in list(old.arguments):  # is a splat
            number = numbers[ir.BlockArgument(end.operands[0]).arg_number]
            assert number is not None  # nothing reads what the op writes over
            type_ = ir.RankedTensorType(output.type).element_type
            constant = ir.Operation.create("arith.constant", results=[type_], attributes={"value": number}).results[0]
            rewriter.replace_op(op, create_named_op("linalg.fill", [constant], output).results)
            return
        new, body = create_generic(
            [inputs[place] for place in kept_places], [output], [*(maps[at] for at in kept_places), maps[-1]]
        )
        mapping: dict[ir.Value, ir.Value] = dict(
            zip([*(old.arguments[place] for place in kept_places), old.arguments[len(inputs)]], body.arguments)
        )
        with ir.InsertionPoint(body):
            for argument, number in zip(old.arguments, numbers):
                if number is not None:
                    attributes = {"value": number}
                    constant = ir.Operation.create("arith.constant", results=[argument.type], attributes=attributes)
                    mapping[argument] = constant.results[0]
        clone_ops([inner.operation for inner in old.operations], mapping, ir.InsertionPoint(body))
    rewriter.replace_op(op, new.results)


def fold_transposes(product: ir.Operation) -> list[ir.Operation]:
    """Has a matmul read the sources of transposes of its operands, by its indexing maps, as kernels do.

    Args:
        product: it is changed where it is a `linalg.matmul` of such operands.

    Returns:
        The transposes that it no longer reads.
    """
    if product.name != "linalg.matmul":
        return []
    maps, transposes = indexing_maps(product), []
    for place, value in enumerate(list(product.operands)[:2]):
        source = producer(value)
        if source is None or source.name != "linalg.transpose":
            continue
        transposes.append(source)
        product.operands[place] = source.operands[0]
        maps[place] = ir.AffineMap.get(maps[place].n_dims, 0, list(reversed(list(maps[place].results))))
    product.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps])
    return transposes


def with_wide_sums(product: ir.Operation, rewriter: Rewriter) -> list[ir.Operation]:
    """Returns a matmul, and the op that rounds its sums where it is one in bf16 from zeros: kernels add in f32, and
    round once.

    Args:
        product: a contraction, which a matmul with sums in f32 replaces.
        rewriter: of the transform op.
    """
    start = producer(product.operands[2])
    if not sums_are_widened(product) or start is None or start.name != "linalg.fill":
        return [product]
    return _widen_sums(product, [], rewriter)


def add_in_wide_sums(product: ir.Operation, rewriter: Rewriter) -> ir.Operation:
    """Returns the matmul in f32, from zeros, that replaces one in bf16 which accumulates: what it starts from is added
    to the sums, which are rounded once.

    Args:
        product: a matmul of `sums_are_widened`.
        rewriter: of the transform op.
    """
    return _widen_sums(product, [product.operands[2]], rewriter)[0]


def sums_are_widened(product: ir.Operation) -> bool:
    """Returns whether kernels add the products of a matmul in a wider type than that of its result.

    Args:
        product: a contraction.
    """
    element = ir.RankedTensorType(product.results[0].type).element_type
    return product.name in ("linalg.matmul", "linalg.batch_matmul") and isinstance(element, ir.BF16Type)


def _widen_sums(product: ir.Operation, addends: list[ir.Value], rewriter: Rewriter) -> list[ir.Operation]:
    """Replaces a matmul by one in f32 from zeros, and an op that adds tensors to its sums and rounds them; returns
    both."""
    type_ = ir.RankedTensorType(product.results[0].type)
    f32 = ir.F32Type.get()
    identity = ir.AffineMap.get_identity(type_.rank)
    with ir.InsertionPoint(product), product.location:
        wide = ir.RankedTensorType.get(type_.shape, f32)
        empty = ir.Operation.create("tensor.empty", results=[wide]).results[0]
        zeros = create_named_op("linalg.fill", [constant(f32, 0)], empty).results[0]
        maps = {name: value for name, value in attributes_of(product).items() if name == "indexing_maps"}
        sums = create_named_op(product.name, list(product.operands)[:2], zeros, maps)
        output = ir.Operation.create("tensor.empty", results=[type_]).results[0]
        inputs = [sums.results[0], *addends]
        rounding, body = create_generic(inputs, [output], [identity] * (len(inputs) + 1))
        with ir.InsertionPoint(body):
            total: ir.Value = body.arguments[0]
            for argument in list(body.arguments)[1:-1]:
                total = arith.addf(total, arith.extf(f32, argument))
            ir.Operation.create("linalg.yield", operands=[arith.truncf(type_.element_type, total)])
    rewriter.replace_op(product, rounding.results)
    return [sums, rounding]
