"""Tracing of epilogues: a Python function of arrays becomes a list of scalar ops, which `spec` writes as MLIR.

A function is called once with `Traced` values in place of arrays. Every operation on them is recorded; what cannot be
recorded raises an `EpilogueError` with the file and the line of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from stepladder.api import side_effects
from stepladder.api.errors import EpilogueError
from stepladder.api.operations import absolute, as_condition, binary, cast, compare, divide, select, unary
from stepladder.api.recording import FLOATS, OPERAND_TYPES, Epilogue, Recording, Value, refuse
from stepladder.api.views import View, type_name


class Traced(Value):
    """An element of the product, or a value that an epilogue computes from it; to the epilogue, an array of C's shape.

    It has the operators of arrays, and NumPy's functions take it. It has no values: what asks for them, such as `if`
    or `float()`, is refused.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Extents of C."""
        return self.recording.rows, self.recording.columns

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    def astype(self, dtype: object) -> Value:
        """Returns the values, rounded to an element type, as `np.ndarray.astype`.

        Args:
            dtype: of floating point: `np.float16`, `"bf16"`, `np.float32`.
        """
        return cast(self, type_name(dtype, "dtype"))

    to = astype

    def __add__(self, other: object) -> Value:
        return binary("add", self, other)

    def __sub__(self, other: object) -> Value:
        return binary("sub", self, other)

    def __mul__(self, other: object) -> Value:
        return binary("mul", self, other)

    def __truediv__(self, other: object) -> Value:
        return divide(self, other)

    def __radd__(self, other: object) -> Value:
        return binary("add", other, self)

    def __rsub__(self, other: object) -> Value:
        return binary("sub", other, self)

    def __rmul__(self, other: object) -> Value:
        return binary("mul", other, self)

    def __rtruediv__(self, other: object) -> Value:
        return divide(other, self)

    def __neg__(self) -> Value:
        if self.type in FLOATS:
            return self.recording.record("arith.negf", [self], self.type)
        return binary("sub", 0, self)

    def __invert__(self) -> NoReturn:
        refuse("the operator `~`", "accepted: where(condition, y, x) for where(~condition, x, y)")

    def __floordiv__(self, other: object) -> NoReturn:
        refuse("the operator `//`", "accepted: floor(x / y)")

    def __mod__(self, other: object) -> NoReturn:
        refuse("the operator `%`", "accepted: x - floor(x / y) * y")

    def __rpow__(self, other: object) -> NoReturn:
        refuse("a power whose exponent is an array", "accepted: exp2(x), exp(x * log(base))")

    def __divmod__(self, other: object) -> NoReturn:
        refuse("divmod()", "accepted: floor(x / y)")

    def __round__(self, digits: int | None = None) -> NoReturn:
        refuse("round()", "accepted: rint(x), which rounds to integers as round() does")

    __rfloordiv__, __rmod__, __rdivmod__ = __floordiv__, __mod__, __divmod__

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return absolute(self)

    def __pow__(self, exponent: object) -> Value:
        if exponent == 2:
            return self * self
        if exponent == 3:
            return self * self * self
        if exponent == 0.5:
            return unary("math.sqrt", self)
        refuse(f"a power of {exponent}", "accepted: powers of 2, 3 and 0.5")

    def __lt__(self, other: object) -> Value:
        return compare("lt", self, other)

    def __le__(self, other: object) -> Value:
        return compare("le", self, other)

    def __gt__(self, other: object) -> Value:
        return compare("gt", self, other)

    def __ge__(self, other: object) -> Value:
        return compare("ge", self, other)

    def __eq__(self, other: object) -> Value:  # pyright: ignore[reportIncompatibleMethodOverride]
        return compare("eq", self, other)

    def __ne__(self, other: object) -> Value:  # pyright: ignore[reportIncompatibleMethodOverride]
        return compare("ne", self, other)

    __hash__ = object.__hash__

    def __and__(self, other: Traced) -> Value:
        return select(as_condition(self), as_condition(other), self)

    def __or__(self, other: Traced) -> Value:
        return select(as_condition(self), self, as_condition(other))

    def __bool__(self) -> bool:
        refuse("a condition (`if`, `while`, `and`, `or`, `not`) on an array", "accepted: where(condition, x, y)")

    def __float__(self) -> float:
        refuse("the conversion of an array to a scalar")

    __int__ = __index__ = __complex__ = __float__

    def __len__(self) -> int:
        refuse("the length of an array")

    def __iter__(self) -> NoReturn:
        refuse("a loop over the elements of an array")

    def __getitem__(self, index: object) -> NoReturn:
        refuse("indexing of an array: an epilogue computes each element on its own")

    def __matmul__(self, other: object) -> NoReturn:
        refuse("a second product in an epilogue")

    __rmatmul__ = __matmul__

    def __array__(self, *arguments: object, **keywords: object) -> NoReturn:
        refuse("the conversion of an array to NumPy")

    def __getattr__(self, name: str) -> Callable[..., Value]:
        """Returns a method that a function is too, such as `relu`, or a cast."""
        if name.startswith("__"):  # Python and NumPy look up protocols that an array may have
            raise AttributeError(name)
        from stepladder.api import functions

        if name in _CASTS:
            return lambda: cast(self, _CASTS[name])
        if name not in functions.BY_NAME:
            refuse(f"the attribute '{name}' of an array")
        return _method(name, self)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: object, **keywords: object) -> Value:
        if method != "__call__" or any(value is not None for value in keywords.values()):
            refuse(f"numpy.{function.__name__} with '{method}' or further arguments")
        return call(function.__name__, inputs)

    def __array_function__(
        self, function: Callable, types: object, arguments: tuple[object, ...], keywords: dict[str, object]
    ) -> Value:
        return call(function.__name__, arguments, keywords)

    @classmethod
    def __torch_function__(
        cls, function: Callable, types: object, arguments: tuple = (), keywords: dict | None = None
    ) -> Value:
        set_keywords = {key: value for key, value in (keywords or {}).items() if (key, value) not in _UNSET}
        return call(function.__name__, arguments, set_keywords)


# Messages of PyTorch's functions for unsupported calls.
_UNSET = (("inplace", False), ("out", None))
# Casts of PyTorch's tensors.
_CASTS = {"float": "f32", "half": "f16", "bfloat16": "bf16"}


def _method(name: str, array: Traced) -> Callable[..., Value]:
    return lambda *arguments, **keywords: call(name, (array, *arguments), keywords)


def call(name: str, arguments: Sequence[object], keywords: dict[str, object] | None = None) -> Value:
    """Records a function of NumPy's or PyTorch's by its name.

    Args:
        name: of the function, without its module.
        arguments: of the epilogue, arrays and scalars.
        keywords: named arguments; None for none.

    Returns:
        The function's result.

    Raises:
        EpilogueError: an unknown function, or arguments that it does not take.
    """
    from stepladder.api import functions

    function = functions.BY_NAME.get(name)
    if function is None:
        refuse(f"the function '{name}'")
    try:
        return function(*arguments, **(keywords or {}))
    except TypeError as error:
        refuse(f"the function '{name}' with these arguments ({error})")


def trace(
    function: Callable[..., Any],
    type_: str,
    rows: int,
    columns: int,
    device: int | None,
    operands: Sequence[tuple[str, object]] = (),
    names_of: Callable[..., Any] | None = None,
) -> tuple[Epilogue, tuple[View, ...]]:
    """Calls an epilogue with traced values.

    Args:
        function: of the product and the operands.
        type_: element type of the product.
        rows, columns: extents of the product.
        device: ordinal of the GPU that all operands are on; None for host memory.
        operands: name and array of what the function takes after the product.
        names_of: the function whose variables name captured arrays in messages; `function` if None.

    Returns:
        The epilogue, and the arrays that it reads, in the order of its operands.

    Raises:
        EpilogueError: an operation that is not elementwise, a side effect, a result that is no array of C's shape; with
            the file and the line. A product of a type that epilogues do not read.
        ArgumentError: an operand of a type that no kernel takes.
    """
    if type_ not in OPERAND_TYPES:
        raise EpilogueError(
            f"products of {type_} have no epilogue", notes=["accepted: those of f16, bf16, f32, fp8 and i8"]
        )
    recording = Recording(rows, columns, device, Traced)
    for cell_name, value in _captured(names_of or function):
        side_effects.check_captured(names_of or function, cell_name, value)
        recording.names.setdefault(id(value), cell_name)
    for name, array in operands:
        recording.names[id(array)] = name
    product = recording.record("input", (), type_, "0")
    values = [recording.operand(array) for _, array in operands]
    result = side_effects.call_observed(function, [product, *values])
    if not isinstance(result, Traced):
        code = getattr(function, "__code__", None)
        raise EpilogueError(
            f"the epilogue returns a {type(result).__name__}, which does not depend on the product",
            location=f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None,
            notes=["accepted: an array computed from the product"],
        )
    if result.type == "i1":
        raise EpilogueError(
            "the epilogue returns a condition", notes=["accepted: where(condition, 1.0, 0.0), or another scalar"]
        )
    ops, number = recording.needed(result)
    return Epilogue(ops, number, tuple(recording.specs)), tuple(recording.views)


def _captured(function: Callable[..., Any]) -> list[tuple[str, object]]:
    """Returns names and values of the variables around a function."""
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    captured = []
    for name, cell in zip(code.co_freevars, getattr(function, "__closure__", None) or ()):
        try:
            captured.append((name, cell.cell_contents))
        except ValueError:  # not assigned yet
            continue
    around = getattr(function, "__globals__", {})
    return captured + [(name, around[name]) for name in code.co_names if name in around]
