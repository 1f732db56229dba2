"""Payloads: every form parses, and its problem is found as it was written."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stepladder import engine
from stepladder.errors import StepladderError
from stepladder.payload import FACTS, find_problem, matmul_text, walk
from stepladder.resources import payloads_dir

INPUTS = Path(__file__).resolve().parents[1] / "inputs" / "payloads"
sizes = st.integers(1, 20000)


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=40)
@given(sizes, sizes, sizes, st.booleans(), st.sampled_from([("f16", "f16"), ("f16", "f32"), ("bf16", "f32"),
                                                            ("f32", "f32"), ("f64", "f64"), ("i8", "i32")]))
def test_problem_is_what_was_written(m, n, k, accumulate, types):
    inputs, c = types
    with engine.mlir_context():
        module = engine.parse_payload(matmul_text(m, n, k, a_type=inputs, b_type=inputs, acc_type=c, c_type=c,
                                                  accumulate=accumulate), "matmul.mlir")
        module.operation.verify()
        problem = find_problem(module)
    assert (problem.m, problem.n, problem.k) == (m, n, k)
    assert (problem.a_type, problem.b_type, problem.c_type) == (inputs, inputs, c)
    assert problem.accumulate is accumulate
    assert problem.roles == {0: "a", 1: "b", 2: "c"}


def test_facts():
    with engine.mlir_context():
        facts = find_problem(engine.parse_payload(matmul_text(16, 32, 48), "matmul.mlir")).facts()
    assert set(facts) == set(FACTS)
    assert (facts["m"], facts["n"], facts["k"], facts["c_bits"]) == (16, 32, 48, 32)
    assert (facts["a_type"], facts["a_bits"], facts["c_type"]) == ("f16", 16, "f32")


def test_accumulation_in_another_type_than_c():
    with engine.mlir_context():
        text = matmul_text(64, 64, 64, acc_type="f32", c_type="f16", accumulate=False)
        module = engine.parse_payload(text, "matmul.mlir")
        assert len(walk(module, "arith.truncf")) == 1
    with pytest.raises(StepladderError, match="accumulates in C's own type"):
        matmul_text(64, 64, 64, acc_type="f32", c_type="f16")


@pytest.mark.parametrize("name, roles, accumulate", [
    ("accumulate", {0: "a", 1: "b", 2: "c"}, True), ("product", {0: "a", 1: "b", 2: "c"}, False),
    ("on_memrefs", {0: "a", 1: "b", 2: "c"}, True), ("on_memrefs_from_zero", {0: "a", 1: "b", 2: "c"}, False),
    ("on_tensors", {0: "a", 1: "b", 2: "c"}, True), ("on_tensors_from_zero", {0: "a", 1: "b", 2: "c"}, False),
    ("c_first", {0: "c", 1: "b", 2: "a"}, True)])
def test_roles_of_arguments(name, roles, accumulate):
    with engine.mlir_context():
        problem = find_problem(engine.parse_payload((INPUTS / f"{name}.mlir").read_text(), name))
    assert problem.roles == roles
    assert problem.accumulate is accumulate
    assert (problem.m, problem.n, problem.k) == (256, 256, 128)


@pytest.mark.parametrize("path", sorted(payloads_dir().rglob("*.mlir")), ids=lambda path: path.stem)
def test_ready_made_payloads(path):
    """They hold what their heads say."""
    with engine.mlir_context():
        problem = find_problem(engine.parse_payload(path.read_text(), str(path)))
    assert f"{problem.m} x {problem.n} x {problem.k}" in path.read_text().splitlines()[0]
