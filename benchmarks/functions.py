"""Measures whole functions beside PyTorch: MLPs, projections and attention blocks of public model sizes.

    python benchmarks/functions.py --json docs/results/functions.json [--tokens 2048,8] [--kinds mlp] [--models Llama]
    python benchmarks/functions.py --json docs/results/functions_eager.json --eager-only --tokens 1,8,32
    python benchmarks/functions.py --dry-run

For 2048 tokens (prefill) and 1, 8 and 32 (decode), in bf16. Each function is one bundle, called on PyTorch's tensors,
beside eager PyTorch and `torch.compile(mode="max-autotune")`, of a module with the weights as parameters. Contestants
run in turn, in one process, on the same data; every number is the median of the rounds. `calls` is the time of a call
among many, with the host's work; `graph` that of a CUDA graph of the same work, for which `torch.compile` leaves its
own graphs out; `layers` that of a call in a graph of several, each with weights of its own, as the layers of a model
have them. In decode, `promised` is compiled and called with `constant_weights`. The numbers of each function are
compared with PyTorch's in f64 first, by a tolerance that its types and sizes give. Cases of the file that are not
measured again are kept. --graphs-only leaves out calls, for which `torch.compile` would take another compilation.
--dry-run compares on the emulator, at small sizes, with NumPy.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import numpy as np

import duel
import stepladder
from attention_functions import Attention
from common import new_parser, now, run, write_result
from function_numbers import Library, distance, error_of, expected, library_of, numpy_attend, random_arrays
from model_functions import EPSILON, MODELS, SMALL, Model, payload
from stepladder.runtime.device import Device
from stepladder.runtime.processes import end_with_pool
from stepladder.verify.function_tolerance import norm_tolerance
from torch_rounds import captured, in_turn

TOKENS = (2048, 1, 8, 32)
FEW = 32  # tokens of decode
LAYERS = 4  # calls in a graph, each with weights of its own
TARGET = "sm_90a"


def compiled(kind: str, model: Model, m: int, **options: Any) -> stepladder.Function:  # noqa: ANN401
    """Returns a compiled function.

    Args:
        kind: of the function.
        model, m: widths of the model, and rows of the input.
        options: of `stepladder.compile`.
    """
    if kind == "attention":
        text = Attention(model, m).text(m <= FEW)
    else:
        text = payload(kind, model, m)
    function = stepladder.compile(text, target=TARGET, **options)
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
    results = function(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    x, *weights = (array.astype(np.float64) for array in arrays)
    library = Library(
        lambda a, w: a @ w.T,
        lambda a: a / (1 + np.exp(-a)),
        lambda a: np.maximum(a, 0),
        lambda a, w: a / np.sqrt((a * a).mean(-1, keepdims=True) + EPSILON) * w,
        numpy_attend,
        lambda parts, like: np.concatenate(parts, -1),
    )
    references = expected(kind, x, weights, library)
    return described(function, max(map(error_of, results, references)))


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


def bundle_of(folder: Path, kind: str, model: Model, m: int, promise: bool) -> Path:
    """Returns the path of a function's bundle.

    Args:
        folder: of the bundles.
        kind: of the function.
        model, m: widths of the model, and rows of the input.
        promise: whether its weights are constant.
    """
    return folder / f"{model.name}_{kind}_{m}{'_promised' * promise}.bundle"


def promises(m: int) -> tuple[bool, ...]:
    """Returns whether functions are compiled with the promise of constant weights, and without.

    Args:
        m: rows of the input; only kernels for few of them load weights early.
    """
    return (False, True) if m <= FEW else (False,)


def compile_all(cases: Sequence[tuple[str, Model, int]], workers: int) -> None:
    """Compiles functions in several processes, to the cache on disk; what is refused is reported when it is measured.

    Args:
        cases: kind, model and rows of each.
        workers: processes.
    """
    with ProcessPoolExecutor(workers, initializer=end_with_pool) as pool:
        list(pool.map(_try_to_compile, cases))


def _try_to_compile(case: tuple[str, Model, int]) -> None:
    with contextlib.suppress(stepladder.StepladderError):
        for promise in promises(case[2]):
            compiled(*case, constant_weights=promise)


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


def measure(functions: dict[str, stepladder.Function], kind: str, m: int, others: Collection[str]) -> dict[str, Any]:
    """Returns the result of a function, measured beside PyTorch on the GPU.

    Args:
        functions: that were compiled, by name: `stepladder`, and in decode `promised`.
        kind: of the function.
        m: rows of the input.
        others: of `graph` and `calls`, what is measured of `torch.compile` beside eager mode.
    """
    import torch  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)
    first = functions["stepladder"]
    layers = [_random_tensors(torch, first) for _ in range(LAYERS if m <= FEW else 1)]
    tensors = layers[0]

    library = library_of(torch)

    def eager(x: Any, *weights: Any) -> tuple:  # noqa: ANN401
        return expected(kind, x, weights, library)

    outs = [_new_outs(torch, first, given) for given in layers]
    calls: dict[str, list[Callable[[], object]]] = {
        name: [
            lambda each=each, given=given, out=out: each(*given, out=out[0] if len(out) == 1 else out)
            for given, out in zip(layers, outs)
        ]
        for name, each in functions.items()
    }
    with torch.no_grad():
        wanted = [eager(*(tensor.double() for tensor in given)) for given in layers]
        error = 0.0
        graphs, several = {}, {}
        for name, each in calls.items():
            graphs[name], several[name] = captured(torch, each[0]), captured(torch, in_order(each))
            behind_itself = [item for item in (several[name], several[name]) if item is not None]
            for run_all in (in_order(each), in_order(behind_itself)) if behind_itself else (in_order(each),):
                error = max(error, _largest_error(torch, run_all, outs, wanted, first.in_place))
        del wanted
        result = described(functions[next(reversed(functions))], error)
        if not result["passed"]:
            return result
        torch.compiler.reset()
        eagers: list[Callable[[], object]] = [lambda given=given: eager(*given) for given in layers]
        graphs["eager"], several["eager"] = captured(torch, eagers[0]), captured(torch, in_order(eagers))
        timed: dict[str, Callable[[], object]] = {name: each[0] for name, each in calls.items()}
        timed["eager"] = eagers[0]
        if "graph" in others:
            without = torch.compile(eager, mode="max-autotune-no-cudagraphs")
            tuned_calls: list[Callable[[], object]] = [lambda given=given: without(*given) for given in layers]
            graphs["max-autotune"] = captured(torch, tuned_calls[0])
            several["max-autotune"] = captured(torch, in_order(tuned_calls))
        if "calls" in others:
            whole = tuned(torch, eager, tensors[1:])
            timed["max-autotune"] = lambda: whole(tensors[0])
        ways = {"graph": graphs}
        if len(layers) > 1 and others:
            ways["layers"] = several
        if others != ("graph",):
            ways["calls"] = timed
        result["us"] = {
            way: in_turn(torch, {name: call for name, call in items.items() if call is not None})
            for way, items in ways.items()
        }
        if "layers" in result["us"]:
            result["us"]["layers"] = {
                name: [time / LAYERS for time in times] for name, times in result["us"]["layers"].items()
            }
        result["ratios"] = {way: _ratios(times, functions) for way, times in result["us"].items()}
    return result


def _new_outs(torch: Any, function: stepladder.Function, arguments: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    """Returns tensors for the results of a call: new ones, or the arguments that results take the place of."""
    return [
        arguments[function.in_place[number]]
        if number in function.in_place
        else torch.empty(item.shape, dtype=torch.bfloat16, device="cuda")
        for number, item in enumerate(function.outputs)
    ]


def _largest_error(
    torch: Any,  # noqa: ANN401
    run_all: Callable[[], object],
    outs: Sequence[Sequence[Any]],
    wanted: Sequence[Sequence[Any]],
    in_place: Collection[int],
) -> float:
    """Returns the largest error of the results of calls; new results are NaN before the calls."""
    for number, out in itertools.chain(*map(enumerate, outs)):
        if number not in in_place:
            out.fill_(float("nan"))
    run_all()
    torch.cuda.synchronize()
    return max(distance(one, two) for a, b in zip(outs, wanted) for one, two in zip(a, b))


def _random_tensors(torch: Any, function: stepladder.Function) -> list[Any]:  # noqa: ANN401
    """Returns arguments: normal numbers, divided by the root of the rows' length in weights; cosines and sines of
    random angles, where arguments are f32."""
    angles = [item.shape for item in function.inputs if item.type == "f32"][:1]
    factors = [
        table for shape in angles for at in [torch.randn(shape, device="cuda")] for table in (at.cos(), at.sin())
    ]
    tensors = []
    for number, item in enumerate(function.inputs):
        if item.type == "f32":
            tensors.append(factors.pop(0))
            continue
        scale = item.shape[-1] ** -0.5 if number and len(item.shape) == 2 else 1.0
        tensors.append((torch.randn(item.shape, device="cuda") * scale).to(torch.bfloat16))
    return tensors


def _ratios(times: Mapping[str, Sequence[float]], names: Iterable[str]) -> dict[str, dict[str, float]]:
    """Returns the median ratios of PyTorch's times to those of each function."""
    return {
        name: {
            contestant: statistics.median(a / b for a, b in zip(times[contestant], times[name]))
            for contestant in ("eager", "max-autotune")
            if contestant in times
        }
        for name in names
        if name in times
    }


