"""`tc.split_reductions`: divides reductions with few results into parts that threads compute at the same time."""

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.element_bodies import converted
from stepladder.extension.lib.epilogues.folds import Fold, fold_of
from stepladder.extension.lib.multi_kernel.reduction_parts import Parts, parts_of
from stepladder.extension.lib.multi_kernel.rows import RowOp
from stepladder.extension.lib.multi_kernel.stages import one_function
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, create_loop_index, create_named_op
from stepladder.mlir.reshapes import reshaped
from stepladder.mlir.traverse import defining_op, producer


class SplitReductions(Tc.Operation, name="split_reductions"):
    """Divides each reduction with few results and many terms into two: the first one reduces parts of the terms, and
    the second one its results. The second one is divided again, if it has as many terms.

    A part is an iteration of some reduced loops, or of a part of one, whose operands are expanded. Sums of 16-bit
    floating-point numbers have parts of f32, and are rounded once, by an elementwise op. Reductions that a chain of ops
    over the same rows has, and those whose body is no fold, are left as they are.

    `structured.split_reduction` of upstream divides a single reduced loop, for one result, in the type of the result.

    Operands: a handle to a module with one public function on tensors.
    """

    target: Handle


@transform_op(SplitReductions)
def split_reductions(payload: ir.Operation, op: SplitReductions, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    body = one_function(payload).regions[0].blocks[0]
    pending = [item for item in operations_of(body) if item.name == "linalg.generic"]
    while pending:
        generic = pending.pop()
        parts = _parts_of(generic)
        if parts is not None:
            with ir.InsertionPoint(generic), generic.location:
                pending += _split(generic, parts)
            rewriter.erase_op(generic)


def _parts_of(generic: ir.Operation) -> Parts | None:
    """Returns the parts of an op; None for one that stays."""
    types = [operand.type for operand in generic.operands]
    if not all(isinstance(type_, ir.RankedTensorType) and type_.has_static_shape for type_ in types):
        return None
    try:
        return parts_of(RowOp(generic))
    except Refusal:
        return None


def _split(generic: ir.Operation, parts: Parts) -> list[ir.Operation]:
    """Creates the reductions of an op in its place: of the parts, and of each result; returns the latter."""
    row_op = RowOp(generic)
    folds = [fold for number in range(row_op.outputs) if (fold := fold_of(generic, number)) is not None]
    divided_loops = _DividedLoops(row_op, parts)
    partial = divided_loops.reduce_parts(folds)
    kept_loops = sorted(divided_loops.kept)
    reductions = []
    for number, fold in enumerate(folds):
        place = row_op.inputs + number
        axes = [kept_loops.index(divided_loops.first(loop)) for loop in row_op.maps[place] if loop is not None]
        start = generic.operands[place]
        type_ = ir.RankedTensorType(start.type)
        is_narrow = type_.element_type != fold.type
        total = _fold_parts(fold, partial[number], _filled(fold, type_.shape) if is_narrow else start, axes)
        reductions.append(defining_op(total))
        generic.results[number].replace_all_uses_with(_rounded(fold, total, start) if is_narrow else total)
    return reductions


class _DividedLoops:
    """The loops of a reduction after one of them is divided into two.

    Attributes:
        kept: loops of the results of the parts.
    """

    def __init__(self, op: RowOp, parts: Parts) -> None:
        self._op, self._parts = op, parts
        results = {loop for loop in op.maps[-1] if loop is not None}
        self.kept = {self.first(loop) for loop in (*results, *parts.whole)}
        if parts.divided is not None:
            self.kept.add(parts.divided + parts.are_inner)

    def first(self, loop: int) -> int:
        """Returns the new number of a loop: of the outer one, where it is divided.

        Args:
            loop: of the op.
        """
        return loop + (self._parts.divided is not None and loop > self._parts.divided)

    def _new(self, loop: int) -> list[int]:
        """Returns the loops that a loop becomes."""
        return [loop, loop + 1] if loop == self._parts.divided else [self.first(loop)]

    def _sizes(self, loop: int) -> list[int]:
        """Returns the iterations of the loops that a loop becomes."""
        size, outer = self._op.sizes[loop], self._parts.outer
        return [outer, size // outer] if loop == self._parts.divided else [size]

    def _operand(self, number: int) -> tuple[ir.Value, list[ir.AffineExpr]]:
        """Returns an operand, expanded along a divided loop, and its map."""
        value, shape, groups = self._op.op.operands[number], [], []
        map_: list[ir.AffineExpr] = []
        for loop in self._op.maps[number]:
            sizes = [1] if loop is None else self._sizes(loop)
            groups.append(list(range(len(shape), len(shape) + len(sizes))))
            shape += sizes
            map_ += [ir.AffineExpr.get_constant(0)] if loop is None else map(ir.AffineExpr.get_dim, self._new(loop))
        return reshaped(value, shape, groups) if len(shape) > len(groups) else value, map_

    def reduce_parts(self, folds: list[Fold]) -> list[ir.Value]:
        """Returns the results of the parts, at the insertion point; their axes are the loops that are kept, in order.

        Args:
            folds: of the results.
        """
        op = self._op
        loops = [new for loop in range(len(op.sizes)) for new in self._new(loop)]
        sizes = [size for loop in range(len(op.sizes)) for size in self._sizes(loop)]
        operands = [self._operand(number) for number in range(op.inputs)]
        kept_loops = sorted(self.kept)
        begins = [_filled(fold, [sizes[loop] for loop in kept_loops]) for fold in folds]
        maps = [ir.AffineMap.get(len(loops), 0, map_) for _, map_ in operands]
        maps += [ir.AffineMap.get(len(loops), 0, list(map(ir.AffineExpr.get_dim, kept_loops)))] * len(folds)
        generic, block = create_generic([value for value, _ in operands], begins, maps)
        with ir.InsertionPoint(block):
            terms = self._terms(block, folds)
            so_far = list(block.arguments)[op.inputs :]
            folded = [
                fold.folded(value, term if term.type == fold.type else converted(term, fold.type))
                for fold, value, term in zip(folds, so_far, terms)
            ]
            ir.Operation.create("linalg.yield", operands=folded)
        return list(generic.results)

    def _terms(self, block: ir.Block, folds: list[Fold]) -> list[ir.Value]:
        """Returns what is folded, at the end of the block of the parts, which is the insertion point."""
        values: dict[ir.Value, ir.Value] = dict(zip(self._op.body.arguments[: self._op.inputs], block.arguments))
        end = ir.InsertionPoint(block)
        folded = [fold.op for fold in folds]
        for item in operations_of(self._op.body)[:-1]:
            if item.name == "linalg.index":
                values[item.results[0]] = self._index(ir.IntegerAttr(item.attributes["dim"]).value)
            elif item not in folded:
                values |= clone_ops([item], values, end)
        return [fold.term_in(values) for fold in folds]

    def _index(self, loop: int) -> ir.Value:
        """Returns the index of a loop of the op, at the insertion point."""
        outer, *inner = map(create_loop_index, self._new(loop))
        if not inner:
            return outer
        size = arith.constant(ir.IndexType.get(), self._op.sizes[loop] // self._parts.outer)
        return arith.addi(arith.muli(outer, size), inner[0])


def _filled(fold: Fold, shape: list[int]) -> ir.Value:
    """Returns a tensor of neutral elements, at the insertion point."""
    type_ = ir.RankedTensorType.get(shape, fold.type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    return create_named_op("linalg.fill", [fold.neutral()], empty).results[0]


def _fold_parts(fold: Fold, parts: ir.Value, begin: ir.Value, axes: list[int]) -> ir.Value:
    """Returns a result of a reduction, folded from those of its parts, in their type, at the insertion point.

    Args:
        fold: of the result.
        parts: their results.
        begin: what the result begins with.
        axes: of the parts that the result has, in its order.
    """
    rank = ir.RankedTensorType(parts.type).rank
    maps = [ir.AffineMap.get_identity(rank), ir.AffineMap.get(rank, 0, list(map(ir.AffineExpr.get_dim, axes)))]
    generic, block = create_generic([parts], [begin], maps)
    with ir.InsertionPoint(block):
        part, so_far = block.arguments
        ir.Operation.create("linalg.yield", operands=[fold.folded(so_far, part)])
    return generic.results[0]


def _rounded(fold: Fold, total: ir.Value, start: ir.Value) -> ir.Value:
    """Returns a result of 16 bits, of what it begins with and all terms, at the insertion point."""
    fill, type_ = producer(start), ir.RankedTensorType(start.type)
    is_number = fill is not None and fill.name == "linalg.fill"
    inputs = [total] if is_number else [total, start]
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    maps = [ir.AffineMap.get_identity(type_.rank)] * (len(inputs) + 1)
    generic, block = create_generic(inputs, [empty], maps)
    with ir.InsertionPoint(block):
        begin = fill.operands[0] if fill is not None and is_number else block.arguments[1]
        sum_ = fold.folded(converted(begin, fold.type), block.arguments[0])
        ir.Operation.create("linalg.yield", operands=[converted(sum_, type_.element_type)])
    return generic.results[0]
