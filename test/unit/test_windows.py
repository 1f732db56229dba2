"""Operands that are parts of buffers: rows with a pitch, and rows and columns of a larger buffer or tensor."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stepladder
from bundles import change, edit_manifest, refusal
from combinations import combinations, sample
from conftest import assert_right_at_some_steps
from ptx_kernels import executor
from stepladder.payload.matmul import find_matmul
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Window
from stepladder.verify.check import check_matmul

WINDOWS = Path(__file__).resolve().parents[1] / "inputs" / "payloads" / "windows.mlir"
MERGED = WINDOWS.with_name("merged_heads.mlir")
WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
TILES = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1}
DIRECT = {**TILES, "epilogue": "registers"}


def pitched(
    m: int,
    n: int,
    k: int,
    *places: tuple[int, int] | None,
    inputs: str = "f16",
    stored: str = "f32",
    columns: bool = False,
) -> str:
    """Returns C = AB of arguments with pitches and offsets; None for a whole buffer, `columns` for a column-major B."""
    b = (n, k) if columns else (k, n)
    types = []
    for (rows, width), element, place in zip(((m, k), b, (m, n)), (inputs, inputs, stored), places):
        layout = "" if place is None else f", strided<[{place[0]}, 1], offset: {place[1]}>"
        types.append((f"memref<{rows}x{width}x{element}{layout}>", f"tensor<{rows}x{width}x{element}>"))
    (a, ta), (b_type, tb), (c, tc) = types
    sums = f"tensor<{m}x{n}xf32>"
    maps = (
        "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
        "affine_map<(m, n, k) -> (m, n)>] "
    )
    rounded = f"%r = linalg.map {{ arith.truncf }} ins(%p : {sums}) outs(%h : {tc})" if stored != "f32" else ""
    return f"""func.func @pitched(%A: {a}, %B: {b_type}, %C: {c}) {{
      %zero = arith.constant 0.0 : f32
      %a = bufferization.to_tensor %A restrict : {a} to {ta}
      %b = bufferization.to_tensor %B restrict : {b_type} to {tb}
      %e = tensor.empty() : {sums}
      %h = tensor.empty() : {tc}
      %z = linalg.fill ins(%zero : f32) outs(%e : {sums}) -> {sums}
      %p = linalg.matmul {maps if columns else ""}ins(%a, %b : {ta}, {tb}) outs(%z : {sums}) -> {sums}
      {rounded}
      bufferization.materialize_in_destination {"%r" if rounded else "%p"} in restrict writable %C
          : ({tc}, {c}) -> ()
      return
    }}"""


CASES = [
    (WINDOWS.read_text(), "wgmma", TILES),
    (pitched(70, 72, 40, (48, 8), (80, 16), (96, 8)), "wgmma", DIRECT),
    (WINDOWS.read_text(), "wgmma", {}),  # the knobs of the cost model
    (pitched(33, 64, 21, (24, 8), (72, 16), (96, 8), inputs="bf16"), "wgmma", TILES),
    (pitched(64, 64, 64, (72, 8), (80, 16), (96, 8), stored="f16"), "wmma", WARPS),
    (WINDOWS.read_text(), "wmma", WARPS),
    (pitched(70, 72, 40, (48, 8), None, (96, 8)), "mma_sync", WARPS),
    (pitched(64, 64, 64, (72, 8), (80, 16), (96, 8), stored="f16"), "mma_sync", WARPS),
    (pitched(70, 72, 40, (48, 0), (48, 8), (96, 8), stored="f16", columns=True), "wgmma", TILES),
    (pitched(64, 64, 64, (72, 8), None, (96, 8), inputs="f32"), "mma_sync", WARPS),
    (pitched(70, 72, 64, None, (80, 0), None), "wgmma", {**DIRECT, "split_k": 2, "persistent_blocks": 0}),
    (pitched(70, 72, 40, (48, 8), (80, 16), (96, 8)), "wgmma_multistage", TILES),
    (MERGED.read_text(), "wgmma", TILES),
    (MERGED.read_text(), "wgmma", {**DIRECT, "split_k": 2, "persistent_blocks": 0}),
    (MERGED.read_text(), "mma_sync", WARPS),
    (MERGED.read_text(), "wmma", WARPS),
    (pitched(5, 72, 40, (48, 8), (80, 16), (96, 8)), "wgmma", {"block_m": 128, "block_n": 16, "swap_operands": True}),
    (
        pitched(5, 72, 40, (48, 8), (80, 16), (96, 8), stored="f16"),
        "wgmma",
        {"block_m": 128, "block_n": 16, "swap_operands": True},
    ),
]


@pytest.mark.parametrize("text, pipeline, knobs", sample(CASES, 2))
def test_machine_code_keeps_to_them(
    needs_ptxas: None, text: str, pipeline: str, knobs: dict[str, bool | int | str]
) -> None:
    """Reads and writes are those of the reference, which leaves what is beside C as it is; buffers end with the last
    element of an operand, where they have pitches."""
    with mlir_context():
        made = build(text, "payload.mlir", Request(pipeline, knobs))
        runs = executor(made.code.ptx, made.manifest)
        for report in check_matmul(made.manifest.problem, made.reference, runs, 0, repeats=False):
            assert report.passed, report.describe()
        assert not runs.findings, runs.findings[0].render()


PARTS_OF_ONE = """func.func @scores(%X: tensor<64x96xf16>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = tensor.extract_slice %X[0, 0] [64, 32] [1, 1] : tensor<64x96xf16> to tensor<64x32xf16>
  %k = tensor.extract_slice %X[0, 32] [64, 32] [1, 1] : tensor<64x96xf16> to tensor<64x32xf16>
  %s = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>] ins(%q, %k : tensor<64x32xf16>, tensor<64x32xf16>)
      outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %s : tensor<64x64xf32>
}"""
# A has rows 4 to 68 and columns 24 to 56 of X, B the columns behind these of its rows 8 to 72.
PARTS_OF_A_PART = PARTS_OF_ONE.replace("%X: tensor<64x96xf16>", "%X: tensor<80x128xf16>").replace(
    "  %q =",
    """  %l = tensor.extract_slice %X[4, 16] [70, 104] [1, 1] : tensor<80x128xf16> to tensor<70x104xf16>
  %low = tensor.extract_slice %l[4, 8] [64, 96] [1, 1] : tensor<70x104xf16> to tensor<64x96xf16>
  %high = tensor.extract_slice %l[0, 8] [64, 96] [1, 1] : tensor<70x104xf16> to tensor<64x96xf16>
  %q =""",
)
PARTS_OF_A_PART = PARTS_OF_A_PART.replace("slice %X[0, 0] ", "slice %high[0, 0] ")
PARTS_OF_A_PART = PARTS_OF_A_PART.replace("slice %X[0, 32] ", "slice %low[0, 32] ")
BATCH = """func.func @batch(%A: memref<3x40x24xf16, strided<[2000, 48, 1]>>, %B: memref<3x24x48xf16>,
    %C: memref<3x40x48xf32, strided<[4000, 64, 1]>>) {
  linalg.batch_matmul ins(%A, %B : memref<3x40x24xf16, strided<[2000, 48, 1]>>, memref<3x24x48xf16>)
      outs(%C : memref<3x40x48xf32, strided<[4000, 64, 1]>>)
  return
}"""


@pytest.mark.parametrize(
    "text",
    [PARTS_OF_ONE, PARTS_OF_A_PART, BATCH],
    ids=["parts of one buffer", "parts of a part", "batch on buffers"],
)
@pytest.mark.parametrize("pipeline, knobs", [("wgmma", TILES), ("mma_sync", WARPS)])
def test_right_at_some_steps(text: str, pipeline: str, knobs: dict[str, bool | int | str]) -> None:
    assert_right_at_some_steps(text, pipeline, knobs)


def test_f32_is_split_in_registers_where_c_alone_is_a_part() -> None:
    text = MERGED.read_text().replace("f16", "f32").replace("arith.truncf %in : f32 to f32", "arith.negf %in : f32")
    assert_right_at_some_steps(text, "wgmma", {**TILES, "block_n": 64, "split_f32": "registers"})


def test_the_problem_says_where_operands_are() -> None:
    with mlir_context():
        problem = find_matmul(parse_payload(WINDOWS.read_text(), "windows.mlir")).problem
        one = find_matmul(parse_payload(PARTS_OF_ONE, "scores.mlir")).problem
    assert problem.a_window == Window((69 * 48 + 40,), 0, (48, 1))
    assert problem.b_window == Window((64, 128), 8 * 128 + 16, (128, 1))
    assert problem.c_window == Window((100, 128), 648, (128, 1))
    assert one.b_is_a and (one.a_window, one.b_window) == (Window((64, 96), 0, (96, 1)), Window((64, 96), 32, (96, 1)))


def test_heads_behind_rows_are_matrices_with_a_pitch() -> None:
    """All elements of the buffer are C's, so that a call makes a new one."""
    with mlir_context():
        problem = find_matmul(parse_payload(MERGED.read_text(), "merged_heads.mlir")).problem
    assert problem.c_window == Window((40, 72), 0, (24, 72, 1))
    assert problem.operand("c").access == "write"


