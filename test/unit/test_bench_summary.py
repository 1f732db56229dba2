"""Benchmarks of many bundles, rotated buffers, and readings of clock and power. Fakes stand in for the GPU."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import make_manifest, make_problem
from stepladder.cli.commands import bench as command
from stepladder.cli.main import main
from stepladder.measure import bench, functions, power
from stepladder.measure.power import Monitor, Readings, find_monitor, parse_readings
from stepladder.measure.report import table_title
from stepladder.measure.rotation import MAX_COPIES, copies_of, in_turn, operand_bytes
from stepladder.measure.summary import loser_rows, quantile, summarize_bundles, summary_rows
from stepladder.measure.timing import MODES, Contestant, Runner, measure_rounds
from stepladder.runtime.bundle import write_bundle
from stepladder.runtime.errors import OK
from stepladder.runtime.problem import EpilogueOperand, Problem, Window
from test_bench import FakeTimer


def result_of(problem: Problem, ratios: dict[str, float]) -> dict:
    """A result of `bench_bundles` with so many bundles."""
    from dataclasses import asdict

    modes = {"burst": {"ratios": {name: {"cublas": {"spread": {"median": ratio}}} for name, ratio in ratios.items()}}}
    modes["burst"]["ratios"]["cublas"] = {}
    return {
        "problem": asdict(problem),
        "baseline": {"name": "cublas"},
        "bundles": {name: {} for name in ratios},
        "modes": modes,
    }


def test_a_summary_and_a_title_of_problems_with_epilogues_and_parts_of_buffers() -> None:
    """Nested fields of a problem, as they are and as JSON has them."""
    operands = (EpilogueOperand("f16", (64, 64)), EpilogueOperand("f32", (), by_value=True))
    window = Window((64, 80), 0, (80, 1))
    fused = make_problem(consumers=("arith.addf", "arith.mulf"), epilogue_operands=operands, a_window=window)
    for result in (result_of(fused, {"a": 0.5}), json.loads(json.dumps(result_of(fused, {"a": 0.5})))):
        assert summarize_bundles([result])["burst"]["worst"]["problem"] == fused.describe()
        title = table_title(result | {"card": {"name": "a GPU"}, "rounds": 7})
        assert title == f"{fused.describe()}; a GPU; 7 rounds"


def test_summary_has_mean_quantiles_worst_and_losers() -> None:
    small, large = make_problem(), make_problem(k=128)
    part = summarize_bundles([result_of(small, {"a": 2.0, "b": 0.5}), result_of(large, {"c": 1.0, "d": 0.25})])["burst"]
    assert part["count"] == 4
    assert part["geometric_mean"] == pytest.approx(0.25**0.25)
    assert part["quantiles"]["0.5"] == pytest.approx(0.75)
    assert part["worst"]["bundle"] == "d"
    assert [(entry["bundle"], entry["ratio"]) for entry in part["losers"]] == [("d", 0.25), ("b", 0.5)]
    assert part["losers"][0]["problem"] == large.describe()


def test_summary_as_tables() -> None:
    summary = summarize_bundles([result_of(make_problem(), {"a": 2.0, "b": 0.5})])
    assert summary_rows(summary) == [
        {
            "mode": "burst",
            "bundles": 2,
            "geometric mean": "1.000",
            "10%": "0.650",
            "25%": "0.875",
            "50%": "1.250",
            "75%": "1.625",
            "90%": "1.850",
            "worst": "0.500",
            "below 1": 1,
        }
    ]
    assert [row["bundle"] for row in loser_rows(summary)] == ["b"]


@pytest.mark.parametrize("fraction, value", [(0, 1), (0.5, 2.5), (1, 4), (0.25, 1.75)])
def test_quantiles_are_interpolated(fraction: float, value: float) -> None:
    assert quantile([4, 1, 3, 2], fraction) == pytest.approx(value)
    assert quantile([7], fraction) == 7


@pytest.fixture
def bundles(tmp_path: Path) -> list[str]:
    """Folders of bundles of three problems, two of one of them."""
    problems = {"one": make_problem(), "two": make_problem(k=128), "three": make_problem(), "four": make_problem(k=192)}
    for name, problem in problems.items():
        write_bundle(tmp_path / name, make_manifest(problem), b"cubin", "ptx", {})
    return [str(tmp_path / name) for name in problems]


def fake_bench(given: object, **options: object) -> dict[str, dict[str, str] | int]:
    """Ratios 1.1, 0.9 and so on instead of a measurement."""
    fake_bench.calls.append(([bundle.path.name for bundle in given], options["rotate"]))
    names = {bundle.path.name: 1.1 - 0.2 * number for number, bundle in enumerate(given)}
    spread = {"median": 1.0, "minimum": 1.0, "maximum": 1.0, "quartile_1": 1.0, "quartile_3": 1.0}
    result = result_of(given[0].manifest.problem, names) | {"card": {"name": "a GPU"}, "rounds": 7}
    for ratio in result["modes"]["burst"]["ratios"].values():
        for entry in ratio.values():
            entry["spread"] = spread | entry["spread"]
    result["modes"]["burst"]["kernels"] = {name: {"tflops_spread": spread} for name in (*names, "cublas")}
    return result


def test_bundles_of_several_problems_are_measured_one_after_the_other(
    bundles: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_bench.calls = []
    monkeypatch.setattr(bench, "bench_bundles", fake_bench)
    assert main(["bench", *bundles, "--rotate", "--json", str(tmp_path / "result.json")]) == OK
    assert fake_bench.calls == [(["one", "three"], True), (["two"], True), (["four"], True)]
    data = json.loads((tmp_path / "result.json").read_text())
    assert len(data["results"]) == 3
    assert data["summary"]["burst"]["count"] == 4
    assert [entry["bundle"] for entry in data["summary"]["burst"]["losers"]] == ["three"]
    shown = capsys.readouterr().out
    assert "Ratios to cublas" in shown and "Slower than cublas" in shown


def test_one_bundle_has_no_summary(
    bundles: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_bench.calls = []
    monkeypatch.setattr(bench, "bench_bundles", fake_bench)
    assert main(["bench", bundles[0], "--json", str(tmp_path / "result.json")]) == OK
    assert {"problem", "modes"} <= json.loads((tmp_path / "result.json").read_text()).keys()
    assert "Ratios to" not in capsys.readouterr().out
    assert "--rotate" in command.EPILOG


def test_copies_exceed_the_l2_cache_twice() -> None:
    problem = make_problem()
    size = operand_bytes(problem)
    for l2_bytes in (size - 1, size, 10 * size, 10 * size + 1):
        copies = copies_of(problem, l2_bytes)
        assert (copies - 1) * size <= 2 * l2_bytes < copies * size
    assert copies_of(problem, 10**12) == MAX_COPIES


def test_each_copy_is_reset_after_launches_of_its_own() -> None:
    seen: list[int] = []
    restore, every = bench._reset_all([(lambda: seen.append(0), 5), (lambda: seen.append(1), 5), (None, None)], 3)
    assert restore is not None
    restore()
    assert seen == [0, 1] and every == 15
    assert bench._reset_all([(None, None)], 3) == (None, None)


def test_launches_take_copies_in_turn() -> None:
    seen = []
    enqueue = in_turn([lambda number=number: seen.append(number) for number in range(3)])
    for _ in range(7):
        enqueue()
    assert seen == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.parametrize("ms, every, launches", [(0.3, None, 5), (0.01, None, 100), (2.0, None, 5), (0.01, 10, 10)])
def test_a_replay_goes_through_all_copies(ms: float, every: int | None, launches: int) -> None:
    """About 1 ms of launches, a multiple of five copies, and no more than C takes."""
    timer = FakeTimer({"own": ms})
    runner = Runner(timer, timer.contestant("own", restore_every=every, cycle=5))
    assert runner.graph.launches == launches


class FakeMonitor(Monitor):
    """Reads a clock that falls from 1980 to 1400 MHz."""

    def __init__(self) -> None:
        super().__init__("fake", self.watching)
        self.watched = 0

    @contextlib.contextmanager
    def watching(self) -> Iterator[Readings]:
        self.watched += 1
        yield Readings([(1980.0, 300.0), (1700.0, 600.0), (1400.0, 698.0), (1410.0, 700.0)])


def test_sustained_rounds_have_the_clock_and_power_that_settled() -> None:
    timer, monitor = FakeTimer({"own": 1.0, "cublas": 1.0}), FakeMonitor()
    contestants = [timer.contestant(name) for name in ("own", "cublas")]
    result = measure_rounds(timer, contestants, list(MODES), 7, timer.sleep, monitor=monitor)
    assert monitor.watched == 2 * 7
    assert "clock_mhz" not in result["burst"]["kernels"]["own"]
    own = result["sustained"]["kernels"]["own"]
    assert (own["clock_mhz"], own["power_w"]) == (1405.0, 699.0)


def test_readings_of_nvidia_smi() -> None:
    assert parse_readings("1980, 301.25\n1395, 692.4\n[N/A], 5\n\ngarbage") == [(1980.0, 301.25), (1395.0, 692.4)]
    assert Readings([]).settled() == {}


def test_nvidia_smi_reads_where_nvml_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\ncase \"$*\" in *loop-ms*) trap 'exit 0' TERM\n"
        "echo 1400, 690.5; echo 1390, 691.5; touch "
        + str(tmp_path / "read")
        + "; while :; do sleep 0.01; done;; esac\n"
        'case "$1" in --id=0000:01:00.0) echo 1980, 100.0;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find_monitor("0000:02:00.0") is None
    monitor = find_monitor("0000:01:00.0")
    assert monitor is not None and monitor.source == "nvidia-smi"
    with monitor.watch() as readings:
        while not (tmp_path / "read").exists():
            pass
    assert readings.taken == [(1400.0, 690.5), (1390.0, 691.5)]


def test_nvml_is_taken_first(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(
        NVML_CLOCK_SM=1,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByPciBusId=lambda bus_id: bus_id,
        nvmlDeviceGetClockInfo=lambda handle, kind: 1500,
        nvmlDeviceGetPowerUsage=lambda handle: 700_000,
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setattr(power, "INTERVAL_MS", 1)
    monitor = find_monitor("0000:01:00.0")
    assert monitor is not None and monitor.source == "nvml"
    with monitor.watch() as readings:
        while len(readings.taken) < 2:
            pass
    assert set(readings.taken) == {(1500.0, 700.0)}


def test_nothing_reads_on_a_machine_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_monitor("0000:01:00.0") is None
    assert "nvidia-smi" in power.NOTE


def test_contestants_cycle_by_default_after_one_launch() -> None:
    assert Contestant("own", 1, lambda: None).cycle == 1


@pytest.mark.parametrize(("flops", "rate", "extremes"), [(40_000_000, "2.0", "1.0 to 4.0"), (0, "", "")])
def test_the_row_of_a_function(flops: int, rate: str, extremes: str) -> None:
    """Of one without matmuls, a time but no rate."""
    spread = {"median": 2.0, "minimum": 1.0, "maximum": 4.0}
    kernel = {"milliseconds": [4.0, 1.0, 2.0], "launches": [100, 100, 100], "tflops_spread": spread}
    result = {"bundle": "f", "flops": flops, "modes": {"burst": {"kernels": {"f": kernel}}}}
    row = {"mode": "burst", "function": "f", "us": "20.0", "TFLOP/s": rate, "min to max": extremes}
    assert functions.rows_of(result) == [row]
