"""Measures whole functions beside PyTorch: MLPs, gated MLPs and attention projections of public model sizes.

    python benchmarks/functions.py --json docs/results/functions.json [--tokens 2048,8] [--kinds mlp] [--models Llama]
    python benchmarks/functions.py --json docs/results/functions_eager.json --eager-only --tokens 1,8,32
    python benchmarks/functions.py --dry-run

For 2048 tokens (prefill) and 1, 8 and 32 (decode), in bf16. Each function is one bundle, called on PyTorch's tensors,
beside eager PyTorch and `torch.compile(mode="max-autotune")`, of a module with the weights as parameters. Contestants
run in turn, in one process, on the same data; every number is the median of the rounds. `calls` is the time of a call
among many, with the host's work; `graph` that of a CUDA graph of the same work, for which `torch.compile` leaves its
own graphs out. The numbers of each function are compared with PyTorch's in f64 first, by
a tolerance that its types and sizes give. Cases of the file that are not
measured again are kept. --graphs-only leaves out the calls of `torch.compile`, which take it another compilation.
--dry-run compares on the emulator, at small sizes, with NumPy.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import sys
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import ml_dtypes
import numpy as np

import duel
import stepladder
from common import new_parser, run, write_result
from model_functions import MODELS, SMALL, Model, payload
from stepladder.runtime.device import Device
from stepladder.verify.function_check import norm_tolerance
from torch_rounds import captured, in_turn

TOKENS = (2048, 1, 8, 32)
TARGET = "sm_90a"


def expected(kind: str, x: Any, weights: Sequence[Any], linear: Callable, silu: Callable, relu: Callable) -> tuple:  # noqa: ANN401
    """Returns the results of a function, computed with the operations of a library.

    Args:
        kind: of the function.
        x: the input.
        weights: in the order of the arguments.
        linear, silu, relu: the operations.
    """
    if kind == "projections":
        return tuple(linear(x, weight) for weight in weights)
    if kind == "mlp":
        return (linear(relu(linear(x, weights[0])), weights[1]),)
    gate, up, down = weights
    return (linear(silu(linear(x, gate)) * linear(x, up), down),)


def random_arrays(function: stepladder.Function) -> list[np.ndarray]:
    """Returns arguments: normal numbers, divided by the root of the rows' length in weights.

    Args:
        function: whose arguments they are.
    """
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(item.shape, np.float32) for item in function.inputs]
    return [
        (array if number == 0 else array / np.float32(array.shape[1] ** 0.5)).astype(ml_dtypes.bfloat16)
        for number, array in enumerate(arrays)
    ]


def error_of(got: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the norm of the error over that of the numbers.

    Args:
        got, wanted: arrays of one shape.
    """
    return float(np.linalg.norm(got.astype(np.float64) - wanted) / np.linalg.norm(wanted))


def compiled(kind: str, model: Model, m: int, **options: Any) -> stepladder.Function:  # noqa: ANN401
    """Returns a compiled function.

    Args:
        kind: of the function.
        model, m: widths of the model, and rows of the input.
        options: of `stepladder.compile`.
    """
    function = stepladder.compile(payload(kind, model, m), target=TARGET, **options)
    assert isinstance(function, stepladder.Function)
    return function


def dry_run(kind: str, model: Model, m: int) -> dict[str, Any]:
    """Runs a function on the emulator; returns its result without times.

    Args:
        kind: of the function.
        model, m: widths of the model, and rows of the input.
    """
    function = compiled(kind, model, m, device="emulator")
    arrays = random_arrays(function)
    got = function(*arrays)
    got = got if isinstance(got, tuple) else (got,)
    x, *weights = (array.astype(np.float64) for array in arrays)
    wanted = expected(
        kind, x, weights, lambda a, w: a @ w.T, lambda a: a / (1 + np.exp(-a)), lambda a: np.maximum(a, 0)
    )
    return described(function, max(map(error_of, got, wanted)))


