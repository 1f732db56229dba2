"""Epilogues: what is traced of a Python function, and what is refused."""

import operator
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import stepladder
from stepladder import functions as F
from stepladder.api import side_effects
from stepladder.api.recording import Epilogue, OperandSpec
from stepladder.api.traced import Traced, trace
from stepladder.api.views import View

ROWS, COLUMNS = 4, 8
ROW = np.linspace(-1, 1, COLUMNS, dtype=np.float32)
RANDOM = np.random.default_rng(0)
MATRIX = np.linspace(-2, 2, ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)


def of(function: Callable[..., object], *operands: np.ndarray, sums: str = "f32") -> tuple[Epilogue, tuple[View, ...]]:
    named = [(f"operand {number}", item) for number, item in enumerate(operands)]
    return trace(function, sums, ROWS, COLUMNS, None, named)


def refused(function: Callable[..., object], *operands: np.ndarray, sums: str = "f32") -> stepladder.EpilogueError:
    with pytest.raises(stepladder.EpilogueError) as caught:
        of(function, *operands, sums=sums)
    return caught.value


def test_operations_are_recorded_once() -> None:
    epilogue, views = of(lambda x: (x + ROW) * (x + ROW))
    assert [op.name for op in epilogue.ops] == ["input", "input", "arith.addf", "arith.mulf"]
    assert epilogue.ops[-1].operands == (2, 2) and epilogue.result == 3
    assert [view.array is ROW for view in views] == [True]


def test_functions_of_numpy_are_those_of_the_package() -> None:
    mine, _ = of(lambda x: F.where(x > 0, F.tanh(x), F.minimum(F.exp(x), 1.0)))
    numpys, _ = of(lambda x: np.where(x > 0, np.tanh(x), np.minimum(np.exp(x), 1.0)))
    assert mine == numpys
    assert of(lambda x: ROW + x)[0].ops[-1] == of(lambda x: np.add(ROW, x))[0].ops[-1]


@pytest.mark.parametrize(
    "array, spec",
    [
        (ROW, OperandSpec("f32", (COLUMNS,), ("j",))),
        (ROW[None], OperandSpec("f32", (COLUMNS,), ("j",))),
        (np.ones((ROWS, 1), np.float16), OperandSpec("f16", (ROWS,), ("i",))),
        (MATRIX, OperandSpec("f32", (ROWS, COLUMNS), ("i", "j"))),
        (np.ones((COLUMNS, ROWS), np.float32).T, OperandSpec("f32", (COLUMNS, ROWS), ("j", "i"))),
        (np.ones((1, 1), np.float32), OperandSpec("f32", (1,), (None,))),
        (np.broadcast_to(ROW, (ROWS, COLUMNS)), OperandSpec("f32", (COLUMNS,), ("j",))),
    ],
)
def test_operands_are_read_as_they_are_in_memory(array: np.ndarray, spec: OperandSpec) -> None:
    assert of(lambda x, d: x + d, array)[0].operands == (spec,)


def test_element_types() -> None:
    epilogue, _ = of(lambda x: x.astype("bf16") + 1)
    assert [op.type for op in epilogue.ops] == ["f32", "bf16", "bf16", "bf16"]
    epilogue, _ = of(lambda x: x * 0.5, sums="i32")
    assert [op.name for op in epilogue.ops] == ["input", "arith.sitofp", "arith.constant", "arith.mulf"]
    epilogue, _ = of(lambda x: x + 3, sums="i32")
    assert epilogue.type == "i32" and epilogue.ops[1].text == "3"
    assert of(lambda x, d: x * d, np.ones(COLUMNS, np.float16))[0].type == "f32"


def test_numbers_that_are_not_finite() -> None:
    epilogue, _ = of(lambda x: F.where(x > -np.inf, F.maximum(x, np.inf), np.nan))
    assert [op.text for op in epilogue.ops if "constant" in op.name] == ["0xff800000", "0x7f800000", "0x7fc00000"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1.0 / 1 - 0.0,
        lambda x: np.negative(-(1 * x)),
        lambda x: F.clip(x, -np.inf, np.inf),
        lambda x: F.where(x > 2, x, x),
        lambda x: F.maximum(x, x).float(),
    ],
)
def test_what_changes_nothing_is_not_recorded(function: Callable[..., object]) -> None:
    assert of(function)[0] == of(lambda x: x)[0]


def test_methods_are_functions() -> None:
    assert of(lambda x: x.relu() * x.clip(0, 6))[0] == of(lambda x: F.relu(x) * F.clip(x, 0, 6))[0]


def total(x: Traced) -> Traced:
    return x.sum()


def branches(x: Traced) -> Traced:
    if x > 0:
        return x
    return -x


