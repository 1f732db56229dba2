"""`tc.interleave_copies`: spreads the asynchronous copies of an iteration over its k sub-steps."""

from stepladder.extension.lib.control_flow import body_of, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.schedule import ASYNC_COPY, ASYNC_GROUP, BlockSchedule, find_main_loop
from stepladder.mlir.bindings import ir


class InterleaveCopies(Tc.Operation, name="interleave_copies"):
    """Issues the asynchronous copies of the main loop evenly over all its k sub-steps but the last.

    The copies of a sub-step are issued before its MMA ops. The group is committed after the last copy, before the last
    sub-step, which in a rotated loop waits for an earlier group.

    Operands: a handle to any op; the one loop below with MMA ops is rewritten.
    Refuses: a loop with fewer than two sub-steps.
    """

    target: Handle


@transform_op(InterleaveCopies)
def interleave_copies(payload: ir.Operation, op: InterleaveCopies, rewriter: Rewriter) -> None:
    """Rewrites the main loop below `payload`; see the op."""
    main = find_main_loop(payload)
    if main is None:
        return
    operations = operations_of(body_of(main.loop))
    copies = [inner for inner in operations if inner.name == ASYNC_COPY]
    groups = [inner for inner in operations if inner.name == ASYNC_GROUP]
    if not copies:
        return
    if len(main.mmas) < 2:
        raise Refusal(main.loop, f"copies cannot be interleaved with {len(main.mmas)} k sub-step")
    steps = len(main.mmas) - 1
    per_step = -(-len(copies) // steps)
    step_of = {mmas[0]: step for step, mmas in enumerate(main.mmas[:-1])}

    schedule = BlockSchedule(body_of(main.loop))
    for inner in operations[:-1]:
        if inner in copies or inner in groups:
            continue
        step = step_of.get(inner)
        if step is not None:
            for copy in copies[step * per_step : (step + 1) * per_step]:
                schedule.append(copy)
            if step == steps - 1:
                for group in groups:
                    schedule.append(group)
        schedule.append(inner)
    schedule.append_rest()
