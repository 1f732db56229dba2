"""Recognizes the matmul of a payload."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload import front
from stepladder.payload.facts import problem_facts
from stepladder.payload.rule import check_form
from stepladder.payload.selection import select
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem


@dataclass(frozen=True)
class PayloadMatmul:
    """The matmul of a payload: the problem that it computes, and how the payload expresses it.

    Attributes:
        problem: sizes, element types and layouts.
        roles: number of a function argument -> "a", "b", "c", or "ab" for one that is A and B; a product that is
            returned becomes a new last argument.
        form: `normal` for buffers at the function's boundary and tensors inside, `buffers`, or `tensors` (`rule.Form`);
            `recognized` for one that the front brings to the normal form.
        location: of the `linalg.matmul`, as `file:line:column`.
    """

    problem: Problem
    roles: dict[int, str]
    form: str
    location: str

    def facts(self) -> dict[str, int | str | list]:
        """Returns what expressions of a pipeline may use of the payload, by the names in `facts.FACTS`."""
        return {"form": self.form, **problem_facts(self.problem)}


def find_matmul(module: ir.Module) -> PayloadMatmul:
    """Returns the one matmul of a payload, which holds nothing else (`payload.rule`), or what the front makes of it.

    An f32 problem is multiplied on tensor cores in tf32.

    Args:
        module: the payload, before any step; it stays as it is. Of several functions, the only one with a contraction.

    Raises:
        StepladderError: as `find_written`, and as `front.recognize`.
    """
    module = select(module).module
    try:
        return find_written(module)
    except StepladderError as refusal:
        clone = module.operation.clone()
        recognize_matmul(clone)
        try:
            return replace(find_written(clone), form="recognized")
        except StepladderError:
            if front.is_for_front(module.operation):
                raise
            raise refusal from None


def recognize_matmul(module: ir.Operation | ir.OpView) -> None:
    """Brings a payload's function to the form that pipelines start from, where it is not in one that they know.

    Args:
        module: the payload; one with several functions stays as it is.

    Raises:
        StepladderError: a payload that is no single matmul.
    """
    try:
        find_written(module)
    except StepladderError as refusal:
        functions = [function for function in walk(module, "func.func") if len(function.regions[0].blocks)]
        if len(functions) != 1 or functions[0].parent != module.operation:
            return
        try:
            front.recognize(functions[0])
        except StepladderError:
            if front.is_for_front(functions[0]):
                raise
            raise refusal from None


def find_written(module: ir.Module | ir.Operation | ir.OpView) -> PayloadMatmul:
    """Returns the one matmul of a payload that is written as pipelines take it.

    Args:
        module: the payload.

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
    check_sizes(m, n, k, location)
    form = check_form(module, matmul)
    a_type = str(a.element_type)
    problem = Problem(
        m,
        n,
        k,
        a_type,
        str(b.element_type),
        acc_type=str(c.element_type),
        c_type=form.c_type,
        accumulate=form.accumulates,
        a_layout=a_layout,
        b_layout=b_layout,
        compute_type="tf32" if a_type == "f32" else None,
        b_is_a="ab" in form.roles.values(),
    )
    return PayloadMatmul(problem, form.roles, form.name, location)


def check_sizes(m: int, n: int, k: int, location: str | None = None) -> None:
    """Raises StepladderError for a matmul of which one extent is below 1."""
    empty = [f"{name} = {size}" for name, size in (("m", m), ("n", n), ("k", k)) if size < 1]
    if empty:
        raise StepladderError(
            f"a matmul of {m} x {n} x {k} has nothing to compute: {', '.join(empty)}, and sizes must be at least 1",
            location=location,
        )


def _linalg_names(module: ir.Module | ir.Operation | ir.OpView) -> list[str]:
    """Returns the names of the linalg ops in a module that compute, each once."""
    found = (op.name for op in walk(module) if op.name.startswith("linalg."))
    return [name for name in dict.fromkeys(found) if name not in ("linalg.yield", "linalg.fill")]


def _layouts(matmul: ir.Operation, location: str) -> tuple[str, str]:
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


def _check_signed(matmul: ir.Operation, location: str) -> None:
    """Raises StepladderError for a matmul that casts its inputs as unsigned integers."""
    if "cast" in matmul.attributes and "unsigned" in str(matmul.attributes["cast"]):
        raise StepladderError("linalg.matmul takes A and B for unsigned; integers must be signed", location=location)