# Products of heads of one sequence, which are added to what C holds, and of two, whose heads have two strides.
ADDED = """func.func @f(%P: memref<3x40x56xf16>, %V: memref<3x56x24xf16>, %C: memref<40x3x24xf32>) {
  %heads = memref.transpose %C (m, h, n) -> (h, m, n)
    : memref<40x3x24xf32> to memref<3x40x24xf32, strided<[24, 72, 1]>>
  linalg.batch_matmul ins(%P, %V : memref<3x40x56xf16>, memref<3x56x24xf16>)
    outs(%heads : memref<3x40x24xf32, strided<[24, 72, 1]>>)
  return
}"""
SEQUENCES = """#p = affine_map<(b, h, m, n, k) -> (b, h, m, k)>
#v = affine_map<(b, h, m, n, k) -> (b, h, k, n)>
#o = affine_map<(b, h, m, n, k) -> (b, m, h, n)>
#first = affine_map<(b, h, m, n, k) -> (m, b, h, n)>
func.func @f(%P: tensor<2x3x40x56xf16>, %V: tensor<2x3x56x24xf16>) -> tensor<2x40x3x24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x40x3x24xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x40x3x24xf32>) -> tensor<2x40x3x24xf32>
  %o = linalg.contract indexing_maps = [#p, #v, #o] ins(%P, %V : tensor<2x3x40x56xf16>, tensor<2x3x56x24xf16>)
    outs(%z : tensor<2x40x3x24xf32>) -> tensor<2x40x3x24xf32>
  return %o : tensor<2x40x3x24xf32>
}"""
NARROW_HEADS = SEQUENCES.replace("x24x", "x5x").replace("x24xf", "x5xf")
SEQUENCE_FIRST = SEQUENCES.replace("2x40x3x24xf32", "40x2x3x24xf32").replace("#v, #o", "#v, #first")


