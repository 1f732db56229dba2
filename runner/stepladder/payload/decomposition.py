"""Decomposes ops on tensors that are no structured ops of one loop nest, by upstream's passes and interfaces.

Arithmetic on whole tensors, `linalg.softmax`, `tensor.concat` and `tensor.pad` are taken apart in a copy of a payload,
so that a reference program can be exported of it (`payload.reference_export`). The pipelines do the same by a step,
`decompose_ops`.
"""

from __future__ import annotations

from stepladder.mlir.bindings import interpreter, ir, passmanager
from stepladder.mlir.traverse import walk
from stepladder.payload.refusal import refuse

_SCRIPT = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %functions = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %functions { transform.apply_patterns.tensor.decompose_concat } : !transform.any_op
    %pads = transform.structured.match ops{["tensor.pad"]} in %module : (!transform.any_op) -> !transform.any_op
    %fills = transform.structured.rewrite_in_destination_passing_style %pads : (!transform.any_op) -> !transform.any_op
    %softmax = transform.structured.match ops{["linalg.softmax"]} in %module : (!transform.any_op) -> !transform.any_op
    %nests = transform.structured.decompose_interface %softmax : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
"""
_DECOMPOSED = ("linalg.softmax", "tensor.concat", "tensor.pad")
_ON_WHOLE_TENSORS = ("arith.", "math.")


def decomposed(module: ir.Module) -> ir.Module:
    """Returns a payload in which each op that computes tensors is one loop nest.

    Args:
        module: the payload, which stays as it is.

    Returns:
        A copy, or the payload itself where nothing is to be done.

    Raises:
        StepladderError: a padding of less than nothing, of which upstream makes an op that is not valid.
    """
    ops = walk(module)
    if not any(op.name in _DECOMPOSED or _is_on_tensors(op) for op in ops):
        return module
    for op in walk(module, "tensor.pad"):
        _check_padding(op)
    copy = module.operation.clone()
    script = ir.Module.parse(_SCRIPT, module.context)
    interpreter.apply_named_sequence(copy, script.body.operations[0], script.operation)
    passes = passmanager.PassManager.parse("builtin.module(func.func(convert-elementwise-to-linalg))", module.context)
    passes.run(copy.operation)
    return ir.Module.parse(copy.operation.get_asm(enable_debug_info=True), module.context)


def _check_padding(op: ir.Operation) -> None:
    extents = [*ir.DenseI64ArrayAttr(op.attributes["static_low"]), *ir.DenseI64ArrayAttr(op.attributes["static_high"])]
    negative = [extent for extent in extents if extent < 0 and extent != ir.ShapedType.get_dynamic_size()]
    if negative:
        text = f"tensor.pad by {min(negative)} elements"
        raise refuse(op, text, "accepted: tensor.extract_slice, which leaves some out")


def _is_on_tensors(op: ir.Operation) -> bool:
    """Returns whether an op computes arithmetic on whole tensors."""
    return (
        op.name.startswith(_ON_WHOLE_TENSORS)
        and op.name != "arith.constant"
        and any(isinstance(result.type, ir.RankedTensorType) for result in op.results)
    )
