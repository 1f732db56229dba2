"""Measures groups of matmuls as one launch, beside a launch for each and cuBLAS: the experts of a mixture.

    python benchmarks/groups.py --json docs/results/groups.json
    python benchmarks/groups.py --dry-run

Each case is experts of unlike numbers of tokens, with one weight each, in bf16. Contestants run in turn, in one
process, on the same data, each as a CUDA graph; every number is the median of the rounds. The numbers of each function
are compared with products in f32 first. `cublas` is torch.mm for each expert, `torch` is torch._grouped_mm on
tokens and weights that lie behind each other, where PyTorch has it. --dry-run compiles small sizes, without a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import stepladder
from common import run
from torch_rounds import graphs_in_turn, measure_cases, rounds_parser


@dataclass(frozen=True)
class Case:
    """Experts: rows of each, and the columns and the depth of all."""

    name: str
    rows: tuple[int, ...]
    n: int
    k: int


CASES = (
    Case("8 experts, up", (64, 128, 192, 256, 320, 384, 64, 640), 1536, 2048),
    Case("8 experts, down", (64, 128, 192, 256, 320, 384, 64, 640), 2048, 1536),
    Case("16 experts of few tokens", (16, 8, 40, 24, 16, 64, 8, 32) * 2, 1536, 2048),
    Case("8 experts of many tokens", (1024, 2048, 512, 1536, 768, 1280, 640, 384), 4096, 4096),
)
SMALL = (Case("small", (8, 40, 16), 64, 64),)


def payload(case: Case) -> str:
    """Returns a function of the products of a case.

    Args:
        case: whose sizes it has.
    """
    lines, arguments, results = ["%zero = arith.constant 0.0 : f32"], [], []
    for i, m in enumerate(case.rows):
        x, w = f"tensor<{m}x{case.k}xbf16>", f"tensor<{case.k}x{case.n}xbf16>"
        sums, y = f"tensor<{m}x{case.n}xf32>", f"tensor<{m}x{case.n}xbf16>"
        arguments += [f"%x{i}: {x}", f"%w{i}: {w}"]
        results.append(y)
        lines += [
            f"%e{i} = tensor.empty() : {sums}",
            f"%z{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {sums}) -> {sums}",
            f"%p{i} = linalg.matmul ins(%x{i}, %w{i} : {x}, {w}) outs(%z{i} : {sums}) -> {sums}",
            f"%y{i} = arith.truncf %p{i} : {sums} to {y}",
        ]
    values = ", ".join(f"%y{i}" for i in range(len(case.rows)))
    body = "\n  ".join(lines)
    types = ", ".join(results)
    return f"func.func @experts({', '.join(arguments)}) -> ({types}) {{\n  {body}\n  return {values} : {types}\n}}\n"


def compiled(case: Case, groups: bool, **options: Any) -> stepladder.Function:  # noqa: ANN401
    """Returns a compiled function.

    Args:
        case: whose products it computes.
        groups: whether they are one launch.
        options: of `stepladder.compile`.
    """
    function = stepladder.compile(payload(case), groups=groups, **options)
    assert isinstance(function, stepladder.Function)
    return function


def described(case: Case, function: stepladder.Function) -> dict[str, Any]:
    """Returns the part of a result that is not time.

    Args:
        case: that is measured.
        function: with groups.
    """
    kernels = [launch.kernel for launch in function.manifest.launches if launch.kernel is not None]
    return {**asdict(case), "launches": len(function.manifest.launches), "grid": [kernel.grid[0] for kernel in kernels]}


def measure(case: Case) -> dict[str, Any]:
    """Returns the result of a case, measured on the GPU.

    Args:
        case: that is measured.
    """
    import torch  # pyright: ignore[reportMissingImports]

    grouped, alone = compiled(case, True), compiled(case, False)
    torch.manual_seed(0)
    x = torch.randn(sum(case.rows), case.k, device="cuda").bfloat16()
    w = (torch.randn(len(case.rows), case.k, case.n, device="cuda") / case.k**0.5).bfloat16()
    parts = x.split(list(case.rows))
    arguments = [tensor for pair in zip(parts, w) for tensor in pair]
    ends = torch.tensor(case.rows, device="cuda").cumsum(0).int()
    references = [(a.float() @ b.float()).double() for a, b in zip(parts, w)]
    outs = [torch.empty(m, case.n, dtype=torch.bfloat16, device="cuda") for m in case.rows]
    result = described(case, grouped)
    result["error"] = max(
        float((out.double() - right).norm() / right.norm())
        for function in (grouped, alone)
        for out, right in zip(function(*arguments), references)
    )
    result["passed"] = result["error"] < 1e-2
    if not result["passed"]:
        return result
    calls: dict[str, Callable[[], object]] = {
        "group": lambda: grouped(*arguments, out=outs),
        "launches": lambda: alone(*arguments, out=outs),
        "cublas": lambda: [torch.mm(a, b, out=out) for a, b, out in zip(parts, w, outs)],
    }
    if hasattr(torch, "_grouped_mm"):
        calls["torch"] = lambda: torch._grouped_mm(x, w, offs=ends)
    result["us"] = graphs_in_turn(torch, calls)
    flops = 2 * sum(case.rows) * case.n * case.k
    result["tflops"] = {name: flops / statistics.median(times) / 1e6 for name, times in result["us"].items()}
    return result


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return rounds_parser(__doc__)


def main() -> int:
    """Measures all cases and writes the result; returns the exit status."""
    args = make_parser().parse_args()
    if args.dry_run:
        for case in SMALL:
            print(described(case, compiled(case, True, device="emulator", target="sm_90a")))
        return 0
    return measure_cases(CASES, measure, ("name", "error", "tflops"), args.json)


if __name__ == "__main__":
    run(main)
