"""Batches of matmuls as payloads: what is recognized and what is refused, and what checks and the cost model make of
them."""

import dataclasses
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from conftest import make_problem
from stepladder.emulator.matmul import check_small, payload_of, small_problem
from stepladder.measure.tuning.database import problem_key
from stepladder.payload import reference_export
from stepladder.payload.matmul import find_matmul
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import build, knob_choice, library
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.bundle import read_bundle, write_bundle
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import matmul_program
from stepladder.verify import arrays
from stepladder.verify.check import check_matmul
from stepladder.verify.inputs import exact_inputs, logical_operands
from stepladder.verify.reference_evaluation import Evaluation

LAYOUTS = ("row", "column")
FORMS = list(itertools.product(LAYOUTS, LAYOUTS, ("", "a", "b", "ab")))


def problem_of(text: str) -> Problem:
    with mlir_context():
        return find_matmul(parse_payload(text, "batch.mlir")).problem


@pytest.mark.parametrize("a_layout, b_layout, broadcast", FORMS)
def test_recognized(a_layout: str, b_layout: str, broadcast: str) -> None:
    text = matmul_text(3, 5, 7, batch=2, a_layout=a_layout, b_layout=b_layout, broadcast=broadcast)
    problem = problem_of(text)
    assert problem == make_problem(
        3,
        5,
        7,
        a_layout=a_layout,
        b_layout=b_layout,
        batch=2,
        a_broadcast="a" in broadcast,
        b_broadcast="b" in broadcast,
    )
    assert len(problem.a_shape) == (2 if "a" in broadcast else 3)
    assert len(problem.b_shape) == (2 if "b" in broadcast else 3)
    assert problem.c_shape == (2, 3, 5) and problem.flops == 2 * 2 * 3 * 5 * 7
    assert payload_of(problem) == text


@pytest.mark.parametrize("a_layout, b_layout, broadcast", FORMS)
def test_reference(a_layout: str, b_layout: str, broadcast: str) -> None:
    """The exported program, that of the problem, and NumPy agree."""
    text = matmul_text(3, 5, 7, batch=4, a_layout=a_layout, b_layout=b_layout, broadcast=broadcast)
    with mlir_context():
        module = parse_payload(text, "batch.mlir")
        found = find_matmul(module)
        exported = reference_export.export(module, found.roles)
    a, b, c = exact_inputs(found.problem, 1)
    left, right = logical_operands(found.problem, a, b)
    expected = left.astype(np.float64) @ right.astype(np.float64) + c
    for program in (exported, matmul_program(found.problem)):
        evaluation = Evaluation(program, dict(enumerate((a, b, c))), arrays.NumPyArrays())
        assert np.array_equal(evaluation.rows(program.output("c"), slice(1, 3)), expected[1:3])


