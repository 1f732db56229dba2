"""The element types that the runner can put into buffers, and their arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepladder.errors import StepladderError, suggest


@dataclass(frozen=True)
class ElementType:
    """A floating-point type, named as MLIR names it.

    Attributes:
        name: MLIR's name, for example `f16`.
        dtype: the NumPy type with the same bits.
        precision: bits of the significand, the implicit one included.
    """

    name: str
    dtype: np.dtype
    precision: int

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding to nearest: 2^-precision."""
        return 2.0**-self.precision

    @property
    def exact_integers(self) -> int:
        """All integers up to this magnitude are exactly representable: 2^precision."""
        return 2**self.precision


ELEMENT_TYPES = {
    "f16": ElementType("f16", np.dtype(np.float16), 11),
    "f32": ElementType("f32", np.dtype(np.float32), 24),
}


def element_type(name: str) -> ElementType:
    """Returns the type called `name`; raises StepladderError naming the accepted ones."""
    if name not in ELEMENT_TYPES:
        accepted = list(ELEMENT_TYPES)
        raise StepladderError(f"element type '{name}' is not supported{suggest(name, accepted)}; "
                              f"accepted: {', '.join(accepted)}")
    return ELEMENT_TYPES[name]
