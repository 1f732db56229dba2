"""Recognizes elementwise ops on the product: the consumers that an epilogue computes in registers."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.linalg_ops import indexing_maps, loops_of
from stepladder.mlir.rounding import rounds_to_nearest
from stepladder.mlir.traverse import producer
from stepladder.payload.refusal import refuse
from stepladder.runtime.element_types import FP8_TYPES

# Named ops of linalg that are elementwise; others that are not in `linalg.generic` form are no consumers.
NAMED = frozenset(
    f"linalg.{name}"
    for name in (
        *("abs", "add", "broadcast", "ceil", "copy", "div", "elementwise", "erf", "exp", "floor", "log", "map", "max"),
        *("min", "mul", "negf", "reciprocal", "rsqrt", "select", "sqrt", "square", "sub", "tanh", "transpose"),
    )
)
# Scalar ops that the emulator, the reference program and the lowering to NVVM all compute, on floating point and
# integers of these types.
SCALAR_OPS = frozenset(
    f"arith.{name}"
    for name in (
        *("addf", "addi", "andi", "bitcast", "ceildivsi", "ceildivui", "cmpf", "cmpi", "constant", "divf", "divsi"),
        *("divui", "extf", "extsi", "extui", "floordivsi", "fptosi", "fptoui", "maximumf", "maxnumf", "maxsi", "maxui"),
        *("minimumf", "minnumf", "minsi", "minui", "mulf", "muli", "negf", "ori", "remf", "remsi", "remui", "select"),
        *("shli", "shrsi", "shrui", "sitofp", "subf", "subi", "truncf", "trunci", "uitofp", "xori"),
    )
) | frozenset(
    f"math.{name}"
    for name in (
        *("absf", "absi", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign"),
        *("cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fma", "log", "log10", "log1p", "log2"),
        *("powf", "round", "roundeven", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh"),
    )
)
# Ops that are undefined for some right-hand operands, which must not come from an operand.
SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")
_DIVISIONS = tuple(
    f"arith.{name}" for name in ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")
)
_TYPES = ("f16", "bf16", "f32", "i1", "i8", "i16", "i32", "i64")
# Scalars that the caller passes to a kernel.
_NUMBER_TYPES = ("f16", "bf16", "f32", "i8", "i32")
OPERAND_TYPES = (*_NUMBER_TYPES, *FP8_TYPES)
# Ops on fp8, which no instruction adds or multiplies.
_OF_FP8 = ("arith.constant", "arith.extf", "arith.select", "arith.truncf")

# Operands that the manifest of a kernel has roles for.
MAX_OPERANDS = 8

_SCALARS = "accepted in an elementwise op: " + ", ".join(sorted(SCALAR_OPS))


def is_consumer(op: ir.Operation) -> bool:
    """Returns whether an op may be an elementwise op: `linalg.generic` or a named one.

    Args:
        op: any op.
    """
    return op.name == "linalg.generic" or op.name in NAMED


def parts(op: ir.Operation) -> tuple[list[ir.Value], ir.Value]:
    """Returns the inputs and the one output of an elementwise op.

    Args:
        op: an elementwise op, on tensors or buffers; its last operand is the output.
    """
    *inputs, output = op.operands
    return inputs, output


def maps_of(op: ir.Operation) -> list[ir.AffineMap]:
    """Returns the indexing maps of a structured op, inputs first.

    Args:
        op: a linalg op, named or `linalg.generic`.
    """
    return indexing_maps(op)


def reads_output(op: ir.Operation) -> bool:
    """Returns whether the body of a structured op with one output reads what the output held.

    Args:
        op: a linalg op, named or `linalg.generic`.
    """
    arguments = op.regions[0].blocks[0].arguments
    return len(arguments) == len(op.operands) and bool(list(arguments[len(arguments) - 1].uses))


def check(op: ir.Operation, rank: int) -> None:
    """Checks that an op computes each element of one output from the elements of its inputs at the same position.

    Args:
        op: the op.
        rank: of C: two, or three in a batch.

    Raises:
        StepladderError: a reduction, several results, `linalg.index`, other indexing maps than those of whole operands,
            types or scalar ops that an epilogue does not compute.
    """
    if len(op.results) > 1 or _outputs(op) > 1:
        raise refuse(op, f"{op.name} has {_outputs(op)} results; an epilogue op must have one")
    iterators = [str(iterator) for iterator in op.attributes.get("iterator_types", ())]
    *inputs, output = maps_of(op)
    if any("reduction" in iterator for iterator in iterators) or output.n_dims != len(output.results):
        raise refuse(op, f"{op.name} is a reduction; an epilogue op must be elementwise")
    if output != ir.AffineMap.get_identity(output.n_dims):
        raise refuse(
            op, f"{op.name} writes its result with the indexing map {output}; it must be the identity map of its loops"
        )
    if output.n_dims > rank:
        raise refuse(op, f"{op.name} has {output.n_dims} loops; it must have those of C, {rank}")
    for map_ in inputs:
        check_map(op, map_)
    for operand in op.operands:
        check_type(op, operand)
    for inner in [item.operation for item in op.regions[0].blocks[0].operations][:-1]:
        check_scalar(inner, op)


def _outputs(op: ir.Operation) -> int:
    segments = op.attributes.get("operandSegmentSizes", None)
    return list(ir.DenseI32ArrayAttr(segments))[1] if segments is not None else 1


def check_map(op: ir.Operation, map_: ir.AffineMap) -> None:
    """Checks that the map of an input is that of a whole operand.

    Args:
        op: the elementwise op, which the message names.
        map_: from loops to indices of the input; each result is another loop, or 0.

    Raises:
        StepladderError: another expression than a loop or 0, or a loop that the map names twice.
    """
    dims = loops_of(map_)
    constants = [expression for expression in map_.results if not isinstance(expression, ir.AffineDimExpr)]
    is_zero = all(isinstance(item, ir.AffineConstantExpr) and item.value == 0 for item in constants)
    if len(set(dims)) < len(dims) or not is_zero:
        raise refuse(
            op,
            f"{op.name} reads an operand with the indexing map {map_}; it must be a projected permutation, with "
            f"or without constants 0",
        )


def check_type(op: ir.Operation, operand: ir.Value) -> None:
    """Checks that an epilogue reads or writes operands of a type and shape.

    Args:
        op: the elementwise op, which the message names.
        operand: one of its operands; a scalar that an op makes is accepted, since it is a constant.

    Raises:
        StepladderError: dynamic shapes, or a scalar or elements of another type than `OPERAND_TYPES`.
    """
    type_ = operand.type
    if not isinstance(type_, (ir.RankedTensorType, ir.MemRefType)):
        if isinstance(operand.owner, ir.Block):
            _check_number(op, operand)
        return
    if not ir.ShapedType(type_).has_static_shape:
        raise refuse(
            op,
            f"{op.name} has an operand of type {type_}; shapes must be static",
            "accepted: static shapes, or sizes by --bind",
        )
    if str(type_.element_type) not in OPERAND_TYPES and not (str(type_.element_type) == "i1" and _is_between(operand)):
        raise refuse(
            op, f"{op.name} has an operand of type {type_}; accepted element types: {', '.join(OPERAND_TYPES)}"
        )


def _is_between(operand: ir.Value) -> bool:
    """Returns whether an operand is what an elementwise op makes for another, or the empty tensor that it writes."""
    source = producer(operand)
    return source is not None and (source.name == "tensor.empty" or is_consumer(source))


def _check_number(op: ir.Operation, number: ir.Value) -> None:
    """Refuses a scalar that is an argument of the function, of a type that kernels do not take."""
    if str(number.type) not in _NUMBER_TYPES:
        raise refuse(
            op,
            f"{op.name} has a scalar argument of type {number.type}",
            f"accepted: scalars of {', '.join(_NUMBER_TYPES)}",
        )


def numbers_of(op: ir.Operation) -> list[int]:
    """Returns which arguments of the function are scalars that an op computes with, as inputs or in its body.

    Args:
        op: a linalg op at the top level of the function.
    """
    body = op.regions[0].blocks[0]
    inputs = [operand for operand, argument in zip(op.operands, body.arguments) if list(argument.uses)]
    inner = [value for item in body.operations for value in item.operation.operands if value not in body.arguments]
    numbers = [
        ir.BlockArgument(value).arg_number
        for value in (*inputs, *inner)
        if isinstance(value.owner, ir.Block) and not isinstance(value.type, (ir.RankedTensorType, ir.MemRefType))
    ]
    return list(dict.fromkeys(numbers))


def check_scalar(inner: ir.Operation, op: ir.Operation) -> None:
    """Checks that an epilogue computes an op in the body of an elementwise op.

    Args:
        inner: the scalar op.
        op: the elementwise op around it.

    Raises:
        StepladderError: another op, type or rounding mode than an epilogue computes, or a scalar that is an argument of
            the function, of another type than `OPERAND_TYPES`.
    """
    if inner.name not in SCALAR_OPS:
        raise refuse(inner, f"'{inner.name}' in {op.name} is not supported in an epilogue", _SCALARS)
    for value in inner.operands:
        if isinstance(value.owner, ir.Block) and value.owner.owner != op:
            _check_number(op, value)
    for value in (*inner.operands, *inner.results):
        if str(value.type) in FP8_TYPES:
            check_fp8(inner)
        elif str(value.type) not in _TYPES:
            raise refuse(inner, f"'{inner.name}' on {value.type}; accepted in an epilogue: {', '.join(_TYPES)}")
    if not rounds_to_nearest(inner):
        raise refuse(inner, f"{inner.name} with a rounding mode other than to nearest")
    check_right(inner)
    if inner.name == "arith.sitofp" and bits_of_name(str(inner.operands[0].type)) == 1:
        raise refuse(inner, "arith.sitofp of i1")


def check_fp8(inner: ir.Operation) -> None:
    """Checks that an op on fp8 is none that computes with it.

    Args:
        inner: a scalar op in a body, with an operand or a result of fp8.

    Raises:
        StepladderError: arithmetic, a cast from or to integers, or a rounding of another type than f16, bf16 and f32.
    """
    accepted = "accepted on fp8: arith.extf of it, arith.truncf to it from f16, bf16 or f32, arith.select"
    if inner.name not in _OF_FP8:
        raise refuse(inner, f"'{inner.name}' on fp8", accepted)
    if inner.name == "arith.truncf" and str(inner.operands[0].type) not in ("f16", "bf16", "f32"):
        raise refuse(inner, f"arith.truncf of {inner.operands[0].type} to fp8", accepted)


def check_right(inner: ir.Operation) -> None:
    """Checks that the right-hand operand of a shift or of a division of integers is one for which it is defined.

    Args:
        inner: a scalar op in a body.

    Raises:
        StepladderError: a value from an operand, or a division by 0.
    """
    if inner.name not in (*SHIFTS, *_DIVISIONS):
        return
    accepted = "accepted: a constant, or a value computed from linalg.index"
    if _depends_on_operands(inner.operands[1]):
        reason = "may be wider than the type" if inner.name in SHIFTS else "may be 0"
        raise refuse(inner, f"'{inner.name}' by an element of an operand, which {reason}", accepted)
    check_divisor(inner)


def check_divisor(inner: ir.Operation) -> None:
    """Raises StepladderError for a division of integers by a constant 0, which is undefined for all elements.

    Args:
        inner: a scalar op in a body; a constant that an input of the op repeats counts too.
    """
    if inner.name not in _DIVISIONS:
        return
    right = inner.operands[1]
    if isinstance(right.owner, ir.Block):
        right = right.owner.owner.operands[ir.BlockArgument(right).arg_number]
    number = repeated_number(right)
    if isinstance(number, ir.IntegerAttr) and number.value == 0:
        raise refuse(inner, f"'{inner.name}' by 0", "accepted: another constant, or a value that is not 0 when it runs")


def _depends_on_operands(value: ir.Value) -> bool:
    op = producer(value)
    return op is None or any(_depends_on_operands(operand) for operand in op.operands)
