"""Comparisons and selections.

Source: PTX ISA, "Comparison and Selection Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.ptx import syntax, types
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_PRED = PtxType("pred", "pred", 1)
_ORDERED: dict[str, Callable] = {
    "eq": lambda left, right: left == right,
    "ne": lambda left, right: left != right,
    "lt": lambda left, right: left < right,
    "le": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "ge": lambda left, right: left >= right,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_ALL = (*_ORDERED, *_UNSIGNED, *_UNORDERED, "num", "nan")
_COMBINE: dict[str, Callable] = {
    "and": lambda left, right: left & right,
    "or": lambda left, right: left | right,
    "xor": lambda left, right: left ^ right,
}


def _is_nan(left: Value, right: Value) -> Value:
    return np.isnan(left) | np.isnan(right)


def _of_floats(name: str) -> Callable:
    if name == "nan":
        return _is_nan
    if name == "num":
        return lambda left, right: ~_is_nan(left, right)
    if name in _UNORDERED:
        ordered_comparison = _ORDERED[_UNORDERED[name]]
        return lambda left, right: ordered_comparison(left, right) | _is_nan(left, right)
    if name == "ne":  # false where one is NaN
        return lambda left, right: (left != right) & ~_is_nan(left, right)
    return _ORDERED[name]


def _comparison(site: Site, type_: PtxType) -> Callable:
    """Returns what compares the bits of two registers."""
    name = site.choice(_ALL)
    flushes = site.flag("ftz")
    if type_.kind == "f":
        compare = _of_floats(name)
        if flushes and type_.name == "f32":
            return lambda left, right: compare(*(types.flushed(types.floats(value, type_)) for value in (left, right)))
        return lambda left, right: compare(types.floats(left, type_), types.floats(right, type_))
    number_type = PtxType(f"u{type_.bits}", "u", type_.bits) if name in _UNSIGNED else type_
    compare = _ORDERED[_UNSIGNED.get(name, name)]
    return lambda left, right: compare(types.number(left, number_type), types.number(right, number_type))


def _truth(value: Value) -> Value:
    return value if isinstance(value, np.ndarray) and value.ndim else bool(value)


@instruction("setp", is_pure=True)
def setp(site: Site) -> None:
    """Whether two values compare as the modifier states, combined with a predicate; the opposite as second result.

    Of packed types, one result is that of the lower halves, and two are those of both.
    """
    combine = site.choice(tuple(_COMBINE), "")
    (type_,) = site.types(1)
    compare = _comparison(site, type_)
    site.count(4 if combine else 3)
    target = site.operands[0]
    has_opposite = isinstance(target, syntax.Pair)
    results = [site.write(part, 1) for part in ((target.first, target.second) if has_opposite else (target,))]
    operands = [site.read(1, type_), site.read(2, type_)]
    if combine:
        operands.append(site.read(3, _PRED))

    def execute(fiber: Fiber, op: Instruction, left: Value, right: Value, *predicates: Value) -> Value:
        holds = compare(left, right)
        if type_.count == 2:
            halves = tuple(_truth(_and_so(holds[..., place], combine, predicates)) for place in range(2))
            return halves if has_opposite else halves[0]
        if not has_opposite:
            return _truth(_and_so(holds, combine, predicates))
        return _truth(_and_so(holds, combine, predicates)), _truth(_and_so(_not(holds), combine, predicates))

    if has_opposite and type_.kind == "f" and type_.width == 16:
        raise site.error("with two results")
    site.emit(execute, operands, results)


def _not(value: Value) -> Value:
    return np.logical_not(value)


def _and_so(holds: Value, combine: str, predicates: tuple) -> Value:
    return _COMBINE[combine](holds, predicates[0]) if combine else holds


@instruction("set", is_pure=True)
def set_(site: Site) -> None:
    """All bits set (or 1.0) where two values compare as the modifier states, else zero."""
    combine = site.choice(tuple(_COMBINE), "")
    target, type_ = site.types(2)
    compare = _comparison(site, type_)
    site.count(4 if combine else 3)

    def execute(fiber: Fiber, op: Instruction, left: Value, right: Value, *predicates: Value) -> Value:
        holds = compare(left, right)
        if combine:
            holds = _and_so(holds, combine, predicates if type_.count == 1 else (np.asarray(predicates[0])[..., None],))
        if target.kind == "f":
            return types.from_floats(np.where(holds, 1.0, 0.0).astype(target.dtype), target)
        if type_.count > 1:  # a half of the register for each
            halves = np.ascontiguousarray(np.where(holds, -1, 0).astype(np.int16))
            return types.plain(halves.view(np.int32)[..., 0])
        return types.stored(types.plain(np.where(holds, -1, 0)), target.width)

    operands = [site.read(1, type_), site.read(2, type_), *([site.read(3, _PRED)] if combine else [])]
    site.emit(execute, operands, [site.write(0, target.width)])


def chosen(fiber: Fiber, condition: Value, left: Value, right: Value) -> Value:
    """Returns, for each thread, one of two values.

    Args:
        fiber: the threads.
        condition: i1, uniform or (T,).
        left: where the condition holds.
        right: elsewhere.
    """
    if not isinstance(condition, np.ndarray):
        return left if condition else right
    return np.where(condition, left, right).astype(_dtype(left, right), copy=False)


def _dtype(left: Value, right: Value) -> np.dtype:
    for value in (left, right):
        if isinstance(value, np.ndarray):
            return value.dtype
    return np.dtype(bool) if isinstance(left, bool) else np.dtype(np.int64)


@instruction("selp", is_pure=True)
def selp(site: Site) -> None:
    """One of two values, by a predicate."""
    (type_,) = site.types(1)
    site.count(4)

    def execute(fiber: Fiber, op: Instruction, left: Value, right: Value, condition: Value) -> Value:
        return types.stored(chosen(fiber, condition, left, right), type_.width)

    operands = [site.read(1, type_), site.read(2, type_), site.read(3, _PRED)]
    site.emit(execute, operands, [site.write(0, type_.width)])


@instruction("slct", is_pure=True)
def slct(site: Site) -> None:
    """One of two values, by the sign of a third."""
    type_, sign = site.types(2)
    flushes = site.flag("ftz")
    site.count(4)

    def execute(fiber: Fiber, op: Instruction, left: Value, right: Value, number: Value) -> Value:
        number = types.floats(number, sign) if sign.kind == "f" else types.number(number, sign)
        number = types.flushed(number) if flushes else number
        condition = number >= 0
        if not values.is_uniform(condition):
            return types.stored(chosen(fiber, condition, left, right), type_.width)
        return left if condition else right

    operands = [site.read(1, type_), site.read(2, type_), site.read(3, sign)]
    site.emit(execute, operands, [site.write(0, type_.width)])
