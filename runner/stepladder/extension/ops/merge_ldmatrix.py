"""`tc.merge_ldmatrix`: two `ldmatrix` of two tiles become one of four."""

from stepladder.extension.lib.dialect import Tc, producer, transform_op
from stepladder.extension.lib.fragments import take_rows
from stepladder.mlir.bindings import ext, ir, transform
from stepladder.mlir.traverse import attributes_of, walk


class MergeLdmatrix(Tc.Operation, name="merge_ldmatrix"):
    """Joins pairs of `nvgpu.ldmatrix` of two 8 x 8 tiles that lie side by side into one of four tiles.

    Upstream loads a fragment of B, 16 x 8, with an instruction of two tiles, for which the lanes 16 to 31 compute
    addresses that nobody reads. Those are the addresses of the fragment to the right: an instruction of four tiles
    loads both at once.

    Operands: a handle to any op. Runs before shared memory is swizzled, while indices are affine in the lane.
    """

    target: ext.Operand[transform.AnyOpType]


def _evaluate(value, lane: int, others: dict) -> int | None:
    """Returns an index for one lane of a warp, or None if it is not affine.

    Whatever is not the thread's number (loop indices, block numbers) stands for an arbitrary number, one and the same
    wherever it is used: `others` keeps it.
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
    inputs = [_evaluate(operand, lane, others) for operand in source.operands]
    if None in inputs:
        return None
    map_ = ir.AffineMapAttr(source.attributes["map"]).value
    return _affine(map_.results[0], inputs[: map_.n_dims], inputs[map_.n_dims :])


def _affine(expression, dims: list[int], symbols: list[int]) -> int:
    match expression:
        case ir.AffineDimExpr():
            return dims[expression.position]
        case ir.AffineSymbolExpr():
            return symbols[expression.position]
        case ir.AffineConstantExpr():
            return expression.value
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


def _continues(first, second) -> bool:
    """Tells whether the addresses of the second load's 16 lanes are those of the first load's other 16."""
    if first.operands[0] != second.operands[0] or first.attributes["transpose"] != second.attributes["transpose"]:
        return False
    others: dict = {}
    for lane in range(16):
        theirs = [_evaluate(index, lane, others) for index in list(second.operands)[1:]]
        ours = [_evaluate(index, lane + 16, others) for index in list(first.operands)[1:]]
        if None in ours or ours != theirs:
            return False
    return True


def _tiles(load) -> int:
    return ir.IntegerAttr(load.attributes["numTiles"]).value


@transform_op(MergeLdmatrix)
def merge_ldmatrix(payload, op, rewriter) -> None:
    """Joins what can be joined below `payload`; see the op."""
    waiting: list = []
    for load in walk(payload, "nvgpu.ldmatrix"):
        if _tiles(load) != 2:
            continue
        first = next((other for other in waiting if other.block == load.block and _continues(other, load)), None)
        if first is None:
            waiting.append(load)
            continue
        waiting.remove(first)
        _join(first, load, rewriter)


def _join(first, second, rewriter) -> None:
    part = ir.VectorType(first.results[0].type)
    whole = ir.VectorType.get([2 * part.shape[0], part.shape[1]], part.element_type)
    attributes = attributes_of(first)
    attributes["numTiles"] = ir.IntegerAttr.get(attributes["numTiles"].type, 4)
    with ir.InsertionPoint(first), first.location:
        joined = ir.Operation.create(
            "nvgpu.ldmatrix", results=[whole], operands=list(first.operands), attributes=attributes
        ).results[0]
        halves = [take_rows(joined, list(range(start, start + part.shape[0]))) for start in (0, part.shape[0])]
    for load, half in zip((first, second), halves):
        rewriter.replace_op(load, [half])
