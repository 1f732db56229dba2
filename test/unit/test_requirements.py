"""Requirements are refused in words: every step has them, and a message shows what a user can set."""

import re
from collections.abc import Iterator

import pytest

from stepladder.payload.writing import matmul_text
from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError

RULE = re.compile(r" (must|requires?|does not support) ")


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
            assert RULE.search(requirement.message), step.name
            assert "==" not in requirement.message and "%" not in requirement.message, step.name


def refusal(pipeline: str, settings: dict[str, int | str | bool], **problem: int | str) -> StepladderError:
    text = matmul_text(**{"m": 256, "n": 256, "k": 128, **problem})  # pyright: ignore
    with pytest.raises(StepladderError) as caught:
        run_pipeline(text, "matmul.mlir", Request(pipeline, settings))
    return caught.value


def test_a_refusal_says_what_must_hold_and_what_does() -> None:
    error = refusal("wmma_upstream", {}, m=192)
    assert error.message == "step 'tile_to_blocks': m must be a multiple of block_m, but m = 192, block_m = 128"
    assert error.notes == (
        "satisfied by block_m = 16 or 32 or 64",
        "requirement: m % block_m == 0 or not whole_tiles",
    )


def test_values_are_those_that_a_user_can_set() -> None:
    error = refusal("wgmma", {"schedule": "pingpong", "tile_scheduler": "stream_k", "block_n": 128})
    assert (
        error.message
        == "step 'stream_k_tail': tile_scheduler = stream_k requires schedule = cooperative, but schedule = pingpong"
    )


_F32 = {"a_type": "f32", "b_type": "f32"}


@pytest.mark.parametrize(
    "settings, problem, message",
    [
        ({}, {"n": 256}, "that A and B differ in size"),
        ({}, {"m": 16, "n": 250}, "that the larger operand has rows of multiples of 16 bytes"),
        (
            {"swap_operands": True},
            {"m": 16, "n": 250},
            "that the larger operand has rows of multiples of 16 bytes",
        ),
        (
            {},
            {"m": 16, "b_layout": "column", "k": 125},
            "that the larger operand has rows of multiples of 16 bytes",
        ),
        (
            {"split_f32": "kernels"},
            {"m": 16, "b_layout": "column", **_F32},
            "that no preceding kernel splits the larger operand",
        ),
        ({"allow_tf32": True}, {"m": 16, **_F32}, "a K-major larger operand"),
    ],
)
def test_weights_that_a_preceding_kernel_writes(settings: dict, problem: dict, message: str) -> None:
    """They cannot be loaded before that kernel has ended; no other knob is to blame."""
    tiles = {"block_m": 64, "block_n": 16, "block_k": 32, "consumer_warpgroups": 1, "epilogue": "registers"}
    error = refusal("wgmma", {**tiles, "early_weights": True, **settings}, accumulate=False, **problem)
    assert error.message.startswith(f"step 'load_weights_early': early_weights requires {message}")


def test_requirements_of_given_knobs_come_first() -> None:
    """Of the others, which are chosen, the defaults are what fails where no choice helps."""
    error = refusal("wgmma", {"early_weights": True}, m=8, n=1023, accumulate=False)
    assert error.message.startswith(
        "step 'load_weights_early': early_weights requires that the larger operand has rows of multiples of 16 bytes"
    )
