"""Payloads whose results are a product and reductions of its rows or columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_FOLDS = {
    "f32": {
        "sum": ("arith.addf", "0.0"),
        "max": ("arith.maximumf", "0xFF800000"),
        "min": ("arith.minimumf", "0x7F800000"),
        "largest": ("arith.maxnumf", "-3.0e38"),
        "shifted": ("arith.addf", "5.0"),
    },
    "i32": {
        "sum": ("arith.addi", "0"),
        "max": ("arith.maxsi", "-2147483648"),
        "min": ("arith.minsi", "2147483647"),
        "largest": ("arith.maxsi", "-128"),
        "shifted": ("arith.addi", "5"),
    },
}
for _type, _infinity, _large in (("f16", "0x7C00", "6.0e4"), ("bf16", "0x7F80", "3.0e38")):
    _FOLDS[_type] = {
        **_FOLDS["f32"],
        "max": ("arith.maximumf", _infinity.replace("0x7", "0xF")),
        "min": ("arith.minimumf", _infinity),
        "largest": ("arith.maxnumf", f"-{_large}"),
    }
FOLDS = tuple(_FOLDS["f32"])
_IDENTITY = "affine_map<(i, j) -> (i, j)>"


@dataclass(frozen=True)
class Reduced:
    """A reduction of a payload.

    Attributes:
        fold: one of `FOLDS`.
        axis: the dimension that is folded: 1 for the columns of a row, 0 for the rows of a column.
        squares: whether squares are folded, in a `linalg.generic`; else a `linalg.reduce`.
    """

    fold: str
    axis: int
    squares: bool = False


def reduction_payload(
    m: int,
    n: int,
    k: int,
    reductions: Sequence[Reduced],
    *,
    stored: str = "f32",
    inputs: str = "f16",
    columns: str = "",
    of_stored: bool = False,
) -> str:
    """Returns a payload that returns AB and a bias, stored as `stored`, and reductions of it.

    Args:
        m, n, k: extents.
        reductions: what is returned beside the product.
        stored: element type of the product, as it is returned.
        inputs: element type of A and B; sums are i32 with i8, else f32.
        columns: which of "ab" are column-major.
        of_stored: whether the product as it is stored is reduced, in its type; else the sums.
    """
    sums = "i32" if inputs == "i8" else "f32"
    kind, zero = ("i", "0") if sums == "i32" else ("f", "0.0")
    wide, narrow = f"tensor<{m}x{n}x{sums}>", f"tensor<{m}x{n}x{stored}>"
    a_map, b_map = ("k, i" if "a" in columns else "i, k"), ("j, k" if "b" in columns else "k, j")
    a = f"tensor<{k}x{m}x{inputs}>" if "a" in columns else f"tensor<{m}x{k}x{inputs}>"
    b = f"tensor<{n}x{k}x{inputs}>" if "b" in columns else f"tensor<{k}x{n}x{inputs}>"
    maps = ", ".join(f"affine_map<(i, j, k) -> ({results})>" for results in (a_map, b_map, "i, j"))
    lines = [
        f"%zero = arith.constant {zero} : {sums}",
        f"%e = tensor.empty() : {wide}",
        f"%z = linalg.fill ins(%zero : {sums}) outs(%e : {wide}) -> {wide}",
        f"%p = linalg.matmul indexing_maps = [{maps}] ins(%A, %B : {a}, {b}) outs(%z : {wide}) -> {wide}",
        _generic("%sums", f"%p, %bias : {wide}, tensor<{n}x{sums}>", "%e", wide, ["affine_map<(i, j) -> (j)>"])
        + f"^bb0(%x: {sums}, %d: {sums}, %o: {sums}):\n %v = arith.add{kind} %x, %d : {sums}\n"
        f" linalg.yield %v : {sums} }} -> {wide}",
    ]
    returned, types = ["%sums"], [narrow]
    if stored != sums:
        lines += [
            f"%h = tensor.empty() : {narrow}",
            _generic("%c", f"%sums : {wide}", "%h", narrow, [])
            + f"^bb0(%x: {sums}, %o: {stored}):\n %v = arith.truncf %x : {sums} to {stored}\n"
            f" linalg.yield %v : {stored} }} -> {narrow}",
        ]
        returned = ["%c"]
    element, matrix = (stored, narrow) if of_stored else (sums, wide)
    source = returned[0] if of_stored else "%sums"
    for number, reduced in enumerate(reductions):
        fold, begin = _FOLDS[element][reduced.fold]
        type_ = f"tensor<{n if reduced.axis == 0 else m}x{element}>"
        lines += [
            f"%b{number} = arith.constant {begin} : {element}",
            f"%e{number} = tensor.empty() : {type_}",
            f"%f{number} = linalg.fill ins(%b{number} : {element}) outs(%e{number} : {type_}) -> {type_}",
        ]
        begins = f"outs(%f{number} : {type_})"
        if reduced.squares:
            loops = ["parallel", "parallel"]
            loops[reduced.axis] = "reduction"
            kept = "j" if reduced.axis == 0 else "i"
            iterators = ", ".join(f'"{loop}"' for loop in loops)
            lines.append(
                f"%r{number} = linalg.generic {{indexing_maps = [{_IDENTITY}, affine_map<(i, j) -> ({kept})>], "
                f"iterator_types = [{iterators}]}} ins({source} : {matrix}) {begins} {{\n"
                f"^bb0(%x: {element}, %o: {element}):\n %s = arith.mul{kind} %x, %x : {element}\n"
                f" %v = {fold} %o, %s : {element}\n linalg.yield %v : {element} }} -> {type_}"
            )
        else:
            lines.append(
                f"%r{number} = linalg.reduce ins({source} : {matrix}) {begins} dimensions = [{reduced.axis}]\n"
                f" (%x: {element}, %o: {element}) {{\n %v = {fold} %x, %o : {element}\n linalg.yield %v : {element} }}"
            )
        returned.append(f"%r{number}")
        types.append(type_)
    inside = "\n  ".join(lines)
    return (
        f"func.func @reduced(%A: {a}, %B: {b}, %bias: tensor<{n}x{sums}>) -> ({', '.join(types)}) {{\n  {inside}\n"
        f"  return {', '.join(returned)} : {', '.join(types)}\n}}\n"
    )


def _generic(name: str, inputs: str, output: str, type_: str, others: list[str]) -> str:
    """Returns the begin of an elementwise `linalg.generic` on a matrix and others, up to its body."""
    maps = ", ".join([_IDENTITY, *others, _IDENTITY])
    return (
        f'{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}\n'
        f"    ins({inputs}) outs({output} : {type_}) {{\n"
    )
