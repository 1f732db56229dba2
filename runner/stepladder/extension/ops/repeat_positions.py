"""`tc.repeat_positions`: has each op that reads elements of their positions alone compute them."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import producer, users_of, walk

_GENERIC = "linalg.generic"
# Ops of bodies that take less time than a load.
_CHEAP = frozenset(
    f"arith.{name}"
    for name in (
        *("addf", "addi", "andi", "cmpf", "cmpi", "constant", "extf", "extsi", "extui", "index_cast", "maximumf"),
        *("maxsi", "minimumf", "minsi", "mulf", "muli", "negf", "ori", "select", "sitofp", "subf", "subi", "truncf"),
        *("trunci", "xori"),
    )
) | {"linalg.index", "linalg.yield"}
# Ops that make a tensor without reading one, and those that move or repeat elements.
_STARTS = ("arith.constant", "tensor.empty")
_MOVES = (*TENSOR_VIEWS, "linalg.fill")
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
    known: dict[ir.Operation, bool] = {}
    for item in ops:  # each after the makers of its operands
        known[item] = _is_of_positions(item, known)
    made = [item for item in ops if known[item] and item.name not in _STARTS]
    shared = {item for item in made if item.name == _GENERIC and len(list(item.results[0].uses)) > 1}
    if not shared:
        return
    for reader in [item for item in ops if _is_fused(item) and (not known[item] or _is_kept(item, known))]:
        for place, operand in enumerate(reader.operands):
            makers = _makers(operand, known)
            if not shared.isdisjoint(makers) and len(makers) <= _MOST:
                reader.operands[place] = _copied(operand, known, ir.InsertionPoint(reader))
    for item in reversed(made):
        if not users_of(item.results[0]):
            rewriter.erase_op(item)


def _is_of_positions(op: ir.Operation, known: dict[ir.Operation, bool]) -> bool:
    """Returns whether an op makes a tensor of constants and positions, by ops that take less time than a load."""
    if op.name not in (_GENERIC, *_MOVES, *_STARTS) or len(op.results) != 1:
        return False
    if op.name == _GENERIC and not (_is_elementwise(op) and all(item.name in _CHEAP for item in walk(op)[1:])):
        return False
    inner = set(walk(op))
    sources = [producer(operand) for item in inner for operand in item.operands if not _is_argument_of(operand, op)]
    return all(source is not None and (source in inner or known.get(source, False)) for source in sources)


def _is_elementwise(generic: ir.Operation) -> bool:
    return all("parallel" in str(kind) for kind in ir.ArrayAttr(generic.attributes["iterator_types"]))


def _is_fused(op: ir.Operation) -> bool:
    """Returns whether an op is elementwise, or a reduction of one tensor, which upstream fuses with makers of it."""
    return op.name == _GENERIC and (_is_elementwise(op) or len(op.operands) == len(op.results) + 1)


def _is_kept(op: ir.Operation, known: dict[ir.Operation, bool]) -> bool:
    """Returns whether an op that no elementwise op computes, such as a matmul with its epilogue, reads a result."""
    readers = [user for result in op.results for user in users_of(result)]
    return any(
        _is_kept(user, known) if user.name in _MOVES else not known.get(user, False) and not _is_fused(user)
        for user in readers
    )


def _is_argument_of(value: ir.Value, op: ir.Operation) -> bool:
    """Returns whether a value is an argument of a block of an op."""
    return any(value.owner == block for region in op.regions for block in region.blocks)


def _maker(value: ir.Value, known: dict[ir.Operation, bool]) -> ir.Operation | None:
    """Returns the op that makes a tensor of positions; None for another tensor, and for what needs no copy."""
    source = producer(value)
    return None if source is None or not known.get(source, False) or source.name in _STARTS else source


def _makers(value: ir.Value, known: dict[ir.Operation, bool]) -> list[ir.Operation]:
    """Returns the ops that make a tensor of positions, as often as copies of them are made."""
    source = _maker(value, known)
    if source is None:
        return []
    return [source, *(item for operand in source.operands for item in _makers(operand, known))]


def _copied(value: ir.Value, known: dict[ir.Operation, bool], point: ir.InsertionPoint) -> ir.Value:
    """Returns a tensor of positions that ops with one reader make, at an insertion point."""
    source = _maker(value, known)
    if source is None:
        return value
    mapping = {operand: _copied(operand, known, point) for operand in source.operands}
    return clone_ops([source], mapping, point)[value]
