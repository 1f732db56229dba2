"""XeVM on the emulator: which lane holds what of a block, edges of matrices, products, and what is a finding."""

from __future__ import annotations

import itertools
import re

import ml_dtypes
import numpy as np
import pytest

from combinations import combinations
from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

LANES, PITCH, HEIGHT = 16, 128, 20  # bytes, rows


def kernel(
    body: str, *, arguments: str, width: int = PITCH, height: int = HEIGHT, pitch: int = PITCH, lanes: int = 16
) -> str:
    """Returns a function whose launch is one subgroup: `%address` is that of `%m`, `%x` and `%y` are 32-bit numbers."""
    return f"""func.func @f({arguments}, %x: i32, %y: i32) {{
      %c1 = arith.constant 1 : index
      %lanes = arith.constant {lanes} : index
      %width = arith.constant {width} : i32
      %height = arith.constant {height} : i32
      %pitch = arith.constant {pitch} : i32
      %base = memref.extract_aligned_pointer_as_index %m : memref<{HEIGHT}x{PITCH}xi8>
        -> index
      %number = arith.index_cast %base : index to i64
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                 threads(%lane, %ty, %tz) in (%sx = %lanes, %sy = %c1, %sz = %c1) {{
        %address = llvm.inttoptr %number : i64 to !llvm.ptr<1>
        {body}
        gpu.terminator
      }} {{intel_reqd_sub_group_size = 16 : i32}}
      return
    }}"""


def run(text: str, *arrays: np.ndarray, x: int, y: int) -> Outcome:
    with mlir_context():
        return Emulation(parse_payload(text, "kernel")).run([*arrays, np.int32(x), np.int32(y)], count=False)


def load(bits: int, rows: int, columns: int, blocks: int = 1, order: str = "plain", count: int = 0) -> str:
    """Returns a load of a block into `%v`, which lanes store to `%out`."""
    held = {"plain": bits, "packed": 32, "transposed": bits}[order]
    count = count or rows * columns * blocks * bits // held // LANES
    return f"""%v = xevm.blockload2d %address, %width, %height, %pitch, %x, %y <{{elem_size_in_bits = {bits} : i32,
          tile_width = {columns} : i32, tile_height = {rows} : i32, v_blocks = {blocks} : i32,
          transpose = {str(order == "transposed").lower()}, pack_register = {str(order == "packed").lower()}}}>
          : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<{count}xi{held}>
        %zero = arith.constant 0 : index
        vector.store %v, %out[%lane, %zero] : memref<16x{count}xi{held}>, vector<{count}xi{held}>"""


FORMS = [
    (16, 8, 16, 1, "plain"),
    (16, 16, 16, 2, "plain"),
    (16, 32, 16, 1, "packed"),
    (16, 16, 16, 2, "packed"),
    (8, 32, 16, 1, "packed"),
    (8, 8, 32, 1, "plain"),
    (32, 8, 16, 1, "plain"),
    (32, 16, 8, 1, "transposed"),
]
# x in elements, and y: within the matrix, beyond its edges, before its begin.
PLACES = [(0, 0), (4, 3), (28, 9), (-4, -2), (200, 0)]


@pytest.mark.parametrize(("form", "place"), combinations(FORMS, PLACES))
def test_a_lane_holds_its_part_of_a_block(form: tuple[int, int, int, int, str], place: tuple[int, int]) -> None:
    bits, rows, columns, blocks, order = form
    x, y = place
    matrix = np.random.default_rng(0).integers(0, 256, (HEIGHT, PITCH)).astype(np.uint8)
    elements = matrix.view(f"u{bits // 8}")
    padded = np.zeros((rows, columns * blocks), elements.dtype)
    for row, column in itertools.product(*map(range, padded.shape)):
        if 0 <= y + row < elements.shape[0] and 0 <= x + column < elements.shape[1]:
            padded[row, column] = elements[y + row, x + column]
    if order == "transposed":
        wanted = padded
    else:
        each = columns // LANES
        parts = padded.reshape(rows, blocks, LANES, each)  # lanes hold blocks, then rows, then adjacent columns
        wanted = parts.transpose(2, 1, 0, 3).reshape(LANES, -1)
    held = 32 if order == "packed" else bits
    wanted = np.ascontiguousarray(wanted).view(f"i{held // 8}")
    out = np.full(wanted.shape, -1, wanted.dtype)
    arguments = f"%m: memref<{HEIGHT}x{PITCH}xi8>, %out: memref<16x{wanted.shape[1]}xi{held}>"
    outcome = run(kernel(load(*form), arguments=arguments), matrix.view(np.int8), out, x=x, y=y)
    assert not outcome.findings
    np.testing.assert_array_equal(outcome.arguments[1], wanted)


