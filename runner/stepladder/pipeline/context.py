"""MLIR contexts with the extension and the plug-ins loaded, and payloads parsed in them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

from stepladder import extension
from stepladder.extension import plugins
from stepladder.extension.lib import faults
from stepladder.mlir import diagnostics, ssa_names
from stepladder.mlir.bindings import ir
from stepladder.mlir.nesting import check_nesting
from stepladder.mlir.unreadable import check_readable
from stepladder.mlir.xetile import dialect as xetile
from stepladder.payload import stablehlo
from stepladder.payload.binding import bind, computes_shapes
from stepladder.runtime import activity
from stepladder.runtime.errors import StepladderError

# The dialects that steps make ops of. A canonicalization collects the patterns of all dialects that are loaded, each
# time it runs; most are of other dialects. The parser and passes load further ones.
_DIALECTS = (
    "affine",
    "arith",
    "bufferization",
    "cf",
    "complex",
    "func",
    "gpu",
    "index",
    "irdl",
    "linalg",
    "llvm",
    "math",
    "memref",
    "nvgpu",
    "nvvm",
    "scf",
    "tensor",
    "transform",
    "ub",
    "vector",
    "xegpu",
    "xevm",
)
_SIGN_IN_TYPE = re.compile(r"but got '([su]i\d+)'")
_OPERANDS = re.compile(r"linalg\.\w+(?:(?!linalg\.).)*?ins\(([^()]*)\)\s*outs\(([^()]*)\)", re.DOTALL)
_NARROW_FLOAT = re.compile(r"[x<](b?f16|f8\w+)\b")


@contextlib.contextmanager
def mlir_context() -> Iterator[ir.Context]:
    """Enters a fresh MLIR context with the `tc` extension, the plug-ins and `xetile`
    loaded; it is current while the block runs.

    Raises:
        StepladderError: a plug-in that cannot be loaded.
    """
    plugins.load_installed()
    dialects = None if plugins.are_loaded() else _DIALECTS  # a plug-in may make ops of any dialect
    with ir.Context(load_on_create_dialects=dialects) as context, ir.Location.unknown():
        context.enable_multithreading(False)  # passes find one kernel or a few: locks and threads take longer
        extension.load()
        xetile.load()
        yield context


def parse_payload(text: str, name: str) -> ir.Module:
    """Parses a payload in the current MLIR context.

    Args:
        text: MLIR.
        name: the file it came from, for messages.

    Returns:
        The module, whose locations hold the names of SSA values.

    Raises:
        StepladderError: text that does not parse, with the file, the line and the parser's message, or text that nests
            too deeply or has names or resources that cannot be read.
    """
    diagnostics.name_payload(name)
    check_nesting(text, name)
    check_readable(text, name)
    stablehlo.register_torch_ops(text, name)
    try:
        with activity.during(f"the parser, at {name}"):
            module = ir.Module.parse(text)
    except ir.MLIRError as error:
        messages = diagnostics.from_error(error)
        first = messages[0] if messages else diagnostics.Diagnostic("", "not MLIR")
        with_sign = _SIGN_IN_TYPE.search(first.message)
        if with_sign is not None and not first.location:  # of the body that linalg.matmul has when none is written
            raise StepladderError(
                f"a linalg op of {with_sign[1]}: upstream's arithmetic is of integers without a sign in their type",
                location=_place_of_type(text, with_sign[1], name),
                notes=[
                    "accepted: i8, i16, i32; a linalg.matmul with {cast = #linalg.type_fn<cast_unsigned>} multiplies "
                    "numbers without a sign"
                ],
            ) from None
        uncast = _uncast_operand(text) if not first.location and "requires the same type" in first.message else None
        if uncast is not None:
            operand, sums, start = uncast
            raise StepladderError(
                f"a linalg op of {operand} with a result of {sums}: upstream's arithmetic has no cast between types of "
                "as many bits",
                location=_place(text, start, name),
                notes=[f"accepted: a result of f32, or operands that an op in front casts to {sums}"],
            ) from None
        raise StepladderError(
            first.message,
            location=first.location or name,
            traceback=faults.take(),
            notes=[*first.notes, *plugins.unknown_op_notes(first, text)],
        ) from None
    ssa_names.restore(module, text)
    return module


def _place_of_type(text: str, element: str, name: str) -> str:
    """Returns the location of the first linalg op on an element type, or the file."""
    match = re.search(rf"linalg\.\w+[^\n]*\dx{element}>", text)
    return name if match is None else _place(text, match.start(), name)


def _place(text: str, start: int, name: str) -> str:
    """Returns the location of a character of a file."""
    line = text.count("\n", 0, start) + 1
    return f"{name}:{line}:{start - text.rfind(chr(10), 0, start)}"


def _uncast_operand(text: str) -> tuple[str, str, int] | None:
    """Returns the types of an operand and the result of the first linalg op in which they have as many bits and differ,
    and where the op begins in the text; None if there is none."""
    for match in _OPERANDS.finditer(text):
        operands, results = (_NARROW_FLOAT.findall(group) for group in match.groups())
        for operand in operands:
            for result in results:
                if operand != result and operand.startswith("f8") == result.startswith("f8"):
                    return operand, result, match.start()
    return None


def linalg_text(text: str, name: str) -> str:
    """Returns a payload in StableHLO as linalg on tensors; any other one as it is. Raises StepladderError as
    `stablehlo.lowered`.

    Args:
        text: MLIR.
        name: the file it came from, for messages.
    """
    return stablehlo.lowered(text, name)


def bound_text(text: str, name: str, sizes: Mapping[str, int], function: str | None) -> str:
    """Returns a payload whose dynamic dimensions have sizes (`payload.binding`), with the locations of the given one.

    Args:
        text: MLIR; without sizes it is returned as it is, unless it computes shapes of tensors that fold.
        name: the file it came from, for messages.
        sizes: extents by the names of `--bind`.
        function: name of the function that is compiled, or None.

    Raises:
        StepladderError: as `parse_payload` and `bind`.
    """
    if not sizes and "?" not in text:
        return text
    return stablehlo.lowered(_bound(text, name, sizes, function), name, is_bound=True)


def _bound(text: str, name: str, sizes: Mapping[str, int], function: str | None) -> str:
    """Returns a payload with sizes, of which ops of `tm_tensor` are still there."""
    module = parse_payload(text, name)
    if not sizes and not computes_shapes(module, function):
        return text
    try:
        bind(module, sizes, function)
    except StepladderError:
        if sizes:
            raise
        return text  # IR between two steps has tiles of dynamic shapes; of a payload, the rule refuses them
    return module.operation.get_asm(enable_debug_info=True, use_name_loc_as_prefix=True)
