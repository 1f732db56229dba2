"""Payloads as users and front ends write them: each compiles and is right, or is refused by one message.

`test/inputs/front/corpus.mlir` has them, one a part. The first line of a part names it. A line `computes` has what the
payload computes and the pipelines that compile it; a comment `refused` has the message at the op below it.
Each is checked on one of its pipelines, another one for each part; with STEPLADDER_TEST_PROFILE=random on all of them,
at every step.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import PROFILE
from stepladder.emulator.matmul import check_step, check_steps
from stepladder.payload import reference_export
from stepladder.payload.matmul import find_matmul
from stepladder.payload.selection import select
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import BAD_INPUT, StepladderError

CORPUS = Path(__file__).resolve().parents[1] / "inputs" / "front" / "corpus.mlir"
WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
WARPGROUP = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1, "persistent_blocks": 2}
PIPELINES = {"wmma": WARPS, "mma_sync": WARPS, "wgmma": WARPGROUP}
# Checked at every step in each run of the tests.
WHOLE = ("a transposed weight", "nn.Linear of torch-mlir", "attributes on arguments")

# Sizes of 2^33, which cannot be executed.
_TOO_LARGE = re.compile(r"needs \d+\.\d GiB of memory")


def parts() -> dict[str, str]:
    texts = [text.strip() + "\n" for text in CORPUS.read_text().split("// -----\n")]
    named = {text.splitlines()[0].removeprefix("// "): text for text in texts}
    assert len(named) == len(texts)
    return named


PAYLOADS = parts()
REFUSED = [name for name, text in PAYLOADS.items() if "// refused" in text]
RIGHT = [name for name in PAYLOADS if name not in REFUSED]


def request(pipeline: str, a_type: str) -> Request:
    wide = {"block_k": 64} if a_type in ("i8", "f8E4M3FN", "f8E5M2") else {}
    return Request(pipeline, {**PIPELINES[pipeline], **wide})


def compiled(name: str, pipeline: str) -> bool:
    """Compiles a payload and checks the numbers; returns False where the pipeline refuses it."""
    text = PAYLOADS[name]
    with mlir_context():
        module = select(parse_payload(text, "payload.mlir")).module
        found = find_matmul(module)
        asked = request(pipeline, found.problem.a_type)
        try:
            run = run_pipeline(text, "payload.mlir", asked)
        except StepladderError as error:
            assert error.location.startswith("payload.mlir:"), error.render()
            assert error.notes, error.render()
            return False
        if name in WHOLE or PROFILE == "random":
            reports = []
            check_steps(text, "payload.mlir", asked, reports.append)
            assert all(report.passed is not False for report in reports), (name, pipeline, reports)
            if not all(_TOO_LARGE.search(report.unknown or "") for report in reports):
                assert sum(report.passed is True for report in reports) * 2 > len(reports)
            return True
        reference = reference_export.export(module, found.roles)
        for step in reversed(run.steps):
            report = check_step(step.name, step.text, f"{step.name}.mlir", found.problem, reference)
            if _TOO_LARGE.search(report.unknown or ""):
                return True
            if report.passed is not None:
                break
        assert step.name.startswith("lower_to"), f"{name} on {pipeline}: {report.unknown}"
        assert report.passed, f"{name} on {pipeline}, {step.name}: {report.check}"
    return True


@pytest.mark.parametrize("name", RIGHT)
def test_compiles_and_is_right(name: str) -> None:
    line = re.search(r"^// computes: (.*); on (.*)$", PAYLOADS[name], re.MULTILINE)
    assert line, name
    with mlir_context():
        problem = find_matmul(select(parse_payload(PAYLOADS[name], "payload.mlir")).module).problem
    assert problem.describe() == line[1]
    right = [pipeline for pipeline in line[2].split(", ") if pipeline != "none"]
    chosen = set(PIPELINES if PROFILE == "random" or not right else [right[RIGHT.index(name) % len(right)]])
    assert {pipeline for pipeline in PIPELINES if pipeline in chosen and compiled(name, pipeline)} == chosen & set(
        right
    )


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_where_it_stands(name: str) -> None:
    lines = PAYLOADS[name].splitlines()
    ((number, comment),) = [(number, line) for number, line in enumerate(lines, 1) if "// refused" in line]
    message = comment.partition("// refused: ")[2]
    for pipeline in PIPELINES if PROFILE == "random" else [[*PIPELINES][REFUSED.index(name) % len(PIPELINES)]]:
        with mlir_context(), pytest.raises(StepladderError) as caught:
            run_pipeline(PAYLOADS[name], "payload.mlir", request(pipeline, "f16"))
        assert caught.value.message.startswith(message), caught.value.render()
        assert re.fullmatch(rf"payload.mlir:{number + 1}:\d+", caught.value.location), caught.value.location
        assert caught.value.status == BAD_INPUT


def test_f32_keeps_its_bits_unless_a_knob_says_otherwise() -> None:
    text = matmul_text(64, 64, 64, a_type="f32", b_type="f32", b_layout="column")
    tile = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1}
    with mlir_context(), pytest.raises(StepladderError, match="f32 operands require allow_tf32 = true") as caught:
        run_pipeline(text, "payload.mlir", Request("wgmma_multistage", tile))
    assert "satisfied by allow_tf32 = True" in caught.value.notes
    with mlir_context():
        allowed = run_pipeline(text, "payload.mlir", Request("wgmma_multistage", {**tile, "allow_tf32": "true"}))
    assert allowed.matmul.problem.compute_type == "tf32"
    for allow, step in ((False, "split_into_tf32"), (True, "pipeline_wgmma")):
        with mlir_context():
            run = run_pipeline(text, "payload.mlir", Request("wgmma", {**tile, "allow_tf32": allow}))
        assert run.matmul.problem.compute_type == ("tf32" if allow else "f32")
        assert {"split_into_tf32", "pipeline_wgmma"} & {each.name for each in run.steps} == {step}
