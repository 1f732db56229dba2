"""`tc.forward_slices`: replaces slices of tensors with insertions by the inserted tensors, or by slices of the
tensors before.
"""

from typing import NamedTuple

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.stages import one_function
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import producer

_DYNAMIC = ir.ShapedType.get_dynamic_size()


class ForwardSlices(Tc.Operation, name="forward_slices"):
    """Replaces slices of a tensor by what was inserted there, or by slices of the tensor before other insertions.

    The iterations of a tiled loop each insert their tile into the result so far, and begin from a slice of it: once the
    loop is unrolled, a tile begins from the slice of the first result, which the iterations before have not written,
    and a slice of a filled tensor is a smaller filled tensor. A fill overwrites an empty tensor, and not a slice or the
    like: kernels have copies of fills, and do not read what was there.

    Operands: a handle to a module with one public function. Slices at computed offsets, with strides, or that overlap
        an
    insertion in part stay.
    """

    target: Handle


class _Place(NamedTuple):
    """The offsets and sizes of a slice."""

    offsets: list[int]
    sizes: list[int]

    def is_apart(self, other: "_Place") -> bool:
        """Returns whether a slice shares no element with another one of the same tensor."""
        return any(
            first + size <= begin or begin + extent <= first
            for first, size, begin, extent in zip(self.offsets, self.sizes, other.offsets, other.sizes)
        )


@transform_op(ForwardSlices)
def forward_slices(payload: ir.Operation, op: ForwardSlices, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for item in operations_of(one_function(payload).regions[0].blocks[0]):
        if item.name == "linalg.fill":
            _fill_empty(item)
        place = _place(item) if item.name == "tensor.extract_slice" else None
        if place is not None and (replacement := _forwarded(item, place)) is not None:
            rewriter.replace_op(item, [replacement])


def _fill_empty(fill: ir.Operation) -> None:
    """Has a fill write an empty tensor."""
    source = producer(fill.operands[1])
    if source is None or source.name != "tensor.empty":
        with ir.InsertionPoint(fill), fill.location:
            type_ = fill.operands[1].type
            fill.operands[1] = ir.Operation.create("tensor.empty", results=[type_]).results[0]


def _place(op: ir.Operation) -> _Place | None:
    """Returns the offsets of a slice; None if they are not static, or if it has strides."""
    offsets, sizes, strides = numbers_of(op)
    return None if _DYNAMIC in (*offsets, *sizes) or set(strides) - {1} else _Place(offsets, sizes)


def _forwarded(op: ir.Operation, place: _Place) -> ir.Value | None:
    """Returns what a slice is a slice of before insertions elsewhere, as a slice of it; None where it stays."""
    type_, tensor = op.results[0].type, op.operands[0]
    source = producer(tensor)
    while source is not None and source.name == "tensor.insert_slice":
        inserted_place = _place(source)
        if inserted_place is None:
            break
        if inserted_place == place and source.operands[0].type == type_:
            return source.operands[0]
        if not inserted_place.is_apart(place):
            break
        tensor = source.operands[1]
        source = producer(tensor)
    with ir.InsertionPoint(op), op.location:
        if source is not None and source.name == "linalg.fill":
            empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
            return create_named_op("linalg.fill", [source.operands[0]], empty).results[0]
        if tensor == op.operands[0]:
            return None
        clone = op.clone()
        clone.operands[0] = tensor
        return clone.results[0]
