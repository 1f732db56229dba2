"""`tc.multistage_loads`: the loads of the ring's slots run ahead of the products that read them."""

from stepladder.extension.lib import building, pipeline, tma
from stepladder.extension.lib.building import index
from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.mlir.bindings import arith, ext, ir, scf, transform
from stepladder.mlir.traverse import walk


class MultistageLoads(Tc.Operation, name="multistage_loads"):
    """Issues the loads of a step of k as many steps earlier as the ring has slots, less one.

    In front of the loop the first slots are filled; in the loop, behind the product and the release of a slot, the next
    is, as long as there are steps left. The place in the ring where loads go travels beside that where products read.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: stages, slots of the ring; with one nothing can run ahead, and nothing changes.
    Refuses: a main loop whose bounds are not constant, or that issues no loads.
    """

    target: ext.Operand[transform.AnyOpType]
    stages: ir.IntegerAttr


def _next_place(loop, issue):
    """Returns the numbers, among the iter_args of a loop, of the slot and the parity that its loads are issued for."""
    wait = next(op.operation for op in issue.regions[0].blocks[0].operations if op.operation.name == tma.WAIT)
    arguments = list(building.body_of(loop).arguments)[1:]
    slot = next(operand for operand in wait.operands if operand in arguments)
    parity = wait.operands[1].owner.operation.operands[0]  # that of `empty` is the opposite
    return arguments.index(slot), arguments.index(parity)


def _replace_inside(root, replaced: dict) -> None:
    for inner in walk(root):
        for position, operand in enumerate(inner.operands):
            if operand in replaced:
                inner.operation.operands[position] = replaced[operand]


def _backward(value, block, found: list) -> list:
    """Returns the ops of a block that a value is computed by, in order."""
    source = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if source is not None and source.block == block and source not in found:
        for operand in source.operands:
            _backward(operand, block, found)
        found.append(source)
    return found


@transform_op(MultistageLoads)
def multistage_loads(payload, op, rewriter) -> None:
    """Treats the main loop of the one launch below `payload`; see the op."""
    stages = op.stages.value
    if stages == 1:
        return
    loop = pipeline.main_loop(building.find_launch(payload))
    if loop is None:
        return
    issues = pipeline.issues_below(loop)
    if len(issues) != 1:
        raise Refusal(loop, f"expected one place where loads are issued in the loop, found {len(issues)}")
    issue = issues[0]
    first, last, step = (building.static_value(loop.operands[number]) for number in range(3))
    if None in (first, last, step):
        raise Refusal(loop, "the bounds of the loop over k are not constant")
    ahead = (stages - 1) * step

    places = _next_place(loop, issue)
    body = building.body_of(loop)
    terminator = building.terminator_of(body)
    following = [terminator.operands[place] for place in places]
    advance = _backward(following[1], body, _backward(following[0], body, []))
    carried = [list(body.arguments)[1 + place] for place in places]
    initial = [loop.operands[3 + place] for place in places]

    # In front of the loop: as many steps as the ring takes, less one.
    with ir.InsertionPoint(loop), loop.location:
        filling = scf.ForOp(loop.operands[0], index(min(first + ahead, last)), loop.operands[2], initial)
        replaced = dict(zip([body.arguments[0], *carried], [filling.induction_variable, *filling.inner_iter_args]))
        with ir.InsertionPoint(filling.body):
            copied = pipeline.copies_inside([issue, *advance], filling.body)
            scf.yield_([copied[value] for value in following])
        _replace_inside(filling, replaced)

    # In the loop: the step that is that far ahead.
    loop, arguments = building.with_carried(loop, list(filling.operation.results), rewriter)
    body = building.body_of(loop)
    terminator = building.terminator_of(body)
    with ir.InsertionPoint(terminator), loop.location:
        later = arith.addi(body.arguments[0], index(ahead))
        is_there = arith.cmpi(arith.CmpIPredicate.ult, later, loop.operands[1])
        condition = arith.andi(issue.operands[0], is_there)
        copied = pipeline.copies_inside(advance, body)
    issue.move_before(terminator)
    _replace_inside(issue.regions[0].blocks[0].owner, dict(zip([body.arguments[0], *carried], [later, *arguments])))
    issue.operands[0] = condition
    for value in copied.values():
        _replace_inside(value.owner, dict(zip(carried, arguments)))
    building.extend_yield(loop, [copied[value] for value in following])
