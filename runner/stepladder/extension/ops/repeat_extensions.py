"""`tc.repeat_extensions`: has each op that reads extended elements of a tensor extend them."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.traverse import users_of, walk

_GENERIC = "linalg.generic"
_EXTENSIONS = {"arith.extf", "arith.extsi", "arith.extui", "linalg.yield"}


class RepeatExtensions(Tc.Operation, name="repeat_extensions"):
    """Copies elementwise `linalg.generic` ops that extend the elements of a tensor for each `linalg.generic` that reads
    the result.

    Upstream fuses an op with the one op that reads its result. A variance, for example, has two readers of its operand
    in f64, as front ends write it: a kernel would write the wide elements, and both would read them.

    Operands: a handle to functions on tensors. What a matmul reads, and what is a result, stays.
    """

    target: Handle


@transform_op(RepeatExtensions)
def repeat_extensions(payload: ir.Operation, op: RepeatExtensions, rewriter: Rewriter) -> None:
    """Rewrites the ops below `payload`; see the op."""
    for item in walk(payload, _GENERIC):
        readers = users_of(item.results[0]) if len(item.results) == 1 else []
        if len(readers) < 2 or not _is_extension(item):
            continue
        for reader in [user for user in dict.fromkeys(readers) if user.name == _GENERIC]:
            copy = clone_ops([item], {}, ir.InsertionPoint(reader))[item.results[0]]
            for place, operand in enumerate(reader.operands):
                if operand == item.results[0]:
                    reader.operands[place] = copy
        if not users_of(item.results[0]):
            rewriter.erase_op(item)


def _is_extension(op: ir.Operation) -> bool:
    """Returns whether an op extends each element of one tensor."""
    maps = indexing_maps(op)
    is_plain = len(op.operands) == 2 and all(map_ == ir.AffineMap.get_identity(map_.n_dims) for map_ in maps)
    return is_plain and {inner.name for inner in walk(op)[1:]} <= _EXTENSIONS
