"""Payloads: what matmul a module holds, and writing new ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload import rule as payload_rule
from stepladder.payload.facts import type_bits
from stepladder.runtime.errors import StepladderError


@dataclass(frozen=True)
class Problem:
    """The matmul in a payload: C[m, n] (+)= A[m, k] B[k, n], C row-major, A and B of the layouts `row` or `column`.

    A column-major operand is a row-major buffer of its transpose, A of k x m, B of n x k. `accumulate` is true for
    C = AB + C and false for C = AB. Sums are of `acc_type`, and rounded to `c_type` where that is another. Types are
    MLIR's names for them. `roles` tells what the function's arguments are, as number -> "a", "b" or "c"; a product
    that is returned becomes a new last argument.
    `form` tells how the payload is written: `normal` for buffers at the boundary and tensors inside, `buffers`,
    `tensors` (`payload_rule.Form`).
    """

    m: int
    n: int
    k: int
    a_type: str
    b_type: str
    c_type: str
    acc_type: str
    accumulate: bool
    roles: dict[int, str] = field(default_factory=dict)
    form: str = "normal"
    location: str = ""
    a_layout: str = "row"
    b_layout: str = "row"

    def facts(self) -> dict[str, int | str | list]:
        """Returns what expressions of a pipeline may use: sizes, types by name and in bits, layouts, the form."""
        types = {"a": self.a_type, "b": self.b_type, "c": self.c_type, "acc": self.acc_type}
        known: dict[str, int | str | list] = {
            "form": self.form,
            "m": self.m,
            "n": self.n,
            "k": self.k,
            "a_layout": self.a_layout,
            "b_layout": self.b_layout,
        }
        for role, type_ in types.items():
            known[f"{role}_type"] = type_
            known[f"{role}_bits"] = type_bits(type_)
        return known


FACTS = (
    "form",
    "m",
    "n",
    "k",
    "a_type",
    "b_type",
    "c_type",
    "acc_type",
    "a_bits",
    "b_bits",
    "c_bits",
    "acc_bits",
    "a_layout",
    "b_layout",
)

_MAPS = {"row": "affine_map<(m, n, k) -> ({0}, {1})>", "column": "affine_map<(m, n, k) -> ({1}, {0})>"}


def _linalg_names(module) -> list[str]:
    found = (op.name for op in walk(module) if op.name.startswith("linalg."))
    return [name for name in dict.fromkeys(found) if name not in ("linalg.yield", "linalg.fill")]


def _layouts(matmul, location: str) -> tuple[str, str]:
    """Returns the layouts of a matmul's A and B, read from its indexing maps.

    Raises:
        StepladderError: a map that is not that of a row- or column-major A or B, or of a row-major C.
    """
    if "indexing_maps" not in matmul.attributes:
        return "row", "row"
    m, n, k = (ir.AffineExpr.get_dim(i) for i in range(3))
    plain = [ir.AffineMap.get(3, 0, results) for results in ([m, k], [k, n], [m, n])]
    transposed = [ir.AffineMap.get(3, 0, results) for results in ([k, m], [n, k])]
    maps = [attribute.value for attribute in map(ir.AffineMapAttr, matmul.attributes["indexing_maps"])]
    layouts = []
    for name, found, row, column in zip("ABC", maps, plain, [*transposed, None]):
        if found not in (row, column):
            accepted = f"{row} (row-major)" + (f" or {column} (column-major)" if column else "")
            raise StepladderError(
                f"linalg.matmul indexes {name} by the map {found}; it must be {accepted}", location=location
            )
        layouts.append("row" if found == row else "column")
    return layouts[0], layouts[1]


def _check_signed(matmul, location: str) -> None:
    if "cast" in matmul.attributes and "unsigned" in str(matmul.attributes["cast"]):
        raise StepladderError("linalg.matmul takes A and B for unsigned; integers must be signed", location=location)


def find_problem(module) -> Problem:
    """Returns the one matmul of a payload, which holds nothing else (`payload_rule`).

    Raises:
        StepladderError: no matmul, more than one, shapes that are not static or of which one is 0, indexing maps that
            are not those of row- or column-major operands, unsigned integers, or what the rule does not accept.
    """
    matmuls = walk(module, "linalg.matmul")
    if not matmuls:
        others = _linalg_names(module)
        raise StepladderError(
            "no linalg.matmul in the payload",
            notes=[
                f"found {', '.join(others)}" if others else "found no linalg op at all",
                "write one with: stepladder payload matmul --m M --n N --k K",
            ],
        )
    if len(matmuls) > 1:
        places = ", ".join(diagnostics.location_text(op.location) for op in matmuls[:4])
        raise StepladderError(
            f"{len(matmuls)} linalg.matmul ops in the payload, and a pipeline takes one ({places})",
            location=diagnostics.location_text(matmuls[1].location),
        )
    matmul = matmuls[0]
    location = diagnostics.location_text(matmul.location)
    types = [ir.ShapedType(operand.type) for operand in matmul.operands]
    if not all(type_.has_static_shape for type_ in types):
        raise StepladderError("linalg.matmul has dynamic shapes; sizes must be static", location=location)
    a_layout, b_layout = _layouts(matmul, location)
    _check_signed(matmul, location)
    a, b, c = types
    m, n = c.shape
    k = a.shape[1 if a_layout == "row" else 0]
    _check_sizes(m, n, k, location)
    form = payload_rule.check_form(module, matmul)
    return Problem(
        m,
        n,
        k,
        str(a.element_type),
        str(b.element_type),
        form.c_type,
        str(c.element_type),
        form.accumulates,
        form.roles,
        form.name,
        location,
        a_layout,
        b_layout,
    )


def _check_sizes(m: int, n: int, k: int, location: str | None = None) -> None:
    empty = [f"{name} = {size}" for name, size in (("m", m), ("n", n), ("k", k)) if size < 1]
    if empty:
        raise StepladderError(
            f"a matmul of {m} x {n} x {k} has nothing to compute: {', '.join(empty)}, and sizes must be at least 1",
            location=location,
        )


def _check_types(input_type: str, acc_type: str, c_type: str) -> None:
    """Refuses types that no matmul has; see `matmul_text`."""
    if len({type_.startswith("i") for type_ in (input_type, acc_type, c_type)}) > 1:
        raise StepladderError(
            f"products of {input_type}, sums in {acc_type}, C of {c_type}: integers and "
            "floating-point numbers do not go together",
            notes=["for i8: --acc-type i32 --c-type i32"],
        )
    if acc_type != c_type and (acc_type.startswith("i") or type_bits(c_type) >= type_bits(acc_type)):
        raise StepladderError(
            f"sums in {acc_type} are not rounded to C of {c_type}: C's type must be that of the "
            "sums, or a narrower floating-point type"
        )


def matmul_text(
    m: int,
    n: int,
    k: int,
    *,
    a_type: str = "f16",
    b_type: str = "f16",
    acc_type: str = "f32",
    c_type: str = "f32",
    accumulate: bool = True,
    a_layout: str = "row",
    b_layout: str = "row",
) -> str:
    """Returns a payload in the form all pipelines start from.

    A function of row-major buffers A[m, k], B[k, n], C[m, n], and the matmul on tensors between them. A and B of the
    layout `column` are row-major buffers of their transposes, A[k, m] and B[n, k], which the matmul's indexing maps
    say. With `accumulate`, C = AB + C in place, else C = AB. Where `acc_type` is not `c_type`, the product is rounded
    to C's type at the end.

    Raises:
        StepladderError: a size below 1, or types that do not go together: integers summed as floating-point numbers or
            the reverse, C = AB + C of two types, or a sum that C's type does not just round.
    """
    _check_sizes(m, n, k)
    _check_types(a_type, acc_type, c_type)
    if accumulate and acc_type != c_type:
        raise StepladderError(
            f"C = AB + C accumulates in C's own type: --acc-type {acc_type} is not --c-type {c_type}",
            notes=["use --no-accumulate for C = AB, or the same type for both"],
        )
    a = f"{m}x{k}x{a_type}" if a_layout == "row" else f"{k}x{m}x{a_type}"
    b = f"{k}x{n}x{b_type}" if b_layout == "row" else f"{n}x{k}x{b_type}"
    c, acc = f"{m}x{n}x{c_type}", f"{m}x{n}x{acc_type}"
    columns = [name for name, layout in (("A", a_layout), ("B", b_layout)) if layout == "column"]
    lines = [
        f"// C = AB{' + C' if accumulate else ''}, {m} x {n} x {k}, {a_type} x {b_type} -> {c_type}, accumulated in "
        f"{acc_type}{', ' + ' and '.join(columns) + ' column-major' if columns else ''}.",
        f"func.func @matmul(%A: memref<{a}>, %B: memref<{b}>, %C: memref<{c}>) {{",
        f"  %a = bufferization.to_tensor %A restrict : memref<{a}> to tensor<{a}>",
        f"  %b = bufferization.to_tensor %B restrict : memref<{b}> to tensor<{b}>",
    ]
    start = "%c"
    if acc_type == c_type:
        lines.append(f"  %c = bufferization.to_tensor %C restrict writable : memref<{c}> to tensor<{c}>")
    else:
        lines.append(f"  %c = tensor.empty() : tensor<{acc}>")
    if not accumulate:
        zero = "0" if acc_type.startswith("i") else "0.0"
        lines += [
            f"  %zero = arith.constant {zero} : {acc_type}",
            f"  %start = linalg.fill ins(%zero : {acc_type}) outs(%c : tensor<{acc}>) -> tensor<{acc}>",
        ]
        start = "%start"
    operands = f"ins(%a, %b : tensor<{a}>, tensor<{b}>) outs({start} : tensor<{acc}>) -> tensor<{acc}>"
    if columns:
        maps = [_MAPS[a_layout].format("m", "k"), _MAPS[b_layout].format("k", "n"), _MAPS["row"].format("m", "n")]
        lines += ["  %product = linalg.matmul indexing_maps = [", f"        {', '.join(maps)}]", f"      {operands}"]
    else:
        lines.append(f"  %product = linalg.matmul {operands}")
    result = "%product"
    if acc_type != c_type:
        lines += [
            f"  %d = bufferization.to_tensor %C restrict writable : memref<{c}> to tensor<{c}>",
            "  %rounded = linalg.generic {",
            "      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],",
            f'      iterator_types = ["parallel", "parallel"]}} ins(%product : tensor<{acc}>)'
            f" outs(%d : tensor<{c}>) {{",
            f"  ^bb0(%x: {acc_type}, %y: {c_type}):",
            f"    %r = arith.truncf %x : {acc_type} to {c_type}",
            f"    linalg.yield %r : {c_type}",
            f"  }} -> tensor<{c}>",
        ]
        result = "%rounded"
    lines += [
        f"  bufferization.materialize_in_destination {result} in restrict writable %C"
        f" : (tensor<{c}>, memref<{c}>) -> ()",
        "  return",
        "}",
        "",
    ]
    return "\n".join(lines)
