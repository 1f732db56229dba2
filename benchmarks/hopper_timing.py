"""Times the kernels that `hopper.py build` made, on the GPU, beside cuBLAS. Needs PyTorch and no MLIR."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duel
import hopper_cases as cases
from common import command_line, write_result
from stepladder.measure.bench import bench_bundles
from stepladder.measure.timing import MODES, Mode
from stepladder.runtime.bundle import Bundle, read_bundle
from stepladder.runtime.device import Device

# Seconds of a run and of the pause before it, and rounds.
TUNE_BURST, TUNE_ROUNDS = (0.03, 0.02), 5
TUNE_SUSTAINED_ROUNDS, TUNE_SUSTAINED_BEST = 3, 3
BESIDE_SUSTAINED, BESIDE_ROUNDS = 0.5, (7, 3)

# Blocks of so much shared memory have a multiprocessor each.
CLUSTERS_BYTES = 200 * 1024
CLUSTERS_KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry nothing() { ret; }
"""


def refusals(folder: Path) -> dict[str, str]:
    """Returns the reasons why kernels were not built, by their names.

    Args:
        folder: of the bundles.
    """
    return {path.name.removesuffix(".refused"): path.read_text().strip() for path in sorted(folder.glob("*.refused"))}


def _bundles(folder: Path) -> dict[str, Bundle]:
    return {path.name: read_bundle(path) for path in sorted(folder.iterdir()) if path.is_dir()}


def _over_problems(
    folder: Path,
    out: Path,
    types: list[str],
    only: list[str],
    limit: float,
    read: Callable[[Path], dict[str, Bundle]],
    modes: dict[str, tuple[Mode, int, int]],
) -> None:
    """Measures problem after problem, and writes the result after each.

    Args:
        folder: of the bundles.
        out: file of the result.
        types: names of element types.
        only: names of problems; all where it is empty.
        limit: seconds after which no problem is started.
        read: returns the bundles in a problem's folder.
        modes: as `duel.measure` takes them.
    """
    start = time.monotonic()
    with Device() as device:
        result = duel.header(device) | {"problems": []}
        for name, size in itertools.product(types, cases.problems(only)):
            place = folder / name / cases.problem_name(size)
            if not place.is_dir():
                print(f"{place}: not built", flush=True)
                continue
            if time.monotonic() - start > limit:
                print(f"no time left for {name} {cases.problem_name(size)} and the problems after it", flush=True)
                break
            measured = duel.measure(device, read(place), modes)
            measured |= {"types": name, "refused": refusals(place)}
            result["problems"].append(measured)
            elapsed = time.monotonic() - start
            print(f"{elapsed:.0f} s: {name} {cases.problem_name(size)}: {duel.line(measured)}", flush=True)
            write_result(out, result)


def measure_tuning(folder: Path, out: Path, types: list[str], only: list[str], limit: float, seconds: float) -> None:
    """Times every candidate in bursts, and the best of each problem sustained.

    Args:
        folder: of the bundles of all parts.
        out: the file of the result.
        types: names in `hopper_cases.TYPES`.
        only: names of problems; empty for all.
        limit: no problem begins after so many seconds.
        seconds: of a sustained run.
    """
    modes = {
        "burst": (Mode(*TUNE_BURST), TUNE_ROUNDS, 0),
        "sustained": (Mode(seconds, 0.0), TUNE_SUSTAINED_ROUNDS, TUNE_SUSTAINED_BEST),
    }
    _over_problems(folder / "tune", out, types, only, limit, _bundles, modes)


def measure_sizes(
    folder: Path, out: Path, types: list[str], only: list[str], limit: float, rounds: int, seconds: float
) -> None:
    """Times the kernels with default knobs, in bursts and sustained.

    Args:
        folder: of the bundles of all parts.
        out: the file of the result.
        types: names in `hopper_cases.TYPES`.
        only: names of problems; empty for all.
        limit: no problem begins after so many seconds.
        rounds: of each mode.
        seconds: of a sustained run.
    """
    modes = {"burst": (MODES["burst"], rounds, 0), "sustained": (Mode(seconds, 0.0), rounds, 0)}
    _over_problems(folder / "sizes", out, types, only, limit, lambda place: {"wgmma": read_bundle(place)}, modes)


