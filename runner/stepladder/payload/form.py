"""The contents of the values of a payload, and the form in which a payload is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from stepladder.mlir.bindings import ir
from stepladder.runtime.problem import EpilogueOperand, FurtherResult, Window


class Kind(Enum):
    """The kind of content of a tensor or a buffer."""

    ARGUMENT = "an argument"
    EMPTY = "tensor.empty"
    ZEROS = "zeros"
    ACCUMULATORS = "the accumulators of the matmul"
    ROUNDED = "the rounded accumulators"
    CONSUMED = "the result of an elementwise op on the accumulators"
    DERIVED = "the result of an elementwise op on arguments"
    NUMBER = "a constant"
    REDUCED = "a reduction of the product"
    INITIAL = "the initial value of a reduction"


# The operands of an elementwise op of the epilogue, and those of them that depend on the product.
READ = (Kind.ARGUMENT, Kind.ZEROS, Kind.ACCUMULATORS, Kind.ROUNDED, Kind.CONSUMED, Kind.DERIVED, Kind.NUMBER)
PRODUCT = (Kind.ACCUMULATORS, Kind.ROUNDED, Kind.CONSUMED)


@dataclass(frozen=True)
class Content:
    """The content of a value or a buffer.

    Attributes:
        kind: of what.
        argument: the argument whose storage the tensor began in, or None for storage of its own.
        read: the `bufferization.to_tensor` that it came through, or None.
    """

    kind: Kind
    argument: int | None = None
    read: ir.Operation | None = None


@dataclass
class Form:
    """The form of an accepted payload.

    Attributes:
        accumulates: whether the function reads C.
        roles: function argument -> "a", "b", "c", "ab" for one that is A and B, or "d0", "d1" and so on for what
            elementwise ops read; a result that no argument takes has the number of one more.
        c_type: element type of what the result is stored as.
        consumers: names of the scalar ops on the product, in order; none where it is only rounded.
        operands: element type and shape of "d0", "d1" and so on.
        results: element type and shape of "r0", "r1" and so on, which are stored beside C.
        name: `buffers` for a matmul on memrefs; `normal` for buffers at the boundary and tensors inside; `tensors` for
            a function of which an argument or a result is a tensor.
        windows: role -> the part of a buffer that A, B or C is, where it is not all of it.
    """

    accumulates: bool
    roles: dict[int, str]
    c_type: str
    name: str
    consumers: tuple[str, ...] = ()
    operands: tuple[EpilogueOperand, ...] = ()
    results: tuple[FurtherResult, ...] = ()
    windows: dict[str, Window] = field(default_factory=dict)
