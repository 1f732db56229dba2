"""Measures the kernels of gated MLPs of few rows by knobs, beside PyTorch: gate and up as one kernel, and down.

    python benchmarks/pairs_few_rows.py --json docs/results/pairs_few_rows.json [--tokens 1,8,32] [--models Llama]
    python benchmarks/pairs_few_rows.py --dry-run

In bf16, on one stream, in CUDA graphs of 20 launches; contestants run in turn, and every number is the median of five
rounds. The weights of a model are larger than the L2 cache, so that each launch reads them from memory. The knobs are
those that are chosen by default, and combinations of tiles, clusters, schedules and epilogues, which --default-knobs
leaves out. The numbers of each kernel are compared with PyTorch's in f32 first. --dry-run compiles some of the kernels,
for sm_90a.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import stepladder
from common import new_parser, origin, run, write_result
from model_functions import MODELS, Model, Text
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.processes import end_with_pool
from stepladder.verify.tolerance import Tolerance

LAUNCHES = 20
ROUNDS = 5
_COMMON = {"block_m": 64, "block_k": 64, "consumer_warpgroups": 1, "cluster_m": 1, "dependent_launch": 1}
# Widths of tiles of either product, with the stages that fit.
_TILES = ((16, 16), (32, 13), (48, 11), (56, 10), (64, 9), (72, 8), (112, 5), (128, 5), (144, 4))

Job = tuple[str, int, str, dict[str, Any]]


def pair(model: Model, m: int) -> str:
    """Returns the text of silu(x gate^T) * (x up^T).

    Args:
        model, m: widths of the model, and rows of x.
    """
    text = Text()
    x, mlp_shape = text.argument(m, model.hidden), (m, model.mlp)
    sigmoid = ["%n = arith.negf %x0 : bf16", "%e = math.exp %n : bf16", "%d = arith.addf %e, %one : bf16"]
    gate = text.linear(x, m, model.hidden, model.mlp)
    gate = text.elementwise(mlp_shape, {gate: "bf16"}, [*sigmoid, "%y = arith.divf %x0, %d : bf16"])
    up = text.linear(x, m, model.hidden, model.mlp)
    product = text.elementwise(mlp_shape, {gate: "bf16", up: "bf16"}, ["%y = arith.mulf %x0, %x1 : bf16"])
    return text.function("pair", {product: mlp_shape})


def down(model: Model, m: int) -> str:
    """Returns the text of x down^T.

    Args:
        model, m: widths of the model, and rows of x.
    """
    text = Text()
    x = text.argument(m, model.mlp)
    return text.function("down", {text.linear(x, m, model.mlp, model.hidden): (m, model.hidden)})


def jobs(model: Model, tokens: list[int], by_knobs: bool = True) -> list[Job]:
    """Returns the kernels of a model: which, rows, text, knobs.

    Args:
        model: its widths.
        tokens: numbers of rows.
        by_knobs: whether the combinations of knobs are among them.
    """
    all_jobs: list[Job] = []
    for m in tokens:
        all_jobs += [("down", m, down(model, m), {}), ("pair", m, pair(model, m), {})]
        if not by_knobs:
            continue
        settings = itertools.product(_TILES, (1, 2), ("cooperative", "pingpong"), ("registers", "tma"))
        for (block_n, stages), cluster_n, schedule, epilogue in settings:
            knobs = {"block_n": block_n, "stages": stages, "cluster_n": cluster_n, "schedule": schedule}
            all_jobs.append(("pair", m, pair(model, m), {**_COMMON, **knobs, "epilogue": epilogue}))
    return all_jobs


def compiled(job: Job) -> stepladder.Kernel | None:
    """Returns a kernel; None where the pipeline refuses its knobs.

    Args:
        job: which.
    """
    _, _, text, knobs = job
    try:
        kernel = stepladder.compile(text, target="sm_90a", pipeline="wgmma", **knobs)
    except StepladderError:
        return None
    assert isinstance(kernel, stepladder.Kernel)
    return kernel


def _is_compiled(job: Job) -> bool:
    return compiled(job) is not None


def measure(model: Model, m: int, kernels: list[Job]) -> list[dict[str, Any]]:
    """Returns the times of all kernels of a number of rows, beside PyTorch.

    Args:
        model, m: widths of the model, and rows.
        kernels: its kernels.

    Raises:
        AssertionError: a kernel computes wrong numbers.
    """
    import torch  # pyright: ignore[reportMissingImports]
    from torch.nn import functional  # pyright: ignore[reportMissingImports]

    def weight(rows: int, columns: int) -> Any:  # noqa: ANN401
        return (torch.randn(rows, columns, device="cuda") / columns**0.5).bfloat16()

    torch.manual_seed(0)
    x = torch.randn(m, model.hidden, device="cuda").bfloat16()
    gate, up = (weight(model.mlp, model.hidden) for _ in range(2))
    last = weight(model.hidden, model.mlp)

    def gated(x: Any, gate: Any, up: Any) -> Any:  # noqa: ANN401
        return functional.silu(functional.linear(x, gate)) * functional.linear(x, up)

    references = {"pair": gated(x.double(), gate.double(), up.double())}
    hidden = references["pair"].bfloat16()
    references["down"] = functional.linear(hidden.double(), last.double())
    operands = {"pair": (x, gate, up), "down": (hidden, last)}
    calls: list[tuple[dict[str, Any], Callable[[], object]]] = [
        ({"kernel": "pair", "by": "eager"}, lambda: gated(*operands["pair"])),
        ({"kernel": "down", "by": "eager"}, lambda: functional.linear(*operands["down"])),
    ]
    for kind, _, text, knobs in kernels:
        kernel = compiled((kind, m, text, knobs))
        assert kernel is not None
        out = torch.empty_like(references[kind], dtype=torch.bfloat16)
        kernel(*operands[kind], out=out)
        # The relative errors of the two products of a pair add.
        tolerance = Tolerance.of(kernel.manifest.problem).norm * (2 if kind == "pair" else 1)
        if not (out.double() - references[kind]).norm() <= tolerance * references[kind].norm():
            raise AssertionError(f"wrong numbers: {kind}, {m} rows, {knobs}")
        described = {"kernel": kind, "by": "knobs" if knobs else "default", "knobs": kernel.manifest.knobs}
        calls.append((described, lambda kernel=kernel, kind=kind, out=out: kernel(*operands[kind], out=out)))
    return [{"model": model.name, "tokens": m, **description, "us": us} for description, us in _in_turn(torch, calls)]


def _in_turn(
    torch: Any,  # noqa: ANN401
    calls: list[tuple[dict[str, Any], Callable[[], object]]],
) -> list[tuple[dict[str, Any], list[float]]]:
    """Returns the microseconds of a launch in every round, by contestant."""
    graphs = []
    for _, call in calls:
        with torch.cuda.stream(torch.cuda.Stream()):
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(LAUNCHES):
                call()
        graphs.append(graph)
    times: list[list[float]] = [[] for _ in graphs]
    for _ in range(ROUNDS):
        for graph, samples in zip(graphs, times):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            graph.replay()
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            samples.append(begin.elapsed_time(end) * 1e3 / LAUNCHES)
    return [(description, samples) for (description, _), samples in zip(calls, times)]


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the results; standard output if not given")
    parser.add_argument("--dry-run", action="store_true", help="compile four kernels of the first model")
    parser.add_argument("--models", default="", help="beginning of the names of models")
    parser.add_argument("--tokens", default="1,8,32", help="numbers of tokens, separated by commas")
    parser.add_argument("--default-knobs", action="store_true", help="the knobs that are chosen by default alone")
    parser.add_argument("--workers", type=int, default=14, help="processes that compile")
    return parser


def main() -> int:
    """Measures all kernels; returns the exit status.

    Raises:
        AssertionError: a kernel computes wrong numbers.
    """
    args = make_parser().parse_args()
    tokens = [int(word) for word in args.tokens.split(",")]
    models = [model for model in MODELS if model.name.startswith(args.models)]
    if args.dry_run:
        return 0 if all(map(_is_compiled, jobs(models[0], tokens)[:4])) else 1
    cases: list[dict[str, Any]] = []
    for model in models:
        all_jobs = jobs(model, tokens, not args.default_knobs)
        with ProcessPoolExecutor(args.workers, initializer=end_with_pool) as pool:
            ready_jobs = [job for job, is_made in zip(all_jobs, pool.map(_is_compiled, all_jobs)) if is_made]
        for m in tokens:
            cases += measure(model, m, [job for job in ready_jobs if job[1] == m])
            for case in sorted((case for case in cases if case["tokens"] == m), key=lambda item: min(item["us"]))[:8]:
                print(
                    model.name, m, case["kernel"], case["by"], f"{statistics.median(case['us']):.1f}", file=sys.stderr
                )
    result = {
        "schema_version": 1,
        **origin(),
        "card": Device().describe(),
        "cases": cases,
    }
    if args.json:
        write_result(args.json, result)
    else:
        print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    run(main)
