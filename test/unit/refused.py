"""Payloads that the rule refuses, and what they are written with."""

import pytest

from stepladder.payload.matmul import find_matmul
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

A, B, C, H = "8x4xf16", "4x16xf16", "8x16xf32", "8x16xf16"
TENSORS = f"ins(%A, %B : tensor<{A}>, tensor<{B}>)"
BUFFERS = f"ins(%A, %B : memref<{A}>, memref<{B}>)"
ACCUMULATED = f"%p = linalg.matmul {TENSORS} outs(%C : tensor<{C}>) -> tensor<{C}>"
IN_PLACE = f"linalg.matmul {BUFFERS} outs(%C : memref<{C}>)"
SAME = (
    "indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], "
    'iterator_types = ["parallel", "parallel"]'
)


def on_tensors(*lines: str, result: str = "%p", type_: str = C, more: str = "", start: str = ACCUMULATED) -> str:
    """A function on tensors: the matmul in line 2, then `lines`."""
    return "\n".join(
        [
            f"func.func @f(%A: tensor<{A}>, %B: tensor<{B}>, %C: tensor<{C}>{more}) -> tensor<{type_}> {{",
            start,
            *lines,
            f"return {result} : tensor<{type_}>",
            "}",
            "",
        ]
    )


def on_buffers(*lines: str, more: str = "", name: str = "@f") -> str:
    """A function on buffers, without its matmul."""
    return "\n".join(
        [f"func.func {name}(%A: memref<{A}>, %B: memref<{B}>, %C: memref<{C}>{more}) {{", *lines, "return", "}", ""]
    )


def between(*lines: str, more: str = "", c: str = "restrict writable", a: str = "restrict") -> str:
    """Buffers at the boundary, tensors inside: three reads, then `lines`."""
    reads = [
        f"%{name} = bufferization.to_tensor %{name.upper()} {how} : memref<{shape}> to tensor<{shape}>"
        for name, how, shape in (("a", a, A), ("b", "restrict", B), ("c", c, C))
    ]
    return on_buffers(*reads, *lines, more=more)


PRODUCT = f"%p = linalg.matmul ins(%a, %b : tensor<{A}>, tensor<{B}>) outs(%c : tensor<{C}>) -> tensor<{C}>"


def written(value: str = "%p", buffer: str = "%C", shape: str = C) -> str:
    return (
        f"bufferization.materialize_in_destination {value} in restrict writable {buffer} : (tensor<{shape}>, "
        f"memref<{shape}>) -> ()"
    )


def elementwise(
    body: str, of: str = "%p", to: str = "%e", types: tuple[str, str] = (C, C), kind: str = "tensor"
) -> str:
    scalars = [type_.split("x")[-1] for type_ in types]
    head, tail = ("%r = ", f" -> tensor<{types[1]}>") if kind == "tensor" else ("", "")
    return (
        f"{head}linalg.generic {{{SAME}}} ins({of} : {kind}<{types[0]}>) outs({to} : {kind}<{types[1]}>) {{ "
        f"^bb0(%x: {scalars[0]}, %y: {scalars[1]}): {body} linalg.yield %z : {scalars[1]} }}{tail}"
    )


RELU = "%o = arith.constant 0.0 : f32 %z = arith.maximumf %x, %o : f32"
ROUND = "%z = arith.truncf %x : f32 to f16"
EMPTY, EMPTY_HALF = f"%e = tensor.empty() : tensor<{C}>", f"%h = tensor.empty() : tensor<{H}>"
NUMBER, PLACE = "%n = arith.constant 1.0 : f32", "%i = arith.constant 0 : index"


def filled(number: str) -> str:
    return (
        f"%n = arith.constant {number} : f32\n"
        f"%s = linalg.fill ins(%n : f32) outs(%C : tensor<{C}>) -> tensor<{C}>\n"
        f"%p = linalg.matmul {TENSORS} outs(%s : tensor<{C}>) -> tensor<{C}>"
    )


def refusal(text: str, message: str) -> StepladderError:
    """Returns the one error of a payload that the rule refuses with a message, a pattern, at a line of the payload."""
    with mlir_context(), pytest.raises(StepladderError, match=message) as raised:
        find_matmul(parse_payload(text, "payload.mlir"))
    assert raised.value.location.startswith("payload.mlir:")
    return raised.value
