"""`tc.reinterpret_elements`: exchanges an element type and another of the same width."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import bit_width


class ReinterpretElements(Tc.Operation, name="reinterpret_elements"):
    """Exchanges the element types `old` and `new` in the type of every value below an op; the bits do not change.

    Some conversions support f16 and not bf16, or i8 and not fp8. Ops that move data, or multiply whole fragments, do
    not depend on which of the two the elements are; only the instructions that they are lowered to do. Applied before
    and after such a conversion, with `old` and `new` swapped, the op restores the original types: values that were of
    type `new` before, such as a bias of f16 beside matrices of bf16, are of type `old` in between.

    Operands: a handle to functions.
    Attributes: old, new; where they are equal, the op does nothing.
    Refuses: types other than integers and floating-point numbers, and of different width; arithmetic on elements;
    constants other than zero.
    """

    target: Handle
    old: ir.TypeAttr
    new: ir.TypeAttr


# Dialects whose ops depend on the element type. Contractions are not among them: their operands determine their type.
_ARITHMETIC = ("arith.", "math.")
_CONSTANTS = ("arith.constant",)


# Element type -> the one that replaces it.
_Types = dict[ir.Type, ir.Type]


def _retyped(type_: ir.Type, types: _Types) -> ir.Type | None:
    """Returns a type with another element type, or None where its element type stays."""
    if type_ in types:
        return types[type_]
    match type_:
        case ir.MemRefType() if type_.element_type in types:
            return ir.MemRefType.get(type_.shape, types[type_.element_type], type_.layout, type_.memory_space)
        case ir.VectorType() if type_.element_type in types:
            return ir.VectorType.get(type_.shape, types[type_.element_type])
    return None


def _zero(type_: ir.Type) -> ir.Attribute:
    return ir.IntegerAttr.get(type_, 0) if isinstance(type_, ir.IntegerType) else ir.FloatAttr.get(type_, 0.0)


def _retype_constant(op: ir.Operation, types: _Types) -> None:
    value = op.attributes["value"]
    match value:
        case ir.FloatAttr() | ir.IntegerAttr() if value.value == 0:
            op.attributes["value"] = _zero(types[value.type])
        case ir.DenseElementsAttr() if value.is_splat and value.get_splat_value().value == 0:
            vector = ir.VectorType(value.type)
            type_ = ir.VectorType.get(vector.shape, types[vector.element_type])
            op.attributes["value"] = ir.DenseElementsAttr.get_splat(type_, _zero(type_.element_type))
        case _:
            raise Refusal(op, f"a constant other than zero of type {op.results[0].type}")


def _retype_op(op: ir.Operation, types: _Types) -> None:
    new_types = [(result, _retyped(result.type, types)) for result in op.results]
    changes = [(result, type_) for result, type_ in new_types if type_ is not None]
    if changes and op.name in _CONSTANTS:
        _retype_constant(op, types)
    elif changes and op.name.startswith(_ARITHMETIC) and op.name != "arith.select":
        raise Refusal(op, f"{op.name} computes with elements of type {changes[0][0].type}")
    for result, type_ in changes:
        result.set_type(type_)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                type_ = _retyped(argument.type, types)
                if type_ is not None:
                    argument.set_type(type_)
    if "function_type" in op.attributes:
        function = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        inputs, results = (
            [_retyped(type_, types) or type_ for type_ in old_types]
            for old_types in (function.inputs, function.results)
        )
        op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


@transform_op(ReinterpretElements)
def reinterpret_elements(payload: ir.Operation, op: ReinterpretElements, rewriter: Rewriter) -> None:
    """Retypes all values below `payload`; see the op."""
    old, new = op.old.value, op.new.value
    if old == new:
        return
    for type_ in (old, new):
        if not isinstance(type_, (ir.IntegerType, ir.FloatType)):
            raise Refusal(payload, f"{type_} is no type of elements; accepted: integers and floating-point numbers")
    if bit_width(old) != bit_width(new):
        raise Refusal(payload, f"{old} and {new} differ in width")
    for inner in walk(payload):
        _retype_op(inner, {old: new, new: old})
