"""The checks of numbers: kernels that are right pass, and each way of being wrong is caught. NumPy plays the GPU."""

import dataclasses
import itertools
import sys

import numpy as np
import pytest

from conftest import make_problem
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError
from stepladder.runtime.reference import matmul_program
from stepladder.verify.check import check_exact, check_matmul
from stepladder.verify.inputs import EXACT_C, INTEGER_C, exact_density, exact_inputs, integer_range, random_inputs
from stepladder.verify.tolerance import Tolerance

LAYOUTS = [("row", "row"), ("row", "column"), ("column", "row"), ("column", "column")]


class NumPyGpu:
    """Computes C = AB (+ C) in float64, rounded once on storing; `damage(c, initial_c, launch)` spoils the result.

    The problem is what it computes: operands are read in its layouts.
    """

    def __init__(self, problem, damage=lambda c, initial, launch: None):
        self.problem = problem
        self.damage = damage
        self.launches = 0

    def load(self, a, b):
        m, n, k = self.problem.m, self.problem.n, self.problem.k
        for array, name in ((a, self.problem.a_type), (b, self.problem.b_type)):
            assert array.flags.c_contiguous and array.dtype == element_type(name).dtype
        self.a = a.reshape(m, k) if self.problem.a_layout == "row" else a.reshape(k, m).T
        self.b = b.reshape(k, n) if self.problem.b_layout == "row" else b.reshape(n, k).T

    def product(self, c):
        product = self.a.astype(np.float64) @ self.b.astype(np.float64)
        return product + c.astype(np.float64) if self.problem.accumulate else product

    def launch(self, c):
        result = self.product(c).astype(element_type(self.problem.c_type).dtype)
        self.damage(result, c, self.launches)
        self.launches += 1
        return result


class TensorCore(NumPyGpu):
    """Sums as tensor cores do: 8 products a step, cut off at the largest exponent for f32, rounded for f16."""

    step = 8
    bits = 23

    @staticmethod
    def multiplied(operand):
        """Returns what the tensor core makes of an operand."""
        return operand

    def product(self, c):
        total = c.astype(np.float64) if self.problem.accumulate else np.zeros(c.shape)
        a, b = (self.multiplied(operand).astype(np.float64) for operand in (self.a, self.b))
        for start in range(0, self.problem.k, self.step):
            terms = [a[:, i, None] * b[i] for i in range(start, start + self.step)]
            if self.problem.acc_type == "f16":
                total = (total + sum(terms)).astype(np.float16).astype(np.float64)
            else:
                total = self.cut(terms + [total])
        return total

    def cut(self, terms):
        """Adds with so many bits behind the leading one of the largest term, the rest of every term cut off."""
        unit = self.unit(np.max(np.abs(terms), axis=0))
        total = sum(np.trunc(term / unit) * unit for term in terms)
        unit = self.unit(np.abs(total))
        return np.trunc(total / unit) * unit

    def unit(self, magnitude):
        return np.exp2(np.floor(np.log2(np.where(magnitude > 0, magnitude, 1))) - self.bits)


class Fp8(TensorCore):
    """Hopper's tensor core on fp8: 32 products a step, 13 bits behind the leading one."""

    step = 32
    bits = 13


class Tf32(TensorCore):
    """Reads 10 bits of a stored significand, the others cut off; 4 products a step."""

    step = 4
    rounding = 0

    def multiplied(self, operand):
        bits = np.ascontiguousarray(operand).view(np.uint32).astype(np.uint64) + self.rounding
        return (bits & 0xFFFFE000).astype(np.uint32).view(np.float32)


class RoundedTf32(Tf32):
    """The same after cvt.rna: to nearest, ties away from zero."""

    rounding = 1 << 12


def tf32_problem(m=24, n=40, k=64, **fields):
    return make_problem(m, n, k, inputs="f32", compute_type="tf32", **fields)


