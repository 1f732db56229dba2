"""`tc.reinterpret_elements`: values of one element type become values of another of the same width."""

from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.mlir.bindings import ext, ir, transform
from stepladder.mlir.traverse import walk


class ReinterpretElements(Tc.Operation, name="reinterpret_elements"):
    """Gives every value below an op that has elements of type `old` elements of type `new`, without touching bits.

    For conversions that know one 16-bit type and not the other: where only data moves and whole fragments multiply, f16
    and bf16 are alike, and only the instructions at the end differ. Applied twice, around such a conversion, it leaves
    no trace.

    Operands: a handle to functions. Attributes: old, new; where they are equal, nothing is done.
    Refuses: types of different width; arithmetic on elements; constants other than zero.
    """

    target: ext.Operand[transform.AnyOpType]
    old: ir.TypeAttr
    new: ir.TypeAttr


# Ops whose meaning depends on what an element is. Contractions are not among them: their type is their operands'.
_ARITHMETIC = ("arith.", "math.")
_CONSTANTS = ("arith.constant",)


def _retyped(type_, old, new):
    """Returns a type with its elements replaced, or None where it has no such elements."""
    if type_ == old:
        return new
    match type_:
        case ir.MemRefType() if type_.element_type == old:
            return ir.MemRefType.get(type_.shape, new, type_.layout, type_.memory_space)
        case ir.VectorType() if type_.element_type == old:
            return ir.VectorType.get(type_.shape, new)
    return None


def _retype_constant(op, old, new) -> None:
    value = op.attributes["value"]
    match value:
        case ir.FloatAttr() if value.value == 0.0:
            op.attributes["value"] = ir.FloatAttr.get(new, 0.0)
        case ir.DenseElementsAttr() if value.is_splat and value.get_splat_value().value == 0.0:
            op.attributes["value"] = ir.DenseElementsAttr.get_splat(
                _retyped(value.type, old, new), ir.FloatAttr.get(new, 0.0)
            )
        case _:
            raise Refusal(op, f"a constant other than zero of type {old}")


def _retype_op(op, old, new) -> None:
    changed = [(result, _retyped(result.type, old, new)) for result in op.results]
    changed = [(result, type_) for result, type_ in changed if type_ is not None]
    if changed and op.name in _CONSTANTS:
        _retype_constant(op, old, new)
    elif changed and op.name.startswith(_ARITHMETIC) and op.name != "arith.select":
        raise Refusal(op, f"{op.name} computes with elements of type {old}")
    for result, type_ in changed:
        result.set_type(type_)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                type_ = _retyped(argument.type, old, new)
                if type_ is not None:
                    argument.set_type(type_)
    if "function_type" in op.attributes:
        function = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        inputs, results = (
            [_retyped(type_, old, new) or type_ for type_ in types] for types in (function.inputs, function.results)
        )
        op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


@transform_op(ReinterpretElements)
def reinterpret_elements(payload, op, rewriter) -> None:
    """Retypes everything below `payload`; see the op."""
    old, new = op.old.value, op.new.value
    if old == new:
        return
    if old.width != new.width:
        raise Refusal(payload, f"{old} and {new} differ in width")
    for inner in walk(payload):
        _retype_op(inner, old, new)
