"""What the host calls of MLIR's runtime library for CUDA once `nvgpu` is lowered there too."""

import importlib

import ml_dtypes
import numpy as np
import pytest

from conftest import make_descriptor
from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.emulator.core.launched import Launch
from stepladder.emulator.core.module_kernel import ModuleKernel
from stepladder.emulator.ptx.arguments import from_arguments, from_texts
from stepladder.mlir import bindings
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.bundle import Argument
from stepladder.runtime.errors import StepladderError

GROUP = "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>"
TYPES = {"f16": np.float16, "f32": np.float32, "bf16": ml_dtypes.bfloat16, "i32": np.int32}


def load_of_box(element: str, columns: int, swizzle: str = "none", *, fill: str = "zero") -> str:
    """Returns a module with a kernel that loads the box at (8, 0) of a matrix by TMA; thread 0 begins the load."""
    box, given = f"memref<8x{columns}x{element}, 3>", f"memref<32x{columns}x{element}>"
    map_ = (
        f"!nvgpu.tensormap.descriptor<tensor = {box}, swizzle = {swizzle}, l2promo = none, oob = {fill}, "
        "interleave = none>"
    )
    return f"""
module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    memref.global "private" @s : {box} {{alignment = 1024 : i64}}
    gpu.func @k(%D: {map_}, %Y: memref<8x{columns}x{element}>) kernel {{
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %columns = arith.constant {columns} : index
      %first = arith.cmpi eq, %t, %c0 : index
      %S = memref.get_global @s : {box}
      %bar = nvgpu.mbarrier.create -> {GROUP}
      nvgpu.mbarrier.init %bar[%c0], %c1, predicate = %first : {GROUP}
      nvvm.fence.mbarrier.init
      gpu.barrier
      %bytes = arith.constant {8 * columns * np.dtype(TYPES[element]).itemsize} : index
      nvgpu.mbarrier.arrive.expect_tx %bar[%c0], %bytes, predicate = %first : {GROUP}
      nvgpu.tma.async.load %D[%c0, %c8], %bar[%c0] to %S, predicate = %first : {map_}, {GROUP} -> {box}
      %phase = arith.constant false
      %ticks = arith.constant 10000000 : index
      nvgpu.mbarrier.try_wait.parity %bar[%c0], %phase, %ticks : {GROUP}
      scf.for %j = %c0 to %columns step %c1 {{
        %v = memref.load %S[%t, %j] : {box}
        memref.store %v, %Y[%t, %j] : memref<8x{columns}x{element}>
      }}
      gpu.return
    }}
  }}
  func.func @main(%X: {given}, %Y: memref<8x{columns}x{element}>) {{
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %columns = arith.constant {columns} : index
    %X1 = memref.cast %X : {given} to memref<*x{element}>
    %D = nvgpu.tma.create.descriptor %X1 box[%c8, %columns] : memref<*x{element}> -> {map_}
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1)
        args(%D : {map_}, %Y : memref<8x{columns}x{element}>)
    return
  }}
}}"""


def run(text: str, x: np.ndarray, y: np.ndarray, *, lowered: bool) -> Outcome:
    passes = importlib.import_module(f"{bindings.ir.__name__.rpartition('.')[0]}.passmanager").PassManager
    with mlir_context():
        module = parse_payload(text, "program.mlir")
        if lowered:
            passes.parse("builtin.module(convert-nvgpu-to-nvvm)").run(module.operation)
            assert "@mgpuTensorMapEncodeTiledMemref(" in str(module)
        return Emulation(module, "main").run([x, y])


@pytest.mark.parametrize(
    ("element", "columns", "swizzle"),
    [
        ("f16", 8, "none"),
        ("f16", 64, "swizzle_128b"),
        ("bf16", 32, "swizzle_64b"),
        ("f32", 8, "swizzle_32b"),
        ("i32", 4, "none"),
    ],
)
def test_descriptors_that_the_library_makes(element: str, columns: int, swizzle: str) -> None:
    text = load_of_box(element, columns, swizzle)
    x = (np.arange(32 * columns) % 99).reshape(32, columns).astype(TYPES[element])
    outcomes = [run(text, x, np.zeros_like(x[:8]), lowered=lowered) for lowered in (False, True)]
    assert not any(outcome.findings for outcome in outcomes)
    results = [np.asarray(outcome.arguments[1]) for outcome in outcomes]
    assert results[0].tobytes() == results[1].tobytes()
    assert np.array_equal(np.sort(results[1].astype(np.float64), None), np.sort(x[8:16].astype(np.float64), None))
    if swizzle == "none":
        assert np.array_equal(results[1], x[8:16])


