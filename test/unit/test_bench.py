"""How measurements are made and summarized. A fake clock stands in for the GPU."""

from __future__ import annotations

import functools
import itertools
import json
import operator
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conftest import make_manifest, make_problem
from stepladder.measure.bench import LARGEST_C, LARGEST_INTEGER_C, bench_bundles, launches_before_restore
from stepladder.measure.report import describe_bundle, table_rows, table_title
from stepladder.measure.spread import Spread
from stepladder.measure.timing import MODES, Contestant, Runner, measure_rounds
from stepladder.runtime.bundle import read_bundle, write_bundle
from stepladder.runtime.bundle.manifest import Bundle
from stepladder.runtime.errors import BAD_INPUT, StepladderError
from stepladder.runtime.graph import Graph
from stepladder.runtime.problem import Problem
from stepladder.verify.inputs import random_inputs


class FakeTimer:
    """A GPU on which the current contestant's launches take `ms[name]` milliseconds, times the next of `drift`."""

    def __init__(self, ms: dict[str, float], drift: tuple[float, ...] = (1.0,)) -> None:
        self.ms = ms
        self.drift = itertools.cycle(drift)
        self.now = 0.0
        self.log = []
        self.slept = []
        self.capturing = None

    def contestant(self, name: str, flops: int = 10**9, **options: Callable[..., None] | int) -> Contestant:
        return Contestant(name, flops, lambda: self.launch(name), **options)

    def launch(self, name: str) -> None:
        if self.capturing is not None:
            self.capturing.append(name)
        else:
            self.now += self.ms[name]

    def capture(self, enqueue: Callable[[], None], launches: int) -> Graph:
        self.capturing = []
        for _ in range(launches):
            enqueue()
        names, self.capturing = self.capturing, None
        timer = self

        class Graph:
            def __init__(self) -> None:
                self.launches = launches

            def replay(self) -> None:
                timer.log.append((names[0], launches))
                timer.now += launches * timer.ms[names[0]] * next(timer.drift)

            def free(self) -> None:
                timer.log.append(("free", names[0]))

        return Graph()

    def record_event(self) -> float:
        return self.now

    def elapsed_ms(self, start: float, end: float) -> float:
        return end - start

    def synchronize(self) -> None:
        pass

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.log.append(("sleep", seconds))


def launch_order(timer: FakeTimer) -> list[str]:
    """The order in which contestants ran after pauses."""
    return [name for (before, _), (name, _) in itertools.pairwise(timer.log) if before == "sleep"]


def test_rates_and_ratios() -> None:
    timer = FakeTimer({"ours": 2.0, "cublas": 1.0})
    result = measure_rounds(timer, [timer.contestant("ours"), timer.contestant("cublas")], ["burst"], 7, timer.sleep)
    kernels = result["burst"]["kernels"]
    assert kernels["ours"]["tflops"] == pytest.approx([0.5] * 7)  # 1e9 operations in 2 ms
    assert kernels["cublas"]["tflops_spread"]["median"] == pytest.approx(1.0)
    assert result["burst"]["ratios"]["ours"]["cublas"]["values"] == pytest.approx([0.5] * 7)
    assert result["burst"]["ratios"]["cublas"]["ours"]["spread"]["median"] == pytest.approx(2.0)
    json.dumps(result, allow_nan=False)


def test_median_of_ratios_is_taken_within_rounds() -> None:
    """The card gets slower from round to round; kernels of equal speed still have the ratio 1 in each."""
    timer = FakeTimer({"ours": 40.0, "cublas": 40.0})
    probes = [1.0] * 6  # both runners' sizing replays
    rounds = [[1.0 + 0.2 * index] * 2 * (2 + 10) for index in range(7)]  # warm-up and timed replays of both
    timer.drift = iter(probes + functools.reduce(operator.iadd, rounds, []))
    result = measure_rounds(timer, [timer.contestant("ours"), timer.contestant("cublas")], ["burst"], 7, timer.sleep)
    rates = result["burst"]["kernels"]["ours"]["tflops"]
    assert rates[0] > 2 * rates[6]
    assert result["burst"]["ratios"]["ours"]["cublas"]["values"] == pytest.approx([1.0] * 7)


def test_contestants_take_turns_in_a_rotating_order() -> None:
    timer = FakeTimer({"a": 1.0, "b": 1.0, "c": 1.0})
    measure_rounds(timer, [timer.contestant(name) for name in "abc"], ["burst"], 4, timer.sleep)
    assert "".join(launch_order(timer)) == "abcbcacababc"
    assert timer.slept == [MODES["burst"].pause_seconds] * 12


