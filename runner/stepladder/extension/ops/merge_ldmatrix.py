"""`tc.merge_ldmatrix`: merges pairs of `ldmatrix` of two matrices to one of four."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.fragments import take_rows
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, producer, walk


class MergeLdmatrix(Tc.Operation, name="merge_ldmatrix"):
    """Merges pairs of `nvgpu.ldmatrix` of two adjacent 8 x 8 matrices each to one of four matrices.

    Upstream loads a fragment of B, 16 x 8, with an instruction of two matrices. The instruction ignores the addresses
    that lanes 16 to 31 compute, which are those of the fragment to the right: an instruction of four matrices loads
    both fragments.

    Operands: a handle to any op. Runs before shared memory is swizzled, while indices are affine in the lane.
    """

    target: Handle


def _evaluate(value: ir.Value, lane: int, others: dict[ir.Value, int]) -> int | None:
    """Returns an index for one lane of a warp, or None if it is not affine.

    Args:
        value: the index.
        lane: the lane.
        others: the integer that each value other than the thread id (loop indices, block ids) is assumed to have;
            values that are not in it are added, with an arbitrary integer.
    """
    source = producer(value)
    if source is None or source.name == "gpu.block_id":
        return others.setdefault(value, 4096 * (len(others) + 1))
    if source.name in ("gpu.thread_id", "gpu.lane_id"):
        return lane
    if source.name == "arith.constant":
        return ir.IntegerAttr(source.attributes["value"]).value
    if source.name != "affine.apply":
        return None
    inputs: list[int] = []
    for operand in source.operands:
        number = _evaluate(operand, lane, others)
        if number is None:
            return None
        inputs.append(number)
    map_ = ir.AffineMapAttr(source.attributes["map"]).value
    return _affine(map_.results[0], inputs[: map_.n_dims], inputs[map_.n_dims :])


def _affine(expression: ir.AffineExpr, dims: list[int], symbols: list[int]) -> int:
    match expression:
        case ir.AffineDimExpr():
            return dims[expression.position]
        case ir.AffineSymbolExpr():
            return symbols[expression.position]
        case ir.AffineConstantExpr():
            return expression.value
    assert isinstance(expression, ir.AffineBinaryExpr)
    left, right = _affine(expression.lhs, dims, symbols), _affine(expression.rhs, dims, symbols)
    match expression:
        case ir.AffineAddExpr():
            return left + right
        case ir.AffineMulExpr():
            return left * right
        case ir.AffineModExpr():
            return left % right
        case ir.AffineFloorDivExpr():
            return left // right
    return -(-left // right)


def _is_adjacent(first: ir.Operation, second: ir.Operation) -> bool:
    """Returns whether lanes 16 to 31 of the first load compute the addresses of lanes 0 to 15 of the second."""
    if first.operands[0] != second.operands[0] or first.attributes["transpose"] != second.attributes["transpose"]:
        return False
    others: dict[ir.Value, int] = {}
    for lane in range(16):
        of_second = [_evaluate(index, lane, others) for index in list(second.operands)[1:]]
        of_first = [_evaluate(index, lane + 16, others) for index in list(first.operands)[1:]]
        if None in of_first or of_first != of_second:
            return False
    return True


def _matrices(load: ir.Operation) -> int:
    return ir.IntegerAttr(load.attributes["numTiles"]).value


@transform_op(MergeLdmatrix)
def merge_ldmatrix(payload: ir.Operation, op: MergeLdmatrix, rewriter: Rewriter) -> None:
    """Merges the pairs of loads below `payload`; see the op."""
    single_loads: list[ir.Operation] = []
    for load in walk(payload, "nvgpu.ldmatrix"):
        if _matrices(load) != 2:
            continue
        first = next((other for other in single_loads if other.block == load.block and _is_adjacent(other, load)), None)
        if first is None:
            single_loads.append(load)
            continue
        single_loads.remove(first)
        _merge(first, load, rewriter)


def _merge(first: ir.Operation, second: ir.Operation, rewriter: Rewriter) -> None:
    half_type = ir.VectorType(first.results[0].type)
    rows, columns = half_type.shape
    type_ = ir.VectorType.get([2 * rows, columns], half_type.element_type)
    attributes = attributes_of(first)
    attributes["numTiles"] = ir.IntegerAttr.get(ir.IntegerAttr(attributes["numTiles"]).type, 4)
    with ir.InsertionPoint(first), first.location:
        wide_load = ir.Operation.create(
            "nvgpu.ldmatrix", results=[type_], operands=list(first.operands), attributes=attributes
        ).results[0]
        halves = [take_rows(wide_load, list(range(start, start + rows))) for start in (0, rows)]
    for load, half in zip((first, second), halves):
        rewriter.replace_op(load, [half])
