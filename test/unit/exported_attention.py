"""Texts of attentions as torch-mlir writes `scaled_dot_product_attention`."""

from __future__ import annotations

_CAUSAL = """
    %t_index = linalg.index 2 : index
    %s_index = linalg.index 3 : index
    %row = arith.index_cast %t_index : index to i64
    %column = arith.index_cast %s_index : index to i64
    %distance = arith.subi %column, %row : i64
    %before = arith.cmpi sle, %distance, %first : i64
    %hidden = arith.select %before, %zero, %low : f32
    %y = arith.addf %x, %hidden : f32"""
_MASKED = """
    %wide = arith.extf %b : {element} to f32
    %y = arith.addf %x, %wide : f32"""
MASKS = {"causal": _CAUSAL, "added": _MASKED, "": "\n    %y = arith.mulf %x, %one : f32"}


def exported(queries: int, keys: int, depth: int = 64, element: str = "f16", mask: str = "") -> str:
    """Returns the attention of two heads.

    Queries and keys are extended to f32 and scaled by the root of the scale, keys are transposed, maxima have places,
    weights are f32, and those of a row without keys are zero.

    Args:
        queries, keys, depth: extents.
        element: type of the tensors.
        mask: one of `MASKS`; an added one is an argument of the function.
    """
    parallel = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]'
    reduced = 'iterator_types = ["parallel", "parallel", "parallel", "reduction"]'
    q, k, t = (f"1x2x{shape}x" for shape in (f"{queries}x{depth}", f"{keys}x{depth}", f"{depth}x{keys}"))
    scores, rows, ones = f"1x2x{queries}x{keys}x", f"1x2x{queries}x", f"1x2x{queries}x1x"
    batch, sums = f"2x{queries}x{keys}xf32", f"2x{queries}x{depth}xf32"

    def extended(name: str, shape: str) -> str:
        return f"""
  %{name}_e = tensor.empty() : tensor<{shape}f32>
  %{name}_w = linalg.generic {{indexing_maps = [#all, #all], {parallel}}}
      ins(%{name} : tensor<{shape}{element}>) outs(%{name}_e : tensor<{shape}f32>) {{
  ^bb0(%x: {element}, %out: f32):
    %w = arith.extf %x : {element} to f32
    linalg.yield %w : f32
  }} -> tensor<{shape}f32>"""

    def scaled(name: str, value: str, shape: str) -> str:
        return f"""
  %{name}_o = tensor.empty() : tensor<{shape}f32>
  %{name} = linalg.generic {{indexing_maps = [#all, #all], {parallel}}}
      ins({value} : tensor<{shape}f32>) outs(%{name}_o : tensor<{shape}f32>) {{
  ^bb0(%x: f32, %out: f32):
    %c = arith.truncf %root : f64 to f32
    %y = arith.mulf %x, %c : f32
    linalg.yield %y : f32
  }} -> tensor<{shape}f32>"""

    return f"""#all = affine_map<(b, h, t, s) -> (b, h, t, s)>
#rows = affine_map<(b, h, t, s) -> (b, h, t)>
#ones = affine_map<(b, h, t, s) -> (b, h, t, 0)>
#mask = affine_map<(b, h, t, s) -> (t, s)>
func.func @f(%q: tensor<{q}{element}>, %k: tensor<{k}{element}>, %v: tensor<{k}{element}>,
    %mask: tensor<{queries}x{keys}x{element}>) -> tensor<{q}{element}> {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %lowest = arith.constant 0xFFF0000000000000 : f64
  %root = arith.constant {depth**-0.25} : f64
  %first = arith.constant 0 : i64
  %true = arith.constant true
  %zeros = arith.constant dense<0.0> : tensor<{scores}f32>{extended("q", q)}{extended("k", k)}{extended("v", k)}
  %t_e = tensor.empty() : tensor<{t}f32>
  %t = linalg.transpose ins(%k_w : tensor<{k}f32>) outs(%t_e : tensor<{t}f32>) permutation = [0, 1, 3, 2]
  {scaled("q_s", "%q_w", q)}{scaled("t_s", "%t", t)}
  %q_c = tensor.collapse_shape %q_s [[0, 1], [2], [3]] : tensor<{q}f32> into tensor<{sums}>
  %t_c = tensor.collapse_shape %t_s [[0, 1], [2], [3]] : tensor<{t}f32> into tensor<2x{depth}x{keys}xf32>
  %p_e = tensor.empty() : tensor<{batch}>
  %p_z = linalg.fill ins(%zero : f32) outs(%p_e : tensor<{batch}>) -> tensor<{batch}>
  %p = linalg.batch_matmul ins(%q_c, %t_c : tensor<{sums}>, tensor<2x{depth}x{keys}xf32>)
    outs(%p_z : tensor<{batch}>) -> tensor<{batch}>
  %scores = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [1, 2, {queries}, {keys}]
    : tensor<{batch}> into tensor<{scores}f32>
  %e = tensor.empty() : tensor<{scores}f32>
  %logits = linalg.generic {{indexing_maps = [#all, #mask, #all], {parallel}}}
      ins(%scores, %mask : tensor<{scores}f32>, tensor<{queries}x{keys}x{element}>) outs(%e : tensor<{scores}f32>) {{
  ^bb0(%x: f32, %b: {element}, %out: f32):{MASKS[mask].format(element=element)}
    linalg.yield %y : f32
  }} -> tensor<{scores}f32>
  %i_e = tensor.empty() : tensor<{rows}i64>
  %i_z = linalg.fill ins(%first : i64) outs(%i_e : tensor<{rows}i64>) -> tensor<{rows}i64>
  %m_e = tensor.empty() : tensor<{rows}f32>
  %m_z = linalg.fill ins(%low : f32) outs(%m_e : tensor<{rows}f32>) -> tensor<{rows}f32>
  %max, %place = linalg.generic {{indexing_maps = [#all, #rows, #rows], {reduced}}}
      ins(%logits : tensor<{scores}f32>) outs(%m_z, %i_z : tensor<{rows}f32>, tensor<{rows}i64>) {{
  ^bb0(%x: f32, %m: f32, %at: i64):
    %i = linalg.index 3 : index
    %n = arith.index_cast %i : index to i64
    %new = arith.maximumf %x, %m : f32
    %is_new = arith.cmpf ogt, %x, %m : f32
    %where = arith.select %is_new, %n, %at : i64
    linalg.yield %new, %where : f32, i64
  }} -> (tensor<{rows}f32>, tensor<{rows}i64>)
  %maxima = tensor.expand_shape %max [[0], [1], [2, 3]] output_shape [1, 2, {queries}, 1]
    : tensor<{rows}f32> into tensor<{ones}f32>
  %powers = linalg.generic {{indexing_maps = [#all, #ones, #all], {parallel}}}
      ins(%logits, %maxima : tensor<{scores}f32>, tensor<{ones}f32>) outs(%e : tensor<{scores}f32>) {{
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  }} -> tensor<{scores}f32>
  %s_e = tensor.empty() : tensor<{ones}f32>
  %s_z = linalg.fill ins(%zero : f32) outs(%s_e : tensor<{ones}f32>) -> tensor<{ones}f32>
  %total = linalg.generic {{indexing_maps = [#all, #ones], {reduced}}}
      ins(%powers : tensor<{scores}f32>) outs(%s_z : tensor<{ones}f32>) {{
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %out : f32
    linalg.yield %y : f32
  }} -> tensor<{ones}f32>
  %h_e = tensor.empty() : tensor<{ones}i1>
  %h_z = linalg.fill ins(%true : i1) outs(%h_e : tensor<{ones}i1>) -> tensor<{ones}i1>
  %hidden = linalg.generic {{indexing_maps = [#all, #ones], {reduced}}}
      ins(%logits : tensor<{scores}f32>) outs(%h_z : tensor<{ones}i1>) {{
  ^bb0(%x: f32, %out: i1):
    %wide = arith.extf %x : f32 to f64
    %is = arith.cmpf oeq, %wide, %lowest : f64
    %y = arith.andi %is, %out : i1
    linalg.yield %y : i1
  }} -> tensor<{ones}i1>
  %weights = linalg.generic {{indexing_maps = [#ones, #all, #all, #ones, #all], {parallel}}}
      ins(%hidden, %zeros, %powers, %total : tensor<{ones}i1>, tensor<{scores}f32>, tensor<{scores}f32>,
          tensor<{ones}f32>) outs(%e : tensor<{scores}f32>) {{
  ^bb0(%is: i1, %z: f32, %x: f32, %s: f32, %out: f32):
    %d = arith.divf %x, %s : f32
    %y = arith.select %is, %z, %d : f32
    linalg.yield %y : f32
  }} -> tensor<{scores}f32>
  %w_c = tensor.collapse_shape %weights [[0, 1], [2], [3]] : tensor<{scores}f32> into tensor<{batch}>
  %v_c = tensor.collapse_shape %v_w [[0, 1], [2], [3]] : tensor<{k}f32> into tensor<2x{keys}x{depth}xf32>
  %o_e = tensor.empty() : tensor<{sums}>
  %o_z = linalg.fill ins(%zero : f32) outs(%o_e : tensor<{sums}>) -> tensor<{sums}>
  %o = linalg.batch_matmul ins(%w_c, %v_c : tensor<{batch}>, tensor<2x{keys}x{depth}xf32>)
    outs(%o_z : tensor<{sums}>) -> tensor<{sums}>
  %wide = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [1, 2, {queries}, {depth}]
    : tensor<{sums}> into tensor<{q}f32>
  %y_e = tensor.empty() : tensor<{q}{element}>
  %y = linalg.generic {{indexing_maps = [#all, #all], {parallel}}}
      ins(%wide : tensor<{q}f32>) outs(%y_e : tensor<{q}{element}>) {{
  ^bb0(%x: f32, %out: {element}):
    %r = arith.truncf %x : f32 to {element}
    linalg.yield %r : {element}
  }} -> tensor<{q}{element}>
  return %y : tensor<{q}{element}>
}}
"""


def shared(queries: int, keys: int, depth: int = 64, element: str = "f16", mask: str = "") -> str:
    """Returns the same attention of two heads that share keys and values, which front ends repeat for each head.

    Args:
        queries, keys, depth, element, mask: as for `exported`.
    """
    text = exported(queries, keys, depth, element, mask)
    one, two = f"tensor<1x{keys}x{depth}x{element}>", f"tensor<1x2x{keys}x{depth}x{element}>"
    for name in "kv":
        copies = f"""{{
  %{name}_n = tensor.empty() : {two}
  %{name} = linalg.broadcast ins(%{name}_1 : {one}) outs(%{name}_n : {two}) dimensions = [1]"""
        text = text.replace(f"%{name}: {two}", f"%{name}_1: {one}", 1).replace("{", copies, 1)
    return text
