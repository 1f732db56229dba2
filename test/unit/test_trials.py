"""Groups of ops that are tried as kernels: each text once, whether it is accepted or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepladder.extension.lib.multi_kernel import trials
from stepladder.mlir.bindings import ir
from stepladder.payload.matmul import PayloadMatmul
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions import stage_texts
from stepladder.pipeline.library import pipeline_file
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError

FUNCTION = Path(__file__).parents[1] / "inputs" / "functions" / "low_rank_linear.mlir"


def test_each_text_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By all steps of a run, and by a second run not again."""
    texts: list[str] = []
    refusals: list[str] = []
    find_matmul = trials.find_matmul

    def recorded(module: ir.Module) -> PayloadMatmul:
        texts.append(str(module))
        try:
            return find_matmul(module)
        except StepladderError as error:
            refusals.append(error.message)
            raise

    monkeypatch.setattr(trials, "_tried", {})
    monkeypatch.setattr(trials, "find_matmul", recorded)
    with mlir_context():
        request = Request(pipeline_file("functions"))
        first = run_pipeline(FUNCTION.read_text(), FUNCTION.name, request).steps[-1].text
        count = len(texts)
        assert count == len(set(texts)) and 0 < len(refusals) < count
        assert run_pipeline(FUNCTION.read_text(), FUNCTION.name, request).steps[-1].text == first
    assert len(texts) == count


def test_the_problem_of_a_text_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that is refused is refused again, with the name that it has then."""
    monkeypatch.setattr(stage_texts, "_problems", {})
    text = "func.func @f(%a: tensor<4x8xf16>, %b: tensor<8x16xf16>, %c: tensor<4x16xf16>) -> tensor<4x16xf16> {\n"
    text += "  %d = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x16xf16>) outs(%c : tensor<4x16xf16>) -> "
    text += "tensor<4x16xf16>\n  return %d : tensor<4x16xf16>\n}"
    with mlir_context():
        problem = stage_texts.problem_of(text, "first")
        assert (problem.m, problem.n, problem.k) == (4, 16, 8)
        for name in ("one", "other"):
            with pytest.raises(StepladderError) as caught:
                stage_texts.problem_of(text.replace("return", "no"), name)
            assert name in (caught.value.location or "")
        monkeypatch.setattr(stage_texts, "parse_payload", None)
        assert stage_texts.problem_of(text, "second") is problem
