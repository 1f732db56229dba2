"""Reductions: the combining functions that ops of several dialects share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepladder.emulator.core.elements import unsigned, wrapped
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value
from stepladder.mlir.printed import ATOMIC_KINDS, keyword

COMBINE: dict[str, Callable] = {
    "add": np.add,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "minsi": np.minimum,
    "minui": np.minimum,
    "minimumf": np.minimum,
    "minnumf": np.fmin,
    "maxsi": np.maximum,
    "maxui": np.maximum,
    "maximumf": np.maximum,
    "maxnumf": np.fmax,
}
# Other names of the same kinds: those of `memref.atomic_rmw`, and of the llvm and nvvm dialects.
ALIASES = {
    "addf": "add",
    "addi": "add",
    "mulf": "mul",
    "muli": "mul",
    "maxs": "maxsi",
    "maxu": "maxui",
    "mins": "minsi",
    "minu": "minui",
    "ori": "or",
    "andi": "and",
    "xori": "xor",
    "fadd": "add",
    "fmul": "mul",
    "_and": "and",
    "_or": "or",
    "_xor": "xor",
    "max": "maxsi",
    "min": "minsi",
    "smax": "maxsi",
    "smin": "minsi",
    "umax": "maxui",
    "umin": "minui",
    "fmax": "maxnumf",
    "fmin": "minnumf",
    "fmaximum": "maximumf",
    "fminimum": "minimumf",
}


def atomic_kind(attribute: int | str) -> str:
    """Returns the name of an `arith::AtomicRMWKind`.

    Args:
        attribute: its encoding or its text.
    """
    return ATOMIC_KINDS[attribute] if isinstance(attribute, int) else keyword(attribute)


def combined(kind: str, element: Scalar, left: Value, right: Value) -> Value:
    """Returns the combination of two scalars or vectors, as values of a type.

    Args:
        kind: a key of COMBINE or of ALIASES.
        element: the type.
        left, right: scalars or arrays of the type.
    """
    kind = ALIASES.get(kind, kind)
    if not element.is_integer:
        return COMBINE[kind](left, right)
    if element.width == 1:
        return {"add": np.bitwise_xor, "mul": np.bitwise_and}.get(kind, COMBINE[kind])(left, right)
    if kind in ("minui", "maxui"):
        left, right = unsigned(left, element.width), unsigned(right, element.width)
        if isinstance(left, int) and isinstance(right, int):  # NumPy cannot represent those above the signed maximum
            return wrapped(min(left, right) if kind == "minui" else max(left, right), element)
    return wrapped(COMBINE[kind](left, right), element)
