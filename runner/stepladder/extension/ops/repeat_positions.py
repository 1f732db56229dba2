"""`tc.repeat_positions`: has each op that reads elements of their positions alone compute them."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import users_of, walk
from stepladder.payload import positions

_GENERIC = "linalg.generic"
# Ops that are copied at most for a reader: those of an element that is read twice are copied twice.
_MOST = 32


class RepeatPositions(Tc.Operation, name="repeat_positions"):
    """Copies elementwise `linalg.generic` ops whose results depend on constants and positions alone, such as an
    `arange` and the causal mask that is made from it, for each elementwise op and reduction that reads them.

    Upstream fuses an elementwise op with the one op that reads its result. An `arange` that is compared with itself has
    two readers, and a mask has one in each layer: they would be kernels, and their readers load what they know.

    Operands: a handle to functions on tensors. Ops whose bodies take longer than a load, or that read other tensors,
    stay, and so does what a contraction reads.
    """

    target: Handle


@transform_op(RepeatPositions)
def repeat_positions(payload: ir.Operation, op: RepeatPositions, rewriter: Rewriter) -> None:
    """Rewrites the ops below `payload`; see the op."""
    ops = walk(payload)
    known = positions.found(ops)
    made = [item for item in ops if known[item] and item.name not in positions.STARTS]
    shared = {item for item in made if item.name == _GENERIC and len(list(item.results[0].uses)) > 1}
    if not shared:
        return
    for reader in [item for item in ops if _is_fused(item) and (not known[item] or _is_kept(item, known))]:
        for place, operand in enumerate(reader.operands):
            makers = positions.makers(operand, known)
            if not shared.isdisjoint(makers) and len(makers) <= _MOST:
                reader.operands[place] = positions.copied(operand, known, ir.InsertionPoint(reader))
    for item in reversed(made):
        if not users_of(item.results[0]):
            rewriter.erase_op(item)


def _is_fused(op: ir.Operation) -> bool:
    """Returns whether an op is elementwise, or a reduction of one tensor, which upstream fuses with makers of it."""
    return op.name == _GENERIC and (positions.is_parallel(op) or len(op.operands) == len(op.results) + 1)


def _is_kept(op: ir.Operation, known: dict[ir.Operation, bool]) -> bool:
    """Returns whether an op that no elementwise op computes, such as a matmul with its epilogue, reads a result."""
    readers = [user for result in op.results for user in users_of(result)]
    return any(
        _is_kept(user, known) if user.name in positions.MOVES else not known.get(user, False) and not _is_fused(user)
        for user in readers
    )
