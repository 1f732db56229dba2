"""`tc.overlap_softmax`: computes the softmax of a tile while the values of the tile before are multiplied."""

from collections.abc import Iterable, Sequence

from stepladder.extension.lib import launches, warpgroup_ops
from stepladder.extension.lib.control_flow import body_of, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.warpgroup_ops import MMAS, WarpgroupMmaRegisters
from stepladder.mlir.bindings import arith, ir, nvvm, scf
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import producer, walk

_COMMIT, _WAIT = "nvvm.cp.async.commit.group", "nvvm.wgmma.wait.group.sync.aligned"
_REGISTERS = WarpgroupMmaRegisters.OPERATION_NAME


class OverlapSoftmax(Tc.Operation, name="overlap_softmax"):
    """Moves the products of weights and values to the next iteration of the loop over keys, in front of its softmax.

    An iteration begins the products of queries and keys, then those of the weights of the iteration before, and waits
    for the first alone. The softmax runs beside the second. The first iteration, without values, is in front of the
    loop, and the last products are behind it. Tiles of values must have a stage more than those of keys.

    Operands: a handle to any op with one `gpu.launch`, in which one loop has a product of tiles, and products of its
    softmax in registers, whose accumulator is scaled before.
    Refuses: other loops.
    """

    target: Handle


@transform_op(OverlapSoftmax)
def overlap_softmax(payload: ir.Operation, op: OverlapSoftmax, rewriter: Rewriter) -> None:
    """Rewrites the loop in the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    loops = [loop for loop in walk(launch, "scf.for") if walk(loop, _REGISTERS)]
    if len(loops) != 1:
        raise Refusal(launch, f"expected one loop with products of operands in registers, found {len(loops)}")
    (loop,) = loops
    parts = _Parts(loop)
    with loop.location:
        replaced = _rewrite(loop, parts)
    for old, new in zip(loop.results, replaced):
        old.replace_all_uses_with(new)
    rewriter.erase_op(loop)


class _Parts:
    """The ops of an iteration, by what they do.

    Args:
        loop: over keys.

    Attributes:
        loads: those that wait for tiles and copy the next ones.
        scores: the product of queries and keys, with what makes its operands.
        softmax: what follows from it.
        scaling: of the accumulator, by what the maxima have grown by.
        operands: what makes the matrix descriptor of the values.
        products: of weights and values.
        end: the op that yields.
    """

    def __init__(self, loop: ir.Operation) -> None:
        body = operations_of(body_of(loop))
        self.end = body.pop()
        self.products = [item for item in body if item.name == _REGISTERS]
        tiles = [item for item in body if item.name in MMAS and item.name != _REGISTERS]
        commits = [number for number, item in enumerate(body) if item.name == _COMMIT]
        accumulator = body_of(loop).arguments[1]
        if len(tiles) != 1 or not commits or accumulator.type != self.products[0].results[0].type:
            raise Refusal(loop, f"{len(tiles)} products of tiles, and {len(commits)} commits of copies; accepted: one")
        waits = [item for item in body if item.name == _WAIT]
        self.loads = body[: commits[-1] + 1]
        rest = [item for item in body[commits[-1] + 1 :] if item not in self.products and item not in waits]
        self.operands = _sources([self.products[0].operands[1]], body)
        self.scaling = _followers(accumulator, rest)
        self.scores = [*_sources(list(tiles[0].operands), rest), tiles[0]]
        done = {*self.scores, *self.operands, *self.scaling}
        self.softmax = [item for item in rest if item not in done]
        if self.products[0].operands[2] not in [value for item in self.scaling for value in item.results]:
            raise Refusal(loop, "products that are not added to a scaled accumulator")

    @property
    def weights(self) -> list[ir.Value]:
        """The operands in registers of the products with values."""
        return [product.operands[0] for product in self.products]


def _sources(values: Iterable[ir.Value], among: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Returns the ops that values are made by, in order."""
    found: set[ir.Operation] = set()
    pending = list(values)
    while pending:
        source = producer(pending.pop())
        if source is not None and source in among and source not in found:
            found.add(source)
            pending += source.operands
    return [item for item in among if item in found]


def _followers(value: ir.Value, among: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Returns the ops that depend on a value, in order."""
    known, found = {value}, []
    for item in among:
        if any(operand in known for operand in item.operands):
            found.append(item)
            known.update(item.results)
    return found


def _rewrite(loop: ir.Operation, parts: _Parts) -> list[ir.Value]:
    """Creates the loop in front of the old one; returns what takes the place of its results."""
    lower, upper, step, *begin = loop.operands
    iteration, *carried = body_of(loop).arguments
    known = clone_ops(
        [*parts.loads, *parts.scores, *parts.softmax],
        dict(zip([iteration, *carried], [lower, *begin])),
        ir.InsertionPoint(loop),
    )
    statistics = list(parts.end.operands)[1:]
    with ir.InsertionPoint(loop):
        first = [begin[0], *(known[value] for value in [*statistics, *parts.weights]), lower]
        new = scf.ForOp(arith.addi(lower, step), upper, step, first)
    values: dict[ir.Value, ir.Value] = {iteration: new.induction_variable}
    values |= dict(zip(carried, list(new.inner_iter_args)))
    *_, previous = new.inner_iter_args
    weights = list(new.inner_iter_args)[len(carried) : -1]
    point = ir.InsertionPoint(new.body)
    values = clone_ops([*parts.loads, *parts.scores], values, point)
    scores = values[parts.scores[-1].results[0]].owner
    scores.attributes[warpgroup_ops.WAIT_GROUP] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    with point:
        total = _multiply(parts, values[carried[0]], weights, {**values, iteration: previous}, point)
        nvvm.wgmma_wait_group_sync_aligned(len(parts.products))
        values = clone_ops(parts.softmax, values, point)
        nvvm.wgmma_wait_group_sync_aligned(0)
        values = clone_ops(parts.scaling, {**values, carried[0]: total}, point)
        scaled = values[parts.products[0].operands[2]]
        scf.yield_([scaled, *(values[value] for value in [*statistics, *parts.weights]), new.induction_variable])
    *results, last = new.results_
    behind = ir.InsertionPoint(loop)
    with behind:
        total = _multiply(parts, results[0], results[len(carried) :], {iteration: last}, behind)
        nvvm.wgmma_wait_group_sync_aligned(0)
    return [total, *results[1 : len(carried)]]


def _multiply(
    parts: _Parts,
    total: ir.Value,
    weights: Sequence[ir.Value],
    known: dict[ir.Value, ir.Value],
    point: ir.InsertionPoint,
) -> ir.Value:
    """Returns an accumulator with the products of weights and values, which may be in flight."""
    for product in parts.products:
        known.pop(product.operands[1], None)
    values = clone_ops(parts.operands, known, point)
    values[parts.products[0].operands[2]] = total
    values |= dict(zip(parts.weights, weights))
    values = clone_ops(parts.products, values, point)
    return values[parts.products[-1].results[0]]
