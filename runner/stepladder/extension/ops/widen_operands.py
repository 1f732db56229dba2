"""`tc.widen_operands`: extends operands of products of two element types to a type that kernels multiply."""

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.products import is_layout, is_product
from stepladder.extension.lib.stages import is_structured, one_function
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import attributes_of, producer
from stepladder.mlir.types import FITS_TF32, bit_width

_EXTENSION = "arith.extf"
_HALF_BITS = 16  # f16 and bf16 have all numbers of both kinds of fp8


class WidenOperands(Tc.Operation, name="widen_operands"):
    """Extends operands of products of two floating-point types by elementwise ops.

    Both operands get the narrowest type that has the numbers of either: that of the wider operand, f32 of f16 and bf16,
    f16 of both kinds of fp8. The product becomes a `linalg.generic`. It computes the same numbers, as an extension is
    exact and its body extended the elements before it multiplied them.

    A product of f32 whose operands are both extended from narrower numbers, here or in the payload, is marked
    `fits_tf32`: tf32 has the 11 bits of an f16 significand and the exponents of bf16, and so has all their numbers.

    Operands: a handle to a module with one public function on tensors.
    Attributes: fp8, whether both kinds of fp8 are extended too, which `wgmma` multiplies as they are.
    """

    target: Handle
    fp8: ir.IntegerAttr


def _common(a: ir.Type, b: ir.Type, fp8: bool) -> ir.Type | None:
    """Returns the type that two operands are extended to; None where they stay as they are."""
    if a == b or not isinstance(a, ir.FloatType) or not isinstance(b, ir.FloatType):
        return None
    narrow, wide = sorted((bit_width(a), bit_width(b)))
    if narrow < wide:
        return a if bit_width(a) == wide else b
    if wide == _HALF_BITS:
        return ir.F32Type.get()
    return ir.F16Type.get() if fp8 else None


def _extended(value: ir.Value, element: ir.Type) -> ir.Value:
    """Returns a tensor with its elements in a wider type, at the insertion point."""
    type_ = ir.RankedTensorType(value.type)
    if type_.element_type == element:
        return value
    wide = ir.RankedTensorType.get(type_.shape, element)
    empty = ir.Operation.create("tensor.empty", results=[wide]).results[0]
    generic, body = create_generic([value], [empty], [ir.AffineMap.get_identity(type_.rank)] * 2)
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=[arith.extf(element, body.arguments[0])])
    return generic.results[0]


def _clone_body(product: ir.Operation, body: ir.Block) -> None:
    """Fills the body of a product of extended operands; extensions of an argument begin from its new type."""
    old = product.regions[0].blocks[0]
    values: dict[ir.Value, ir.Value] = dict(zip(old.arguments, body.arguments))
    with ir.InsertionPoint(body):
        for op in operations_of(old):
            operands = [values.get(operand, operand) for operand in op.operands]
            if op.name == _EXTENSION and operands[0].type == op.results[0].type:
                values[op.results[0]] = operands[0]
                continue
            types = [result.type for result in op.results]
            clone = ir.Operation.create(op.name, results=types, operands=operands, attributes=attributes_of(op))
            values.update(zip(op.results, clone.results))


def _is_extended(product: ir.Operation, element: ir.Type) -> bool:
    """Tells whether the body of a product extends the factors of other types, to no narrower one, first of all."""
    body = product.regions[0].blocks[0]
    factors = [factor for factor in list(body.arguments)[:2] if factor.type != element]
    return all(
        op.name == _EXTENSION and bit_width(op.results[0].type) >= bit_width(element)
        for op in operations_of(body)
        if set(op.operands) & set(factors)
    )


def _is_extended_from_halves(value: ir.Value) -> bool:
    """Tells whether all numbers of a tensor of f32 are of f16, bf16 or fp8."""
    while bit_width(ir.ShapedType(value.type).element_type) > _HALF_BITS:
        source = producer(value)
        if source is None or not is_layout(source):
            return False
        value = source.operands[0]
    return True


def _mark(product: ir.Operation) -> None:
    """Marks a product of f32 whose operands fit in tf32."""
    factors = list(product.operands)[:2]
    types = {ir.ShapedType(value.type).element_type for value in factors}
    if types == {ir.F32Type.get()} and all(map(_is_extended_from_halves, factors)):
        product.attributes[FITS_TF32] = ir.UnitAttr.get()


@transform_op(WidenOperands)
def widen_operands(payload: ir.Operation, op: WidenOperands, rewriter: Rewriter) -> None:
    """Rewrites the products of the function below `payload`; see the op."""
    for product in operations_of(one_function(payload).regions[0].blocks[0]):
        if not is_product(product) or not is_structured(product):
            continue
        a, b, sums = product.operands
        types = [ir.RankedTensorType(value.type).element_type for value in (a, b)]
        element = _common(types[0], types[1], bool(op.fp8.value))
        if element is None or not _is_extended(product, element):
            _mark(product)
            continue
        with ir.InsertionPoint(product), product.location:
            factors = [_extended(value, element) for value in (a, b)]
            generic, body = create_generic(factors, [sums], indexing_maps(product))
            _clone_body(product, body)
            _mark(generic)
        rewriter.replace_op(product, list(generic.results))
