"""Random functions on buffers: matmuls, elementwise ops, copies, transposes and slices, one after the other."""

from __future__ import annotations

import random

SIZE = 8
_MAPS = "indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]"
_ITERATORS = 'iterator_types = ["parallel", "parallel"]'
_F32, _F16 = (f"memref<{SIZE}x{SIZE}x{type_}>" for type_ in ("f32", "f16"))


def program(drawn: random.Random) -> str:
    """Returns a function of four arguments, two of f16 and two of f32, and a few allocations.

    Args:
        drawn: draws three to eight ops, of which two at least are matmuls.
    """
    narrow, wide = ["a", "b"], ["c", "d"]
    lines = ["%zero = arith.constant 0.0 : f32"]
    for number in range(drawn.randint(1, 3)):
        for names, type_ in ((narrow, _F16), (wide, _F32)):
            name = f"t{number}_{type_[-4:-1]}"
            lines.append(f"%{name} = memref.alloc() : {type_}")
            if type_ == _F32:
                lines.append(f"linalg.fill ins(%zero : f32) outs(%{name} : {type_})")
            else:
                lines.append(f"memref.copy %a, %{name} : {type_} to {type_}")
            names.append(name)
    kinds = ["matmul", "matmul", *drawn.choices(["matmul", "round", "add", "copy", "transpose", "slice", "view"], k=5)]
    for number, kind in enumerate(kinds[: drawn.randint(3, 7)]):
        source, target = drawn.choice(wide), drawn.choice(wide)
        match kind:
            case "matmul":
                left, right = drawn.choice(narrow), drawn.choice(narrow)
                lines.append(f"linalg.matmul ins(%{left}, %{right} : {_F16}, {_F16}) outs(%{target} : {_F32})")
            case "round":
                lines += [
                    f"linalg.generic {{{_MAPS}, {_ITERATORS}}} ins(%{source} : {_F32})",
                    f"    outs(%{drawn.choice(narrow[2:])} : {_F16}) {{",
                    "^bb0(%x: f32, %y: f16):",
                    "  %v = arith.truncf %x : f32 to f16",
                    "  linalg.yield %v : f16",
                    "}",
                ]
            case "add":
                lines.append(f"linalg.add ins(%{source}, %{target} : {_F32}, {_F32}) outs(%{target} : {_F32})")
            case "copy":
                lines.append(f"memref.copy %{source}, %{target} : {_F32} to {_F32}")
            case "transpose" if source != target:
                lines.append(f"linalg.transpose ins(%{source} : {_F32}) outs(%{target} : {_F32}) permutation = [1, 0]")
            case "slice" if source != target:
                lines += _slices(drawn, source, target, number)
            case "view" if source != target:
                flat = f"memref<{SIZE * SIZE}xf32>"
                for name in (source, target):
                    lines.append(f"%v{number}{name} = memref.collapse_shape %{name} [[0, 1]] : {_F32} into {flat}")
                lines.append(f"linalg.exp ins(%v{number}{source} : {flat}) outs(%v{number}{target} : {flat})")
    body = "\n  ".join(lines)
    return f"func.func @f(%a: {_F16}, %b: {_F16}, %c: {_F32}, %d: {_F32}) {{\n  {body}\n  return\n}}\n"


def _slices(drawn: random.Random, source: str, target: str, number: int) -> list[str]:
    """Returns a copy of a rectangle of a buffer to another one's."""
    rows, columns = drawn.randint(1, SIZE), drawn.randint(1, SIZE)
    lines = []
    types = []
    for name in (source, target):
        row, column = drawn.randint(0, SIZE - rows), drawn.randint(0, SIZE - columns)
        layout = f"strided<[{SIZE}, 1], offset: {row * SIZE + column}>"
        types.append(f"memref<{rows}x{columns}xf32, {layout}>")
        slice_ = f"[{row}, {column}] [{rows}, {columns}] [1, 1]"
        lines.append(f"%s{number}{name} = memref.subview %{name}{slice_} : {_F32} to {types[-1]}")
    lines.append(f"memref.copy %s{number}{source}, %s{number}{target} : {types[0]} to {types[1]}")
    return lines
