"""Two or four integers side by side in words (SIMD video instructions), with all parts in their own positions.

Source: PTX ISA, "Video Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_WORD = PtxType("b32", "b", 32)
_COMPARISONS: dict[str, Callable] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_FUNCTIONS: dict[str, Callable] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vavrg": lambda left, right: left + right + (left + right >= 0) >> 1,
    "vabsdiff": lambda left, right: np.abs(left - right),
    "vmin": np.minimum,
    "vmax": np.maximum,
}


def _parts(value: Value, type_: PtxType, count: int) -> np.ndarray:
    """Returns the integers of a word: int64, with a last dimension of `count`."""
    bits = 32 // count
    word = np.asarray(value).astype(np.int64)[..., None]
    fields = word >> bits * np.arange(count) & (1 << bits) - 1
    return np.where((type_.kind == "s") & (fields >> bits - 1 == 1), fields - (1 << bits), fields)


@instruction(*(f"{name}{count}" for name in (*_FUNCTIONS, "vset") for count in (2, 4)), is_pure=True)
def side_by_side(site: Site) -> None:
    """An operation on each pair of integers; with `.add` the sum of the results, and of the last operand."""
    name, count = site.family[:-1], int(site.family[-1])
    bits = 32 // count
    if name == "vset":
        function = _COMPARISONS[site.choice(tuple(_COMPARISONS))]
        first, second = site.types(2)
        target = PtxType("u32", "u", 32)
    else:
        function = _FUNCTIONS[name]
        target, first, second = site.types(3)
    saturates, adds = site.flag("sat"), site.flag("add")
    if any(type_.bits != 32 or type_.kind not in "su" for type_ in (target, first, second)):
        raise site.error("with these types: expected .u32 or .s32 for each")
    site.count(4)
    signed = target.kind == "s"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def execute(fiber: Fiber, op: Instruction, left: Value, right: Value, third: Value) -> Value:
        results = function(_parts(left, first, count), _parts(right, second, count)).astype(np.int64)
        if saturates:
            results = np.clip(results, low, high)
        if adds:
            total = results.sum(axis=-1) + types.number(third, target)
        else:
            total = ((results & (1 << bits) - 1) << bits * np.arange(count)).sum(axis=-1)
        return types.stored(total if np.ndim(total) else int(total), 32)

    site.emit(execute, [site.read(1, first), site.read(2, second), site.read(3, _WORD)], [site.write(0, 32)])
