"""Ops on tensors that upstream lowers to linalg ops and views: packing, and tensors that a region or a list makes."""

from __future__ import annotations

from stepladder.mlir.bindings import interpreter, ir, passmanager
from stepladder.mlir.traverse import walk

_PACKS = """
    %packs = transform.structured.match ops{["linalg.pack"]} in %function
      : (!transform.any_op) -> !transform.op<"linalg.pack">
    transform.structured.lower_pack %packs : (!transform.op<"linalg.pack">)
      -> (!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">, !transform.op<"linalg.transpose">)
    %unpacks = transform.structured.match ops{["linalg.unpack"]} in %function
      : (!transform.any_op) -> !transform.op<"linalg.unpack">
    transform.structured.lower_unpack %unpacks : (!transform.op<"linalg.unpack">)
      -> (!transform.op<"tensor.empty">, !transform.op<"linalg.transpose">, !transform.op<"tensor.collapse_shape">,
          !transform.op<"tensor.extract_slice">, !transform.op<"linalg.copy">)
"""
_GENERATED = """
    %generated = transform.structured.match ops{["tensor.generate"]} in %function
      : (!transform.any_op) -> !transform.any_op
    transform.structured.rewrite_in_destination_passing_style %generated : (!transform.any_op) -> !transform.any_op
"""
_SCRIPT = """
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%function: !transform.any_op {{transform.readonly}}) {{{ops}
    transform.yield
  }}
}}
"""
_RELAYOUTS = ("linalg.pack", "linalg.unpack")


def lower(function: ir.Operation) -> None:
    """Replaces `linalg.pack`, `linalg.unpack`, `tensor.generate` and `tensor.from_elements` of constants.

    Paddings of nothing and slices of everything go.

    Args:
        function: a function; it is changed where there are such ops on static tensors.
    """
    relayouts = walk(function, *_RELAYOUTS)
    if relayouts and all(_is_static(op) for op in relayouts):
        _apply(function, _PACKS)
        _fold(function)
    generators = walk(function, "tensor.generate")
    if generators and all(_is_static(op) for op in generators):
        _apply(function, _GENERATED)
    if walk(function, "tensor.from_elements"):
        _fold(function)


def _is_static(op: ir.Operation) -> bool:
    types = [value.type for value in (*op.operands, *op.results)]
    return all(not isinstance(type_, ir.ShapedType) or type_.has_static_shape for type_ in types)


def _apply(function: ir.Operation, ops: str) -> None:
    script = ir.Module.parse(_SCRIPT.format(ops=ops), function.context)
    interpreter.apply_named_sequence(function, script.body.operations[0], script.operation)


def _fold(function: ir.Operation) -> None:
    passmanager.PassManager.parse(f"{function.name}(canonicalize)").run(function)
