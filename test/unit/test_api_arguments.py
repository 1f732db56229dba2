"""Arguments of calls from Python: shapes and strides are recognized, and what no kernel takes is refused by name."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepladder
from stepladder.api.shapes import Shapes, recognize
from stepladder.api.views import type_name, view_of

RUNNER = Path(__file__).resolve().parents[2] / "runner"


def recognized(a: np.ndarray, b: np.ndarray) -> Shapes:
    return recognize(view_of("a", a), view_of("b", b))


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float16)


@pytest.mark.parametrize(
    "a, b, expected",
    [
        (zeros(4, 8), zeros(8, 6), Shapes(4, 6, 8, None, "row", "row", "", (4, 6))),
        (zeros(8, 4).T, zeros(6, 8).T, Shapes(4, 6, 8, None, "column", "column", "", (4, 6))),
        (zeros(8), zeros(8, 6), Shapes(1, 6, 8, None, "row", "row", "", (6,))),
        (zeros(4, 8), zeros(8), Shapes(4, 1, 8, None, "row", "row", "", (4,))),
        (zeros(2, 3, 4, 8), zeros(8, 6), Shapes(24, 6, 8, None, "row", "row", "", (2, 3, 4, 6))),
        (zeros(3, 4, 8), zeros(3, 8, 6), Shapes(4, 6, 8, 3, "row", "row", "", (3, 4, 6))),
        (zeros(3, 4, 8), zeros(3, 6, 8).swapaxes(1, 2), Shapes(4, 6, 8, 3, "row", "column", "", (3, 4, 6))),
        (zeros(4, 8), zeros(3, 8, 6), Shapes(4, 6, 8, 3, "row", "row", "a", (3, 4, 6))),
        (zeros(3, 8, 4).swapaxes(1, 2), zeros(8, 6), Shapes(4, 6, 8, 3, "column", "row", "b", (3, 4, 6))),
        (np.broadcast_to(zeros(4, 8), (3, 4, 8)), zeros(3, 8, 6), Shapes(4, 6, 8, 3, "row", "row", "a", (3, 4, 6))),
        (zeros(1, 4, 8), zeros(1, 8, 6), Shapes(4, 6, 8, None, "row", "row", "", (1, 4, 6))),
    ],
)
def test_layouts_and_batches_are_recognized(a: np.ndarray, b: np.ndarray, expected: Shapes) -> None:
    assert recognized(a, b) == expected
    assert expected.result == np.matmul(a, b).shape


@pytest.mark.parametrize(
    "a, b, message",
    [
        (zeros(4, 16)[:, ::2], zeros(8, 6), r"argument 'a' has strides \(16, 2\)"),
        (zeros(4, 16)[:, :8], zeros(8, 6), r"argument 'a' has strides \(16, 1\)"),
        (zeros(4, 8), zeros(8, 12)[:, :6], "argument 'b' has strides"),
        (zeros(4, 8), zeros(7, 6), "a has 8 columns, and b 7 rows; accepted: equal numbers"),
        (zeros(6, 4, 8)[::2], zeros(3, 8, 6), "argument 'a' has strides"),
        (zeros(3, 4, 8), zeros(2, 8, 6), "the same batch, or one matrix for all"),
        (zeros(0, 8), zeros(8, 6), "extents of at least 1"),
        (np.array(1, np.float16), zeros(8, 6), "argument 'a' is a single element"),
    ],
)
def test_operands_that_would_need_a_copy_are_refused(a: np.ndarray, b: np.ndarray, message: str) -> None:
    with pytest.raises(stepladder.ArgumentError, match=message):
        recognized(a, b)


def test_elements() -> None:
    assert view_of("a", np.zeros(2, ml_dtypes.bfloat16)).type == "bf16"
    assert type_name(np.float32, "dtype") == type_name("f32", "dtype") == type_name("float32", "dtype") == "f32"
    with pytest.raises(stepladder.ArgumentError, match="argument 'b' has elements of f64; accepted: f16"):
        stepladder.matmul(zeros(2, 2), np.zeros((2, 2)), device="emulator")
    with pytest.raises(stepladder.ArgumentError, match="argument 'b' has elements of f32; accepted: f16"):
        stepladder.matmul(zeros(2, 2), np.zeros((2, 2), np.float32), device="emulator")
    with pytest.raises(stepladder.ArgumentError, match="in another byte order"):
        view_of("a", np.zeros(2, ">f4"))


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(
        stepladder.ArgumentError, match="argument 'a' is a list, which is not an array; accepted: NumPy"
    ):
        stepladder.matmul([[1.0]], zeros(1, 1))
    with pytest.raises(stepladder.ArgumentError, match="argument 'stream' is a str"):
        stepladder.matmul(zeros(1, 1), zeros(1, 1), stream="main")
    with pytest.raises(stepladder.ArgumentError, match="a dict cannot be compiled"):
        stepladder.compile({})
    with pytest.raises(stepladder.ArgumentError, match="device = 'cpu': accepted are 'auto', 'emulator'"):
        stepladder.compile(stepladder.MatmulSpec(64, 64, 64), device="cpu")


@pytest.mark.parametrize(
    "out, message",
    [
        (np.zeros((4, 5), np.float16), "argument 'out' is 4 x 5; accepted: 4 x 6"),
        (np.zeros((4, 6), np.int8), "argument 'out' has elements of i8; accepted"),
        (np.zeros((4, 12), np.float16)[:, ::2], "argument 'out' has strides .12, 2.* accepted: contiguous, row-major"),
        (np.zeros((6, 4), np.float16).T, "argument 'out' has strides"),
    ],
)
def test_results_that_no_kernel_writes_are_refused(out: np.ndarray, message: str) -> None:
    dtype = "f16" if out.dtype == np.int8 else None
    with pytest.raises(stepladder.ArgumentError, match=message):
        stepladder.matmul(zeros(4, 8), zeros(8, 6), out=out, dtype=dtype, device="emulator")


def test_a_kernel_takes_its_arguments_and_no_others() -> None:
    kernel = stepladder.compile(stepladder.MatmulSpec(8, 8, 8), device="emulator", target="sm_80")
    a, out = zeros(8, 8), np.zeros((8, 8), np.float32)
    for given in ((), (a,), (a, a, out, a)):
        with pytest.raises(
            stepladder.ArgumentError, match=f"{len(given)} arrays were passed, and the kernel takes 2: a, b"
        ):
            kernel(*given)
    out.setflags(write=False)
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' is read-only"):
        kernel(a, a, out=out)
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' is a list, which is not an array"):
        kernel(a, a, out=[out])


def test_a_batch_with_an_epilogue_is_refused() -> None:
    with pytest.raises(stepladder.ArgumentError, match="argument 'epilogue' is given for a batch of 3"):
        stepladder.matmul(zeros(3, 4, 8), zeros(3, 8, 6), epilogue=lambda x: -x, device="emulator")


def test_a_matmul_object_captures_no_array() -> None:
    bias = np.zeros(6, np.float32)
    scaled = stepladder.Matmul(lambda x: x + bias, device="emulator")
    with pytest.raises(stepladder.EpilogueError, match="the epilogue reads 1 arrays, and a call passes 0"):
        scaled(zeros(4, 8), zeros(8, 6))


def test_the_package_imports_nothing_before_a_name_is_used() -> None:
    script = (
        "import sys, stepladder\n"
        "assert not [name for name in sys.modules if name.startswith(('stepladder.', 'numpy', 'torch', 'mlir'))]\n"
        "assert set(stepladder.__all__) <= set(dir(stepladder))\n"
        "for name in stepladder.__all__:\n"
        "    if name != 'pytorch': getattr(stepladder, name)\n"
        "assert not [name for name in sys.modules if name.startswith(('torch', 'mlir', 'cuda.', 'llvmlite'))]\n"
        "try: stepladder.other\n"
        "except AttributeError as error: assert 'other' in str(error)\n"
    )
    subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(RUNNER), "PATH": ""}, check=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: stepladder.matmul(np.ma.masked_array(a), a, device="emulator"), "'a' is a masked array"),
        (lambda a: stepladder.matmul(a, a, operands=[a], device="emulator"), "'operands' is given without an epilogue"),
        (lambda a: stepladder.matmul(a, a, operands=3, epilogue=abs, device="emulator"), "'operands' is a int"),
        (
            lambda a: stepladder.matmul(a, a, stages=[2], device="emulator"),
            r"argument 'stages' is \[2\]; accepted as a knob: integers",
        ),
        (lambda a: stepladder.Matmul(3, device="emulator")(a, a), "'epilogue' is a int; accepted: a function"),
        (lambda a: stepladder.load(3), "'path' is a int; accepted: the path"),
        (lambda a: stepladder.matmul(a, a, stream=-5, device="emulator"), "'stream' is -5; accepted: handles"),
        (lambda a: stepladder.matmul(a, a, device=-1), "'device' is -1; accepted: 'auto', 'emulator'"),
        (lambda a: stepladder.matmul(a.astype(object), a, device="emulator"), "'a' has elements of object; accepted"),
        (lambda a: stepladder.matmul(a, a.astype(np.uint16), device="emulator"), "'b' has elements of uint16"),
        (lambda a: stepladder.matmul(a, a[:, ::-1], device="emulator"), r"'b' has strides \(8, -1\) in elements"),
        (lambda a: stepladder.matmul(np.array(1, np.float16), a, device="emulator"), "'a' is a single element"),
        (lambda a: stepladder.matmul(a[:0], a, device="emulator"), "'a' is 0 x 8; accepted: extents of at least 1"),
        (lambda a: stepladder.matmul(None, a, device="emulator"), "'a' is a NoneType, which is not an array"),
        (lambda a: stepladder.matmul(a, a, out=a, device="emulator"), "'out' overlaps argument 'a'"),
    ],
)
def test_arguments_of_other_kinds_are_refused(call: Callable[[np.ndarray], object], message: str) -> None:
    with pytest.raises(stepladder.ArgumentError, match=message):
        call(np.ones((8, 8), np.float16))


def test_the_refusal_of_unsigned_numbers_says_how_they_are_passed() -> None:
    with pytest.raises(stepladder.ArgumentError) as refused:
        stepladder.matmul(np.ones((8, 8), np.uint8), np.ones((8, 8), np.int8), device="emulator")
    (note,) = refused.value.notes
    assert note.endswith("is passed as int8 with the same bits, as x.view(np.int8) has them")
