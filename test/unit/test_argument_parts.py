"""Parts of arguments, such as the weights of one layer in those of all, that kernels of functions are launched on."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from stepladder.emulator.functions import EmulatedFunction
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions.build import FunctionBuild
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import FunctionBundle, read_any
from stepladder.runtime.errors import StepladderError
from stepladder.verify.function_check import check_function
from weight_functions import chain

pytestmark = pytest.mark.usefixtures("needs_ptxas")

ROW = "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>"
COLUMN = ROW.replace("(k, n)", "(n, k)")
LOOP = """  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.constant {count} : index
  %zero = arith.constant 0.0 : f32
"""


def layers(count: int, width: int, element: str, maps: str = ROW) -> str:
    """Returns a loop on tensors: the activation of a product by the weights of a layer."""
    w = f"{width}x{width}"
    x, w, stack = (f"tensor<{shape}x{element}>" for shape in (f"5x{width}", w, f"{count}x{w}"))
    round_ = "" if element == "f32" else f"%t = arith.truncf %in : f32 to {element}"
    elementwise = 'indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]'
    return f"""#map = affine_map<(i, j) -> (i, j)>
func.func @layers(%x: {x}, %w: {stack}) -> {x} {{
{LOOP.format(count=count)}
  %none = arith.constant 0.0 : {element}
  %0 = tensor.empty() : tensor<5x{width}xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<5x{width}xf32>) -> tensor<5x{width}xf32>
  %r = scf.for %i = %c0 to %count step %c1 iter_args(%a = %x) -> {x} {{
    %part = tensor.extract_slice %w[%i, 0, 0] [1, {width}, {width}] [1, 1, 1] : {stack} to {w}
    %p = linalg.matmul indexing_maps = [{maps}] ins(%a, %part : {x}, {w}) outs(%zeros : tensor<5x{width}xf32>)
      -> tensor<5x{width}xf32>
    %1 = tensor.empty() : {x}
    %next = linalg.generic {{{elementwise}}} ins(%p : tensor<5x{width}xf32>) outs(%1 : {x}) {{
    ^bb0(%in: f32, %out: {element}):
      {round_}
      %y = arith.maximumf {"%t" if round_ else "%in"}, %none : {element}
      linalg.yield %y : {element}
    }} -> {x}
    scf.yield %next : {x}
  }}
  return %r : {x}
}}
"""


def products(count: int, width: int, element: str, maps: str = ROW) -> str:
    """Returns a loop on buffers: products of slices."""

    def slices(rows: int, type_: str) -> tuple[str, str]:
        whole = f"memref<{count}x{rows}x{width}x{type_}>"
        part = f"memref<{rows}x{width}x{type_}, strided<[{width}, 1], offset: ?>>"
        return f"memref.subview {{}}[%i, 0, 0] [1, {rows}, {width}] [1, 1, 1] : {whole} to {part}", part

    (x, a), (w, b), (y, c) = slices(5, element), slices(width, element), slices(5, "f32")
    return f"""func.func @products(%x: memref<{count}x5x{width}x{element}>,
    %w: memref<{count}x{width}x{width}x{element}>, %y: memref<{count}x5x{width}xf32>) {{
{LOOP.format(count=count)}
  scf.for %i = %c0 to %count step %c1 {{
    %a = {x.format("%x")}
    %b = {w.format("%w")}
    %c = {y.format("%y")}
    linalg.fill ins(%zero : f32) outs(%c : {c})
    linalg.matmul indexing_maps = [{maps}] ins(%a, %b : {a}, {b}) outs(%c : {c})
  }}
  return
}}
"""


def built(text: str, **settings: str) -> FunctionBundle:
    with mlir_context():
        made = build_any(text, "layers.mlir", Request("auto", {"target": "sm_90a", **settings}, tuned=True))
    assert isinstance(made, FunctionBuild)
    return made.bundle


@pytest.mark.parametrize(
    "text, copied",
    [
        (layers(3, 24, "f16"), 0),
        (layers(2, 16, "bf16", COLUMN), 0),
        # 900 bytes a layer: a kernel copies the weights of all but the first.
        (layers(3, 15, "f32", COLUMN), 2),
        (products(3, 24, "bf16"), 0),
        (products(3, 15, "f16", COLUMN), 4),
    ],
    ids=["f16", "bf16 column", "odd f32 column", "buffers", "odd buffers column"],
)
def test_weights_of_layers(text: str, copied: int) -> None:
    bundle = built(text)
    buffers = bundle.manifest.buffers
    assert len({launch.folder for launch in bundle.manifest.launches if launch.kernel is None}) <= 1
    others = [launch for launch in bundle.manifest.launches if launch.kernel is not None and not launch.grouped]
    read = [(item, buffers[number]) for item in others for number in item.operands.values()]
    copies = [(launch.folder, buffer.offset) for launch, buffer in read if buffer.kind == "part"]
    assert len(copies) == copied and len({folder for folder, _ in copies}) == (copied > 0)
    for folder, offset in copies:
        for width, bits in re.findall(r"ld\.global(?:\.nc)?(?:\.v(\d))?\.\w(\d+)", bundle.kernels[folder].ptx):
            assert offset % (int(width or 1) * int(bits) // 8) == 0
    function = EmulatedFunction(bundle)
    assert [report.describe() for report in check_function(bundle, function, 0) if not report.passed] == []
    assert function.findings == []


@pytest.mark.parametrize(
    "edit, message",
    [
        (
            lambda part: part.update(offset=8),
            r"offset' must be a multiple of 16, with 1152 bytes inside of 2304",
        ),
        (lambda part: part.update(offset=1168), r"with 1152 bytes inside of 2304, got 1168"),
        (lambda part: part.update(number=7), r"number' must be of an argument or a constant of f16, got 7"),
        (lambda part: part.update(element_type="bf16"), r"of an argument or a constant of bf16, got 1"),
    ],
)
def test_damaged_parts(tmp_path_factory: pytest.TempPathFactory, edit: Callable[..., object], message: str) -> None:
    folder = Path(tmp_path_factory.getbasetemp() / "parts.bundle")
    if not folder.exists():
        with mlir_context():
            request = Request("auto", {"target": "sm_90a"}, tuned=True)
            made = build_any(layers(2, 24, "f16"), "layers.mlir", request)
        made.write(str(folder))
    original = (folder / "manifest.json").read_text()
    data = json.loads(original)
    assert data["schema_version"] == 8
    edit(next(item for item in data["buffers"] if item["kind"] == "part" and item["offset"]))
    try:
        (folder / "manifest.json").write_text(json.dumps(data))
        with pytest.raises(StepladderError, match=message):
            read_any(folder)
        (folder / "manifest.json").write_text(json.dumps({**json.loads(original), "schema_version": 3}))
        with pytest.raises(StepladderError, match="requires schema_version 8"):
            read_any(folder)
    finally:
        (folder / "manifest.json").write_text(original)


def test_layers_with_and_without_a_stack_are_the_same_kernels() -> None:
    """Weights that are parts may be loaded before the kernel before ends, as arguments are."""
    alone, stacked = (built(chain(4, 8192, [1, 2, 3], stacked=item)) for item in (False, True))
    assert [item.folder for item in stacked.manifest.launches] == [item.folder for item in alone.manifest.launches]
    for folder, kernel in alone.kernels.items():
        assert stacked.kernels[folder].ptx == kernel.ptx
    parts = [stacked.manifest.buffers[launch.operands["b"]] for launch in stacked.manifest.launches]
    assert [(part.kind, part.number, part.offset >> 27) for part in parts] == [("part", 1, place) for place in range(3)]
