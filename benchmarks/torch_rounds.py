"""Times of calls beside PyTorch's: contestants in turn, CUDA graphs of calls, and the command line of such scripts."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import stepladder
from common import new_parser, origin, write_result
from stepladder.runtime.device import Device
from stepladder.verify.function_tolerance import norm_tolerance

Case = TypeVar("Case")

ROUNDS = 7
SECONDS = 0.05  # of a contestant in a round


def captured(torch: Any, call: Callable[[], object]) -> Callable[[], object] | None:  # noqa: ANN401
    """Returns the replay of a CUDA graph of a call; None where it cannot be captured.

    The replay keeps the call, and with it the arrays and kernels that the graph uses: PyTorch returns the memory of
    arrays that nothing refers to, to the driver when it captures the next graph.

    Args:
        torch: the module.
        call: what is captured.
    """
    try:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
    except Exception as error:  # of PyTorch's compiler and of the driver, of many kinds
        print(f"note: not captured: {error}", file=sys.stderr)
        return None

    def replay(_kept: Callable[[], object] = call) -> None:
        graph.replay()

    return replay


def in_turn(torch: Any, calls: dict[str, Callable[[], object]]) -> dict[str, list[float]]:  # noqa: ANN401
    """Returns the microseconds of a call of each contestant, in every round.

    Args:
        torch: the module.
        calls: of the contestants, by name.
    """
    counts: dict[str, int] = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(10):
            call()
        torch.cuda.synchronize()
        counts[name] = max(10, int(SECONDS / ((time.perf_counter() - began) / 10)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(ROUNDS):
        names = list(calls)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(counts[name]):
                calls[name]()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) / counts[name] * 1e3)
    return times


def graphs_in_turn(torch: Any, calls: dict[str, Callable[[], object]]) -> dict[str, list[float]]:  # noqa: ANN401
    """Returns the microseconds of a CUDA graph of each contestant, in every round; those without a graph are left out.

    Args:
        torch: the module.
        calls: of the contestants, by name.
    """
    graphs = {name: graph for name, call in calls.items() if (graph := captured(torch, call)) is not None}
    return in_turn(torch, graphs)


def ways_beside(
    torch: Any,  # noqa: ANN401
    functions: dict[str, Any],
    tensors: list[Any],
    eager: Callable[..., Any],
    *,
    rates_eager: bool = False,
) -> dict[str, Any]:
    """Returns the errors, tolerances and times of functions that compute the same, and the times of PyTorch's.

    Args:
        torch: the module.
        functions: compiled, by name.
        tensors: their arguments, the first of which has the shape and type of the result.
        eager: computes the result by PyTorch; of tensors of f64, what is expected.
        rates_eager: whether the result has the error of eager mode too.
    """
    expected = eager(*(tensor.double() for tensor in tensors))
    out = torch.empty_like(tensors[0])
    calls: dict[str, Callable[[], object]] = {"eager": lambda: eager(*tensors)}
    errors, tolerances = {}, {}
    for way, function in functions.items():
        out.fill_(float("nan"))
        function(*tensors, out=out)
        errors[way] = _error(out, expected)
        tolerances[way] = norm_tolerance(function.bundle)
        calls[way] = lambda function=function: function(*tensors, out=out)
    if rates_eager:
        errors["eager"] = _error(eager(*tensors), expected)
    del expected
    times = graphs_in_turn(torch, calls)
    print({name: round(median(samples), 1) for name, samples in times.items()}, file=sys.stderr, flush=True)
    passed = all(errors[way] <= tolerance for way, tolerance in tolerances.items())
    return {"errors": errors, "tolerances": tolerances, "passed": passed, "us": times}


def _error(result: Any, expected: Any) -> float:  # noqa: ANN401
    return float((result.double() - expected).norm() / expected.norm())


def rounds_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns the parser of a script that measures cases in turn, and can compile small ones without a GPU.

    Args:
        description: the script's docstring.
    """
    parser = new_parser(description)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result")
    parser.add_argument("--dry-run", action="store_true", help="compile small sizes, without times")
    return parser


def measure_cases(
    cases: Iterable[Case], measure: Callable[[Case], dict[str, Any]], shown: tuple[str, ...], file: Path | None
) -> int:
    """Measures cases, prints a line for each, and writes the result; returns the exit status.

    Args:
        cases: what is measured.
        measure: returns the result of a case, which tells in `passed` whether its numbers are right.
        shown: fields of a result that are printed.
        file: of the result; None for none.
    """
    with Device() as device:
        card = device.describe()
    results = []
    for case in cases:
        results.append(measure(case))
        print(*(results[-1].get(name) for name in shown), flush=True)
    if file:
        write_result(file, {**origin(), "card": card, "cases": results})
    return 0 if all(case["passed"] for case in results) else 1


def bundles_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns the parser of a script that compiles bundles without a GPU, and measures them without a compiler.

    Args:
        description: the script's docstring.
    """
    parser = new_parser(description)
    parser.add_argument("--compile", metavar="FOLDER", type=Path, help="write the bundles, and measure nothing")
    parser.add_argument("--bundles", metavar="FOLDER", type=Path, help="measure the bundles")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result")
    return parser


def compile_to(path: Path, text: str, **knobs: Any) -> None:  # noqa: ANN401
    """Compiles a payload without dynamic dimensions for a Hopper GPU, and writes its bundle.

    Args:
        path: of the bundle.
        text: the payload.
        knobs: those that are set.
    """
    kernel = stepladder.compile(text, target="sm_90a", **knobs)
    assert isinstance(kernel, stepladder.Function | stepladder.Kernel)
    kernel.save(str(path))


def main_of_bundles(
    parser: argparse.ArgumentParser,
    compile_all: Callable[[Path], None],
    cases: Iterable[Case],
    measure: Callable[[Path, Case], dict[str, Any]],
    shown: tuple[str, ...],
) -> int:
    """Compiles or measures all cases, as the command line asks; returns the exit status.

    Args:
        parser: of `bundles_parser`.
        compile_all: writes the bundles of all cases to a folder.
        cases: what is measured.
        measure: returns the result of a case, as for `measure_cases`, from the folder of the bundles.
        shown: fields of a result that are printed.
    """
    args = parser.parse_args()
    if args.compile:
        compile_all(args.compile)
        return 0
    if not args.bundles:
        parser.error("one of --compile and --bundles is required")
    return measure_cases(cases, lambda case: measure(args.bundles, case), shown, args.json)
