"""Measures the `wmma` pipeline: what each step gains, and its speed over sizes.

Two halves, since the machine with the GPU need not have MLIR:

    python docs/measure/wmma.py build FOLDER                           bundles of every kernel that is measured
    python docs/measure/wmma.py ablation FOLDER RESULT.json            on the GPU: docs/results/wmma_ablation.json
    python docs/measure/wmma.py sizes FOLDER RESULT.json --acc f32     on the GPU: docs/results/wmma_sizes_f32.json
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runner"))

from stepladder import climb  # noqa: E402  (a plain checkout is enough)

TARGET = "sm_90a"
KNOBS = ("block_m", "block_n", "block_k", "warp_m", "warp_n", "buffers")

ABLATION_SIZE = 8192
ABLATION_TILES = {"128x128x32": (128, 128, 32, 64, 64, 2), "128x256x64": (128, 256, 64, 64, 64, 2)}
SIZES = (256, 512, 1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192, 8448, 10240, 12288, 16384)
SMALL_TILES = ((64, 64, 32, 32, 32, 2), (64, 64, 64, 32, 32, 2), (64, 64, 128, 32, 32, 2), (64, 128, 64, 32, 64, 2),
               (128, 64, 64, 64, 32, 2), (128, 128, 64, 64, 32, 2), (128, 128, 64, 32, 32, 2))
LARGE_TILES = ((128, 128, 64, 64, 64, 1), (128, 128, 64, 64, 64, 2), (128, 256, 64, 64, 64, 1),
               (128, 256, 64, 64, 64, 2), (256, 128, 64, 64, 64, 1), (256, 128, 64, 64, 64, 2))
# Accumulators of half the size leave room for warp tiles of twice the size.
HALF_TILES = ((256, 256, 32, 64, 128, 2), (256, 256, 64, 64, 128, 2), (256, 256, 64, 128, 64, 2),
              (128, 256, 64, 64, 128, 2), (256, 128, 64, 128, 64, 2))
LARGEST_SMALL = 3072
SEEDS = (0, 1, 2)


def tiles_for(size: int, acc: str) -> tuple[tuple[int, ...], ...]:
    """Returns the knob settings that are tried for a size; those whose tile divides it."""
    tried = (SMALL_TILES if size <= LARGEST_SMALL else ()) + LARGE_TILES + (HALF_TILES if acc == "f16" else ())
    return tuple(tile for tile in tried if size % tile[0] == 0 and size % tile[1] == 0)


def _build_one(job: tuple[str, int, str, tuple[int, ...], tuple[str, ...]]) -> str:
    from stepladder import build, bundle, engine, payload
    from stepladder.errors import StepladderError

    path, size, acc, tile, without = job
    settings = dict(zip(KNOBS, tile)) | {"target": TARGET}
    if "multi_buffer" in without:
        del settings["buffers"]
    with engine.mlir_context():
        try:
            built = build.build(payload.matmul_text(size, size, size, acc_type=acc, c_type=acc), "matmul.mlir",
                                engine.Request(climb.PIPELINE, settings, without=without))
        except StepladderError as error:
            return f"{path}: {error.render()}"
        # Without the dumps: hundreds of bundles have to travel.
        bundle.write_bundle(path, built.manifest, built.code.cubin, built.code.ptx, {})
    spilled = sum(built.manifest.spills.values())
    return f"{path}: {built.manifest.registers} registers" + (f", SPILLS {spilled} bytes" if spilled else "")


def _name(tile: tuple[int, ...]) -> str:
    return "x".join(map(str, tile[:3])) + f"-w{tile[3]}x{tile[4]}-b{tile[5]}"


def build_all(folder: Path) -> None:
    """Builds the bundles of all measurements below `folder`."""
    jobs = []
    for title, tile in ABLATION_TILES.items():
        for number, without in enumerate(climb.RUNGS.values()):
            jobs.append((str(folder / "ablation" / title / f"{number}"), ABLATION_SIZE, "f32", tile, without))
    for acc in ("f32", "f16"):
        for size in SIZES:
            for tile in tiles_for(size, acc):
                jobs.append((str(folder / acc / str(size) / _name(tile)), size, acc, tile, ()))
    with ProcessPoolExecutor() as pool:
        for number, line in enumerate(pool.map(_build_one, jobs), start=1):
            print(f"[{number}/{len(jobs)}] {line}", flush=True)


def _bundles(folder: Path) -> list:
    from stepladder.bundle import read_bundle

    return [read_bundle(path) for path in sorted(folder.iterdir())]


def measure_ablation(folder: Path) -> dict:
    """Measures every bar of every tile against cuBLAS and the ceiling."""
    from stepladder.bench import bench_bundles

    result = {"size": ABLATION_SIZE, "bars": [{"title": title, "without": list(without)}
                                              for title, without in climb.RUNGS.items()], "tiles": {}}
    for tile in ABLATION_TILES:
        result["tiles"][tile] = bench_bundles(_bundles(folder / "ablation" / tile), baseline="cublas", ceiling=True,
                                              modes=("burst", "sustained"), command=sys.argv)
    return result


def _best(result: dict) -> str:
    kernels = result["modes"]["burst"]["kernels"]
    return max((name for name in kernels if name not in ("cublas", "ceiling")),
               key=lambda name: kernels[name]["tflops_spread"]["median"])


def _check(bundle) -> list[dict]:
    from stepladder.check import check_matmul
    from stepladder.launch import Device, DeviceExecutor, MatmulBuffers

    problem = bundle.manifest.problem
    found = []
    with Device() as device:
        kernel = device.load(bundle)
        for seed in SEEDS:
            with MatmulBuffers(device, problem) as buffers:
                executor = DeviceExecutor(buffers, buffers.launcher(kernel, bundle))
                reports = check_matmul(problem, executor, seed, device.ordinal)
            found += [{"seed": seed} | report.to_json() for report in reports]
            print("; ".join(report.describe() for report in reports), flush=True)
    return found


def measure_sizes(folder: Path, acc: str) -> dict:
    """Measures every tile at every size, and checks the best of each size with every seed."""
    from stepladder.bench import bench_bundles

    result: dict = {"acc_type": acc, "sizes": {}}
    for size in SIZES:
        bundles = _bundles(folder / acc / str(size))
        measured = bench_bundles(bundles, baseline="cublas", ceiling=True, modes=("burst",), command=sys.argv)
        best = _best(measured)
        checks = _check(next(bundle for bundle in bundles if bundle.path.name == best))
        measured["best"] = best
        measured["checks_of_best"] = checks
        result["sizes"][str(size)] = measured
    return result


def main() -> None:
    """Runs one half of the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["build", "ablation", "sizes"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("result", type=Path, nargs="?")
    parser.add_argument("--acc", choices=["f32", "f16"], default="f32")
    args = parser.parse_args()
    if args.what == "build":
        build_all(args.folder)
        return
    if args.result is None:
        parser.error("name the file for the result")
    result = measure_ablation(args.folder) if args.what == "ablation" else measure_sizes(args.folder, args.acc)
    args.result.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
