"""The element types that the runner can put into buffers, and their arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepladder.errors import NOT_EXECUTED, StepladderError, suggest


@dataclass(frozen=True)
class ElementType:
    """A floating-point or signed integer type, named as MLIR names it.

    Attributes:
        name: MLIR's name, for example `f16`.
        bits: bits of one element.
        precision: bits of a floating-point significand, the implicit one included, or of an integer without its sign.
        is_integer: whether it is an integer type.
    """

    name: str
    bits: int
    precision: int
    is_integer: bool = False

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type with the same bits.

        Raises:
            StepladderError: bf16 without ml_dtypes, which has that type; status NOT_EXECUTED.
        """
        if self.name == "bf16":
            return _bfloat16()
        return np.dtype(f"{'int' if self.is_integer else 'float'}{self.bits}")

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding to nearest: 2^-precision, and 0 for integers."""
        return 0.0 if self.is_integer else 2.0**-self.precision

    @property
    def exact_integers(self) -> int:
        """All integers up to this magnitude are exactly representable: 2^precision, one less for integers."""
        return 2**self.precision - self.is_integer


def _bfloat16() -> np.dtype:
    # Imported where it is needed: NumPy has no such type, and most problems do without.
    try:
        import ml_dtypes
    except ImportError as error:
        raise StepladderError("element type 'bf16' needs ml_dtypes on this machine, which is not installed; "
                              "`pip install ml_dtypes` has it; nothing was executed", status=NOT_EXECUTED) from error
    return np.dtype(ml_dtypes.bfloat16)


ELEMENT_TYPES = {element.name: element for element in (
    ElementType("f16", 16, 11),
    ElementType("bf16", 16, 8),
    ElementType("f32", 32, 24),
    ElementType("i8", 8, 7, is_integer=True),
    ElementType("i32", 32, 31, is_integer=True),
)}


def element_type(name: str) -> ElementType:
    """Returns the type called `name`; raises StepladderError naming the accepted ones."""
    if name not in ELEMENT_TYPES:
        accepted = list(ELEMENT_TYPES)
        raise StepladderError(f"element type '{name}' is not supported{suggest(name, accepted)}; "
                              f"accepted: {', '.join(accepted)}")
    return ELEMENT_TYPES[name]