@pytest.mark.parametrize("sizes", [(1, 5, 7), (3, 1, 7), (3, 5, 1)])
def test_a_shared_b_with_a_size_of_1_is_one_matmul(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    problem = problem_of(matmul_text(m, n, k, batch=2, broadcast="b"))
    assert problem.batch is None and sorted((problem.m, problem.n)) == sorted((2 * m, n)) and problem.k == k


def test_names() -> None:
    problem = make_problem(64, 32, 16, batch=3, b_broadcast=True, b_layout="column", accumulate=False)
    assert problem.describe() == (
        "C = AB, 3 x 64 x 32 x 16, f16 x f16 -> f32 (f32 accumulation), B column-major, B broadcast"
    )
    keys = {
        problem_key(dataclasses.replace(make_problem(64, 32, 16), **changes))
        for changes in (
            {},
            {"batch": 1},
            {"batch": 3},
            {"batch": 3, "a_broadcast": True},
            {"batch": 3, "b_broadcast": True},
        )
    }
    assert len(keys) == 5


MAPS = "affine_map<(b, m, n, k) -> ({})>"


def product(a_map: str, b_map: str, c_map: str, a: str, b: str, c: str) -> str:
    maps = ", ".join(MAPS.format(map_) for map_ in (a_map, b_map, c_map))
    return (
        f"func.func @batch(%a: tensor<{a}xf16>, %b: tensor<{b}xf16>, %c: tensor<{c}xf32>) -> tensor<{c}xf32> {{\n"
        f"  %d = linalg.contract indexing_maps = [{maps}] ins(%a, %b : tensor<{a}xf16>, tensor<{b}xf16>)\n"
        f"      outs(%c : tensor<{c}xf32>) -> tensor<{c}xf32>\n  return %d : tensor<{c}xf32>\n}}\n"
    )


@pytest.mark.parametrize(
    "text, message",
    [
        (
            product("m, b, k", "b, k, n", "b, m, n", "4x2x8", "2x8x6", "2x4x6").replace("f16", "f32"),
            "linalg.contract: the dimensions of A are in an order that is neither row- nor column-major",
        ),
        (
            matmul_text(4, 4, 4, batch=2)
            .replace("batch_matmul", "batch_reduce_matmul")
            .replace("2x4x4xf32", "4x4xf32"),
            "linalg.batch_reduce_matmul: the dimensions of A are in an order",
        ),
        (
            matmul_text(4, 4, 4, batch=2).replace("2x4x4", "?x4x4"),
            "linalg.batch_matmul has dynamic shapes; sizes must be static",
        ),
        (
            matmul_text(4, 4, 4, batch=2).replace("2x4x4", "0x4x4"),
            "a matmul of 0 x 4 x 4 x 4 has nothing to compute: batch = 0",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(StepladderError, match=message) as caught:
        problem_of(text)
    assert caught.value.location or "no linalg.matmul" in message
    names_command = any("`stepladder compile` takes other orders" in note for note in caught.value.notes)
    assert names_command == ("in an order" in message)
    if message.startswith("linalg.contract: the dimensions"):
        assert "A is argument 0, which has the dimensions m (4), batch (2), k (8), outermost" in caught.value.notes[0]


@pytest.mark.parametrize(
    "sizes, message",
    [
        (
            (65536, 64, 64, 64),
            "a batch must have at most 65535 matmuls, the maximum grid dimension z, but batch = 65536",
        ),
        ((2, 1, 64, 64), "m, n and k of a batch must be above 1: .* but .*m = 1"),
    ],
)
def test_required(sizes: tuple[int, int, int, int], message: str) -> None:
    batch, m, n, k = sizes
    with mlir_context(), pytest.raises(StepladderError, match=f"step 'tile_to_blocks': {message}") as caught:
        run_pipeline(matmul_text(m, n, k, batch=batch), "batch.mlir", Request("wgmma", {"block_m": 64}))
    assert caught.value.location.startswith("batch.mlir:")


@pytest.mark.parametrize("epilogue", ("registers", "rows"))
def test_offsets_in_a_large_c_are_unsigned(epilogue: str) -> None:
    """An offset from 2^31 to 2^32 is a number of 32 bits, but no signed one."""
    text = matmul_text(8192, 8192, 64, batch=48, accumulate=False)
    with mlir_context():
        run = run_pipeline(text, "batch.mlir", Request("wgmma", {"block_n": 128, "epilogue": epilogue}))
    (narrowed,) = (step.text for step in run.steps if step.name == "narrow_indices")
    assert re.search(r"arith\.muli .*: i32", narrowed)
    assert not re.search(r"overflow<.*: i32", narrowed)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"broadcast": "a"}, "A broadcast over a batch, and there is none"),
        ({"batch": 2, "broadcast": "c"}, "A, B or both can be broadcast"),
        ({"batch": 0}, "batch = 0"),
    ],
)
def test_no_such_payload(options: dict[str, int | str], message: str) -> None:
    with pytest.raises(StepladderError, match=message):
        matmul_text(4, 4, 4, **options)


class Product:
    """Computes a batch in NumPy, and one element wrong."""

    def __init__(self, problem: Problem, wrong: tuple[int, ...] | None) -> None:
        self.problem, self.wrong = problem, wrong

    def load(self, a: np.ndarray, b: np.ndarray) -> None:
        left, right = logical_operands(self.problem, a, b)
        self.product = left.astype(np.float64) @ right.astype(np.float64)

    def launch(self, c: np.ndarray) -> np.ndarray:
        result = (self.product + (c if self.problem.accumulate else 0)).astype(c.dtype)
        if self.wrong:
            result[self.wrong] += 4
        return result


