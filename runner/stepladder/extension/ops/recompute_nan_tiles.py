"""`tc.recompute_nan_tiles`: computes sums of products of f32 again, by other parts, where one of a block is NaN."""

import functools
from collections.abc import Iterable, Sequence

from stepladder.extension.lib.control_flow import body_of, operations_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.schedule import ASYNC_COPY
from stepladder.mlir.bindings import arith, ir, scf, vector
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import defining_op, users_of, walk


class RecomputeNanTiles(Tc.Operation, name="recompute_nan_tiles"):
    """Repeats a block's products of f32 where one of its sums is NaN, by products marked `keeps_infinities`.

    What is repeated is all that the kernel does from its first access to memory to its last product: copies to shared
    memory, which first wait for those that are under way, the main loop, and loads of what accumulators start from. A
    barrier counts the threads of the block with a NaN in their sums; after it, tiles in shared memory may be
    overwritten. The repeated ops calculate their addresses again, those of the loop in each iteration.

    Operands: a handle to any op; kernels below without unmarked `nvgpu.mma.sync` of f32 stay, and those whose sums are
        in memory.
    """

    target: Handle


# The first word of ops that access memory; all ops from the first of them on are repeated.
_ACCESSES = ("vector.load", "vector.transfer_", "memref.load", "memref.store", "nvgpu.", "gpu.barrier", "scf.")
_MMA = "nvgpu.mma.sync"
_KEEPS = "keeps_infinities"
_IDS = ("gpu.block_id", "gpu.thread_id", "gpu.lane_id")
_ARITHMETIC = ("affine.", "arith.")


def _ancestor_in(block: ir.Block, op: ir.Operation) -> ir.Operation:
    """Returns the op of a block that `op` is, or is in."""
    while op.block != block:
        parent = op.parent
        assert parent is not None
        op = parent.operation
    return op


def _is_f32(mma: ir.Operation) -> bool:
    return ir.VectorType(mma.operands[0].type).element_type == ir.F32Type.get() and "tf32Enabled" not in mma.attributes


def _sums(ops: Sequence[ir.Operation], following: Sequence[ir.Operation]) -> list[ir.Value]:
    """Returns the sums of products that ops of a block make and those after them use."""
    behind = set(following)
    makers = [op for op in ops if walk(op, _MMA)]
    sums = [result for op in makers for result in op.results if isinstance(result.type, ir.VectorType)]
    return [result for result in sums if any(_ancestor_in(ops[0].block, user) in behind for user in users_of(result))]


def _folded(predicates: Iterable[ir.Value]) -> ir.Value:
    """Returns the disjunction of predicates."""
    return functools.reduce(arith.ori, predicates)


def _threads_with_nan(sums: Sequence[ir.Value]) -> ir.Value:
    """Returns how many threads of the block have a NaN in their sums, an i32, at the current insertion point."""
    # A comparison has two operands: it finds a NaN in either.
    pairs = [(sums[place], sums[min(place + 1, len(sums) - 1)]) for place in range(0, len(sums), 2)]
    is_nan = _folded([arith.cmpf(arith.CmpFPredicate.UNO, left, right) for left, right in pairs])
    i1, i32 = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(32)
    rows, columns = ir.VectorType(is_nan.type).shape
    of_columns = _folded([vector.extract(is_nan, [], [row]) for row in range(rows)])
    own = _folded(ir.Operation.create("vector.to_elements", results=[i1] * columns, operands=[of_columns]).results)
    kind = {"reductionOp": ir.Attribute.parse("#nvvm.reduction<popc>")}
    among = ir.Operation.create(
        "nvvm.barrier.reduction", results=[i32], operands=[arith.extui(i32, own)], attributes=kind
    )
    return among.results[0]


