"""Measures gated layers with weights of 8 and 4 bits as one kernel of two products, and as two kernels.

    python benchmarks/stored_pairs.py --compile FOLDER
    python benchmarks/stored_pairs.py --bundles FOLDER --json docs/results/stored_pairs.json

--compile writes the bundles, which needs no GPU, and --bundles measures them, which needs no compiler. D = silu(A B) *
(A G) in f16, at the sizes of Llama-3-8B; B and G are unsigned integers with scales and zero points, of each column for
8 bits, of each 128 steps of k for 4. As `pair`, a kernel in front writes both in f16; as `two`, each matmul dequantizes
its own. `chosen` is what `stepladder compile` takes. Contestants run in turn, each as a CUDA graph; every number is the
median of the rounds. The numbers are compared with products in f32 first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import stepladder
from common import run
from stepladder.pipeline.definition import KnobValue
from torch_rounds import bundles_parser, graphs_in_turn, main_of_bundles

N, K = 14336, 4096
GROUPS = {8: K, 4: 128}  # steps of k with one scale and one zero point, by bits
CASES = tuple((bits, m) for bits in GROUPS for m in (16, 128, 512, 1024, 2048, 4096))
TOLERANCE = 5e-3  # norm of the error, of that of the result
WAYS = ("pair", "two")

Case = tuple[int, int]

_WEIGHTS = """
  %e{name} = tensor.empty() : {wide}
  %d{name} = linalg.generic {{indexing_maps = [#all, #group, #group, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%{name}, %s{name}, %z{name} : {stored}, {scales}, {scales}) outs(%e{name} : {wide}) {{
  ^bb0(%in: i{bits}, %scale: f16, %zero_point: f16, %out: f16):
    %i = arith.extui %in : i{bits} to i32
    %x = arith.uitofp %i : i32 to f16
    %d = arith.subf %x, %zero_point : f16
    %y = arith.mulf %d, %scale : f16
    linalg.yield %y : f16
  }} -> {wide}
  %c{name} = tensor.collapse_shape %d{name} [[0], [1, 2]] : {wide} into {matrix}"""
_PRODUCT = """
  %p{name} = linalg.matmul indexing_maps = [#a, #b, #c] ins(%A, %c{name} : {a}, {matrix}) outs(%zeros : {sums})
      -> {sums}"""
_LAYER = """
#all = affine_map<(n, g, k) -> (n, g, k)>
#group = affine_map<(n, g, k) -> (n, g)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
func.func @gated(%A: {a}, %B: {stored}, %sB: {scales}, %zB: {scales}, %G: {stored}, %sG: {scales}, %zG: {scales})
    -> {result} {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : {sums}
  %zeros = linalg.fill ins(%zero : f32) outs(%e : {sums}) -> {sums}{weights}{products}
  %o = tensor.empty() : {result}
  %r = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%pB, %pG : {sums}, {sums}) outs(%o : {result}) {{
  ^bb0(%x: f32, %g: f32, %out: f16):
    %n = arith.negf %x : f32
    %w = math.exp %n : f32
    %d = arith.addf %w, %one : f32
    %s = arith.divf %x, %d : f32
    %t = arith.mulf %s, %g : f32
    %y = arith.truncf %t : f32 to f16
    linalg.yield %y : f16
  }} -> {result}
  return %r : {result}
}}
"""


def payload(bits: int, m: int) -> str:
    """Returns a layer as a function on tensors.

    Args:
        bits: of a weight.
        m: tokens.
    """
    groups, size = K // GROUPS[bits], GROUPS[bits]
    types = {
        "a": f"tensor<{m}x{K}xf16>",
        "stored": f"tensor<{N}x{groups}x{size}xi{bits}>",
        "wide": f"tensor<{N}x{groups}x{size}xf16>",
        "scales": f"tensor<{N}x{groups}xf16>",
        "matrix": f"tensor<{N}x{K}xf16>",
        "sums": f"tensor<{m}x{N}xf32>",
        "result": f"tensor<{m}x{N}xf16>",
        "bits": bits,
    }
    weights, products = ("".join(part.format(name=name, **types) for name in "BG") for part in (_WEIGHTS, _PRODUCT))
    return _LAYER.format(weights=weights, products=products, **types)


def _path(folder: Path, case: Case, way: str) -> Path:
    return folder / f"{way}_{case[0]}_{case[1]}"


def _build(text: str, folder: Path, **settings: KnobValue) -> int:
    """Compiles a layer, writes the bundle, and returns how many of its kernels are matmuls."""
    from stepladder.pipeline.automatic import AUTO
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.functions.build import build_function
    from stepladder.pipeline.request import Request

    with mlir_context():
        build_function(text, "gated.mlir", Request(AUTO, {"target": "sm_90a", **settings}, tuned=True)).write(folder)
    launches = json.loads((folder / "manifest.json").read_text())["launches"]
    return sum(launch["kernel"] is None for launch in launches)


def compile_all(folder: Path) -> None:
    """Compiles all layers in both ways, and notes which of them is the default.

    Args:
        folder: that the bundles are written to.
    """
    chosen = {}
    for case in CASES:
        text = payload(*case)
        chosen[f"{case[0]}_{case[1]}"] = WAYS[_build(text, _path(folder, case, "default")) - 1]
        _build(text, _path(folder, case, "pair"), dequantizing=False)
        with mock.patch("stepladder.pipeline.functions.divided_function.is_slower", return_value=True):
            _build(text, _path(folder, case, "two"))
    (folder / "chosen.json").write_text(json.dumps(chosen))


def _weights(torch: Any, bits: int) -> tuple[list[Any], Any]:  # noqa: ANN401
    """Returns stored weights with scales and zero points, and the weights in f32."""
    groups, size = K // GROUPS[bits], GROUPS[bits]
    stored = torch.randint(0, 256, (N, groups, size * bits // 8), device="cuda", dtype=torch.uint8)
    scales = ((torch.rand(N, groups, device="cuda") + 0.5) * 2.0 ** -(bits + 5)).half()
    zeros = (torch.rand(N, groups, device="cuda") * 2 + 2 ** (bits - 1) - 1).half()
    numbers = stored if bits == 8 else torch.stack([stored & 15, stored >> 4], -1)
    dequantized = (numbers.reshape(N, groups, size).half() - zeros[:, :, None]) * scales[:, :, None]
    return [stored.view(torch.int8), scales, zeros], dequantized.reshape(N, K).float()


def measure(folder: Path, case: Case) -> dict[str, Any]:
    """Returns the times of a layer.

    Args:
        folder: of the bundles.
        case: bits and tokens.
    """
    import torch  # pyright: ignore[reportMissingImports]

    bits, m = case
    torch.manual_seed(0)
    x = torch.randn(m, K, device="cuda").half()
    (b, wide_b), (g, wide_g) = (_weights(torch, bits) for _ in range(2))
    expected = torch.nn.functional.silu(x.float() @ wide_b.T) * (x.float() @ wide_g.T)
    out = torch.empty(m, N, device="cuda").half()
    calls: dict[str, Callable[[], Any]] = {}
    errors: dict[str, float] = {}
    for way in WAYS:
        function: Any = stepladder.load(str(_path(folder, case, way)))
        calls[way] = lambda function=function: function(x, *b, *g, out=out)
        out.fill_(float("nan"))
        errors[way] = float((calls[way]().float() - expected).norm() / expected.norm())
    chosen = json.loads((folder / "chosen.json").read_text())[f"{bits}_{m}"]
    result: dict[str, Any] = {"bits": bits, "m": m, "n": N, "k": K, "chosen": chosen, "errors": errors}
    result["passed"] = all(error < TOLERANCE for error in errors.values())
    if not result["passed"]:
        return result
    result["us"] = graphs_in_turn(torch, calls)
    result["median"] = {name: statistics.median(times) for name, times in result["us"].items()}
    return result


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return bundles_parser(__doc__)


def main() -> int:
    """Compiles or measures all layers; returns the exit status."""
    return main_of_bundles(make_parser(), compile_all, CASES, measure, ("bits", "m", "chosen", "errors", "median"))


if __name__ == "__main__":
    run(main)
