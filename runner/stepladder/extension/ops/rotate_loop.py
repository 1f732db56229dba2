"""`tc.rotate_loop`: fragments are loaded one k sub-step ahead of the products that use them, across the barrier too."""

from stepladder.extension.lib.building import with_carried
from stepladder.extension.lib.dialect import Refusal, Tc, producer, transform_op
from stepladder.extension.lib.schedule import (
    ASYNC_COPY,
    ASYNC_GROUP,
    MainLoop,
    Order,
    body_of,
    find_main_loop,
    terminator_of,
)
from stepladder.mlir.bindings import ext, ir, transform


class RotateLoop(Tc.Operation, name="rotate_loop"):
    """Rotates the main loop by one k sub-step.

    Before, an iteration waits for its tile, loads the fragments of each sub-step and multiplies them: the first loads
    of an iteration stand right behind the barrier, with nothing to hide them. After, the products of sub-step s run
    while the fragments of s + 1 arrive; the last sub-step of an iteration waits for the next tile and loads its first
    fragments, which travel to the next iteration as iter_args.

    Operands: a handle to any op; the one loop below with matrix products is treated.
    Refuses: a loop with fewer than two sub-steps; one without asynchronous copies, or whose first fragment load does
        not follow one wait and one barrier.
    """

    target: ext.Operand[transform.AnyOpType]


_WAIT = "nvgpu.device_async_wait"
_BARRIER = "gpu.barrier"


def _head(main: MainLoop) -> list:
    """Returns the wait and the barrier that the first fragments stand behind."""
    ops = [op.operation for op in body_of(main.loop).operations if op.operation.name in (_WAIT, _BARRIER)]
    if [op.name for op in ops] != [_WAIT, _BARRIER]:
        raise Refusal(main.loop, "expected one asynchronous wait and one barrier in the loop, in this order")
    if any(load.is_before_in_block(ops[-1]) for load in main.fragment_loads()[0]):
        raise Refusal(main.loop, "a fragment is loaded in front of the barrier")
    return ops


class _Copier:
    """Copies ops of a block with values replaced, each once.

    With `outside`, the copies stand outside the block, and all that they need is copied; else values that depend on
    none of the replaced ones stay as they are.
    """

    def __init__(self, block, replaced: list[tuple], *, outside: bool):
        self.block = block
        self.replaced = dict(replaced)
        self.outside = outside

    def value(self, value):
        """Returns what stands for a value in the copies, copying what defines it if need be."""
        if value in self.replaced:
            return self.replaced[value]
        source = producer(value)
        if source is None or source.block != self.block or not (self.outside or self._depends(source)):
            return value
        copy = self.copy(source)
        return copy.results[ir.OpResult(value).result_number]

    def copy(self, op):
        """Copies an op to the current insertion point, with its operands."""
        operands = [self.value(operand) for operand in op.operands]
        copy = op.clone().operation
        for index, operand in enumerate(operands):
            copy.operands[index] = operand
        self.replaced.update(zip(op.results, copy.results))
        return copy

    def _depends(self, op) -> bool:
        for operand in op.operands:
            if operand in self.replaced:
                return True
            source = producer(operand)
            if source is not None and source.block == self.block and self._depends(source):
                return True
        return False


@transform_op(RotateLoop)
def rotate_loop(payload, op, rewriter) -> None:
    """Rotates the main loop below `payload`; see the op."""
    main = find_main_loop(payload)
    if main is None:
        return
    if len(main.products) < 2:
        raise Refusal(main.loop, f"a loop with {len(main.products)} k sub-step cannot be rotated")
    old = main.loop
    block = body_of(old)
    head = _head(main)
    loads = main.fragment_loads()
    carried = [load.results[0] for load in loads[0]]

    # In front of the loop: wait for the first tile and load its first fragments.
    inits = list(old.operands)[3:]
    with ir.InsertionPoint(old):
        copier = _Copier(block, list(zip(block.arguments, [old.operands[0], *inits])), outside=True)
        for sync in head:
            copier.copy(sync)
        first = [copier.copy(load).results[0] for load in loads[0]]
    step_size = old.operands[2]
    rotated, arguments = with_carried(old, first, rewriter)

    # In the last sub-step: the same for the next iteration.
    terminator = terminator_of(rotated)
    with ir.InsertionPoint(terminator), rotated.location:
        following = ir.Operation.create(
            "arith.addi", results=[ir.IndexType.get()], operands=[block.arguments[0], step_size]
        ).results[0]
        copier = _Copier(
            block,
            [(block.arguments[0], following), *zip(list(block.arguments)[1 : 1 + len(inits)], terminator.operands)],
            outside=False,
        )
        next_head = [copier.copy(sync) for sync in head]
        next_loads = [copier.copy(load) for load in loads[0]]
        yielded = [*terminator.operands, *(load.results[0] for load in next_loads)]
        ir.Operation.create("scf.yield", operands=yielded)
    terminator.erase()
    for value, argument in zip(carried, arguments):
        value.replace_all_uses_with(argument)
    for stale in [*loads[0], *reversed(head)]:
        stale.erase()

    order = Order(block)
    for op_ in [op.operation for op in block.operations if op.operation.name in (ASYNC_COPY, ASYNC_GROUP)]:
        order.place(op_)
    for step, products in enumerate(main.products):
        for ahead in loads[step + 1] if step + 1 < len(loads) else [*next_head, *next_loads]:
            order.place(ahead)
        for product in products:
            order.place(product)
    order.place_rest()
