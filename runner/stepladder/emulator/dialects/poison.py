"""Flags under which the result of an integer op is poison: nsw, nuw, exact, disjoint and nneg.

An op with such a flag is executed as without it, and threads for which the flag does not hold are a finding, whether
anything uses their result or not. `inbounds` is left to the access, which must be inside of its memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.elements import signed, unsigned
from stepladder.emulator.core.registry import checks
from stepladder.mlir import printed

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.mlir.bindings import ir

KIND = "poison"

_SYMBOLS = {"addi": "+", "subi": "-", "muli": "*", "shli": "<<", "shl": "<<"}
_SYMBOLS |= {"add": "+", "sub": "-", "mul": "*"}
_EXACT = ("udiv", "sdiv", "lshr", "ashr")
_LIKE_LLVM = {"divui": "udiv", "divsi": "sdiv", "shrui": "lshr", "shrsi": "ashr"}  # of arith
_ATTRIBUTES = {"exact": "isExact", "disjoint": "isDisjoint", "nneg": "nonNeg"}
_FLAGS = {
    **{f"arith.{name}": ("nsw", "nuw") for name in ("addi", "subi", "muli", "shli", "trunci")},
    **{f"llvm.{name}": ("nsw", "nuw") for name in ("add", "sub", "mul", "shl", "trunc")},
    **{f"llvm.{name}": ("exact",) for name in _EXACT},
    **{f"arith.{name}": ("exact",) for name in _LIKE_LLVM},
    "llvm.or": ("disjoint",),
    "llvm.zext": ("nneg",),
    "llvm.uitofp": ("nneg",),
    "arith.extui": ("nneg",),
    "arith.uitofp": ("nneg",),
    "arith.index_castui": ("nneg",),
}
_WORD, _VALUE = re.compile(r"\w+"), re.compile(r"%[\w.$-]+")


@checks(*_FLAGS)
def checked(op: ir.Operation, execute: Callable) -> Callable:
    """Returns what executes an op and reports the threads for which its flags do not hold."""
    flags = _flags_of(op)
    if not flags:
        return execute

    def run(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        if fiber.group.sanitizer.enabled:
            for flag in flags:
                _check(fiber, op, flag, operands)
        return execute(fiber, op, *operands)

    return run


def _flags_of(op: ir.Operation) -> tuple[str, ...]:
    """Returns the flags of an op; the bindings give `nsw` and `nuw` of the LLVM dialect in its text alone."""
    flags = _FLAGS[op.name]
    if flags[0] in _ATTRIBUTES:
        return flags if _ATTRIBUTES[flags[0]] in op.attributes else ()
    if op.name.startswith("arith."):
        text = str(op.attributes["overflowFlags"]) if "overflowFlags" in op.attributes else ""
    else:
        text = printed.without_names(op).split(" : ")[0]
    words = set(_WORD.findall(_VALUE.sub("", text)))
    return tuple(flag for flag in flags if flag in words)


def _check(fiber: Fiber, op: Instruction, flag: str, operands: tuple) -> None:
    name = op.name.split(".", 1)[1]
    name = _LIKE_LLVM.get(name, name)
    element = op.operand_types[0].element
    width = element.width
    interpret = unsigned if flag == "nuw" or name in ("udiv", "lshr", "or") else signed
    if name in ("shl", "shli"):
        left, right = interpret(operands[0], width), unsigned(operands[1], width)
    else:
        left, right = (interpret(operands[0], width), interpret(operands[-1], width))
    to = op.result_types[0].element.width
    if isinstance(left, int) and isinstance(right, int):
        if _is_wrong(name, flag, left, right, to):
            _report(fiber, op, int(fiber.lanes[0]), name, flag, left, right)
        return
    wrong = np.asarray(_holds_not(name, flag, left, right, to))
    if not wrong.any():
        return
    rank = op.operand_types[0].rank
    per_lane = wrong.ndim > rank
    wrong = wrong[fiber.lanes] if per_lane else wrong
    for place in map(tuple, np.argwhere(wrong)):
        lane = int(fiber.lanes[place[0] if per_lane else 0])
        element_place = place[1:] if per_lane else place
        first, second = (_at(number, lane, element_place, rank) for number in (left, right))
        if _is_wrong(name, flag, first, second, to):
            _report(fiber, op, lane, name, flag, first, second)
            return


def _holds_not(name: str, flag: str, left: Value, right: Value, width: int) -> Value:
    """Returns where a flag may not hold: of 64 bits, near the limits, that is to be looked at again."""
    if flag == "nneg":
        return left < 0
    if flag == "disjoint":
        return (left & right) != 0
    if name in _EXACT:
        if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
            return np.ones(np.broadcast_shapes(np.shape(left), np.shape(right)), bool)
        return _is_wrong(name, flag, left, right, width)
    estimate = _estimate(name, left, right)
    low, high = _limits(flag, width)
    return (estimate > high * (1 - 2.0**-40)) | (estimate < low * (1 - 2.0**-40) - 0.5)


def _estimate(name: str, left: Value, right: Value) -> Value:
    left, right = np.asarray(left).astype(np.float64), np.asarray(right).astype(np.float64)
    match name:
        case "addi" | "add":
            return left + right
        case "subi" | "sub":
            return left - right
        case "muli" | "mul":
            return left * right
        case "shli" | "shl":
            return left * np.exp2(right)
    return left


def _limits(flag: str, width: int) -> tuple[int, int]:
    return (0, 2**width - 1) if flag == "nuw" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)


def _is_wrong(name: str, flag: str, left: int, right: int, width: int) -> bool:
    """Whether a flag does not hold for two integers, of which an op makes one of `width` bits."""
    left, right = int(left), int(right)
    if flag == "nneg":
        return left < 0
    if flag == "disjoint":
        return left & right != 0
    match name:
        case "udiv" | "sdiv":
            return right != 0 and left % right != 0
        case "lshr" | "ashr":
            return left & ((1 << min(right, width)) - 1) != 0
        case "addi" | "add":
            result = left + right
        case "subi" | "sub":
            result = left - right
        case "muli" | "mul":
            result = left * right
        case "shli" | "shl":
            result = left << min(right, 2 * width)
        case _:
            result = left
    low, high = _limits(flag, width)
    return not low <= result <= high


def _at(number: Value, lane: int, place: tuple, rank: int) -> int:
    """Returns the element of a lane at a position of its vector."""
    if not isinstance(number, np.ndarray):
        return int(number)
    return int(number[(lane, *place)] if number.ndim > rank else number[place])


def _report(fiber: Fiber, op: Instruction, lane: int, name: str, flag: str, left: int, right: int) -> None:
    type_ = op.result_types[0].element.name
    owner = f"{fiber.group.thread_name(lane)}: "
    if flag == "nneg":
        text = f"{left} is negative"
    elif flag == "disjoint":
        text = f"{left:#x} | {right:#x} have bits in common"
    elif name in ("udiv", "sdiv"):
        text = f"{left} / {right} has a remainder"
    elif name in _EXACT:
        text = f"{left} >> {right} shifts out bits that are set"
    elif name in ("trunc", "trunci"):
        text = f"{left} does not fit {type_}"
    else:
        text = f"{left} {_SYMBOLS[name]} {right} overflows {'unsigned ' if flag == 'nuw' else ''}{type_}"
    fiber.group.sanitizer.report(KIND, f"{owner}{text}, and the op has the flag {flag}: the result is poison", op)
