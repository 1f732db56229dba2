"""Requirements are refused in words: every step has them, and a message shows what a user can set."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pair_payloads import PairPayload
from reduction_payloads import Reduced, reduction_payload
from results_payloads import results_payload
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.resources import transforms_dir

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


def refusal_of(text: str, request: Request) -> StepladderError:
    with pytest.raises(StepladderError) as caught:
        run_pipeline(text, "matmul.mlir", request)
    return caught.value


def refusal(pipeline: str, settings: dict[str, int | str | bool], **problem: int | str) -> StepladderError:
    text = matmul_text(**{"m": 256, "n": 256, "k": 128, **problem})  # pyright: ignore
    return refusal_of(text, Request(pipeline, settings))


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
_SUMS_OF_F64 = {"acc_type": "f64", "c_type": "f64"}
_ROWS_OF_TILES, _COLUMNS_OF_TILES = {"block_m": 16, "warp_m": 16}, {"block_n": 16, "warp_n": 16}
_TILES = {**_ROWS_OF_TILES, **_COLUMNS_OF_TILES}
# The tile of one operand is smaller than what all threads copy at once.
_SMALL_A = {**_TILES, "block_n": 256, "block_k": 16}
_SMALL_B = {**_TILES, "block_m": 256, "block_k": 16}
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
        ("wmma", {}, _SUMS_OF_F64, "the accumulator type must be f16 or f32 for f16, f32 for bf16, and i32 for i8"),
        ("wmma", _SMALL_A, {}, "the tile of A, must be a multiple of threads * run, the elements of a copy"),
        ("wmma", _SMALL_B, {}, "the tile of B, must be a multiple of threads * run, the elements of a copy"),
        ("mma_sync", _SMALL_A, {}, "the tile of A, must be a multiple of threads * run, the elements of a copy"),
        ("mma_sync", _SMALL_B, {}, "the tile of B, must be a multiple of threads * run, the elements of a copy"),
        ("mma_sync", _SMALL_A, {"m": 200}, "the tile of A, must be a multiple of threads * a_run, the elements of a"),
        ("mma_sync", _SMALL_B, {"m": 200}, "the tile of B, must be a multiple of threads * b_run, the elements of a"),
        (
            "mma_sync",
            {"block_m": 128, "warp_m": 128, **_COLUMNS_OF_TILES, "block_k": 128},
            {**_F64, **_SUMS_OF_F64},
            "threads * run, the elements of a copy, must be whole rows of A's tile",
        ),
        (
            "mma_sync",
            {**_ROWS_OF_TILES, "block_n": 128, "warp_n": 128, "block_k": 16},
            {**_F64, **_SUMS_OF_F64},
            "threads * run, the elements of a copy, must be whole rows of B's tile",
        ),
        (
            "mma_sync",
            {**_ROWS_OF_TILES, "block_k": 128},
            {"a_layout": "column", **_I8},
            "rows of A's tile in shared memory must be longer than 128 bits",
        ),
        ("wmma_upstream", {}, {"k": 100}, "k must be a multiple of block_k"),
        ("xetile_mma_sync", {}, {"k": 100}, "k must be a multiple of block_k"),
        (
            "wgmma",
            {"epilogue": "rows", "block_m": 16, "block_n": 64, "consumer_warpgroups": 1},
            {},
            "epilogue = rows requires block_m to be a multiple of 64",
        ),
        (
            "wgmma",
            {**_IN_REGISTERS, "block_m": 16, "consumer_warpgroups": 1},
            _F32,
            "split_f32 = registers requires block_m to be a multiple of 64",
        ),
        (
            "wgmma",
            {"split_f32": "shared", "block_m": 64, "block_n": 256, "block_k": 32, "consumer_warpgroups": 1},
            _F32,
            "split_f32 = shared with an N-major B requires block_n * block_k <= 4096 * consumer_warpgroups",
        ),
    ],
)
def test_settings_that_no_kernel_has(pipeline: str, settings: dict, problem: dict, message: str) -> None:
    error = refusal(pipeline, settings, **problem)
    assert message in error.message
    assert ", but " in error.message and any(note.startswith("requirement: ") for note in error.notes)


def _sum(type_: str, k: int, batch: str = "") -> str:
    """Returns a payload whose A is the sum of two arguments."""
    a, b, c = f"tensor<{batch}64x{k}x{type_}>", f"tensor<{batch}{k}x64x{type_}>", f"tensor<{batch}64x64xf32>"
    return f"""func.func @f(%x: {a}, %y: {a}, %b: {b}, %c: {c}) -> {c} {{
      %e = tensor.empty() : {a}
      %a = linalg.add ins(%x, %y : {a}, {a}) outs(%e : {a}) -> {a}
      %p = linalg.{"batch_" if batch else ""}matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
      return %p : {c}
    }}"""


def _part(type_: str) -> str:
    """Returns a payload whose A is a part of a buffer."""
    a = f"memref<64x64x{type_}, strided<[128, 1]>>"
    return f"""func.func @f(%x: memref<64x128x{type_}>, %b: memref<64x64x{type_}>, %c: memref<64x64xf32>) {{
      %a = memref.subview %x[0, 0] [64, 64] [1, 1] : memref<64x128x{type_}> to {a}
      linalg.matmul ins(%a, %b : {a}, memref<64x64x{type_}>) outs(%c : memref<64x64xf32>)
      return
    }}"""


# Matrices of C between the matrices of two dimensions of a batch.
_HEADS = """func.func @f(%a: tensor<2x3x64x32xf16>, %b: tensor<2x3x32x64xf16>) -> tensor<2x64x3x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x3x64xf32>
  %c = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x3x64xf32>) -> tensor<2x64x3x64xf32>
  %p = linalg.contract indexing_maps = [affine_map<(s, h, i, j, k) -> (s, h, i, k)>,
      affine_map<(s, h, i, j, k) -> (s, h, k, j)>, affine_map<(s, h, i, j, k) -> (s, i, h, j)>]
    ins(%a, %b : tensor<2x3x64x32xf16>, tensor<2x3x32x64xf16>) outs(%c : tensor<2x64x3x64xf32>)
    -> tensor<2x64x3x64xf32>
  return %p : tensor<2x64x3x64xf32>
}"""
_PREPARED = {"producers": "registers"}
_SWAPPED = {"swap_operands": True, "block_n": 64}
_PAIR = PairPayload(m=128, n=128, k=64).text()
_PAIR_OF_F32 = PairPayload(inputs="f32", stored="f32").text()


@pytest.mark.parametrize(
    "pipeline, settings, text, message",
    [
        ("wgmma", _PREPARED, _sum("f16", 64, "2x"), "a batch requires producers = kernels"),
        ("wgmma", _PREPARED, _sum("f16", 72), "k must be a multiple of block_k for register operands"),
        ("wgmma", _PREPARED, _sum("f32", 64), "the register operand must be f16 or bf16; other types require"),
        (
            "wgmma",
            {**_PREPARED, "swap_operands": True},
            PairPayload(k=64, prepared="x").text(),
            "producers = registers requires swap_operands = false for a pair of products",
        ),
        ("wgmma", {"split_f32": "registers", "block_n": 64}, _part("f32"), "registers requires whole buffers as A"),
        ("xetile", {}, _part("f16"), "A, B and C must be whole buffers, not parts of buffers"),
        ("wgmma", _SWAPPED, _PAIR, "swap_operands requires a single product, not a pair"),
        ("wgmma", _SWAPPED, _HEADS, "swap_operands requires matmuls of a batch that are one stride apart in C"),
        (
            "wgmma",
            _SWAPPED,
            reduction_payload(128, 128, 64, [Reduced("max", 1)]),
            "swap_operands does not support reductions of the product",
        ),
        ("wgmma", {**_SPLIT, "block_n": 128}, _PAIR, "split_k above 1 requires a single product, not a pair"),
        ("wgmma", {}, _PAIR_OF_F32, "a pair of f32 products requires allow_tf32 = true; a single product keeps"),
        ("wgmma", _IN_REGISTERS, _PAIR_OF_F32, "a pair of f32 products requires allow_tf32 = true; a single product"),
        (
            "wgmma",
            {"block_n": 24, "epilogue": "registers"},
            PairPayload(layout="row").text(),
            "rows of a row-major tile of B must be 32 or a multiple of 64 bytes for a pair of products",
        ),
        (
            "wgmma",
            {"block_n": 8},
            results_payload(128, 128, 64, ["f32", "f16"]),
            "epilogue = tma requires tile rows of each result that are a multiple of 32 bytes",
        ),
        (
            "wgmma",
            {},
            results_payload(128, 4, 64, ["f32", "f16"]),
            "epilogue = tma requires rows of each result that are a multiple of 16 bytes",
        ),
    ],
)
def test_payloads_that_no_kernel_of_the_knobs_computes(pipeline: str, settings: dict, text: str, message: str) -> None:
    assert message in refusal_of(text, Request(pipeline, settings)).message


@pytest.mark.parametrize(
    "pipeline, problem, message",
    [
        ("wmma", {"m": 100}, "tiles that do not divide m, n and k require accumulators in registers"),
        ("mma_sync", _F32, "keep_infinities requires accumulators in registers"),
    ],
)
def test_steps_that_need_a_left_out_one(pipeline: str, problem: dict, message: str) -> None:
    text = matmul_text(**{"m": 256, "n": 256, "k": 128, **problem})
    assert message in refusal_of(text, Request(pipeline, without=("hoist_accumulators",))).message


@pytest.mark.parametrize(
    "script, edited, settings, message",
    [
        ("b_width = ", 'b_width = "16", unused = ', {}, "b_width must be the row length of B's tile in its"),
        ("a_width = ", 'a_width = "16", unused = ', {}, "a_width must be the row length of A's tile in its"),
        ("[16, 32, 64, 128]", "[8, 16, 32, 64, 128]", {"warp_m": 8}, "warp_m must be a multiple of 16"),
        ("[16, 32, 64, 128]", "[8, 16, 32, 64, 128]", {"warp_n": 8}, "warp_n must be a multiple of 16"),
    ],
)
def test_pipelines_of_users(tmp_path: Path, script: str, edited: str, settings: dict, message: str) -> None:
    """Requirements that hold for each setting of the pipelines of the package."""
    own = tmp_path / "wmma.mlir"
    own.write_text((transforms_dir() / "wmma.mlir").read_text().replace(script, edited))
    assert message in refusal(str(own), settings).message
