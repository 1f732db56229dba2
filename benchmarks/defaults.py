"""Makes the pipelines' default knobs from the results: transforms/defaults/PIPELINE.json.

Reads docs/results and needs neither MLIR nor a GPU:

    python benchmarks/defaults.py
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import ROOT, cells_of, new_parser, run
from stepladder.runtime.targets import TARGETS, Target

_BITS = {"f16": 16, "bf16": 16, "f32": 32, "i8": 8, "i32": 32}
# Knobs of where a kernel runs and of what it computes, not how.
_NOT_TUNED = ("target", "swap_operands", "allow_tf32", "math")
# How much faster other knobs than those of the matmul have to be where the epilogue has an operand, on average.
_FUSED_GAIN = 1.004
# The same where it has none: the knobs of the matmul come from more rounds.
_PLAIN_GAIN = 1.015
# The knobs of the matmul in results of fused matmuls.
_OWN = "of the matmul"
# How much faster other knobs than the cost model's first choice have to be for a batch.
_BATCH_GAIN = 1.01
# A GPU with the same multiprocessors as the one of the results, where the entries count too.
_ALIKE = "NVIDIA H100 80GB HBM3"
# Results since, below docs/results: on the GPU of the entries, and on the other one.
_SINCE, _ELSEWHERE = "entries", "h100"
# How much faster the cost model's first choice has to be there than knobs of an entry, so that it is dropped: entries
# are older than the cost model. Those that are slower than cuBLAS on the GPU of the results are dropped for less.
_MODEL_GAIN, _SLOW_GAIN = 1.05, 1.02
# The ratio to cuBLAS of a tuned entry, until the file is written.
RATIO = "of_cublas"
# The place of the model's first choice in results of `model_choice.py`; what `compile` takes is before it.
FIRST_OF_MODEL = 0
# What a kernel has whose result is older than these knobs.
_OLDER = {"split_k": 1, "split_k_workspace": "cluster"}


def _entry(problem: dict, bundle: dict) -> dict:
    knobs = {name: value for name, value in bundle["knobs"].items() if name not in _NOT_TUNED}
    return {
        "m": problem["m"],
        "n": problem["n"],
        "k": problem["k"],
        "a_bits": _BITS[problem["a_type"]],
        "c_bits": _BITS[problem["c_type"]],
        "knobs": knobs,
    }


def _fits(bundle: dict, target: Target) -> bool:
    """Returns whether a target has the shared memory and the kind of copies that a kernel uses."""
    shared_memory = bundle["static_shared_memory"] + bundle["dynamic_shared_memory"]
    has_copies = target.compute_capability >= (8, 0) or "convert_to_cp_async" not in bundle["steps"]
    return shared_memory <= target.shared_memory and has_copies


def fastest_entries(measured: dict) -> list[dict]:
    """Returns an entry with the fastest kernel of a size for each target, each kernel once and the fastest first.

    The first entry that a target supports is the best one known for it.

    Args:
        measured: the result of one size.
    """
    rates = {
        name: kernel["tflops_spread"]["median"]
        for name, kernel in measured["modes"]["burst"]["kernels"].items()
        if name in measured["bundles"]
    }
    ordered = sorted(rates, key=lambda name: -rates[name])
    chosen = {
        next((name for name in ordered if _fits(measured["bundles"][name], target)), None)
        for target in TARGETS.values()
    }
    return [_entry(measured["problem"], measured["bundles"][name]) for name in ordered if name in chosen]


def scores(measured: dict) -> dict[str, float]:
    """Returns the candidates of a tuned problem with their ratios to cuBLAS.

    Candidates that were timed sustained have the lower ratio of the two modes, and are the only ones; without any, all
    have their ratio in bursts.

    Args:
        measured: an entry of a tuning result.
    """
    modes = {
        mode: {name: kernel["ratio_spread"]["median"] for name, kernel in result["kernels"].items()}
        for mode, result in measured["modes"].items()
    }
    chosen = modes.get("sustained") or modes.get("burst", {})
    return {name: min(ratios[name] for ratios in modes.values()) for name in chosen}


def tuned_entries(results: list[dict]) -> list[dict]:
    """Returns an entry with the best knobs for every problem of `hopper.py tune`.

    Where the best knobs have clusters, a second entry has the best knobs without, for similar problems whose tiles no
    cluster divides. Types of the same widths count as the same problem, whose candidates have the mean of their ratios;
    only candidates that were scored for most of the types compete.

    Args:
        results: of `hopper.py tune`.
    """
    ratios_by_key: dict[tuple, dict[str, list[float]]] = {}
    described: dict[tuple, tuple[dict, dict]] = {}
    for measured in (problem for result in results for problem in result["problems"]):
        problem = measured["problem"]
        key = (problem["m"], problem["n"], problem["k"], _BITS[problem["a_type"]], _BITS[problem["c_type"]])
        for name, ratio in scores(measured).items():
            kernel = measured["kernels"][name]
            candidate = json.dumps(_OLDER | kernel["knobs"], sort_keys=True)
            ratios_by_key.setdefault(key, {}).setdefault(candidate, []).append(ratio)
            described[key, candidate] = (problem, kernel)
    entries = []
    for key, candidates in ratios_by_key.items():
        most = max(map(len, candidates.values()))
        means = {candidate: mean(ratios) for candidate, ratios in candidates.items() if len(ratios) == most}
        ordered = sorted(means, key=lambda candidate: -means[candidate])
        alone = [candidate for candidate in ordered if not _is_in_clusters(described[key, candidate][1])]
        entries += [
            {**_entry(*described[key, candidate]), RATIO: means[candidate]}
            for candidate in dict.fromkeys([ordered[0], *alone[:1]])
        ]
    return entries


def fused_entries(measured: dict) -> list[dict]:
    """Returns an entry for each size, with the knobs whose ratios have the largest mean over the cases with an operand,
    and one with the knobs that are the fastest of the matmul alone.

    None where knobs of the matmul were measured beside, and are as fast.

    Args:
        measured: what `fused_tiles.py` measured, of f16.
    """
    entries = []
    for size in dict.fromkeys(problem["size"] for problem in measured["problems"]):
        of_size = [problem for problem in measured["problems"] if problem["size"] == size]
        for is_plain, gain in ((False, _FUSED_GAIN), (True, _PLAIN_GAIN)):
            cases = [problem for problem in of_size if (problem["case"] == "plain") == is_plain]
            if not cases or (is_plain and _OWN not in cases[0]["kernels"]):
                continue
            names = [name for name in cases[0]["kernels"] if all(name in case["kernels"] for case in cases)]
            means = {name: mean(median(case["kernels"][name]["ratios"]) for case in cases) for name in names}
            best = max(means, key=lambda name: means[name])
            if means[best] >= gain * means.get(_OWN, 0):
                problem = {"m": size, "n": size, "k": size, "a_type": "f16", "c_type": "f16"}
                entry = _entry(problem, cases[0]["kernels"][best])
                entries.append(entry if is_plain else {**entry, "operands": 1})
    return entries


def _place(entry: dict) -> tuple:
    """Returns the sizes and types that an entry is for."""
    return tuple(entry[name] for name in ("m", "n", "k", "a_bits", "c_bits"))


def _batch_rates(case: dict) -> dict[str, float]:
    """Returns the kernels of a batch with their ratios to cuBLAS, the cost model's first choice first."""
    if "kernels" in case:
        return {name: median(kernel["ratios"]) for name, kernel in case["kernels"].items()}
    ratios = case["measured"]["modes"]["burst"]["ratios"]
    return {name: ratios[name]["cublas"]["spread"]["median"] for name in case["knobs"]}


