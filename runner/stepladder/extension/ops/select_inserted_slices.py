"""`tc.select_inserted_slices`: rewrites insertions of slices as linalg ops that select elements."""

import itertools

from stepladder.extension.lib.arithmetic import constant, index, less_than
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.stages import one_function
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, create_loop_index
from stepladder.mlir.traverse import producer


class SelectInsertedSlices(Tc.Operation, name="select_inserted_slices"):
    """Rewrites each `tensor.insert_slice` of a function as a `linalg.generic` that computes the whole result.

    An element of the result is one of the slice (`tensor.extract`) where its indices lie in it, and one of the tensor
    that the slice is inserted into elsewhere. As a linalg op an insertion fuses with elementwise ops and with other
    insertions, those of a concatenation for example.

    Operands: a handle to a module with one public function. A slice with offsets, sizes or strides that are not
    constants stays.
    """

    target: Handle


@transform_op(SelectInsertedSlices)
def select_inserted_slices(payload: ir.Operation, op: SelectInsertedSlices, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for item in operations_of(one_function(payload).regions[0].blocks[0]):
        if item.name == "tensor.insert_slice" and len(item.operands) == 2:
            with ir.InsertionPoint(item), item.location:
                rewriter.replace_op(item, _selected(item).results)


def _static(op: ir.Operation, name: str) -> list[int]:
    """Returns the static offsets, sizes or strides of a slice."""
    return list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))


def _selected(insertion: ir.Operation) -> ir.Operation:
    """Creates the op that computes the result of an insertion, at the insertion point."""
    target = insertion.operands[1]
    type_ = ir.RankedTensorType(target.type)
    start = producer(target)
    # Nothing may depend on the elements of an empty tensor: zeros do as well.
    given = [] if start is not None and start.name == "tensor.empty" else [target]
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    generic, body = create_generic(given, [empty], [ir.AffineMap.get_identity(type_.rank)] * (len(given) + 1))
    with ir.InsertionPoint(body):
        otherwise = body.arguments[0] if given else constant(type_.element_type, 0)
        inside, indices = _place(insertion)
        element = ir.Operation.create(
            "tensor.extract", results=[type_.element_type], operands=[insertion.operands[0], *indices]
        ).results[0]
        ir.Operation.create("linalg.yield", operands=[arith.select(inside, element, otherwise)])
    return generic


def _place(insertion: ir.Operation) -> tuple[ir.Value, list[ir.Value]]:
    """Returns whether an element is one of the slice, and the indices of one there: its own, or else the first one.

    Axes of one element of the result that the slice does not have are dropped.
    """
    extents = ir.RankedTensorType(insertion.operands[0].type).shape
    rest = list(extents)
    inside: ir.Value | None = None
    indices: list[ir.Value] = []
    slices = (_static(insertion, name) for name in ("offsets", "sizes", "strides"))
    for axis, offset, size, stride in zip(itertools.count(), *slices):
        number = create_loop_index(axis)
        # Unsigned: an index before the slice is larger than any in it.
        place = arith.subi(number, index(offset)) if offset else number
        is_in = less_than(place, index(size * stride))
        if stride > 1:
            is_hit = arith.cmpi(arith.CmpIPredicate.eq, arith.remui(place, index(stride)), index(0))
            is_in, place = arith.andi(is_in, is_hit), arith.divui(place, index(stride))
        inside = is_in if inside is None else arith.andi(inside, is_in)
        if rest and size == rest[0]:
            rest.pop(0)
            indices.append(arith.select(is_in, place, index(0)))
    assert inside is not None  # a tensor has axes
    return inside, indices
