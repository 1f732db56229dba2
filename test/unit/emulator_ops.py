"""Runs single ops on the emulator: on numbers, in lanes, on vectors."""

import functools

import ml_dtypes
import numpy as np
from hypothesis import settings

from conftest import examples
from stepladder.emulator import dialects  # noqa: F401  importing it registers what executes ops
from stepladder.emulator.core import types
from stepladder.emulator.core.blocks import Blocks
from stepladder.emulator.core.groups import Group
from stepladder.emulator.core.machine import Machine
from stepladder.emulator.core.program import Program, build
from stepladder.emulator.memory import memory
from stepladder.mlir.bindings import ir

FEW = settings(max_examples=examples(40), deadline=None)
FORMATS = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@functools.lru_cache(maxsize=64)
def program(text: str) -> Program:
    with ir.Context(), ir.Location.unknown():
        types.forget()
        return build(ir.Module.parse(text))


def run(
    text: str, *arguments: int | bool | np.generic | np.ndarray, lanes: int = 0, mask: np.ndarray | None = None
) -> list:
    """Runs @f on the host, or in so many threads of one block; returns its results and what memrefs hold then.

    Arrays for memrefs become memory; others are values as they are, with lanes in front or without.
    """
    code = program(text)
    function = code.functions["f"]
    machine = Machine(code)
    values, views = [], []
    for argument, type_ in zip(arguments, function.argument_types, strict=True):
        if isinstance(type_, types.Buffer):
            argument = memory.contiguous(machine.heap.array(argument), type_.element, argument.shape)
            views.append(argument)
        values.append(argument)
    if lanes:
        group = Group(machine, 0, "a block", np.zeros((1, 3), int), Blocks((lanes, 1, 1)))
        env = [None] * len(code.slot_types)
        for slot, value in zip(function.arguments, values):
            env[slot] = value
        group.start(function.code, env)
        if mask is not None:
            group.ready[0].narrow(mask)
        with np.errstate(all="ignore"):
            group.run()
        results = group.state["returned"]
    else:
        results = machine.call(function, values)
    assert not list(machine.findings), [finding.render() for finding in machine.findings]
    return [*results, *map(memory.content, views)]


def function(arguments: dict, body: str, results: str) -> str:
    """Returns @f with these arguments (name -> type), this body, and `%r` returned with this type."""
    inside = ", ".join(f"%{name}: {type_}" for name, type_ in arguments.items())
    return f"func.func @f({inside}) -> ({results}) {{\n{body}\nreturn %r : {results}\n}}"


def bits(array: np.generic | np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    return array.view(f"u{array.dtype.itemsize}")


def same(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether two arrays have the same elements, where not a number is like itself and zeros have their signs."""
    left, right = np.asarray(left), np.asarray(right)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind in "biu":
        return np.array_equal(left, right)
    nan = np.isnan(left) & np.isnan(right)
    return bool((nan | (bits(left) == bits(right))).all())


def everywhere(op: str, type_: str, result: str, *operands: np.ndarray) -> np.ndarray:
    """Runs an op on numbers, lanes and vectors, checks that all agree, and returns the results as an array.

    Args:
        op: with {} for its operands, such as "arith.addi {} : i8"; the type's name becomes a vector's.
        operands: arrays of one size.
    """
    count = len(operands[0])
    names = "abc"[: len(operands)]
    wide = f"vector<{count}x{type_}>"

    def text(of: str, to: str, op: str) -> str:
        return function(dict.fromkeys(names, of), "%r = " + op.format(", ".join(f"%{name}" for name in names)), to)

    scalar = text(type_, result, f"{op} : {type_}" if type_ == result or "cmp" in op else f"{op} : {type_} to {result}")
    (in_lanes,) = run(scalar, *operands, lanes=count)
    numbers = [
        run(
            scalar, *[operand[number].item() if operand.dtype.kind in "bi" else operand[number] for operand in operands]
        )[0]
        for number in range(min(count, 8))
    ]
    to = f"vector<{count}x{result}>"
    vector = text(wide, to, f"{op} : {wide}" if type_ == result or "cmp" in op else f"{op} : {wide} to {to}")
    (in_vector,) = run(vector, *operands)
    assert same(in_lanes, in_vector)
    assert same(np.array(numbers, in_lanes.dtype), in_lanes[:8])
    if in_lanes.dtype.kind in "bi":
        assert all(type(number) in (int, bool) for number in numbers)
    return in_lanes
