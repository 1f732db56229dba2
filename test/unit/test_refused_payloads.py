"""Payloads with an op that no kernel computes: where the refusal is, and what it says."""

import re

import pytest

from refused import (
    EMPTY,
    IN_PLACE,
    TENSORS,
    A,
    B,
    C,
    H,
    elementwise,
    on_buffers,
    on_tensors,
    refusal,
    written,
)
from stepladder.payload.binding import bind
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

OF_ZEROS = "\n".join(
    [
        "%n = arith.constant 0.0 : f32",
        EMPTY,
        f"%z0 = linalg.fill ins(%n : f32) outs(%e : tensor<{C}>) -> tensor<{C}>",
        f"%p = linalg.matmul {TENSORS} outs(%z0 : tensor<{C}>) -> tensor<{C}>",
    ]
)
THREE_LOOPS = (
    "indexing_maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, j, k)>], "
    'iterator_types = ["parallel", "parallel", "parallel"]'
)
TO_TRANSPOSE = (
    "indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], "
    'iterator_types = ["parallel", "parallel"]'
)
ALONG_ROWS = (
    "indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], "
    'iterator_types = ["parallel", "reduction"]'
)
DIVIDED = (
    "%t = arith.fptosi %x : f32 to i32 %o = arith.constant 0 : i32 %u = arith.divsi %t, %o : i32 "
    "%z = arith.sitofp %u : i32 to f32"
)
SQUARED = "%t = arith.extf %x : f32 to f64 %u = arith.mulf %t, %t : f64 %z = arith.truncf %u : f64 to f32"
ADDED = "%s = arith.extf %y : f16 to f32 %t = arith.addf %x, %s : f32 %z = arith.truncf %t : f32 to f16"

OVERLAPPING = f"memref<{A}, strided<[2, 1]>>"

