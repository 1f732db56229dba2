"""Planted faults: the emulator finds nothing in the IR of the pipelines, and each fault of `faults` in it."""

import functools

import numpy as np
import pytest

from faults import BASES, FAULTS, Fault
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.memory.findings import Finding
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, run_pipeline
from stepladder.runtime.bundle import Problem
from stepladder.runtime.reference import matmul_program
from stepladder.verify.check import check_exact

MAX_STEPS = 200_000  # the longest base takes a tenth


class _Executor:
    """Runs a matmul on the emulator, for so many steps at most, and keeps what was found."""

    def __init__(self, text: str, roles: dict[int, str]) -> None:
        self.emulation = Emulation(parse_payload(text, "fault.mlir"))
        self.roles = [roles[number] for number in sorted(roles)]
        self.findings: list[Finding] = []

    def load(self, a: np.ndarray, b: np.ndarray) -> None:
        self.operands = {"a": a, "b": b}

    def launch(self, c: np.ndarray) -> np.ndarray | None:
        operands = {**self.operands, "c": c}
        outcome = self.emulation.run([operands[role] for role in self.roles], max_steps=MAX_STEPS)
        self.findings = outcome.findings
        return outcome.arguments[self.roles.index("c")]


@functools.cache
def made(base: str) -> Run:
    """A base's pipeline, run once."""
    found = BASES[base]
    m, n, k = found.size
    with mlir_context():
        return run_pipeline(
            matmul_text(m, n, k, b_layout=found.b_layout, c_type=found.c_type, accumulate=found.accumulate),
            "payload.mlir",
            Request(found.pipeline, found.knobs),
        )


def base_text(base: str, step: str) -> str:
    """The IR of a base after a step."""
    return next(result.text for result in made(base).steps if result.name == step)


def check(text: str, base: str) -> tuple[set[str], list[Finding]]:
    """Returns the kinds of findings of a run, "numbers" where the result is wrong, and the findings."""
    found = BASES[base]
    problem = Problem(*found.size, "f16", "f16", "f32", found.c_type, found.accumulate, b_layout=found.b_layout)
    with mlir_context():
        executor = _Executor(text, made(base).matmul.roles)
        report = check_exact(problem, matmul_program(problem), executor, seed=0)
    kinds = {finding.kind for finding in executor.findings}
    return kinds if report.passed else kinds | {"numbers"}, executor.findings


@pytest.mark.parametrize("base, step", sorted({(fault.base, fault.step) for fault in FAULTS}))
def test_nothing_is_found_before(base: str, step: str) -> None:
    kinds, findings = check(base_text(base, step), base)
    assert not kinds, [finding.render() for finding in findings]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.base}: {fault.name}")
def test_fault_is_found(fault: Fault) -> None:
    before = base_text(fault.base, fault.step)
    text = fault.plant(before)
    assert text != before
    kinds, findings = check(text, fault.base)
    rendered = [finding.render() for finding in findings]
    assert fault.finds <= kinds, rendered
    assert any(fault.says in finding for finding in rendered) or not fault.says, rendered
