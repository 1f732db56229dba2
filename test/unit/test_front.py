"""The front: payloads as users and front ends write them compile and are right, or are refused where they stand.

`test/inputs/front` has a file of payloads that are accepted and one of those refused. The first line of each names it;
a comment `computes` states the problem and the roles of the arguments, and a comment `refused` the message at the op
below it. STEPLADDER_RANDOM_CONTRACTIONS=N runs N random ones, STEPLADDER_TEST_PROFILE=random ten times as many, and
STEPLADDER_TEST_SEED=S those of another seed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from conftest import PROFILE, examples
from random_contractions import random_contraction
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import EmulatedExecutor, check_step
from stepladder.mlir.traverse import walk
from stepladder.payload import front, reference_export
from stepladder.payload.matmul import PayloadMatmul, find_matmul
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import BAD_INPUT, StepladderError
from stepladder.runtime.reference import Program
from stepladder.verify.check import check_matmul

INPUTS = Path(__file__).resolve().parents[1] / "inputs"
COUNT = int(os.environ.get("STEPLADDER_RANDOM_CONTRACTIONS", examples(30)))
SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
PARTS = 5  # tests, for several processes to share
TILES = {"block_m": 64, "block_n": 64}
PIPELINES = {
    "wmma": {**TILES, "block_k": 32, "warp_m": 32, "warp_n": 32},
    "mma_sync": {**TILES, "block_k": 32, "warp_m": 32, "warp_n": 32},
    "wgmma": {**TILES, "block_k": 32, "consumer_warpgroups": 1},
}


def parts(name: str) -> dict[str, str]:
    """Returns the payloads in a file, by the first line of each."""
    texts = (INPUTS / "front" / f"{name}.mlir").read_text().split("// -----\n")
    return {text.strip().splitlines()[0].removeprefix("// "): text.strip() + "\n" for text in texts}


ACCEPTED, REFUSED, CONSUMED, BATCHES = map(parts, ("accepted", "refused", "consumed", "batches"))


def integers(emulation: Emulation, seed: int) -> list[np.ndarray]:
    """Returns an array of -1, 0 and 1 for each argument."""
    generator = np.random.default_rng(seed)
    types = emulation.function.argument_types
    return [np.asarray(generator.integers(-1, 2, each.shape), each.element.dtype) for each in types]


def described(found: PayloadMatmul) -> str:
    roles = sorted((role, number) for number, role in found.roles.items())
    return f"{found.problem.describe()}; " + ", ".join(f"{role} is {number}" for role, number in roles)


def expected(text: str) -> tuple[PayloadMatmul, Program]:
    """Returns the matmul of a payload, and what the payload itself computes."""
    module = parse_payload(text, "payload.mlir")
    found = find_matmul(module)
    return found, reference_export.export(module, found.roles)


def check_last(text: str, pipeline: str, found: PayloadMatmul, reference: Program) -> bool:
    """Checks the first and the last IR of a pipeline that can be run; returns False where the pipeline refuses it."""
    knobs = dict(PIPELINES[pipeline])
    if found.problem.a_type == "i8":
        knobs["block_k"] = 64
    try:
        run = run_pipeline(text, "payload.mlir", Request(pipeline, knobs))
    except StepladderError as error:
        assert error.status == BAD_INPUT, error.render()
        return False
    reports = [check_step(run.steps[0].name, run.steps[0].text, "first.mlir", found.problem, reference)]
    for step in reversed(run.steps):
        reports.append(check_step(step.name, step.text, "last.mlir", found.problem, reference))
        if reports[-1].passed is not None:
            break
    for report in reports:
        assert report.passed, f"{text}\n{pipeline}, {report.step}: {report.unknown or report.check}"
    return True


@pytest.mark.parametrize("number, name", list(enumerate(ACCEPTED)))
def test_right(number: int, name: str) -> None:
    """A payload is right on a pipeline that takes it, one payload on one and the next one on another; with
    STEPLADDER_TEST_PROFILE=random, on all of them."""
    text = ACCEPTED[name]
    with mlir_context():
        found, reference = expected(text)
        assert described(found) == re.search(r"^// computes: (.*)$", text, re.MULTILINE).group(1)
        whole = check_step("input", text, "payload.mlir", found.problem, reference)
        assert whole.passed, whole
    first = number % len(PIPELINES)
    compiled = 0
    for pipeline in [*PIPELINES][first:] + [*PIPELINES][:first]:
        with mlir_context():
            compiled += check_last(text, pipeline, found, reference)
        if compiled and PROFILE != "random":
            break
    assert compiled


@pytest.mark.parametrize("name", [name for name in ACCEPTED if " times " in name])
def test_one_operand_twice_on_random_numbers(name: str) -> None:
    """The diagonal of a product with the transpose is of sums of squares, which do not cancel."""
    with mlir_context():
        found, reference = expected(ACCEPTED[name])
        assert found.problem.b_is_a
        run = run_pipeline(ACCEPTED[name], "payload.mlir", Request("wgmma", PIPELINES["wgmma"]))
        executor = EmulatedExecutor(
            Emulation(parse_payload(run.steps[-1].text, "last.mlir")), reference.roles, count=False
        )
        for report in check_matmul(found.problem, reference, executor, 1, repeats=False):
            assert report.passed, report.describe()


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text = REFUSED[name]
    (place,) = [number for number, line in enumerate(text.splitlines(), 1) if "// refused: " in line]
    message = text.splitlines()[place - 1].partition("// refused: ")[2]
    with mlir_context(), pytest.raises(StepladderError) as caught:
        find_matmul(parse_payload(text, "payload.mlir"))
    assert caught.value.message.startswith(message), caught.value.render()
    assert re.match(rf"payload.mlir:{place + 1}:\d+$", caught.value.location), caught.value.location
    assert caught.value.status == BAD_INPUT
    assert caught.value.notes


@pytest.mark.parametrize("part", range(PARTS))
def test_random_contractions(part: int) -> None:
    """Random loops, views, transposes and casts: a matmul is compiled and right, anything else refused."""
    for number in range(part, COUNT, PARTS):
        text, features, is_matmul = random_contraction(SEED * 1_000_003 + number)
        with mlir_context():
            try:
                found, reference = expected(text)
            except StepladderError as refusal:
                assert not is_matmul and re.search("an order that is neither|a batch dimension", refusal.message), text
                continue
            assert is_matmul or found.problem.has_windows, text  # matrices with a row pitch
            whole = check_step("input", text, "payload.mlir", found.problem, reference)
            assert whole.passed, f"{text}\n{features}\n{whole}"
        compiled = 0
        for pipeline in (list(PIPELINES)[1 + number % 2], "wgmma", "mma_sync"):
            with mlir_context():
                compiled += compiled == 0 and check_last(text, pipeline, found, reference)
        assert compiled, f"{text}\n{features}"


def check_recognized(text: str, products: set[str], rank: int) -> None:
    """Checks that the front's form of a payload has one product and gives the numbers of the payload."""
    with mlir_context():
        module = parse_payload(text, "payload.mlir")
        (function,) = walk(module, "func.func")
        front.recognize(function)
        assert module.operation.verify()
        ops = [op for op in walk(module) if op.name.startswith("linalg.") and op.name != "linalg.yield"]
        assert len([op for op in ops if op.name in products]) == 1
        assert {op.name for op in ops} <= {"linalg.fill", "linalg.generic", *products}
        assert {len(op.attributes["iterator_types"]) for op in ops if op.name == "linalg.generic"} <= {1, 2, rank}
        before, after = Emulation(parse_payload(text, "payload.mlir")), Emulation(module)
        inputs = integers(before, 3)
        wanted = before.run(inputs)
        shapes = [type_.shape for type_ in after.function.argument_types]
        given = [*inputs, *(np.zeros(result.shape, result.dtype) for result in wanted.results)]
        found = after.run([array.reshape(shape) for array, shape in zip(given, shapes)])
    buffers = [(array, result) for array, result in zip(found.arguments, wanted.arguments) if result is not None]
    last = found.arguments[len(found.arguments) - len(wanted.results) :]
    assert buffers or wanted.results
    for array, result in [*buffers, *zip(last, wanted.results, strict=True)]:
        np.testing.assert_array_equal(array, result.reshape(array.shape))


@pytest.mark.parametrize("name", CONSUMED)
def test_elementwise_ops_on_the_product(name: str) -> None:
    """The front keeps elementwise ops, on the rows and columns of C, and the pipeline computes them."""
    check_recognized(CONSUMED[name], {"linalg.matmul"}, 2)
    with mlir_context():
        found, reference = expected(CONSUMED[name])
        assert check_last(CONSUMED[name], "wgmma", found, reference)


@pytest.mark.parametrize("name", BATCHES)
def test_batches(name: str) -> None:
    """Batch dimensions become one, the outermost, for pipelines that compute a batch of matmuls."""
    check_recognized(BATCHES[name], {"linalg.batch_matmul", "linalg.contract"}, 3)
    with mlir_context():
        module = parse_payload(BATCHES[name], "payload.mlir")
        problem = find_matmul(module).problem
        assert problem.batch is not None and problem.batch > 1
        assert ("bias" in name) == bool(problem.consumers)
