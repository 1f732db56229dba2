"""Text of products whose results are parts of a tensor."""


def product(name: str, rows: int, x: str, w: str = "%w", columns: int = 64) -> str:
    """Returns a product of `rows` rows with a weight of 48 rows, from zeros, which is `%name`."""
    sums = f"tensor<{rows}x{columns}xf32>"
    return f"""  %e{name} = tensor.empty() : {sums}
  %z{name} = linalg.fill ins(%zero : f32) outs(%e{name} : {sums}) -> {sums}
  %{name} = linalg.matmul ins({x}, {w} : tensor<{rows}x48xf16>, tensor<48x{columns}xf16>) outs(%z{name} : {sums})
    -> {sums}
"""
