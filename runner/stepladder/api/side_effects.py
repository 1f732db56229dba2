"""Refuses epilogues with side effects: they run while the epilogue is traced, and not when its kernel does.

Two checks: instructions of the function's code that write to what outlives the call, and calls, observed while it is
traced, of Python functions with such code and of functions in C that are known to have effects.
"""

from __future__ import annotations

import builtins
import collections
import dis
import functools
import inspect
import io
import operator
import os
import random
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType

import numpy as np

from stepladder.api.errors import ArgumentError, EpilogueError

# Code of these packages is called by what is traced, and is not the epilogue's.
_TRUSTED = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))), os.path.dirname(np.__file__))

_IMPORTING = "<frozen importlib"

_WRITES = {
    "STORE_GLOBAL": "writes the global variable",
    "DELETE_GLOBAL": "deletes the global variable",
    "STORE_ATTR": "writes the attribute",
    "DELETE_ATTR": "deletes the attribute",
    "STORE_SUBSCR": "writes an element",
    "STORE_SLICE": "writes elements",
    "DELETE_SUBSCR": "deletes an element",
}
_EFFECTS = {
    getattr(builtins, name)
    for name in ("print", "input", "open", "exec", "eval", "setattr", "delattr", "breakpoint", "next")
} | {operator.setitem, operator.delitem}
_MUTABLE = (list, dict, set, bytearray, collections.deque, io.IOBase, np.ndarray)
_MUTATORS = {
    *("append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "popitem", "remove", "discard"),
    *("clear", "add", "update", "setdefault", "sort", "reverse", "fill", "put", "itemset", "resize", "setflags"),
    *("partition", "byteswap", "write", "writelines", "flush"),
}
_RANDOM = (random.Random, np.random.Generator, np.random.RandomState)
_ACCEPTED = "an epilogue computes its result from its arguments, constants and captured arrays, and does nothing else"


def place(frame: FrameType | None) -> str | None:
    """Returns `file:line` of the innermost frame that is neither of this package nor of NumPy.

    Args:
        frame: the innermost one to look at; None for none.
    """
    while frame is not None and _is_trusted(frame.f_code):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else None


def current_place() -> str | None:
    """Returns `file:line` of the caller's innermost frame that is neither of this package nor of NumPy."""
    return place(inspect.currentframe())


def _is_trusted(code: CodeType) -> bool:
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    return code.co_filename.startswith(_TRUSTED if torch is None else (*_TRUSTED, os.path.dirname(torch)))


def _is_imported(frame: FrameType) -> bool:
    """Returns whether code runs because a module is imported by one of these packages, which the epilogue calls."""
    looked_at: FrameType | None = frame
    is_import = False
    while looked_at is not None and looked_at.f_code is not call_observed.__code__:
        if looked_at.f_code.co_filename.startswith(_IMPORTING):
            is_import = True
        elif is_import:
            return _is_trusted(looked_at.f_code)
        looked_at = looked_at.f_back
    return False


@functools.lru_cache(maxsize=1024)
def _check_code(code: CodeType) -> None:
    """Raises EpilogueError for code that writes to what outlives a call of it."""
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise _refusal(f"{code.co_name} is a generator or a coroutine", code.co_filename, code.co_firstlineno)
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.starts_line is not None:
            line = _line_of(instruction, line)
        effect = _WRITES.get(instruction.opname)
        if effect is not None and instruction.argval is not None:
            effect = f"{effect} '{instruction.argval}'"
        if instruction.opname == "STORE_DEREF" and instruction.argval in code.co_freevars:
            effect = f"writes the variable '{instruction.argval}' of the function around it"
        if effect is not None:
            raise _refusal(f"{code.co_name} {effect}", code.co_filename, line)
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name not in ("<genexpr>",):
            _check_code(constant)


def _line_of(instruction: dis.Instruction, line: int) -> int:
    """Returns the line of an instruction that begins one; since Python 3.13 `starts_line` tells whether it does."""
    number = getattr(instruction, "line_number", instruction.starts_line)
    return line if number is None else number


def _refusal(effect: str, file: str, line: int) -> EpilogueError:
    return EpilogueError(f"the epilogue has a side effect: {effect}", location=f"{file}:{line}", notes=[_ACCEPTED])


def _effect(function: object) -> str | None:
    """Returns what a function in C does beside computing a result, or None."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    try:
        if function in _EFFECTS:
            return f"it calls {name}()"
    except TypeError:  # not hashable: no function of `builtins`
        return None
    torch = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(owner, torch.Tensor)
    is_in_place = is_tensor and name.endswith("_") and not name.endswith("__")
    if (isinstance(owner, _MUTABLE) and name in _MUTATORS) or is_in_place:
        return f"it calls {type(owner).__name__}.{name}()"
    if isinstance(owner, _RANDOM):
        return f"it draws a random number by {name}()"
    return None


def check_captured(function: Callable[..., object], name: str, value: object) -> None:
    """Refuses a random generator that an epilogue captures: its values would be constants.

    Args:
        function: the epilogue.
        name: of the variable.
        value: what it holds.

    Raises:
        EpilogueError: names the variable.
    """
    code = getattr(function, "__code__", None)
    if isinstance(value, _RANDOM) and code is not None:
        raise _refusal(f"it draws random numbers from '{name}'", code.co_filename, code.co_firstlineno)


def call_observed(function: Callable[..., object], arguments: Sequence[object]) -> object:
    """Calls a function after a check of its code, and checks each callee before it is executed.

    Args:
        function: the epilogue.
        arguments: what it is called with.

    Returns:
        What the function returns.

    Raises:
        EpilogueError: the function, or what it calls, has a side effect; names the file and the line.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None and not _is_trusted(code):
        _check_code(code)

    def observe(frame: FrameType, event: str, callee: object) -> None:
        if _is_trusted(frame.f_code) or _is_imported(frame):
            return
        if event == "call":
            # Methods that dataclasses generate have no file.
            is_generated = frame.f_code.co_filename == "<string>"
            if is_generated and frame.f_back is not None and _is_trusted(frame.f_back.f_code):
                return
            if frame.f_code.co_name != "<genexpr>":
                _check_code(frame.f_code)
        elif event == "c_call":
            effect = _effect(callee)
            if effect is not None:
                raise _refusal(effect, frame.f_code.co_filename, frame.f_lineno)

    if not callable(function):
        raise ArgumentError(f"argument 'epilogue' is a {type(function).__name__}; accepted: a function of the product")
    profiler = sys.getprofile()
    sys.setprofile(observe)
    try:
        return function(*arguments)
    except TypeError as error:
        # Of the call itself: the frame of the function was not entered.
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        raise EpilogueError(
            f"the epilogue is called with {len(arguments)} arrays, the product and the operands: {error}",
            location=None if code is None else f"{code.co_filename}:{code.co_firstlineno}",
            notes=["accepted: a function of the product and of each operand"],
        ) from None
    finally:
        sys.setprofile(profiler)
