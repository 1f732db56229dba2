"""Measures the pipelines: what each step gains, and their speed over sizes.

Two halves, since the machine with the GPU need not have MLIR:

    python benchmarks/measure.py build FOLDER                        bundles of every kernel that is measured
    python benchmarks/measure.py ablation FOLDER RESULT.json --ablation wmma                  on the GPU
    python benchmarks/measure.py sizes FOLDER RESULT.json --pipeline wmma --acc f32           on the GPU
    python benchmarks/measure.py types FOLDER RESULT.json                                     on the GPU
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import command_line, new_parser, run, write_result
from stepladder.pipeline import ablation
from stepladder.runtime.processes import end_with_pool

if TYPE_CHECKING:
    from stepladder.runtime.bundle import Bundle

TARGET = "sm_90a"
# A setting is a tuple of values of these, as far as the pipeline has them.
KNOBS = ("block_m", "block_n", "block_k", "warp_m", "warp_n", "stages", "raster_group", "prefetch")
Setting = tuple[int | str, ...]

ABLATION_SIZE = 8192
# Ablation -> the tiles that it is measured with.
ABLATION_TILES = {
    "wmma": {"128x128x32": (128, 128, 32, 64, 64, 2, 1), "128x256x64": (128, 256, 64, 64, 64, 2, 1)},
    "wmma_asynchronous": {"128x256x64": (128, 256, 64, 64, 64, 3, 8)},
    "mma_sync": {"256x128x64": (256, 128, 64, 64, 64, 4, 8)},
}

SIZES = (256, 512, 1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192, 8448, 10240, 12288, 16384)
# Pipeline -> settings tried: for small problems; for large ones; for large ones with f32 accumulators; and with f16
# accumulators, which leave registers for warp tiles of twice the size. These are the settings that were best at some
# size, of more that were tried, and settings with cp.async for `wmma`.
REGISTERS, CP_ASYNC = "registers", "cp_async"
TILES: dict[str, dict[str, tuple[Setting, ...]]] = {
    "wmma": {
        "small": (
            (64, 64, 64, 32, 32, 2, 1, REGISTERS),
            (64, 64, 128, 32, 32, 2, 1, REGISTERS),
            (128, 64, 64, 64, 32, 2, 1, REGISTERS),
            (64, 64, 64, 32, 32, 4, 8, CP_ASYNC),
            (128, 64, 64, 64, 32, 4, 8, CP_ASYNC),
        ),
        "large": (
            (128, 128, 64, 64, 64, 3, 8, CP_ASYNC),
            (128, 256, 64, 64, 64, 3, 8, CP_ASYNC),
            (256, 128, 64, 64, 64, 3, 8, CP_ASYNC),
        ),
        "full": (
            (128, 128, 64, 64, 64, 2, 1, REGISTERS),
            (128, 256, 64, 64, 64, 2, 1, REGISTERS),
            (256, 128, 64, 64, 64, 2, 1, REGISTERS),
            (256, 128, 64, 64, 64, 4, 8, CP_ASYNC),
        ),
        "half": (
            (128, 128, 64, 64, 64, 1, 1, REGISTERS),
            (256, 128, 64, 64, 64, 1, 1, REGISTERS),
            (256, 256, 32, 64, 128, 2, 1, REGISTERS),
            (256, 256, 32, 64, 128, 3, 8, CP_ASYNC),
            (256, 256, 64, 64, 128, 3, 8, CP_ASYNC),
        ),
    },
    "mma_sync": {
        "small": ((64, 64, 64, 32, 32, 4, 8), (128, 64, 64, 64, 32, 4, 8)),
        "large": ((128, 128, 64, 64, 64, 3, 8), (256, 128, 64, 64, 64, 4, 8)),
        "full": (),
        "half": ((256, 128, 64, 64, 64, 3, 8), (256, 256, 64, 64, 128, 3, 8)),
    },
}
# The size at which small and large tiles are both tried.
SMALL_AND_LARGE = 1536

# Element types of A, B and C of mma_sync, with the knobs they are tried with.
TYPES = {
    "f16 -> f32": ("f16", "f32", {"block_m": 256, "block_k": 64, "stages": 4}),
    "f16 -> f16": ("f16", "f16", {"block_m": 256, "block_k": 64, "stages": 4}),
    "bf16 -> f32": ("bf16", "f32", {"block_m": 256, "block_k": 64, "stages": 4}),
    "tf32 -> f32": ("f32", "f32", {"warp_n": 32, "block_k": 32, "stages": 4, "allow_tf32": True}),
    "i8 -> i32": ("i8", "i32", {"warp_n": 32, "block_k": 64, "stages": 4}),
}
LAYOUTS = ("row", "column")
# Every type, layout and form is checked at a size that is no power of two; speed is measured at a large one.
TYPES_CHECKED = (768, 640, 1152)
TYPES_TIMED = (8192, 8192, 8192)
SEEDS = (0, 1, 2)


def tiles_for(pipeline: str, size: int, acc: str) -> list[Setting]:
    """Returns the knob settings that are tried for a size; their tiles divide it.

    Args:
        pipeline: its name.
        size: M = N = K.
        acc: the type of the accumulator.
    """
    tiles = TILES[pipeline]
    small = tiles["small"] if size <= SMALL_AND_LARGE else ()
    large = (*tiles["large"], *tiles["half" if acc == "f16" else "full"]) if size >= SMALL_AND_LARGE else ()
    return [*small, *large]


@dataclass(frozen=True)
class Job:
    """A bundle to build."""

    path: Path
    pipeline: str
    size: tuple[int, int, int]
    types: tuple[str, str]
    settings: dict[str, int | str]
    without: tuple[str, ...] = ()
    layouts: tuple[str, str] = ("row", "row")
    accumulate: bool = True
    # The type of the accumulator, where it is not C's.
    acc_type: str = ""
    # Whether `stepladder compile` chooses the knobs that are not set; otherwise they are the script's.
    tuned: bool = False


def refusal(path: Path) -> Path:
    """Returns the file with the reason why there is no bundle.

    Args:
        path: of the bundle.
    """
    return path.with_name(f"{path.name}.refused")


def _build_one(job: Job) -> str:
    from stepladder.payload.writing import matmul_text
    from stepladder.pipeline import build
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request
    from stepladder.runtime import bundle
    from stepladder.runtime.errors import StepladderError

    (element, c_type), (a_layout, b_layout) = job.types, job.layouts
    refusal(job.path).unlink(missing_ok=True)
    shutil.rmtree(job.path, ignore_errors=True)
    with mlir_context():
        try:
            text = matmul_text(
                *job.size,
                a_type=element,
                b_type=element,
                acc_type=job.acc_type or c_type,
                c_type=c_type,
                a_layout=a_layout,
                b_layout=b_layout,
                accumulate=job.accumulate,
            )
            built = build.build(
                text,
                "matmul.mlir",
                Request(job.pipeline, {**job.settings, "target": TARGET}, without=job.without, tuned=job.tuned),
            )
        except StepladderError as error:
            job.path.parent.mkdir(parents=True, exist_ok=True)
            refusal(job.path).write_text(error.message + "\n")
            return f"{job.path}: refused: {error.message}"
        # Without the dumps: hundreds of bundles are copied to the GPU machine.
        bundle.write_bundle(job.path, built.manifest, built.code.cubin, built.code.ptx, {}, reference=built.reference)
    spill_bytes = sum(built.manifest.spills.values())
    return f"{job.path}: {built.manifest.registers} registers" + (
        f", SPILLS {spill_bytes} bytes" if spill_bytes else ""
    )


def _name(tile: Setting) -> str:
    return "-".join(["x".join(map(str, tile[:3])), f"w{tile[3]}x{tile[4]}", f"s{tile[5]}", *map(str, tile[7:])])


def build_all(folder: Path, only: str) -> None:
    """Builds the bundles of all measurements, or of one.

    Args:
        folder: of the bundles.
        only: the name of the measurement; empty for all.
    """
    jobs = []
    for name, tiles in ABLATION_TILES.items():
        steps = ablation.ABLATIONS[name]
        for title, tile in tiles.items():
            for number, without in enumerate(steps.variants.values()):
                settings = steps.settings_of(without, dict(zip(KNOBS, tile)))
                jobs.append(
                    Job(
                        folder / "ablation" / name / title / f"{number}",
                        steps.pipeline,
                        (ABLATION_SIZE, ABLATION_SIZE, ABLATION_SIZE),
                        ("f16", "f32"),
                        settings,
                        without,
                    )
                )
    for pipeline in TILES:
        for acc in ("f32", "f16"):
            for size in SIZES:
                for tile in tiles_for(pipeline, size, acc):
                    jobs.append(
                        Job(
                            folder / pipeline / acc / str(size) / _name(tile),
                            pipeline,
                            (size, size, size),
                            ("f16", acc),
                            dict(zip(KNOBS, tile)),
                        )
                    )
    for name, (element, c_type, settings) in TYPES.items():
        for layouts in itertools.product(LAYOUTS, LAYOUTS):
            place = folder / "types" / name.replace(" -> ", "-") / "-".join(layouts)
            for accumulate in (True, False):
                jobs.append(
                    Job(
                        place / ("accumulate" if accumulate else "product"),
                        "mma_sync",
                        TYPES_CHECKED,
                        (element, c_type),
                        settings,
                        (),
                        layouts,
                        accumulate,
                    )
                )
            jobs.append(Job(place / "large", "mma_sync", TYPES_TIMED, (element, c_type), settings, (), layouts))
    build_jobs([job for job in jobs if only in ("", job.path.relative_to(folder).parts[0])])


def build_jobs(jobs: list[Job], workers: int | None = None) -> None:
    """Builds bundles and prints a line for each; a refused one leaves a file with the reason.

    Args:
        jobs: the bundles; `workers`: processes, None for one on each core.
    """
    with ProcessPoolExecutor(workers, initializer=end_with_pool) as pool:
        for number, line in enumerate(pool.map(_build_one, jobs), start=1):
            print(f"[{number}/{len(jobs)}] {line}", flush=True)


def _bundles(folder: Path) -> list[Bundle]:
    from stepladder.runtime.bundle import read_bundle

    return [read_bundle(path) for path in sorted(folder.iterdir()) if path.is_dir()]


def measure_ablation(folder: Path, name: str) -> dict:
    """Times every variant of an ablation, with every tile, beside cuBLAS and the ceiling."""
    from stepladder.measure.bench import bench_bundles

    result = {
        "size": ABLATION_SIZE,
        "variants": [
            {"title": title, "without": list(without)} for title, without in ablation.ABLATIONS[name].variants.items()
        ],
        "tiles": {},
    }
    for tile in ABLATION_TILES[name]:
        result["tiles"][tile] = bench_bundles(
            _bundles(folder / "ablation" / name / tile),
            baseline="cublas",
            ceiling=True,
            modes=("burst", "sustained"),
            command=command_line(),
        )
    return result


def _best(result: dict) -> str:
    kernels = result["modes"]["burst"]["kernels"]
    return max(
        (name for name in kernels if name not in ("cublas", "ceiling")),
        key=lambda name: kernels[name]["tflops_spread"]["median"],
    )


def _check(bundle: Bundle) -> list[dict]:
    from stepladder.runtime.device import Device
    from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
    from stepladder.verify.check import check_matmul

    problem = bundle.manifest.problem
    checks = []
    with Device() as device:
        kernel = device.load(bundle)
        for seed in SEEDS:
            with MatmulBuffers(device, problem) as buffers:
                executor = DeviceExecutor(buffers, buffers.launcher(kernel, bundle))
                reports = check_matmul(problem, bundle.expected(), executor, seed, device.ordinal)
            checks += [{"seed": seed} | report.to_json() for report in reports]
            print("; ".join(report.describe() for report in reports), flush=True)
    return checks


def measure_sizes(folder: Path, pipeline: str, acc: str, path: Path) -> None:
    """Measures every tile at every size, and checks the best of each with every seed.

    The result is written after every size.

    Args:
        folder: of the bundles.
        pipeline: its name.
        acc: the type of the accumulator.
        path: the file of the result.
    """
    from stepladder.measure.bench import bench_bundles

    result: dict = {"pipeline": pipeline, "acc_type": acc, "sizes": {}}
    for size in SIZES:
        bundles = _bundles(folder / pipeline / acc / str(size))
        measured = bench_bundles(bundles, baseline="cublas", ceiling=True, modes=("burst",), command=command_line())
        best = _best(measured)
        checks = _check(next(bundle for bundle in bundles if bundle.path.name == best))
        measured["best"] = best
        measured["checks_of_best"] = checks
        result["sizes"][str(size)] = measured
        write_result(path, result)


def measure_types(folder: Path) -> dict:
    """Checks every type, layout and form with every seed, and measures each type and layout."""
    from stepladder.measure.bench import bench_bundles
    from stepladder.runtime.bundle import read_bundle

    result: dict = {"types": {}}
    for name in TYPES:
        result["types"][name] = {}
        for layouts in itertools.product(LAYOUTS, LAYOUTS):
            place = folder / "types" / name.replace(" -> ", "-") / "-".join(layouts)
            checks = [check for form in ("accumulate", "product") for check in _check(read_bundle(place / form))]
            measured = bench_bundles(
                [read_bundle(place / "large")],
                baseline="cublas",
                ceiling=True,
                modes=("burst",),
                command=command_line(),
            )
            result["types"][name]["-".join(layouts)] = measured | {"checks": checks}
    return result


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    subparsers = parser.add_subparsers(dest="part", required=True, metavar="PART")
    parts = {}
    for part, description in (
        ("build", "build the bundles of every kernel that is measured"),
        ("ablation", "time the variants of an ablation, on the GPU"),
        ("sizes", "time a pipeline over sizes, on the GPU"),
        ("types", "time and check mma_sync with all types and layouts, on the GPU"),
    ):
        parts[part] = subparsers.add_parser(part, help=description)
        parts[part].add_argument("folder", type=Path, metavar="FOLDER", help="folder of the bundles")
        if part != "build":
            parts[part].add_argument("result", type=Path, metavar="RESULT.json", help="file to write")
    parts["build"].add_argument(
        "--only", choices=["ablation", "types", *TILES], default="", help="build these only (default: all)"
    )
    parts["ablation"].add_argument(
        "--ablation", choices=list(ABLATION_TILES), default="wmma", help="ablation to time (default: wmma)"
    )
    parts["sizes"].add_argument(
        "--pipeline", choices=list(TILES), default="wmma", help="pipeline to time (default: wmma)"
    )
    parts["sizes"].add_argument(
        "--acc", choices=["f32", "f16"], default="f32", help="type of the accumulator (default: f32)"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Runs one half of the measurement."""
    args = make_parser().parse_args(argv)
    if args.part == "build":
        build_all(args.folder, args.only)
    elif args.part == "ablation":
        write_result(args.result, measure_ablation(args.folder, args.ablation))
    elif args.part == "types":
        write_result(args.result, measure_types(args.folder))
    else:
        measure_sizes(args.folder, args.pipeline, args.acc, args.result)


if __name__ == "__main__":
    run(main)
