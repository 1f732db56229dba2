"""Payloads with weights of 8 and 4 bits: by column or by group, with zero points, in either layout."""

from __future__ import annotations

# Element type as stored, whether scales are for groups of k, and whether zero points are subtracted.
KINDS = {
    "i8 by column": ("i8", False, False),
    "i8 by group": ("i8", True, False),
    "i4 by group": ("i4", True, False),
    "i4 with zero points": ("i4", True, True),
    "fp8 by column": ("f8E4M3FN", False, False),
    "fp8 by group": ("f8E5M2", True, False),
}


def _dequantized(stored: str, *, has_zeros: bool, type_: str) -> list[str]:
    if stored.startswith("f8"):
        lines = [f"%f = arith.extf %in : {stored} to {type_}"]
    elif has_zeros:
        lines = [f"%x = arith.extui %in : {stored} to i32", f"%f0 = arith.uitofp %x : i32 to {type_}"]
        lines.append(f"%f = arith.subf %f0, %zero_point : {type_}")
    else:
        lines = [f"%x = arith.extsi %in : {stored} to i32", f"%f = arith.sitofp %x : i32 to {type_}"]
    return [*lines, f"%r = arith.mulf %f, %scale : {type_}", f"linalg.yield %r : {type_}"]


def weights(kind: str, m: int, n: int, k: int, *, layout: str = "nk", group: int = 32, type_: str = "f16") -> str:
    """Returns C = AB in f32 with a B that is made of weights.

    Args:
        kind: of the weights, one of `KINDS`.
        m, n, k: extents.
        layout: of B: `nk` is column-major.
        group: steps of k that have a scale, where scales are by group.
        type_: of A and of what the weights become.
    """
    stored, by_group, has_zeros = KINDS[kind]
    groups, size = (k // group, group) if by_group else (1, k)
    is_along_k = layout == "nk"
    shape, scales = (
        (f"{n}x{groups}x{size}", f"{n}x{groups}") if is_along_k else (f"{groups}x{size}x{n}", f"{groups}x{n}")
    )
    loops, read = "(a, b, c) -> (a, b, c)", "(a, b, c) -> (a, b)" if is_along_k else "(a, b, c) -> (a, c)"
    extra = [("%s", "%scale"), *([("%z", "%zero_point")] if has_zeros else [])]
    arguments = "".join(f", {name}: tensor<{scales}x{type_}>" for name, _ in extra)
    maps = ", ".join(f"affine_map<{map_}>" for map_ in (loops, *[read] * len(extra), loops))
    types = ", ".join([f"tensor<{shape}x{stored}>", *[f"tensor<{scales}x{type_}>"] * len(extra)])
    block = "".join(f", {name}: {type_}" for _, name in extra)
    body = "\n    ".join(_dequantized(stored, has_zeros=has_zeros, type_=type_))
    matrix = f"{n}x{k}" if is_along_k else f"{k}x{n}"
    collapsed = "[[0], [1, 2]]" if is_along_k else "[[0, 1], [2]]"
    of_b = "(m, n, k) -> (n, k)" if is_along_k else "(m, n, k) -> (k, n)"
    return f"""func.func @f(%A: tensor<{m}x{k}x{type_}>, %q: tensor<{shape}x{stored}>{arguments})
    -> tensor<{m}x{n}xf32> {{
  %zero = arith.constant 0.0 : f32
  %b_e = tensor.empty() : tensor<{shape}x{type_}>
  %made = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins({", ".join(["%q", *(name for name, _ in extra)])} : {types}) outs(%b_e : tensor<{shape}x{type_}>) {{
  ^bb0(%in: {stored}{block}, %out: {type_}):
    {body}
  }} -> tensor<{shape}x{type_}>
  %b = tensor.collapse_shape %made {collapsed} : tensor<{shape}x{type_}> into tensor<{matrix}x{type_}>
  %e = tensor.empty() : tensor<{m}x{n}xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<{of_b}>,
      affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %b : tensor<{m}x{k}x{type_}>, tensor<{matrix}x{type_}>) outs(%start : tensor<{m}x{n}xf32>)
      -> tensor<{m}x{n}xf32>
  return %p : tensor<{m}x{n}xf32>
}}
"""
