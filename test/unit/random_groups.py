"""Functions with independent matmuls: experts of unlike sizes, in layers, with elementwise ops behind some."""

from __future__ import annotations

import random

TYPES = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32"}


def layers(drawn: random.Random, type_: str, unit: int = 8) -> str:
    """Returns a function of two to five chains of one or two matmuls each; chains may share their weights or inputs.

    Args:
        drawn: draws sizes, layouts, epilogues and what is shared.
        type_: of A and B.
        unit: n and k are multiples of it.
    """
    total = TYPES[type_]
    zero = "0" if total == "i32" else "0.0"
    n, k = (unit * drawn.randint(2, 7) for _ in range(2))
    by_columns = drawn.random() < 0.3
    unlike = drawn.random() < 0.3
    arguments: dict[str, str] = {}
    lines = [f"%zero = arith.constant {zero} : {total}"]
    results: list[tuple[str, str]] = []

    def argument(name: str, shape: str) -> tuple[str, str]:
        known = [(other, type_) for other, type_ in arguments.items() if type_ == shape and other[0] == name[0]]
        if known and drawn.random() < 0.3:
            return drawn.choice(known)
        arguments[name] = shape
        return name, shape

    def product(a: tuple[str, str], m: int, n: int, k: int, name: str) -> tuple[str, str]:
        b_shape = f"tensor<{n}x{k}x{type_}>" if by_columns else f"tensor<{k}x{n}x{type_}>"
        b = argument(f"w{name}", b_shape)
        sums = f"tensor<{m}x{n}x{total}>"
        maps = ""
        if by_columns:
            maps = "indexing_maps = [affine_map<(i, j, l) -> (i, l)>, affine_map<(i, j, l) -> (j, l)>, "
            maps += "affine_map<(i, j, l) -> (i, j)>] "
        lines.extend(
            [
                f"%e{name} = tensor.empty() : {sums}",
                f"%z{name} = linalg.fill ins(%zero : {total}) outs(%e{name} : {sums}) -> {sums}",
                f"%p{name} = linalg.matmul {maps}ins(%{a[0]}, %{b[0]} : {a[1]}, {b[1]}) outs(%z{name} : {sums})",
                f"  -> {sums}",
            ]
        )
        last = f"p{name}"
        if drawn.random() < 0.4:
            lines.append(
                f"%r{name} = linalg.max ins(%{last}, %z{name} : {sums}, {sums}) outs(%e{name} : {sums}) -> {sums}"
            )
            last = f"r{name}"
        return last, sums

    for chain in range(drawn.randint(2, 5)):
        m = drawn.choice((1, 8, 16, drawn.randint(2, 50)))
        width = unit * drawn.randint(2, 7) if unlike else n
        sums = product(argument(f"x{chain}", f"tensor<{m}x{k}x{type_}>"), m, width, k, f"{chain}a")
        if drawn.random() < 0.5 and type_ in ("f16", "bf16"):
            narrow = f"tensor<{m}x{width}x{type_}>"
            lines.append(f"%h{chain} = arith.truncf %{sums[0]} : {sums[1]} to {narrow}")
            sums = product((f"h{chain}", narrow), m, k, width, f"{chain}b")
        results.append(sums)
    inputs = ", ".join(f"%{name}: {type_}" for name, type_ in arguments.items())
    types = ", ".join(type_ for _, type_ in results)
    values = ", ".join(f"%{name}" for name, _ in results)
    body = "\n  ".join(lines)
    return f"func.func @layers({inputs}) -> ({types}) {{\n  {body}\n  return {values} : {types}\n}}\n"