def described(function: stepladder.Function, error: float) -> dict[str, Any]:
    """Returns the part of a result that is not time.

    Args:
        function: that was compiled.
        error: the norm of that of its results, over theirs.
    """
    manifest, tolerance = function.manifest, norm_tolerance(function.bundle)
    matmuls = sum(launch.kernel is None for launch in manifest.launches)
    return {
        "kernels": [launch.stage for launch in manifest.launches],
        "matmuls": matmuls,
        "workspace": manifest.workspace,
        "error": error,
        "tolerance": tolerance,
        "passed": error <= tolerance,
    }


def bundle_of(folder: Path, kind: str, model: Model, m: int) -> Path:
    """Returns the path of a function's bundle.

    Args:
        folder: of the bundles.
        kind: of the function.
        model, m: widths of the model, and rows of the input.
    """
    return folder / f"{model.name}_{kind}_{m}.bundle"


def compile_all(cases: Sequence[tuple[str, Model, int]], workers: int) -> None:
    """Compiles functions in several processes, to the cache on disk; what is refused is reported when it is measured.

    Args:
        cases: kind, model and rows of each.
        workers: processes.
    """
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(_try_to_compile, cases))


def _try_to_compile(case: tuple[str, Model, int]) -> None:
    with contextlib.suppress(stepladder.StepladderError):
        compiled(*case)


def tuned(torch: Any, call: Callable[..., tuple], weights: Sequence[Any]) -> Callable[[Any], tuple]:  # noqa: ANN401
    """Returns what `torch.compile` makes of a function with max-autotune, with its weights as parameters of a module:
    its graphs do not copy those.

    Args:
        torch: the module.
        call: the function, of the input and the weights.
        weights: tensors.
    """
    names = [f"weight{number}" for number in range(len(weights))]

    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, weight in zip(names, weights):
                self.register_parameter(name, torch.nn.Parameter(weight, requires_grad=False))

        def forward(self, x: Any) -> tuple:  # noqa: ANN401
            return call(x, *(getattr(self, name) for name in names))

    return torch.compile(Layers(), mode="max-autotune")


def measure(function: stepladder.Function, kind: str, model: Model, m: int, others: Collection[str]) -> dict[str, Any]:
    """Returns the result of a function, measured beside PyTorch on the GPU.

    Args:
        function: that was compiled.
        kind: of the function.
        model, m: widths of the model, and rows of the input.
        others: of `graph` and `calls`, what is measured of `torch.compile` beside eager mode.
    """
    import torch  # pyright: ignore[reportMissingImports]
    from torch.nn import functional  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)
    tensors = [
        (torch.randn(item.shape, device="cuda") / (item.shape[1] ** 0.5 if number else 1)).to(torch.bfloat16)
        for number, item in enumerate(function.inputs)
    ]
    library = functional.linear, functional.silu, torch.relu

    def eager(x: Any, *weights: Any) -> tuple:  # noqa: ANN401
        return expected(kind, x, weights, *library)

    with torch.no_grad():
        got = function(*tensors)
        wanted = eager(*(tensor.double() for tensor in tensors))
        error = max(
            float((a.double() - b.double()).norm() / b.double().norm())
            for a, b in zip(got if isinstance(got, tuple) else (got,), wanted)
        )
        del got, wanted
        result = described(function, error)
        if not result["passed"]:
            return result
        outs = [torch.empty(item.shape, dtype=torch.bfloat16, device="cuda") for item in function.outputs]
        out = outs[0] if len(outs) == 1 else outs
        torch.compiler.reset()
        calls: dict[str, Callable[[], object]] = {"stepladder": lambda: function(*tensors, out=out)}
        calls["eager"] = lambda: eager(*tensors)
        graphs = {name: captured(torch, call) for name, call in calls.items()}
        x, *weights = tensors
        if "graph" in others:
            without = torch.compile(eager, mode="max-autotune-no-cudagraphs")
            graphs["max-autotune"] = captured(torch, lambda: without(*tensors))
        if "calls" in others:
            whole = tuned(torch, eager, weights)
            calls["max-autotune"] = lambda: whole(x)
        result["us"] = {
            "calls": in_turn(torch, calls),
            "graph": in_turn(torch, {name: graph for name, graph in graphs.items() if graph is not None}),
        }
        result["ratios"] = {
            way: {
                other: statistics.median(a / b for a, b in zip(times[other], times["stepladder"]))
                for other in ("eager", "max-autotune")
                if other in times and "stepladder" in times
            }
            for way, times in result["us"].items()
        }
    return result


