"""`tc.multistage_loads`: issues the loads of a pipeline ahead of the MMAs that read them."""

from stepladder.extension.lib import tma, tma_pipeline
from stepladder.extension.lib.arithmetic import index, less_than
from stepladder.extension.lib.control_flow import (
    BOUNDS,
    add_iter_args,
    body_of,
    bounds_over_k,
    extend_yield,
    operations_of,
    terminator_of,
)
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import find_launch
from stepladder.mlir.bindings import arith, ir, scf
from stepladder.mlir.traverse import defining_op, producer


class MultistageLoads(Tc.Operation, name="multistage_loads"):
    """Issues the loads of a k step as many steps ahead as the pipeline has stages, less one.

    A loop before the main loop fills the first stages. In the main loop, after the MMA and the release of a stage, the
    loads of a later step are issued while there are steps left. The state of the pipeline that loads are issued with is
    carried in addition to the state that MMAs read with.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: stages, of the pipeline; with one stage the op does nothing.
    Refuses: a main loop whose bounds are not constant, or that does not issue loads at one point.
    """

    target: Handle
    stages: ir.IntegerAttr


def _state_positions(loop: ir.Operation, issue: ir.Operation) -> tuple[int, int]:
    """Returns the positions, among the iter_args of a loop, of the stage and the parity that loads are issued with."""
    wait = next(op for op in operations_of(body_of(issue)) if op.name == tma.WAIT)
    arguments = [ir.Value(argument) for argument in body_of(loop).arguments][1:]
    stage = next(operand for operand in wait.operands if operand in arguments)
    parity = defining_op(wait.operands[1]).operands[0]  # `empty` has the opposite parity
    return arguments.index(stage), arguments.index(parity)


def _backward_slice(value: ir.Value, block: ir.Block, slice_: list[ir.Operation]) -> list[ir.Operation]:
    """Appends to `slice_` the ops of a block that compute a value, in order; returns `slice_`."""
    source = producer(value)
    if source is not None and source.block == block and source not in slice_:
        for operand in source.operands:
            _backward_slice(operand, block, slice_)
        slice_.append(source)
    return slice_


@transform_op(MultistageLoads)
def multistage_loads(payload: ir.Operation, op: MultistageLoads, rewriter: Rewriter) -> None:
    """Rewrites the main loop of the one launch below `payload`; see the op."""
    stages = op.stages.value
    if stages == 1:
        return
    loop = tma_pipeline.main_loop(find_launch(payload))
    if loop is None:
        return
    issues = tma_pipeline.issues_below(loop)
    if len(issues) != 1:
        raise Refusal(loop, f"expected one point where loads are issued in the loop, found {len(issues)}")
    issue = issues[0]
    lower, upper, step = bounds_over_k(loop)
    ahead = (stages - 1) * step

    positions = _state_positions(loop, issue)
    body = body_of(loop)
    terminator = terminator_of(body)
    next_state = [terminator.operands[position] for position in positions]
    advance = _backward_slice(next_state[1], body, _backward_slice(next_state[0], body, []))
    state: list[ir.Value] = [body.arguments[1 + position] for position in positions]
    initial = [loop.operands[BOUNDS + position] for position in positions]

    # The prologue fills all stages but one.
    with ir.InsertionPoint(loop), loop.location:
        fill = scf.ForOp(loop.operands[0], index(min(lower + ahead, upper)), loop.operands[2], initial)
        replacements: dict[ir.Value, ir.Value] = dict(
            zip([body.arguments[0], *state], [fill.induction_variable, *fill.inner_iter_args])
        )
        with ir.InsertionPoint(fill.body):
            mapping = tma_pipeline.clone_ops([issue, *advance])
            scf.yield_([mapping[value] for value in next_state])
        tma_pipeline.replace_operands(fill.operation, replacements)

    # The loop issues the loads of the step that is `ahead` later.
    loop, arguments = add_iter_args(loop, list(fill.operation.results), rewriter)
    body = body_of(loop)
    terminator = terminator_of(body)
    with ir.InsertionPoint(terminator), loop.location:
        later = arith.addi(body.arguments[0], index(ahead))
        has_step = less_than(later, loop.operands[1])
        condition = arith.andi(issue.operands[0], has_step)
        mapping = tma_pipeline.clone_ops(advance)
    issue.move_before(terminator)
    tma_pipeline.replace_operands(issue, dict(zip([body.arguments[0], *state], [later, *arguments])))
    issue.operands[0] = condition
    for value in mapping.values():
        tma_pipeline.replace_operands(defining_op(value), dict(zip(state, arguments)))
    extend_yield(loop, [mapping[value] for value in next_state])
