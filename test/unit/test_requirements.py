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


_I8 = {"a_type": "i8", "b_type": "i8", "acc_type": "i32", "c_type": "i32"}
_F64 = {"a_type": "f64", "b_type": "f64"}
_ROWS_OF_TILES = {"block_m": 16, "warp_m": 16}
_TILES = {**_ROWS_OF_TILES, "block_n": 16, "warp_n": 16}
_SPLIT = {"split_k": 2, "persistent_blocks": 0, "epilogue": "registers"}
_IN_REGISTERS = {"split_f32": "registers", "block_n": 64}
_IN_SHARED_MEMORY = {"split_f32": "shared", "block_n": 64}
_SUBGROUPS = {"block_m": 512, "block_n": 512, "sg_n": 16}


@pytest.mark.parametrize(
    "pipeline, settings, problem, message",
    [
        ("mma_sync", _ROWS_OF_TILES, {"m": 2**20}, "C must have at most 65535 rows of tiles"),
        ("mma_sync", {}, _F64, "the accumulator type must be f64 for operands of f64, and i32 for i8"),
        ("wmma", _TILES, {"m": 2**19, "n": 2**21}, "C must have at most 2147483647 tiles, the maximum number of"),
        ("wmma", {"prefetch": "cp_async"}, {"m": 100, **_I8}, "i8 tiles that do not divide m, n and k must be copied"),
        ("xetile", _SUBGROUPS, {"m": 512, "n": 512}, "the subgroups of a work-group, must be a power of 2 up to 64"),
        ("wgmma", {"epilogue": "registers"}, {"m": 2**31}, "extents must be below 2147483648: TMA coordinates have 32"),
        ("wgmma", {"stagger": 1, "schedule": "pingpong", "block_n": 128}, {}, "stagger above 0 requires schedule ="),
        ("wgmma", {"stagger": 4}, {"k": 512}, "stagger must be less than stages"),
        ("wgmma", {"stagger": 1}, {}, "stagger above 0 requires at least as many k steps"),
        ("wgmma", {"stagger": 1, **_SPLIT}, {"k": 1024}, "stagger above 0 requires split_k = 1 and tile_scheduler ="),
        ("wgmma", {"stagger": 1, "block_n": 64}, {"k": 512, **_F32}, "stagger above 0 requires allow_tf32 = true"),
        ("wgmma", {**_SPLIT, "schedule": "pingpong", "block_n": 128}, {}, "split_k above 1 requires schedule ="),
        (
            "wgmma",
            {**_SPLIT, "swap_operands": True, "block_n": 64},
            {"n": 1},
            "requires m, then the columns of C, to be",
        ),
        ("wgmma", {"store_threads": 32, "swap_operands": True}, {}, "store_threads = 32 requires a row-major C"),
        (
            "wgmma",
            {"swap_operands": True, "block_n": 64},
            {"c_type": "f8E4M3FN", "accumulate": False},
            "epilogue = tma with swap_operands requires results of 16-bit elements or wider",
        ),
        ("wgmma", {"early_weights": True}, {"m": 16, "n": 1024, **_I8}, "early_weights requires a K-major larger"),
        ("wgmma", {}, _F32, "two sets of accumulators and 32 other registers must fit in consumer_registers"),
        ("wgmma", {"split_f32": "registers"}, _F32, "two sets of accumulators, fragment_registers of A and 40"),
        ("wgmma", {**_IN_REGISTERS, "cluster_m": 2}, _F32, "register operands require clusters of one block"),
        ("wgmma", {**_IN_REGISTERS, "tile_scheduler": "stream_k"}, _F32, "register operands require tile_scheduler ="),
        ("wgmma", {**_IN_SHARED_MEMORY, "stagger": 1}, {"k": 512, **_F32}, "split_f32 = shared requires schedule ="),
    ],
)
def test_settings_that_no_kernel_has(pipeline: str, settings: dict, problem: dict, message: str) -> None:
    error = refusal(pipeline, settings, **problem)
    assert message in error.message
    assert ", but " in error.message and any(note.startswith("requirement: ") for note in error.notes)