def fp8_problem(m=24, n=40, k=64, inputs="f8E4M3FN", **fields):
    return make_problem(m, n, k, inputs=inputs, **fields)


def i8_problem(m=24, n=40, k=64, **fields):
    return make_problem(m, n, k, "i32", "i32", inputs="i8", **fields)


PROBLEMS = [
    make_problem(24, 40, 64),
    make_problem(24, 40, 64, inputs="bf16"),
    tf32_problem(),
    i8_problem(),
    fp8_problem(),
    fp8_problem(inputs="f8E5M2"),
]
GPUS = {"f16": TensorCore, "bf16": TensorCore, "tf32": Tf32, "i8": NumPyGpu, "f8E4M3FN": Fp8, "f8E5M2": Fp8}


def with_layouts(problem, layouts):
    return dataclasses.replace(problem, a_layout=layouts[0], b_layout=layouts[1])


def verdicts(problem, executor, seed=0):
    return {report.check: report for report in check_matmul(problem, matmul_program(problem), executor, seed)}


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("acc_type, c_type", [("f32", "f32"), ("f32", "f16"), ("f16", "f16")])
@pytest.mark.parametrize("k", [8, 64, 4096])
def test_tensor_core_arithmetic_passes(acc_type, c_type, accumulate, k):
    problem = make_problem(24, 40, k, acc_type, c_type, accumulate)
    reports = verdicts(problem, TensorCore(problem), seed=3)
    assert list(reports) == ["exact", "random", "repeatable"]
    for report in reports.values():
        assert report.passed, report.describe()
        assert report.elements == 24 * 40
    assert 0 < reports["random"].max_error_over_tolerance <= 1


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("c_type", ["f32", "bf16"])
@pytest.mark.parametrize("k", [8, 64, 4096])
def test_bf16_passes(c_type, accumulate, k):
    problem = make_problem(24, 40, k, "f32", c_type, accumulate, inputs="bf16")
    for report in verdicts(problem, TensorCore(problem), seed=3).values():
        assert report.passed, report.describe()


def test_bf16_reference_takes_inputs_as_stored():
    """The sums of exact products of stored bf16 numbers, in f32: off by far less than bf16's own roundoff."""
    problem = make_problem(24, 40, 64, inputs="bf16")
    a, _, _ = random_inputs(problem, 0)
    assert a.dtype.name == "bfloat16"
    assert len(np.unique(a.astype(np.float32).view(np.uint32) & 0xFFFF)) == 1
    report = verdicts(problem, TensorCore(problem))["random"]
    assert report.passed and report.norm_error < 2.0**-20
    assert report.norm_tolerance < 2.0**-16


@pytest.mark.parametrize("inputs", ["bf16", "f8E4M3FN", "f8E5M2"])
def test_types_without_their_package(monkeypatch, inputs):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(StepladderError, match=f"'{inputs}' needs ml_dtypes.*nothing was executed") as caught:
        check_exact(make_problem(inputs=inputs), matmul_program(make_problem(inputs=inputs)), None, 0)
    assert caught.value.status == NOT_EXECUTED


def test_element_type_that_is_none():
    with pytest.raises(StepladderError, match="element type 'f64' is not supported.*f16, bf16, f32, f8E4M3FN, f8E5M2"):
        element_type("f64")


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("gpu", [Tf32, RoundedTf32])
@pytest.mark.parametrize("k", [8, 64, 4096])
def test_tf32_passes(gpu, accumulate, k):
    problem = tf32_problem(k=k, accumulate=accumulate)
    reports = verdicts(problem, gpu(problem), seed=3)
    for report in reports.values():
        assert report.passed, report.describe()
    assert reports["random"].norm_error > 2.0**-13


@pytest.mark.parametrize("k", [8, 64, 4096])
def test_bf16_does_not_pass_for_tf32(k):
    class Narrow(TensorCore):
        @staticmethod
        def multiplied(operand):
            return operand.astype(element_type("bf16").dtype)

    problem = tf32_problem(64, 64, k)
    assert not verdicts(problem, Narrow(problem))["random"].passed


