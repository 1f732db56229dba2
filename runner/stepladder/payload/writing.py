"""Writes payloads: one matmul, or a batch of them, as a function of row-major buffers."""

from __future__ import annotations

from stepladder.mlir.element_types import bits_of_name
from stepladder.payload.matmul import check_sizes
from stepladder.runtime.errors import StepladderError


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
    batch: int | None = None,
    broadcast: str = "",
) -> str:
    """Returns a payload in the form that all pipelines start from.

    It is a function of row-major buffers A[m, k], B[k, n] and C[m, n], with the matmul on tensors between them. Where
    `acc_type` is not `c_type`, a `linalg.generic` rounds the accumulators to C's type.

    Args:
        m, n, k: extents in elements.
        a_type, b_type, acc_type, c_type: MLIR's names of the element types of A, B, the accumulator and C.
        accumulate: C = AB + C in place; else C = AB. Where `acc_type` is not `c_type`, C is added to the accumulators
            before they are rounded, once.
        a_layout, b_layout: `row`, or `column` for an operand that is the row-major buffer of its transpose, A[k, m] or
            B[n, k], which the matmul's indexing maps express.
        batch: number of matmuls, A[batch, m, k], B[batch, k, n] and C[batch, m, n]; None for one matmul, without this
            dimension.
        broadcast: the operands of a batch that have no such dimension, `a`, `b` or `ab`: all matmuls read one matrix.

    Raises:
        StepladderError: a size below 1, an operand broadcast without a batch, or types that do not go together:
            integers summed as floating-point numbers or the reverse, or accumulators that cannot be rounded to C's
            type.
    """
    check_sizes(m, n, k, batch=batch)
    if broadcast not in ("", "a", "b", "ab"):
        raise StepladderError(f"broadcast = '{broadcast}': A, B or both can be broadcast")
    if batch is None and broadcast:
        raise StepladderError(f"{' and '.join(broadcast.upper())} broadcast over a batch, and there is none")
    _check_types(a_type, acc_type, c_type)
    count = "" if batch is None else f"{batch}x"
    counts = {role: "" if role in broadcast else count for role in "ab"}
    a = counts["a"] + (f"{m}x{k}x{a_type}" if a_layout == "row" else f"{k}x{m}x{a_type}")
    b = counts["b"] + (f"{k}x{n}x{b_type}" if b_layout == "row" else f"{n}x{k}x{b_type}")
    c, acc = f"{count}{m}x{n}x{c_type}", f"{count}{m}x{n}x{acc_type}"
    columns = [name for name, layout in (("A", a_layout), ("B", b_layout)) if layout == "column"]
    layouts = f", {' and '.join(columns)} column-major" if columns else ""
    layouts += f", {' and '.join(broadcast.upper())} broadcast" if broadcast else ""
    initial, start = _start(c, acc, acc_type, is_rounded=acc_type != c_type, accumulate=accumulate)
    operands = f"ins(%a, %b : tensor<{a}>, tensor<{b}>) outs({start} : tensor<{acc}>) -> tensor<{acc}>"
    is_batch = batch is not None
    result = "%product" if acc_type == c_type else "%rounded"
    lines = [
        f"// C = AB{' + C' if accumulate else ''}, {f'{batch} x ' if is_batch else ''}{m} x {n} x {k}, "
        f"{a_type} x {b_type} -> {c_type}, accumulated in {acc_type}{layouts}.",
        f"func.func @matmul(%A: memref<{a}>, %B: memref<{b}>, %C: memref<{c}>) {{",
        f"  %a = bufferization.to_tensor %A restrict : memref<{a}> to tensor<{a}>",
        f"  %b = bufferization.to_tensor %B restrict : memref<{b}> to tensor<{b}>",
        *initial,
        *_product(is_batch, a_layout, b_layout, broadcast, operands),
        *([] if acc_type == c_type else _rounding(is_batch, c, acc, c_type, acc_type, accumulate)),
        f"  bufferization.materialize_in_destination {result} in restrict writable %C"
        f" : (tensor<{c}>, memref<{c}>) -> ()",
        "  return",
        "}",
        "",
    ]
    return "\n".join(lines)


