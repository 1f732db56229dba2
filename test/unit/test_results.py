"""Several results of one product: stored by one kernel, on every pipeline, and handled by all that runs kernels.

STEPLADDER_TEST_PROFILE=random draws ten times as many.
"""

import itertools
import random
from pathlib import Path

import numpy as np
import pytest

import stepladder
from combinations import sample
from emulator_ops import FORMATS
from refused import refusal
from results_payloads import results_payload
from stepladder.cli.main import main
from stepladder.payload.matmul import find_matmul
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from test_epilogues import PIPELINES, SIZES, SPLIT, TILES, check

WHERE = {
    **PIPELINES,
    "wgmma, split-K": ("wgmma", SPLIT),
    "ping-pong": ("wgmma", {**TILES, "schedule": "pingpong"}),
    "exchanged": ("wgmma", {**TILES, "swap_operands": True}),
}


@pytest.mark.parametrize("where, stored", sample(list(itertools.product(WHERE, range(4))), 5))
def test_right_on_every_pipeline(where: str, stored: int) -> None:
    pipeline, knobs = WHERE[where]
    drawn = random.Random(stored)
    types = [drawn.choice(["f32", "f16", "bf16"]) for _ in range(2 + stored % 2)]
    size = SIZES[pipeline] if "split" not in where else (72, 40, 80)
    check(results_payload(*size, types, batch=3 if stored == 3 else None), pipeline, knobs, levels="last")


@pytest.mark.usefixtures("needs_ptxas")
def test_two_results_of_a_large_product_do_not_spill() -> None:
    """With swapped operands, the tile is as wide as boxes of both results; registers that store them would spill."""
    with mlir_context():
        built = build(
            results_payload(8192, 8192, 1024, ["f16", "f16"]),
            "two.mlir",
            Request("wgmma", {"target": "sm_90a"}, tuned=True),
        )
    assert built.run.knobs["epilogue"] == "tma" and not built.code.is_slow


IN_PLACE = """#id = affine_map<(i, j) -> (i, j)>
func.func @matmul(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %D: memref<64x64xf16>, %C: memref<64x64xf32>) {
  linalg.matmul ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%C : memref<64x64xf32>) outs(%D : memref<64x64xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = math.tanh %x : f32
    %v = arith.truncf %t : f32 to f16
    linalg.yield %v : f16
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%C : memref<64x64xf32>) outs(%C : memref<64x64xf32>) {
  ^bb0(%x: f32, %y: f32):
    %v = arith.mulf %x, %x : f32
    linalg.yield %v : f32
  }
  return
}
"""


@pytest.mark.parametrize("where", PIPELINES)
def test_c_that_is_read_beside_a_result(where: str) -> None:
    check(IN_PLACE, *PIPELINES[where], levels="last")
    with mlir_context():
        problem = find_matmul(parse_payload(IN_PLACE, "payload.mlir")).problem
    assert problem.accumulate and problem.describe().endswith("also stores R0 (64x64xf16)")


@pytest.mark.usefixtures("needs_ptxas")
def test_the_kernel_is_called_for_all_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.mlir"
    file.write_text(results_payload(64, 32, 32, ["f32", "f16"]))
    kernel = stepladder.compile(file, device="emulator", pipeline="mma_sync", target="sm_90a")
    draw = np.random.default_rng(0)
    a, b = (draw.standard_normal(shape).astype(np.float16) for shape in ((64, 32), (32, 32)))
    bias = draw.standard_normal(32).astype(np.float32)
    sums, relu = kernel(a, b, bias)
    wanted = a.astype(np.float64) @ b.astype(np.float64) + bias
    assert np.abs(sums - wanted).max() < 1e-4 and np.abs(relu - np.maximum(wanted, 0)).max() < 1e-2
    assert (sums.dtype, relu.dtype) == (np.float32, np.float16)
    held = np.zeros_like(sums), np.zeros_like(relu)
    assert kernel(a, b, bias, out=held)[1] is held[1] and (held[1] == relu).all()
    with pytest.raises(stepladder.ArgumentError, match="a sequence of 2 arrays"):
        kernel(a, b, bias, out=sums)
    bundle = str(tmp_path / "two.bundle")
    kernel.save(bundle)
    assert [item.role for item in kernel.manifest.arguments if item.access == "write"] == ["c", "r0"]
    assert main(["run", bundle, "--backend", "emulator"]) == 0
    assert main(["emulate", f"{bundle}/kernel.ptx"]) == 0
    assert "PASS" in capsys.readouterr().out