def test_tf32_does_not_pass_for_f32():
    problem = tf32_problem(k=1024)
    assert not verdicts(dataclasses.replace(problem, compute_type="f32"), Tf32(problem))["random"].passed


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("c_type", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("inputs", ["f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("k", [32, 64, 4096])
def test_fp8_passes(inputs, c_type, accumulate, k):
    problem = fp8_problem(k=k, inputs=inputs, c_type=c_type, accumulate=accumulate)
    reports = verdicts(problem, Fp8(problem), seed=3)
    for report in reports.values():
        assert report.passed, report.describe()
    assert reports["random"].max_error_over_tolerance < 0.5


@pytest.mark.parametrize("inputs, largest, step", [("f8E4M3FN", 448, 2.0**-9), ("f8E5M2", 57344, 2.0**-16)])
def test_fp8_inputs_are_normal_numbers(inputs, largest, step):
    """Rounded to nearest, not cut off, and within the type's range and grid."""
    problem = fp8_problem(512, 64, 512, inputs=inputs)
    a = random_inputs(problem, 0)[0]
    assert a.dtype == element_type(inputs).dtype and a.dtype.itemsize == 1
    wide = a.astype(np.float64)
    assert np.isfinite(wide).all() and np.abs(wide).max() < largest
    assert (wide / step == np.round(wide / step)).all()
    assert abs(wide.std() - 1) < 0.01 and abs(wide.mean()) < 0.01


def test_fp8_sums_would_not_pass_for_f32():
    """The tolerance of fp8 is needed, and it is that of fp8 alone."""
    problem = fp8_problem(k=4096)
    report = verdicts(problem, Fp8(problem))["random"]
    assert report.norm_error > 2 * Tolerance.of(make_problem(k=4096)).norm
    assert verdicts(problem, TensorCore(problem))["random"].passed


@pytest.mark.parametrize("bits", [9, 10])
def test_narrower_fp8_sums_fail(bits):
    problem = fp8_problem(k=4096)
    executor = Fp8(problem)
    executor.bits = bits
    assert not verdicts(problem, executor)["random"].passed


@pytest.mark.parametrize("inputs", ["f8E4M3FN", "f8E5M2"])
def test_exact_fp8_sums_stay_below_2_to_13(inputs):
    problem = fp8_problem(32, 32, 16384, inputs=inputs)
    a, b, c = (operand.astype(np.float64) for operand in exact_inputs(problem, seed=5))
    assert exact_density(problem) == 1
    assert set(np.unique(a)) == set(np.unique(b)) == {-1, 1}
    partial = np.cumsum(a.T[:, :, None] * b[:, None, :], axis=0)
    assert np.abs(partial).max() + EXACT_C < 2**13
    assert exact_density(fp8_problem(k=470_000, inputs=inputs)) == 1
    assert exact_density(fp8_problem(k=480_000, inputs=inputs)) < 1


@pytest.mark.parametrize(
    "inputs, c_type", [("f16", "f16"), ("f16", "bf16"), ("bf16", "f16"), ("bf16", "bf16"), ("f8E4M3FN", "bf16")]
)
@pytest.mark.parametrize("accumulate", [False, True])
def test_sums_rounded_once_pass_and_twice_fail(inputs, c_type, accumulate):
    """C is narrower than the sums: it may be rounded at the end, and not after every 64 products."""
    problem = make_problem(24, 40, 8192, "f32", c_type, accumulate, inputs)
    once = GPUS[inputs](problem)
    for report in verdicts(problem, once).values():
        assert report.passed, report.describe()
    many = NumPyGpu(problem)

    def product(c):
        total = c.astype(np.float64) if accumulate else np.zeros(c.shape)
        for start in range(0, problem.k, 64):
            part = many.a[:, start : start + 64].astype(np.float64) @ many.b[start : start + 64].astype(np.float64)
            total = (total + part).astype(element_type(c_type).dtype).astype(np.float64)
        return total

    many.product = product
    assert not verdicts(problem, many)["random"].passed


def test_f32_products_pass():
    problem = make_problem(24, 40, 4096, inputs="f32")
    executor = NumPyGpu(problem)
    executor.product = lambda c: np.add.accumulate(
        [c, *(np.multiply.outer(executor.a[:, i], executor.b[i]) for i in range(problem.k))], dtype=np.float32
    )[-1]
    for report in verdicts(problem, executor).values():
        assert report.passed, report.describe()


@pytest.mark.parametrize(
    "gpu, problem",
    [
        (Tf32, tf32_problem(16, 16, 4096)),
        (TensorCore, make_problem(16, 16, 4096, inputs="bf16")),
        (Fp8, fp8_problem(16, 16, 4096)),
        (Fp8, fp8_problem(16, 16, 4096, inputs="f8E5M2")),
        (NumPyGpu, i8_problem(16, 16, 4096)),
        (NumPyGpu, i8_problem(16, 16, 4096, b_layout="column")),
    ],
)
def test_one_dropped_product_of_other_types(gpu, problem):
    executor = gpu(problem)
    product = executor.product

    def drop_one(c):
        full = product(c)
        full[5, 7] -= float(executor.a[5, 999]) * float(executor.b[999, 7])
        return full

    executor.product = drop_one
    report = check_exact(problem, matmul_program(problem), executor, seed=1)
    assert not report.passed
    assert (report.mismatches, report.first_mismatch, report.max_error) == (1, (5, 7), 1)


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.compute_type)
def test_layouts_pass(problem, layouts):
    problem = with_layouts(problem, layouts)
    gpu = GPUS[problem.compute_type]
    for inputs in (exact_inputs, random_inputs):
        assert [operand.shape for operand in inputs(problem, 0)] == [problem.a_shape, problem.b_shape, (24, 40)]
    for report in verdicts(problem, gpu(problem)).values():
        assert report.passed, report.describe()


@pytest.mark.parametrize("layouts, read_as", list(itertools.permutations(LAYOUTS, 2)))
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.compute_type)
def test_swapped_layouts_fail(problem, layouts, read_as):
    reports = verdicts(with_layouts(problem, layouts), NumPyGpu(with_layouts(problem, read_as)))
    assert not reports["exact"].passed and not reports["random"].passed
    assert reports["repeatable"].passed


def test_exact_inputs_of_a_column_major_a_are_thinned_by_its_rows():
    problem = make_problem(4, 4, 200_000, "f16", "f16", a_layout="column")
    a, _, _ = exact_inputs(problem, seed=5)
    assert a.shape == (200_000, 4)
    products = np.count_nonzero(a, axis=0)
    assert (products > 20_000).all() and (products < 32_500).all()


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("k", [8, 64, 4096])
def test_integers_are_exact(accumulate, k):
    problem = i8_problem(k=k, accumulate=accumulate)
    reports = verdicts(problem, NumPyGpu(problem))
    for report in reports.values():
        assert report.passed and f"all {24 * 40} elements equal" in report.describe()

    def damage(c, initial, launch):
        c[3, 4] += 1

    report = verdicts(problem, NumPyGpu(problem, damage))["random"]
    assert not report.passed
    assert (report.mismatches, report.first_mismatch, report.max_error) == (1, (3, 4), 1)


def test_integers_of_the_whole_range():
    problem = i8_problem(256, 256, 256)
    a, b, c = random_inputs(problem, 0)
    for operand in (a, b):
        assert operand.dtype == np.int8
        assert set(np.unique(operand)) == set(range(-128, 128))
    assert c.dtype == np.int32 and np.abs(c).max() > INTEGER_C / 2


@pytest.mark.parametrize("k, largest", [(64, 128), (131_007, 128), (131_008, 127), (200_000, 103), (2**30, 1)])
def test_integer_sums_do_not_wrap(k, largest):
    problem = i8_problem(k=k)
    assert integer_range(problem) == largest
    assert k * largest**2 + INTEGER_C <= 2**31 - 1
    assert largest == 128 or k * (largest + 1) ** 2 + INTEGER_C > 2**31 - 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda total: np.clip(total, -(2**15), 2**15 - 1),  # sums that saturate at 16 bits
        lambda total: total.astype(element_type("bf16").dtype).astype(np.float64),
    ],
)  # sums in a floating-point type
def test_narrow_integer_sums_fail(spoil):
    problem = i8_problem(k=1024)
    executor = NumPyGpu(problem)
    product = executor.product
    executor.product = lambda c: spoil(product(c))
    assert not verdicts(problem, executor)["random"].passed


