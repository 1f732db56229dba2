"""The benchmarks of the Hopper pipelines: their cases, the ratios of interleaved runs, and the default knobs."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stepladder.measure.timing import Contestant, Mode
from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.runtime.resources import transforms_dir

MEASURE = transforms_dir().parent / "benchmarks"
pytestmark = pytest.mark.skipif(not MEASURE.is_dir(), reason="not a checkout")
sys.path.insert(0, str(MEASURE))
RESULTS = MEASURE.parent / "docs" / "results"


class Clock:
    """A GPU on which launches only take time."""

    def __init__(self) -> None:
        self.now = 0.0

    def kernel(self, milliseconds: float) -> Callable[[], None]:
        def enqueue() -> None:
            self.now += milliseconds

        return enqueue

    def capture(self, enqueue: Callable[[], None], launches: int) -> "Replay":
        return Replay(enqueue, launches)

    def record_event(self) -> float:
        return self.now

    def elapsed_ms(self, start: float, end: float) -> float:
        return end - start

    def synchronize(self) -> None:
        pass


class Replay:
    def __init__(self, enqueue: Callable[..., None], launches: int) -> None:
        self.enqueue, self.launches = enqueue, launches

    def replay(self) -> None:
        for _ in range(self.launches):
            self.enqueue()

    def free(self) -> None:
        pass


def test_a_duel_compares_with_the_baselines_around() -> None:
    import duel

    clock = Clock()
    contestants = [Contestant("fast", 10**9, clock.kernel(0.5)), Contestant("slow", 10**9, clock.kernel(2.0))]
    found = duel.Duel(clock, Contestant("cublas", 10**9, clock.kernel(1.0)), contestants)
    measured = found.run(Mode(0.01, 0.0), 3, sleep=lambda seconds: None)
    assert measured["kernels"]["fast"]["ratios"] == pytest.approx([2.0] * 3)
    assert measured["kernels"]["slow"]["ratios"] == pytest.approx([0.5] * 3)
    assert len(measured["baseline"]["tflops"]) == 7
    assert duel.by_ratio(measured) == ["fast", "slow"]
    again = found.run(Mode(0.01, 0.0), 2, ["slow"], sleep=lambda seconds: None)
    assert list(again["kernels"]) == ["slow"]


def knobs_of(pipeline: str) -> dict[str, library.Knob]:
    """Returns the knobs of a pipeline, by name."""
    with mlir_context():
        return library.load(pipeline).knobs


def jobs_of_everything() -> list:
    """Returns all bundles that `hopper.py build` makes."""
    import hopper_cases
    import hopper_jobs

    types, folder = list(hopper_cases.TYPES), Path("F")
    return [
        *hopper_jobs.numbers_jobs(folder / "numbers"),
        *hopper_jobs.tune_jobs(folder / "tune", types, []),
        *hopper_jobs.ablation_jobs(folder / "ablation"),
        *hopper_jobs.stages_jobs(folder / "stages"),
        *hopper_jobs.sizes_jobs(folder / "sizes", types, []),
        *hopper_jobs.beside_jobs(folder / "beside"),
        *hopper_jobs.few_rows_jobs(folder / "few_rows"),
    ]


def test_kernels_have_knobs_of_their_pipelines_and_folders_of_their_own() -> None:
    import sanitize

    jobs = jobs_of_everything()
    assert len({job.path for job in jobs}) == len(jobs)
    asked = [(job.pipeline, job.settings) for job in jobs]
    asked += [(pipeline, knobs) for pipeline, knobs, *_ in sanitize.KERNELS.values()]
    for pipeline in {pipeline for pipeline, _ in asked}:
        known = knobs_of(pipeline)
        for knobs in (knobs for name, knobs in asked if name == pipeline):
            assert {name: value for name, value in knobs.items() if not known[name].accepts(value)} == {}


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_results_have_knobs_of_their_pipelines(path: Path) -> None:
    from measured_kernels import kernels_of

    measured = {(kernel.pipeline, name, value) for kernel in kernels_of(path) for name, value in kernel.knobs.items()}
    for pipeline in {pipeline for pipeline, _, _ in measured}:
        known = knobs_of(pipeline)
        own = [(name, value) for other, name, value in measured if other == pipeline]
        assert [found for found in own if found[0] not in known or not known[found[0]].accepts(found[1])] == []


def test_names_of_kernels() -> None:
    import hopper_cases

    assert hopper_cases.kernel_name({"block_m": 64, "block_n": 96}) == "64x96"
    knobs = {"stages": 4, "block_m": 128, "block_n": 192, "schedule": "pingpong"}
    assert hopper_cases.kernel_name(knobs) == "128x192,stages=4,schedule=pingpong"


def test_cases_that_share_most_values_are_divided_without_loss() -> None:
    from common_fields import divide, join

    cases = {
        "a": {"passed": True, "knobs": {"m": 1, "n": 2}, "spills": 0},
        "b": {"passed": True, "knobs": {"m": 1, "n": 3, "k": 4}, "spills": 8, "error": "x"},
        "c": {"passed": True, "knobs": {"m": 1, "n": 2}, "spills": 0},
    }
    usual, own = divide(cases, ["passed"])
    assert usual == {"knobs": {"m": 1, "n": 2}, "spills": 0}
    assert own["a"] == {"passed": True} and own["b"]["knobs"] == {"n": 3, "k": 4}
    assert {name: join(usual, case) for name, case in own.items()} == cases
    failed = {**cases, "d": {"passed": False, "error": "no end in time"}}
    usual, own = divide(failed)
    assert {name: join(usual, case) for name, case in own.items()} == failed


def test_problems_by_name() -> None:
    import hopper_cases

    assert list(hopper_cases.problems(["2048"])) == [(2048, 2048, 2048)]
    assert len(hopper_cases.problems(["squares"])) == len(hopper_cases.SQUARES)
    assert list(hopper_cases.problems(["1x4096x4096"])) == [(1, 4096, 4096)]
    with pytest.raises(SystemExit, match="no problem '7'"):
        hopper_cases.problems(["7"])


def test_random_shapes_are_the_same_each_time_and_have_rows_of_16_bytes() -> None:
    import hopper_cases
    import hopper_jobs

    shapes = hopper_jobs.random_shapes()
    assert shapes == hopper_jobs.random_shapes() and len(shapes) == hopper_cases.RANDOM_SHAPES
    for (m, n, k), (a, b), *_ in shapes[9:]:
        assert (k if a == "row" else m) % 8 == 0 and (n if b == "row" else k) % 8 == 0


def test_knobs_that_are_best_where_they_are_worse_become_defaults() -> None:
    import defaults

    def kernels(ratios: dict[str, float]) -> dict:
        return {"kernels": {name: {"ratio_spread": {"median": ratio}} for name, ratio in ratios.items()}}

    problem = {"m": 8, "n": 8, "k": 8, "a_type": "bf16", "c_type": "bf16"}
    measured = {
        "problem": problem,
        "kernels": {name: {"knobs": {"block_m": number, "target": "sm_90a"}} for number, name in enumerate("abc")},
        "modes": {"burst": kernels({"a": 1.2, "b": 1.0, "c": 1.1}), "sustained": kernels({"b": 1.1, "c": 0.9})},
    }
    assert defaults.scores(measured) == {"b": 1.0, "c": 0.9}
    assert defaults.tuned_entries([{"problems": [measured]}]) == [
        {"m": 8, "n": 8, "k": 8, "a_bits": 16, "c_bits": 16, "knobs": {"block_m": 1}, defaults.RATIO: 1.0}
    ]
    del measured["modes"]["sustained"]
    assert defaults.tuned_entries([{"problems": [measured]}])[0]["knobs"] == {"block_m": 0}
    measured["modes"] = {}
    assert defaults.tuned_entries([{"problems": [measured]}]) == []


def test_the_best_without_clusters_is_a_default_too() -> None:
    import defaults

    problem = {"m": 8, "n": 8, "k": 8, "a_type": "f16", "c_type": "f32"}
    measured = {
        "problem": problem,
        "kernels": {
            name: {"knobs": {"cluster_m": rows, "block_m": number}}
            for number, (name, rows) in enumerate((("a", 2), ("b", 1), ("c", 1)))
        },
        "modes": {
            "burst": {
                "kernels": {
                    name: {"ratio_spread": {"median": ratio}} for name, ratio in (("a", 1.2), ("b", 1.0), ("c", 1.1))
                }
            }
        },
    }
    assert [entry["knobs"]["block_m"] for entry in defaults.tuned_entries([{"problems": [measured]}])] == [0, 2]
    measured["modes"]["burst"]["kernels"]["c"]["ratio_spread"]["median"] = 1.3
    assert [entry["knobs"]["block_m"] for entry in defaults.tuned_entries([{"problems": [measured]}])] == [2]


def test_every_target_has_the_fastest_kernel_that_it_can_have() -> None:
    import defaults

    def bundle(number: int, kib: int, prefetch: str) -> dict:
        steps = ["convert_to_cp_async"] if prefetch == "cp_async" else []
        return {
            "knobs": {"block_m": number, "prefetch": prefetch},
            "static_shared_memory": 0,
            "dynamic_shared_memory": kib * 1024,
            "steps": steps,
        }

    bundles = {
        "large": bundle(0, 200, "cp_async"),
        "slow": bundle(1, 200, "cp_async"),
        "middle": bundle(2, 96, "cp_async"),
        "old": bundle(3, 60, "registers"),
    }
    rates = {"cublas": 9.0, "large": 4.0, "slow": 3.0, "middle": 2.0, "old": 1.0}
    measured = {
        "problem": {"m": 8, "n": 8, "k": 8, "a_type": "f16", "c_type": "f32"},
        "bundles": bundles,
        "modes": {"burst": {"kernels": {name: {"tflops_spread": {"median": rate}} for name, rate in rates.items()}}},
    }
    assert [entry["knobs"]["block_m"] for entry in defaults.fastest_entries(measured)] == [0, 2, 3]


def test_entries_that_the_cost_model_surpasses_are_dropped(tmp_path: Path) -> None:
    """By 5%, or by 2% where the knobs are slower than cuBLAS; means of all measurements count."""
    import defaults

    def write(name: str, *rows: tuple[int, int, str, float]) -> None:
        data = {
            "problem": {"a_type": "f16", "c_type": "f32"},
            "columns": ["m", "n", "k", "place", "source", "microseconds", "cublas_microseconds"],
            "rows": [[m, 8, 8, place, source, time, 10.0] for m, place, source, time in rows],
        }
        (tmp_path / name).write_text(json.dumps(data))

    write("default_sizes_f16-f32.json", (8, -1, "measured", 10.6), (16, -1, "measured", 10.3))
    write(
        "model_sizes_f16-f32.json",
        *((m, 0, "script", 10.0) for m in (8, 16, 24)),
        (8, -1, "measured", 10.6),
        (16, 1, "script", 9.0),
        (24, -1, "measured", 10.3),
    )
    sizes = {"n": 8, "k": 8, "a_bits": 16, "c_bits": 32}
    entries = [{"m": m, **sizes, "knobs": {}} for m in (8, 16, 24, 32)]
    batch = {"m": 8, **sizes, "knobs": {}, "batch": 2}
    slow = {**entries[2], defaults.RATIO: 0.99}
    fast = {**entries[1], defaults.RATIO: 1.01}
    none = tmp_path / "none"
    assert defaults.not_surpassed([entries[0], fast, slow, entries[3], batch], none, tmp_path) == [
        entries[1],
        entries[3],
        batch,
    ]
    assert defaults.not_surpassed(entries, none, none) == entries
    # On the GPU of the entries, those that are slower than cuBLAS by the later results too: all three here.
    assert defaults.not_surpassed(entries, tmp_path, none) == [entries[3]]
