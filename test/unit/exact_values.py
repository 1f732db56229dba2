"""Functions of tensors of small integers: NumPy computes each value when its op is written."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

# Integers up to these are exact
EXACT = {
    "f16": 2**11,
    "bf16": 2**8,
    "f32": 2**24,
    "f64": 2**53,
    "f8E4M3FN": 2**4,
    "f8E5M2": 2**3,
    "i1": 1,
    "i8": 2**7 - 1,
    "i32": 2**31 - 1,
    "i64": 2**63 - 1,
}
DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i1": np.bool_,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}

LETTERS = "abcdefgh"


def tensor(shape: Sequence[int], element: str) -> str:
    """Returns the type of a tensor."""
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


def written(number: float, element: str) -> str:
    """Returns a number as MLIR writes it; of infinity, the bits."""
    if not np.isinf(number):
        return str(float(number) if "f" in element else int(number))
    size = np.dtype(DTYPES[element]).itemsize
    bits = np.array(number, DTYPES[element]).view(f"u{size}")
    return f"0x{int(bits):0{2 * size}X}"


@dataclass(frozen=True)
class Value:
    """A tensor: its name, element type and numbers, in float64 or int64."""

    name: str
    element: str
    held: np.ndarray

    @property
    def type(self) -> str:
        """The type of the tensor."""
        return tensor(self.held.shape, self.element)

    @property
    def is_float(self) -> bool:
        """Whether elements are floating-point numbers."""
        return "f" in self.element

    @property
    def most(self) -> float:
        """The largest magnitude."""
        return float(np.abs(self.held).max(initial=0))


@dataclass
class Function:
    """A function: its text, arrays of its arguments, and the results.

    Args:
        text: of the module.
        arguments: arrays in the types of the arguments.
        wanted: arrays in the types of the results.
        features: what was written.
    """

    text: str
    arguments: list[np.ndarray]
    wanted: list[np.ndarray]
    features: list[str]


@dataclass
class ExactWriter:
    """Writes a function, and computes it.

    Args:
        drawn: draws it.
        sizes: extents that are drawn.
    """

    drawn: random.Random
    sizes: Sequence[int]
    lines: list[str] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.drawn.randrange(2**32))

    def name(self) -> str:
        """Returns a new name."""
        self.count += 1
        return f"%v{self.count}"

    def integers(self, shape: Sequence[int], element: str, most: int = 2) -> np.ndarray:
        """Returns random integers."""
        low, high = (0, 2) if element == "i1" else (-most, most + 1)
        held = self.generator.integers(low, high, shape)
        return held.astype(np.float64) if "f" in element else held

    def argument(self, shape: Sequence[int], element: str, held: np.ndarray | None = None) -> Value:
        """Adds an argument."""
        numbers = self.integers(shape, element) if held is None else held
        value = Value(f"%arg{len(self.arguments)}", element, numbers)
        self.arguments.append(value)
        return value

    def op(self, text: str, element: str, held: np.ndarray, feature: str) -> Value:
        """Writes an op of one result; `{type}` in its text is the type of the result."""
        value = Value(self.name(), element, held)
        self.lines.append(f"{value.name} = {text.replace('{type}', value.type)}")
        self.values.append(value)
        self.features.append(feature)
        return value

    def empty(self, shape: Sequence[int], element: str) -> str:
        """Writes an empty tensor; returns its name."""
        name = self.name()
        self.lines.append(f"{name} = tensor.empty() : {tensor(shape, element)}")
        return name

    def constant(self, number: float, element: str) -> str:
        """Writes a number; returns its name."""
        name = self.name()
        self.lines.append(f"{name} = arith.constant {written(number, element)} : {element}")
        return name

    def filled(self, shape: Sequence[int], element: str, number: float = 0) -> str:
        """Writes a tensor of one number; returns its name."""
        scalar, empty, name = self.constant(number, element), self.empty(shape, element), self.name()
        type_ = tensor(shape, element)
        self.lines.append(f"{name} = linalg.fill ins({scalar} : {element}) outs({empty} : {type_}) -> {type_}")
        return name

    def generic(
        self,
        inputs: Sequence[tuple[Value, str]],
        loops: str,
        made: tuple[str, str],
        body: Sequence[str],
        held: np.ndarray,
        feature: str,
        outs: str | None = None,
    ) -> Value:
        """Writes a `linalg.generic` of %x0, %x1, ..., and of the output %o, that yields %r.

        Args:
            inputs: values, each with the results of its map.
            loops: letters.
            made: letters of the result, and its element type; other loops are reductions.
            body: lines.
            held: the result.
            feature: what it is.
            outs: the output; None for an empty tensor.
        """
        letters, element = made
        names = ", ".join(loops)
        maps = [f"affine_map<({names}) -> ({map_})>" for _, map_ in inputs]
        maps.append(f"affine_map<({names}) -> ({', '.join(letters)})>")
        kinds = ", ".join(f'"{"parallel" if letter in letters else "reduction"}"' for letter in loops)
        outs = outs or self.empty(held.shape, element)
        ins = ""
        if inputs:
            ins = f"ins({', '.join(v.name for v, _ in inputs)} : {', '.join(v.type for v, _ in inputs)}) "
        block = ", ".join([*(f"%x{i}: {v.element}" for i, (v, _) in enumerate(inputs)), f"%o: {element}"])
        lines = "\n    ".join([*body, f"linalg.yield %r : {element}"])
        return self.op(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}}\n"
            f"    {ins}outs({outs} : {{type}}) {{\n  ^bb0({block}):\n    {lines}\n  }} -> {{type}}",
            element,
            held,
            feature,
        )
