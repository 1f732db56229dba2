"""Measures the host's time of calls from Python, on tensors so small that the GPU never keeps the host waiting.

    python benchmarks/python_calls.py --json docs/results/python_calls.json
    python benchmarks/python_calls.py --dry-run

Matmuls of 64 x 64 tensors of f16: kernels and `stepladder.matmul`, beside PyTorch and, where they are installed, CuPy
and nvmath-python. Functions of several kernels, with the widths of `SMALL` in model_functions.py: the function, its
kernels called one after the other where each of them is a payload of its own, and PyTorch in eager mode. Contestants
run in turn; a time is the least mean of nine batches of 300 calls. --dry-run compiles the kernels, for sm_90a.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import stepladder
from common import origin, run, write_result
from function_numbers import expected, library_of
from functions import compiled
from model_functions import SMALL
from pairs_few_rows import down, pair
from stepladder.runtime.device import Device
from torch_rounds import rounds_parser

BATCHES = 9
CALLS = 300
SIZE = 64
TOKENS = 8
KINDS = ("mlp", "gated_mlp", "projections")

Calls = dict[str, Callable[[], object]]


def host_times(torch: Any, calls: Calls) -> dict[str, float]:  # noqa: ANN401
    """Returns the host's microseconds of a call, by contestant: the least mean of all batches.

    Args:
        torch: the module.
        calls: of the contestants, by name.
    """
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(BATCHES):
        for name, call in calls.items():
            call()
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(CALLS):
                call()
            best[name] = min(best[name], (time.perf_counter() - began) / CALLS * 1e6)
            torch.cuda.synchronize()
    return best


def matmul_kernel(**options: Any) -> stepladder.Kernel:  # noqa: ANN401
    """Returns the kernel of the matmul that is measured.

    Args:
        options: of `stepladder.compile`.
    """
    kernel = stepladder.compile(stepladder.MatmulSpec(SIZE, SIZE, SIZE, c_type="f16"), **options)
    assert isinstance(kernel, stepladder.Kernel)
    return kernel


def matmul_calls(torch: Any) -> Calls:  # noqa: ANN401
    """Returns the calls of one matmul, by contestant.

    Args:
        torch: the module.
    """
    a, b, out = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(3))
    kernel = matmul_kernel()
    return {
        "torch.mm": lambda: torch.mm(a, b),
        "torch.mm, out": lambda: torch.mm(a, b, out=out),
        "Kernel": lambda: kernel(a, b),
        "Kernel, out": lambda: kernel(a, b, out=out),
        "stepladder.matmul": lambda: stepladder.matmul(a, b),
        "stepladder.matmul, out": lambda: stepladder.matmul(a, b, out=out),
        **_nvmath_calls(a, b),
        **_cupy_calls(a, b, out),
        **_jax_calls(a, b, out),
    }


def _nvmath_calls(a: Any, b: Any) -> Calls:  # noqa: ANN401
    """Returns the calls of nvmath-python: none where it is not installed."""
    if importlib.util.find_spec("nvmath") is None:
        return {}
    from nvmath.linalg import advanced  # pyright: ignore[reportMissingImports]

    planned = advanced.Matmul(a, b)
    planned.plan()
    return {
        "nvmath.linalg.advanced.Matmul.execute": lambda: planned.execute(),
        "nvmath.linalg.advanced.matmul": lambda: advanced.matmul(a, b),
    }


def _cupy_calls(a: Any, b: Any, out: Any) -> Calls:  # noqa: ANN401
    """Returns the calls of CuPy, and of kernels on its arrays: none where it is not installed."""
    if importlib.util.find_spec("cupy") is None:
        return {}
    import cupy  # pyright: ignore[reportMissingImports]

    x, y, z = (cupy.from_dlpack(tensor) for tensor in (a, b, out))
    kernel = matmul_kernel()
    return {
        "cupy.matmul": lambda: cupy.matmul(x, y),
        "cupy.matmul, out": lambda: cupy.matmul(x, y, out=z),
        "Kernel, on arrays of CuPy": lambda: kernel(x, y),
        "Kernel, out, on arrays of CuPy": lambda: kernel(x, y, out=z),
    }


def _jax_calls(a: Any, b: Any, out: Any) -> Calls:  # noqa: ANN401
    """Returns the calls of JAX, and of a kernel on its arrays: none where it is not installed."""
    if importlib.util.find_spec("jax") is None:
        return {}
    import jax  # pyright: ignore[reportMissingImports]

    x, y = (jax.dlpack.from_dlpack(tensor) for tensor in (a, b))
    if next(iter(x.devices())).platform != "gpu":
        return {}
    kernel = matmul_kernel()
    product = jax.jit(jax.numpy.matmul)
    return {
        "jax.jit(jax.numpy.matmul)": lambda: product(x, y),
        "Kernel, out of PyTorch, on arrays of JAX": lambda: kernel(x, y, out=out),
    }


def function_calls(torch: Any, kind: str) -> tuple[stepladder.Function, Calls]:  # noqa: ANN401
    """Returns a function of several kernels, and its calls by contestant.

    Args:
        torch: the module.
        kind: of the function, as in functions.py.
    """
    (model,) = SMALL
    function = compiled(kind, model, TOKENS)
    tensors = [torch.randn(item.shape, device="cuda").bfloat16() for item in function.inputs]
    outs = [torch.empty(item.shape, device="cuda", dtype=torch.bfloat16) for item in function.outputs]
    out = outs[0] if len(outs) == 1 else outs
    calls: Calls = {
        "Function": lambda: function(*tensors),
        "Function, out": lambda: function(*tensors, out=out),
        "eager": lambda: expected(kind, tensors[0], tensors[1:], library_of(torch)),
    }
    if kind == "gated_mlp":
        first, last = stepladder.compile(pair(model, TOKENS)), stepladder.compile(down(model, TOKENS))
        hidden = torch.empty(TOKENS, model.mlp, device="cuda", dtype=torch.bfloat16)
        x, gate, up, third = tensors

        def in_turn() -> None:
            first(x, gate, up, out=hidden)
            last(hidden, third, out=out)

        calls["Kernels, out"] = in_turn
    return function, calls


def measured() -> dict[str, Any]:
    """Returns the times of all calls."""
    import torch  # pyright: ignore[reportMissingImports]

    with torch.no_grad():
        results: dict[str, Any] = {"microseconds": host_times(torch, matmul_calls(torch)), "functions": []}
        for kind in KINDS:
            function, calls = function_calls(torch, kind)
            launches = len(function.manifest.launches)
            times = host_times(torch, calls)
            results["functions"].append({"kind": kind, "launches": launches, "microseconds": times})
    return results


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return rounds_parser(__doc__)


def main() -> int:
    """Measures all calls; returns the exit status."""
    args = make_parser().parse_args()
    if args.dry_run:
        matmul_kernel(target="sm_90a")
        for kind in KINDS:
            compiled(kind, SMALL[0], TOKENS)
        return 0
    with Device() as device:
        card = device.describe()
    description = f"host time of a call in us, the least mean of {BATCHES} batches of {CALLS} calls"
    result = {"schema_version": 2, **origin(), "card": card, "what": description, **measured()}
    for name, value in result["microseconds"].items():
        print(f"{name} {value:.1f}", flush=True)
    for case in result["functions"]:
        print(case["kind"], case["launches"], {name: round(value, 1) for name, value in case["microseconds"].items()})
    if args.json:
        write_result(args.json, result)
    return 0


if __name__ == "__main__":
    run(main)