def test_unsigned_integers_fail():
    problem = i8_problem()
    executor = NumPyGpu(problem)
    executor.product = lambda c: executor.a.astype(np.uint8) @ executor.b.astype(np.float64) + c
    assert not verdicts(problem, executor)["random"].passed


def test_unwritten_integer():
    problem = i8_problem(accumulate=False)

    def damage(c, initial, launch):
        assert (initial == -(2**31)).all()
        c[0, 1] = initial[0, 1]

    for check in ("exact", "random"):
        report = verdicts(problem, NumPyGpu(problem, damage))[check]
        assert not report.passed
        assert report.got == "-2147483648"


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.compute_type)
def test_race_of_other_types(problem):
    def damage(c, initial, launch):
        c[2, 3] += launch

    report = verdicts(problem, NumPyGpu(problem, damage))["repeatable"]
    assert (report.passed, report.mismatches, report.first_mismatch) == (False, 1, (2, 3))


@pytest.mark.parametrize("k", [64, 1024, 16384])
def test_f16_sums_do_not_pass_for_f32(k):
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
def test_tolerance_is_not_vacuous_at_large_k(acc_type, c_type, inputs):
    problem = make_problem(k=16384, acc_type=acc_type, c_type=c_type, inputs=inputs)
    # sqrt(s2) is the standard deviation of an element: an allowed error of one would accept anything.
    assert Tolerance.of(problem).element < 0.5
    # A lost slab of 16 of 16384 changes the norm by the square root of their quotient, 3.1 percent.
    assert Tolerance.of(problem).norm < 0.031