def measured(folder: Path | None, kind: str, model: Model, m: int, others: Collection[str]) -> dict[str, Any]:
    """Returns the result of a function that is compiled, or loaded from its bundle; arguments as of `measure`.

    Args:
        folder: of the bundles; None for none.
        kind, model, m, others: as of `measure`.
    """
    if folder is None:
        return measure(compiled(kind, model, m), kind, model, m, others)
    function = stepladder.load(str(bundle_of(folder, kind, model, m)))
    assert isinstance(function, stepladder.Function)
    return measure(function, kind, model, m, others)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__ or "")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the results; standard output if not given")
    parser.add_argument("--dry-run", action="store_true", help="small sizes on the emulator, without times")
    parser.add_argument("--eager-only", action="store_true", help="beside eager PyTorch alone, which compiles nothing")
    parser.add_argument("--graphs-only", action="store_true", help="`torch.compile` in CUDA graphs alone")
    parser.add_argument("--compile", metavar="FOLDER", type=Path, help="write the bundles, and measure nothing")
    parser.add_argument("--bundles", metavar="FOLDER", type=Path, help="measure the bundles, which needs no compiler")
    parser.add_argument("--workers", type=int, default=14, help="processes that compile the functions")
    parser.add_argument("--models", default="", help="beginning of the names of models")
    parser.add_argument("--kinds", default="mlp,gated_mlp,projections", help="functions, separated by commas")
    parser.add_argument("--tokens", help="numbers of tokens, separated by commas")
    return parser


def _name(case: dict[str, Any]) -> tuple[str, str, int]:
    return case["model"]["name"], case["kind"], case["tokens"]


def main() -> int:
    """Measures all cases; returns the exit status."""
    args = make_parser().parse_args()
    tokens = tuple(map(int, args.tokens.split(","))) if args.tokens else (16,) if args.dry_run else TOKENS
    result: dict[str, Any] = {"dry_run": args.dry_run}
    models = SMALL if args.dry_run else [model for model in MODELS if model.name.startswith(args.models)]
    if args.compile:
        for kind, model, m in itertools.product(args.kinds.split(","), models, tokens):
            compiled(kind, model, m).save(str(bundle_of(args.compile, kind, model, m)))
        return 0
    if not args.dry_run:
        if args.bundles is None:
            compile_all(list(itertools.product(args.kinds.split(","), models, tokens)), args.workers)
        with Device() as device:
            result |= duel.header(device)
    others = () if args.eager_only else ("graph",) if args.graphs_only else ("graph", "calls")
    before = json.loads(args.json.read_text())["cases"] if args.json and args.json.is_file() else []
    cases: list[dict[str, Any]] = []
    for model in models:
        for kind in args.kinds.split(","):
            for m in tokens:
                case: dict[str, Any] = {"model": asdict(model), "kind": kind, "tokens": m}
                case["date"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
                try:
                    case |= dry_run(kind, model, m) if args.dry_run else measured(args.bundles, kind, model, m, others)
                except stepladder.StepladderError as error:  # the other cases are measured all the same
                    case |= {"passed": False, "refused": error.render()}
                cases.append(case)
                said = case.get("ratios", case.get("refused", f"error {case.get('error', 0):.1e}"))
                print(f"{model.name} {kind} {m}: {said}", file=sys.stderr, flush=True)
                done = {_name(item) for item in cases}
                result["cases"] = [*(item for item in before if _name(item) not in done), *cases]
                if args.json:  # what took long to measure is safe
                    write_result(args.json, result)
    if not args.json:
        print(json.dumps(result, indent=1))
    return 0 if all(case["passed"] for case in cases) else 1


if __name__ == "__main__":
    run(main)
