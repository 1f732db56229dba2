"""`tc.distribute_elements`: maps a linalg op on buffers to threads, an element of the result each."""

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.element_bodies import check_types
from stepladder.extension.lib.multi_kernel.element_nest import ElementNest
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.traverse import walk


class DistributeElements(Tc.Operation, name="distribute_elements"):
    """Rewrites the `linalg.generic` on buffers of a function to loops over blocks and threads (`scf.forall`).

    A thread computes an element of each result, or as many neighbours as are 16 bytes, by vector loads and stores: in
    an op without reductions, where rows of the results are a multiple of them, operands have vectors, and enough
    threads are left. Where operands are transposed, it computes neighbours in several rows of the results: it loads up
    to 4 bytes of each row of such an operand, and neighbouring threads store to the same rows.

    Where the op reduces the innermost axis of an input, a warp computes an element: its lanes fold every 32nd value, so
    that they read neighbours, and then their results. Where it reduces an outer axis, and the results are so few that
    threads of one element each would not have enough loads in flight, a warp computes as many neighbours as are 16
    bytes, whose rows its lanes fold in the same way. Sums of 16-bit floating-point numbers are f32, and rounded once.
    Of an extremum with an index of it, each lane takes neighbouring values, so that the first or the last of equal ones
    is found; where the extremum is NaN, its first lane computes the element again. Buffers that a fill or a copy
    initializes are not written before the result. A `memref.copy` alone, to which an op of one iteration may fold, is
    an op that copies elements.

    Operands: a handle to a module with one function. Attributes: `threads`, of a block, a multiple of 32. Refuses a
    function with more ops than that, indexing maps that are not projected permutations, arithmetic and casts of fp8,
    and a result of one iteration that another one reads.
    """

    target: Handle
    threads: ir.IntegerAttr


@transform_op(DistributeElements)
def distribute_elements(payload: ir.Operation, op: DistributeElements, rewriter: Rewriter) -> None:
    """Rewrites the one `linalg.generic` below `payload`; see the op."""
    generics = walk(payload, "linalg.generic")
    copies = walk(payload, "memref.copy")
    if not generics and len(copies) == 1:
        generics = [_copying(copies[0], rewriter)]
    if len(generics) != 1:
        raise Refusal(payload, f"expected one linalg.generic, found {len(generics)}")
    generic = generics[0]
    others = [
        item
        for item in operations_of(generic.block)
        if not item.name.startswith(("arith.", "memref.")) and item.name not in ("linalg.fill", "func.return")
    ]
    if others != [generic]:
        raise Refusal(next(item for item in others if item != generic), "an op beside the one linalg.generic")
    check_types(generic)
    nest = ElementNest(generic)
    with ir.InsertionPoint(generic), generic.location:
        nest.write(op.threads.value)
    rewriter.erase_op(generic)
    for item in nest.initializing:
        rewriter.erase_op(item)


def _copying(copy: ir.Operation, rewriter: Rewriter) -> ir.Operation:
    """Replaces a copy of a buffer by an op on its elements."""
    source, destination = copy.operands
    identity = ir.AffineMap.get_identity(ir.MemRefType(source.type).rank)
    with ir.InsertionPoint(copy), copy.location:
        generic, body = create_generic([source], [destination], [identity, identity])
        with ir.InsertionPoint(body):
            ir.Operation.create("linalg.yield", operands=[body.arguments[0]])
    rewriter.erase_op(copy)
    return generic
