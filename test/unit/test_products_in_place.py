"""Products that are inserted into arguments whose memory results take, or into buffers: their kernels write them there,
and what is beside them stays."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

import stepladder
from small_integers import small
from stepladder.runtime.errors import StepladderError

pytestmark = pytest.mark.usefixtures("needs_ptxas")

TARGETS = ["sm_75", "sm_80", "sm_90a"]
A, B, C = "tensor<64x32xf16>", "tensor<32x48xf16>", "tensor<64x48xf16>"
PRODUCT = f"""  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : {C}
  %z = linalg.fill ins(%zero : f16) outs(%e : {C}) -> {C}
  %p = linalg.matmul ins(%a, %b : {A}, {B}) outs(%z : {C}) -> {C}
"""


def inserted(shape: Sequence[int], offsets: Sequence[int], *, results: str = "%r", donated: bool = True) -> str:
    """Returns a product that is inserted into an argument.

    Args:
        shape: of the argument.
        offsets: of the product in it.
        results: names of what is returned, beside `%r` the product `%p` and the argument `%d`.
        donated: whether `%r`, the first result, takes the memory of the argument.
    """
    whole = f"tensor<{'x'.join(map(str, shape))}xf16>"
    types = {"%r": whole, "%d": whole, "%p": C}
    returned = ", ".join(types[name] for name in results.split(", "))
    mark = " {tf.aliasing_output = 0 : i32}" if donated else ""
    return f"""func.func @f(%a: {A}, %b: {B}, %d: {whole}{mark}) -> ({returned}) {{
{PRODUCT}  %r = tensor.insert_slice %p into %d{list(offsets)} [64, 48] [1, 1] : {C} into {whole}
  return {results} : {returned}
}}
"""


def stages(function: object) -> list[str]:
    assert isinstance(function, stepladder.Function)
    return [launch.stage.removeprefix("f_") for launch in function.manifest.launches]


def product() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns A, B and their product."""
    a, b = small(64, 32), small(32, 48)
    return a, b, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "shape, offsets", [((64, 80), (0, 16)), ((128, 48), (32, 0)), ((96, 64), (8, 8))], ids=["columns", "rows", "both"]
)
def test_a_product_is_written_to_its_part(shape: tuple[int, int], offsets: tuple[int, int], target: str) -> None:
    function = stepladder.compile(inserted(shape, offsets), target=target, device="emulator")
    assert stages(function) == ["matmul_0"]
    assert isinstance(function, stepladder.Function) and function.in_place == {0: 2}
    a, b, made = product()
    whole = small(*shape, seed=1)
    wanted = whole.copy()
    wanted[offsets[0] : offsets[0] + 64, offsets[1] : offsets[1] + 48] = made
    assert function(a, b, whole) is whole
    np.testing.assert_array_equal(whole, wanted)


@pytest.mark.parametrize(
    "shape, offsets, options, kernels, in_place",
    [
        ((64, 80), (0, 4), {}, ["matmul", "elementwise"], True),  # rows that are not aligned
        ((64, 80), (0, 16), {"results": "%r, %p"}, ["matmul", "elementwise"], True),
        ((128, 48), (32, 0), {"results": "%r, %p"}, ["matmul", "elementwise"], True),
        ((64, 80), (0, 16), {"results": "%r, %d"}, None, False),  # the argument is read elsewhere
        ((64, 80), (0, 16), {"results": "%r, %r"}, None, None),
        ((64, 80), (0, 16), {"donated": False}, ["matmul", "elementwise"], False),
    ],
)
def test_others_are_copied(
    shape: tuple[int, int],
    offsets: tuple[int, int],
    options: dict,
    kernels: list[str] | None,
    in_place: bool | None,
) -> None:
    function = stepladder.compile(inserted(shape, offsets, **options), target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    assert kernels is None or [stage.rpartition("_")[0] for stage in stages(function)] == kernels
    assert in_place is None or bool(function.in_place) == in_place
    a, b, made = product()
    whole = small(*shape, seed=1)
    wanted = whole.copy()
    wanted[offsets[0] : offsets[0] + 64, offsets[1] : offsets[1] + 48] = made
    values = {"%r": wanted, "%p": made, "%d": whole.copy()}
    results = function(a, b, whole)
    names = options.get("results", "%r").split(", ")
    for name, result in zip(names, [results] if len(names) == 1 else results):
        np.testing.assert_array_equal(np.asarray(result), values[name])


LAYERS = """func.func @f(%a: memref<64x32xf16>, %b: memref<32x48xf16>, %w: memref<48x48xf16>, %c: CTYPE) {
  %zero = arith.constant 0.0 : f16
  %t = memref.alloc() : memref<64x48xf16>
  linalg.fill ins(%zero : f16) outs(%t : memref<64x48xf16>)
  linalg.matmul ins(%a, %b : memref<64x32xf16>, memref<32x48xf16>) outs(%t : memref<64x48xf16>)
PART  linalg.fill ins(%zero : f16) outs(%part : PTYPE)
  linalg.matmul ins(%t, %w : memref<64x48xf16>, memref<48x48xf16>) outs(%part : PTYPE)
  return
}
"""
PART = "memref<64x48xf16, strided<[80, 1], offset: 16>>"
PITCH = "memref<64x48xf16, strided<[80, 1], offset: ?>>"
FORMS = {
    "argument with a pitch": (LAYERS.replace("PART", "").replace("%part", "%c"), PITCH, PITCH, 0),
    "part of a buffer": (
        LAYERS.replace("PART", f"  %part = memref.subview %c[0, 16] [64, 48] [1, 1] : memref<64x80xf16> to {PART}\n"),
        "memref<64x80xf16>",
        PART,
        16,
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_a_buffer_are_written_in_place(form: str, target: str) -> None:
    """Of a function with several matmuls on buffers, of which a caller passes one with a pitch between its rows."""
    text, whole_type, part_type, column = FORMS[form]
    text = text.replace("CTYPE", whole_type).replace("PTYPE", part_type)
    function = stepladder.compile(text, target=target, device="emulator")
    assert stages(function) == ["matmul_0", "matmul_1"]
    a, b, hidden = product()
    w, out = small(48, 48), small(64, 80, seed=1)
    wanted = out.copy()
    wanted[:, column : column + 48] = hidden.astype(np.float64) @ w.astype(np.float64)
    function(a, b, w, out)
    np.testing.assert_array_equal(out, wanted)


def test_an_argument_is_not_read_after_a_part_of_it_is_written() -> None:
    function = stepladder.compile(inserted((128, 48), (32, 0)), target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    manifest = function.manifest
    (launch,) = manifest.launches
    place = next(number for number, item in enumerate(manifest.buffers) if item.kind == "argument" and item.number == 2)
    rows = dataclasses.replace(manifest.buffers[launch.operands["a"]], kind="part", number=2, offset=0)
    buffers = (*manifest.buffers, rows)
    again = dataclasses.replace(launch, operands=launch.operands | {"a": len(buffers) - 1})
    changed = dataclasses.replace(manifest, buffers=buffers, launches=(launch, again), schema_version=9)
    with pytest.raises(StepladderError, match="whose memory a result has taken before"):
        stepladder.runtime.bundle.check_function(dataclasses.replace(function.bundle, manifest=changed))
    assert manifest.buffers[place].shape == (128, 48)
