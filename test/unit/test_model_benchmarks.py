"""The benchmarks of the cost model, as far as they need no GPU: what is drawn, read back, fitted and reported."""

import argparse
import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="not a checkout")
sys.path.insert(0, str(BENCHMARKS))


def test_problems_are_drawn_alike_and_half_of_each_kind_is_held_out() -> None:
    from draw import KINDS, draw

    problems = draw(60)
    assert problems == draw(60) == draw(300)[:60] and problems != draw(60, seed=1)
    assert len({problem.size for problem in problems}) == 60
    for kind in KINDS:
        own = [problem for problem in problems if problem.kind == kind]
        assert len(own) == 20 and sum(problem.held_out for problem in own) == 10
    assert all(extent % 8 == 0 for problem in problems if problem.kind == "eights" for extent in problem.size)


def test_problems_with_short_sides_are_none_of_the_others() -> None:
    from draw import draw, draw_thin

    problems = draw_thin(40)
    assert problems == draw_thin(40) == draw_thin(100)[:40] and problems != draw_thin(40, seed=1)
    assert not {problem.size for problem in problems} & {problem.size for problem in draw()}
    assert all(min(problem.size[:2]) <= 800 or max(problem.size) <= 2560 for problem in problems)


def test_problems_of_another_draw_are_none_of_the_first_and_all_held_out() -> None:
    from draw import draw, draw_fresh

    problems = draw_fresh(40)
    assert problems == draw_fresh(40) == draw_fresh(96)[:40] and problems != draw_fresh(40, seed=1)
    assert not {problem.size for problem in problems} & {problem.size for problem in draw()}
    assert all(problem.held_out for problem in problems)


def test_slow_problems_are_those_of_a_list() -> None:
    from draw import SLOW, draw_slow

    assert [problem.size for problem in draw_slow()] == list(SLOW) == [problem.size for problem in draw_slow(300)]
    assert len(draw_slow(3)) == 3 and not any(problem.held_out for problem in draw_slow())


def test_forms_are_the_first_settings_of_either_orientation(tmp_path: Path) -> None:
    from choice_plan import EXCHANGED, FIRST, SWAPPED, TYPES, plan
    from draw import Drawn

    jobs = plan(Drawn("thin", 72, 1000, 512, False), TYPES["bf16-bf16"], False, tmp_path, forms=True)
    assert [job.place for job in jobs] == [*range(FIRST), *range(SWAPPED, SWAPPED + EXCHANGED)]
    assert all(job.knobs["swap_operands"] is (job.place >= SWAPPED) for job in jobs)
    assert "tma" in {job.knobs["epilogue"] for job in jobs if job.knobs["swap_operands"]}


def test_varied_settings_are_of_both_orientations_and_launched_both_ways(tmp_path: Path) -> None:
    from choice_plan import OF_A_FORM, TYPES, plan
    from draw import EDGE_BYTES, draw, draw_edge, draw_tail

    problems, edges = draw_tail(8), draw_edge(8)
    assert problems == draw_tail(20)[:8] and edges == draw_edge(20)[:8]
    assert not {problem.size for problem in (*problems, *edges)} & {problem.size for problem in draw()}
    assert all(EDGE_BYTES[0] < 2 * (p.m * p.k + p.k * p.n + p.m * p.n) < EDGE_BYTES[1] for p in edges)
    jobs = plan(problems[0], TYPES["bf16-bf16"], False, tmp_path, variety=9, launches=True)
    assert [job.place for job in jobs] == list(range(18))
    forms = [(job.knobs.get("swap_operands"), job.knobs["cluster_m"], job.knobs["cluster_n"]) for job in jobs]
    assert len(set(forms)) >= 3 and max(forms.count(form) for form in forms) <= 2 * OF_A_FORM
    assert [job.knobs.get("dependent_launch", True) for job in jobs] == [True, False] * 9
    beside = plan(problems[0], TYPES["bf16-bf16"], False, tmp_path, variety=9, with_default=True)
    assert [job.place for job in beside] == [-1, *range(9)] and beside[0].knobs is None


