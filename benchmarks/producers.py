"""Measures products of which elementwise ops make an operand: in a kernel in front, in registers, and by libraries.

    python benchmarks/producers.py build FOLDER [--rows 1 16 ...] [--settings 3]
    python benchmarks/producers.py measure FOLDER [RESULT.json]
    python benchmarks/producers.py report [RESULT.json]

`build` needs MLIR and `measure` a GPU with PyTorch, both without the other. The sizes are those of linear layers of
language models. Launches go through copies of the operands of 400 MB together: no launch finds its weights in the L2
cache. `cublas` multiplies a matrix that was made before; `torch` is PyTorch's kernel for weights of i8, of few rows.
Contestants run in turn, and every kernel is compared with PyTorch first.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import DOCS, main_of_parts, new_parser, run, write_result
from producer_cases import DEFAULT, FRONT, KINDS, REGISTERS, ROWS, Case, Job, build, cases, made, plan
from stepladder.runtime.processes import end_with_pool

PLAN = "plan.json"  # in the folder of the bundles
RESULT = DOCS / "results" / "producers.json"
ROTATED_BYTES = 400e6
FEW_ROWS = 16  # beyond which PyTorch's kernel takes milliseconds
ROUNDS, SECONDS = 4, 0.004
TOLERANCE = 2e-2  # of the largest element


class Bench:
    """The GPU: checks and times the kernels of a case."""

    def __init__(self) -> None:
        import torch  # pyright: ignore[reportMissingImports]

        from stepladder.runtime.device import Device

        torch.zeros(1, device="cuda")
        self.torch, self.device = torch, Device()
        self.stream = torch.cuda.ExternalStream(self.device.stream)

    def measure(self, case: Case, jobs: Sequence[Job], folder: Path) -> dict[str, Any]:
        """Returns the times of all kernels of a case and of the libraries.

        Args:
            case: what is computed.
            jobs: its kernels, of which those that were built are measured.
            folder: of the bundles.
        """
        from stepladder.measure.baselines import cublas
        from stepladder.measure.rotation import in_turn, operand_bytes
        from stepladder.measure.timing import Contestant, Mode, Runner
        from stepladder.runtime.bundle import read_bundle
        from stepladder.runtime.launch import MatmulBuffers

        bundles = {job: read_bundle(folder / job.name) for job in jobs if (folder / job.name).exists()}
        problem = next(iter(bundles.values())).manifest.problem
        result: dict[str, Any] = {"kind": case.kind, "m": case.m, "n": case.n, "k": case.k, "kernels": []}
        with ExitStack() as stack:
            count = max(1, math.ceil(ROTATED_BYTES / operand_bytes(problem)))
            copies = [stack.enter_context(MatmulBuffers(self.device, problem)) for _ in range(count)]
            plain_count = max(1, math.ceil(ROTATED_BYTES / operand_bytes(problem.alone)))
            plain = [stack.enter_context(MatmulBuffers(self.device, problem.alone)) for _ in range(plain_count)]
            weights, scales = [self._fill(case, buffers) for buffers in copies][0]
            expected = self._expected(case, copies[0], plain)
            calls: dict[str, Sequence[Callable[[], None]]] = {"cublas": [cublas(buffers).enqueue for buffers in plain]}
            if KINDS[case.kind].stored == "i8" and case.m <= FEW_ROWS:
                calls["torch"] = [self._packed(case, buffers) for buffers in copies]
            for job, bundle in bundles.items():
                kernel = self.device.load(bundle)
                calls[job.name] = [buffers.launcher(kernel, bundle) for buffers in copies]
            runners: dict[str, Runner] = {}
            for name, launches in calls.items():
                wrong = (
                    self._wrong(problem, copies[0], launches[0], expected) if name not in ("cublas", "torch") else ""
                )
                if wrong:
                    print(f"{name}: WRONG by {wrong}", flush=True)
                    continue
                try:
                    contestant = Contestant(name, problem.flops, in_turn(launches), cycle=len(launches))
                    runners[name] = Runner(self.device, contestant)
                except RuntimeError as error:
                    print(f"{case.name}, {name}: {str(error).splitlines()[0]}", flush=True)
            samples: dict[str, list[float]] = {name: [] for name in runners}
            for _ in range(ROUNDS):
                for name, runner in runners.items():
                    sample = runner.measure(Mode(SECONDS, 0.0), lambda seconds: None)
                    samples[name].append(sample["milliseconds"] / sample["launches"] * 1e3)
            for runner in runners.values():
                runner.free()
        medians = {name: round(statistics.median(times[1:]), 3) for name, times in samples.items()}
        for job, bundle in bundles.items():
            if job.name in medians:
                result["kernels"].append(
                    {
                        "place": job.place,
                        "us": medians[job.name],
                        "predicted": round(job.predicted, 3),
                        "knobs": dict(bundle.manifest.knobs),
                    }
                )
        del weights, scales
        return result | {name: medians[name] for name in ("cublas", "torch") if name in medians}

    def _tensor(self, buffer: Any) -> Any:  # noqa: ANN401
        return self.torch.as_tensor(buffer, device="cuda")

    def _fill(self, case: Case, buffers: Any) -> tuple[Any, Any]:  # noqa: ANN401
        """Fills the operands; returns the source of the operand that is made, and its scales."""
        torch, kind = self.torch, KINDS[case.kind]
        type_ = torch.float16 if kind.type == "f16" else torch.bfloat16
        a, b = self._tensor(buffers.a), self._tensor(buffers.b)
        a.view(type_).normal_()
        if not case.makes_weights:
            b.view(type_).normal_()
            torch.cuda.synchronize()
            return a, None
        if kind.stored.startswith("f8"):
            b.copy_(torch.randn(b.shape, device="cuda").to(torch.float8_e4m3fn).view(torch.uint8))
        else:
            b.random_(0, 256)
        scales = self._tensor(buffers.further[0]).view(type_)
        scales.uniform_(0.001, 0.002)
        torch.cuda.synchronize()
        return b, scales

    def _expected(self, case: Case, buffers: Any, plain: Sequence[Any]) -> Any:  # noqa: ANN401
        """Returns C by PyTorch, and fills the matrices that cuBLAS multiplies."""
        torch, kind = self.torch, KINDS[case.kind]
        type_ = torch.float16 if kind.type == "f16" else torch.bfloat16
        a, b = self._tensor(buffers.a), self._tensor(buffers.b)
        if case.makes_weights:
            left = a.view(type_).view(case.m, case.k)
            right = made(torch, case, b, self._tensor(buffers.further[0]).view(type_))
        else:
            left, right = made(torch, case, a, None), b.view(type_).view(case.n, case.k)
        for operands in plain:
            self._tensor(operands.a).view(type_).view(left.shape).copy_(left)
            self._tensor(operands.b).view(type_).view(right.shape).copy_(right)
        expected = (left @ right.T).float()
        torch.cuda.synchronize()
        return expected

    def _packed(self, case: Case, buffers: Any) -> Callable[[], None]:  # noqa: ANN401
        """Returns PyTorch's kernel for weights of i8."""
        torch = self.torch
        type_ = torch.float16 if KINDS[case.kind].type == "f16" else torch.bfloat16
        a = self._tensor(buffers.a).view(type_).view(case.m, case.k)
        b = self._tensor(buffers.b).view(torch.int8).view(case.n, case.k)
        scales = self._tensor(buffers.further[0]).view(type_)

        def call() -> None:
            with torch.cuda.stream(self.stream):
                torch._weight_int8pack_mm(a, b, scales)

        return call

    def _wrong(self, problem: Any, buffers: Any, launch: Callable[[], None], expected: Any) -> str:  # noqa: ANN401
        """Launches a kernel; returns by how much C is wrong, or an empty text."""
        torch = self.torch
        c = self._tensor(buffers.c)
        c.fill_(0xFF)
        torch.cuda.synchronize()
        launch()
        self.device.synchronize()
        type_ = torch.float16 if problem.c_type == "f16" else torch.bfloat16
        error = (c.view(type_).view(expected.shape).float() - expected).abs().max().item()
        limit = TOLERANCE * expected.abs().max().item()
        return "" if error <= limit else f"{error:.3g} of {limit:.3g}"


