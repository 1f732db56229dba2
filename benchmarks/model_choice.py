"""Measures how well knobs are chosen for random problems (`draw.py`), beside cuBLAS.

Where both MLIR and a GPU are, with PyTorch:

    python benchmarks/model_choice.py measure RESULT.json --types bf16-bf16 --part seen [--limit 540]
    python benchmarks/model_choice.py measure RESULT.json --types bf16-bf16 --part held-out
    python benchmarks/model_choice.py measure RESULT.json --types bf16-bf16 --part seen --everything 40
    python benchmarks/model_choice.py report RESULT.json ...

For every problem it measures the knobs that `stepladder compile` takes and the model's first four settings; with
`--everything N`, for the first N problems only, up to 48 settings that the model predicts within a factor of 1.5 of its
first. Kernels are built on all cores, a group of problems at a time, compared with the result of cuBLAS, and timed in
turn with it. The result is written after every group; the same command continues it, and starts no group after
`--limit` seconds. `fit_cost_model.py` reads these results too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import new_parser, run
from draw import COUNT, Drawn, draw
from measured_kernels import write_table
from model_report import DEFAULT, FIRST, MOST, report

if TYPE_CHECKING:
    import torch

    from stepladder.measure.timing import Mode, Runner
    from stepladder.runtime.device import Buffer
    from stepladder.runtime.launch import MatmulBuffers

# Element types of A and B, of the accumulator and of C.
TYPES = {"bf16-bf16": ("bf16", "f32", "bf16"), "f16-f32": ("f16", "f32", "f32")}
PIPELINE, TARGET = "wgmma", "sm_90a"
FACTOR = 1.5
GROUP = 30
ROUNDS, SECONDS = 4, 0.004
# Largest difference of C from that of cuBLAS, as a fraction of its largest element: the order of additions differs.
TOLERANCE = {"bf16": 2e-2, "f32": 1e-3}
KNOBS = (
    "block_m",
    "block_n",
    "block_k",
    "consumer_warpgroups",
    "schedule",
    "stages",
    "persistent_blocks",
    "cluster_m",
    "cluster_n",
    "split_k",
    "split_k_workspace",
    "raster_group",
    "epilogue",
    "epilogue_stages",
    "tile_scheduler",
    "dependent_launch",
)
COLUMNS = (
    "m",
    "n",
    "k",
    "kind",
    "held_out",
    "place",
    "source",
    *KNOBS,
    "predicted_microseconds",
    "microseconds",
    "cublas_microseconds",
)


@dataclass(frozen=True)
class Job:
    """A kernel to build: a problem, its place among the choices, its knobs (None: what `compile` takes)."""

    problem: Drawn
    types: tuple[str, str, str]
    place: int
    knobs: dict[str, int | str] | None
    predicted: float
    folder: Path

    @property
    def path(self) -> Path:
        """Returns the folder of the bundle."""
        return self.folder / f"{self.problem.name}_{self.place + 1}"


@dataclass(frozen=True)
class Built:
    """A kernel that was built, with its knobs and their source, or the reason why it was refused."""

    job: Job
    knobs: dict[str, int | str]
    source: str
    refused: str = ""


def _payload(problem: Drawn, types: tuple[str, str, str]) -> str:
    from stepladder.payload.writing import matmul_text

    element, accumulator, stored = types
    return matmul_text(
        *problem.size, a_type=element, b_type=element, acc_type=accumulator, c_type=stored, accumulate=False
    )


def plan(problem: Drawn, types: tuple[str, str, str], everything: bool, folder: Path) -> list[Job]:
    """Returns what to build for a problem."""
    from stepladder.pipeline import knob_choice, library
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.knob_query import read_query
    from stepladder.pipeline.request import Request

    with mlir_context():
        pipeline = library.load(PIPELINE)
        request = Request(PIPELINE, {"target": TARGET}, tuned=True)
        ranked = knob_choice.rank(read_query(pipeline, request, _payload(problem, types), problem.name))
    candidates = ranked.first(MOST if everything else FIRST) if ranked is not None else []
    kept = [candidate for candidate in candidates if candidate.microseconds <= FACTOR * candidates[0].microseconds]
    jobs = [
        Job(problem, types, place, candidate.knobs, candidate.microseconds, folder)
        for place, candidate in enumerate(kept if everything else candidates)
    ]
    return [Job(problem, types, DEFAULT, None, 0.0, folder), *jobs]


def build_one(job: Job) -> Built:
    """Builds a kernel."""
    from stepladder.pipeline import build
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request
    from stepladder.runtime import bundle
    from stepladder.runtime.errors import StepladderError

    try:
        with mlir_context():
            request = Request(PIPELINE, {**(job.knobs or {}), "target": TARGET}, tuned=job.knobs is None)
            built = build.build(_payload(job.problem, job.types), job.problem.name, request, use_cache=False)
            bundle.write_bundle(job.path, built.manifest, built.code.cubin, built.code.ptx, {})
    except StepladderError as error:
        return Built(job, job.knobs or {}, "", error.message)
    return Built(job, dict(built.manifest.knobs), built.run.knob_source.kind)


class Gpu:
    """The GPU: checks and times the kernels of one problem after another."""

    def __init__(self) -> None:
        import torch

        from stepladder.runtime.device import Device

        torch.zeros(1, device="cuda")
        self.torch, self.device = torch, Device()

    def _view(self, buffer: Buffer, shape: tuple[int, int], element: str) -> torch.Tensor:
        """Returns a buffer as a tensor of its elements."""
        forms = {"bf16": ("<i2", self.torch.bfloat16), "f16": ("<f2", None), "f32": ("<f4", None)}
        form, viewed = forms[element]

        interface = {"shape": shape, "typestr": form, "version": 2, "data": (buffer.address, False)}
        tensor = self.torch.as_tensor(SimpleNamespace(__cuda_array_interface__=interface), device="cuda")
        return tensor if viewed is None else tensor.view(viewed)

    def _result(self, buffers: MatmulBuffers) -> torch.Tensor:
        """Returns a copy of C, as f32."""
        problem = buffers.problem
        return self._view(buffers.c, (problem.m, problem.n), problem.c_type).to(self.torch.float32, copy=True)

    def measure(self, built: Sequence[Built]) -> Iterator[tuple[Built, float, float]]:
        """Yields the correct kernels of a problem, with their median time and that of cuBLAS in us."""
        from stepladder.measure.baselines import cublas
        from stepladder.measure.timing import Contestant, Mode, Runner
        from stepladder.runtime.bundle import read_bundle
        from stepladder.runtime.errors import StepladderError
        from stepladder.runtime.launch import MatmulBuffers

        problem = read_bundle(built[0].job.path).manifest.problem
        mode = Mode(SECONDS, 0.0)
        with MatmulBuffers(self.device, problem) as buffers:
            for buffer, shape, element in (
                (buffers.a, problem.a_shape, problem.a_type),
                (buffers.b, problem.b_shape, problem.b_type),
            ):
                self._view(buffer, shape, element).normal_()
            self.torch.cuda.synchronize()
            library = cublas(buffers)
            library.enqueue()
            self.device.synchronize()
            expected = self._result(buffers)
            limit = TOLERANCE[problem.c_type] * expected.abs().max().item()
            reference = Runner(self.device, Contestant("cublas", problem.flops, library.enqueue))
            for one in built:
                try:
                    bundle = read_bundle(one.job.path)
                    enqueue = buffers.launcher(self.device.load(bundle), bundle)
                    self._poison(buffers.c)
                    enqueue()
                    self.device.synchronize()
                    error = (self._result(buffers) - expected).abs().max().item()
                    if not error <= limit:
                        print(f"{one.job.problem.name} {one.knobs}: WRONG by {error:.3g} of {limit:.3g}", flush=True)
                        continue
                    own = Runner(self.device, Contestant("own", problem.flops, enqueue))
                    yield one, *self._times(own, reference, mode)
                    own.free()
                except StepladderError as error:
                    print(f"{one.job.problem.name} {one.knobs}: {error.message}", flush=True)
            reference.free()

    def _poison(self, buffer: Buffer) -> None:
        """Fills C with NaN."""
        self.torch.as_tensor(buffer, device="cuda").fill_(0xFF)
        self.torch.cuda.synchronize()

    @staticmethod
    def _times(own: Runner, reference: Runner, mode: Mode) -> tuple[float, float]:
        """Returns the median times in us, after a first round that does not count."""
        times: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            measured = [runner.measure(mode, lambda seconds: None) for runner in (own, reference)]
            times.append(tuple(one["milliseconds"] / one["launches"] * 1e3 for one in measured))
        first, second = zip(*times[1:])
        return statistics.median(first), statistics.median(second)


def _row(built: Built, own: float, cublas: float) -> list[Any]:
    problem, job = built.job.problem, built.job
    return [
        *problem.size,
        problem.kind,
        problem.held_out,
        job.place,
        built.source,
        *(built.knobs.get(name, "") for name in KNOBS),
        round(job.predicted, 3),
        round(own, 3),
        round(cublas, 3),
    ]


def _head(types: tuple[str, str, str], card: dict[str, Any]) -> dict[str, Any]:
    element, accumulator, stored = types
    return {
        "schema_version": 1,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": [Path(word).name if Path(word).is_absolute() else word for word in sys.argv],
        "card": card,
        "what": "knobs that are chosen for drawn problems, hot L2, in turn with cuBLAS, median of 3 rounds",
        "problem": {
            "a_type": element,
            "b_type": element,
            "acc_type": accumulator,
            "c_type": stored,
            "accumulate": False,
            "a_layout": "row",
            "b_layout": "row",
        },
        "pipeline": PIPELINE,
        "knobs": {"target": TARGET},
    }


def measure(args: argparse.Namespace) -> None:
    """Measures what the result does not have yet."""
    began = time.monotonic()
    types = TYPES[args.types]
    wanted = [problem for problem in draw(args.count) if problem.held_out == (args.part == "held-out")]
    wanted = wanted[: args.everything] if args.everything else wanted
    path = Path(args.result)
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    done = {tuple(row[:3]) for row in rows}
    wanted = [problem for problem in wanted if problem.size not in done]
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    size = max(1, GROUP * FIRST // MOST) if args.everything else GROUP
    gpu: Gpu | None = None
    with ProcessPoolExecutor(args.jobs) as pool, tempfile.TemporaryDirectory() as temporary:
        # The pool's processes start before the GPU is opened in this one.
        groups = [wanted[start : start + size] for start in range(0, len(wanted), size)]
        for number, group in enumerate(groups):
            if time.monotonic() - began > args.limit:
                print(f"out of time, {len(groups) - number} groups are left: the same command goes on")
                return
            folder = Path(temporary, str(number))
            planned = list(
                pool.map(plan, group, [types] * len(group), [bool(args.everything)] * len(group), [folder] * len(group))
            )
            built = list(pool.map(build_one, [job for jobs in planned for job in jobs], chunksize=2))
            for one in built:
                if one.refused:
                    print(f"{one.job.problem.name} {one.knobs}: REFUSED: {one.refused}", flush=True)
            print(f"{len(built)} kernels built, {time.monotonic() - began:.0f} s", flush=True)
            gpu = gpu or Gpu()
            for problem in group:
                own = [one for one in built if one.job.problem == problem and not one.refused]
                rows += [_row(*measured) for measured in gpu.measure(own)] if own else []
            write_table(path, _head(types, gpu.device.describe()), list(COLUMNS), rows)
            shutil.rmtree(folder, ignore_errors=True)
            print(f"{number + 1} of {len(groups)} groups measured, {time.monotonic() - began:.0f} s", flush=True)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="PART")
    own = commands.add_parser("measure", help="build and time the chosen kernels, on the GPU")
    own.add_argument("result", metavar="RESULT.json", help="file to write, or to continue")
    own.add_argument("--types", choices=TYPES, default="bf16-bf16", help="element types (default: bf16-bf16)")
    own.add_argument(
        "--part", choices=("seen", "held-out"), default="seen", help="half of the problems (default: seen)"
    )
    own.add_argument("--everything", type=int, default=0, metavar="N", help="many settings of the first N problems")
    own.add_argument(
        "--count", type=int, default=COUNT, metavar="N", help=f"problems that are drawn (default: {COUNT})"
    )
    own.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes that build")
    own.add_argument(
        "--limit",
        type=float,
        default=540,
        metavar="SECONDS",
        help="start no group of problems after these (default: 540)",
    )
    own.set_defaults(run=measure)
    reporting = commands.add_parser("report", help="print how good the choices of results are")
    reporting.add_argument("results", nargs="+", metavar="RESULT.json", help="files that `measure` wrote")
    reporting.set_defaults(run=report)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Measures or reports."""
    args = make_parser().parse_args(argv)
    args.run(args)


if __name__ == "__main__":
    run(main)