@pytest.mark.parametrize(
    "ms, mode, launches",
    [
        (0.004, "burst", 7500),
        (1.0, "burst", 30),
        (15.0, "burst", 10),
        (1.0, "sustained", 800),
        (0.1, "sustained", 8000),
    ],
)
def test_launches_fill_the_time(ms: float, mode: str, launches: int) -> None:
    timer = FakeTimer({"kernel": ms})
    sample = Runner(timer, timer.contestant("kernel")).measure(MODES[mode], timer.sleep)
    assert launches <= sample["launches"] <= launches * 1.05
    assert sample["milliseconds"] == pytest.approx(sample["launches"] * ms)


def test_short_kernels_are_replayed_many_at_a_time() -> None:
    timer = FakeTimer({"short": 0.004, "long": 3.0})
    assert Runner(timer, timer.contestant("short")).graph.launches == 250
    assert Runner(timer, timer.contestant("long")).graph.launches == 1


def test_warm_up_is_not_counted() -> None:
    timer = FakeTimer({"kernel": 10.0})
    runner = Runner(timer, timer.contestant("kernel"))
    timer.log.clear()
    timer.drift = itertools.chain([5.0, 5.0], itertools.repeat(1.0))
    sample = runner.measure(MODES["burst"], timer.sleep)
    assert len(timer.log) == 1 + 2 + 10
    assert sample["milliseconds"] == pytest.approx(100.0)


@pytest.mark.parametrize("ms, limit", [(0.01, 30), (0.01, 1000), (2.0, 7), (50.0, 1)])
def test_c_is_restored_before_it_overflows(ms: float, limit: int) -> None:
    timer = FakeTimer({"kernel": ms})
    since, longest = 0, 0

    def restore() -> None:
        nonlocal since
        since = 0
        timer.now += 123.0  # must not be counted

    contestant = timer.contestant("kernel", restore=restore, restore_every=limit)
    runner = Runner(timer, contestant)
    replay = runner.graph.replay

    def counted() -> None:
        nonlocal since, longest
        since += runner.graph.launches
        longest = max(longest, since)
        replay()

    runner.graph.replay = counted
    sample = runner.measure(MODES["burst"], timer.sleep)
    assert longest <= max(limit, 2)  # the warm-up needs 2
    assert longest > limit / 2
    assert sample["milliseconds"] == pytest.approx(sample["launches"] * ms)


def test_graphs_are_freed() -> None:
    timer = FakeTimer({"kernel": 1.0})
    measure_rounds(timer, [timer.contestant("kernel")], ["burst"], 2, timer.sleep)
    assert timer.log.count(("free", "kernel")) == 2


