"""What measures the Hopper pipelines: its data, and the arithmetic of a duel."""

import sys

import pytest

from stepladder.measure.bench import Contestant, Mode
from stepladder.runtime.resources import transforms_dir

MEASURE = transforms_dir().parent / "benchmarks"
pytestmark = pytest.mark.skipif(not MEASURE.is_dir(), reason="not a checkout")
sys.path.insert(0, str(MEASURE))


class Clock:
    """A card on which launches only take time."""

    def __init__(self):
        self.now = 0.0

    def kernel(self, milliseconds):
        def enqueue():
            self.now += milliseconds

        return enqueue

    def capture(self, enqueue, launches):
        return Replay(enqueue, launches)

    def record_event(self):
        return self.now

    def elapsed_ms(self, start, end):
        return end - start

    def synchronize(self):
        pass


class Replay:
    def __init__(self, enqueue, launches):
        self.enqueue, self.launches = enqueue, launches

    def replay(self):
        for _ in range(self.launches):
            self.enqueue()

    def free(self):
        pass


def test_a_duel_compares_with_the_baselines_around():
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


def test_candidates_read_as_knobs():
    import hopper

    assert hopper.knobs_of("128x192 a s4 e1 c2x1 r16") == {
        "block_m": 128,
        "block_n": 192,
        "schedule": "pingpong",
        "consumer_warpgroups": 1,
        "stages": 4,
        "epilogue_stages": 1,
        "cluster_m": 2,
        "cluster_n": 1,
        "raster_group": 16,
    }
    assert set(hopper.CANDIDATES) == set(hopper.SQUARES) and len(hopper.SHAPES) == 20
    for size, candidates in hopper.problems([]).items():
        assert len(set(candidates)) == len(candidates), size
        for candidate in candidates:
            hopper.knobs_of(candidate)


def test_problems_by_name():
    import hopper

    assert list(hopper.problems(["2048"])) == [(2048, 2048, 2048)]
    assert len(hopper.problems(["squares"])) == len(hopper.SQUARES)
    assert list(hopper.problems(["1x4096x4096"])) == [(1, 4096, 4096)]
    with pytest.raises(SystemExit, match="no problem '7'"):
        hopper.problems(["7"])


def test_random_shapes_are_the_same_each_time_and_have_rows_of_16_bytes():
    import hopper

    shapes = hopper.random_shapes()
    assert shapes == hopper.random_shapes() and len(shapes) == hopper.RANDOM_SHAPES
    for (m, n, k), (a, b), *_ in shapes[9:]:
        assert (k if a == "row" else m) % 8 == 0 and (n if b == "row" else k) % 8 == 0


def test_knobs_that_are_best_where_they_are_worse_become_defaults():
    import defaults

    def kernels(ratios):
        return {"kernels": {name: {"ratio_spread": {"median": ratio}} for name, ratio in ratios.items()}}

    problem = {"m": 8, "n": 8, "k": 8, "a_type": "bf16", "c_type": "bf16"}
    measured = {
        "problem": problem,
        "kernels": {name: {"knobs": {"block_m": number, "target": "sm_90a"}} for number, name in enumerate("abc")},
        "modes": {"burst": kernels({"a": 1.2, "b": 1.0, "c": 1.1}), "sustained": kernels({"b": 1.1, "c": 0.9})},
    }
    assert defaults.scores(measured) == {"b": 1.0, "c": 0.9}
    assert defaults.tuned_entries([{"problems": [measured]}]) == [
        {"m": 8, "n": 8, "k": 8, "a_bits": 16, "c_bits": 16, "knobs": {"block_m": 1}}
    ]
    del measured["modes"]["sustained"]
    assert defaults.tuned_entries([{"problems": [measured]}])[0]["knobs"] == {"block_m": 0}
    measured["modes"] = {}
    assert defaults.tuned_entries([{"problems": [measured]}]) == []


def test_the_best_without_clusters_is_a_default_too():
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


def test_every_target_has_the_fastest_kernel_that_it_can_have():
    import defaults

    def bundle(number, kib, latency):
        steps = ["convert_to_cp_async"] if latency == "asynchronous" else []
        return {
            "knobs": {"block_m": number, "prefetch": latency},
            "static_shared_memory": 0,
            "dynamic_shared_memory": kib * 1024,
            "steps": steps,
        }

    bundles = {
        "large": bundle(0, 200, "asynchronous"),
        "slow": bundle(1, 200, "asynchronous"),
        "middle": bundle(2, 96, "asynchronous"),
        "old": bundle(3, 60, "registers"),
    }
    rates = {"cublas": 9.0, "large": 4.0, "slow": 3.0, "middle": 2.0, "old": 1.0}
    measured = {
        "problem": {"m": 8, "n": 8, "k": 8, "a_type": "f16", "c_type": "f32"},
        "bundles": bundles,
        "modes": {"burst": {"kernels": {name: {"tflops_spread": {"median": rate}} for name, rate in rates.items()}}},
    }
    assert [entry["knobs"]["block_m"] for entry in defaults.fastest_entries(measured)] == [0, 2, 3]
