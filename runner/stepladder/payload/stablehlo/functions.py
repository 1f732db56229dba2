"""Functions of CHLO, which the bindings have no dialect for, as ops of StableHLO and of the dialect math.

The text of a payload is changed before it is parsed: to ops of the dialect math, or to CHLO's in the generic form.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload import special_functions
from stepladder.payload.stablehlo.builder import Number, Tensor, created, unary, where
from stepladder.runtime.errors import StepladderError

_CHLO = re.compile(r"\bchlo\.\w+")
# Functions that the dialect math has, by the same names.
_OF_MATH = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "erfc", "sinh", "tan")
# Functions of elements that others compute.
_MADE = ("digamma", "erf_inv", "lgamma")
_TYPE = r"tensor<[^>]+>"
_EXPANDED = {
    re.compile(rf"\bchlo\.square (%\S+) : ({_TYPE}) -> \2(?!\S)"): r"stablehlo.multiply \1, \1 : \2",
    re.compile(rf"\bchlo\.({'|'.join(_OF_MATH)}) (%\S+) : ({_TYPE}) -> \3(?!\S)"): r"math.\1 \2 : \3",
    re.compile(rf"\bchlo\.({'|'.join(_MADE)}) (%\S+) : ({_TYPE}) -> \3(?!\S)"): r'"made.\1"(\2) : (\3) -> \3',
    re.compile(rf"\bchlo\.top_k ?\((%\S+), k = \d+\) : ({_TYPE}) -> (\({_TYPE}, {_TYPE}\))"): (
        r'"made.top_k"(\1) : (\2) -> \3'
    ),
}
# Types that are computed in f32.
_NARROW = ("f16", "bf16")


def parsed_forms(text: str, name: str) -> str:
    """Returns a payload without ops of CHLO: others, or ops of the same names in a dialect `made`.

    Args:
        text: the payload; `name`: its file, for messages.

    Raises:
        StepladderError: another function of CHLO.
    """
    for pattern, replacement in _EXPANDED.items():
        text = pattern.sub(replacement, text)
    chlo = _CHLO.search(text)
    if chlo is not None:
        raise StepladderError(
            f"'{chlo[0]}' is an op of CHLO, which the bindings have no passes for",
            location=f"{name}:{text.count(chr(10), 0, chlo.start()) + 1}",
            notes=[
                f"accepted: ops of StableHLO, and of CHLO {', '.join(sorted((*_OF_MATH, *_MADE, 'square', 'top_k')))}"
            ],
        )
    return text


def has_chlo(text: str) -> bool:
    """Returns whether a payload has ops of CHLO.

    Args:
        text: the payload.
    """
    return _CHLO.search(text) is not None


def rewrite(module: ir.Module) -> None:
    """Replaces functions of elements.

    Args:
        module: of the text that `parsed_forms` returns.
    """
    for op in walk(module, *(f"made.{name}" for name in _MADE)):
        with ir.InsertionPoint(op), op.location:
            tensor = _computed(op.name.removeprefix("made."), Tensor(op.operands[0]))
        op.results[0].replace_all_uses_with(tensor.value)
        op.erase()


def _computed(name: str, x: Tensor) -> Tensor:
    element = x.element
    if str(element) in _NARROW:
        return _computed(name, x.convert(ir.F32Type.get())).convert(element)
    if name == "erf_inv":
        return special_functions.erfinv(x, _Functions(), 2 if str(element) == "f64" else 0)
    return {"lgamma": special_functions.lgamma, "digamma": special_functions.digamma}[name](x, _Functions())


def _named(name: str) -> Callable[[Tensor], Tensor]:
    return lambda x: unary(name, x)


class _Functions:
    """Functions of tensors of StableHLO."""

    def where(self, condition: Tensor, x: Tensor | Number, y: Tensor | Number) -> Tensor:
        """Returns elements of one of two operands.

        Args:
            condition: booleans.
            x: elements; `y`: others.
        """
        if not isinstance(x, Tensor) and not isinstance(y, Tensor):
            raise TypeError("one of the operands is a tensor")
        return where(condition, x, y)

    exp = staticmethod(_named("exponential"))
    log = staticmethod(_named("log"))
    log1p = staticmethod(_named("log_plus_one"))
    sqrt = staticmethod(_named("sqrt"))
    abs = staticmethod(_named("abs"))
    floor = staticmethod(_named("floor"))
    sin = staticmethod(_named("sine"))
    cos = staticmethod(_named("cosine"))

    def erf(self, x: Tensor) -> Tensor:
        """Returns the error function.

        Args:
            x: the operand.
        """
        return Tensor(created("math.erf", x.value.type, x.value))