# Payloads, the products that they compute, and how many kernels they take.
MERGED_HEADS = {
    "merged": (MERGED.read_text(), "hmk,hkn->mhn", 1),
    "added to C": (ADDED, "hmk,hkn->mhn", 1),
    "sequences behind rows": (SEQUENCE_FIRST, "bhmk,bhkn->mbhn", 1),
    "two strides": (SEQUENCES, "bhmk,bhkn->bmhn", 1),
    "rows of 20 bytes": (NARROW_HEADS, "bhmk,bhkn->bmhn", 2),
}


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("name, target", combinations(MERGED_HEADS, ("sm_75", "sm_80", "sm_90a")))
def test_merged_heads(name: str, target: str) -> None:
    text, sums, kernels = MERGED_HEADS[name]
    kernel = stepladder.compile(text, device="emulator", target=target)
    is_one = isinstance(kernel, stepladder.Kernel)
    assert (1 if is_one else len(kernel.manifest.launches)) == kernels
    inputs = kernel.signature.inputs if is_one else kernel.inputs
    rng = np.random.default_rng(0)
    p, v = (rng.integers(-3, 4, item.shape).astype(np.float16) for item in inputs)
    exact = np.einsum(sums, p.astype(np.float64), v.astype(np.float64))
    if text == ADDED:
        c = rng.integers(-3, 4, exact.shape).astype(np.float32)
        exact += c
        np.testing.assert_array_equal(kernel(p, v, out=c), exact)
    else:
        result = kernel(p, v)
        np.testing.assert_array_equal(result, exact.reshape(result.shape))