REFUSED = {
    "the same twice": (results_payload(64, 64, 64, ["f32", "f32"], same=True), "a value is stored or returned twice"),
    "five": (results_payload(64, 64, 64, ["f32"] * 5), "5 results of one product are stored; accepted: at most 4"),
    "read too": (
        IN_PLACE.replace(
            "%v = arith.truncf %t : f32 to f16", "%w = arith.truncf %t : f32 to f16\n    %v = arith.addf %w, %y : f16"
        ),
        "computes a second result, argument 2, that is also read",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_one_message(name: str) -> None:
    refusal(*REFUSED[name])


STORED = """func.func @f(%x: tensor<24x32xf16>, %t: tensor<40x32xf16>, %v: tensor<40x16xf16>)
    -> (tensor<24x16xf32>, tensor<24x40xf16>, tensor<24x40xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24x40xf32>
  %h = tensor.empty() : tensor<24x40xf16>
  %f = tensor.empty() : tensor<24x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<24x40xf32>) -> tensor<24x40xf32>
  %y = linalg.fill ins(%zero : f32) outs(%f : tensor<24x16xf32>) -> tensor<24x16xf32>
  %d = tensor.empty() : tensor<32x40xf16>
  %w = linalg.transpose ins(%t : tensor<40x32xf16>) outs(%d : tensor<32x40xf16>) permutation = [1, 0]
  %p = linalg.matmul ins(%x, %w : tensor<24x32xf16>, tensor<32x40xf16>) outs(%z : tensor<24x40xf32>)
    -> tensor<24x40xf32>
  %s = linalg.map { arith.truncf } ins(%p : tensor<24x40xf32>) outs(%h : tensor<24x40xf16>)
  %q = linalg.matmul ins(%s, %v : tensor<24x40xf16>, tensor<40x16xf16>) outs(%y : tensor<24x16xf32>)
    -> tensor<24x16xf32>
  return %q, %s, %p : tensor<24x16xf32>, tensor<24x40xf16>, tensor<24x40xf32>
}
"""


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize(("element", "target"), [("f16", "sm_75"), ("f16", "sm_90a"), ("bf16", "sm_80")])
def test_a_kernel_of_a_function_stores_a_sum_and_its_rounding(element: str, target: str) -> None:
    """Also sums in bf16 and their magnitudes: kernels add in f32."""
    text = STORED
    if element == "bf16":
        text = text.replace("truncf", "absf").replace("arith.absf", "math.absf")
        text = text.replace("f16", "bf16").replace("f32", "bf16")
    function = stepladder.compile(text, target=target, device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["f_matmul_0", "f_matmul_1"]
    rng = np.random.default_rng(0)
    x, w, v = (rng.integers(-2, 3, shape).astype(FORMATS[element]) for shape in ((24, 32), (32, 40), (40, 16)))
    sums = x.astype(np.float32) @ w.astype(np.float32)
    stored = np.abs(sums) if element == "bf16" else sums
    wanted = stored @ v.astype(np.float32)
    got = [item.astype(np.float32) for item in function(x, np.ascontiguousarray(w.T), v)]
    np.testing.assert_allclose(got[0], wanted, rtol=2.0**-8 if element == "bf16" else 0)
    np.testing.assert_array_equal(got[1], stored)
    np.testing.assert_array_equal(got[2], sums)