@pytest.mark.parametrize("place", [(0, 0), (24, 15), (-4, -2)])
def test_a_store_leaves_out_what_is_beyond_the_matrix(place: tuple[int, int]) -> None:
    x, y = place
    matrix = np.zeros((HEIGHT, PITCH), np.int8)
    body = """%v0 = arith.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : vector<8xi32>
        xevm.blockstore2d %address, %width, %height, %pitch, %x, %y, %v0 <{elem_size_in_bits = 32 : i32,
          tile_width = 16 : i32, tile_height = 8 : i32}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32, vector<8xi32>)"""
    text = kernel(body, arguments=f"%m: memref<{HEIGHT}x{PITCH}xi8>")
    outcome = run(text, matrix, x=x, y=y)
    assert not outcome.findings
    wanted = np.zeros((HEIGHT + 16, PITCH // 4 + 32), np.int32)
    wanted[8 + y : 16 + y, 16 + x : 32 + x] = np.arange(1, 9)[:, None]
    np.testing.assert_array_equal(outcome.arguments[0].view(np.int32), wanted[8 : 8 + HEIGHT, 16 : 16 + PITCH // 4])


@pytest.mark.parametrize(
    ("sizes", "x", "message"),
    [
        ({"pitch": 120, "width": 112}, 0, "the rows are 120 bytes apart"),
        ({"width": 32, "pitch": 32}, 0, "rows of 32 bytes"),
        ({"width": 66}, 0, "rows of 66 bytes"),
        ({"height": 0}, 0, "0 rows"),
        ({}, 3, "x = 3; accepted: a multiple of 2"),
        ({"lanes": 8}, 0, "not all lanes of a subgroup execute it"),
    ],
)
def test_what_the_hardware_does_not_take_is_a_finding(sizes: dict[str, int], x: int, message: str) -> None:
    arguments = f"%m: memref<{HEIGHT}x{PITCH}xi8>, %out: memref<16x8xi16>"
    text = kernel(load(16, 8, 16), arguments=arguments, **sizes)
    outcome = run(text, np.zeros((HEIGHT, PITCH), np.int8), np.zeros((16, 8), np.int16), x=x, y=0)
    assert any(message in str(finding) for finding in outcome.findings), outcome.findings


def test_lanes_that_disagree_about_a_block_are_a_finding() -> None:
    body = "%l = arith.index_cast %lane : index to i32\n" + load(16, 8, 16).replace("%pitch, %x", "%pitch, %l", 1)
    text = kernel(body, arguments=f"%m: memref<{HEIGHT}x{PITCH}xi8>, %out: memref<16x8xi16>")
    outcome = run(text, np.zeros((HEIGHT, PITCH), np.int8), np.zeros((16, 8), np.int16), x=0, y=0)
    assert any("different values for x" in str(finding) for finding in outcome.findings)


def test_a_base_that_is_not_aligned_is_a_finding() -> None:
    moved = "%far = llvm.getelementptr %address[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8\n"
    text = kernel(
        moved + load(16, 8, 16).replace("%address", "%far", 1),
        arguments=f"%m: memref<{HEIGHT}x{PITCH}xi8>, %out: memref<16x8xi16>",
        height=HEIGHT - 1,
    )
    outcome = run(text, np.zeros((HEIGHT, PITCH), np.int8), np.zeros((16, 8), np.int16), x=0, y=0)
    assert {finding.kind for finding in outcome.findings} == {"misaligned"}


def test_a_matrix_larger_than_its_memory_is_a_finding() -> None:
    text = kernel(
        load(16, 8, 16), arguments=f"%m: memref<{HEIGHT}x{PITCH}xi8>, %out: memref<16x8xi16>", height=HEIGHT + 4
    )
    outcome = run(text, np.zeros((HEIGHT, PITCH), np.int8), np.zeros((16, 8), np.int16), x=0, y=HEIGHT - 2)
    assert {finding.kind for finding in outcome.findings} == {"out-of-bounds"}


@pytest.mark.parametrize(
    ("kind", "dtype", "depth", "sums"),
    [("f16", np.float16, 16, "f32"), ("bf16", ml_dtypes.bfloat16, 16, "f32"), ("s8", np.int8, 32, "i32")],
)
def test_a_product_of_one_instruction(kind: str, dtype: type[np.generic], depth: int, sums: str) -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 5, shape).astype(dtype) for shape in ((8, depth), (depth, 16)))
    c = random.integers(-9, 9, (8, 16)).astype(np.float32 if sums == "f32" else np.int32)
    name, each = kind.replace("s8", "i8"), depth // 16
    body = f"""%zero = arith.constant 0 : index
        %va = vector.load %a[%lane, %zero] : memref<16x{8 * each}x{name}>, vector<{8 * each}x{name}>
        %vb = vector.load %b[%lane, %zero] : memref<16x{depth}x{name}>, vector<{depth}x{name}>
        %vc = vector.load %c[%lane, %zero] : memref<16x8x{sums}>, vector<8x{sums}>
        %vd = xevm.mma %va, %vb, %vc {{shape = <m = 8, n = 16, k = {depth}>,
          types = <d = {sums.replace("i32", "s32")}, a = {kind}, b = {kind}, c = {sums.replace("i32", "s32")}>}}
          : (vector<{8 * each}x{name}>, vector<{depth}x{name}>, vector<8x{sums}>) -> vector<8x{sums}>
        vector.store %vd, %c[%lane, %zero] : memref<16x8x{sums}>, vector<8x{sums}>"""
    arguments = f"%m: memref<{HEIGHT}x{PITCH}xi8>, %a: memref<16x{8 * each}x{name}>, %b: memref<16x{depth}x{name}>, "
    lanes_of_a = a.reshape(8, 16, each).transpose(1, 0, 2).reshape(16, -1)
    arrays = [np.zeros((HEIGHT, PITCH), np.int8), *(np.ascontiguousarray(part) for part in (lanes_of_a, b.T, c.T))]
    outcome = run(kernel(body, arguments=arguments + f"%c: memref<16x8x{sums}>"), *arrays, x=0, y=0)
    assert not outcome.findings
    np.testing.assert_array_equal(outcome.arguments[3].T, c + a.astype(c.dtype) @ b.astype(c.dtype))


def test_a_built_in_that_is_not_known_is_refused() -> None:
    body = "%v = llvm.call @_Z29intel_sub_group_block_read_us() : () -> i32"
    text = kernel(body, arguments=f"%m: memref<{HEIGHT}x{PITCH}xi8>")
    text += "\nllvm.func @_Z29intel_sub_group_block_read_us() -> i32"
    with pytest.raises(StepladderError, match="there is no function @_Z29intel_sub_group_block_read_us with a body"):
        run(text, np.zeros((HEIGHT, PITCH), np.int8), x=0, y=0)


def _product(rows_of_lane: int, depth: int) -> str:
    """A product of 8 x 16 x 16 whose operands are constants of so many elements per lane."""
    types = (f"vector<{rows_of_lane}xf16>", f"vector<{depth}xf16>", "vector<8xf32>")
    constants = "".join(f"%v{n} = arith.constant dense<0.0> : {type_}\n" for n, type_ in enumerate(types))
    return f"""{constants}%d = xevm.mma %v0, %v1, %v2 {{shape = <m = 8, n = 16, k = 16>,
          types = <d = f32, a = f16, b = f16, c = f32>}} : ({", ".join(types)}) -> vector<8xf32>"""


@pytest.mark.parametrize(
    ("body", "lanes", "message"),
    [
        (_product(4, 16), 16, "xevm.mma of 4 and 16 elements per lane, 8 x 16"),
        (_product(8, 8), 16, "xevm.mma of 8 and 8 elements per lane, 8 x 16"),
        (_product(8, 16), 8, "xevm.mma of a part of a subgroup: expected all 16 lanes"),
    ],
)
def test_forms_that_no_instruction_has_are_refused(body: str, lanes: int, message: str) -> None:
    text = kernel(body, arguments=f"%m: memref<{HEIGHT}x{PITCH}xi8>, %out: memref<16x4xi16>", lanes=lanes)
    with pytest.raises(StepladderError, match=re.escape(message)) as raised:
        run(text, np.zeros((HEIGHT, PITCH), np.int8), np.zeros((16, 4), np.int16), x=0, y=0)
    assert raised.value.location.startswith("kernel:")


def test_kernels_without_a_size_of_subgroups() -> None:
    """Their subgroups have 16 threads, as the lowering takes it."""
    body = load(16, 8, 16)
    text = kernel(body, arguments=f"%m: memref<{HEIGHT}x{PITCH}xi8>, %out: memref<16x8xi16>")
    matrix = np.arange(HEIGHT * PITCH // 2, dtype=np.int16).reshape(HEIGHT, -1)
    outcome = run(
        text.replace("{intel_reqd_sub_group_size = 16 : i32}", ""),
        matrix.view(np.int8),
        np.zeros((16, 8), np.int16),
        x=0,
        y=0,
    )
    assert not outcome.findings
    assert (outcome.arguments[1] == matrix[:8, :16].T).all()