def _start(c: str, acc: str, acc_type: str, *, is_rounded: bool, accumulate: bool) -> tuple[list[str], str]:
    """Returns the lines of the tensor that the product is added to, and its name: C, or zeros."""
    if is_rounded:
        lines = [f"  %c = tensor.empty() : tensor<{acc}>"]
    else:
        lines = [f"  %c = bufferization.to_tensor %C restrict writable : memref<{c}> to tensor<{c}>"]
        if accumulate:
            return lines, "%c"
    zero = "0" if acc_type.startswith("i") else "0.0"
    lines += [
        f"  %zero = arith.constant {zero} : {acc_type}",
        f"  %start = linalg.fill ins(%zero : {acc_type}) outs(%c : tensor<{acc}>) -> tensor<{acc}>",
    ]
    return lines, "%start"


def _rounding(is_batch: bool, c: str, acc: str, c_type: str, acc_type: str, accumulate: bool) -> list[str]:
    """Returns the lines that round the product to C's type; C is added before, in the accumulators' type."""
    loops = "b, i, j" if is_batch else "i, j"
    iterators = ", ".join(['"parallel"'] * len(loops.split()))
    addition = [f"    %w = arith.extf %y : {c_type} to {acc_type}", f"    %s = arith.addf %x, %w : {acc_type}"]
    return [
        f"  %d = bufferization.to_tensor %C restrict writable : memref<{c}> to tensor<{c}>",
        "  %rounded = linalg.generic {",
        f"      indexing_maps = [affine_map<({loops}) -> ({loops})>, affine_map<({loops}) -> ({loops})>],",
        f"      iterator_types = [{iterators}]}} ins(%product : tensor<{acc}>) outs(%d : tensor<{c}>) {{",
        f"  ^bb0(%x: {acc_type}, %y: {c_type}):",
        *(addition if accumulate else []),
        f"    %r = arith.truncf %{'s' if accumulate else 'x'} : {acc_type} to {c_type}",
        f"    linalg.yield %r : {c_type}",
        f"  }} -> tensor<{c}>",
    ]


def _product(is_batch: bool, a_layout: str, b_layout: str, broadcast: str, operands: str) -> list[str]:
    """Returns the lines of the product. `linalg.batch_matmul` has no map of an operand that is both broadcast and
    column-major; `linalg.contract` has."""
    name = "linalg.batch_matmul" if is_batch else "linalg.matmul"
    layouts = {"a": a_layout, "b": b_layout}
    if layouts["a"] == layouts["b"] == "row" and not broadcast:
        return [f"  %product = {name} {operands}"]
    if any(layouts[role] == "column" for role in broadcast):
        name = "linalg.contract"
    loops = ("b", "m", "n", "k") if is_batch else ("m", "n", "k")
    maps = []
    for role, dimensions in (("a", ("m", "k")), ("b", ("k", "n")), ("c", ("m", "n"))):
        order = dimensions[::-1] if layouts.get(role) == "column" else dimensions
        own = (*(() if role in broadcast or not is_batch else ("b",)), *order)
        maps.append(f"affine_map<({', '.join(loops)}) -> ({', '.join(own)})>")
    return [f"  %product = {name} indexing_maps = [", f"        {', '.join(maps)}]", f"      {operands}"]


def _check_types(input_type: str, acc_type: str, c_type: str) -> None:
    """Raises StepladderError for types that no matmul has (`matmul_text`)."""
    if len({type_.startswith("i") for type_ in (input_type, acc_type, c_type)}) > 1:
        raise StepladderError(
            f"products of {input_type}, accumulators of {acc_type}, C of {c_type}: integer and "
            "floating-point types cannot be mixed",
            notes=["for i8: --acc-type i32 --c-type i32"],
        )
    if acc_type != c_type and (acc_type.startswith("i") or bits_of_name(c_type) >= bits_of_name(acc_type)):
        raise StepladderError(
            f"accumulators of {acc_type} are not rounded to C of {c_type}: C's type must be that of the "
            "accumulators, or a narrower floating-point type"
        )
