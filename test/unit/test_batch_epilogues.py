"""Elementwise ops on the products of a batch: operands of each matmul and of all, on all pipelines, right at the last
level."""

import pytest

from combinations import sample
from refused import refusal
from test_epilogues import DIRECT, PIPELINES, SPLIT, TILES, check

# Operands beside the product: their axes, of (b, i, j), and element types.
KINDS = {
    "scale": [],
    "bias": [("j", "f32")],
    "bias of each matmul": [("bj", "f16")],
    "column of each matmul": [("bi", "f32")],
    "matrix for all": [("ij", "f16")],
    "residual": [("bij", "f16")],
    "factor of each matmul": [("b", "f32")],
    "one number": [("0", "f32")],
    "transposed": [("bji", "f32")],
    "batch innermost": [("ijb", "f32")],
    "several": [("bj", "f32"), ("bij", "f16"), ("i", "f32")],
}


def payload(kind: str, sizes: tuple[int, ...], *, b: str = "bkn", stored: str = "f32", place: str = "new") -> str:
    """Returns max(AB / 2 + operands, 0), rounded; `b` has B's axes, and `place` says what the sums start from."""
    extent = {**dict(zip("bijk", sizes)), "m": sizes[1], "n": sizes[2], "0": 1}
    operands = KINDS[kind]

    def type_(axes: str, element: str) -> str:
        return "tensor<" + "".join(f"{extent[axis]}x" for axis in axes) + element + ">"

    def map_(loops: str, axes: str) -> str:
        return f"affine_map<({', '.join(loops)}) -> ({', '.join(axes)})>"

    sums, result = type_("bij", "f32"), type_("bij", stored)
    arguments = [("%A", type_("bmk", "f16")), ("%B", type_(b, "f16"))]
    arguments += [(f"%d{number}", type_(*operand)) for number, operand in enumerate(operands)]
    read, body, value = [("%p", sums), *arguments[2:]], ["%v = arith.mulf %x, %half : f32"], "%v"
    for number, (_, element) in enumerate(operands):
        wide = f"%y{number}"
        if element != "f32":
            body.append(f"%e{number} = arith.extf %y{number} : {element} to f32")
            wide = f"%e{number}"
        body.append(f"%s{number} = arith.addf {value}, {wide} : f32")
        value = f"%s{number}"
    body.append(f"%m = arith.maximumf {value}, %zero : f32")
    if stored != "f32":
        body.append(f"%r = arith.truncf %m : f32 to {stored}")
    yields = "%m" if stored == "f32" else "%r"
    block = ["%x: f32", *(f"%y{number}: {element}" for number, (_, element) in enumerate(operands)), f"%o: {stored}"]
    product = ", ".join(map_("bmnk", axes) for axes in ("bmk", b, "bmn"))
    maps = ", ".join(map_("bij", axes) for axes in ("bij", *(axes for axes, _ in operands), "bij"))
    start = "%z"
    if place == "C":
        arguments.append(("%C", sums))
        start = "%C"
    lines = "\n".join(f"    {line}" for line in body)
    return f"""func.func @f({", ".join(f"{name}: {kind}" for name, kind in arguments)}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %e = tensor.empty() : {sums}
  {"" if place == "C" else f"%z = linalg.fill ins(%zero : f32) outs(%e : {sums}) -> {sums}"}
  %p = linalg.contract indexing_maps = [{product}] ins(%A, %B : {arguments[0][1]}, {arguments[1][1]})
      outs({start} : {sums}) -> {sums}
  %h = tensor.empty() : {result}
  %c = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins({", ".join(name for name, _ in read)} : {", ".join(kind for _, kind in read)}) outs(%h : {result}) {{
  ^bb0({", ".join(block)}):
{lines}
    linalg.yield {yields} : {stored}
  }} -> {result}
  return %c : {result}
}}
"""


@pytest.mark.parametrize("kind, where", sample([(kind, where) for kind in KINDS for where in PIPELINES], 3))
def test_right_on_every_pipeline(kind: str, where: str) -> None:
    pipeline, knobs = PIPELINES[where]
    sizes = (2, 72, 40, 32) if pipeline == "wgmma" else (2, 32, 64, 32)
    check(payload(kind, sizes, stored="f16" if len(kind) % 2 else "f32"), pipeline, knobs, levels="last")


@pytest.mark.parametrize(
    "pipeline, knobs, sizes, form",
    [
        ("wgmma", DIRECT, (3, 65, 37, 32), {"b": "bnk"}),
        ("wgmma", SPLIT, (2, 64, 40, 64), {"stored": "bf16"}),
        ("wgmma", {**TILES, "schedule": "pingpong"}, (2, 64, 32, 32), {"b": "nk"}),
        ("wgmma", TILES, (2, 64, 32, 32), {"place": "C"}),
        ("wgmma_multistage", {key: TILES[key] for key in list(TILES)[:4]}, (2, 72, 40, 32), {}),
        ("mma_sync", PIPELINES["mma_sync"][1], (2, 32, 32, 32), {"b": "nk", "place": "C", "stored": "f16"}),
        ("wmma", PIPELINES["wmma"][1], (2, 32, 32, 32), {"b": "kn", "place": "C", "stored": "f16"}),
    ],
)
def test_right_in_other_forms(
    pipeline: str, knobs: dict[str, int | str], sizes: tuple[int, int, int, int], form: dict[str, str]
) -> None:
    check(payload("several", sizes, **form), pipeline, knobs, levels="last")


def test_a_product_that_is_read_transposed() -> None:
    """The front exchanges A and B, so that the elementwise op reads the product as it is."""
    as_it_is = "[affine_map<(b, i, j) -> (b, i, j)>"
    text = payload("batch innermost", (2, 64, 64, 32)).replace(as_it_is, as_it_is.replace("(b, i, j)>", "(b, j, i)>"))
    check(text, "wgmma", DIRECT, levels="last")


def test_four_loops_are_refused() -> None:
    text = (
        payload("scale", (2, 32, 32, 32))
        .replace("2x32x32xf32> {", "2x32x32x4xf32> {")
        .replace(
            "return %c : tensor<2x32x32xf32>",
            """%g = tensor.empty() : tensor<2x32x32x4xf32>
  %q = linalg.broadcast ins(%c : tensor<2x32x32xf32>) outs(%g : tensor<2x32x32x4xf32>) dimensions = [3]
  return %q : tensor<2x32x32x4xf32>""",
        )
    )
    refusal(text, "a dimension of 4 that only C has")
