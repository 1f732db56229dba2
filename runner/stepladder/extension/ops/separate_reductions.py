"""`tc.separate_reductions`: divides reductions of the product into elementwise ops and reductions of workspaces."""

from stepladder.extension.lib.control_flow import operations_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.reduced_results import create_reduction, workspace_like
from stepladder.mlir.bindings import arith, bufferization, ir
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import attributes_of, producer, users_of, walk
from stepladder.payload.reductions import Reduction, is_reduction, reduction_of
from stepladder.runtime.errors import StepladderError

_FILL, _STORE = "linalg.fill", "bufferization.materialize_in_destination"


class SeparateReductions(Tc.Operation, name="separate_reductions"):
    """Divides each `linalg.generic` that reduces a matrix to an argument: an elementwise op writes what it folds to a
    workspace, and a function with a `linalg.reduce`, which is called at the end, folds the workspace.

    The elementwise op is fused into the others on the product, which store several results. The epilogue then folds
    values in registers, and replaces the workspace and its reduction. Results of 16 bits are folded in
    f32.

    Operands: a handle to the module, whose one function is in the normal form (`tc.normalize_payload`).
    Refuses: a reduction that is not stored once, or that begins with something else than copies of a constant.
    """

    target: Handle


@transform_op(SeparateReductions)
def separate_reductions(payload: ir.Operation, op: SeparateReductions, rewriter: Rewriter) -> None:
    """Divides the reductions below `payload`; see the op."""
    for generic in walk(payload, "linalg.generic"):
        if is_reduction(generic):
            try:
                reduction = reduction_of(generic)
            except StepladderError as error:
                raise Refusal(generic, error.message) from None
            _separate(payload, generic, reduction, rewriter)


def _separate(module: ir.Operation, generic: ir.Operation, reduction: Reduction, rewriter: Rewriter) -> None:
    """Divides one reduction."""
    stores = users_of(generic.results[0])
    if len(stores) != 1 or stores[0].name != _STORE:
        raise Refusal(generic, "expected a reduction that is stored to one buffer")
    (store,) = stores
    fill = producer(generic.operands[len(generic.operands) - 1])
    number = None if fill is None or fill.name != _FILL else producer(fill.operands[0])
    if fill is None or number is None or number.name != "arith.constant":
        raise Refusal(generic, "expected a reduction that begins with copies of a constant")
    rows, columns = _extents(generic)
    type_ = ir.RankedTensorType(generic.results[0].type).element_type
    type_ = ir.F32Type.get(generic.context) if isinstance(type_, (ir.F16Type, ir.BF16Type)) else type_
    result = store.operands[1]
    with ir.InsertionPoint(generic), generic.location:
        workspace = workspace_like([rows, columns], type_)
        tensor = ir.RankedTensorType.get([rows, columns], type_)
        destination = bufferization.to_tensor(tensor, workspace, restrict=True, writable=True)
        elementwise = _elementwise(generic, reduction, destination)
        bufferization.materialize_in_destination(None, elementwise, workspace, restrict=True, writable=True)
    end = terminator_of(generic.block)
    with ir.InsertionPoint(end), generic.location:
        create_reduction(module, workspace, result, reduction.axis, reduction.fold.name, number.attributes["value"])
    rewriter.erase_op(store)
    rewriter.erase_op(generic)
    _erase_unused(fill, rewriter)


def _extents(generic: ir.Operation) -> tuple[int, int]:
    """Returns how often the two loops of a reduction run."""
    sizes = [1, 1]
    for operand, map_ in zip(generic.operands, indexing_maps(generic)):
        if isinstance(operand.type, ir.RankedTensorType):
            for size, loop in zip(ir.RankedTensorType(operand.type).shape, map_.results):
                if isinstance(loop, ir.AffineDimExpr):
                    sizes[loop.position] = size
    return sizes[0], sizes[1]


def _elementwise(generic: ir.Operation, reduction: Reduction, destination: ir.Value) -> ir.Value:
    """Returns what a reduction folds, as an elementwise op makes it, at the insertion point."""
    *inputs, _ = list(generic.operands)
    *maps, _ = indexing_maps(generic)
    elementwise, block = create_generic(inputs, [destination], [*maps, ir.AffineMap.get_identity(2)])
    body = generic.regions[0].blocks[0]
    values: dict[ir.Value, ir.Value] = dict(zip(body.arguments, block.arguments))
    with ir.InsertionPoint(block):
        for op in operations_of(body):
            if op == reduction.fold or op.name == "linalg.yield":
                continue
            copy = ir.Operation.create(
                op.name,
                results=[item.type for item in op.results],
                operands=[values.get(operand, operand) for operand in op.operands],
                attributes=attributes_of(op),
            )
            values |= zip(op.results, copy.results)
        term = values.get(reduction.term, reduction.term)
        wide = ir.RankedTensorType(destination.type).element_type
        ir.Operation.create("linalg.yield", operands=[term if term.type == wide else arith.extf(wide, term)])
    return elementwise.results[0]


def _erase_unused(op: ir.Operation, rewriter: Rewriter) -> None:
    """Erases an op that nothing uses, and what made its destination."""
    if any(list(result.uses) for result in op.results):
        return
    source = producer(op.operands[len(op.operands) - 1]) if len(op.operands) else None
    rewriter.erase_op(op)
    if source is not None and source.name in ("bufferization.to_tensor", "tensor.empty"):
        _erase_unused(source, rewriter)