def test_spread() -> None:
    spread = Spread.of([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (spread.median, spread.minimum, spread.maximum) == (3.0, 1.0, 5.0)
    assert (spread.quartile_1, spread.quartile_3) == (2.0, 4.0)


def test_table_shows_every_kernel_and_ratio() -> None:
    timer = FakeTimer({"padded": 2.0, "cublas": 1.0})
    problem = make_problem()
    result = {
        "problem": problem.__dict__,
        "card": {"name": "Fake H200"},
        "rounds": 7,
        "baseline": {"name": "cublas", "provider": "none"},
        "modes": measure_rounds(
            timer, [timer.contestant("padded"), timer.contestant("cublas")], ["burst", "sustained"], 7, timer.sleep
        ),
    }
    title, rows = table_title(result), table_rows(result)
    assert "Fake H200" in title and "C = AB + C, 64 x 64 x 64, f16 x f16 -> f32" in title
    padded = [row for row in rows if row["kernel"] == "padded"]
    assert len(padded) == 2 and all(row["of cublas"] == "0.500 (0.500 to 0.500)" for row in padded)


@pytest.fixture
def bundles(tmp_path: Path) -> Callable[..., list[Bundle]]:
    def make(*problems: Problem) -> list[Bundle]:
        for index, problem in enumerate(problems):
            write_bundle(tmp_path / f"{index}.bundle", make_manifest(problem), b"", "", {})
        return [read_bundle(tmp_path / f"{index}.bundle") for index in range(len(problems))]

    return make


def test_bundles_of_different_problems(bundles: Callable[..., list[Bundle]]) -> None:
    with pytest.raises(StepladderError, match=r"must be of one problem.*64 x 64 x 64.*64 x 64 x 128"):
        bench_bundles(bundles(make_problem(), make_problem(k=128)))


def test_bundles_of_different_layouts(bundles: Callable[..., list[Bundle]]) -> None:
    with pytest.raises(StepladderError, match=r"must be of one problem.*accumulation.*B column-major"):
        bench_bundles(bundles(make_problem(), make_problem(b_layout="column")))


def test_ceiling_that_is_none(bundles: Callable[..., list[Bundle]]) -> None:
    """Refused before a GPU is looked for."""
    with pytest.raises(
        StepladderError, match=r"no mma.sync of f32 products with f32 accumulation.*tf32 with f32 accumulation"
    ):
        bench_bundles(bundles(make_problem(inputs="f32")), ceiling=True)


@pytest.mark.parametrize("c_type", ["f32", "f16"])
def test_baseline_that_is_none(bundles: Callable[..., list[Bundle]], c_type: str) -> None:
    """Refused before a GPU is looked for."""
    kernels = bundles(make_problem(inputs="f8E4M3FN", c_type=c_type))
    with pytest.raises(StepladderError, match="a column-major B of fp8; use --baseline none") as caught:
        bench_bundles(kernels)
    assert caught.value.status == BAD_INPUT


def test_what_a_result_says_of_a_kernel(tmp_path: Path) -> None:
    write_bundle(
        tmp_path / "bundle",
        make_manifest(target="sm_90", grid=(2, 64, 1), cluster=(2, 1, 1), dependent_launch=True),
        b"",
        "",
        {},
    )
    described = describe_bundle(read_bundle(tmp_path / "bundle"))
    assert (described["cluster"], described["dependent_launch"]) == ((2, 1, 1), True)
    assert described["steps"] == ("tile_to_blocks", "lower_to_nvvm")


@pytest.mark.parametrize("k", [64, 1024, 4096])
@pytest.mark.parametrize(
    "inputs, sums, largest",
    [
        ("f16", "f32", LARGEST_C),
        ("bf16", "f32", LARGEST_C),
        ("f32", "f32", LARGEST_C),
        ("i8", "i32", LARGEST_INTEGER_C),
        ("f8E4M3FN", "f32", LARGEST_C),
        ("f8E5M2", "f32", LARGEST_C),
    ],
)
@pytest.mark.parametrize("narrow", [False, True])
def test_c_stays_in_range_until_it_is_restored(inputs: str, sums: str, narrow: bool, largest: float, k: int) -> None:
    problem = make_problem(64, 64, k, sums, "f16" if narrow and sums == "f32" else sums, inputs=inputs)
    a, b, _ = (operand.astype(np.float64) for operand in random_inputs(problem, 0))
    grown = np.abs(a @ b).max() * launches_before_restore(problem)
    assert largest / 3 < grown < largest


def test_too_few_rounds(bundles: Callable[..., list[Bundle]]) -> None:
    with pytest.raises(StepladderError, match="at least 7 rounds"):
        bench_bundles(bundles(make_problem()), rounds=6)


def test_the_same_bundle_twice(bundles: Callable[..., list[Bundle]]) -> None:
    with pytest.raises(StepladderError, match="need different names"):
        bench_bundles(bundles(make_problem()) * 2)


@pytest.mark.gpu
@pytest.mark.parametrize("accumulate", [False, True])
def test_on_a_gpu(tmp_path: Path, accumulate: bool) -> None:
    """The whole measurement, with cuBLAS (where it is installed) checked too."""
    from naive_matmul import write_naive_bundle

    problem = make_problem(128, 128, 128, accumulate=accumulate)
    write_naive_bundle(tmp_path / "naive", problem)
    try:
        result = bench_bundles([read_bundle(tmp_path / "naive")], ceiling=True)
    except StepladderError as error:
        if "no cuBLAS" not in error.message:
            raise
        pytest.skip(error.message)
    spread = result["modes"]["burst"]["ratios"]["naive"]["cublas"]["spread"]
    assert 0 < spread["minimum"] <= spread["median"] <= spread["maximum"]
    json.dumps(result, allow_nan=False)


@pytest.mark.gpu
def test_a_kernel_that_fails_the_check_is_not_timed(tmp_path: Path) -> None:
    from naive_matmul import write_naive_bundle

    write_naive_bundle(tmp_path / "naive", make_problem(), products=63)
    with pytest.raises(StepladderError, match="kernel 'naive' fails the exact check and is not timed"):
        bench_bundles([read_bundle(tmp_path / "naive")], baseline="none")
