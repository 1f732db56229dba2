"""`tc.rotate_loop`: loads fragments one k sub-step ahead of the MMA ops that use them, across iterations."""

from collections.abc import Iterable

from stepladder.extension.lib.control_flow import BOUNDS, add_iter_args, body_of, operations_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.schedule import ASYNC_COPY, ASYNC_GROUP, BlockSchedule, MainLoop, find_main_loop
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer


class RotateLoop(Tc.Operation, name="rotate_loop"):
    """Rotates the main loop by one k sub-step.

    In the original loop an iteration waits for its tile, then loads the fragments of each sub-step and multiplies them:
    nothing hides the latency of its first loads, which follow the barrier. In the rotated loop the MMA ops of sub-step
    s run while the fragments of s + 1 are loaded. The last sub-step of an iteration waits for the next tile and loads
    its first fragments, which iter_args carry to the next iteration.

    Operands: a handle to any op; the one loop below with MMA ops is rewritten.
    Refuses: a loop with fewer than two sub-steps; a loop without asynchronous copies, or whose first fragment load does
        not follow one wait and one barrier.
    """

    target: Handle


_WAIT = "nvgpu.device_async_wait"
_BARRIER = "gpu.barrier"


def _synchronization(main: MainLoop) -> list[ir.Operation]:
    """Returns the wait and the barrier that precede the first fragment loads."""
    ops = [op for op in operations_of(body_of(main.loop)) if op.name in (_WAIT, _BARRIER)]
    if [op.name for op in ops] != [_WAIT, _BARRIER]:
        raise Refusal(main.loop, "expected one asynchronous wait and one barrier in the loop, in this order")
    if any(load.is_before_in_block(ops[-1]) for load in main.fragment_loads()[0]):
        raise Refusal(main.loop, "a fragment is loaded before the barrier")
    return ops


class _Cloner:
    """Clones ops of a block to the current insertion point, each once, with values replaced.

    Args:
        block: of the ops.
        replacements: values of the block, and their replacements.
        outside: whether the clones are outside of the block, so that the ops that they depend on are cloned too. Else
            ops that depend on no replaced value are not cloned.
    """

    def __init__(self, block: ir.Block, replacements: Iterable[tuple[ir.Value, ir.Value]], *, outside: bool) -> None:
        self.block = block
        self.replacements = dict(replacements)
        self.outside = outside

    def value(self, value: ir.Value) -> ir.Value:
        """Returns the replacement of a value in the clones; clones the op that defines it if required."""
        if value in self.replacements:
            return self.replacements[value]
        source = producer(value)
        if source is None or source.block != self.block or not (self.outside or self._depends(source)):
            return value
        return self.clone(source).results[ir.OpResult(value).result_number]

    def clone(self, op: ir.Operation) -> ir.Operation:
        """Clones an op, with its operands."""
        operands = [self.value(operand) for operand in op.operands]
        clone = op.clone().operation
        for position, operand in enumerate(operands):
            clone.operands[position] = operand
        self.replacements.update(zip(op.results, clone.results))
        return clone

    def _depends(self, op: ir.Operation) -> bool:
        for operand in op.operands:
            if operand in self.replacements:
                return True
            source = producer(operand)
            if source is not None and source.block == self.block and self._depends(source):
                return True
        return False


@transform_op(RotateLoop)
def rotate_loop(payload: ir.Operation, op: RotateLoop, rewriter: Rewriter) -> None:
    """Rotates the main loop below `payload`; see the op."""
    main = find_main_loop(payload)
    if main is None:
        return
    if len(main.mmas) < 2:
        raise Refusal(main.loop, f"a loop with {len(main.mmas)} k sub-step cannot be rotated")
    old = main.loop
    block = body_of(old)
    synchronization = _synchronization(main)
    loads = main.fragment_loads()
    carried_values = [load.results[0] for load in loads[0]]

    # Prologue: wait for the first tile and load its first fragments.
    initial = list(old.operands)[BOUNDS:]
    with ir.InsertionPoint(old):
        cloner = _Cloner(block, zip(block.arguments, [old.operands[0], *initial]), outside=True)
        for sync in synchronization:
            cloner.clone(sync)
        first = [cloner.clone(load).results[0] for load in loads[0]]
    step_size = old.operands[2]
    new_loop, arguments = add_iter_args(old, first, rewriter)

    # Last sub-step: the same for the next iteration.
    terminator = terminator_of(block)
    with ir.InsertionPoint(terminator), new_loop.location:
        following = ir.Operation.create(
            "arith.addi", results=[ir.IndexType.get()], operands=[block.arguments[0], step_size]
        ).results[0]
        next_arguments = zip(list(block.arguments)[1 : 1 + len(initial)], terminator.operands)
        cloner = _Cloner(block, [(block.arguments[0], following), *next_arguments], outside=False)
        next_synchronization = [cloner.clone(sync) for sync in synchronization]
        next_loads = [cloner.clone(load) for load in loads[0]]
        results = [*terminator.operands, *(load.results[0] for load in next_loads)]
        ir.Operation.create("scf.yield", operands=results)
    terminator.erase()
    for value, argument in zip(carried_values, arguments):
        value.replace_all_uses_with(argument)
    for stale in [*loads[0], *reversed(synchronization)]:
        stale.erase()

    schedule = BlockSchedule(block)
    for copy in [inner for inner in operations_of(block) if inner.name in (ASYNC_COPY, ASYNC_GROUP)]:
        schedule.append(copy)
    for step, mmas in enumerate(main.mmas):
        for ahead in loads[step + 1] if step + 1 < len(loads) else [*next_synchronization, *next_loads]:
            schedule.append(ahead)
        for mma in mmas:
            schedule.append(mma)
    schedule.append_rest()
