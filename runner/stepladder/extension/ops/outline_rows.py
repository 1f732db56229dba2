"""`tc.outline_rows`: gives each chain of linalg ops over the same rows a function of its own."""

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.rows import RowOp, is_chain, is_too_long, length_of
from stepladder.extension.lib.multi_kernel.stages import STARTS, one_function, outline, with_producers
from stepladder.extension.lib.multi_kernel.turned_loops import turn, turn_back
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import origin, producer, walk
from stepladder.payload.rewrites import unit_axes

_SLICE, _GENERIC = "tensor.extract_slice", "linalg.generic"


class OutlineRows(Tc.Operation, name="outline_rows"):
    """Moves chains of linalg ops over the same rows to private functions, with the views of their operands.

    A chain has a reduction along rows that lanes can compute, and the ops over the same rows that read its result or
    make what it reads, such as those of a softmax or a layer norm; a reduction of long rows may be alone. Ops that
    depend on a chain and are inside of it move after it. Rows of a constant are a copy that another kernel writes.
    Other ops are left as they are.

    Operands: a handle to a module with one public function.
    """

    target: Handle


@transform_op(OutlineRows)
def outline_rows(payload: ir.Operation, op: OutlineRows, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    function = one_function(payload)
    # Else a chain would return both a tensor and a view of it, which the front makes of such an op in its function.
    unit_axes.expand_unfused(function)
    body = function.regions[0].blocks[0]
    outlined_ops: set[ir.Operation] = set()
    turn(item for item in operations_of(body) if item.name == _GENERIC)
    while True:
        block = _Block(body)
        seed = next(
            (candidate for candidate in block.ops if candidate.reduced and candidate.op not in outlined_ops), None
        )
        if seed is None:
            break
        chain = block.chain(seed)
        outlined_ops.update(member.op for member in chain)
        if len(chain) > 1 or is_chain(seed):
            _outline(block, chain, rewriter)
    turn_back(walk(payload, _GENERIC), lambda item: item.block == body)


class _Block:
    """The ops of a block, what they depend on, and those that chains may have.

    Attributes:
        ops: that may be in a chain, in order.
    """

    def __init__(self, block: ir.Block) -> None:
        self.all = operations_of(block)
        self._places = {op: place for place, op in enumerate(self.all)}
        self._before: list[int] = []  # what an op depends on, as a set of bits
        for op in self.all:
            mask = 0
            for inner in walk(op):
                for operand in inner.operands:
                    source = producer(operand)
                    place = None if source is None else self._places.get(source)
                    if place is not None and place < len(self._before):
                        mask |= self._before[place] | 1 << place
            self._before.append(mask)
        self.ops = [RowOp(op) for op in self.all if op.name == _GENERIC and _may_be_in_chain(RowOp(op))]

    def chain(self, seed: RowOp) -> list[RowOp]:
        """Returns a reduction and the ops that can be computed with it, in order.

        Args:
            seed: the reduction.
        """
        rows = seed.rows()
        longest = length_of(seed, len(rows))
        if is_too_long(rows, longest):
            return [seed]
        candidates = [op for op in self.ops if op.is_over(rows) and length_of(op, len(rows)) <= longest]
        chain = [seed]
        is_growing = True
        while is_growing:
            is_growing = False
            for op in candidates:
                if op in chain or not _reads_rows(chain, op, len(rows)):
                    continue
                if self._is_convex([*chain, op]):
                    chain.append(op)
                    is_growing = True
        return sorted(chain, key=lambda member: self._places[member.op])

    def _is_convex(self, chain: list[RowOp]) -> bool:
        """Returns whether no op outside of a chain depends on one and is one that another depends on."""
        members = sum(1 << self._places[member.op] for member in chain)
        needed_ops = 0
        for member in chain:
            needed_ops |= self._before[self._places[member.op]]
        return not any(
            self._before[place] & members and not members >> place & 1 and op.name not in (*TENSOR_VIEWS, *STARTS)
            for place, op in enumerate(self.all)
            if needed_ops >> place & 1
        )

    def dependents(self, chain: list[RowOp]) -> list[ir.Operation]:
        """Returns the ops before the last of a chain that depend on it and are not in it, in order.

        Args:
            chain: in order.
        """
        members = sum(1 << self._places[member.op] for member in chain)
        last = self._places[chain[-1].op]
        return [
            op for place, op in enumerate(self.all[:last]) if self._before[place] & members and not members >> place & 1
        ]


def _may_be_in_chain(op: RowOp) -> bool:
    """Returns whether lanes can compute an op: of static shapes, whose body is of scalars and reads no other tensor. An
    op without results has the assertions of one that is fused with its reader, which has them too."""
    if not op.outputs:
        return False
    types = [operand.type for operand in op.op.operands]
    if not all(isinstance(type_, ir.RankedTensorType) and type_.has_static_shape for type_ in types):
        return False
    for inner in operations_of(op.body):
        if len(inner.regions) or any(isinstance(operand.type, ir.ShapedType) for operand in inner.operands):
            return False
    try:
        kept_loops = op.kept
    except Refusal:
        return False
    if not op.is_over([op.sizes[loop] for loop in kept_loops]):
        return False
    outputs = range(op.inputs, op.inputs + op.outputs)
    if op.reduced:
        starts = [producer(origin(op.op.operands[place], TENSOR_VIEWS)) for place in outputs]
        return all(start is not None and start.name == "linalg.fill" for start in starts)
    return not any(list(op.body.arguments[place].uses) for place in outputs)


def _reads_rows(chain: list[RowOp], op: RowOp, rank: int) -> bool:
    """Returns whether an op reads a result of a chain, or makes what it reads, and all of this row by row."""
    edges = [edge for member in chain for edge in (*_edges(member, op), *_edges(op, member))]
    return bool(edges) and all(
        not maker.is_turned
        and reader.reads_row_by_row(number, rank, of_rows=bool(maker.reduced) or len(maker.kept) == rank)
        and _is_of_same_axes(reader.op.operands[number])
        for maker, reader, number in edges
    )


def _edges(maker: RowOp, reader: RowOp) -> list[tuple[RowOp, RowOp, int]]:
    """Returns the operands of an op that are views of another one's results."""
    return [
        (maker, reader, number)
        for number in range(reader.inputs)
        if (source := producer(origin(reader.op.operands[number], TENSOR_VIEWS))) is not None and source == maker.op
    ]


def _is_of_same_axes(value: ir.Value) -> bool:
    """Returns whether a view adds or leaves out axes of one element alone, and casts nothing."""
    source = producer(value)
    while source is not None and source.name in TENSOR_VIEWS:
        shapes = [ir.RankedTensorType(item.type).shape for item in (source.operands[0], value)]
        long, other = ([size for size in shape if size > 1] for shape in shapes)
        if source.name == "tensor.cast" or long != other:
            return False
        value = source.operands[0]
        source = producer(value)
    return True


def _outline(block: _Block, chain: list[RowOp], rewriter: Rewriter) -> None:
    """Moves a chain to a function; each op has views and fills of its own first, so that others may move."""
    members = [member.op for member in chain]
    behind = block.dependents(chain)
    for op in members:
        for place, operand in enumerate(op.operands):
            source, root = producer(operand), producer(origin(operand, TENSOR_VIEWS))
            if source is None or root is None:
                continue
            if (
                place < len(op.operands) - len(op.results)
                and repeated_number(origin(operand, TENSOR_VIEWS)) is not None
            ):
                op.operands[place] = _stored(operand, members[0])
            elif root.name in STARTS or (source != root and root in members):
                sources = with_producers([source], (*TENSOR_VIEWS, *STARTS))
                op.operands[place] = clone_ops(sources, {}, ir.InsertionPoint(op))[operand]
    after = members[-1]
    for op in behind:
        op.move_after(after)
        after = op
    ops = with_producers(members, (*TENSOR_VIEWS, _SLICE))
    inside = set(ops)
    results = [
        result
        for op in members
        for result in op.results
        if any(_in_block(use.owner.operation, op.block) not in inside for use in result.uses)
    ]
    if results:
        outline(ops, results, "rows", rewriter)


def _stored(value: ir.Value, before: ir.Operation) -> ir.Value:
    """Returns a constant, or one number in all elements, that a kernel of its own writes: rows are read from memory."""
    type_ = ir.RankedTensorType(value.type)
    with ir.InsertionPoint(before), before.location:
        source = producer(value)
        constants = with_producers([source] if source is not None else [], (*TENSOR_VIEWS, *STARTS))
        clone = clone_ops(constants, {}, ir.InsertionPoint(before))[value]
        empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
        return create_named_op("linalg.copy", [clone], empty).results[0]


def _in_block(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """Returns the op of a block that another one is, or is nested in."""
    while op.block != block:
        assert op.parent is not None
        op = op.parent.operation
    return op
