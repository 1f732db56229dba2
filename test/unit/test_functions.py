"""Functions with several matmuls: modules as torch-mlir lowers them, compiled whole, on the emulator."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import stepladder
from combinations import sample
from stepladder.cli.main import main
from stepladder.emulator import function_steps
from stepladder.emulator.core.launched import BoundKernel
from stepladder.emulator.functions import EmulatedFunction
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.build import Build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions.build import FunctionBuild, build_function
from stepladder.pipeline.library import pipeline_file
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import read_any, read_bundle
from stepladder.runtime.errors import StepladderError
from stepladder.verify.check import check_exact
from stepladder.verify.function_check import check_function

INPUTS = Path(__file__).parents[1] / "inputs" / "functions"
MODULES = sorted(path.stem for path in INPUTS.glob("*.mlir"))
# Kernels of each, which show what fuses: matmuls, and others.
KERNELS = {
    "attention": (3, 2),  # the projections are one launch
    "cached_loop": (3, 2),  # the weights of a layer are no copy
    "chain": (2, 0),
    "constant_mlp": (2, 0),
    "decode_attention": (0, 3),
    "einsum_attention": (2, 1),
    "experts": (6, 0),
    "fused_projections": (1, 1),
    "gated_mlp": (2, 0),
    "masked_embedding": (1, 3),
    "masked_sdpa": (2, 3),
    "mixed_types": (1, 1),
    "low_rank_linear": (3, 0),
    "mlp4": (4, 0),
    "mlp4_bf16_3d": (4, 0),
    "norm_linear": (1, 1),
    "norm_mlp_f32": (2, 1),
    "odd_sizes": (2, 0),
    "projections": (0, 2),
    "quantized_mlp": (2, 4),
    "relu_mlp_f16": (2, 0),
    "residual_mlp": (2, 0),
    "rms_linear": (1, 1),
    "softmax_head": (2, 1),
    "top_experts": (3, 12),
    "cache_update": (2, 3),
    "sorted_scores": (1, 4),
    "pooled_convolution": (2, 6),
    "transposed_convolution": (1, 3),
    "softmax_of_slices": (1, 2),
}


pytestmark = pytest.mark.usefixtures("needs_ptxas")


def text_of(name: str) -> str:
    return (INPUTS / f"{name}.mlir").read_text()


def built(name: str, target: str = "sm_90a", **settings: int) -> Build | FunctionBuild:
    if "f32" in name:
        settings["allow_tf32"] = 1
    with mlir_context():
        return build_any(text_of(name), name, Request("auto", {**settings, "target": target}, tuned=True))


@pytest.mark.parametrize(
    "name", [*sample(list(KERNELS), 7), *sample([name for name in MODULES if name not in KERNELS], 13)]
)
def test_modules(name: str) -> None:
    made = built(name)
    if isinstance(made, FunctionBuild):
        manifest = made.bundle.manifest
        plain = sum(launch.kernel is not None for launch in manifest.launches)
        assert (len(manifest.launches) - plain, plain) == KERNELS[name]
        function = EmulatedFunction(made.bundle)
        assert [report.describe() for report in check_function(made.bundle, function, 0) if not report.passed] == []
        assert function.findings == []
        return
    assert name not in KERNELS
    kernel = stepladder.compile(
        text_of(name), device="emulator", target="sm_90a", **({"allow_tf32": 1} if "f32" in name else {})
    )
    assert isinstance(kernel, stepladder.Kernel)
    assert check_exact(kernel.manifest.problem, made.reference, _Called(kernel), 0).passed


def _contraction(generator: np.random.Generator) -> str:
    """Returns a contraction of tensors whose dimensions are in any order, with a rounded result."""
    loops = {kind: int(generator.integers(0 if kind == "b" else 1, 3)) for kind in "bmnk"}
    names = [f"{kind}{number}" for kind, count in loops.items() for number in range(count)]
    sizes = {name: int(generator.integers(1, 9)) for name in names}

    def operand(kinds: str) -> tuple[str, str]:
        order = [str(name) for name in generator.permutation([name for name in names if name[0] in kinds])]
        shape = "x".join(str(sizes[name]) for name in order)
        return f"affine_map<({', '.join(names)}) -> ({', '.join(order)})>", shape

    (a_map, a), (b_map, b), (c_map, c) = operand("bmk"), operand("bnk"), operand("bmn")
    return f"""func.func @contraction(%a: tensor<{a}xf16>, %b: tensor<{b}xf16>) -> tensor<{c}xf16> {{
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<{c}xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<{c}xf32>) -> tensor<{c}xf32>
  %sums = linalg.contract indexing_maps = [{a_map}, {b_map}, {c_map}]
    ins(%a, %b : tensor<{a}xf16>, tensor<{b}xf16>) outs(%zeros : tensor<{c}xf32>) -> tensor<{c}xf32>
  %rounded = arith.truncf %sums : tensor<{c}xf32> to tensor<{c}xf16>
  return %rounded : tensor<{c}xf16>
}}
"""


@pytest.mark.parametrize("seed", sample(range(40), 13))
def test_drawn_contractions(seed: int) -> None:
    text = _contraction(np.random.default_rng(seed))
    with mlir_context():
        made = build_any(text, f"contraction {seed}", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    function = EmulatedFunction(made.bundle)
    assert [report.describe() for report in check_function(made.bundle, function, seed) if not report.passed] == []
    assert function.findings == []


class _Called:
    """Runs a kernel that is called (`verify.check.Executor`)."""

    def __init__(self, kernel: stepladder.Kernel) -> None:
        self.kernel = kernel

    def load(self, a: np.ndarray, b: np.ndarray, *further: np.ndarray) -> None:
        self.operands = {"a": a, "b": b} | {f"d{number}": array for number, array in enumerate(further)}

    def launch(self, c: np.ndarray) -> np.ndarray:
        given = [self.operands[str(item.role)].reshape(item.shape) for item in self.kernel.signature.inputs]
        return self.kernel(*given).reshape(c.shape)


@pytest.mark.parametrize("name", sample([name for name in MODULES if name in KERNELS], 7))
def test_each_step_of_the_division(name: str) -> None:
    reports = []
    with mlir_context():
        request = Request(pipeline_file("functions"), {"in_place": True})
        function_steps.check_function_steps(text_of(name), name, request, reports.append)
    assert [report.step for report in reports if report.passed is not True] == []
    assert len(reports) == 16


def test_neighbours_are_computed_from_vectors(tmp_path: Path) -> None:
    text = """func.func @scaled(%x: tensor<3x32x4096xf16>, %b: tensor<3x4096xf16>, %r: tensor<32xf32>,
    %q: tensor<4096xi8>) -> tensor<3x32x4096xf16> {
  %0 = tensor.empty() : tensor<3x32x4096xf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, k)>,
      affine_map<(i, j, k) -> (j)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %b, %r, %q : tensor<3x32x4096xf16>, tensor<3x4096xf16>, tensor<32xf32>, tensor<4096xi8>)
      outs(%0 : tensor<3x32x4096xf16>) {
  ^bb0(%in: f16, %bias: f16, %scale: f32, %code: i8, %out: f16):
    %s = arith.addf %in, %bias : f16
    %e = arith.extf %s : f16 to f32
    %m = arith.mulf %e, %scale : f32
    %c = arith.sitofp %code : i8 to f32
    %k = linalg.index 2 : index
    %n = arith.index_cast %k : index to i32
    %i = arith.sitofp %n : i32 to f32
    %a = arith.addf %c, %i : f32
    %w = arith.addf %m, %a : f32
    %y = arith.truncf %w : f32 to f16
    linalg.yield %y : f16
  } -> tensor<3x32x4096xf16>
  return %1 : tensor<3x32x4096xf16>
}
"""
    with mlir_context():
        made = build_any(text, "scaled.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    function = EmulatedFunction(made.bundle)
    assert [report.describe() for report in check_function(made.bundle, function, 0) if not report.passed] == []
    assert function.findings == []
    made.write(tmp_path / "bundle")
    (ptx,) = (tmp_path / "bundle").rglob("kernel.ptx")
    assert "ld.global.v4.b32" in ptx.read_text()


def test_a_value_that_is_overwritten_too_early_is_found() -> None:
    bundle = built("chain").bundle
    (place,) = [place for place, _ in bundle.manifest.of_kind("workspace")]

    class Overwritten(EmulatedFunction):
        def _launch(self, bound: BoundKernel, roles: Sequence[str], arrays: Mapping[str, np.ndarray]) -> None:
            super()._launch(bound, roles, arrays)
            if bound is self._kernels[bundle.manifest.launches[0].folder][0][0]:
                arrays[roles[-1] if roles[-1] == "c" else "c"].reshape(-1)[-16:] = 0

    assert place in bundle.manifest.launches[0].operands.values()
    reports = check_function(bundle, Overwritten(bundle), 0)
    assert not reports[0].passed


def test_the_name_of_a_function_says_nothing_of_its_kernels() -> None:
    text = text_of("mul_before").replace("@mul_before", "@my_matmul_0")
    with mlir_context():
        made = build_function(text, "named", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert [(launch.stage, launch.kernel is None) for launch in made.bundle.manifest.launches] == [
        ("my_matmul_0_elementwise_0", False),
        ("my_matmul_0_matmul_0", True),
    ]


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "chain.bundle"
    assert main(["compile", str(INPUTS / "chain.mlir"), "--target", "sm_90a", "-o", str(folder)]) == 0
    assert "@chain: 2 matmuls and 0 other kernels, 1024 bytes of workspace, for sm_90a" in capsys.readouterr().out
    assert main(["run", str(folder), "--backend", "emulator", "--json", str(tmp_path / "numbers.json")]) == 0
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert numbers["passed"] and [check["check"] for check in numbers["checks"]] == ["random", "repeatable"]
    assert main(["emulate", str(folder), "--reverse-blocks"]) == 0
    assert "result: PASS" in capsys.readouterr().out
    assert read_bundle(folder / "kernels" / "00-chain_matmul_0").manifest.problem.m == 16
    assert main(["emulate", str(folder), "--trace", str(tmp_path / "trace.json")]) == 2


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda data: data["buffers"][-1].update(offset=128), r"buffers\[4\]\.offset' must be a multiple of 256"),
        (lambda data: data["launches"].reverse(), r"which no kernel before has written"),
        (lambda data: data["launches"][0]["operands"].update(a=9), r"operands\.a' is 9, and 'buffers' has 5"),
        (lambda data: data["launches"][0]["operands"].update(c=0), r"and the kernel takes 512 of bf16"),
        (lambda data: data["launches"][1]["operands"].pop("b"), r"operands' must be of the roles a, b, c, got a, c"),
        (lambda data: data["launches"].pop(), r"launches' must write result 0"),
        (lambda data: data.update(target="sm_90"), "'launches.0..folder' has a kernel for another target than sm_90"),
        (lambda data: data.update(workspace=10**30), r"workspace' must be at most \d+ bytes, got 10{30}$"),
    ],
)
def test_damaged_bundles(tmp_path_factory: pytest.TempPathFactory, edit: Callable[..., object], message: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged.bundle"
    if not folder.exists():
        built("chain").write(str(folder))
    original = (folder / "manifest.json").read_text()
    data = json.loads(original)
    edit(data)
    try:
        (folder / "manifest.json").write_text(json.dumps(data))
        with pytest.raises(StepladderError, match=message):
            read_any(folder)
    finally:
        (folder / "manifest.json").write_text(original)


HEAD = """func.func @f(%a: tensor<16x32xf16>, %b: tensor<32x16xf16>{more}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<16x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %x = linalg.matmul ins(%a, %b : tensor<16x32xf16>, tensor<32x16xf16>) outs(%zeros : tensor<16x16xf32>)
    -> tensor<16x16xf32>
  %y = linalg.matmul ins(%a, %b : tensor<16x32xf16>, tensor<32x16xf16>) outs(%x : tensor<16x16xf32>)
    -> tensor<16x16xf32>
"""
ONE = "tensor<16x16xf32>"


@pytest.mark.parametrize(
    ("text", "location", "message"),
    [
        (
            HEAD.format(more=", %n: memref<?xi32>", result=ONE) + f"  return %y : {ONE}\n}}\n",
            r":7:8$",
            r"\d linalg.matmul ops in the payload|a second contraction",
        ),
        (
            HEAD.format(more=", %n: i32", result=f"({ONE}, i32)") + f"  return %y, %n : {ONE}, i32\n}}\n",
            r":9:3$",
            r"the function returns a value of type i32: it must return tensors",
        ),
    ],
)
def test_refusals(text: str, location: str, message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError) as caught:
        build_any(text, "f.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert re.search(message, caught.value.message), caught.value.render()
    assert re.search(location, caught.value.location or ""), caught.value.render()
    assert "raised" not in caught.value.message


@pytest.mark.parametrize("knobs, message", [({"block_m": 48}, "'block_m'"), ({}, "multiples of 16 bytes")])
def test_what_the_pipeline_of_a_kernel_refuses_is_located_in_the_payload(knobs: dict[str, int], message: str) -> None:
    text = HEAD.format(more="", result=ONE) + f"  return %y : {ONE}\n}}\n"
    text = text.replace("x32x", "x60x").replace("<32x", "<60x")
    with mlir_context(), pytest.raises(StepladderError, match=message) as caught:
        build_any(text, "f.mlir", Request("wgmma_multistage", {"target": "sm_90a", **knobs}))
    assert caught.value.location == "f.mlir:5:8"
    assert any("the refused kernel is @f_matmul_0" in note for note in caught.value.notes)


def test_the_benchmark_runs_dry(tmp_path: Path) -> None:
    root = INPUTS.parents[2]
    if not (root / "benchmarks").is_dir():
        pytest.skip("not a checkout")
    out = tmp_path / "functions.json"
    command = [sys.executable, "benchmarks/functions.py", "--dry-run", "--kinds", "gated_mlp", "--tokens", "1"]
    done = subprocess.run([*command, "--json", str(out)], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (case,) = json.loads(out.read_text())["cases"]
    assert case["passed"] and case["matmuls"] == len(case["kernels"]) == 2


JAX = """module @jit_layer attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x32xf16>, %arg1: tensor<32x24xf16>, %arg2: tensor<24xf16>,
      %arg3: tensor<24x16xf16>) -> (tensor<16x16xf16> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT]
      : (tensor<16x32xf16>, tensor<32x24xf16>) -> tensor<16x24xf32>
    %1 = stablehlo.convert %0 : (tensor<16x24xf32>) -> tensor<16x24xf16>
    %2 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<24xf16>) -> tensor<16x24xf16>
    %3 = stablehlo.add %1, %2 : tensor<16x24xf16>
    %4 = call @relu(%3) : (tensor<16x24xf16>) -> tensor<16x24xf16>
    %5 = stablehlo.dot_general %4, %arg3, contracting_dims = [1] x [0]
      : (tensor<16x24xf16>, tensor<24x16xf16>) -> tensor<16x16xf32>
    %6 = stablehlo.convert %5 : (tensor<16x16xf32>) -> tensor<16x16xf16>
    return %6 : tensor<16x16xf16>
  }
  func.func private @relu(%arg0: tensor<16x24xf16>) -> tensor<16x24xf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f16>) -> tensor<16x24xf16>
    %1 = stablehlo.maximum %arg0, %0 : tensor<16x24xf16>
    return %1 : tensor<16x24xf16>
  }
}
"""


def test_stablehlo_as_jax_writes_it() -> None:
    function = stepladder.compile(JAX, device="emulator", target="sm_90a")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["main_matmul_0", "main_matmul_1"]
    generator = np.random.default_rng(0)
    arrays = [(generator.standard_normal(item.shape) / 4).astype(np.float16) for item in function.inputs]
    x, w, bias, v = (array.astype(np.float64) for array in arrays)
    assert np.abs(function(*arrays) - np.maximum(x @ w + bias, 0) @ v).max() < 2e-2
    broken = JAX.replace("dot_general %4", "dot_generous %4")
    with pytest.raises(StepladderError, match=r"custom op 'stablehlo\.dot_generous' is unknown"):
        stepladder.compile(broken, device="emulator", target="sm_90a")
    unsigned = stepladder.compile(
        JAX.replace("f16>", "ui8>").replace("0.000000e+00", "0"), device="emulator", target="sm_90a"
    )
    arrays = [generator.integers(-128, 128, item.shape, dtype=np.int8) for item in unsigned.inputs]
    x, w, bias, v = (array.view(np.uint8).astype(np.int64) for array in arrays)
    assert np.array_equal(unsigned(*arrays).view(np.uint8), (x @ w + bias) % 256 @ v % 256)
    with pytest.raises(StepladderError, match=r"'chlo\.lgamma' is an op of CHLO") as caught:
        stepladder.compile(JAX.replace("stablehlo.maximum", "chlo.lgamma"), device="emulator", target="sm_90a")
    assert (caught.value.location or "").endswith(":18")


def test_concatenations_of_stablehlo() -> None:
    """A rotary embedding as JAX writes it, and ops of CHLO that others compute."""
    text = """module @jit_rope {
  func.func public @main(%arg0: tensor<8x16xf16>, %arg1: tensor<16x16xf16>)
      -> (tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x16xf16>, tensor<16x16xf16>) -> tensor<8x16xf16>
    %1 = stablehlo.slice %0 [0:8, 0:8] : (tensor<8x16xf16>) -> tensor<8x8xf16>
    %2 = stablehlo.slice %0 [0:8, 8:16] : (tensor<8x16xf16>) -> tensor<8x8xf16>
    %3 = stablehlo.negate %2 : tensor<8x8xf16>
    %4 = stablehlo.concatenate %3, %1, dim = 1 : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x16xf16>
    %5 = chlo.square %0 : tensor<8x16xf16> -> tensor<8x16xf16>
    %6 = chlo.erf %5 : tensor<8x16xf16> -> tensor<8x16xf16>
    %7 = chlo.erfc %5 : tensor<8x16xf16> -> tensor<8x16xf16>
    return %4, %6, %7 : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>
  }
}
"""
    function = stepladder.compile(text, device="emulator", target="sm_80")
    x, w = (np.random.default_rng(0).integers(-2, 3, shape).astype(np.float16) for shape in ((8, 16), (16, 16)))
    product = (x @ w / 16).astype(np.float16)
    rotated, errors, complements = function(x, (w / 16).astype(np.float16))
    assert np.array_equal(rotated, np.concatenate([-product[:, 8:], product[:, :8]], 1))
    wanted = [math.erf(float(value)) for value in np.square(product.astype(np.float64)).ravel()]
    assert np.abs(errors.ravel() - wanted).max() < 1e-3
    assert np.abs(complements.ravel() + wanted - 1).max() < 1e-3
