"""Wrong results that the checks must refuse, and what their reports and inputs are."""

import numpy as np
import pytest

from conftest import make_problem
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import matmul_program
from stepladder.verify.check import check_exact
from stepladder.verify.inputs import EXACT_C, exact_density, exact_inputs, random_inputs
from stepladder.verify.tolerance import Tolerance
from tensor_cores import PROBLEMS, NumPyGpu, TensorCore, verdicts, with_layouts


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.compute_type)
def test_race_of_other_types(problem: Problem) -> None:
    def damage(c: np.ndarray, initial: np.ndarray, launch: int) -> None:
        c[2, 3] += launch

    report = verdicts(problem, NumPyGpu(problem, damage))["repeatable"]
    assert (report.passed, report.mismatches, report.first_mismatch) == (False, 1, (2, 3))


@pytest.mark.parametrize("k", [64, 1024, 16384])
def test_f16_sums_do_not_pass_for_f32(k: int) -> None:
    half = make_problem(24, 40, k, "f16", "f32")
    single = make_problem(24, 40, k, "f32", "f32")
    assert not verdicts(single, TensorCore(half))["random"].passed


@pytest.mark.parametrize(
    "acc_type, c_type, inputs",
    [
        ("f32", "f32", "f16"),
        ("f16", "f16", "f16"),
        ("f32", "f16", "f16"),
        ("f32", "bf16", "bf16"),
        ("f32", "f32", "f8E4M3FN"),
        ("f32", "f16", "f8E5M2"),
        ("f32", "bf16", "f8E4M3FN"),
    ],
)
def test_tolerance_is_not_vacuous_at_large_k(acc_type: str, c_type: str, inputs: str) -> None:
    problem = make_problem(k=16384, acc_type=acc_type, c_type=c_type, inputs=inputs)
    # sqrt(s2) is the standard deviation of an element: an allowed error of one would accept anything.
    assert Tolerance.of(problem).element < 0.5
    # A lost slab of 16 of 16384 changes the norm by the square root of their quotient, 3.1 percent.
    assert Tolerance.of(problem).norm < 0.031


@pytest.mark.parametrize("acc_type, c_type", [("f32", "f32"), ("f16", "f16")])
def test_one_dropped_product_in_one_element(acc_type: str, c_type: str) -> None:
    problem = make_problem(16, 16, 16384, acc_type, c_type)
    executor = NumPyGpu(problem)
    product = executor.product

    def drop_one(c: np.ndarray) -> np.ndarray:
        full = product(c)
        full[5, 7] -= float(executor.a[5, 9999]) * float(executor.b[9999, 7])
        return full

    executor.product = drop_one
    report = check_exact(problem, matmul_program(problem), executor, seed=1)
    assert not report.passed
    assert report.mismatches == 1
    assert report.first_mismatch == (5, 7)
    assert report.max_error == 1


def test_dropped_slab_fails_the_random_check_too() -> None:
    problem = make_problem(16, 16, 16384, "f16", "f16")
    executor = NumPyGpu(problem)
    executor.product = lambda c: c + executor.a[:, :-32].astype(np.float64) @ executor.b[:-32].astype(np.float64)
    assert not verdicts(problem, executor)["random"].passed


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_never_passes(value: float) -> None:
    problem = make_problem()

    def damage(c: np.ndarray, initial: np.ndarray, launch: int) -> None:
        c[63, 63] = value

    reports = verdicts(problem, NumPyGpu(problem, damage))
    for check in ("exact", "random"):
        assert not reports[check].passed
        assert reports[check].mismatches == reports[check].not_finite == 1
        assert reports[check].first_mismatch == (63, 63)
        assert reports[check].got == f"{value}"


@pytest.mark.parametrize("accumulate", [False, True])
def test_unwritten_element(accumulate: bool) -> None:
    problem = make_problem(accumulate=accumulate)

    def damage(c: np.ndarray, initial: np.ndarray, launch: int) -> None:
        c[0, 1] = initial[0, 1]

    report = verdicts(problem, NumPyGpu(problem, damage))["random"]
    assert not report.passed
    assert report.first_mismatch == (0, 1)
    assert report.not_finite == (0 if accumulate else 1)


