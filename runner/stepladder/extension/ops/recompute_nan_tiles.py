"""`tc.recompute_nan_tiles`: computes sums of products of f32 again, by other parts, where one of a block is NaN."""

import functools
from collections.abc import Iterable, Sequence

from stepladder.extension.lib.control_flow import operations_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.schedule import ASYNC_COPY
from stepladder.mlir.bindings import arith, ir, scf, vector
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import users_of, walk


class RecomputeNanTiles(Tc.Operation, name="recompute_nan_tiles"):
    """Repeats a block's products of f32 where one of its sums is NaN, by products marked `keeps_infinities`.

    What is repeated is all that the kernel does from its first access to memory to its last product: copies to shared
    memory, which first wait for those that are under way, the main loop, and loads of what accumulators start from. A
    barrier tells all threads of the block whether a sum of any is NaN; behind it, tiles in shared memory may be
    overwritten.

    Operands: a handle to any op; kernels below without unmarked `nvgpu.mma.sync` of f32 stay, and those whose sums are
        in memory.
    """

    target: Handle


# The first word of ops that access memory; all ops from the first of them on are repeated.
_ACCESSES = ("vector.load", "vector.transfer_", "memref.load", "memref.store", "nvgpu.", "gpu.barrier", "scf.")
_MMA = "nvgpu.mma.sync"
_KEEPS = "keeps_infinities"


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
    """Returns the sums of products that ops of a block make and those behind them use."""
    behind = set(following)
    makers = [op for op in ops if walk(op, _MMA)]
    sums = [result for op in makers for result in op.results if isinstance(result.type, ir.VectorType)]
    return [result for result in sums if any(_ancestor_in(ops[0].block, user) in behind for user in users_of(result))]


def _folded(found: Iterable[ir.Value]) -> ir.Value:
    """Returns the disjunction of predicates."""
    return functools.reduce(arith.ori, found)


def _any_nan(sums: Sequence[ir.Value]) -> ir.Value:
    """Returns whether an element of the sums of any thread of the block is NaN, at the current insertion point."""
    # A comparison has two operands: it finds a NaN in either.
    pairs = [(sums[place], sums[min(place + 1, len(sums) - 1)]) for place in range(0, len(sums), 2)]
    found = _folded([arith.cmpf(arith.CmpFPredicate.UNO, left, right) for left, right in pairs])
    i1, i32 = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(32)
    rows, columns = ir.VectorType(found.type).shape
    of_columns = _folded([vector.extract(found, [], [row]) for row in range(rows)])
    own = _folded(ir.Operation.create("vector.to_elements", results=[i1] * columns, operands=[of_columns]).results)
    kind = {"reductionOp": ir.Attribute.parse("#nvvm.reduction<or>")}
    among = ir.Operation.create(
        "nvvm.barrier.reduction", results=[i32], operands=[arith.extui(i32, own)], attributes=kind
    )
    zero = arith.constant(i32, ir.IntegerAttr.get(i32, 0))
    return arith.cmpi(arith.CmpIPredicate.ne, among.results[0], zero)


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
    repeated, following = ops[first : last + 1], [*ops[last + 1 :], terminator_of(block)]
    sums = _sums(repeated, following)
    if not sums:
        return
    types = [value.type for value in sums]
    with ir.InsertionPoint(following[0]), last_mma.location:
        repeats = ir.Operation.create("scf.if", results=types, operands=[_any_nan(sums)], regions=2)
        then, otherwise = (region.blocks.append() for region in repeats.regions)
        if any(walk(op, ASYNC_COPY) for op in repeated):
            # Copies that the last iterations issue, of zeros, may not have ended.
            with ir.InsertionPoint(then):
                ir.Operation.create(
                    "nvvm.cp.async.wait.group", attributes={"n": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)}
                )
        values = clone_ops(repeated, {}, ir.InsertionPoint(then))
        with ir.InsertionPoint(then):
            scf.yield_([values[value] for value in sums])
        with ir.InsertionPoint(otherwise):
            scf.yield_(sums)
    for mma in walk(repeats, _MMA):
        mma.attributes[_KEEPS] = ir.UnitAttr.get()
    behind = set(following)
    for value, result in zip(sums, repeats.results):
        for use in list(value.uses):
            user = use.owner.operation
            if _ancestor_in(block, user) in behind:
                user.operands[use.operand_number] = result
