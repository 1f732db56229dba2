"""`tc.gather_products`: moves two matmuls of one A next to each other."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import users_of, walk


class GatherProducts(Tc.Operation, name="gather_products"):
    """Moves the first of two `linalg.matmul` ops on tensors, and the views of its result, to the second.

    Producers of the second one's operands are then before both, and users of their results after both: loops around
    them can be fused.

    Operands: a handle to the module.
    Refuses: other matmuls than two in one block, of which the second does not read the first.
    """

    target: Handle


@transform_op(GatherProducts)
def gather_products(payload: ir.Operation, op: GatherProducts, rewriter: Rewriter) -> None:
    """Moves the matmuls below `payload`; see the op."""
    matmuls = walk(payload, "linalg.matmul")
    if len(matmuls) != 2 or matmuls[0].block != matmuls[1].block:
        raise Refusal(payload, f"expected two matmuls in one block, found {len(matmuls)}")
    first, second = matmuls
    if second in users_of(first.results[0]):
        raise Refusal(second, "it reads the result of the first matmul")
    first.move_before(second)
    for view in users_of(first.results[0]):
        if view.name == "tensor.extract_slice" and view.block == second.block and view.is_before_in_block(second):
            view.move_after(second)
