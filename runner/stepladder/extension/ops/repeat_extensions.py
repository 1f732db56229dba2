"""`tc.repeat_extensions`: has each op that reads extended elements of a tensor extend them."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.stages import is_extension
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import users_of, walk

_GENERIC = "linalg.generic"


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
        if len(readers) < 2 or not is_extension(item):
            continue
        for reader in [user for user in dict.fromkeys(readers) if user.name == _GENERIC]:
            copy = clone_ops([item], {}, ir.InsertionPoint(reader))[item.results[0]]
            for place, operand in enumerate(reader.operands):
                if operand == item.results[0]:
                    reader.operands[place] = copy
        if not users_of(item.results[0]):
            rewriter.erase_op(item)