@pytest.mark.parametrize("lowered", [False, True])
@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_elements_outside_of_the_tensor_that_are_nan(element: str, lowered: bool) -> None:
    text = load_of_box(element, 8, fill="nan").replace("memref<32x8x", "memref<11x8x")
    x = np.ones((11, 8), TYPES[element])
    outcome = run(text, x, np.zeros((8, 8), TYPES[element]), lowered=lowered)
    assert not outcome.findings
    result = np.asarray(outcome.arguments[1]).astype(np.float32)
    assert (result[:3] == 1).all() and np.isnan(result[3:]).all()


@pytest.mark.parametrize("lowered", [False, True])
def test_integers_outside_of_the_tensor_that_are_nan(lowered: bool) -> None:
    x = np.zeros((32, 4), np.int32)
    outcome = run(load_of_box("i32", 4, fill="nan"), x, x[:8], lowered=lowered)
    assert [finding.kind for finding in outcome.findings] == ["descriptor"]
    assert "of i32 are NaN" in outcome.findings[0].message


def test_parameters_that_the_emulator_does_not_know() -> None:
    text = """
      func.func private @mgpuTensorMapEncodeTiledMemref(i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr) -> !llvm.ptr
      func.func @main() {{
        %rank = llvm.mlir.constant(2 : i64) : i64
        %null = llvm.mlir.zero : !llvm.ptr
        %element = llvm.mlir.constant({0} : i64) : i64
        %interleave = llvm.mlir.constant({1} : i64) : i64
        %swizzle = llvm.mlir.constant({2} : i64) : i64
        %fill = llvm.mlir.constant({3} : i64) : i64
        %map = func.call @mgpuTensorMapEncodeTiledMemref(%rank, %null, %element, %interleave, %swizzle, %rank, %fill,
            %null) : (i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr) -> !llvm.ptr
        return
      }}"""
    for parameters, message in {
        (6, 1, 0, 0): "with the interleaved layout 1 and the fill 0: 0, and 0 or 1 are known",
        (6, 0, 0, 2): "with the interleaved layout 0 and the fill 2: 0, and 0 or 1 are known",
        (13, 0, 0, 0): "with the data type 13 and the swizzle 0: 0 to 12 and 0 to 3 are known",
        (6, 0, 4, 0): "with the data type 6 and the swizzle 4: 0 to 12 and 0 to 3 are known",
    }.items():
        with mlir_context(), pytest.raises(StepladderError, match=message):
            Emulation(parse_payload(text.format(*parameters), "program.mlir"), "main").run([])


@pytest.mark.parametrize(("fill", "is_nan"), [("zero", False), ("nan", True)])
def test_a_kernel_alone_fills_what_the_type_of_its_descriptor_says(fill: str, is_nan: bool) -> None:
    text = load_of_box("f32", 8, fill=fill)
    with mlir_context():
        kernel = ModuleKernel(parse_payload(text, "program.mlir"), "k", "program.mlir")
        bound = kernel.bound(from_texts(["11x8xf32=1", "8x8xf32=out"]), Launch((1, 1, 1), (8, 1, 1)))
        outcome = bound.run(bound.random_inputs(0))
    assert np.isnan(np.asarray(outcome.arguments[1])[3:]).all() == is_nan


def test_descriptors_of_a_bundle() -> None:
    arguments = [Argument("A", "a", "f16", (64, 64), "read", 0)]
    for fill in ("zero", "nan"):
        (argument,) = from_arguments(arguments, [make_descriptor("a", (64, 64), oob_fill=fill)])
        assert argument.fills_nan == (fill == "nan")
    with pytest.raises(StepladderError, match="the TMA descriptor of A has interleave 16b: expected none"):
        from_arguments(arguments, [make_descriptor("a", (64, 64), interleave="16b")])