@pytest.mark.parametrize(
    "function, message",
    [
        (branches, "a condition"),
        (total, "the attribute 'sum'"),
        (lambda x: np.sum(x), "the function 'sum'"),
        (lambda x: x @ x, "a second product"),
        (lambda x: x[0], "indexing"),
        (lambda x: float(x), "conversion of an array to a scalar"),
        (lambda x: x**7, "a power of 7"),
        (lambda x: 2**x, "a power whose exponent is an array"),
        (lambda x: F.where(~(x > 0), x, 0), "the operator `~`"),
        (lambda x: x // 2, "the operator `//`"),
        (lambda x: x * 10**400, "an integer beyond the range of f32"),
        (lambda x, y: x + y, "called with 1 arrays, the product and the operands"),
        (lambda x: x + "1", "a value of type str"),
        (lambda x: x + (x > 0), "arithmetic on a condition"),
        (lambda x: x.astype(np.int32), "a cast from f32 to i32"),
        (lambda x: x + np.ones(3, np.float32), "does not broadcast to 4x8"),
        (lambda x: x + np.ones((ROWS, 2 * COLUMNS), np.float32)[:, ::2], "has strides"),
    ],
)
def test_what_cannot_be_traced_is_refused_with_its_line(function: Callable[..., object], message: str) -> None:
    error = refused(function)
    assert message in error.message and error.notes
    first = function.__code__.co_firstlineno
    file, _, line = (error.location or "").rpartition(":")
    assert file == __file__ and first <= int(line) <= first + 2


def test_results_that_are_no_array_are_refused() -> None:
    assert "returns a float" in refused(lambda x: 1.0).message
    assert "returns a condition" in refused(lambda x: x > 0).message


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**40])
def test_integers_beyond_the_sums_are_refused(number: int) -> None:
    """They would wrap: the least of a sum and 2^31 would be -2^31."""
    for function in (F.minimum, F.maximum, lambda x, n: x + n, lambda x, n: F.where(x > 0, x, n)):
        error = refused(lambda x: function(x, number), sums="i32")
        assert error.message.endswith("an integer beyond the range of i32") and "-2147483648" in error.notes[0]


@pytest.mark.parametrize("number, bits", [(1e300, "0x7f800000"), (-1e39, "0xff800000")])
def test_a_number_beyond_f32_is_infinite(number: float, bits: str) -> None:
    assert bits in [op.text for op in of(lambda x: x + number)[0].ops]


def test_products_of_f64_have_no_epilogue() -> None:
    assert refused(lambda x: x + 1, sums="f64").message == "products of f64 have no epilogue"


seen: list = []
counter = 0


def appends(x: Traced) -> Traced:
    seen.append(1)
    return x


def prints(x: Traced) -> Traced:
    print("traced")
    return x


def writes_global(x: Traced) -> Traced:
    global counter
    counter = 1
    return x


def writes_element(x: Traced) -> Traced:
    ROW[0] = 1
    return x


def writes_by_operator(x: Traced) -> Traced:
    operator.setitem(seen, slice(0, 0), [1])
    return x


def calls_what_writes(x: Traced) -> Traced:
    return appends(x)


def yields(x: Traced) -> Iterator[Traced]:
    yield x


@pytest.mark.parametrize(
    "function, message",
    [
        (appends, "list.append()"),
        (prints, "print()"),
        (writes_by_operator, "setitem()"),
        (writes_global, "writes the global variable 'counter'"),
        (writes_element, "writes an element"),
        (calls_what_writes, "list.append()"),
        (yields, "a generator"),
        (lambda x: x * RANDOM.random(), "draws random numbers from 'RANDOM'"),
    ],
)
def test_side_effects_are_refused_before_they_happen(
    function: Callable[..., object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(function)
    assert "side effect" in error.message and message in error.message
    assert (error.location or "").startswith(f"{__file__}:")
    assert not seen and counter == 0 and ROW[0] == -1 and not capsys.readouterr().out


def test_a_variable_around_the_function_is_not_written() -> None:
    calls = 0

    def counts(x: Traced) -> Traced:
        nonlocal calls
        calls += 1
        return x

    assert "writes the variable 'calls'" in refused(counts).message and calls == 0


def test_functions_take_arrays_of_numpy() -> None:
    x = np.linspace(-3, 3, 7)
    assert np.allclose(F.silu(x), x / (1 + np.exp(-x)))
    assert np.allclose(F.gelu(x), F.gelu(x, "tanh"), atol=1e-3)
    assert np.array_equal(F.leaky_relu(x, 0.5), np.where(x > 0, x, x / 2))
    with pytest.raises(ValueError, match="'none' and 'tanh'"):
        F.gelu(x, "other")


def test_what_the_package_imports_while_an_epilogue_runs_is_no_side_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call of an operation imports its module; what an epilogue imports itself is looked at."""
    body = "import types\nheld = types.SimpleNamespace()\n\ndef put():\n    held.x = 3\n\nput()\n"
    for name in ("imported_by_us", "imported_by_them"):
        (tmp_path / f"{name}.py").write_text(body)
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict = {}
    source = "def called():\n    import imported_by_us\n    return imported_by_us.held.x\n"
    exec(compile(source, str(Path(stepladder.__file__).with_name("called.py")), "exec"), names)
    assert side_effects.call_observed(lambda: names["called"](), []) == 3

    def epilogue() -> int:
        import imported_by_them  # pyright: ignore

        return imported_by_them.held.x

    with pytest.raises(stepladder.EpilogueError, match="side effect"):
        side_effects.call_observed(epilogue, [])


def test_an_epilogue_that_is_a_generator() -> None:
    def yields(x: Traced) -> Iterator[Traced]:
        yield x

    error = refused(yields)
    assert "yields is a generator or a coroutine" in error.message and error.location
