"""`tc.repeat_statistics`: has each op that reads what is made of the statistics of columns or channels compute it."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import indexing_maps, loops_of
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.payload import positions

_GENERIC = "linalg.generic"
# Ops that are repeated too, but not in f64.
_QUOTIENTS = ("arith.divf", "math.rsqrt", "math.sqrt")
# Readers of an op at most.
_MOST = 8


class RepeatStatistics(Tc.Operation, name="repeat_statistics"):
    """Copies elementwise `linalg.generic` ops that depend on reductions along other axes than the innermost, such as
    the mean of a channel and the differences from it, for each `linalg.generic` that reads them.

    Upstream fuses an op with the one op that reads its result. A batch norm reads a mean three times and differences
    twice: kernels would compute means from sums, and write the differences that two others read. Chains of reductions
    along rows stay: one kernel computes them, and numbers of rows once for each row.

    Operands: a handle to functions on tensors. Ops stay whose bodies have functions that take long, and those that
    read more elements than they make.
    """

    target: Handle


@transform_op(RepeatStatistics)
def repeat_statistics(payload: ir.Operation, op: RepeatStatistics, rewriter: Rewriter) -> None:
    """Rewrites the ops below `payload`; see the op."""
    known = positions.found(walk(payload))
    of_columns: set[ir.Value] = set()
    repeated: list[ir.Operation] = []
    for item in walk(payload, _GENERIC, *TENSOR_VIEWS):
        if item.name in TENSOR_VIEWS:
            of_columns.update(item.results if item.operands[0] in of_columns else ())
        elif not positions.is_parallel(item):
            of_columns.update(item.results if not _is_along_rows(item) else ())
        elif not of_columns.isdisjoint(item.operands) and _is_repeated(item, known):
            of_columns.update(item.results)
            repeated.append(item)
    for item in reversed(repeated):
        users = list(dict.fromkeys(users_of(item.results[0])))
        readers = [user for user in users if user.name in (_GENERIC, *TENSOR_VIEWS)]
        if len(users) < 2 or len(readers) > _MOST:
            continue
        for reader in readers:
            copy = clone_ops([item], {}, ir.InsertionPoint(reader))[item.results[0]]
            for place, operand in enumerate(reader.operands):
                if operand == item.results[0]:
                    reader.operands[place] = copy
        left = users_of(item.results[0])
        if not left:
            rewriter.erase_op(item)
        elif all(user.name == "func.return" for user in left):
            item.move_before(left[0])  # beside other results, with which it is one launch


def _is_along_rows(reduction: ir.Operation) -> bool:
    """Returns whether a reduction is along the innermost axes of what it reads."""
    kept = set(loops_of(indexing_maps(reduction)[-1]))
    largest = max(indexing_maps(reduction), key=lambda map_: len(map_.results))
    order = [loop in kept for loop in loops_of(largest)]
    return order == sorted(order, reverse=True)


def _is_repeated(op: ir.Operation, known: dict[ir.Operation, bool]) -> bool:
    """Returns whether an elementwise op takes less time than to load what it makes, once more."""
    maps = indexing_maps(op)
    if len(op.results) != 1 or maps[-1] != ir.AffineMap.get_identity(maps[-1].n_dims):
        return False
    made = ir.RankedTensorType(op.results[0].type)
    if isinstance(made.element_type, ir.F64Type) and any(walk(op, *_QUOTIENTS)):
        return False
    read = [map_ for map_, operand in zip(maps[:-1], op.operands) if not known.get(producer(operand) or op, False)]
    return sum(len(loops_of(map_)) == made.rank for map_ in read) <= 1 and positions.is_cheap(op, _QUOTIENTS)
