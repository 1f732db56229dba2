"""Measures chains of reductions along rows as one kernel, beside a kernel for each op and PyTorch in eager mode.

    python benchmarks/rows.py --compile FOLDER
    python benchmarks/rows.py --bundles FOLDER --json docs/results/rows.json

--compile writes the bundles, which needs no GPU, and --bundles measures them, which needs no compiler. An RMS norm of
bf16 with weights, computed in f32, of 8 and 2048 rows of 4096, and a softmax of 8192 rows of 2048 scores, each in CUDA
graphs; contestants run in turn, and every number is the median of the rounds. The numbers are compared with PyTorch's
in f64 first, by a tolerance that the types and sizes give.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import stepladder
from common import run
from torch_rounds import bundles_parser, compile_to, main_of_bundles, ways_beside

CASES = (("rms_norm", 8, 4096), ("rms_norm", 2048, 4096), ("softmax", 8192, 2048))
WAYS = {"one kernel": True, "a kernel each": False}

Case = tuple[str, int, int]

_NORM = """
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @rms_norm(%x: tensor<{m}x{n}xbf16>, %w: tensor<{n}xbf16>) -> tensor<{m}x{n}xbf16> {{
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<{m}xf32>
  %1 = tensor.empty() : tensor<{m}x{n}xbf16>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<{m}xf32>) -> tensor<{m}xf32>
  %sum = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<{m}x{n}xbf16>) outs(%zeros : tensor<{m}xf32>) {{
  ^bb0(%in: bf16, %out: f32):
    %wide = arith.extf %in : bf16 to f32
    %square = arith.mulf %wide, %wide : f32
    %v = arith.addf %square, %out : f32
    linalg.yield %v : f32
  }} -> tensor<{m}xf32>
  %y = linalg.generic {{indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %sum, %w : tensor<{m}x{n}xbf16>, tensor<{m}xf32>, tensor<{n}xbf16>) outs(%1 : tensor<{m}x{n}xbf16>) {{
  ^bb0(%in: bf16, %s: f32, %weight: bf16, %out: bf16):
    %count = arith.constant {n}.0 : f32
    %small = arith.constant 1.0e-05 : f32
    %mean = arith.divf %s, %count : f32
    %above = arith.addf %mean, %small : f32
    %scale = math.rsqrt %above : f32
    %wide = arith.extf %in : bf16 to f32
    %scaled = arith.mulf %wide, %scale : f32
    %factor = arith.extf %weight : bf16 to f32
    %product = arith.mulf %scaled, %factor : f32
    %v = arith.truncf %product : f32 to bf16
    linalg.yield %v : bf16
  }} -> tensor<{m}x{n}xbf16>
  return %y : tensor<{m}x{n}xbf16>
}}
"""
_SOFTMAX = """
#all = affine_map<(i, j) -> (i, j)>
func.func @softmax(%x: tensor<{m}x{n}xbf16>) -> tensor<{m}x{n}xbf16> {{
  %0 = tensor.empty() : tensor<{m}x{n}xf32>
  %1 = tensor.empty() : tensor<{m}x{n}xbf16>
  %wide = arith.extf %x : tensor<{m}x{n}xbf16> to tensor<{m}x{n}xf32>
  %p = linalg.softmax dimension(1) ins(%wide : tensor<{m}x{n}xf32>) outs(%0 : tensor<{m}x{n}xf32>)
    -> tensor<{m}x{n}xf32>
  %y = arith.truncf %p : tensor<{m}x{n}xf32> to tensor<{m}x{n}xbf16>
  return %y : tensor<{m}x{n}xbf16>
}}
"""
_TEXTS = {"rms_norm": _NORM, "softmax": _SOFTMAX}


def compile_all(folder: Path) -> None:
    """Compiles each case both ways.

    Args:
        folder: that the bundles are written to.
    """
    for case in CASES:
        kind, m, n = case
        for way, rows in WAYS.items():
            compile_to(_path(folder, case, way), _TEXTS[kind].format(m=m, n=n), rows=rows)


def _path(folder: Path, case: Case, way: str) -> Path:
    kind, m, n = case
    return folder / f"{kind}_{m}x{n}_{way.replace(' ', '_')}.bundle"


def measure(folder: Path, case: Case) -> dict[str, Any]:
    """Returns the times of a case.

    Args:
        folder: of the bundles.
        case: which.
    """
    import torch  # pyright: ignore[reportMissingImports]

    kind, m, n = case
    torch.manual_seed(0)
    tensors = [torch.randn(m, n, device="cuda").bfloat16()]
    if kind == "rms_norm":
        tensors.append(torch.randn(n, device="cuda").bfloat16())

    def eager(x: Any, *weights: Any) -> Any:  # noqa: ANN401
        if kind == "softmax":
            return torch.softmax(x, 1)
        return torch.nn.functional.rms_norm(x, (n,), weights[0], 1e-5)

    functions: dict[str, Any] = {way: stepladder.load(str(_path(folder, case, way))) for way in WAYS}
    return {
        "kind": kind,
        "rows": m,
        "columns": n,
        "launches": {way: len(function.manifest.launches) for way, function in functions.items()},
        **ways_beside(torch, functions, tensors, eager),
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return bundles_parser(__doc__)


def main() -> int:
    """Compiles or measures all cases; returns the exit status."""
    return main_of_bundles(make_parser(), compile_all, CASES, measure, ("kind", "rows", "launches"))


if __name__ == "__main__":
    run(main)
