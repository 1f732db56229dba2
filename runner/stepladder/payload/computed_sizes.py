"""Slices of sizes that are not known before a call: no kernel has them."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.refusal import refuse

ACCEPTED = (
    "accepted: sizes that are constants, or follow from the shapes of arguments, with --bind of dynamic ones; where "
    "they differ from call to call, the largest one and a mask"
)
_SLICES = ("tensor.extract_slice", "tensor.insert_slice", "memref.subview")


def check(module: ir.Module | ir.Operation) -> None:
    """Checks the sizes of the slices in a payload's functions whose arguments have static shapes.

    Args:
        module: of the payload, in which shapes that follow from others are folded.

    Raises:
        StepladderError: a slice whose size the caller passes, or ops compute from elements.
    """
    for function in walk(module, "func.func"):
        blocks = list(function.regions[0].blocks)
        if len(blocks) != 1 or not all(map(_is_static, blocks[0].arguments)):
            continue
        for op in (item.operation for item in blocks[0].operations):
            if op.name in _SLICES and not all(map(_is_static, (*op.operands, *op.results))):
                raise refuse(op, f"{op.name} of a size that is not known before a call", ACCEPTED)


def _is_static(value: ir.Value) -> bool:
    type_ = value.type
    return not isinstance(type_, (ir.RankedTensorType, ir.MemRefType)) or type_.has_static_shape
