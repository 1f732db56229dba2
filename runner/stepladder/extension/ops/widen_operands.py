"""`tc.widen_operands`: casts operands of products to a floating-point type that kernels multiply."""

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.plain_operands import add_in_wide_sums, sums_are_widened, with_wide_sums
from stepladder.extension.lib.multi_kernel.products import is_layout, is_product
from stepladder.extension.lib.multi_kernel.stages import is_structured, one_function
from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.rounding import rounds_to_nearest
from stepladder.mlir.traverse import attributes_of, producer
from stepladder.mlir.types import FITS_TF32, bit_width, element_of, is_fp8
from stepladder.payload.producers import PREPARED

_EXTENSION, _ROUNDING = "arith.extf", "arith.truncf"
_FP8_BITS, _HALF_BITS = 8, 16  # f16 and bf16 represent all values of both fp8 types
_ALL_FP8 = 2


class WidenOperands(Tc.Operation, name="widen_operands"):
    """Casts operands of products, by elementwise ops, to one floating-point type that kernels multiply.

    Operands of two types get the narrowest type that represents the values of either: that of the wider operand, f32 of
    f16 and bf16, f16 of both kinds of fp8. With sums of f64 they get f64, and fp8 with sums of f16, or as `fp8` says,
    f16. Operands of more bits than the sums, which the body rounds to their type, are rounded by the elementwise op.
    The product becomes a `linalg.generic`. It computes the same values, as its body cast the elements before it
    multiplied them.

    Where the payload extends fp8 that no kernel multiplies, an op of its own extends it to f16 first. The extensions of
    fp8 to f16 have the attribute `prepared`: they are no part of the product.

    Where kernels do not multiply bf16, operands that the payload extends from fp8 to bf16 become f16, which has their
    values too, and a matmul of fp8 whose sums are of bf16 becomes one with sums of f32, which are rounded.

    A product of f32 whose operands are both extended from narrower values, here or in the payload, is marked
    `fits_tf32`: tf32 has the 11 bits of an f16 significand and the exponents of bf16, and so represents all their
    values.

    Operands: a handle to a module with one public function on tensors.
    Attributes: fp8, what else is extended: nothing, 0, products of both kinds of fp8, which `wgmma` multiplies, 1, or
    all products of fp8, 2; bf16, whether kernels multiply bf16.
    """

    target: Handle
    fp8: ir.IntegerAttr
    bf16: ir.IntegerAttr


def _is_multiplied(a: ir.Type, b: ir.Type, sums: ir.Type, fp8: int) -> bool:
    """Returns whether kernels multiply two types of fp8."""
    return not isinstance(sums, ir.F16Type) and fp8 < (_ALL_FP8 if a == b else 1)


def _half(sums: ir.Type) -> ir.Type:
    """Returns the type that fp8 is extended to."""
    return sums if isinstance(sums, ir.BF16Type) else ir.F16Type.get()


def _common(a: ir.Type, b: ir.Type, sums: ir.Type, fp8: int) -> ir.Type | None:
    """Returns the type that two operands are cast to; None where they stay as they are."""
    if not all(isinstance(type_, ir.FloatType) for type_ in (a, b, sums)):
        return None
    narrow, wide = sorted((bit_width(a), bit_width(b)))
    if isinstance(sums, ir.F64Type) or wide > bit_width(sums) >= _HALF_BITS:
        return None if a == b == sums else sums
    if wide == _FP8_BITS:
        return None if _is_multiplied(a, b, sums, fp8) else _half(sums)
    if a == b:
        return None
    if narrow < wide:
        return a if bit_width(a) == wide else b
    return ir.F32Type.get()


def _cast(value: ir.Value, element: ir.Type) -> ir.Value:
    """Returns a tensor with its elements in another type, at the insertion point."""
    type_ = ir.RankedTensorType(value.type)
    if type_.element_type == element:
        return value
    other = ir.RankedTensorType.get(type_.shape, element)
    empty = ir.Operation.create("tensor.empty", results=[other]).results[0]
    generic, body = create_generic([value], [empty], [ir.AffineMap.get_identity(type_.rank)] * 2)
    with ir.InsertionPoint(body):
        number = body.arguments[0]
        if bit_width(type_.element_type) == bit_width(element):  # of 16 bits, by way of f32
            number = ir.Operation.create(_EXTENSION, results=[ir.F32Type.get()], operands=[number]).results[0]
        name = _EXTENSION if bit_width(number.type) < bit_width(element) else _ROUNDING
        cast = ir.Operation.create(name, results=[element], operands=[number])
        ir.Operation.create("linalg.yield", operands=list(cast.results))
    if is_fp8(type_.element_type) and bit_width(element) == _HALF_BITS:
        generic.attributes[PREPARED] = ir.UnitAttr.get()
    return generic.results[0]


def _clone_body(product: ir.Operation, body: ir.Block) -> None:
    """Fills the body of a product of cast operands; casts of an argument begin from its new type."""
    old = product.regions[0].blocks[0]
    values: dict[ir.Value, ir.Value] = dict(zip(old.arguments, body.arguments))
    with ir.InsertionPoint(body):
        for op in operations_of(old):
            operands = [values.get(operand, operand) for operand in op.operands]
            if op.name in (_EXTENSION, _ROUNDING) and operands[0].type == op.results[0].type:
                values[op.results[0]] = operands[0]
                continue
            types = [result.type for result in op.results]
            clone = ir.Operation.create(op.name, results=types, operands=operands, attributes=attributes_of(op))
            values.update(zip(op.results, clone.results))


