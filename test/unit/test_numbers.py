"""Numbers that are arguments of a payload's function: parameters of the kernel, by value."""

import ctypes
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stepladder
from bundles import change, edit_manifest, refusal
from combinations import sample
from conftest import assert_right_at_some_steps
from fake_cuda import FakeGpu
from ptx_kernels import executor
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.verify.check import check_matmul

GEMM = Path(__file__).resolve().parents[1] / "inputs" / "payloads" / "gemm.mlir"
WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
TILES = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1}
SETTINGS = [
    ("wgmma", TILES),
    ("wgmma", {**TILES, "epilogue": "registers"}),
    ("mma_sync", WARPS),
    ("wgmma", {**TILES, "epilogue": "registers", "split_k": 2, "persistent_blocks": 0}),
    ("wmma", WARPS),
    ("wgmma_multistage", TILES),
]


@pytest.fixture(scope="module")
def gemm(needs_ptxas: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of C = alpha AB + beta C, with alpha and beta as numbers."""
    path = tmp_path_factory.mktemp("numbers") / "gemm.bundle"
    with mlir_context():
        build(GEMM.read_text(), "gemm.mlir", Request("wgmma", TILES)).write(path)
    return path


@pytest.mark.parametrize("pipeline, knobs", sample(SETTINGS, 2))
def test_machine_code_takes_them(needs_ptxas: None, pipeline: str, knobs: dict[str, bool | int | str]) -> None:
    with mlir_context():
        made = build(GEMM.read_text(), "gemm.mlir", Request(pipeline, knobs))
        runs = executor(made.code.ptx, made.manifest)
        for report in check_matmul(made.manifest.problem, made.reference, runs, 0, repeats=False):
            assert report.passed, report.describe()
        assert not runs.findings, runs.findings[0].render()


PAIR = """func.func @f(%A: tensor<32x32xf16>, %B: tensor<32x32xf16>, %D: tensor<32x32xf16>, %x: f32)
    -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %s = linalg.matmul ins(%A, %B : tensor<32x32xf16>, tensor<32x32xf16>) outs(%z : tensor<32x32xf32>)
      -> tensor<32x32xf32>
  %t = linalg.matmul ins(%A, %D : tensor<32x32xf16>, tensor<32x32xf16>) outs(%z : tensor<32x32xf32>)
      -> tensor<32x32xf32>
  %xs = linalg.fill ins(%x : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %m = linalg.mul ins(%s, %xs : tensor<32x32xf32>, tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %r = linalg.sub ins(%m, %t : tensor<32x32xf32>, tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %r : tensor<32x32xf32>
}"""
INTEGERS = """func.func @f(%shift: i32, %A: tensor<64x64xi8>, %B: tensor<64x64xi8>, %scale: f16, %zero_point: i8)
    -> (tensor<64x64xf32>, tensor<64xf32>) {
  %zero = arith.constant 0 : i32
  %none = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xi32>
  %h = tensor.empty() : tensor<64x64xf32>
  %v = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%zero : i32) outs(%e : tensor<64x64xi32>) -> tensor<64x64xi32>
  %nv = linalg.fill ins(%none : f32) outs(%v : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.matmul ins(%A, %B : tensor<64x64xi8>, tensor<64x64xi8>) outs(%z : tensor<64x64xi32>) -> tensor<64x64xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%s, %shift : tensor<64x64xi32>, i32) outs(%h : tensor<64x64xf32>) {
  ^bb0(%x: i32, %y: i32, %o: f32):
    %wide = arith.extsi %zero_point : i8 to i32
    %t = arith.addi %x, %y : i32
    %u = arith.subi %t, %wide : i32
    %g = arith.sitofp %u : i32 to f32
    %f = arith.extf %scale : f16 to f32
    %w = arith.mulf %g, %f : f32
    linalg.yield %w : f32
  } -> tensor<64x64xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%s : tensor<64x64xi32>) outs(%nv : tensor<64xf32>) {
  ^bb0(%x: i32, %so_far: f32):
    %g = arith.sitofp %x : i32 to f32
    %f = arith.extf %scale : f16 to f32
    %w = arith.mulf %g, %f : f32
    %sum = arith.addf %so_far, %w : f32
    linalg.yield %sum : f32
  } -> tensor<64xf32>
  return %r, %rows : tensor<64x64xf32>, tensor<64xf32>
}"""


@pytest.mark.parametrize(
    "text, pipeline, knobs",
    [
        pytest.param(PAIR, "wgmma", TILES, id="pair of products"),
        pytest.param(INTEGERS, "mma_sync", {**WARPS, "block_k": 64}, id="integers, with a reduction"),
    ],
)
def test_right_at_some_steps(text: str, pipeline: str, knobs: dict[str, bool | int | str]) -> None:
    assert_right_at_some_steps(text, pipeline, knobs)


def test_a_call_passes_numbers() -> None:
    kernel = stepladder.compile(GEMM, target="sm_80", device="emulator")
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(shape).astype(np.float16) for shape in ((100, 72), (72, 80)))
    c = generator.standard_normal((100, 80)).astype(np.float32)
    for alpha, beta in ((2, -0.5), (np.float32(0.25), np.ones(()))):
        held = c.copy()
        assert kernel(alpha, a, b, beta, out=held) is held
        wanted = float(alpha) * (a.astype(np.float64) @ b.astype(np.float64)) + float(beta) * c
        assert np.abs(held - wanted).max() < 1e-4
    for wrong, message in (
        ("2", "is a str; accepted: a number of f32"),
        (a, "is a ndarray; accepted: a number of f32"),
        (1e39, "is 1e[+]39, which is infinite in f32"),
        (-(10**5000), "is an integer of 16610 bits, which is infinite in f32"),
    ):
        with pytest.raises(stepladder.ArgumentError, match=f"'argument 0' {message}"):
            kernel(wrong, a, b, 1, out=c)
    with pytest.raises(stepladder.ArgumentError, match="3 arguments were passed, and the kernel takes 4"):
        kernel(1, a, b, out=c)


SCALED_LAYERS = """
func.func @f(%alpha: f32, %x: tensor<16x32xf16>, %w: tensor<32x32xf16>, %shift: i64, %keep: i1) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %h = tensor.empty() : tensor<16x32xf16>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %p = linalg.matmul ins(%x, %w : tensor<16x32xf16>, tensor<32x32xf16>) outs(%z : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  %s = linalg.map ins(%p : tensor<16x32xf32>) outs(%h : tensor<16x32xf16>) (%a: f32, %o: f16) {
    %m = arith.mulf %a, %alpha : f32
    %c = arith.truncf %m : f32 to f16
    linalg.yield %c : f16
  }
  %q = linalg.matmul ins(%s, %w : tensor<16x32xf16>, tensor<32x32xf16>) outs(%z : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  %r = linalg.map ins(%q : tensor<16x32xf32>) outs(%e : tensor<16x32xf32>) (%a: f32, %o: f32) {
    %n = arith.sitofp %shift : i64 to f32
    %b = arith.addf %a, %n : f32
    %c = arith.select %keep, %b, %zero : f32
    linalg.yield %c : f32
  }
  return %r : tensor<16x32xf32>
}"""


def test_a_call_of_several_kernels_passes_numbers() -> None:
    function = stepladder.compile(SCALED_LAYERS, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    x, w = np.ones((16, 32), np.float16), np.eye(32, dtype=np.float16)
    for alpha, shift, keep in ((0.5, 3, True), (np.float32(0.25), np.int64(-2), np.bool_(True)), (2, np.array(4), 0)):
        got = function(alpha, x, w, shift, keep)
        assert np.all(got == (float(alpha) + int(shift)) * bool(keep)) and isinstance(got, np.ndarray)
    for wrong, message in (
        (("2", x, w, 3, True), "'argument 0' is a str; accepted: a number of f32"),
        ((1e39, x, w, 3, True), "'argument 0' is 1e[+]39, which is infinite in f32"),
        ((1, x, w, 2**63, True), "'argument 3' is 9223372036854775808; accepted: integers of i64"),
        ((1, x, w, 10**5000, True), "'argument 3' is an integer of 16610 bits; accepted: integers of i64"),
        ((1, x, w, 3, 2), "'argument 4' is 2; accepted: integers of i1"),
        ((1, 1, w, 3, True), "'argument 1' is a int, which is not an array"),
    ):
        with pytest.raises(stepladder.ArgumentError, match=message):
            function(*wrong)


def test_a_launch_reads_them_from_the_host(gemm: Path) -> None:
    """One launcher passes what was loaded last; a number takes no memory of the device."""
    bundle = read_bundle(gemm)
    problem = bundle.manifest.problem
    gpu = FakeGpu()
    device = Device(0, gpu.cuda)
    buffers = MatmulBuffers(device, problem)
    runs = DeviceExecutor(buffers, buffers.launcher(device.load(bundle), bundle))
    a, b, c = (np.zeros(problem.operand(role).shape, f"f{2 + 2 * (role == 'c')}") for role in "abc")
    place = [argument.role for argument in bundle.manifest.arguments].index("d1")
    for beta in (0.5, -3.0):
        runs.load(a, b, np.full((), 2, np.float32), np.full((), beta, np.float32))
        runs.launch(c)
        *_, (values, types), _ = gpu.called("cuLaunchKernelEx")[-1]
        assert types[place] is None
        assert ctypes.c_float.from_address(values[place].getPtr()).value == beta
    assert len(gpu.called("allocate")) == 3


@pytest.mark.parametrize(
    "damage, message",
    [
        (change("schema_version", 1), "field 'arguments[3].by_value' requires schema_version 4"),
        (change("arguments.3.by_value", False), "'arguments[3].by_value' must be true, as 'problem' has it"),
        (change("problem.epilogue_operands.0.shape", [1]), "epilogue_operands[0].shape' must be 0 positive integers"),
    ],
)
def test_a_damaged_manifest(gemm: Path, tmp_path: Path, damage: Callable[..., None], message: str) -> None:
    assert [item.by_value for item in read_bundle(gemm).manifest.arguments if item.role[0] == "d"] == [True, True]
    path = tmp_path / "gemm.bundle"
    shutil.copytree(gemm, path)
    edit_manifest(path, damage)
    assert message in refusal(path)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("%beta: f32", "%beta: f64", "has a scalar argument of type f64"),
        ("linalg.fill ins(%zero", "linalg.fill ins(%beta", "starts the accumulator from something other than"),
    ],
)
def test_refused(old: str, new: str, message: str) -> None:
    text = GEMM.read_text().replace(old, new)
    if "f64" in new:
        text = text.replace("%by = arith.mulf %beta", "%t = arith.truncf %beta : f64 to f32\n%by = arith.mulf %t")
    with pytest.raises(StepladderError, match=message), mlir_context():
        build(text, "gemm.mlir", Request("mma_sync", WARPS))
