"""The rule of payloads: each thing that a pipeline would lose is refused where it is, whatever the pipeline."""

import re

import pytest

from refused import (
    ACCUMULATED,
    EMPTY,
    EMPTY_HALF,
    IN_PLACE,
    NUMBER,
    PLACE,
    PRODUCT,
    ROUND,
    SAME,
    TENSORS,
    A,
    B,
    C,
    H,
    between,
    elementwise,
    filled,
    on_buffers,
    on_tensors,
    refusal,
    written,
)
from stepladder.payload.matmul import find_matmul
from stepladder.payload.refusal import ACCEPTED
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import BAD_INPUT, StepladderError

# What is wrong: the payload, the line of it, and what the message says.
REFUSED = {
    "a layout": (
        on_tensors().replace(f"tensor<{A}>", f'tensor<{A}, "rows">'),
        1,
        f'argument 0 is tensor<{A}, "rows">; tensors must be dense',
    ),
    "two results of an op": (
        on_tensors(
            EMPTY,
            f"%r:2 = linalg.generic {{{SAME.replace('], iter', ', affine_map<(i, j) -> (i, j)>], iter')}}} "
            f"ins(%p : tensor<{C}>) outs(%e, %e : tensor<{C}>, tensor<{C}>) {{ ^bb0(%x: f32, %y: f32, %z: f32): "
            f"linalg.yield %x, %x : f32, f32 }} -> (tensor<{C}>, tensor<{C}>)",
            result="%r#0",
        ),
        4,
        "linalg.generic has 2 results; an epilogue op must have one",
    ),
    "a condition as a number": (
        on_tensors(
            EMPTY, elementwise("%t = arith.cmpf ogt, %x, %x : f32 %z = arith.sitofp %t : i1 to f32"), result="%r"
        ),
        4,
        "arith.sitofp of i1",
    ),
    "arith on tensors": (on_tensors(f"%r = arith.addf %p, %C : tensor<{C}>", result="%r"), 3, "'arith.addf' beside"),
    "rounded towards zero": (
        on_tensors(
            EMPTY_HALF,
            elementwise(ROUND.replace(" %x", " %x toward_zero"), to="%h", types=(C, H)),
            result="%r",
            type_=H,
        ),
        4,
        "arith.truncf with a rounding mode other than to nearest",
    ),
    "store": (on_buffers(IN_PLACE, NUMBER, PLACE, f"memref.store %n, %C[%i, %i] : memref<{C}>"), 5, "'memref.store' b"),
    "store in front": (
        on_buffers(NUMBER, PLACE, f"memref.store %n, %C[%i, %i] : memref<{C}>", IN_PLACE),
        4,
        "'memref.store' beside",
    ),
    "copy of C": (
        on_buffers(IN_PLACE, f"memref.copy %C, %D : memref<{C}> to memref<{C}>", more=f", %D: memref<{C}>"),
        3,
        "'memref.copy' beside",
    ),
    "print": (on_buffers(IN_PLACE, NUMBER, "vector.print %n : f32"), 4, "'vector.print' beside"),
    "assert": (on_buffers("%t = arith.constant true", 'cf.assert %t, "x"', IN_PLACE), 3, "'cf.assert' beside"),
    "call": ("func.func private @g()\n" + on_buffers(IN_PLACE, "func.call @g() : () -> ()"), 4, "'func.call' beside"),
    "loop": (
        on_buffers("scf.for %s = %i to %i step %i {", IN_PLACE, "}", more=", %i: index"),
        3,
        "linalg.matmul is inside 'scf.for'",
    ),
    "condition": (
        on_buffers("scf.if %t {", IN_PLACE, "}", more=", %t: i1"),
        3,
        "linalg.matmul is inside 'scf.if'",
    ),
    "branches": (on_buffers(IN_PLACE, "cf.br ^end", "^end:"), 1, "the function has 2 blocks"),
    "gpu.launch": (
        on_buffers(
            IN_PLACE,
            "%l = arith.constant 1 : index",
            "gpu.launch blocks(%x, %y, %z) in (%gx = %l, %gy = %l, %gz = %l) threads(%s, %t, %u) in "
            "(%bx = %l, %by = %l, %bz = %l) {",
            "gpu.terminator",
            "}",
        ),
        4,
        "'gpu.launch' beside",
    ),
    "memory space": (on_buffers(IN_PLACE).replace(f"memref<{A}>", f"memref<{A}, 1>"), 1, "argument 0 .* global memory"),
    "layout": (
        on_buffers(IN_PLACE).replace(f"memref<{C}>", f"memref<{C}, strided<[128, 2]>>"),
        1,
        "argument 2 .* row-major with static row pitches",
    ),
    "sparse": (
        "#s = #sparse_tensor.encoding<{map = (i, j) -> (i : compressed, j : compressed)}>\n"
        + on_tensors().replace(f"tensor<{A}>", f"tensor<{A}, #s>"),
        2,
        "argument 0 .* must be dense",
    ),
    "unused and of no shape": (on_buffers(IN_PLACE, more=", %D: memref<?xf32>"), 1, "unused argument 3 is memref"),
    "used, and no operand": (
        on_buffers(f"linalg.fill ins(%x : f32) outs(%C : memref<{C}>)", IN_PLACE, more=", %x: f32"),
        2,
        "something other than the constant 0",
    ),
    "-0.0": (on_tensors(start=filled("-0.0")), 3, "other than the constant 0: -0.0"),
    "2.0": (on_tensors(start=filled("2.0")), 3, "other than the constant 0: 2.0"),
    "zeros for more": (
        on_tensors(start=filled("0.0"), result="%s"),
        3,
        "has uses other than the initial value of linalg.matmul",
    ),
    "C filled behind": (
        on_buffers(IN_PLACE, "%n = arith.constant 0.0 : f32", f"linalg.fill ins(%n : f32) outs(%C : memref<{C}>)"),
        4,
        "linalg.fill overwrites the accumulators",
    ),
    "from nothing": (
        on_tensors(start=EMPTY + "\n" + ACCUMULATED.replace("%C", "%e")),
        3,
        "the initial value of linalg.matmul is tensor.empty",
    ),
    "a buffer of its own": (
        on_buffers(f"%D = memref.alloc() : memref<{C}>", IN_PLACE.replace("%C", "%D")),
        2,
        "'memref.alloc' beside",
    ),
    "A is a constant": (
        on_tensors(start=f"%a = arith.constant dense<1.0> : tensor<{A}>\n" + ACCUMULATED.replace("%A", "%a")),
        3,
        "A is a constant; it must be an argument",
    ),
    "result lost": (between(PRODUCT), 6, "the result of linalg.matmul is unused"),
    "result written twice": (between(PRODUCT, written(), written()), 7, "argument 2 is written a second time"),
    "result written elsewhere": (
        between(PRODUCT, written(buffer="%D"), more=f", %D: memref<{C}>"),
        6,
        "is initialized from argument 2 and written elsewhere",
    ),
    "C written by something else": (between(PRODUCT, written("%c")), 6, "reads an argument; it must read the result"),
    "two results": (
        on_tensors()
        .replace(f"-> tensor<{C}> {{", f"-> (tensor<{C}>, tensor<{C}>) {{")
        .replace(f"return %p : tensor<{C}>", f"return %p, %p : tensor<{C}>, tensor<{C}>"),
        3,
        "result 0 of 2 is initialized from argument 2",
    ),
    "C returned": (on_tensors(result="%C"), 3, "reads an argument; it must read the result"),
    "C not writable": (between(PRODUCT, written(), c="restrict"), 4, "without 'writable'"),
    "buffers that may overlap": (between(PRODUCT, written(), a=""), 2, "without 'restrict'"),
    "a body of its own": (
        on_tensors(
            start=f"""%p = "linalg.matmul"(%A, %B, %C)
        <{{operandSegmentSizes = array<i32: 2, 1>}}>
        ({{ ^bb0(%x: f16, %y: f16, %z: f32): %s = arith.extf %x : f16 to f32 %t = arith.extf %y : f16 to f32
        %u = arith.negf %s : f32 %v = arith.mulf %u, %t : f32 %w = arith.addf %z, %v : f32 linalg.yield %w : f32 }})
        {{}} : (tensor<{A}>, tensor<{B}>, tensor<{C}>) -> tensor<{C}>"""
        ),
        2,
        "a body that is not a product and a sum",
    ),
    "attributes about bufferization": (
        on_tensors()
        .replace("%C: ", "%C: ")
        .replace(f"%C: tensor<{C}>", f"%C: tensor<{C}> {{bufferization.writable = false}}"),
        1,
        "argument 2 has the attribute",
    ),
    "no rows": (on_buffers(IN_PLACE).replace("8x", "0x"), 2, "0 x 16 x 4 has nothing to compute: m = 0"),
    "no depth": (on_buffers(IN_PLACE).replace("8x4", "8x0").replace("4x16", "0x16"), 2, "8 x 16 x 0 .*: k = 0"),
    "more than memory": (
        on_buffers(IN_PLACE).replace("8x", f"{2**58}x"),
        2,
        rf"a matmul of {2**58} x 16 x 4 has a matrix of {2**62} elements, and at most 2\^60 can be addressed",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, line, message = REFUSED[name]
    error = refusal(text, message)
    assert re.match(rf"payload.mlir:{line}:\d+$", error.location), error.location
    assert error.status == BAD_INPUT


def test_what_is_accepted_is_said() -> None:
    with mlir_context(), pytest.raises(StepladderError) as caught:
        find_matmul(parse_payload(REFUSED["print"][0], "payload.mlir"))
    assert caught.value.notes == (ACCEPTED,)


@pytest.mark.parametrize("number, notes", [("-0.0", 2), ("2.0", 1)])
def test_a_refusal_says_why_negative_zeros_are_none(number: str, notes: int) -> None:
    with mlir_context(), pytest.raises(StepladderError) as caught:
        find_matmul(parse_payload(REFUSED[number][0], "payload.mlir"))
    assert len(caught.value.notes) == notes and ("accepted: 0.0" in caught.value.notes[-1]) == (number == "-0.0")


ROUNDED = f"%s = linalg.matmul {TENSORS} outs(%z0 : tensor<{C}>) -> tensor<{C}>"
ZEROS = f"%n = arith.constant 0.0 : f32\n{EMPTY}\n%z0 = linalg.fill ins(%n : f32) outs(%e : tensor<{C}>) -> tensor<{C}>"


@pytest.mark.parametrize(
    "text, roles, c_type, accumulates, form",
    [
        (on_tensors(), {0: "a", 1: "b", 2: "c"}, "f32", True, "tensors"),
        (on_tensors(start=filled("0.0")), {0: "a", 1: "b", 2: "c"}, "f32", False, "tensors"),
        (
            on_tensors(
                EMPTY_HALF, elementwise(ROUND, "%s", "%h", (C, H)), start=ZEROS + "\n" + ROUNDED, result="%r", type_=H
            ),
            {0: "a", 1: "b", 3: "c"},
            "f16",
            False,
            "tensors",
        ),
        (
            on_tensors(
                elementwise(ROUND, "%s", "%H", (C, H)),
                start=ZEROS + "\n" + ROUNDED,
                result="%r",
                type_=H,
                more=f", %unused: i1, %H: tensor<{H}>",
            ),
            {0: "a", 1: "b", 4: "c"},
            "f16",
            False,
            "tensors",
        ),
        (
            on_buffers(IN_PLACE, more=", %x: f32, %y: index, %D: memref<2xf32>, %E: tensor<3xi8>"),
            {0: "a", 1: "b", 2: "c"},
            "f32",
            True,
            "buffers",
        ),
        (between(PRODUCT, written()), {0: "a", 1: "b", 2: "c"}, "f32", True, "normal"),
        (
            "ml_program.global private mutable @seed(dense<0> : tensor<i64>) : tensor<i64>\n" + on_buffers(IN_PLACE),
            {0: "a", 1: "b", 2: "c"},
            "f32",
            True,
            "buffers",
        ),
    ],
)
def test_accepted(text: str, roles: dict[int, str], c_type: str, accumulates: bool, form: str) -> None:
    with mlir_context():
        matmul = find_matmul(parse_payload(text, "payload.mlir"))
    problem = matmul.problem
    assert (matmul.roles, problem.c_type, problem.accumulate, matmul.form) == (roles, c_type, accumulates, form)
    assert problem.acc_type == "f32"


CALL = f"(%A, %B, %C) : (tensor<{A}>, tensor<{B}>, tensor<{C}>) -> tensor<{C}>"
CALLING = on_tensors(f"%q = func.call @f{CALL}", result="%q")
RANDOM = f"%r = linalg.fill_rng_2d ins(%l, %l, %i : f64, f64, i32) outs(%C : tensor<{C}>) -> tensor<{C}>"


@pytest.mark.parametrize(
    "text, location, message",
    [
        (CALLING, 3, "a recursive call: @f calls @f"),
        (
            CALLING.replace("call @f", "call @g") + CALLING.replace("func @f", "func private @g"),
            8,
            "a recursive call: @f calls @g, which calls @f",
        ),
        (
            on_tensors(
                RANDOM,
                f"%s = linalg.add ins(%p, %r : tensor<{C}>, tensor<{C}>) outs(%C : tensor<{C}>) -> tensor<{C}>",
                start="%l = arith.constant 0.0 : f64\n%i = arith.constant 1 : i32\n" + ACCUMULATED,
                result="%s",
            ),
            5,
            "'linalg.fill_rng_2d' makes pseudo-random numbers",
        ),
    ],
)
def test_refused_as_functions_too(text: str, location: int, message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError) as caught:
        build_any(text, "payload.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
    error = caught.value
    assert str(error.location).startswith(f"payload.mlir:{location}:")
    assert any(message in said for said in (error.message, *error.notes)), error.render()