def _is_cast(product: ir.Operation, element: ir.Type) -> bool:
    """Returns whether the body of a product casts the factors of other types first of all, so that they may be cast to
    a type before: extends them to one that represents its values, or rounds them to it.
    """
    body = product.regions[0].blocks[0]
    factors = [factor for factor in list(body.arguments)[:2] if factor.type != element]
    return all(_casts(op, element) for op in operations_of(body) if set(op.operands) & set(factors))


def _casts(op: ir.Operation, element: ir.Type) -> bool:
    if op.name == _ROUNDING:
        return op.results[0].type == element and rounds_to_nearest(op)
    result = op.results[0].type
    return op.name == _EXTENSION and (result == element or bit_width(result) > bit_width(element))


def _is_extended_from_halves(value: ir.Value) -> bool:
    """Returns whether all elements of a tensor of f32 are values of f16, bf16 or fp8."""
    while bit_width(element_of(value.type)) > _HALF_BITS:
        source = producer(value)
        if source is None or not is_layout(source):
            return False
        value = source.operands[0]
    return True


def _mark(product: ir.Operation) -> None:
    """Marks a product of f32 whose operands fit in tf32."""
    factors = list(product.operands)[:2]
    types = {element_of(factor.type) for factor in factors}
    if types == {ir.F32Type.get()} and all(map(_is_extended_from_halves, factors)):
        product.attributes[FITS_TF32] = ir.UnitAttr.get()


def _extension_of_fp8(value: ir.Value) -> ir.Operation | None:
    """Returns the op that extends fp8 to what a tensor is a view or an extension of; None where none does."""
    while (source := producer(value)) is not None and is_layout(source):
        if is_fp8(element_of(source.operands[0].type)) and not is_fp8(element_of(value.type)):
            return source
        value = source.operands[0]
    return None


def _is_of_fp8_as_bf16(product: ir.Operation) -> bool:
    """Returns whether both operands of a product are fp8 that the payload extends to bf16."""
    a, b = (element_of(operand.type) for operand in list(product.operands)[:2])
    is_bf16 = isinstance(a, ir.BF16Type) and isinstance(b, ir.BF16Type)
    return is_bf16 and all(_extension_of_fp8(value) is not None for value in list(product.operands)[:2])


def _with_sums_of_f32(product: ir.Operation, rewriter: Rewriter) -> ir.Operation:
    """Returns a matmul of fp8 in bf16 as one in f32 whose sums are rounded by an op of its own: the extension of fp8 to
    bf16, which kernels do not multiply, is not needed then. Another product is returned as it is."""
    of_fp8 = all(is_fp8(element_of(operand.type)) for operand in list(product.operands)[:2])
    if not sums_are_widened(product) or not (of_fp8 or _is_of_fp8_as_bf16(product)):
        return product
    start = repeated_number(product.operands[2])
    if start is not None and start.value == 0:
        return with_wide_sums(product, rewriter)[0]
    return add_in_wide_sums(product, rewriter)


def _prepare_fp8(product: ir.Operation, fp8: int, rewriter: Rewriter) -> None:
    """Has ops of their own extend fp8 to f16, where the payload has extended it and no kernel multiplies it."""
    extension_ops = [_extension_of_fp8(value) for value in list(product.operands)[:2]]
    extensions = [op for op in extension_ops if op is not None and PREPARED not in op.attributes]
    types = [element_of(op.operands[0].type) for op in extensions]
    if len(types) < len(extension_ops) or _is_multiplied(types[0], types[1], element_of(product.operands[2].type), fp8):
        return
    for op in dict.fromkeys(extensions):
        first = next((inner for inner in operations_of(op.regions[0].blocks[0]) if inner.name == _EXTENSION), None)
        with ir.InsertionPoint(op), op.location:
            half = _cast(op.operands[0], _half(first.results[0].type if first is not None else ir.F16Type.get()))
            generic, body = create_generic([half], [op.operands[1]], indexing_maps(op))
            _clone_body(op, body)
        rewriter.replace_op(op, list(generic.results))


@transform_op(WidenOperands)
def widen_operands(payload: ir.Operation, op: WidenOperands, rewriter: Rewriter) -> None:
    """Rewrites the products of the function below `payload`; see the op."""
    for product in operations_of(one_function(payload).regions[0].blocks[0]):
        if not is_product(product) or not is_structured(product):
            continue
        if not op.bf16.value:
            product = _with_sums_of_f32(product, rewriter)
        a, b, sums = product.operands
        element = _common(element_of(a.type), element_of(b.type), element_of(sums.type), op.fp8.value)
        if not op.bf16.value and isinstance(element_of(sums.type), ir.F32Type) and _is_of_fp8_as_bf16(product):
            element = ir.F16Type.get()
        if element is None or not _is_cast(product, element):
            _prepare_fp8(product, op.fp8.value, rewriter)
            _mark(product)
            continue
        with ir.InsertionPoint(product), product.location:
            factors = [_cast(value, element) for value in (a, b)]
            generic, body = create_generic(factors, [sums], indexing_maps(product))
            _clone_body(product, body)
            _mark(generic)
        rewriter.replace_op(product, list(generic.results))