def test_a_search_keeps_the_best_that_it_began_with() -> None:
    from box import Box
    from evolution import evolve

    def distance(point: np.ndarray) -> float:
        return float(np.abs(point - 0.5).sum())

    box, start = Box(np.zeros(3), np.ones(3)), np.full(3, 0.5)
    assert np.array_equal(evolve(distance, box, start, 1, 2), start)
    wide, narrow = (evolve(distance, box, start + 0.1, 1, 20, width=width) for width in (0.25, 0.02))
    assert max(distance(wide), distance(narrow)) < 0.3 and not np.array_equal(wide, narrow)


def measured(name: str) -> list:
    from measured_kernels import RESULTS, kernels_of

    return kernels_of(RESULTS / f"{name}.json")


def test_results_are_read_back() -> None:
    kernels = measured("wgmma_sweep_bf16-bf16")
    assert len(kernels) == 1270 and kernels[0].knobs["block_m"] == 192 and kernels[0].microseconds == 1633.72
    kernels = measured("mma_sync_sizes_f32")
    assert {kernel.pipeline for kernel in kernels} == {"mma_sync"} and all(
        kernel.shared_bytes > 0 for kernel in kernels
    )


def test_the_constants_in_the_package_choose_as_well_as_they_say() -> None:
    from fit_cost_model import usable
    from fit_data import Data
    from stepladder.pipeline.cost_model import gpu

    card = gpu.load("h200")
    data = Data(usable(measured("wgmma_sweep_bf16-bf16")), card)
    judged = data.judge(data.predict(card))
    assert judged["problems"] == 52 and judged["first_of_best"] >= 0.95 and judged["best_of_four_of_best"] >= 0.98
    assert judged["first_of_cublas"] >= 1.0


@pytest.mark.parametrize("pattern", ["wgmma_sweep*.json", "wgmma_tuning*.json", "model_*.json"])
def test_results_name_knobs_and_values_that_the_pipeline_has(pattern: str) -> None:
    from measured_kernels import RESULTS, kernels_of
    from stepladder.pipeline import knob_choice, library
    from stepladder.pipeline.context import mlir_context

    with mlir_context():
        options = knob_choice.space_of(library.load("wgmma"), ()).options
    for path in RESULTS.glob(pattern):
        for kernel in kernels_of(path):
            for knob, value in kernel.knobs.items():
                assert knob in options and (not options[knob] or value in options[knob]), (path.name, knob, value)


def test_a_kernel_without_a_knob_of_others_is_named() -> None:
    from fit_data import Group
    from stepladder.runtime.errors import StepladderError

    first, second = measured("wgmma_sweep_bf16-bf16")[:2]
    knobs = {name: value for name, value in second.knobs.items() if name != "consumer_warpgroups"}
    with pytest.raises(StepladderError, match="wgmma_sweep_bf16-bf16: a kernel has no consumer_warpgroups"):
        Group.of([first, replace(second, knobs=knobs)])


