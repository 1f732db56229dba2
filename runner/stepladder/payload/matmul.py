"""Recognizes the matmul of a payload."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.printed import keyword
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import FITS_TF32, is_number
from stepladder.payload import computed_sizes, front, pairs
from stepladder.payload.facts import MATMULS, problem_facts
from stepladder.payload.missing_matmul import no_matmul
from stepladder.payload.prepared import with_producers
from stepladder.payload.producers import Producer, separate
from stepladder.payload.refusal import refuse
from stepladder.payload.rewrites import zero_points
from stepladder.payload.rule import check_form, check_unconditional
from stepladder.payload.selection import Selection, select
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem

# Vectors of 16 bytes hold whole numbers of the elements that expressions of pipelines know.
_VECTOR_BITS = 128
ACCEPTED_BATCHES = "accepted: a batch of matmuls whose sizes are above 1, or one matmul"
_MULTIPLIED = "accepted: f16, bf16, f32, f64, f8E4M3FN, f8E5M2 and i8"


@dataclass(frozen=True)
class PayloadMatmul:
    """The matmul of a payload: the problem that it computes, and how the payload expresses it.

    Attributes:
        problem: sizes, element types and layouts.
        roles: number of a function argument -> "a", "b", "c", "ab" for one that is A and B, "d0" and so on for
            operands of the epilogue, "r0" and so on for results beside C; results that are returned become new last
            arguments.
        form: `normal` for buffers at the function's boundary and tensors inside, `buffers`, or `tensors` (`rule.Form`);
            `recognized` for one that the front brings to the normal form.
        location: of the product's op, as `file:line:column`.
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

    Args:
        module: the payload, before any step; it stays as it is. Of several functions, the only one with a contraction.
            Elementwise ops may prepare A and B (`payload.producers`).

    Raises:
        StepladderError: as `computed_sizes.check`, as `find_written`, as `front.recognize`, and as
            `producers.separate`.
    """
    return matmul_of(select(module))


def matmul_of(selection: Selection) -> PayloadMatmul:
    """Returns the one matmul of a function that is selected; otherwise as `find_matmul`.

    Args:
        selection: its module stays as it is.

    Raises:
        StepladderError: as `find_matmul`.
    """
    module = selection.module
    computed_sizes.check(module)
    _check_results(module)
    matmul = _find(module)
    marks = sum(FITS_TF32 in op.attributes for op in walk(module))
    fits_tf32 = matmul.problem.a_type == "f32" and marks == matmul.problem.products
    return replace(matmul, problem=replace(matmul.problem, fits_tf32=fits_tf32))


def _check_results(module: ir.Module) -> None:
    """Refuses scalars that a function returns, ahead of the ops that compute them."""
    for end in walk(module, "func.return"):
        for operand in end.operands:
            if is_number(operand.type):
                raise refuse(
                    end,
                    f"the function returns a value of type {operand.type}: it must return tensors",
                    f"accepted: a result of type tensor<{operand.type}>, as of tensor.from_elements, or a buffer that "
                    "the function writes",
                )


def _find(module: ir.Module) -> PayloadMatmul:
    """Returns the one matmul, or pair of products, of a module with one function."""
    divisions = pairs.divisions(module)
    if not divisions:
        return _find_one(module)
    try:
        return _find_two(module)
    except StepladderError as refusal:
        with contextlib.suppress(StepladderError):
            return _find_one(module)
        raise refusal from None


def _find_one(module: ir.Module) -> PayloadMatmul:
    """Returns the one matmul of a module with one function, whose A and B elementwise ops may make."""
    clone = module.operation.clone()
    producers = separate_producers(clone)
    if not producers:
        return _find_plain(clone)
    return with_producers(_find_plain(clone), producers, clone)


def _find_two(module: ir.Module) -> PayloadMatmul:
    """Returns the pair of products of a module with one function, whose A elementwise ops may make."""
    clone = module.operation.clone()
    producers = separate_producers(clone, 2)
    pair, _ = find_pair(pairs.divisions(clone))
    matmul = PayloadMatmul(pair.problem, pair.roles, "recognized", pair.location)
    return with_producers(matmul, producers, clone) if producers else matmul


def separate_producers(module: ir.Operation | ir.OpView, contractions: int = 1) -> list[Producer]:
    """Separates what prepares A and B from the one function of a payload; nothing where it has no or other functions.

    Zero points of A and B become corrections of the product (`payload.rewrites.zero_points`), which are separated too.

    Args:
        module: the payload; it is changed.
        contractions: how many the function has: 2 for a pair of products.

    Returns:
        What prepares an operand, for each that something prepares.

    Raises:
        StepladderError: as `producers.separate` and `zero_points.expand`.
    """
    functions = [function for function in walk(module, "func.func") if len(function.regions[0].blocks)]
    if len(functions) != 1 or functions[0].parent != module.operation:
        return []
    sums = zero_points.expand(functions[0]) if contractions == 1 else []
    return separate(functions[0], contractions, sums)


def _find_plain(module: ir.Operation | ir.OpView) -> PayloadMatmul:
    """Returns the one matmul of a payload whose A and B nothing prepares."""
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


def find_pair(divisions: list[pairs.Parts]) -> tuple[pairs.Found, pairs.Parts]:
    """Returns the pair of products that a function with two contractions computes, and its parts.

    Args:
        divisions: how the function divides, at least one.

    Raises:
        StepladderError: it is no pair; why the first division is none.
    """

    def find(part: ir.Module) -> pairs.Found:
        matmul = _find_plain(part.operation)
        return pairs.Found(matmul.problem, matmul.roles, matmul.location)

    first: StepladderError | None = None
    for parts in divisions:
        try:
            return pairs.combine(parts, find), parts
        except StepladderError as refusal:
            first = first or refusal
    assert first is not None  # of the first division
    raise first


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
    matmul = _only_matmul(module)
    location = diagnostics.location_text(matmul.location)
    types = [ir.ShapedType(operand.type) for operand in matmul.operands]
    if not all(type_.has_static_shape for type_ in types):
        raise StepladderError(
            f"{matmul.name} has dynamic shapes; sizes must be static",
            location=location,
            notes=[
                "--bind M=4096 gives a dynamic dimension a size: M, N, K, BATCH, or argN.D, dimension D of argument N"
            ],
        )
    a_map, b_map = _maps(matmul, location)
    _check_signed(matmul, location)
    a, b, c = types
    *batch, m, n = c.shape
    k = a.shape[-1 if a_map.layout == "row" else -2]
    check_sizes(m, n, k, location, *batch)
    if batch and b_map.is_broadcast and not a_map.is_broadcast and a_map.layout == "row" and min(m, n, k) == 1:
        # The front makes one matmul of it, whose rows are those of the whole batch.
        raise refuse(matmul, f"m, n or k is 1 in each product of a batch: {m} x {n} x {k}", ACCEPTED_BATCHES)
    form = check_form(module, matmul)
    _check_types(matmul, str(a.element_type), str(c.element_type))
    problem = Problem(
        m,
        n,
        k,
        str(a.element_type),
        str(b.element_type),
        acc_type=str(c.element_type),
        c_type=form.c_type,
        accumulate=form.accumulates,
        a_layout=a_map.layout,
        b_layout=b_map.layout,
        batch=batch[0] if batch else None,
        a_broadcast=a_map.is_broadcast,
        b_broadcast=b_map.is_broadcast,
        b_is_a="ab" in form.roles.values(),
        consumers=form.consumers,
        epilogue_operands=form.operands,
        results=form.results,
        a_window=form.windows.get("a"),
        b_window=form.windows.get("b"),
        c_window=form.windows.get("c"),
    )
    return PayloadMatmul(problem, form.roles, form.name, location)


def _only_matmul(module: ir.Module | ir.Operation | ir.OpView) -> ir.Operation:
    """Returns the one matmul of a payload; refuses payloads with none or several."""
    matmuls = walk(module, *MATMULS)
    if not matmuls:
        raise no_matmul(module)
    if len(matmuls) > 1:
        for matmul in matmuls:
            check_unconditional(matmul)
        places = ", ".join(dict.fromkeys(diagnostics.location_text(op.location) for op in matmuls[:4]))
        names = " and ".join(dict.fromkeys(op.name for op in matmuls))
        raise StepladderError(
            f"{len(matmuls)} {names} ops in the payload; a pipeline accepts one ({places})",
            location=diagnostics.location_text(matmuls[1].location),
        )
    return matmuls[0]


def _check_types(matmul: ir.Operation, a_type: str, acc_type: str) -> None:
    """Refuses element types that no pipeline multiplies or accumulates in."""
    if acc_type == "bf16":
        raise refuse(
            matmul,
            f"{matmul.name} accumulates in bf16, which no pipeline supports",
            "accepted: sums of f32 that are rounded to bf16 once; the front makes them of a matmul in bf16",
        )
    if _VECTOR_BITS % (bits_of_name(a_type) or _VECTOR_BITS):
        raise refuse(matmul, f"A of {a_type}, which no pipeline supports", _MULTIPLIED)


# Elements of 8 bytes whose bytes a signed number of 64 bits counts. The cost model computes with such numbers.
_MOST_ELEMENTS = 2**60


def check_sizes(m: int, n: int, k: int, location: str | None = None, batch: int | None = None) -> None:
    """Checks that each extent of a matmul, or of a batch of them, is at least 1, and that matrices fit in addresses.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        location: of the matmul, for the message; None where it is in no file.
        batch: how many matmuls; None for one that is in no batch.

    Raises:
        StepladderError: an extent below 1; names each of them. A matrix of more elements than 64-bit addresses reach.
    """
    extents = [*(() if batch is None else (("batch", batch),)), ("m", m), ("n", n), ("k", k)]
    empty = [f"{name} = {size}" for name, size in extents if size < 1]
    sizes = " x ".join(str(size) for _, size in extents)
    largest = (batch or 1) * max(m * k, k * n, m * n)
    if not empty and largest > _MOST_ELEMENTS:
        raise StepladderError(
            f"a matmul of {sizes} has a matrix of {largest} elements, and at most 2^60 can be addressed",
            location=location,
        )
    if empty:
        raise StepladderError(
            f"a matmul of {sizes} has nothing to compute: {', '.join(empty)}, and sizes must be at least 1",
            location=location,
        )


@dataclass(frozen=True)
class _Map:
    """How a matmul indexes an operand: its layout, and whether its matrix is that of all matmuls of a batch."""

    layout: str
    is_broadcast: bool


def _maps(matmul: ir.Operation, location: str) -> tuple[_Map, _Map]:
    """Returns how a matmul or a batch of them indexes A and B, read from its indexing maps.

    Raises:
        StepladderError: a map that is not that of a row- or column-major A or B, or of a row-major C.
    """
    plain = _Map("row", False)
    loops = 3 if matmul.name == "linalg.matmul" else 4
    *batch, m, n, k = (ir.AffineExpr.get_dim(number) for number in range(loops))
    forms = []
    for name, given_map, (rows, columns) in zip("ABC", indexing_maps(matmul), ((m, k), (k, n), (m, n))):
        accepted = {ir.AffineMap.get(loops, 0, [*batch, rows, columns]): plain}
        if name != "C":
            accepted[ir.AffineMap.get(loops, 0, [*batch, columns, rows])] = _Map("column", False)
        if name != "C" and batch:
            accepted[ir.AffineMap.get(loops, 0, [rows, columns])] = _Map("row", True)
            accepted[ir.AffineMap.get(loops, 0, [columns, rows])] = _Map("column", True)
        if given_map not in accepted:
            texts = [f"{map_} ({_describe(kind)})" for map_, kind in accepted.items()]
            raise StepladderError(
                f"{matmul.name} indexes {name} with the map {given_map}; it must be {' or '.join(texts)}",
                location=location,
            )
        forms.append(accepted[given_map])
    return forms[0], forms[1]


def _describe(kind: _Map) -> str:
    return f"{kind.layout}-major{', broadcast' if kind.is_broadcast else ''}"


def _check_signed(matmul: ir.Operation, location: str) -> None:
    """Raises StepladderError for a matmul that casts its inputs as unsigned integers."""
    if "cast" in matmul.attributes and keyword(matmul.attributes["cast"]) == "cast_unsigned":
        raise StepladderError(f"{matmul.name} reads A and B as unsigned; integers must be signed", location=location)