def measure_ablation(folder: Path, out: Path) -> None:
    """Times every variant of the ablation in turn, in bursts and sustained, after an exact check of each.

    Args:
        folder: of the bundles of all parts.
        out: the file of the result.
    """
    places = sorted(path for path in (folder / "ablation").iterdir() if path.is_dir())
    built = {place.name for place in places}
    variants = [
        {
            "name": f"{number:02}",
            "title": variant.title,
            "pipeline": variant.pipeline,
            "without": list(variant.without),
        }
        for number, variant in enumerate(cases.ablation_variants())
    ]
    measured = bench_bundles(
        [read_bundle(place) for place in places],
        baseline="cublas",
        modes=("burst", "sustained"),
        command=command_line(),
    )
    result = {
        "size": cases.ABLATION_SIZE,
        "variants": [variant for variant in variants if variant["name"] in built],
        "measured": measured,
        "refused": refusals(folder / "ablation"),
    }
    write_result(out, result)


def measure_stages(folder: Path, out: Path) -> None:
    """Times every number of stages at every k, in bursts.

    Args:
        folder: of the bundles of all parts.
        out: the file of the result.
    """
    with Device() as device:
        result = duel.header(device) | {"stages": list(cases.STAGES), "problems": []}
        for k in cases.STAGES_K:
            place = folder / "stages" / str(k)
            measured = duel.measure(device, _bundles(place), {"burst": (Mode(*TUNE_BURST), TUNE_ROUNDS, 0)})
            result["problems"].append(measured | {"refused": refusals(place)})
            print(f"k = {k}: {duel.line(measured)}", flush=True)
            write_result(out, result)


def measure_beside(folder: Path, out: Path) -> None:
    """Times the project's kernels, cuBLAS, Triton, and Pallas where it is installed.

    Args:
        folder: of the bundles of all parts.
        out: the file of the result.
    """
    import beside

    modes = {
        "burst": (MODES["burst"], BESIDE_ROUNDS[0], 0),
        "sustained": (Mode(BESIDE_SUSTAINED, 0.0), BESIDE_ROUNDS[1], 2),
    }
    with Device() as device:
        result = duel.header(device) | {"problems": []}
        for size in cases.BESIDE_SIZES:
            notes: dict[str, str] = {}
            versions: dict[str, str] = {}

            def triton(
                operands: duel.Operands, notes: dict[str, str] = notes, versions: dict[str, str] = versions
            ) -> list[Any]:
                return beside.triton_contestants(operands, notes, versions)

            bundles = {"wgmma": read_bundle(folder / "beside" / str(size))}
            measured = duel.measure(device, bundles, modes, triton)
            measured |= {
                "notes": notes,
                "versions": versions,
                "mosaic": beside.measure_mosaic(device, size, notes, versions),
            }
            result["problems"].append(measured)
            print(f"{size}: {duel.line(measured)}; {notes}", flush=True)
            write_result(out, result)


def measure_few_rows(folder: Path, out: Path) -> None:
    """Times the kernels for an A of few rows, in bursts.

    Args:
        folder: of the bundles of all parts.
        out: the file of the result.
    """
    titles = [variant.title for variant in cases.FEW_ROWS_VARIANTS]
    bundles = {str(number): read_bundle(folder / "few_rows" / str(number)) for number in range(len(titles))}
    with Device() as device:
        measured = duel.measure(device, bundles, {"burst": (Mode(*TUNE_BURST), TUNE_ROUNDS, 0)})
        write_result(out, duel.header(device) | {"titles": titles} | measured)
    print(duel.line(measured), flush=True)


def measure_clusters(out: Path) -> None:
    """Queries how many clusters of each size the GPU runs at once, with one block on each multiprocessor.

    Args:
        out: the file of the result.

    Raises:
        SystemExit: the driver reports an error.
    """
    from cuda.bindings import driver  # pyright: ignore[reportMissingImports]

    with Device() as device:
        error, module = driver.cuModuleLoadData(CLUSTERS_KERNEL.encode() + b"\0")
        error, kernel = driver.cuModuleGetFunction(module, b"nothing")
        driver.cuFuncSetAttribute(
            kernel, driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, CLUSTERS_BYTES
        )
        result = duel.header(device) | {"shared_memory": CLUSTERS_BYTES, "clusters": {}}
        for size in range(1, 9):
            config = driver.CUlaunchConfig()
            config.gridDimX, config.blockDimX = size * device.multiprocessors, 256
            config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1
            config.sharedMemBytes = CLUSTERS_BYTES
            attribute, value = driver.CUlaunchAttribute(), driver.CUlaunchAttributeValue()
            attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = size, 1, 1
            attribute.value = value
            config.attrs, config.numAttrs = [attribute], 1
            error, count = driver.cuOccupancyMaxActiveClusters(kernel, config)
            if error != driver.CUresult.CUDA_SUCCESS:
                raise SystemExit(f"clusters of {size}: {error}")
            result["clusters"][str(size)] = count
        write_result(out, result)
    print(result["clusters"], flush=True)
