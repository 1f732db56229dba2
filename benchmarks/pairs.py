"""Measures the gated layer of an MLP as one kernel of two products, beside two kernels and PyTorch.

    python benchmarks/pairs.py --json build/pairs.json
    python benchmarks/pairs.py --dry-run

D = silu(A B) * (A G) in bf16, at the sizes of Llama-3-8B, for 2048 tokens and for 8. `pair` is one kernel on `wgmma`;
`two` are H = silu(A B) and D = H * (A G), each with its elementwise ops; `torch` is eager PyTorch. Contestants run in
turn, in one process, on the same data, each as a CUDA graph; every number is the median of the rounds. The numbers are
compared with products in f32 first. --dry-run compiles small sizes, without a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import stepladder
from common import run
from torch_rounds import graphs_in_turn, measure_cases, rounds_parser

SIZES = ((2048, 14336, 4096), (8, 14336, 4096))  # m, n and k
SMALL = ((128, 128, 128),)
TOLERANCE = 1e-2  # norm of the error, of that of the result


_SILU = """%n = arith.negf %x : f32
    %w = math.exp %n : f32
    %d = arith.addf %w, %one : f32
    %s = arith.divf %x, %d : f32"""
# Kernels by name: further arguments beside A and B, products, operands of the elementwise op and its body.
_PAIR = ("%G: {b}", ("B", "G"), "%g: f32", _SILU + "\n    %t = arith.mulf %s, %g : f32")
_FIRST = ("", ("B",), "", _SILU.replace("%s =", "%t ="))
_SECOND = ("%H: {c}", ("B",), "%h: bf16", "%g = arith.extf %h : bf16 to f32\n    %t = arith.mulf %x, %g : f32")


def payload(kernel: tuple[str, tuple[str, ...], str, str], m: int, n: int, k: int) -> str:
    """Returns the payload of a kernel.

    Args:
        kernel: one of the above.
        m: tokens.
        n, k: width of the layer, and of its input.
    """
    further, products, operand, body = kernel
    a, b, sums, c = f"tensor<{m}x{k}xbf16>", f"tensor<{k}x{n}xbf16>", f"tensor<{m}x{n}xf32>", f"tensor<{m}x{n}xbf16>"
    argument = f", {further.format(b=b, c=c)}" if further else ""
    lines = "\n  ".join(
        f"%p{name} = linalg.matmul ins(%A, %{name} : {a}, {b}) outs(%z : {sums}) -> {sums}" for name in products
    )
    inputs = {f"%p{name}": sums for name in products} | ({"%H": c} if kernel is _SECOND else {})
    maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * (len(inputs) + 1))
    return f"""func.func @gated(%A: {a}, %B: {b}{argument}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : {sums}
  %z = linalg.fill ins(%zero : f32) outs(%e : {sums}) -> {sums}
  {lines}
  %o = tensor.empty() : {c}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({", ".join(inputs)} : {", ".join(inputs.values())}) outs(%o : {c}) {{
  ^bb0(%x: f32{", " + operand if operand else ""}, %out: bf16):
    {body}
    %y = arith.truncf %t : f32 to bf16
    linalg.yield %y : bf16
  }} -> {c}
  return %r : {c}
}}
"""


def compiled(size: tuple[int, int, int], **options: Any) -> list[Any]:  # noqa: ANN401
    """Returns the layer as one kernel, and the two kernels that compute it one after the other.

    Args:
        size: m, n and k.
        options: of `stepladder.compile`.
    """
    kernels = (_PAIR, _FIRST, _SECOND)
    return [stepladder.compile(payload(kernel, *size), pipeline="wgmma", **options) for kernel in kernels]


def measure(size: tuple[int, int, int]) -> dict[str, Any]:
    """Returns the result of a size, measured on the GPU.

    Args:
        size: m, n and k.
    """
    import torch  # pyright: ignore[reportMissingImports]

    m, n, k = size
    pair, first, second = compiled(size)
    torch.manual_seed(0)
    x = torch.randn(m, k, device="cuda").bfloat16()
    b, g = ((torch.randn(k, n, device="cuda") / k**0.5).bfloat16() for _ in range(2))
    gate, out = (torch.empty(m, n, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    silu = torch.nn.functional.silu
    calls: dict[str, Callable[[], Any]] = {
        "pair": lambda: pair(x, b, g, out=out),
        "two": lambda: second(x, g, first(x, b, out=gate), out=out),
        "torch": lambda: silu(x @ b) * (x @ g),
    }
    expected = silu(x.float() @ b.float()) * (x.float() @ g.float())
    errors = {name: float((call().float() - expected).norm() / expected.norm()) for name, call in calls.items()}
    result: dict[str, Any] = {"m": m, "n": n, "k": k, "errors": errors}
    result["passed"] = max(errors.values()) < TOLERANCE
    if not result["passed"]:
        return result
    result["us"] = graphs_in_turn(torch, calls)
    result["median"] = {name: statistics.median(times) for name, times in result["us"].items()}
    return result


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return rounds_parser(__doc__)


def main() -> int:
    """Measures all sizes and writes the result; returns the exit status."""
    args = make_parser().parse_args()
    if args.dry_run:
        for size in SMALL:
            kernels = compiled(size, device="emulator", target="sm_90a")
            print(size, f"{len(kernels)} kernels")
        return 0
    return measure_cases(SIZES, measure, ("m", "n", "k", "errors", "median"), args.json)


if __name__ == "__main__":
    run(main)