def in_order(calls: Sequence[Callable[[], object]]) -> Callable[[], None]:
    """Returns a function that makes several calls.

    Args:
        calls: in order.
    """

    def run_all() -> None:
        for call in calls:
            call()

    return run_all


def measured(folder: Path | None, kind: str, model: Model, m: int, others: Collection[str]) -> dict[str, Any]:
    """Returns the result of a function that is compiled, or loaded from its bundle; arguments as of `measure`.

    Args:
        folder: of the bundles; None for none.
        kind, model, m, others: as of `measure`.
    """
    functions: dict[str, stepladder.Function] = {}
    for promise in promises(m):
        if folder is None:
            function = compiled(kind, model, m, constant_weights=promise)
        else:
            path = str(bundle_of(folder, kind, model, m, promise))
            function = stepladder.load(path, constant_weights=promise)
        assert isinstance(function, stepladder.Function)
        functions["promised" if promise else "stepladder"] = function
    return measure(functions, kind, m, others)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
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
            for promise in promises(m):
                function = compiled(kind, model, m, constant_weights=promise)
                function.save(str(bundle_of(args.compile, kind, model, m, promise)))
        return 0
    if not args.dry_run:
        if args.bundles is None:
            compile_all(list(itertools.product(args.kinds.split(","), models, tokens)), args.workers)
        with Device() as device:
            result |= duel.header(device)
    others = () if args.eager_only else ("graph",) if args.graphs_only else ("graph", "calls")
    earlier_cases = json.loads(args.json.read_text())["cases"] if args.json and args.json.is_file() else []
    cases: list[dict[str, Any]] = []
    for model in models:
        for kind in args.kinds.split(","):
            for m in tokens:
                case: dict[str, Any] = {"model": asdict(model), "kind": kind, "tokens": m}
                case["date"] = now()
                try:
                    case |= dry_run(kind, model, m) if args.dry_run else measured(args.bundles, kind, model, m, others)
                except stepladder.StepladderError as error:  # the other cases are measured all the same
                    case |= {"passed": False, "refused": error.render()}
                cases.append(case)
                summary = case.get("ratios", case.get("refused", f"error {case.get('error', 0):.1e}"))
                print(f"{model.name} {kind} {m}: {summary}", file=sys.stderr, flush=True)
                names = {_name(item) for item in cases}
                result["cases"] = [*(item for item in earlier_cases if _name(item) not in names), *cases]
                if args.json:  # what took long to measure is safe
                    write_result(args.json, result)
    if not args.json:
        print(json.dumps(result, indent=1))
    return 0 if all(case["passed"] for case in cases) else 1


if __name__ == "__main__":
    run(main)