def batch_choice(case: dict) -> str:
    """Returns the name of a batch's default kernel: the fastest, or the cost model's first choice where it is as fast.

    Args:
        case: an entry of what `batches.py` measured.
    """
    rates = _batch_rates(case)
    first, best = next(iter(rates)), max(rates, key=lambda name: rates[name])
    return best if rates[best] >= _BATCH_GAIN * rates[first] else first


def batch_entries(measured: dict) -> list[dict]:
    """Returns an entry for each batch of which other knobs than the cost model's first choice are faster.

    Args:
        measured: what `batches.py` measured, or settings of batches beside cuBLAS in the form of `fused_tiles.py`.
    """
    entries = []
    for case in measured["problems"]:
        name = batch_choice(case)
        problem = case["problem"] if "kernels" in case else case["measured"]["problem"]
        knobs = case["kernels"][name]["knobs"] if "kernels" in case else case["knobs"][name]
        if name != next(iter(_batch_rates(case))):
            entries.append({**_entry(problem, {"knobs": knobs}), "batch": problem["batch"]})
    return entries


def gains_of_the_model(folder: Path) -> dict[tuple, tuple[float, float]]:
    """Returns how many times as fast as knobs of the table the cost model's first choice was since, by the sizes and
    types of an entry, and the ratio of those knobs to cuBLAS.

    Args:
        folder: of the results: `model_sizes_TYPES.json` has the model's choice of sizes in the table, and others like
            `default_sizes_TYPES.json` what `compile` takes; either may have both.
    """
    rates: dict[tuple, dict[str, list[float]]] = {}
    for path in sorted(folder.glob("*_sizes_*.json")):
        data = json.loads(path.read_text())
        bits = tuple(_BITS[data["problem"][name]] for name in ("a_type", "c_type"))
        for row in cells_of(data):
            if row["place"] <= FIRST_OF_MODEL:
                source = row["source"] if row["place"] < FIRST_OF_MODEL else "model"
                by_source = rates.setdefault((row["m"], row["n"], row["k"], *bits), {})
                by_source.setdefault(source, []).append(row["cublas_microseconds"] / row["microseconds"])
    return {
        place: (mean(by_source["model"]) / mean(by_source["measured"]), mean(by_source["measured"]))
        for place, by_source in rates.items()
        if {"model", "measured"} <= by_source.keys()
    }