def test_swapped_tiles() -> None:
    problem = make_problem(128, 128, 64)

    def damage(c: np.ndarray, initial: np.ndarray, launch: int) -> None:
        c[:64, :64], c[64:, 64:] = c[64:, 64:].copy(), c[:64, :64].copy()

    reports = verdicts(problem, NumPyGpu(problem, damage))
    for check in ("exact", "random"):
        assert not reports[check].passed
        assert reports[check].mismatches > 64 * 64


def test_c_left_out_and_c_added_uninvited() -> None:
    problem = make_problem(accumulate=True)
    executor = NumPyGpu(make_problem(accumulate=False))
    assert not check_exact(problem, matmul_program(problem), executor, 0).passed
    product = make_problem(accumulate=False)
    assert not check_exact(product, matmul_program(product), NumPyGpu(problem), 0).passed


def test_race() -> None:
    problem = make_problem()

    def damage(c: np.ndarray, initial: np.ndarray, launch: int) -> None:
        c[2, 3] *= 1 + launch * np.float32(2.0**-22)

    report = verdicts(problem, NumPyGpu(problem, damage))["repeatable"]
    assert not report.passed
    assert report.mismatches == 1
    assert report.first_mismatch == (2, 3)


def test_first_mismatch_and_counts_span_row_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "stepladder.verify.comparison.row_blocks", lambda problem: (slice(i, i + 10) for i in range(0, 60, 10))
    )
    problem = make_problem(60, 16, 16)

    def damage(c: np.ndarray, initial: np.ndarray, launch: int) -> None:
        c[33, 2] += 5
        c[59, 15] -= 9

    report = check_exact(problem, matmul_program(problem), NumPyGpu(problem, damage), 0)
    assert report.mismatches == 2
    assert report.first_mismatch == (33, 2)
    assert report.max_error == 9
    assert f"2 of {60 * 16} elements wrong, first at [33, 2]" in report.describe()


@pytest.mark.parametrize("acc_type", ["f16", "f32"])
def test_exact_inputs_stay_in_the_exact_range(acc_type: str) -> None:
    problem = make_problem(64, 64, 16384, acc_type, acc_type)
    a, b, c = exact_inputs(problem, seed=5)
    assert exact_density(problem) == 1
    assert set(np.unique(a)) == set(np.unique(b)) == {-1, 1}
    assert set(np.unique(c)) == set(range(-EXACT_C, EXACT_C + 1))
    sums = np.zeros((64, 64), np.float32)
    largest = 0
    for i in range(problem.k):
        sums += np.outer(a[:, i], b[i])
        largest = max(largest, np.abs(sums).max())
    assert largest + EXACT_C <= 2048


def test_exact_inputs_are_thinned_beyond_the_exact_range() -> None:
    problem = make_problem(4, 4, 200_000, "f16", "f16")
    a, _, _ = exact_inputs(problem, seed=5)
    products = np.count_nonzero(a, axis=1)
    assert (products > 20_000).all() and (products < 32_500).all()


def test_inputs_depend_on_the_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(2048, 1024, 512)
    first = random_inputs(problem, 1)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    for one, again in zip(first, random_inputs(problem, 1)):
        assert np.array_equal(one, again)
    assert not np.array_equal(first[0], random_inputs(problem, 2)[0])
    assert first[0].dtype == np.float16 and abs(float(first[0].astype(np.float64).std()) - 1) < 0.01


def test_pytorch_takes_every_type() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from stepladder.verify.arrays import TorchArrays

    backend = TorchArrays(torch, 0)
    backend.device = "cpu"
    for problem in PROBLEMS:
        problem = with_layouts(problem, ("column", "row"))
        for operand in random_inputs(problem, 0):
            loaded = backend.load(operand.T[3:9], "float64")
            assert np.array_equal(loaded.numpy(), operand.T[3:9].astype(np.float64))


def test_report_is_json() -> None:
    import json

    problem = make_problem()

    def damage(c: np.ndarray, initial: np.ndarray, launch: int) -> None:
        c[:] = np.nan

    reports = verdicts(problem, NumPyGpu(problem, damage))
    assert not any(reports[name].passed for name in ("exact", "random"))
    for report in reports.values():
        json.dumps(report.to_json(), allow_nan=False)
