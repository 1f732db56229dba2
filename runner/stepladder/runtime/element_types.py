"""Element types of buffers: their sizes, NumPy types and precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.runtime.errors import NOT_EXECUTED, StepladderError, suggest

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class ElementType:
    """A floating-point or signed integer type, named as MLIR names it.

    Attributes:
        name: MLIR's name, for example `f16`.
        bits: bits that one element takes in memory.
        precision: bits of a floating-point significand with its implicit bit, or of an integer without its sign.
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
            StepladderError: bf16 or fp8 without ml_dtypes, which has these types; status NOT_EXECUTED.
        """
        import numpy as np  # most commands need names and sizes of types alone

        if self.name in _ML_DTYPES:
            return _ml_dtype(self.name)
        if self.name == BOOLEAN:
            return np.dtype(bool)
        return np.dtype(f"{'int' if self.is_integer else 'float'}{self.bits}")

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding to nearest: 2^-precision, and 0 for integers."""
        return 0.0 if self.is_integer else 2.0**-self.precision

    def poison(self, shape: tuple[int, ...]) -> np.ndarray:
        """Returns an array of a shape of what no right result is: NaN, or the smallest integer of the type; of truth
        values, where every one may be right, ones.

        Args:
            shape: extents of the array.
        """
        import numpy as np

        if self.name == BOOLEAN:
            return np.ones(shape, self.dtype)
        return np.full(shape, np.iinfo(self.dtype).min if self.is_integer else np.nan, self.dtype)

    @property
    def exact_integers(self) -> int:
        """All integers up to this magnitude are exactly representable: 2^precision, one less for integers."""
        return 2**self.precision - self.is_integer


FP8_TYPES = ("f8E4M3FN", "f8E5M2")

# Types that NumPy lacks, by their names in ml_dtypes.
_ML_DTYPES = {"bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"}


def _ml_dtype(name: str) -> np.dtype:
    # Imported here because most problems need no such type.
    import numpy as np

    try:
        import ml_dtypes
    except ImportError as error:
        raise StepladderError(
            f"element type '{name}' needs ml_dtypes on this machine, which is not installed; `pip install ml_dtypes` "
            "has it; no kernel was launched",
            status=NOT_EXECUTED,
        ) from error
    return np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))


ELEMENT_TYPES = {
    element.name: element
    for element in (
        ElementType("f16", 16, 11),
        ElementType("bf16", 16, 8),
        ElementType("f32", 32, 24),
        ElementType("f64", 64, 53),
        ElementType("f8E4M3FN", 8, 4),
        ElementType("f8E5M2", 8, 3),
        ElementType("i8", 8, 7, is_integer=True),
        ElementType("i32", 32, 31, is_integer=True),
    )
}

# Further types that kernels without a matmul read and write: masks, and indices.
BOOLEAN = "i1"
BUFFER_TYPES = {
    **ELEMENT_TYPES,
    BOOLEAN: ElementType(BOOLEAN, 8, 1, is_integer=True),
    "i16": ElementType("i16", 16, 15, is_integer=True),
    "i64": ElementType("i64", 64, 63, is_integer=True),
}

# The accumulator and C of integer operands have this type; A and B have any other.
INTEGER_SUMS = "i32"
OPERAND_TYPES = tuple(name for name in ELEMENT_TYPES if name != INTEGER_SUMS)


def element_type(name: str) -> ElementType:
    """Returns the type called `name`, of any buffer; raises StepladderError naming the accepted ones.

    Args:
        name: as MLIR writes it, such as `bf16`.
    """
    if name not in BUFFER_TYPES:
        accepted = list(BUFFER_TYPES)
        raise StepladderError(
            f"element type '{name}' is not supported{suggest(name, accepted)}; accepted: {', '.join(accepted)}"
        )
    return BUFFER_TYPES[name]
