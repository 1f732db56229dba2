"""The GPUs of the cost model: peaks from the data sheet, and constants fitted to measured kernels.

`gpus/` has one JSON file a GPU. Fitted constants are times, or fractions of a peak, so that they apply to a GPU on
which nothing was measured: its file names in `fitted_from` the GPU whose constants it takes, and its `source` is "data
sheet" instead of "measured". A file may have constants of some families of kernels and take the others from there.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stepladder.runtime.errors import StepladderError, suggest
from stepladder.runtime.installed import installed_gpu

VARIABLE = "STEPLADDER_GPU"
_FOLDER = Path(__file__).with_name("gpus")

MEASURED, DATA_SHEET = "measured", "data sheet"


@dataclass(frozen=True)
class Gpu:
    """A GPU as the model sees it.

    Args:
        key: name of its file, for `--gpu`.
        name: as the driver calls it.
        targets: names of the targets that it runs; the model takes the first file that has a target as the default.
        source: MEASURED or DATA_SHEET, which its fitted constants are from.
        multiprocessors: number of them.
        clock_mhz: the clock at which peaks are calculated.
        macs_per_clock: by family of kernels and by accumulator type: products of 16-bit operands that a multiprocessor
            adds up in a clock.
        shared_bytes_per_clock: that a multiprocessor's shared memory delivers.
        l2_bytes_per_clock: that a multiprocessor gets from the L2 cache.
        l2_bytes: size of the L2 cache.
        hbm_bytes_per_us: peak rate of the memory.
        shared_bytes: shared memory of a multiprocessor.
        registers: of a multiprocessor.
        threads: that a multiprocessor runs at once.
        clusters: blocks of a cluster -> clusters that run at once where a block has a multiprocessor to itself.
        constants: by family of kernels, the fitted constants (`cost_model.constants`).
        early_weights: by set, the constants of kernels that load weights early.
        early_hbm_bytes_per_us: peak rate of the memory of the GPU that they are fitted to.
        attention: microseconds of an attention in one kernel, of a tile of keys by the elements of a head (`tile_64`,
            `tile_128`; of 64 keys and at most 64 rows `few_rows_64`, `few_rows_128`), of a block beside its tiles
            (`block`), of a block of a cluster (`split`), of a launch (`launch`), and beside the reading of keys and
            values (`memory`), which has a part of the peak rate of the memory (`of_hbm`); factors of a tile of 64
            keys (`half`), of two blocks on a multiprocessor (`resident`), and of weights in f32 (`wide_tile`,
            `wide_score`); and in several, of the kernels beside their memory traffic (`kernels`), and of a million
            scores that are written, read, and multiplied as weights (`score`; `vector_score` without matrix units).
        measured_widths: by family of kernels, `block_n` of the kernels that they are fitted to; none for a family of
            few widths.
    """

    key: str
    name: str
    targets: tuple[str, ...]
    source: str
    multiprocessors: int
    clock_mhz: float
    macs_per_clock: dict[str, dict[str, float]]
    shared_bytes_per_clock: float
    l2_bytes_per_clock: float
    l2_bytes: int
    hbm_bytes_per_us: float
    shared_bytes: int
    registers: int
    threads: int
    clusters: dict[int, int]
    constants: dict[str, dict[str, float]]
    early_weights: dict[str, dict[str, float]]
    early_hbm_bytes_per_us: float
    attention: dict[str, float]
    measured_widths: dict[str, tuple[int, ...]]

    def microseconds(self, clocks: np.ndarray | float) -> np.ndarray:
        """Returns the time of so many clocks.

        Args:
            clocks: at `clock_mhz`.
        """
        return np.asarray(clocks, float) / self.clock_mhz

    def multiply_adds(self, family: str, acc_type: str) -> float:
        """Returns the multiply-adds of 16-bit operands that a multiprocessor computes a clock, by family of kernels and
        accumulation type; the rate of f32 for a type that the table lacks, which no pipeline accepts.

        Args:
            family: WARP or WARPGROUP.
            acc_type: accumulation type, such as "f32".
        """
        rates = self.macs_per_clock[family]
        return rates.get(acc_type, rates["f32"])

    def check_family(self, family: str) -> None:
        """Checks that the GPU has the matrix instructions of a family of kernels.

        Args:
            family: WARP or WARPGROUP.

        Raises:
            StepladderError: it has none.
        """
        if family not in self.macs_per_clock:
            able = [key for key in keys() if family in _read(key)["macs_per_clock"]]
            raise StepladderError(
                f"{self.name} has no wgmma instructions, which this pipeline uses",
                notes=[f"GPUs of the cost model with wgmma (--gpu, {VARIABLE}): {', '.join(able)}"],
            )

    def blocks_at_once(self, cluster: int) -> int:
        """Returns how many blocks run at once in clusters of `cluster` blocks, one block a multiprocessor.

        Clusters are within a group of multiprocessors, so that fewer fit than the number of multiprocessors allows. A
        size that was not measured fits as often as the next larger one that was.

        Args:
            cluster: blocks of a cluster; 1 means no cluster.
        """
        if cluster <= 1:
            return self.multiprocessors
        fits = [count for size, count in sorted(self.clusters.items()) if size >= cluster]
        return cluster * (fits[0] if fits else max(1, self.multiprocessors // cluster // 2))


def path_of(key: str) -> Path:
    """Returns the file of a GPU.

    Args:
        key: its name, for `--gpu`; the file need not exist.
    """
    return _FOLDER / f"{key}.json"


def keys() -> list[str]:
    """Returns the names of the GPUs that the model knows: those that were measured first, and of these the ones that
    take no constants from another."""

    def order(key: str) -> tuple[bool, bool, str]:
        return _read(key)["source"] != MEASURED, "fitted_from" in _read(key), key

    return sorted((path.stem for path in _FOLDER.glob("*.json")), key=order)


@functools.cache
def _read(key: str) -> dict:
    return json.loads(path_of(key).read_text())


def forget() -> None:
    """Reads the files anew when they are next asked for; for the command that writes them."""
    _read.cache_clear()


def _unknown(message: str, key: str) -> StepladderError:
    """Returns the error of a GPU that the model has no file of."""
    return StepladderError(f"{message}{suggest(key, keys())}", notes=[f"it has: {', '.join(keys())}"])


def load(key: str) -> Gpu:
    """Returns the GPU of this name.

    Args:
        key: its name, for `--gpu`.

    Raises:
        StepladderError: the model has no file of this name.
    """
    if key not in keys():
        raise _unknown(f"the cost model has no GPU '{key}'", key)
    data = _read(key)
    base = _read(data["fitted_from"]) if "fitted_from" in data else {}
    early = data if "early_weights" in data else base
    widths = base.get("measured_widths", {}) | data.get("measured_widths", {})
    return Gpu(
        key,
        data["name"],
        tuple(data["targets"]),
        data["source"],
        data["multiprocessors"],
        data["clock_mhz"],
        data["macs_per_clock"],
        data["shared_bytes_per_clock"],
        data["l2_bytes_per_clock"],
        data["l2_bytes"],
        data["hbm_bytes_per_us"],
        data["shared_bytes"],
        data["registers"],
        data["threads"],
        {int(size): count for size, count in data.get("clusters", {}).items()},
        base.get("constants", {}) | data.get("constants", {}),
        early["early_weights"],
        early["hbm_bytes_per_us"],
        base.get("attention", {}) | data.get("attention", {}),
        {family: tuple(values) for family, values in widths.items()},
    )


@dataclass(frozen=True)
class Found:
    """A GPU for a target or a device, and what to say where it is not exactly that: `note`, else an empty text."""

    gpu: Gpu
    note: str = ""


def _generation(target: str) -> int:
    return int(target.removeprefix("sm_").rstrip("a"))


def for_target(target: str) -> Found:
    """Returns the GPU that a kernel for a target is chosen for: one that was measured, where there is one.

    A target that no file has takes the GPU of the nearest compute capability, and a note says which.

    Args:
        target: name of a target, such as "sm_90a".
    """
    gpus = [load(key) for key in keys()]
    for gpu in gpus:
        if target in gpu.targets:
            return Found(gpu)
    nearest = min(
        gpus, key=lambda gpu: min(abs(_generation(gpu_target) - _generation(target)) for gpu_target in gpu.targets)
    )
    return Found(nearest, f"the cost model has no GPU of target {target}; it takes the constants of {nearest.name}")


def find(key: str | None, target: str) -> Found:
    """Returns the GPU that kernels for a target are chosen for: the one of this name, else of those with the target the
    one that the variable `STEPLADDER_GPU` names, else that of this machine if its constants were measured, else that of
    `for_target`.

    Args:
        key: of `--gpu`; None where it is not given.
        target: name of a target, such as "sm_90a".

    Raises:
        StepladderError: an unknown name.
    """
    if key:
        return Found(load(key))
    name = os.environ.get(VARIABLE)
    if name and name not in keys():
        raise _unknown(f"{VARIABLE} is '{name}', and the cost model has no such GPU", name)
    gpu_name = None if name else installed_gpu()
    for gpu in [load(name)] if name else map(load, keys()):
        if target in gpu.targets and (name or (gpu.name == gpu_name and gpu.source == MEASURED)):
            return Found(gpu)
    return for_target(target)


def for_device(name: str, target: str) -> Found:
    """Returns the GPU that the driver calls `name`, or the one for `target` with a note that it is used instead.

    Args:
        name: of the GPU, by the driver.
        target: name of its target, such as "sm_90a".
    """
    for key in keys():
        gpu = load(key)
        if gpu.name == name:
            return Found(gpu)
    nearest = for_target(target).gpu
    return Found(nearest, f"the cost model has no GPU '{name}'; it takes the constants of {nearest.name}")