# What is wrong: the payload, the line of it, and what the message says.
REFUSED = {
    "an elementwise op with a loop more": (
        on_tensors(
            "%e = tensor.empty() : tensor<8x16x2xf32>",
            f"%r = linalg.generic {{{THREE_LOOPS}}} ins(%p : tensor<{C}>) outs(%e : tensor<8x16x2xf32>) {{ "
            "^bb0(%x: f32, %y: f32): linalg.yield %x : f32 } -> tensor<8x16x2xf32>",
            result="%r",
            type_="8x16x2xf32",
        ),
        4,
        "linalg.generic has 3 loops; it must have those of C, 2",
    ),
    "a transposed result": (
        on_tensors(
            "%e = tensor.empty() : tensor<16x8xf32>",
            f"%r = linalg.generic {{{TO_TRANSPOSE}}} ins(%p : tensor<{C}>) outs(%e : tensor<16x8xf32>) {{ "
            "^bb0(%x: f32, %y: f32): %z = arith.addf %x, %x : f32 linalg.yield %z : f32 } -> tensor<16x8xf32>",
            result="%r",
            type_="16x8xf32",
        ),
        4,
        "linalg.generic writes its result with the indexing map (d0, d1) -> (d1, d0); it must be the identity map",
    ),
    "a type of 64 bits": (
        on_tensors(EMPTY, elementwise(SQUARED), result="%r"),
        4,
        "'arith.extf' on f64; accepted in an epilogue: f16, bf16, f32,",
    ),
    "a division by 0": (on_tensors(EMPTY, elementwise(DIVIDED), result="%r"), 4, "'arith.divsi' by 0"),
    "something added other than C": (
        on_tensors(
            f"%h = tensor.empty() : tensor<{H}>",
            elementwise(ADDED, to="%h", types=(C, H)),
            result="%r",
            type_=H,
            start=OF_ZEROS,
        ),
        7,
        "linalg.generic adds tensor.empty to the accumulators; it must add C",
    ),
    "a reduction to a buffer": (
        on_buffers(
            IN_PLACE,
            f"linalg.reduce {{ arith.addf }} ins(%C : memref<{C}>) outs(%D : memref<8xf32>) dimensions = [1]",
            more=", %D: memref<8xf32>",
        ),
        3,
        "linalg.reduce reduces to a buffer; accepted: reductions of tensors",
    ),
    "a reduction to two results": (
        on_tensors(
            "%i = tensor.empty() : tensor<8xf32>",
            "%k = linalg.fill ins(%n : f32) outs(%i : tensor<8xf32>) -> tensor<8xf32>",
            f"%q:2 = linalg.generic {{{ALONG_ROWS}}} ins(%p : tensor<{C}>) outs(%k, %k : tensor<8xf32>, tensor<8xf32>) "
            "{ ^bb0(%x: f32, %y: f32, %w: f32): %s = arith.addf %x, %y : f32 %t = arith.addf %x, %w : f32 "
            "linalg.yield %s, %t : f32, f32 } -> (tensor<8xf32>, tensor<8xf32>)",
            result="%q#0",
            type_="8xf32",
            start=OF_ZEROS,
        ),
        8,
        "linalg.generic reduces to 2 results; accepted: one",
    ),
    "a result that is written and returned": (
        on_tensors(written(buffer="%D"), more=f", %D: memref<{C}>", start=OF_ZEROS),
        7,
        "results are returned as well as written to buffers; accepted: one of the two",
    ),
    "rows that overlap": (
        f"func.func @f(%A: memref<32xf16>, %B: memref<{B}>, %C: memref<{C}>) {{\n"
        f"%v = memref.reinterpret_cast %A to offset: [0], sizes: [8, 4], strides: [2, 1] : memref<32xf16> to "
        f"{OVERLAPPING}\n{IN_PLACE.replace('%A', '%v').replace(f'memref<{A}>', OVERLAPPING)}\nreturn\n}}\n",
        2,
        "memref.reinterpret_cast accesses a part of a buffer that is not an argument, or not dense rows",
    ),
    "an argument of unknown rank": (
        on_buffers(IN_PLACE, more=", %D: memref<*xf32>"),
        1,
        "argument 3 is memref<*xf32>, a buffer of unknown rank",
    ),
    "a buffer of unknown rank": (
        on_buffers(
            f"%u = memref.cast %A : memref<{A}> to memref<*xf16>",
            f"%v = memref.cast %u : memref<*xf16> to memref<{A}>",
            IN_PLACE.replace("%A", "%v"),
        ),
        3,
        "memref.cast takes memref<*xf16>, a buffer of unknown rank",
    ),
    "an odd number of i4": (
        on_buffers(IN_PLACE, more=", %D: memref<3xi4>"),
        1,
        "argument 3 is memref<3xi4>",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, line, message = REFUSED[name]
    error = refusal(text, re.escape(message))
    assert re.match(rf"payload.mlir:{line}:\d+$", error.location), error.location
    assert any("accepted: " in said for said in (error.message, *error.notes)) or "it must" in error.message


RESHAPED = f"""func.func @f(%A: tensor<?x4xf16>, %B: tensor<{B}>, %C: tensor<{C}>) -> tensor<{C}> {{
  %s = arith.constant dense<[4, 6]> : tensor<2xi64>
  %r = tensor.reshape %A(%s) : (tensor<?x4xf16>, tensor<2xi64>) -> tensor<?x?xf16>
  %a = tensor.cast %r : tensor<?x?xf16> to tensor<{A}>
  %p = linalg.matmul ins(%a, %B : tensor<{A}>, tensor<{B}>) outs(%C : tensor<{C}>) -> tensor<{C}>
  return %p : tensor<{C}>
}}
"""


@pytest.mark.parametrize(
    "text, line, message",
    [
        (
            "func.func @f(%A: memref<?x4xf16, strided<[8, 1]>>) {\nreturn\n}\n",
            1,
            "argument 0 is memref<?x4xf16, strided<[8, 1]>>",
        ),
        (RESHAPED, 3, "'tensor.reshape' of tensor<8x4xf16> to 4x6, of other size"),
    ],
)
def test_what_cannot_be_bound(text: str, line: int, message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError, match=re.escape(message)) as caught:
        bind(parse_payload(text, "payload.mlir"), {"arg0.0": 8})
    assert caught.value.location.startswith(f"payload.mlir:{line}:") and caught.value.notes
