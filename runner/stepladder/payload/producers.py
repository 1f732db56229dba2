"""Elementwise ops that prepare A or B: separates them from the matmul, which reads their results as arguments.

A producer is the ops that compute an operand of the contraction from arguments of the function, without the views and
extensions that the front accepts. It moves to a function of its own, and an argument takes the place of its result: the
rest is a payload like any other, and neither the rule nor the front knows of producers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.rounding import rounds_to_nearest
from stepladder.mlir.traverse import producer, walk
from stepladder.payload.consumers import NAMED, SCALAR_OPS, check_fp8, check_right
from stepladder.payload.front import bodies
from stepladder.payload.refusal import refuse
from stepladder.payload.rewrites.packed_i4 import NIBBLE
from stepladder.payload.signature import set_signature
from stepladder.runtime.element_types import FP8_TYPES
from stepladder.runtime.errors import StepladderError

# Of a `linalg.transpose`: a kernel before the matmul computes it, as no layout of an operand has its order.
PREPARED = "prepared"
# Scalar ops beside those of epilogues, which compute positions of values in packed ones.
_INDEX_OPS = ("arith.index_cast", "linalg.index")
SCALARS = SCALAR_OPS.union(_INDEX_OPS)
_STORED = (*FP8_TYPES, "f16", "bf16", "f32", "i8", "i32")
_TYPES = (*_STORED, "i1", "i4", "i16", "index")
_NO_SUMS_OF_FP8 = "f16"  # matrix units add products of fp8 in f32
_ACCEPTED = (
    "accepted in producers of A or B: elementwise ops of linalg on tensors, of arguments of the function and "
    "constants, tensor.empty, linalg.fill, tensor.collapse_shape, tensor.expand_shape"
)
_SCALARS = "accepted in an op of a producer: " + ", ".join(sorted(SCALARS))


@dataclass(frozen=True)
class Producer:
    """The producer of an operand of the matmul.

    Attributes:
        number: index of the argument that represents the result in the function of the matmul.
        module: with one function, which has the arguments of the payload's and returns the result; alive as long as it.
        arguments: indices of the arguments that it reads, in order.
        operations: names of its scalar ops, in order.
        location: of the op that made the result.
    """

    number: int
    module: ir.Module
    arguments: tuple[int, ...]
    operations: tuple[str, ...]
    location: ir.Location

    @property
    def body(self) -> ir.Block:
        """Of the function."""
        return walk(self.module, "func.func")[0].regions[0].blocks[0]


def separate(function: ir.Operation, contractions: int = 1, sums: Sequence[ir.Value] = ()) -> list[Producer]:
    """Moves the ops that compute A and B out of a function.

    The function gets an argument for each of their results, after those that it has, and reads that.

    Args:
        function: a `func.func` of one block; it is changed where there are producers.
        contractions: how many the block has; nothing prepares the operands of another number of them.
        sums: of rows or columns of A and B, which elementwise ops on the product read; they are moved out too.

    Returns:
        The producers, as functions of their own; none where A and B are arguments or views of them.

    Raises:
        StepladderError: an op that makes A or B and is not elementwise, or reads what the function has written.
    """
    if len(function.regions[0].blocks) != 1:
        return []
    body = function.regions[0].blocks[0]
    values: list[ir.Value] = []
    factors, sums_types = _factors(body, contractions)
    kinds = {str(_stored_type(factor)) for factor in factors}
    is_of_two = len(kinds) > 1 and not kinds <= set(FP8_TYPES)  # kernels multiply one kind of fp8 by the other
    for factor in factors:
        made_value = _made(factor, extends_fp8=is_of_two or _NO_SUMS_OF_FP8 in sums_types)
        if made_value is not None and made_value not in values:
            values.append(made_value)
    for value in values:
        if str(ir.ShapedType(value.type).element_type) == NIBBLE:
            raise refuse(value, "A or B of i4, which no pipeline supports", "accepted: i4 that an op extends to i8")
    values += sums
    if not values:
        return []
    count = len(body.arguments)
    clusters = [_cluster(value, body, sums) for value in values]
    producers = [
        _outlined(function, value, ops, count + place) for place, (value, ops) in enumerate(zip(values, clusters))
    ]
    for value in values:
        argument = body.add_argument(value.type, value.location)
        value.replace_all_uses_with(argument)
    for op in sorted({op for ops in clusters for op in ops}, key=_places(body).__getitem__, reverse=True):
        if not any(list(result.uses) for result in op.results):
            op.erase()
    set_signature(function)
    return producers


def _places(body: ir.Block) -> dict[ir.Operation, int]:
    return {op.operation: place for place, op in enumerate(body.operations)}


def _is_structured(op: ir.Operation) -> bool:
    return op.name.startswith("linalg.") and len(op.regions) == 1 and op.name not in ("linalg.index", "linalg.fill")


def _structured(op: ir.Operation) -> bodies.Structured | None:
    """Returns a linalg op in its generic form; None for another one, or one with other indexing maps."""
    if not _is_structured(op):
        return None
    try:
        return bodies.structured(op)
    except StepladderError:
        return None


def _factors(body: ir.Block, contractions: int) -> tuple[list[ir.Value], set[str]]:
    """Returns what the contractions of a block multiply, and the types of their sums; nothing where there are more or
    fewer."""
    by_op: list[list[ir.Value]] = []
    sums: set[str] = set()
    for op in body.operations:
        item = _structured(op.operation)
        factors = bodies.factors(item) if item is not None else None
        if item is None or factors is None:
            continue
        if bodies.reduces(item) or "matmul" in item.op.name:
            by_op.append([item.inputs[number] for number in factors])
            sums.add(str(item.yields[0].type))
    return [factor for factors in by_op for factor in factors] if len(by_op) == contractions else [], sums


def _stored_type(value: ir.Value) -> ir.Type:
    """Returns the element type of what an operand of a contraction is a view or an extension of."""
    inner = _extended(value)
    return ir.ShapedType(value.type).element_type if inner is None else _stored_type(inner)


def _extended(value: ir.Value) -> ir.Value | None:
    """Returns the tensor that a value is a view or an extension of; None where it is neither."""
    op = producer(value)
    if op is not None and op.name in TENSOR_VIEWS:
        return op.operands[0]
    if op is not None and PREPARED in op.attributes:
        return None
    item = _structured(op) if op is not None else None
    if item is None or not isinstance(value.type, ir.RankedTensorType):
        return None
    casts = bodies.casts_of_one(item)
    return None if casts is None or not set(casts) <= set(bodies.EXTENSIONS) else item.inputs[0]


def _made(value: ir.Value, *, extends_fp8: bool) -> ir.Value | None:
    """Returns what an elementwise op made, of which an operand of a contraction is a view; None where none did.

    Extensions are those of the contraction, but of i4, and of fp8 where the other operand is no fp8, or sums are of f16
    (`extends_fp8`).
    """
    while True:
        inner = _extended(value)
        if inner is None:
            op = producer(value)
            is_made = op is not None and _structured(op) is not None and isinstance(value.type, ir.RankedTensorType)
            return value if is_made else None
        packed_types = (*FP8_TYPES, NIBBLE) if extends_fp8 else (NIBBLE,)
        types = [str(ir.ShapedType(item.type).element_type) for item in (inner, value)]
        if types[0] in packed_types and types[1] not in packed_types:
            return value
        value = inner


def _captured(op: ir.Operation) -> list[ir.Value]:
    """Returns the operands of an op, and what its body takes from outside."""
    operands = list(op.operands)
    for inner in walk(op):
        for operand in inner.operands:
            owner = operand.owner
            is_inside = owner.owner == op if isinstance(owner, ir.Block) else owner.operation.parent == op
            if inner != op and not is_inside:
                operands.append(operand)
    return operands


def _cluster(value: ir.Value, body: ir.Block, sums: Sequence[ir.Value]) -> list[ir.Operation]:
    """Returns the ops that a value is made by, in order; `sums` may be reductions.

    Raises:
        StepladderError: one that no kernel computes.
    """
    values, ops = {value}, []
    for op in reversed([op.operation for op in body.operations]):
        if not values.intersection(op.results):
            continue
        if not any(result in sums for result in op.results):
            _check(op, body)
        values.update(_captured(op))
        ops.append(op)
    return ops[::-1]


def _check(op: ir.Operation, body: ir.Block) -> None:
    """Raises StepladderError for an op that no kernel before the matmul computes."""
    match op.name:
        case "arith.constant" | "tensor.empty" | "linalg.fill":
            pass
        case name if name in TENSOR_VIEWS:
            pass
        case "bufferization.to_tensor":
            _check_read(op, body)
        case name if _is_structured(op):
            _check_elementwise(bodies.structured(op))
        case _:
            raise refuse(op, f"'{op.name}' computes the source of an operand of the product", _ACCEPTED)
    if op.name == "linalg.fill" and any(isinstance(value.owner, ir.Block) for value in list(op.operands)[:1]):
        raise refuse(op, "linalg.fill with a scalar argument of the function", _ACCEPTED)


def _check_read(op: ir.Operation, body: ir.Block) -> None:
    """Refuses to read a buffer that is no argument, without `restrict`, or after the function has written it."""
    buffer = op.operands[0]
    if not isinstance(buffer.owner, ir.Block) or "restrict" not in op.attributes:
        raise refuse(
            op,
            "a producer of A or B reads a buffer that is a view, or without 'restrict'",
            "accepted: bufferization.to_tensor %argument restrict : ...",
        )
    places = _places(body)
    for use in buffer.uses:
        user = use.owner.operation
        if user.name != "bufferization.to_tensor" and places.get(user, -1) < places[op]:
            raise refuse(op, f"a producer of A or B reads a buffer that {user.name} has used before", _ACCEPTED)


def _check_elementwise(item: bodies.Structured) -> None:
    op = item.op
    if len(item.outputs) != 1 or not isinstance(item.outputs[0].type, ir.RankedTensorType):
        raise refuse(op, f"{op.name} is a producer of A or B with several results or on buffers", _ACCEPTED)
    if item.maps[-1] != list(range(len(item.sizes))):
        raise refuse(
            op,
            f"{op.name} is a producer of A or B that reduces, or writes in an order other than that of its loops",
            "accepted: an op with parallel loops that writes each element of its result once, in the order of its "
            "loops; one that reduces is a function of several kernels (stepladder compile without --pipeline)",
        )
    if bodies.reads_output(item):
        raise refuse(op, f"{op.name} is a producer of A or B that reads the initial value of its output", _ACCEPTED)
    if op.name != "linalg.generic" and op.name not in NAMED:
        raise refuse(op, f"'{op.name}' in a producer of A or B", _ACCEPTED)
    for operand in _captured(op):
        if not isinstance(operand.type, ir.RankedTensorType):
            if isinstance(operand.owner, ir.Block):
                raise refuse(
                    op,
                    f"{op.name} is a producer of A or B with a scalar argument of type {operand.type}",
                    "accepted: a constant, or a tensor of one element; elementwise ops on the product accept scalars",
                )
        elif str(operand.type.element_type) not in (*_STORED, NIBBLE):
            raise refuse(
                op,
                f"{op.name} takes {operand.type}",
                f"accepted element types of sources of A and B: {', '.join(_STORED)}; two numbers of 4 bits are one "
                "of i8, which shifts unpack",
            )
    for inner in item.body:
        _check_scalar(inner, item)


def _check_scalar(inner: ir.Operation, item: bodies.Structured) -> None:
    if inner.name == "tensor.extract":
        raise refuse(
            item.op,
            "a producer of A or B accesses elements at computed indices, such as the windows of a convolution",
            "a kernel of its own copies them: stepladder compile makes a function of several kernels",
        )
    if inner.name not in SCALARS:
        raise refuse(inner, f"'{inner.name}' in {item.op.name}, a producer of A or B", _SCALARS)
    for value in (*inner.operands, *inner.results):
        if str(value.type) in FP8_TYPES:
            check_fp8(inner)
        if str(value.type) not in _TYPES:
            raise refuse(
                inner, f"'{inner.name}' on {value.type} in a producer of A or B", f"accepted: {', '.join(_TYPES)}"
            )
    if not rounds_to_nearest(inner):
        raise refuse(inner, f"{inner.name} with a rounding mode other than to nearest")
    check_right(inner)


def _outlined(function: ir.Operation, value: ir.Value, ops: list[ir.Operation], number: int) -> Producer:
    """Returns what makes a value, as a function of its own."""
    arguments = list(function.regions[0].blocks[0].arguments)
    types = [argument.type for argument in arguments]
    name = ir.StringAttr(function.attributes["sym_name"]).value
    with value.location:
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            new_function = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get(f"{name}_prepare_{number - len(arguments)}"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [value.type])),
                },
                regions=1,
            )
        block = new_function.regions[0].blocks.append(*types, arg_locs=[value.location] * len(types))
        values = clone_ops(ops, dict(zip(arguments, block.arguments)), ir.InsertionPoint(block))
        with ir.InsertionPoint(block):
            ir.Operation.create("func.return", operands=[values[value]])
    read_places = tuple(place for place, argument in enumerate(block.arguments) if list(argument.uses))
    operations = [inner.name for op in ops if _is_structured(op) for inner in bodies.structured(op).body]
    op_names = tuple(name for name in operations if name != "arith.constant")
    return Producer(number, module, read_places, op_names, value.location)
