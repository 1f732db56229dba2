"""Functions on buffers and numbers that are no single kernel: raised to tensors, executed and compiled."""

import os
import random

import numpy as np
import pytest

import stepladder
from conftest import PROFILE
from random_buffers import program
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.functions import EmulatedFunction
from stepladder.mlir.text import text_of
from stepladder.mlir.traverse import walk
from stepladder.payload.raising import is_raisable, raised
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.build import Build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.functions.build import FunctionBuild
from stepladder.pipeline.functions.matmul_parts import matmul_parts
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import StepladderError
from stepladder.verify.function_check import check_function

SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
COUNT = 200 if PROFILE == "random" else 8
COMPILED = 40 if PROFILE == "random" else 2
TARGET = Request("auto", {"target": "sm_90a"}, tuned=True)


def built(text: str) -> Build | FunctionBuild:
    with mlir_context():
        return build_any(text, "f.mlir", TARGET)


def executed(text: str, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns what the buffers of a function hold after it, and what the function on tensors returns for them."""
    with mlir_context():
        module = parse_payload(text, "f.mlir")
        on_tensors = raised(walk(module, "func.func")[0])
        emulation = Emulation(module, name="f.mlir")
        rng = np.random.default_rng(seed)
        given = []
        for type_ in emulation.function.argument_types:
            shape = getattr(type_, "static_shape", ())
            given.append(rng.integers(-3, 4, shape).astype(getattr(type_, "element", type_).dtype))
        outcome = emulation.run([array.copy() for array in given], count=False)
        assert outcome.findings == []
        after = [np.asarray(array) for array in outcome.arguments]
        tensors = Emulation(parse_payload(text_of(on_tensors), "raised.mlir"), name="raised.mlir")
        kept = [number for number, name in enumerate("abcdefgh"[: len(given)]) if f"%{name}:" in text_of(on_tensors)]
        assert len(kept) == len(tensors.function.argument_types)
        results = tensors.run([given[number] for number in kept], count=False).results
        written = [array for array, before in zip(after, given) if array.tobytes() != before.tobytes()]
    return written, [np.asarray(result) for result in results]


@pytest.mark.parametrize("number", range(COUNT))
def test_the_same_on_buffers_and_on_tensors(number: int) -> None:
    text = program(random.Random(SEED * 1_000_003 + number))
    try:
        written, results = executed(text, number)
    except StepladderError as error:
        raise AssertionError(f"{error.render()}\n{text}") from error
    for array in written:
        assert any(array.shape == result.shape and np.array_equal(array, result) for result in results), text


@pytest.mark.parametrize("number", range(COMPILED))
def test_compiled(number: int) -> None:
    text = program(random.Random(SEED * 1_000_003 + number))
    try:
        made = built(text)
    except StepladderError as error:  # of a function that writes none of its arguments
        assert "linalg.matmul" in error.message and "raised" not in error.message, f"{error.render()}\n{text}"
        return
    if isinstance(made, FunctionBuild):
        function = EmulatedFunction(made.bundle)
        assert [item.describe() for item in check_function(made.bundle, function, number) if not item.passed] == [], (
            text
        )
        assert function.findings == []


HEAD = "func.func @f(%a: memref<33x67xf16>, %b: memref<64x48xf16>, %c: memref<33x51xf32>, %s: f32) {\n"
UNALIGNED = (
    HEAD
    + """  %x = memref.subview %a[1, 3] [32, 64] [1, 1]
    : memref<33x67xf16> to memref<32x64xf16, strided<[67, 1], offset: 70>>
  %y = memref.subview %c[1, 3] [32, 48] [1, 1] : memref<33x51xf32> to memref<32x48xf32, strided<[51, 1], offset: 54>>
  linalg.fill ins(%s : f32) outs(%y : memref<32x48xf32, strided<[51, 1], offset: 54>>)
  linalg.matmul ins(%x, %b : memref<32x64xf16, strided<[67, 1], offset: 70>>, memref<64x48xf16>)
    outs(%y : memref<32x48xf32, strided<[51, 1], offset: 54>>)
  return
}
"""
)


@pytest.mark.parametrize(("space", "accepted"), [("1", True), ("#gpu.address_space<global>", True), ("3", False)])
def test_memory_spaces(space: str, accepted: bool) -> None:
    with mlir_context():
        module = parse_payload(f"func.func @f(%t: memref<8x8xf32, {space}>) {{\n  return\n}}\n", "f.mlir")
        assert is_raisable(walk(module, "func.func")[0]) == accepted


def test_parts_that_are_not_aligned_and_a_number() -> None:
    function = stepladder.compile(UNALIGNED, device="emulator", target="sm_90a")
    assert isinstance(function, stepladder.Function)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((33, 67), (64, 48)))
    c = rng.standard_normal((33, 51)).astype(np.float32)
    got = function(a, b, c, np.array(0.5, np.float32))
    wanted = c.astype(np.float64)
    wanted[1:33, 3:51] = 0.5 + a[1:33, 3:67].astype(np.float64) @ b.astype(np.float64)
    assert np.abs(got - wanted).max() < 1e-2
    assert (got[0] == c[0]).all() and (got[:, :3] == c[:, :3]).all()


def test_a_softmax_on_buffers() -> None:
    """In place along rows, and from one buffer to another along columns."""
    text = """func.func @f(%a: memref<16x24xf16>, %b: memref<24x32xf16>, %c: memref<16x32xf32>) {
  %z = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<16x32xf32>
  linalg.fill ins(%z : f32) outs(%t : memref<16x32xf32>)
  linalg.matmul ins(%a, %b : memref<16x24xf16>, memref<24x32xf16>) outs(%t : memref<16x32xf32>)
  linalg.softmax dimension(1) ins(%t : memref<16x32xf32>) outs(%t : memref<16x32xf32>)
  linalg.softmax dimension(0) ins(%t : memref<16x32xf32>) outs(%c : memref<16x32xf32>)
  return
}"""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((16, 24), (24, 32)))
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    for axis in (1, 0):
        powers = np.exp(wanted - wanted.max(axis, keepdims=True))
        wanted = powers / powers.sum(axis, keepdims=True)
    got = stepladder.compile(text, target="sm_80", device="emulator")(a, b)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


# Offset, sizes and strides of A in a buffer of 500 numbers, or of all its elements.
PLACES = {
    "all elements": (384, 0, (16, 24), (24, 1)),
    "columns first": (384, 0, (16, 24), (1, 16)),
    "behind an odd offset": (500, 7, (16, 24), (24, 1)),
    "a pitch": (500, 3, (16, 24), (30, 1)),
    "rows that overlap": (500, 0, (16, 24), (5, 1)),
    "one row again and again": (500, 1, (16, 24), (0, 1)),
    "every other number": (800, 0, (16, 24), (48, 2)),
}


@pytest.mark.parametrize("name", PLACES)
def test_numbers_at_places_of_a_buffer(name: str) -> None:
    """`memref.reinterpret_cast` of the argument, and of a buffer between two products, whose elements it transposes."""
    count, offset, sizes, strides = PLACES[name]
    layout = f"strided<[{strides[0]}, {strides[1]}], offset: {offset}>"
    view = f"memref<16x24xf16, {layout}>"
    text = f"""func.func @f(%a: memref<{count}xf16>, %b: memref<24x32xf16>, %c: memref<32x16xf32>) {{
  %z = arith.constant 0.0 : f32
  %v = memref.reinterpret_cast %a to offset: [{offset}], sizes: [16, 24], strides: [{strides[0]}, {strides[1]}]
    : memref<{count}xf16> to {view}
  %t = memref.alloc() : memref<32x16xf32>
  %u = memref.reinterpret_cast %t to offset: [0], sizes: [16, 32], strides: [1, 16]
    : memref<32x16xf32> to memref<16x32xf32, strided<[1, 16]>>
  linalg.fill ins(%z : f32) outs(%u : memref<16x32xf32, strided<[1, 16]>>)
  linalg.matmul ins(%v, %b : {view}, memref<24x32xf16>) outs(%u : memref<16x32xf32, strided<[1, 16]>>)
  linalg.add ins(%t, %t : memref<32x16xf32>, memref<32x16xf32>) outs(%c : memref<32x16xf32>)
  return
}}"""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((count,), (24, 32)))
    rows, columns = np.indices(sizes)
    taken = a[offset + rows * strides[0] + columns * strides[1]].astype(np.float32)
    got = stepladder.compile(text, target="sm_80", device="emulator")(a, b)
    np.testing.assert_array_equal(got, 2 * (taken @ b.astype(np.float32)).T)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("linalg.transpose ins(%t : memref<8x8xf32>) outs(%t : memref<8x8xf32>) permutation = [1, 0]", "at other"),
        ("memref.prefetch %t[%i, %i], read, locality<3>, data : memref<8x8xf32>", "'memref.prefetch' in a function on"),
        ("%n = arith.constant 257 : index\n  %k = arith.constant 1 : index\n  scf.for %j = %i to %n step %k {\n"
         "    linalg.fill ins(%s : f32) outs(%t : memref<8x8xf32>)\n  }", "of more than 256 iterations, in a function"),
        ("func.call @other() : () -> ()", "'func.call' in a function on buffers"),
        ("%p = memref.reinterpret_cast %t to offset: [1], sizes: [8, 8], strides: [8, 1] : memref<8x8xf32> to\n"
         "    memref<8x8xf32, strided<[8, 1], offset: 1>>\n"
         "  linalg.fill ins(%s : f32) outs(%p : memref<8x8xf32, strided<[8, 1], offset: 1>>)",
         "of elements that its source does not have"),
        ("%p = memref.reinterpret_cast %t to offset: [1], sizes: [8, 3], strides: [8, 1] : memref<8x8xf32> to\n"
         "    memref<8x3xf32, strided<[8, 1], offset: 1>>\n"
         "  linalg.fill ins(%s : f32) outs(%p : memref<8x3xf32, strided<[8, 1], offset: 1>>)",
         "memref.reinterpret_cast of a part of a buffer, which is written"),
        ("%v = scf.execute_region -> f32 {\n    scf.yield %s : f32\n  }", "'scf.execute_region' of a scalar argument"),
    ],
)  # fmt: skip
def test_refusals(line: str, message: str) -> None:
    text = f"func.func @f(%t: memref<8x8xf32>, %s: f32) {{\n  %i = arith.constant 0 : index\n  {line}\n  return\n}}\n"
    text += "func.func private @other()\n"
    with mlir_context(), pytest.raises(StepladderError) as caught:
        module = parse_payload(text, "f.mlir")
        raised(walk(module, "func.func")[0])
    assert message in caught.value.message and (caught.value.location or "").startswith("f.mlir:")
    with mlir_context(), pytest.raises(StepladderError) as refused:
        build_any(text, "f.mlir", TARGET)
    assert "\n" not in refused.value.message and "raised" not in refused.value.message


@pytest.mark.parametrize("place, row", [(3, 3), (-2, 0), (9, 4)])
def test_a_part_at_a_place_that_the_caller_passes(place: int, row: int) -> None:
    """A place beyond the buffer is moved into it, as it has no meaning."""
    part = "memref<4x8xf32, strided<[8, 1], offset: ?>>"
    text = f"""func.func @f(%t: memref<8x8xf32>, %i: index, %s: f32, %u: memref<4x8xf32>) {{
  %v = memref.subview %t[%i, 0] [4, 8] [1, 1] : memref<8x8xf32> to {part}
  linalg.copy ins(%v : {part}) outs(%u : memref<4x8xf32>)
  linalg.fill ins(%s : f32) outs(%v : {part})
  return
}}
"""
    t = np.arange(64, dtype=np.float32).reshape(8, 8)
    whole, before = stepladder.compile(text, target="sm_80", device="emulator")(
        t.copy(), *map(np.array, (place, np.float32(7)))
    )
    rows = slice(row, row + 4)
    np.testing.assert_array_equal(before, t[rows])
    t[rows] = 7
    np.testing.assert_array_equal(whole, t)


def test_rows_at_an_offset_that_the_caller_passes() -> None:
    taken = "memref<4x3xf32, strided<[8, 2], offset: ?>>"
    text = f"""func.func @f(%t: memref<8x8xf32>, %i: i32, %u: memref<4x3xf32>) {{
  %n = arith.index_cast %i : i32 to index
  %v = memref.reinterpret_cast %t to offset: [%n], sizes: [4, 3], strides: [8, 2] : memref<8x8xf32> to {taken}
  linalg.copy ins(%v : {taken}) outs(%u : memref<4x3xf32>)
  return
}}
"""
    t = np.arange(64, dtype=np.float32).reshape(8, 8)
    function = stepladder.compile(text, target="sm_80", device="emulator")
    for place, first in ((11, 11), (99, 63 - 28)):
        rows, columns = np.indices((4, 3))
        np.testing.assert_array_equal(function(t, np.array(place, np.int32)), first + 8 * rows + 2 * columns)


def test_a_part_whose_size_the_caller_passes_is_refused() -> None:
    part = "memref<?x8xf32, strided<[8, 1]>>"
    text = f"""func.func @f(%t: memref<8x8xf32>, %i: index, %s: f32) {{
  %v = memref.subview %t[0, 0] [%i, 8] [1, 1] : memref<8x8xf32> to {part}
  linalg.fill ins(%s : f32) outs(%v : {part})
  return
}}
"""
    with mlir_context(), pytest.raises(StepladderError, match="not static") as caught:
        module = parse_payload(text, "f.mlir")  # what `walk` returns does not keep it
        raised(walk(module, "func.func")[0])
    assert (caught.value.location or "").startswith("f.mlir:2:")


REDUCED_BATCH = """
func.func @f(%A: memref<2x16x32xf16>, %B: memref<2x32x16xf16>, %C: memref<2x16x16xf32>, %R: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<2x16x16xf32>)
  linalg.batch_matmul ins(%A, %B : memref<2x16x32xf16>, memref<2x32x16xf16>) outs(%C : memref<2x16x16xf32>)
  linalg.fill ins(%zero : f32) outs(%R : memref<16x16xf32>)
  linalg.reduce { arith.addf } ins(%C : memref<2x16x16xf32>) outs(%R : memref<16x16xf32>) dimensions = [0]
  return
}
"""


def test_a_requirement_of_a_kernel_comes_before_the_form_of_one_kernel() -> None:
    knobs: dict[str, int | str] = {"split_k": 2, "persistent_blocks": 1, "epilogue": "registers"}
    for compiled in (
        lambda: stepladder.compile(REDUCED_BATCH, pipeline="wgmma", target="sm_90a", device="emulator", **knobs),
        lambda: build_any(REDUCED_BATCH, "payload.mlir", Request("wgmma", knobs)),
    ):
        with mlir_context(), pytest.raises(StepladderError) as refused:
            compiled()
        assert "split_k above 1 requires persistent_blocks = 0" in refused.value.message
        assert len([note for note in refused.value.notes if note.startswith("as one kernel: ")]) == 1


def chain(between: str) -> str:
    """Returns two matmuls on buffers, with the body of an op between them."""
    sums, maps = "memref<16x16xf32>", ", ".join(["affine_map<(i, j) -> (i, j)>"] * 2)
    return f"""func.func @f(%A: memref<16x32xf16>, %B: memref<32x16xf16>, %D: memref<16x16xf16>, %C: {sums}) {{
  %zero = arith.constant 0.0 : f32
  %h = memref.alloc() : {sums}
  linalg.fill ins(%zero : f32) outs(%h : {sums})
  linalg.matmul ins(%A, %B : memref<16x32xf16>, memref<32x16xf16>) outs(%h : {sums})
  %g = memref.alloc() : memref<16x16xf16>
  linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins(%h : {sums}) outs(%g : memref<16x16xf16>) {{
  ^bb0(%x: f32, %o: f16):
    {between}
    linalg.yield %r : f16
  }}
  linalg.fill ins(%zero : f32) outs(%C : {sums})
  linalg.matmul ins(%g, %D : memref<16x16xf16>, memref<16x16xf16>) outs(%C : {sums})
  return
}}
"""


def test_the_op_that_several_kernels_do_not_compute_comes_before_the_form_of_one_kernel() -> None:
    wide = """%i = arith.fptosi %x : f32 to i32
    %low, %high = arith.mulsi_extended %i, %i : i32
    %r = arith.sitofp %high : i32 to f16"""
    for compiled in (
        lambda: stepladder.compile(chain(wide), target="sm_90a", device="emulator"),
        lambda: build_any(chain(wide), "payload.mlir", Request("auto", {"target": "sm_80"})),
        lambda: matmul_parts(chain(wide), "payload.mlir", Request("mma_sync")),
    ):
        with mlir_context(), pytest.raises(StepladderError) as refused:
            compiled()
        assert refused.value.message.startswith("'arith.mulsi_extended' in a linalg op has no reference computation")
        assert refused.value.location and refused.value.location.endswith(":11:19")
        assert refused.value.notes[0].startswith("accepted: arith.addf, arith.addi, ")
        assert refused.value.notes[-1].startswith("as one kernel: 2 linalg.matmul ops in the payload")


def test_matmuls_of_a_function_on_buffers_are_explained() -> None:
    with mlir_context():
        parts = matmul_parts(chain("%r = arith.truncf %x : f32 to f16"), "payload.mlir", Request("wgmma"))
    assert [part.name for part in parts] == ["payload.mlir:f_matmul_0", "payload.mlir:f_matmul_1"]
