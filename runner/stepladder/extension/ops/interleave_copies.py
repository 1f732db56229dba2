"""`tc.interleave_copies`: the asynchronous copies of an iteration are issued a share a sub-step, not in one burst."""

from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.extension.lib.schedule import (
    ASYNC_COPY,
    ASYNC_GROUP,
    Order,
    body_of,
    find_main_loop,
)
from stepladder.mlir.bindings import ext, transform


class InterleaveCopies(Tc.Operation, name="interleave_copies"):
    """Spreads the asynchronous copies of the main loop evenly over its k sub-steps, all but the last.

    A copy goes in front of the products of its sub-step. The group closes behind the last copy, before the last
    sub-step, which in a rotated loop waits for an earlier one.

    Operands: a handle to any op; the one loop below with matrix products is treated.
    Refuses: a loop with fewer than two sub-steps.
    """

    target: ext.Operand[transform.AnyOpType]


@transform_op(InterleaveCopies)
def interleave_copies(payload, op, rewriter) -> None:
    """Spreads the copies of the main loop below `payload`; see the op."""
    main = find_main_loop(payload)
    if main is None:
        return
    operations = [op.operation for op in body_of(main.loop).operations]
    copies = [op for op in operations if op.name == ASYNC_COPY]
    groups = [op for op in operations if op.name == ASYNC_GROUP]
    if not copies:
        return
    if len(main.products) < 2:
        raise Refusal(main.loop, f"copies cannot be spread over {len(main.products)} k sub-step")
    slots = len(main.products) - 1
    share = -(-len(copies) // slots)
    starts = {products[0]: slot for slot, products in enumerate(main.products[:-1])}

    order = Order(body_of(main.loop))
    for op_ in operations[:-1]:
        if op_ in copies or op_ in groups:
            continue
        slot = starts.get(op_)
        if slot is not None:
            for copy in copies[slot * share : (slot + 1) * share]:
                order.place(copy)
            if slot == slots - 1:
                for group in groups:
                    order.place(group)
        order.place(op_)
    order.place_rest()