def not_surpassed(entries: list[dict], since: Path, elsewhere: Path) -> list[dict]:
    """Returns the entries but those that the cost model's first choice has surpassed, without their RATIO.

    Args:
        entries: of the pipeline that was measured.
        since: later results on the same GPU, as for `gains_of_the_model`.
        elsewhere: those on another GPU.
    """
    later, later_elsewhere = gains_of_the_model(since), gains_of_the_model(elsewhere)

    def counts(entry: dict) -> bool:
        gain, ratio = later.get(_place(entry), (1.0, 1.0))
        least = _SLOW_GAIN if min(ratio, entry.get(RATIO, 1.0)) < 1 else _MODEL_GAIN
        return (
            "operands" in entry or "batch" in entry or max(gain, later_elsewhere.get(_place(entry), (1.0,))[0]) < least
        )

    return [{name: value for name, value in entry.items() if name != RATIO} for entry in entries if counts(entry)]


def _is_in_clusters(kernel: dict) -> bool:
    """Returns whether the blocks of a kernel form clusters, which do not divide every grid."""
    return any(kernel["knobs"].get(name, 1) > 1 for name in ("cluster_m", "cluster_n"))


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return new_parser(__doc__)


def main(argv: Sequence[str] | None = None) -> None:
    """Writes a file for every pipeline that was measured over sizes and types, or that was tuned.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    make_parser().parse_args(argv)
    pipelines: dict[str, list[dict]] = {}
    card = ""
    results = ROOT / "docs" / "results"
    for path in sorted(results.glob("*_sizes_*.json")):
        if path.stem.startswith("hopper"):  # measured with defaults, which come from tuning
            continue
        pipeline, _, _ = path.stem.partition("_sizes_")
        for measured in json.loads(path.read_text())["sizes"].values():
            card = measured["card"]["name"]
            pipelines.setdefault(pipeline, []).extend(fastest_entries(measured))
    for path in sorted(results.glob("*_types.json")):
        problems = pipelines[path.stem.removesuffix("_types")]
        for layouts in json.loads(path.read_text())["types"].values():
            measured = layouts["row-row"]
            if measured["problem"]["a_type"] in ("i8", "f32"):  # of one setting each; 16-bit types have their sizes
                problems.append(_entry(measured["problem"], measured["bundles"]["large"]))
    tuned: dict[str, list[dict]] = {}
    for path in sorted(results.glob("*_tuning*.json")):
        result = json.loads(path.read_text())
        card = result["card"]["name"]
        tuned.setdefault(path.stem.partition("_tuning")[0], []).append(result)
    pipelines |= {pipeline: tuned_entries(measured) for pipeline, measured in tuned.items()}
    fused: dict[tuple, dict] = {}  # by size, with an operand or without: that of the last result
    for path in sorted(results.glob("fused_tiles*.json")):
        fused |= {(entry["m"], "operands" in entry): entry for entry in fused_entries(json.loads(path.read_text()))}
    plain = {_place(entry): entry for (_, has_operand), entry in fused.items() if not has_operand}
    pipelines["wgmma"] = [plain.get(_place(entry), entry) for entry in pipelines["wgmma"]]
    pipelines["wgmma"] += [entry for (_, has_operand), entry in fused.items() if has_operand]
    batches: dict[tuple, dict] = {}  # by sizes: that of the last result
    for path in sorted(results.glob("batches*.json")):
        for entry in batch_entries(json.loads(path.read_text())):
            batches[entry["batch"], entry["m"], entry["n"], entry["k"]] = entry
    pipelines["wgmma"] += batches.values()
    pipelines["wgmma"] = not_surpassed(pipelines["wgmma"], results / _SINCE, results / _ELSEWHERE)
    for pipeline, problems in pipelines.items():
        target = ROOT / "transforms" / "defaults" / f"{pipeline}.json"
        target.parent.mkdir(exist_ok=True)
        lines = ",\n".join("    " + json.dumps(problem) for problem in problems)
        target.write_text(
            f'{{\n  "measured_on": "{card}",\n  "also_for": ["{_ALIKE}"],\n'
            f'  "made_by": "python benchmarks/defaults.py",\n  "problems": [\n{lines}\n  ]\n}}\n'
        )


if __name__ == "__main__":
    run(main)