def _address_ops(before: Sequence[ir.Operation], ops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Returns the ids, and the arithmetic on them, before some ops whose results these use, in order."""
    values = {operand for op in ops for inner in walk(op) for operand in inner.operands}
    candidates = list[ir.Operation]()
    for op in reversed(before):
        if any(result in values for result in op.results):
            candidates.insert(0, op)
            values.update(op.operands)
    address_ops, of_ids = list[ir.Operation](), set[ir.Value]()
    for op in candidates:
        if op.name in _IDS or (op.name.startswith(_ARITHMETIC) and any(operand in of_ids for operand in op.operands)):
            address_ops.append(op)
            of_ids.update(op.results)
    return address_ops


def _hide(ids: Iterable[ir.Operation], zero: ir.Value) -> None:
    """Adds an index, which is 0, to ids."""
    for op in ids:
        with ir.InsertionPoint.after(op):
            hidden_id = arith.xori(op.results[0], zero)
        op.results[0].replace_all_uses_except(hidden_id, [defining_op(hidden_id)])


def _hide_ids(block: ir.Block, count: ir.Value) -> None:
    """Makes addresses of repeated products depend on the sign of a count, which is not negative.

    LLVM and ptxas do not know that, and compute the addresses again. Otherwise they would take those of the main loop,
    which are then in registers for longer, and calculate those of the repeated loop before it: both spill.

    Args:
        block: of the repeated ops.
        count: an i32.
    """
    with ir.InsertionPoint.at_block_begin(block):
        bits = arith.constant(count.type, ir.IntegerAttr.get(count.type, 31))
        sign = arith.index_cast(ir.IndexType.get(), arith.shrsi(count, bits))
    ops = operations_of(block)
    outside = [op for op in ops if op.name in _IDS]
    for loop in [op for op in ops if op.name == "scf.for"]:
        body = body_of(loop)
        inner = operations_of(body)
        values = clone_ops(_address_ops(ops[: ops.index(loop)], inner), {}, ir.InsertionPoint.at_block_begin(body))
        for op in [nested_op for item in inner for nested_op in walk(item)]:
            for place, operand in enumerate(op.operands):
                op.operands[place] = values.get(operand, operand)
        with ir.InsertionPoint.at_block_begin(body):
            zero = arith.andi(sign, body.arguments[0])
        _hide(walk(loop, *_IDS), zero)
    _hide(outside, sign)


@transform_op(RecomputeNanTiles)
def recompute_nan_tiles(payload: ir.Operation, op: RecomputeNanTiles, rewriter: Rewriter) -> None:
    """Repeats the products of the kernels below `payload`; see the op."""
    for kernel in walk(payload, "gpu.func"):
        mmas = [mma for mma in walk(kernel, _MMA) if _is_f32(mma)]
        if mmas:
            _repeat(kernel.regions[0].blocks[0], mmas[-1])


def _repeat(block: ir.Block, last_mma: ir.Operation) -> None:
    ops = operations_of(block)
    last = ops.index(_ancestor_in(block, last_mma))
    first = next(place for place, op in enumerate(ops) if op.name.startswith(_ACCESSES))
    repeated_ops, following = ops[first : last + 1], [*ops[last + 1 :], terminator_of(block)]
    sums = _sums(repeated_ops, following)
    if not sums:
        return
    types = [value.type for value in sums]
    with ir.InsertionPoint(following[0]), last_mma.location:
        count = _threads_with_nan(sums)
        none = arith.constant(count.type, ir.IntegerAttr.get(count.type, 0))
        is_any = arith.cmpi(arith.CmpIPredicate.ne, count, none)
        repeats = ir.Operation.create("scf.if", results=types, operands=[is_any], regions=2)
        then, otherwise = (region.blocks.append() for region in repeats.regions)
        if any(walk(op, ASYNC_COPY) for op in repeated_ops):
            # Copies that the last iterations issue, of zeros, may not have ended.
            with ir.InsertionPoint(then):
                ir.Operation.create(
                    "nvvm.cp.async.wait.group", attributes={"n": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)}
                )
        values = clone_ops([*_address_ops(ops[:first], repeated_ops), *repeated_ops], {}, ir.InsertionPoint(then))
        with ir.InsertionPoint(then):
            scf.yield_([values[value] for value in sums])
        with ir.InsertionPoint(otherwise):
            scf.yield_(sums)
    _hide_ids(then, count)
    for mma in walk(repeats, _MMA):
        mma.attributes[_KEEPS] = ir.UnitAttr.get()
    behind = set(following)
    for value, result in zip(sums, repeats.results):
        for use in list(value.uses):
            user = use.owner.operation
            if _ancestor_in(block, user) in behind:
                user.operands[use.operand_number] = result
