"""Requirements are refused in words: every step has them, and a message shows what a user can set."""

from collections.abc import Iterator

import pytest

from stepladder.payload.writing import matmul_text
from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with mlir_context():
        yield


@pytest.mark.parametrize("pipeline", library.pipeline_names())
def test_requirements_are_sentences(pipeline: str) -> None:
    steps = library.load(pipeline).steps
    assert any(step.requires for step in steps)
    for step in steps:
        for requirement in step.requires:
            assert " must " in requirement.message, step.name
            assert "==" not in requirement.message and "%" not in requirement.message, step.name


def refusal(pipeline: str, settings: dict[str, int | str | bool], **problem: int) -> StepladderError:
    text = matmul_text(**{"m": 256, "n": 256, "k": 128, **problem})
    with pytest.raises(StepladderError) as caught:
        run_pipeline(text, "matmul.mlir", Request(pipeline, settings))
    return caught.value


def test_a_refusal_says_what_must_hold_and_what_does() -> None:
    error = refusal("wmma_upstream", {}, m=192)
    assert error.message == "step 'tile_to_blocks': m must be a multiple of block_m, but m = 192, block_m = 128"
    assert error.notes == (
        "with block_m = 16 or 32 or 64 it would hold",
        "the step requires: m % block_m == 0 or not whole_tiles",
    )


def test_values_are_those_that_a_user_can_set() -> None:
    error = refusal("wgmma", {"schedule": "pingpong", "tile_scheduler": "stream_k", "block_n": 128})
    assert (
        error.message
        == "step 'stream_k_tail': with tile_scheduler = stream_k, schedule must be cooperative, but schedule = pingpong"
    )
