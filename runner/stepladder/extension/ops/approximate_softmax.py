"""`tc.approximate_softmax`: computes the exponentials and quotients of a softmax by the hardware's approximations."""

import math

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import indexing_maps, loops_of
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import origin, producer, walk

_GENERIC = "linalg.generic"
_ROUNDED = ("f16", "bf16")
_EXTENSIONS = ("arith.extf",)
_MAXIMA = ("arith.maxnumf", "arith.maximumf")
_LOG2_E = 1 / math.log(2)


class ApproximateSoftmax(Tc.Operation, name="approximate_softmax"):
    """Rewrites softmaxes along rows in functions whose results all have 16 bits.

    `exp(x - m)`, where m is the maximum of the row of x, becomes `exp2((x - m) log2 e)` with the flag `afn`, which is
    `ex2.approx`: of an exponent y, a relative error of at most (4 + 1.5 |y|) 2^-24 (PTX ISA), against the 2^-12 and
    2^-9 of a rounding to f16 and bf16. `e / s`, where s is the sum of a row of such exponentials, becomes
    `e * (1 / s)`, with a relative error of at most 1.5 2^-24 more. No such sum is below 1, so that its reciprocal is a
    number where the quotient is.

    Operands: a handle to any op with functions on tensors below. Other exponentials and quotients stay.
    """

    target: Handle


@transform_op(ApproximateSoftmax)
def approximate_softmax(payload: ir.Operation, op: ApproximateSoftmax, rewriter: Rewriter) -> None:
    """Rewrites the functions below `payload`; see the op."""
    for function in walk(payload, "func.func"):
        types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
        if any(str(ir.ShapedType(type_).element_type) not in _ROUNDED for type_ in types):
            continue
        generics = walk(function, _GENERIC)
        powers = [generic for generic in generics if _is_power(generic)]
        sums = [generic for generic in generics if _is_sum(generic, powers)]
        quotients = [
            (generic, item)
            for generic in generics
            for item in operations_of(generic.regions[0].blocks[0])
            if item.name == "arith.divf" and _is_of(item, generic, powers, sums)
        ]
        for generic in powers:
            _approximate(_yielded(generic), rewriter)
        for _, item in quotients:
            _multiply(item, rewriter)


def _results(generics: list[ir.Operation]) -> list[ir.Value]:
    return [generic.results[0] for generic in generics]


def _yielded(generic: ir.Operation) -> ir.Operation:
    """Returns the op that makes the first result of a `linalg.generic`; the op that yields it for an argument."""
    end = operations_of(generic.regions[0].blocks[0])[-1]
    return producer(end.operands[0]) or end


def _operand(value: ir.Value, generic: ir.Operation) -> tuple[ir.Value, ir.AffineMap] | None:
    """Returns the tensor that an argument of the body of a `linalg.generic`, or what extends it, is an element of, and
    its map."""
    value = origin(value, _EXTENSIONS)
    if producer(value) is not None or ir.BlockArgument(value).owner != generic.regions[0].blocks[0]:
        return None
    place = ir.BlockArgument(value).arg_number
    return origin(generic.operands[place], TENSOR_VIEWS), indexing_maps(generic)[place]


def _reduced(generic: ir.Operation, names: tuple[str, ...]) -> ir.Value | None:
    """Returns the tensor whose innermost axis an op with one of some names reduces, also extended; None for another
    op."""
    maps, last = indexing_maps(generic), _yielded(generic)
    if len(generic.operands) != 2 or last.name not in names:
        return None
    if {origin(value, _EXTENSIONS) for value in last.operands} != set(last.block.arguments):
        return None
    loops = loops_of(maps[0])
    is_inner = loops == list(range(maps[0].n_dims)) and loops_of(maps[1]) == loops[:-1]
    return origin(generic.operands[0], TENSOR_VIEWS) if is_inner else None


def _is_sum(generic: ir.Operation, powers: list[ir.Operation]) -> bool:
    """Returns whether a `linalg.generic` computes the sums of rows of one of some ops."""
    addend = _reduced(generic, ("arith.addf",))
    return addend is not None and addend in _results(powers)


def _is_power(generic: ir.Operation) -> bool:
    """Returns whether a `linalg.generic` computes the exponentials of rows less their maxima, in f32, and no more."""
    if len(generic.operands) != 3 or _yielded(generic).name != "math.exp":
        return False
    power = _yielded(generic)
    difference = producer(power.operands[0])
    if difference is None or difference.name != "arith.subf" or not isinstance(power.results[0].type, ir.F32Type):
        return False
    operands = [item for value in difference.operands if (item := _operand(value, generic)) is not None]
    if len(operands) != 2:
        return False
    (row, row_map), (maximum, maximum_map) = operands
    source, loops = producer(maximum), loops_of(row_map)
    reduced_value = _reduced(source, _MAXIMA) if source is not None and source.name == _GENERIC else None
    return (
        reduced_value is not None
        and reduced_value == row
        and loops == list(range(row_map.n_dims))
        and loops_of(maximum_map) == loops[:-1]
    )


def _is_of(quotient: ir.Operation, generic: ir.Operation, powers: list[ir.Operation], sums: list[ir.Operation]) -> bool:
    """Returns whether a quotient in the body of a `linalg.generic` is one of an exponential and the sum of its row."""
    operands = [item for value in quotient.operands if (item := _operand(value, generic)) is not None]
    if len(operands) != 2:
        return False
    (power, power_map), (total, sum_map) = operands
    sum_op = producer(total)
    loops = loops_of(power_map)
    is_sum = (
        sum_op is not None
        and sum_op in sums
        and power in _results(powers)
        and origin(sum_op.operands[0], TENSOR_VIEWS) == power
    )
    return is_sum and loops_of(sum_map) == loops[:-1]


def _approximate(power: ir.Operation, rewriter: Rewriter) -> None:
    """Replaces an exponential by a power of two."""
    with ir.InsertionPoint(power), power.location:
        type_ = power.results[0].type
        exponent = arith.mulf(power.operands[0], arith.constant(type_, _LOG2_E))
        flags = {"fastmath": ir.Attribute.parse("#arith.fastmath<afn>")}
        new = ir.Operation.create("math.exp2", results=[type_], operands=[exponent], attributes=flags)
    rewriter.replace_op(power, list(new.results))


def _multiply(quotient: ir.Operation, rewriter: Rewriter) -> None:
    """Replaces a quotient by a product with the reciprocal of the divisor."""
    number, divisor = quotient.operands
    with ir.InsertionPoint(quotient), quotient.location:
        product = arith.mulf(number, arith.divf(arith.constant(divisor.type, 1.0), divisor))
    rewriter.replace_op(quotient, [product])