def build_all(args: argparse.Namespace) -> None:
    """Builds the kernels of all cases.

    Args:
        args: of the command line.
    """
    folder = Path(args.folder)
    folder.mkdir(exist_ok=True)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    selected = list(cases(tuple(args.kinds), tuple(args.rows)))
    with ProcessPoolExecutor(args.jobs, initializer=end_with_pool) as pool:
        jobs = [job for of_case in pool.map(partial(plan, settings=args.settings), selected) for job in of_case]
        for job, refused in zip(jobs, pool.map(partial(build, folder=folder), jobs, chunksize=2)):
            if refused:
                print(f"{job.name} {dict(job.knobs)}: REFUSED: {refused}", flush=True)
    write_result(folder / PLAN, {"jobs": [asdict(job) for job in jobs]})
    print(f"{len(jobs)} kernels", flush=True)


def measure(args: argparse.Namespace) -> None:
    """Measures the kernels that were built.

    Args:
        args: of the command line.
    """
    from duel import header

    folder = Path(args.folder)
    planned: dict[Case, list[Job]] = {}
    for entry in json.loads((folder / PLAN).read_text())["jobs"]:
        job = Job(**{**entry, "case": Case(**entry["case"])})
        planned.setdefault(job.case, []).append(job)
    bench = Bench()
    results = []
    for case, jobs in planned.items():
        results.append(bench.measure(case, jobs, folder))
        print(_line(results[-1]), flush=True)
        write_result(args.result, {**header(bench.device), "cases": results})


