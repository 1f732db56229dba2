"""`tc.join_products`: makes matmuls of neighbouring slices along k, whose results are added, one matmul."""

from typing import NamedTuple

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.stages import one_function
from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import create_named_op, indexing_maps
from stepladder.mlir.slices import kept_axes, numbers_of, static_numbers
from stepladder.mlir.traverse import producer, users_of

_PRODUCTS = ("linalg.matmul", "linalg.batch_matmul", "linalg.contract")
_ADDITIONS = ("arith.addf", "arith.addi")
_SLICE = "tensor.extract_slice"
# Sums of other types are rounded after each matmul.
_SUMS = ("f32", "f64", "i32", "i64")


class JoinProducts(Tc.Operation, name="join_products"):
    """Replaces two matmuls of neighbouring slices of the same tensors along k by one of both slices, where the second
    one starts from the result of the first, or an op adds the results, and nothing else reads them.

    The iterations of a loop over slices of k, once the loop is unrolled, become one matmul.

    Operands: a handle to a module with one public function. Matmuls whose sums are rounded after each slice stay.
    """

    target: Handle


class _Part(NamedTuple):
    """A static slice of a tensor without steps, and the axis of its result along which another one follows it."""

    tensor: ir.Value
    offsets: list[int]
    sizes: list[int]
    axis: int
    size: int


@transform_op(JoinProducts)
def join_products(payload: ir.Operation, op: JoinProducts, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    body = one_function(payload).regions[0].blocks[0]
    for item in operations_of(body):
        if item.name in _PRODUCTS:
            first = producer(item.operands[2])
            joined = _joined(first, item, item, item) if first is not None else None
        else:
            joined = _joined_terms(item)
        if joined is not None:
            rewriter.replace_op(item, [joined])


def _joined_terms(op: ir.Operation) -> ir.Value | None:
    """Returns what an op computes that adds a matmul to another one, or to a sum of another one and something else,
    with one matmul; None where it stays."""
    terms = _terms(op)
    if terms is None:
        return None
    value, product = terms
    before = producer(value)
    if before is None:
        return None
    if before.name in _PRODUCTS:
        return _joined(before, product, op, op)
    inner_terms = _terms(before)
    if inner_terms is None or _readers(before, op.block) != {op}:
        return None
    joined = _joined(inner_terms[1], product, op, before)
    if joined is None:
        return None
    with ir.InsertionPoint(op):
        total = before.clone()
    for place, operand in enumerate(before.operands):
        if operand == inner_terms[1].results[0]:
            total.operands[place] = joined
    return total.results[0]


def _terms(op: ir.Operation) -> tuple[ir.Value, ir.Operation] | None:
    """Returns the tensor to which an op adds a matmul from zeros, and the matmul; None for another op."""
    if not op.name.startswith("linalg.") or len(op.operands) != 3 or len(op.results) != 1 or not len(op.regions):
        return None
    inner = operations_of(op.regions[0].blocks[0])
    arguments = list(op.regions[0].blocks[0].arguments)
    is_sum = len(inner) == 2 and inner[0].name in _ADDITIONS and {*inner[0].operands} == {*arguments[:2]}
    if not is_sum or any(map_ != ir.AffineMap.get_identity(map_.n_dims) for map_ in indexing_maps(op)):
        return None
    left, right = list(op.operands)[:2]
    for value, factor in ((left, right), (right, left)):
        product = producer(factor)
        start = repeated_number(product.operands[2]) if product is not None and product.name in _PRODUCTS else None
        if product is not None and start is not None and start.value == 0:
            return value, product
    return None


def _joined(first: ir.Operation, second: ir.Operation, place: ir.Operation, reader: ir.Operation) -> ir.Value | None:
    """Returns the result of one matmul in place of two, at the place of the second one or of what reads it, where only
    a reader reads the first one; None where they stay."""
    if first.name != second.name or place.results[0].type != first.results[0].type:
        return None
    type_ = ir.RankedTensorType(first.results[0].type)
    maps = indexing_maps(first)
    if str(type_.element_type) not in _SUMS or maps != indexing_maps(second):
        return None
    if _readers(first, place.block) != {reader} or (second != place and _readers(second, place.block) != {place}):
        return None
    parts = [_neighbours(left, right) for left, right in zip(list(first.operands)[:2], list(second.operands)[:2])]
    if any(part is None for part in parts):
        return None
    loops = {str(map_.results[part.axis]) for map_, part in zip(maps, parts) if part is not None}
    if len(loops) != 1 or loops.pop() in map(str, maps[2].results):
        return None
    attributes = {name: first.attributes[name] for name in ("indexing_maps", "cast") if name in first.attributes}
    with ir.InsertionPoint(place), first.location:
        factors = [_slice(part, value) for part, value in zip(parts, first.operands) if part is not None]
        return create_named_op(first.name, factors, first.operands[2], attributes).results[0]


def _readers(op: ir.Operation, block: ir.Block) -> set[ir.Operation]:
    """Returns the ops of a block that read the result of an op, or that have ops which do."""
    readers = set(users_of(op.results[0]))
    while outside := [reader for reader in readers if reader.block != block]:
        readers = (readers - set(outside)) | {reader.parent.operation for reader in outside if reader.parent}
    return readers


def _neighbours(left: ir.Value, right: ir.Value) -> _Part | None:
    """Returns the slice that two slices of a tensor are, the second of which follows the first along one axis; None
    for other tensors."""
    slices = [producer(left), producer(right)]
    if any(item is None or item.name != _SLICE for item in slices):
        return None
    first, second = (item for item in slices if item is not None)
    numbers = numbers_of(first), numbers_of(second)
    is_dynamic = any(ir.ShapedType.get_dynamic_size() in own for slice_ in numbers for own in slice_)
    if first.operands[0] != second.operands[0] or is_dynamic or set(numbers[0][2] + numbers[1][2]) != {1}:
        return None
    (offsets, sizes, _), (next_offsets, next_sizes, _) = numbers
    axes = [axis for axis, pair in enumerate(zip(offsets, next_offsets)) if pair[0] != pair[1]]
    shape = list(ir.RankedTensorType(left.type).shape)
    kept = kept_axes(sizes, shape)
    if len(axes) != 1 or axes[0] not in kept or kept != kept_axes(next_sizes, ir.RankedTensorType(right.type).shape):
        return None
    (axis,) = axes
    others = [[size for number, size in enumerate(own) if number != axis] for own in (sizes, next_sizes)]
    if next_offsets[axis] != offsets[axis] + sizes[axis] or others[0] != others[1]:
        return None
    size = sizes[axis] + next_sizes[axis]
    joined_sizes = [size if number == axis else extent for number, extent in enumerate(sizes)]
    return _Part(first.operands[0], offsets, joined_sizes, kept.index(axis), size)


def _slice(part: _Part, first: ir.Value) -> ir.Value:
    """Returns a slice that begins where another one does, at the insertion point; the tensor where it is all of it."""
    type_ = ir.RankedTensorType(first.type)
    shape = [part.size if axis == part.axis else extent for axis, extent in enumerate(type_.shape)]
    if shape == list(ir.RankedTensorType(part.tensor.type).shape):
        return part.tensor
    result = ir.RankedTensorType.get(shape, type_.element_type)
    attributes = static_numbers(part.offsets, part.sizes)
    return ir.Operation.create(_SLICE, results=[result], operands=[part.tensor], attributes=attributes).results[0]