TWO_PARTS = """func.func @two(%A: memref<32x64xf16>, %B: memref<64x32xf16>, %C: memref<64x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<32x64xf16> to tensor<32x64xf16>
  %b = bufferization.to_tensor %B restrict : memref<64x32xf16> to tensor<64x32xf16>
  %up = memref.subview %C[0, 0] [32, 32] [1, 1] : memref<64x32xf32> to memref<32x32xf32, strided<[32, 1]>>
  %low = memref.subview %C[32, 0] [32, 32] [1, 1]
      : memref<64x32xf32> to memref<32x32xf32, strided<[32, 1], offset: 1024>>
  %u = bufferization.to_tensor %up restrict writable : memref<32x32xf32, strided<[32, 1]>> to tensor<32x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x32xf16>) outs(%u : tensor<32x32xf32>)
      -> tensor<32x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %low
      : (tensor<32x32xf32>, memref<32x32xf32, strided<[32, 1], offset: 1024>>) -> ()
  return
}"""


COLUMN_MAJOR = """func.func @f(%A: memref<24x40xf16, strided<[1, 24]>>, %B: memref<40x16xf16, strided<[1, 48]>>,
             %C: memref<24x16xf32, strided<[1, 24]>>) {
  linalg.matmul ins(%A, %B : memref<24x40xf16, strided<[1, 24]>>, memref<40x16xf16, strided<[1, 48]>>)
    outs(%C : memref<24x16xf32, strided<[1, 24]>>)
  return
}"""
HEADS = """func.func @f(%Q: memref<4x24x16xf16, strided<[16, 64, 1]>>, %K: memref<4x16x24xf16>,
             %S: memref<4x24x24xf32>) {
  linalg.batch_matmul ins(%Q, %K : memref<4x24x16xf16, strided<[16, 64, 1]>>, memref<4x16x24xf16>)
    outs(%S : memref<4x24x24xf32>)
  return
}"""


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("text, sums", [(COLUMN_MAJOR, "km,nk->nm"), (HEADS, "mbk,bkn->bmn")], ids=["one", "function"])
def test_axes_in_another_order_than_in_memory(text: str, sums: str) -> None:
    """The caller passes arrays with the axes in the order of memory."""
    kernel = stepladder.compile(text, device="emulator", target="sm_80")
    rng = np.random.default_rng(0)
    if text == COLUMN_MAJOR:
        a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((40, 24), (16, 48), (16, 24)))
        a, b, result = a, b[:, :40], c.astype(np.float32)
        kernel(a, b, out=result)
    else:
        shapes = (24, 4, 16), (4, 16, 24), (4, 24, 24)
        a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in shapes)
        result = kernel(a, b, c.astype(np.float32))
    exact = np.einsum(sums, a.astype(np.float64), b.astype(np.float64)) + c
    assert np.abs(result - exact).max() < 1e-4


