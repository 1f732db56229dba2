"""Functions of matmuls of few rows with large weights, and their bundles: kernels that load weights early."""

from collections.abc import Mapping, Sequence

from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions.build import build_function
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import FunctionBundle

# Knobs of small kernels that load weights before they wait.
EARLY = {
    "swap_operands": "true",
    "block_m": 64,
    "block_n": 8,
    "block_k": 64,
    "consumer_warpgroups": 1,
    "stages": 2,
    "cluster_m": 1,
    "cluster_n": 1,
    "split_k": 1,
    "epilogue": "registers",
    "early_weights": "true",
}


def chain(
    rows: int, width: int, weights: Sequence[int | str], *, results: Sequence[int] = (), stacked: bool = False
) -> str:
    """Returns a function of matmuls one after the other, each of the product before it, in bf16.

    Args:
        rows: of the input, argument 0.
        width: of the input, the weights and the products.
        weights: of each matmul, the number of the argument, or `twice` for argument 1 added to itself by a kernel in
            front.
        results: matmuls whose products are returned beside that of the last.
        stacked: whether the weights of all numbers are slices of argument 1.
    """
    x, w, sums = (
        f"tensor<{shape}>" for shape in (f"{rows}x{width}xbf16", f"{width}x{width}xbf16", f"{rows}x{width}xf32")
    )
    count = max([1, *(item for item in weights if isinstance(item, int))])
    stack = f"tensor<{count}x{width}x{width}xbf16>"
    given = f"%stack: {stack}" if stacked else ", ".join(f"%a{number}: {w}" for number in range(1, count + 1))
    returned = [f"%y{number}" for number in (*results, len(weights) - 1)]
    map_ = "affine_map<(i, j) -> (i, j)>"
    elementwise = f'indexing_maps = [{map_}, {map_}], iterator_types = ["parallel", "parallel"]'
    lines = [
        f"func.func @chain(%a0: {x}, {given}) -> ({', '.join([x] * len(returned))}) {{",
        "  %zero = arith.constant 0.0 : f32",
        f"  %s = tensor.empty() : {sums}",
        f"  %z = linalg.fill ins(%zero : f32) outs(%s : {sums}) -> {sums}",
        f"  %e = tensor.empty() : {x}",
    ]
    if stacked:
        steps = f"[1, {width}, {width}] [1, 1, 1] : {stack} to {w}"
        lines += [f"  %a{number + 1} = tensor.extract_slice %stack[{number}, 0, 0] {steps}" for number in range(count)]
    if "twice" in weights:
        lines += [
            f"  %f = tensor.empty() : {w}",
            f"  %twice = linalg.add ins(%a1, %a1 : {w}, {w}) outs(%f : {w}) -> {w}",
        ]
    before = "%a0"
    for number, item in enumerate(weights):
        weight = f"%a{item}" if isinstance(item, int) else f"%{item}"
        lines += [
            f"  %p{number} = linalg.matmul ins({before}, {weight} : {x}, {w}) outs(%z : {sums}) -> {sums}",
            f"  %y{number} = linalg.generic {{{elementwise}}} ins(%p{number} : {sums}) outs(%e : {x}) {{",
            "  ^bb0(%in: f32, %out: bf16):",
            "    %t = arith.truncf %in : f32 to bf16",
            "    linalg.yield %t : bf16",
            f"  }} -> {x}",
        ]
        before = f"%y{number}"
    return "\n".join([*lines, f"  return {', '.join(returned)} : {', '.join([x] * len(returned))}", "}"])


def projections(rows: int, width: int, columns: Sequence[int]) -> str:
    """Returns a function of matmuls of one input, argument 0, in bf16, with f32 results.

    Args:
        rows, width: of the input.
        columns: of each of the weights.
    """
    x, weights = f"tensor<{rows}x{width}xbf16>", [f"tensor<{width}x{n}xbf16>" for n in columns]
    sums = [f"tensor<{rows}x{n}xf32>" for n in columns]
    given = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate((x, *weights)))
    lines = [f"func.func @projections({given}) -> ({', '.join(sums)}) {{", "  %zero = arith.constant 0.0 : f32"]
    for number, (weight, type_) in enumerate(zip(weights, sums)):
        lines += [
            f"  %e{number} = tensor.empty() : {type_}",
            f"  %z{number} = linalg.fill ins(%zero : f32) outs(%e{number} : {type_}) -> {type_}",
            f"  %y{number} = linalg.matmul ins(%a0, %a{number + 1} : {x}, {weight}) outs(%z{number} : {type_})"
            f" -> {type_}",
        ]
    returned = ", ".join(f"%y{number}" for number in range(len(columns)))
    return "\n".join([*lines, f"  return {returned} : {', '.join(sums)}", "}"])


def gated(rows: int, width: int, inner: int) -> str:
    """Returns a function of two matmuls of one input, whose product of products is multiplied by a third matrix.

    Args:
        rows, width: of the input, argument 0.
        inner: columns of the first two weights.
    """
    x, h = f"tensor<{rows}x{width}xbf16>", f"tensor<{rows}x{inner}xbf16>"
    sums, last = f"tensor<{rows}x{inner}xf32>", f"tensor<{rows}x{width}xf32>"
    up, down = f"tensor<{width}x{inner}xbf16>", f"tensor<{inner}x{width}xbf16>"
    map_ = "affine_map<(i, j) -> (i, j)>"
    elementwise = f'indexing_maps = [{map_}, {map_}, {map_}], iterator_types = ["parallel", "parallel"]'
    return f"""func.func @gated(%x: {x}, %gate: {up}, %up: {up}, %down: {down}) -> {last} {{
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : {sums}
  %z = linalg.fill ins(%zero : f32) outs(%s : {sums}) -> {sums}
  %g = linalg.matmul ins(%x, %gate : {x}, {up}) outs(%z : {sums}) -> {sums}
  %u = linalg.matmul ins(%x, %up : {x}, {up}) outs(%z : {sums}) -> {sums}
  %e = tensor.empty() : {h}
  %h = linalg.generic {{{elementwise}}} ins(%g, %u : {sums}, {sums}) outs(%e : {h}) {{
  ^bb0(%a: f32, %b: f32, %out: bf16):
    %p = arith.mulf %a, %b : f32
    %t = arith.truncf %p : f32 to bf16
    linalg.yield %t : bf16
  }} -> {h}
  %f = tensor.empty() : {last}
  %l = linalg.fill ins(%zero : f32) outs(%f : {last}) -> {last}
  %y = linalg.matmul ins(%h, %down : {h}, {down}) outs(%l : {last}) -> {last}
  return %y : {last}
}}"""


def bundle_of(
    text: str, settings: Mapping[str, int | str] | None = None, *, constant_weights: bool = False
) -> FunctionBundle:
    """Returns the bundle of a function for sm_90a.

    Args:
        text: the payload.
        settings: knobs of its matmuls; the others are chosen.
        constant_weights: as of a request.
    """
    knobs = {"target": "sm_90a", **(settings or {})}
    with mlir_context():
        request = Request("auto", knobs, tuned=True, constant_weights=constant_weights)
        return build_function(text, "chain.mlir", request).bundle