@pytest.mark.parametrize("acc_type, c_type", [("f32", "f32"), ("f16", "f16")])
def test_one_dropped_product_in_one_element(acc_type, c_type):
    problem = make_problem(16, 16, 16384, acc_type, c_type)
    executor = NumPyGpu(problem)
    product = executor.product

    def drop_one(c):
        full = product(c)
        full[5, 7] -= float(executor.a[5, 9999]) * float(executor.b[9999, 7])
        return full

    executor.product = drop_one
    report = check_exact(problem, matmul_program(problem), executor, seed=1)
    assert not report.passed
    assert report.mismatches == 1
    assert report.first_mismatch == (5, 7)
    assert report.max_error == 1


def test_dropped_slab_fails_the_random_check_too():
    problem = make_problem(16, 16, 16384, "f16", "f16")
    executor = NumPyGpu(problem)
    executor.product = lambda c: c + executor.a[:, :-32].astype(np.float64) @ executor.b[:-32].astype(np.float64)
    assert not verdicts(problem, executor)["random"].passed


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_never_passes(value):
    problem = make_problem()

    def damage(c, initial, launch):
        c[63, 63] = value

    reports = verdicts(problem, NumPyGpu(problem, damage))
    for check in ("exact", "random"):
        assert not reports[check].passed
        assert reports[check].mismatches == reports[check].not_finite == 1
        assert reports[check].first_mismatch == (63, 63)
        assert reports[check].got == f"{value}"