@pytest.mark.parametrize(
    "text, message",
    [
        (pitched(70, 77, 40, None, None, (96, 8)), "rows of parts of buffers must begin"),
        (pitched(70, 72, 40, (48, 3), None, None), "rows of parts of buffers must begin"),
        (pitched(70, 72, 40, None, (75, 0), None), "rows of parts of buffers must begin"),
        (pitched(70, 72, 40, (32, 0), None, None), "argument 0 .* row-major with static row pitches"),
        (
            TWO_PARTS,
            "starts from another part of argument 2 than the result is written to",
        ),
    ],
    ids=["ragged C", "odd offset", "odd pitch", "overlapping rows", "two parts of C"],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(StepladderError, match=message) as caught, mlir_context():
        build(text, "payload.mlir", Request("mma_sync", WARPS))
    assert str(caught.value.location).startswith("payload.mlir:")


F32_PART = """func.func @f(%A: tensor<16x32xf32>, %B: tensor<18x64xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %b = tensor.extract_slice %B[1, 8] [16, 32] [1, 1] : tensor<18x64xf32> to tensor<16x32xf32>
  %e = tensor.empty() : tensor<16x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>] ins(%A, %b : tensor<16x32xf32>, tensor<16x32xf32>)
      outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %p : tensor<16x16xf32>
}
"""


def test_a_part_that_a_preceding_kernel_would_split_is_refused() -> None:
    with pytest.raises(StepladderError, match="must have dense rows: only whole buffers are split") as caught:
        with mlir_context():
            build(F32_PART, "payload.mlir", Request("wgmma", TILES))
    assert str(caught.value.location).startswith("payload.mlir:6:")
    assert stepladder.compile(F32_PART, target="sm_90a").manifest.pipeline == "mma_sync"


@pytest.fixture(scope="module")
def bundle(needs_ptxas: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("windows") / "windows.bundle"
    with mlir_context():
        build(WINDOWS.read_text(), "windows.mlir", Request("wgmma", TILES)).write(path)
    return path


@pytest.mark.parametrize(
    "damage, message",
    [
        (change("schema_version", 1), "a_window' requires schema_version 4"),
        (change("problem.b_window.offset", 5000), "elements or more, where the operand ends, got (64, 128)"),
        (change("problem.c_window.strides", [128]), "of 2 dimensions, the last one 1, got (128,)"),
        (change("arguments.0.shape", [70, 40]), "shape' must be"),
    ],
)
def test_a_damaged_manifest(bundle: Path, tmp_path: Path, damage: Callable[..., None], message: str) -> None:
    assert [item.offset for item in read_bundle(bundle).manifest.tma_descriptors] == [0, 2 * 1040, 4 * 648]
    path = tmp_path / "windows.bundle"
    shutil.copytree(bundle, path)
    edit_manifest(path, damage)
    assert message in refusal(path)


@pytest.mark.parametrize(
    "damage, message",
    [
        (change("problem.c_window.batch", [2, 2]), "c_window.batch' must have a product of 6, got"),
        (change("problem.c_window.batch", [6]), "c_window.strides' must be one for each of 3 dimensions"),
        (change("problem.c_window.batch", [3, 2]), "c_window.shape' must have"),
        (change("problem.c_window.strides", [2880, 0, 72, 1]), "c_window.strides' must be positive but for the batch"),
    ],
)
def test_a_damaged_batch_of_several_strides(
    needs_ptxas: None, tmp_path: Path, damage: Callable[..., None], message: str
) -> None:
    path = tmp_path / "heads.bundle"
    with mlir_context():
        build(MERGED.with_name("merged_sequences.mlir").read_text(), "heads.mlir", Request("mma_sync")).write(path)
    window = read_bundle(path).manifest.problem.c_window
    assert window == Window((2, 40, 72), 0, (2880, 24, 72, 1), (2, 3))
    edit_manifest(path, damage)
    assert message in refusal(path)


def test_a_call_takes_arrays_with_pitches() -> None:
    """A buffer with a pitch is an array with this stride; parts that the function takes of a buffer are its own."""
    kernel = stepladder.compile(WINDOWS, target="sm_80", device="emulator")
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(shape).astype(np.float16) for shape in ((70, 48), (64, 128)))
    c = generator.standard_normal((100, 128)).astype(np.float32)
    wanted = c.copy()
    wanted[5:75, 8:80] = a[:, :40].astype(np.float64) @ b[8:48, 16:88]
    assert kernel(a[:, :40], b, out=c) is c
    assert np.abs(c - wanted).max() < 1e-4
    with pytest.raises(stepladder.ArgumentError, match=r"'argument 0' has strides .* accepted: strides \(48, 1\)"):
        kernel(np.ascontiguousarray(a[:, :40]), b, out=c)
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' is missing"):
        kernel(a[:, :40], b)
