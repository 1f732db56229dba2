"""The text of a contraction."""

from collections.abc import Mapping


def contraction(axes: str, sizes: Mapping[str, int], element: str = "f16") -> str:
    """Returns a function of A and B with f32 results.

    Args:
        axes: of A, B and C, as `einsum` writes them, such as "bmk,bkn->bmn".
        sizes: of the axes.
        element: type of A's and B's elements.
    """
    a, b, c = axes.replace("->", ",").split(",")
    loops = ", ".join(dict.fromkeys(c + a + b))
    maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(operand)})>" for operand in (a, b, c))
    types = [
        f"tensor<{'x'.join(str(sizes[axis]) for axis in operand)}x{own}>"
        for operand, own in ((a, element), (b, element), (c, "f32"))
    ]
    return f"""func.func @f(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {types[2]}
  %z = linalg.fill ins(%zero : f32) outs(%e : {types[2]}) -> {types[2]}
  %r = linalg.contract indexing_maps = [{maps}] ins(%a, %b : {types[0]}, {types[1]})
      outs(%z : {types[2]}) -> {types[2]}
  return %r : {types[2]}
}}
"""
