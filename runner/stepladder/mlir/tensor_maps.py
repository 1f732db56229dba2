"""Reads the type of a TMA descriptor, whose parameters the bindings have no accessors for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stepladder.mlir.bindings import ir

# The attribute of an op that creates a descriptor whose tensor a kernel reads before it waits for the kernel before it.
READ_EARLY = "read_early"
# The same of the larger operand of a product of few rows, whose elements a kernel reads once each.
READ_ONCE = "read_once"
# The same of C where copies read a matrix like C in whole lines, each of them once.
COPIED_ONCE = "copied_once"
_DESCRIPTOR = re.compile(
    r"memref<([\dx]+)x\w+, 3>, swizzle = (?:swizzle_)?(\w+), l2promo = (?:l2promo_)?(\w+), "
    r"oob = (\w+), interleave = (?:interleave_)?(\w+)>"
)


@dataclass(frozen=True)
class TensorMap:
    """The parameters in the type of a TMA descriptor, by MLIR's names.

    Attributes:
        box: extents of what one copy moves, in elements, outermost first.
        swizzle, l2_promotion, oob_fill, interleave: as `runtime.bundle.TmaDescriptor` describes them.
    """

    box: tuple[int, ...]
    swizzle: str
    l2_promotion: str
    oob_fill: str
    interleave: str


def read_tensor_map(type_: ir.Type) -> TensorMap | None:
    """Returns the parameters of a `!nvgpu.tensormap.descriptor`; None for a type of another form.

    Args:
        type_: of a value.
    """
    match = _DESCRIPTOR.search(str(type_))
    if match is None:
        return None
    box, swizzle, promotion, fill, interleave = match.groups()
    return TensorMap(tuple(map(int, box.split("x"))), swizzle, promotion, fill, interleave)