def _best(case: dict[str, Any], places: Callable[[int], bool]) -> float:
    return min((kernel["us"] for kernel in case["kernels"] if places(kernel["place"])), default=math.nan)


def _line(case: dict[str, Any]) -> str:
    """Returns a line of the report."""
    default, front = (_best(case, place.__eq__) for place in (DEFAULT, FRONT))
    registers = _best(case, REGISTERS.__le__)
    return (
        f"{case['kind']:20} {case['m']:5} {case['n']:6} {case['k']:6}: default {default:8.2f}, kernels {front:8.2f}, "
        f"registers {registers:8.2f}, cublas {case.get('cublas', math.nan):8.2f}, "
        f"torch {case.get('torch', math.nan):8.2f}"
    )


def report(args: argparse.Namespace) -> None:
    """Prints the times of a result.

    Args:
        args: of the command line.
    """
    for case in json.loads(Path(args.result).read_text())["cases"]:
        print(_line(case))


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="PART")
    building = commands.add_parser("build", help="build the kernels")
    building.add_argument("folder", metavar="FOLDER", help="of the bundles")
    building.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), help="what makes an operand")
    building.add_argument("--rows", type=int, nargs="+", default=ROWS, metavar="M", help="rows of A")
    building.add_argument("--settings", type=int, default=3, metavar="N", help="settings with registers (default: 3)")
    building.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes that build")
    building.set_defaults(run=build_all)
    timed = commands.add_parser("measure", help="time the kernels, on the GPU")
    timed.add_argument("folder", metavar="FOLDER", help="of the bundles")
    timed.add_argument("result", type=Path, nargs="?", default=RESULT, metavar="RESULT.json", help="file to write")
    timed.set_defaults(run=measure)
    reporting = commands.add_parser("report", help="print the times")
    reporting.add_argument("result", type=Path, nargs="?", default=RESULT, metavar="RESULT.json", help="file to read")
    reporting.set_defaults(run=report)
    return parser


main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