@pytest.mark.parametrize("accumulate", [False, True])
def test_unwritten_element(accumulate):
    problem = make_problem(accumulate=accumulate)

    def damage(c, initial, launch):
        c[0, 1] = initial[0, 1]

    report = verdicts(problem, NumPyGpu(problem, damage))["random"]
    assert not report.passed
    assert report.first_mismatch == (0, 1)
    assert report.not_finite == (0 if accumulate else 1)


def test_swapped_tiles():
    problem = make_problem(128, 128, 64)

    def damage(c, initial, launch):
        c[:64, :64], c[64:, 64:] = c[64:, 64:].copy(), c[:64, :64].copy()

    reports = verdicts(problem, NumPyGpu(problem, damage))
    for check in ("exact", "random"):
        assert not reports[check].passed
        assert reports[check].mismatches > 64 * 64


def test_c_left_out_and_c_added_uninvited():
    problem = make_problem(accumulate=True)
    executor = NumPyGpu(make_problem(accumulate=False))
    assert not check_exact(problem, matmul_program(problem), executor, 0).passed
    product = make_problem(accumulate=False)
    assert not check_exact(product, matmul_program(product), NumPyGpu(problem), 0).passed


def test_race():
    problem = make_problem()

    def damage(c, initial, launch):
        c[2, 3] *= 1 + launch * np.float32(2.0**-22)

    report = verdicts(problem, NumPyGpu(problem, damage))["repeatable"]
    assert not report.passed
    assert report.mismatches == 1
    assert report.first_mismatch == (2, 3)


def test_first_mismatch_and_counts_span_row_blocks(monkeypatch):
    monkeypatch.setattr(
        "stepladder.verify.check._row_blocks", lambda problem: (slice(i, i + 10) for i in range(0, 60, 10))
    )
    problem = make_problem(60, 16, 16)

    def damage(c, initial, launch):
        c[33, 2] += 5
        c[59, 15] -= 9

    report = check_exact(problem, matmul_program(problem), NumPyGpu(problem, damage), 0)
    assert report.mismatches == 2
    assert report.first_mismatch == (33, 2)
    assert report.max_error == 9
    assert f"2 of {60 * 16} elements wrong, first at [33, 2]" in report.describe()


@pytest.mark.parametrize("acc_type", ["f16", "f32"])
def test_exact_inputs_stay_in_the_exact_range(acc_type):
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


def test_exact_inputs_are_thinned_beyond_the_exact_range():
    problem = make_problem(4, 4, 200_000, "f16", "f16")
    a, _, _ = exact_inputs(problem, seed=5)
    products = np.count_nonzero(a, axis=1)
    assert (products > 20_000).all() and (products < 32_500).all()


def test_inputs_depend_on_the_seed_alone(monkeypatch):
    problem = make_problem(2048, 1024, 512)
    first = random_inputs(problem, 1)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    for one, again in zip(first, random_inputs(problem, 1)):
        assert np.array_equal(one, again)
    assert not np.array_equal(first[0], random_inputs(problem, 2)[0])
    assert first[0].dtype == np.float16 and abs(float(first[0].astype(np.float64).std()) - 1) < 0.01


def test_pytorch_takes_every_type():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from stepladder.verify.arrays import TorchArrays

    backend = TorchArrays(torch, 0)
    backend.device = "cpu"
    for problem in PROBLEMS:
        problem = with_layouts(problem, ("column", "row"))
        for operand in random_inputs(problem, 0):
            loaded = backend.load(operand.T[3:9], "float64")
            assert np.array_equal(loaded.numpy(), operand.T[3:9].astype(np.float64))


def test_report_is_json():
    import json

    problem = make_problem()

    def damage(c, initial, launch):
        c[:] = np.nan

    for report in verdicts(problem, NumPyGpu(problem, damage)).values():
        json.dumps(report.to_json(), allow_nan=False)
