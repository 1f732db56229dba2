"""`tc.separate_accumulation`: makes the addition of C in C = AB + C an op of its own."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.elementwise import zeros_of
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.payload.facts import MATMULS


class SeparateAccumulation(Tc.Operation, name="separate_accumulation"):
    """Makes a matmul that accumulates in C start from zeros, and adds C by a `linalg.generic` after it.

    A matmul that starts from a `linalg.fill`, or whose product an elementwise op takes, stays as it is.

    Operands: a handle to the module, whose one function is in the normal form (`tc.normalize_payload`).
    Refuses: a module without one matmul, or the two of a pair.
    """

    target: Handle


@transform_op(SeparateAccumulation)
def separate_accumulation(payload: ir.Operation, op: SeparateAccumulation, rewriter: Rewriter) -> None:
    """Rewrites the matmuls below `payload`; see the op."""
    matmuls = walk(payload, *MATMULS)
    if len(matmuls) not in (1, 2):
        raise Refusal(payload, f"expected one matmul, or the two of a pair, found {len(matmuls)}")
    for matmul in matmuls:
        _separate(matmul)


def _separate(matmul: ir.Operation) -> None:
    """Rewrites one matmul."""
    product, start = matmul.results[0], matmul.operands[2]
    begins = producer(start)
    users = users_of(product)
    if [user.name for user in users] != ["bufferization.materialize_in_destination"]:
        return
    if begins is not None and begins.name == "linalg.fill":
        return
    (store,) = users
    rank = ir.RankedTensorType(product.type).rank
    element = ir.RankedTensorType(product.type).element_type
    with ir.InsertionPoint(matmul), matmul.location:
        matmul.operands[2] = zeros_of(matmul)
    with ir.InsertionPoint(store), matmul.location:
        generic, block = create_generic([product], [start], [ir.AffineMap.get_identity(rank)] * 2)
        with ir.InsertionPoint(block):
            add = arith.addi if isinstance(element, ir.IntegerType) else arith.addf
            ir.Operation.create("linalg.yield", operands=[add(*block.arguments)])
    store.operands[0] = generic.results[0]
