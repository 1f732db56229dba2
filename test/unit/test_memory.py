"""What needs more memory than there is gets one message: arguments, allocations, inputs, problems."""

import struct
from pathlib import Path

import numpy as np
import pytest

from conftest import make_problem
from stepladder.cli import emulation_output, guard
from stepladder.emulator.core.emulation import Emulation
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime import host_memory
from stepladder.runtime.errors import BAD_INPUT, NOT_EXECUTED, StepladderError
from stepladder.runtime.reference import matmul_program
from stepladder.verify import check

LARGE = 2**40
DYNAMIC = "func.func @f(%size: index) {\n  %a = memref.alloc(%size) : memref<?xf32>\n  return\n}\n"


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "available", lambda: 3 * 2**30)


def emulated(text: str) -> Emulation:
    return Emulation(parse_payload(text, "large.mlir"), name="large.mlir")


@pytest.mark.parametrize(
    "text",
    [
        f"func.func @f(%a: memref<{LARGE}xf32>) {{\n  return\n}}\n",
        f"func.func @f(%a: memref<{LARGE}x{LARGE}x{LARGE}xf32>) {{\n  return\n}}\n",
        f"func.func @f() {{\n  %a = memref.alloc() : memref<{LARGE}xf32>\n  return\n}}\n",
        f"func.func @f() {{\n  %a = tensor.empty() : tensor<{LARGE}xf32>\n  return\n}}\n",
        f"func.func @f() {{\n  %a = arith.constant dense<0.0> : tensor<{LARGE}xf32>\n  return\n}}\n",
    ],
)
def test_value_of_a_type_that_is_too_large(text: str) -> None:
    with mlir_context(), pytest.raises(StepladderError, match=r"a value of type .* are available") as caught:
        emulated(text)
    assert caught.value.location in ("large.mlir:1:1", "large.mlir:2:8")


def test_arguments_that_are_too_large_together(little: None) -> None:
    with mlir_context():
        emulation = emulated("func.func @f(%a: memref<268435456xf32>, %b: memref<268435456xf32>) {\n  return\n}\n")
        with pytest.raises(StepladderError, match=r"arguments of @f, .* needs 4.0 GiB .* 3.0 GiB are available"):
            emulation.random_inputs(0)


def test_allocation_of_a_size_known_when_it_runs() -> None:
    with mlir_context(), pytest.raises(StepladderError, match=r"needs .* of memory"):
        emulated(DYNAMIC).run([np.int64(LARGE)])


def test_problem_that_is_too_large(little: None) -> None:
    with pytest.raises(StepladderError, match=r"C = AB, 65536 x 65536 x 64, .* needs .* GiB") as caught:
        problem = make_problem(m=65536, n=65536, accumulate=False)
        check.check_matmul(problem, matmul_program(problem), None, 0)
    assert caught.value.status == NOT_EXECUTED


def npy(shape: str, type_: str = "<f4") -> bytes:
    header = f"{{'descr': '{type_}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


@pytest.mark.parametrize(
    "content",
    [
        npy(f"({LARGE},)"),
        npy(f"({LARGE}, {LARGE})"),
        npy("(-5,)"),
        npy("(16, 16)") + b"1234",
        npy("(2,)", "|O"),
        b"",
        npy("(2,)", "<q99"),
        npy(f"{'(' * 3000}1{')' * 3000}"),
        b"\x93NUMPY\x01\x00\x08\x00{{{{{{{\n",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}",
    ],
    ids=["huge", "overflow", "negative", "short", "objects", "empty", "type", "nested", "syntax", "header"],
)
def test_input_whose_header_promises_too_much(
    content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(StepladderError, match="is not a file of NumPy") as caught:
        emulation_output.load_array(str(path))
    assert len(caught.value.render()) < 600 and capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "array", [np.ones((4, 5), np.float32), np.ones((4, 5), np.float16, order="F"), np.zeros((0, 4), np.int8)]
)
def test_input(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    loaded = emulation_output.load_array(str(tmp_path / "a.npy"))
    assert loaded.dtype == array.dtype and np.array_equal(loaded, array)


def test_memory_that_runs_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing looked beforehand."""
    assert guard.guarded(lambda: np.empty(2**62, np.uint8).size) == BAD_INPUT
    assert capsys.readouterr().err.startswith("error: not enough memory: Unable to allocate")


def test_memory_of_this_machine() -> None:
    there = host_memory.available()
    assert there is None or there > 2**20