def test_times_of_a_problem_are_as_if_at_one_clock() -> None:
    from measured_kernels import steadied

    kernel = measured("wgmma_sweep_bf16-bf16")[0]
    times = [(100.0, 110.0), (120.0, 121.0), (130.0, 132.0)]
    kernels = [
        replace(kernel, knobs=kernel.knobs | {"stages": 2 + index // 2}, microseconds=own, cublas_microseconds=library)
        for index, (own, library) in enumerate(times)
    ]
    first, second = steadied(kernels)
    assert (first.cublas_microseconds, second.cublas_microseconds) == (121.0, 121.0)
    assert first.microseconds == pytest.approx(121 * (100 / 110 + 120 / 121) / 2)
    assert second.microseconds == pytest.approx(121 * 130 / 132)


def test_a_fit_uses_no_problem_that_is_held_out() -> None:
    from draw import draw
    from fit_cost_model import usable

    kernel = measured("wgmma_sweep_bf16-bf16")[0]
    problems = [next(one for one in draw() if one.held_out == held_out) for held_out in (True, False)]
    kernels = [replace(kernel, problem=kernel.problem | dict(zip("mnk", problem.size))) for problem in problems]
    assert [one.size for one in usable(kernels)] == [problems[1].size]


@pytest.mark.parametrize("key", ["h200", "h100"])
def test_samples_that_are_held_out_have_a_seed_of_their_own(key: str) -> None:
    """Layers and squares of random samples repeat: tables leave such problems out."""
    from fit_data import fitted_sizes
    from measured_kernels import RESULTS, kernels_of

    fitted = fitted_sizes(key)
    paths = list((RESULTS if key == "h200" else RESULTS / key).glob("held_out_*.json"))
    assert paths
    for path in paths:
        sizes = {kernel.size for kernel in kernels_of(path)}
        assert len(sizes & fitted) < len(sizes) / 4, path.name


def test_a_search_near_the_constants_needs_a_family(capsys: pytest.CaptureFixture[str]) -> None:
    from fit_cost_model import main

    with pytest.raises(SystemExit):
        main(["--refine", "--dry-run"])
    assert "--refine: --family is missing" in capsys.readouterr().err


def test_a_fit_finds_the_constants_that_times_were_made_with() -> None:
    from fit_cost_model import fit, with_constants
    from fit_data import Data
    from stepladder.pipeline.cost_model import gpu
    from stepladder.pipeline.cost_model.constants import CONSTANTS, WARPGROUP

    card = gpu.load("h200")
    true = card.constants[WARPGROUP]
    kernels = measured("wgmma_sweep_bf16-bf16")[:300]
    unlike = Data(kernels, card)
    times = unlike.predict(card)
    data = Data([replace(kernel, microseconds=float(time)) for kernel, time in zip(unlike.kernels, times)], card)
    names = ("matrix", "fill", "tile")
    moved = {**true, "matrix": true["matrix"] + 0.1, "fill": true["fill"] - 0.3, "tile": true["tile"] - 0.2}
    start = with_constants(card, WARPGROUP, np.array([moved[name] for name in CONSTANTS[WARPGROUP]]))
    found = fit(data, start, WARPGROUP, 8, names, pull=0.0).constants[WARPGROUP]
    assert {name: found[name] for name in names} == pytest.approx({name: true[name] for name in names}, abs=0.02)
    assert all(found[name] == moved[name] for name in moved if name not in names)
    # What it costs to move keeps them.
    held = fit(data, start, WARPGROUP, 8, names, pull=100.0).constants[WARPGROUP]
    assert held == pytest.approx(moved, abs=0.01)


def test_the_derivatives_of_an_objective_are_those_of_its_value() -> None:
    from fit_cost_model import usable
    from fit_data import Data
    from stepladder.pipeline.cost_model import gpu

    card = gpu.load("h200")
    data = Data(usable(measured("wgmma_sweep_bf16-bf16"))[::5], card)
    logarithms = np.log(data.predict(card))
    direction = np.random.default_rng(1).standard_normal(len(logarithms))
    _, derivatives = data.objective(logarithms)
    values = [data.objective(logarithms + step * direction)[0] for step in (-1e-5, 1e-5)]
    assert (values[1] - values[0]) / 2e-5 == pytest.approx(float(derivatives @ direction), rel=1e-3)


def test_choices_are_judged_with_the_margins_of_the_model() -> None:
    """A launch by itself is chosen if it is predicted to be faster by 3%, and its time counts if it is chosen."""
    from fit_data import Data
    from stepladder.pipeline.cost_model import gpu

    card = gpu.load("h200")
    kernel = measured("wgmma_sweep_bf16-bf16")[0]
    other = replace(kernel, knobs=kernel.knobs | {"dependent_launch": False}, microseconds=kernel.microseconds * 2)
    data = Data([kernel, other], card)
    assert data.margins == pytest.approx([0.0, -np.log(0.97)])
    judged = [data.judge_sources(np.array([1.0, time]))[kernel.source]["first_of_best"] for time in (0.98, 0.96)]
    assert judged == [1.0, 0.5]


def test_a_choice_is_planned_built_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from choice_plan import TYPES, plan
    from draw import Drawn
    from measured_kernels import kernels_of, write_table
    from model_choice import COLUMNS, KNOBS, build_one, head_of, report, row_of
    from model_report import DEFAULT

    problem = Drawn("eights", 136, 264, 512, False)
    jobs = plan(problem, TYPES["bf16-bf16"], False, tmp_path)
    assert [job.place for job in jobs] == [DEFAULT, 0, 1, 2, 3]
    built = build_one(jobs[0])
    assert not built.refused and built.source == "model" and set(KNOBS) <= set(built.knobs)
    rows = [row_of(replace(built, job=job), 2.0 + job.place, 3.0) for job in jobs]
    path = tmp_path / "model.json"
    write_table(path, head_of(TYPES["bf16-bf16"], {"name": "a GPU"}), list(COLUMNS), rows)
    kernels = kernels_of(path)
    assert len(kernels) == 5 and kernels[0].size == problem.size and set(kernels[0].knobs) == {*KNOBS, "target"}
    report(argparse.Namespace(results=[str(path)]))
    printed = capsys.readouterr().out
    assert "default, of cuBLAS" in printed and "losers: 136x264x512 3.00" in printed
    assert json.loads(path.read_text())["columns"] == list(COLUMNS)


def test_choices_of_two_versions_are_measured_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import compare_choices
    from choice_plan import TYPES, Job
    from draw import DRAWS
    from model_choice import KNOBS, Built

    problems = DRAWS["fresh"](3, 7)
    knobs = dict.fromkeys(KNOBS, "")
    for name, rows in (("before", (64, 128, 192)), ("after", (64, 256, 64))):
        folder = tmp_path / name / "0"
        folder.mkdir(parents=True)
        jobs = [Job(problem, TYPES["bf16-bf16"], -1, None, 0.0, folder) for problem in problems]
        built = [Built(job, knobs | {"block_m": block_m}, "model") for job, block_m in zip(jobs, rows)]
        built[2] = replace(built[2], refused="too large" if name == "before" else "")
        (folder / "kernels.pickle").write_bytes(pickle.dumps(built))
    measured = []

    class Card:
        device = argparse.Namespace(describe=lambda: {"name": "a GPU"})

        def measure(self, kernels: list[Built]) -> list[tuple[Built, float, float]]:
            measured.append([one.knobs["block_m"] for one in kernels])
            return [(one, float(one.knobs["block_m"]), 100.0) for one in kernels]

    monkeypatch.setattr(compare_choices, "Gpu", Card)
    result = tmp_path / "choices_bf16-bf16.json"
    words = [str(result), "--before", "other", "--seed", "7", "--count", "3", "--folder", str(tmp_path)]
    compare_choices.main(words)
    # One kernel where both choose the same; none where one is refused.
    assert measured == [[64], [128, 256]]
    for path, times in ((result, [64.0, 256.0]), (tmp_path / "choices_before_bf16-bf16.json", [64.0, 128.0])):
        data = json.loads(path.read_text())
        assert [dict(zip(data["columns"], row))["microseconds"] for row in data["rows"]] == times


def test_decode_reports_ratios_and_fractions_of_the_rate_of_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import decode
    from measured_kernels import write_table
    from model_choice import COLUMNS, KNOBS, head_of

    drawn = decode.problems((1, 8))
    assert len(drawn) == 24 and {problem.m for problem in drawn} == {1, 8}
    # 4096 x 4096 weights of 2 bytes in 10 us are 3.36 TB/s, 0.70 of 4.8; the second kernel is faster.
    knobs = ["" for _ in KNOBS]
    rows = [
        [8, 4096, 4096, "Llama 3 8B", False, place, "model", *knobs, 0.0, own, 12.0]
        for place, own in ((-1, 10.0), (0, 8.0))
    ]
    head = head_of(("bf16", "f32", "bf16", "row", "column"), {"name": "NVIDIA H200", "copied_gb_per_second": 4200.0})
    write_table(tmp_path / "decode.json", head, list(COLUMNS), rows)
    decode.main(["report", str(tmp_path / "decode.json")])
    first, default, best = capsys.readouterr().out.splitlines()
    assert "B column-major, NVIDIA H200" in first and "4.80 TB/s by the data sheet, 4.20 in a copy" in first
    assert "m =  8, default              :  1 layers, of cuBLAS 1.200" in default and "of HBM 0.702" in default
    assert "of cuBLAS 1.500" in best and "of HBM 0.877" in best


def test_settings_of_batches_differ_in_more_than_the_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    import form_parts

    monkeypatch.setenv("STEPLADDER_GPU", "h200")
    first = form_parts.draw_batches()[:1]
    monkeypatch.setattr(form_parts, "draw_batches", lambda: first)
    for part in ("batches", "triggers"):
        settings = [knobs for _, knobs in form_parts.PARTS[part]()]
        assert len(settings) > 4 and len({tuple(sorted(knobs.items())) for knobs in settings}) == len(settings)
    assert {knobs["launch_trigger"] for knobs in settings} == {"early", "exit"}