@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("broadcast", [{}, {"a_broadcast": True}, {"b_broadcast": True}])
def test_checks(broadcast: dict[str, bool], accumulate: bool) -> None:
    problem = make_problem(8, 12, 16, accumulate=accumulate, batch=3, a_layout="column", **broadcast)
    right = check_matmul(problem, matmul_program(problem), Product(problem, None), 0)
    assert all(report.passed for report in right) and right[0].elements == 3 * 8 * 12
    wrong = check_matmul(problem, matmul_program(problem), Product(problem, (2, 5, 7)), 0)
    assert [report.first_mismatch for report in wrong] == [(2, 5, 7), (2, 5, 7), None]
    assert "1 of 288 elements wrong, first at [2, 5, 7]: got" in wrong[0].describe()


def test_bundle(tmp_path: Path) -> None:
    text = matmul_text(200, 136, 72, batch=3, b_layout="column", broadcast="b")
    with mlir_context():
        made = build.build(text, "batch.mlir", Request("wgmma", {"block_m": 64, "consumer_warpgroups": 1}))
        write_bundle(tmp_path / "b", made.manifest, made.code.cubin, made.code.ptx, {}, reference=made.reference)
    manifest = read_bundle(tmp_path / "b").manifest
    assert manifest.problem == problem_of(text)
    shapes = {argument.role: argument.shape for argument in manifest.arguments}
    assert shapes == {"a": (3, 200, 72), "b": (136, 72), "c": (3, 200, 136)}
    described = {item.role: (item.shape, item.strides, len(item.box)) for item in manifest.tma_descriptors}
    assert described == {
        "a": ((3, 200, 72), (200 * 72 * 2, 72 * 2), 3),
        "b": ((136, 72), (72 * 2,), 2),
        "c": ((3, 200, 136), (200 * 136 * 4, 136 * 4), 3),
    }
    assert all(item.box[0] == 1 for item in manifest.tma_descriptors if len(item.box) == 3)
    # Bundles of before have no batch.
    data = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert {name: data["problem"][name] for name in ("batch", "a_broadcast", "b_broadcast")} == {
        "batch": 3,
        "a_broadcast": False,
        "b_broadcast": True,
    }


def _predicted(**options: str | int) -> tuple[float, dict]:
    with mlir_context():
        pipeline = library.load("wgmma")
        text = matmul_text(512, 512, 512, c_type="f16", accumulate=False, **options)
        ranked = knob_choice.rank(read_query(pipeline, Request("wgmma", {"swap_operands": False}), text, "batch.mlir"))
    first = ranked.first(1)[0]
    return first.microseconds, first.knobs


def test_cost_model_counts_all_matmuls() -> None:
    one, _ = _predicted()
    same, _ = _predicted(batch=1)
    many, knobs = _predicted(batch=64)
    shared, _ = _predicted(batch=64, broadcast="b")
    assert same == one
    assert 4 * one < many < 64 * one and shared <= many
    assert int(knobs.get("split_k", 1)) == 1


@pytest.mark.parametrize("value", ["wide", 0, -1])
def test_knobs_that_no_pipeline_has_make_no_smaller_problem(value: int | str) -> None:
    problem, knobs = make_problem(4096, 4096, 4096), {"block_m": 128, "block_n": 256, "block_k": 64}
    assert small_problem(problem, {**knobs, "block_n": value}) == problem
    usual = small_problem(problem, knobs)
    for name in ("stages", "split_k", "cluster_m"):
        assert small_problem(problem, {**knobs, name: value}) == usual


def test_small_batch() -> None:
    problem = make_problem(4096, 4096, 4096, batch=64, b_broadcast=True)
    small = small_problem(problem, {"block_m": 128, "block_n": 256, "block_k": 64, "stages": 2})
    assert (small.batch, small.m, small.n, small.k, small.b_broadcast) == (3, 256, 512, 256, True)
    with mlir_context():
        text = matmul_text(512, 512, 512, batch=5, broadcast="a")
        settings = {"block_m": 64, "block_n": 64, "consumer_warpgroups": 1, "stages": 2}
        checked, report = check_small(text, "batch.mlir", Request("wgmma", settings))
    assert checked.batch == 3 and report.passed
