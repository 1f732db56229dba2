"""Payloads of a matmul with several results."""

from __future__ import annotations


def results_payload(m: int, n: int, k: int, types: list[str], *, batch: int | None = None, same: bool = False) -> str:
    """Returns a payload that returns several results of one product.

    Args:
        m, n, k: extents.
        types: of the results: the biased sums, and activations of them.
        batch: of a batch.
        same: whether the sums are returned in the place of each activation.
    """
    functions = ("", "arith.maximumf %x, %zero", "math.tanh %x", "math.absf %x", "math.exp2 %x")
    outer = [] if batch is None else [batch]

    def tensor(*shape: int | str) -> str:
        return f"tensor<{'x'.join(map(str, [*outer, *shape]))}>"

    loops = "b, i, j" if outer else "i, j"
    wide = tensor(m, n, "f32")
    parallel = ", ".join(['"parallel"'] * (len(outer) + 2))
    name = "batch_matmul" if outer else "matmul"
    lines = []

    def elementwise(result: str, value: str, stored: str, body: list[str], more: tuple[str, str, str] | None) -> None:
        maps = ["#id", *([more[2]] if more else []), "#id"]
        operands = f"{value}, {more[0]} : {wide}, {more[1]}" if more else f"{value} : {wide}"
        arguments = ["%x: f32", *(["%d: f32"] if more else []), f"%o: {stored}"]
        rounds = [] if stored == "f32" else [f"%t = arith.truncf %v : f32 to {stored}"]
        lines.extend(
            [
                f"%e{result} = tensor.empty() : {tensor(m, n, stored)}",
                f"%{result} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{parallel}]}}",
                f"    ins({operands}) outs(%e{result} : {tensor(m, n, stored)}) {{",
                f"^bb0({', '.join(arguments)}):",
                *body,
                *rounds,
                f"linalg.yield {'%t' if rounds else '%v'} : {stored}",
                f"}} -> {tensor(m, n, stored)}",
            ]
        )

    elementwise("sums", "%p", "f32", ["%v = arith.addf %x, %d : f32"], ("%bias", f"tensor<{n}xf32>", "#row"))
    returned = []
    for number, stored in enumerate(types):
        if (number == 0 and stored == "f32") or same:
            returned.append("%sums")
            continue
        function = functions[number] or "arith.addf %x, %zero"
        elementwise(f"r{number}", "%sums", stored, [f"%v = {function} : f32"], None)
        returned.append(f"%r{number}")
    results = ", ".join(tensor(m, n, stored) for stored in types)
    inside = "\n  ".join(lines)
    return f"""#id = affine_map<({loops}) -> ({loops})>
#row = affine_map<({loops}) -> (j)>
func.func @matmul(%A: {tensor(m, k, "f16")}, %B: {tensor(k, n, "f16")}, %bias: tensor<{n}xf32>) -> ({results}) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {wide}
  %z = linalg.fill ins(%zero : f32) outs(%e : {wide}) -> {wide}
  %p = linalg.{name} ins(%A, %B : {tensor(m, k, "f16")}, {tensor(k, n, "f16")}) outs(%z : {wide}) -> {wide}
  {inside}
  return {", ".join(returned)} : {results}
}}
"""
