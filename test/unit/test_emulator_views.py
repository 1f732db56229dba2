"""Views of memory that threads have different ones of: what is followed, and what is refused."""

import importlib

import numpy as np
import pytest

from foreign_kernels import launch, run, run_clean
from stepladder.emulator.core.emulation import Emulation
from stepladder.mlir import bindings
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

ARGUMENTS = "%X: memref<64xi32>, %Y: memref<64xi32>"
X, Y = np.arange(64, dtype=np.int32) * 3, np.zeros(64, np.int32)

# Each thread chooses one of two memrefs of its own.
CHOICE = """
        %one = arith.constant 1 : i32
        %two = arith.constant 2 : i32
        %c2 = arith.constant 2 : index
        %a = memref.alloca() : memref<2xi32>
        %b3 = memref.alloca() : memref<2xi32>
        memref.store %one, %a[%c0] : memref<2xi32>
        memref.store %two, %b3[%c0] : memref<2xi32>
        %bit = arith.remui %t, %c2 : index
        %even = arith.cmpi eq, %bit, %c0 : index
        %m = scf.if %even -> memref<2xi32> {
          scf.yield %a : memref<2xi32>
        } else {
          scf.yield %b3 : memref<2xi32>
        }
        %v = memref.load %m[%c0] : memref<2xi32>
        memref.store %v, %Y[%t] : memref<64xi32>
        gpu.terminator"""


def views(shift: str) -> str:
    return launch(
        f"""
        %bytes = arith.constant {shift} : index
        %start = arith.muli %t, %bytes : index
        %view = memref.view %Z[%start][] : memref<260xi8> to memref<1xi32>
        %v = memref.load %view[%c0] : memref<1xi32>
        memref.store %v, %Y[%t] : memref<64xi32>
        gpu.terminator""",
        arguments="%Z: memref<260xi8>, %Y: memref<64xi32>",
    )


def test_views_of_bytes_from_where_each_thread_says() -> None:
    z = np.arange(260).astype(np.uint8).view(np.int8)
    outcome = run_clean(views("4"), z, Y)
    assert np.array_equal(np.asarray(outcome.arguments[1]), z[:256].view(np.int32))


def test_views_between_elements() -> None:
    with pytest.raises(StepladderError, match=r"memref.view of addresses that .* are no multiple of 4 bytes"):
        run(views("1"), np.zeros(260, np.int8), Y)


def test_memrefs_of_different_memory_as_one_value() -> None:
    message = "a memref that is of different memory in different threads"
    with pytest.raises(StepladderError, match=f"support {message}"):
        run(launch(CHOICE, arguments=ARGUMENTS), X, Y)


def test_descriptors_of_different_memory_as_one_memref() -> None:
    """Once branches are jumps of descriptors, the accesses seemed to be out of bounds."""
    passes = importlib.import_module(f"{bindings.ir.__name__.rpartition('.')[0]}.passmanager").PassManager
    with mlir_context():
        module = parse_payload(launch(CHOICE, arguments=ARGUMENTS), "program.mlir")
        steps = "gpu-kernel-outlining,convert-nvgpu-to-nvvm,convert-scf-to-cf,convert-nvvm-to-llvm"
        passes.parse(f"builtin.module({steps})").run(module.operation)
        emulation = Emulation(module, "main")
        with pytest.raises(StepladderError, match="of different memory in different threads"):
            emulation.run([X, Y])
