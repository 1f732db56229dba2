"""Measures elementwise ops and copies as kernels of a function, beside PyTorch in eager mode.

    python benchmarks/elements.py --compile FOLDER
    python benchmarks/elements.py --bundles FOLDER --json docs/results/elements.json

--compile writes the bundles, which needs no GPU, and --bundles measures them, which needs no compiler. The sum of two
matrices of f16, a matrix of f16 with a factor for each row, a cast from f32 to f16, and the copy that exchanges tokens
and heads of 128 elements, each in CUDA graphs of 20 launches; contestants run in turn, and every number is the median
of the rounds. The numbers are compared with PyTorch's first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import stepladder
from common import run
from stepladder.measure.rotation import repeated
from torch_rounds import bundles_parser, compile_to, graphs_in_turn, main_of_bundles

SHAPES = ((64, 1024), (512, 4096), (4096, 4096))
CASES = tuple((kind, *shape) for shape in SHAPES for kind in ("sum", "factors", "cast", "heads"))
_DEPTH = 128  # elements of a head
_LAUNCHES = 20  # of a graph: a launch of the graph takes longer than a small kernel

Case = tuple[str, int, int]

_ELEMENTWISE = """
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @elements(%x: tensor<{m}x{n}x{type}>{parameter}) -> tensor<{m}x{n}xf16> {{
  %0 = tensor.empty() : tensor<{m}x{n}xf16>
  %y = linalg.generic {{indexing_maps = [#all, {map}#all], iterator_types = ["parallel", "parallel"]}}
      ins(%x{operand} : tensor<{m}x{n}x{type}>{operand_type}) outs(%0 : tensor<{m}x{n}xf16>) {{
  ^bb0(%in: {type}{argument}, %out: f16):
    %v = {op} : {result}
    linalg.yield %v : f16
  }} -> tensor<{m}x{n}xf16>
  return %y : tensor<{m}x{n}xf16>
}}
"""
_HEADS = """
func.func @elements(%x: tensor<{m}x{heads}x{depth}xf16>) -> tensor<{heads}x{m}x{depth}xf16> {{
  %0 = tensor.empty() : tensor<{heads}x{m}x{depth}xf16>
  %y = linalg.transpose ins(%x : tensor<{m}x{heads}x{depth}xf16>) outs(%0 : tensor<{heads}x{m}x{depth}xf16>)
    permutation = [1, 0, 2]
  return %y : tensor<{heads}x{m}x{depth}xf16>
}}
"""


def _text(case: Case) -> str:
    kind, m, n = case
    if kind == "heads":
        return _HEADS.format(m=m, heads=n // _DEPTH, depth=_DEPTH)
    if kind == "cast":
        parts = dict.fromkeys(("parameter", "map", "operand", "operand_type", "argument"), "")
        return _ELEMENTWISE.format(m=m, n=n, type="f32", op="arith.truncf %in", result="f32 to f16", **parts)
    map_, type_, name = {
        "sum": ("#all", f"tensor<{m}x{n}xf16>", "addf"),
        "factors": ("#row", f"tensor<{m}xf16>", "mulf"),
    }[kind]
    return _ELEMENTWISE.format(
        m=m,
        n=n,
        type="f16",
        parameter=f", %w: {type_}",
        map=f"{map_}, ",
        operand=", %w",
        operand_type=f", {type_}",
        argument=", %other: f16",
        op=f"arith.{name} %in, %other",
        result="f16",
    )


def _path(folder: Path, case: Case) -> Path:
    kind, m, n = case
    return folder / f"{kind}_{m}x{n}.bundle"


def compile_all(folder: Path) -> None:
    """Compiles each case.

    Args:
        folder: that the bundles are written to.
    """
    for case in CASES:
        compile_to(_path(folder, case), _text(case))


def measure(folder: Path, case: Case) -> dict[str, Any]:
    """Returns the times of a case.

    Args:
        folder: of the bundles.
        case: which.
    """
    import torch  # pyright: ignore[reportMissingImports]

    kind, m, n = case
    torch.manual_seed(0)
    x = torch.randn(m, n, device="cuda")
    x = x if kind == "cast" else x.half()
    x = x.view(m, n // _DEPTH, _DEPTH) if kind == "heads" else x
    operands = {"sum": [torch.randn_like(x)], "factors": [torch.randn(m, device="cuda").half()]}.get(kind, [])
    eager: Callable[[], Any] = {
        "sum": lambda: x + operands[0],
        "factors": lambda: x * operands[0][:, None],
        "cast": lambda: x.half(),
        "heads": lambda: x.transpose(0, 1).contiguous(),
    }[kind]
    expected = eager()
    out = torch.empty_like(expected)
    function: Any = stepladder.load(str(_path(folder, case)))
    function(x, *operands, out=out)
    calls: dict[str, Callable[[], object]] = {
        "own": lambda: function(x, *operands, out=out),
        "eager": eager,
    }
    passed = bool(torch.equal(out, expected))
    launches = {name: repeated(call, _LAUNCHES) for name, call in calls.items()}
    times = {name: [time / _LAUNCHES for time in samples] for name, samples in graphs_in_turn(torch, launches).items()}
    print(case, {name: round(median(samples), 2) for name, samples in times.items()}, file=sys.stderr, flush=True)
    return {"kind": kind, "rows": m, "columns": n, "passed": passed, "us": times}


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return bundles_parser(__doc__)


def main() -> int:
    """Compiles or measures all cases; returns the exit status."""
    return main_of_bundles(make_parser(), compile_all, CASES, measure, ("kind", "rows", "columns"))


if __name__ == "__main__":
    run(main)
