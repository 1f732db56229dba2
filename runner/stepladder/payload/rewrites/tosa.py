"""TOSA, lowered to linalg on tensors by upstream's passes."""

from __future__ import annotations

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.diagnostics import from_error
from stepladder.mlir.traverse import walk
from stepladder.payload.refusal import refuse

# Those of upstream's pipeline for TOSA, but for its validation. Named ops come first: others would be generic.
_PASSES = (
    "tosa-optional-decompositions",
    "canonicalize",
    "tosa-infer-shapes",
    "tosa-make-broadcastable",
    "tosa-to-linalg-named",
    "tosa-to-linalg",
    "tosa-to-arith{include-apply-rescale=true}",
    "tosa-to-tensor",
    "tosa-to-scf",
    "canonicalize",
    "cse",
)
_ACCEPTED = (
    "accepted: ops of TOSA that upstream lowers: mlir-opt --tosa-to-linalg-named --tosa-to-linalg --tosa-to-arith "
    "--tosa-to-tensor --tosa-to-scf"
)
_SIGNLESS = "accepted: i8 and so on, as by mlir-opt --tosa-convert-integer-type-to-signless"


def lower(function: ir.Operation) -> None:
    """Replaces ops of TOSA by linalg ops, views and arithmetic.

    Args:
        function: a function; it is changed where there are such ops.

    Raises:
        StepladderError: an op that upstream does not lower, or of unsigned integers.
    """
    for op in _ops(function):
        for value in (*op.operands, *op.results):
            if isinstance(value.type, ir.ShapedType) and _is_unsigned(ir.ShapedType(value.type).element_type):
                raise refuse(op, f"'{op.name}' of {value.type}, whose elements are unsigned", _SIGNLESS)
    if not _ops(function):
        return
    try:
        passmanager.PassManager.parse(f"{function.name}({','.join(_PASSES)})").run(function)
    except ir.MLIRError as error:
        messages = from_error(error)
        message = messages[0].message if messages else "a pass failed"
        refusal = refuse((_ops(function) or [function])[0], f"TOSA is not lowered to linalg: {message}", _ACCEPTED)
        refusal.location = (messages[0].location if messages else "") or refusal.location
        raise refusal from None
    for op in _ops(function):
        raise refuse(op, f"'{op.name}' is not lowered to linalg", _ACCEPTED)


def _is_unsigned(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.is_unsigned


def _ops(function: ir.Operation) -> list[ir.Operation]:
    return [op for op in walk(function) if op.name.startswith("tosa.")]
