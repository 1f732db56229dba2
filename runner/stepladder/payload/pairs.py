"""Recognizes a pair of products: an elementwise function of two products of one A, such as SwiGLU's act(AB) * AC.

A function with two contractions is divided where their results meet. The part of the second product returns the value
that crosses, and the part of the first one takes it as an argument: each is a payload of one matmul, which the rule and
the front know (`matmul`), and together they are a pair if they multiply one A in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.traverse import defining_op, walk
from stepladder.payload import consumers
from stepladder.payload.front import bodies
from stepladder.payload.refusal import refuse
from stepladder.payload.signature import set_signature
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import EpilogueOperand, Problem, epilogue_role

# Ops after which a tensor or a buffer holds the same elements.
_VIEWS = (
    "bufferization.to_tensor",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.cast",
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.cast",
)
ACCEPTED = (
    "accepted: two products of one A, with B of one shape, type and layout, whose results elementwise ops combine "
    "element by element"
)


@dataclass(frozen=True)
class Parts:
    """A function with two contractions, as two functions of one each, in modules of their own.

    Attributes:
        first: with one argument more, the last one: the value that crosses.
        second: returns that value.
        crossing: number of that argument.
        contraction: the second one.
    """

    first: ir.Module
    second: ir.Module
    crossing: int
    contraction: ir.Operation


@dataclass(frozen=True)
class Found:
    """One matmul, as `matmul.PayloadMatmul` has it: its problem, the roles of arguments, and its location."""

    problem: Problem
    roles: dict[int, str]
    location: str


def divisions(module: ir.Module | ir.Operation | ir.OpView) -> list[Parts]:
    """Returns how the function of a payload divides into two of one contraction each.

    Args:
        module: the payload.

    Returns:
        At most two divisions, one for each contraction as the first; none where the payload has other than one
        function of one block or other than two contractions, or where one takes the result of the other.
    """
    functions = [op for op in walk(module, "func.func") if len(op.regions[0].blocks) == 1]
    if len(functions) != 1:
        return []
    (function,) = functions
    operations = [op.operation for op in function.regions[0].blocks[0].operations]
    contractions = [place for place, op in enumerate(operations) if is_contraction(op)]
    if len(contractions) != 2:
        return []
    depends = _dependences(operations, contractions)
    if contractions[0] in _of(operations[contractions[1]], depends):
        return []
    parts = []
    for first, second in (contractions, reversed(contractions)):
        crossing = {
            operand
            for op in operations
            if op.name != "func.return" and {first, second} <= _of(op, depends)
            for operand in op.operands
            if depends.get(operand) == {second}
        }
        if len(crossing) == 1:
            parts.append(_divided(function, operations, crossing.pop(), operations[second]))
    return parts


def is_contraction(op: ir.Operation) -> bool:
    """Returns whether an op on tensors adds products of two operands along some loop.

    Args:
        op: any op.
    """
    if not op.name.startswith("linalg.") or len(op.results) != 1 or len(op.regions) != 1:
        return False
    try:
        item = bodies.structured(op)
    except StepladderError:
        return False
    return bodies.reduces(item) and bodies.factors(item) is not None


def _of(op: ir.Operation, depends: dict[ir.Value, set[int]]) -> set[int]:
    """Returns the contractions that the operands of an op depend on."""
    return set().union(*(depends.get(operand, set()) for operand in op.operands))


def _dependences(operations: list[ir.Operation], contractions: list[int]) -> dict[ir.Value, set[int]]:
    """Returns the contractions, by position, that each value depends on."""
    depends: dict[ir.Value, set[int]] = {}
    for place, op in enumerate(operations):
        contractions_of_op = _of(op, depends) | ({place} if place in contractions else set())
        depends |= dict.fromkeys(op.results, contractions_of_op)
    return depends


def _divided(
    function: ir.Operation, operations: list[ir.Operation], crossing: ir.Value, contraction: ir.Operation
) -> Parts:
    """Returns the parts of a function whose value `crossing` goes from the second to the first."""
    maker = defining_op(crossing)
    place, number = (
        operations.index(maker),
        next(number for number, value in enumerate(maker.results) if value == crossing),
    )

    def copy() -> tuple[ir.Module, ir.Operation, list[ir.Operation]]:
        with function.location:
            alone = ir.Module.create()
            alone.body.append(function.clone())
        clone = walk(alone, "func.func")[0]
        return alone, clone, [op.operation for op in clone.regions[0].blocks[0].operations]

    first, part, ops = copy()
    block = part.regions[0].blocks[0]
    count = len(block.arguments)
    argument = block.add_argument(crossing.type, function.location)
    ops[place].results[number].replace_all_uses_with(argument)
    set_signature(part, [result.type for result in ops[-1].operands])
    _erase_unused(part)

    second, part, ops = copy()
    for op in ops:
        if op.name in ("bufferization.materialize_in_destination", "func.return"):
            op.erase()
    with ir.InsertionPoint(part.regions[0].blocks[0]), contraction.location:
        ir.Operation.create("func.return", operands=[ops[place].results[number]])
    set_signature(part, [crossing.type])
    _erase_unused(part)
    return Parts(first, second, count, contraction)


def _erase_unused(function: ir.Operation) -> None:
    """Erases the ops whose results nothing uses, the last ones first."""
    for op in reversed([op.operation for op in function.regions[0].blocks[0].operations]):
        if len(op.results) and not any(list(result.uses) for result in op.results):
            op.erase()


def combine(parts: Parts, find: Callable[[ir.Module], Found]) -> Found:
    """Returns the problem and the roles of a pair.

    Args:
        parts: of the function.
        find: finds the one matmul of a part.

    Raises:
        StepladderError: a part is no payload of one matmul, or the two are no pair.
    """
    first, second = find(parts.first), find(parts.second)
    a, b = ({role: number for number, role in product.roles.items()} for product in (first, second))
    if "ab" in a or "ab" in b or a["a"] != b["a"] or a["b"] == b["b"]:
        raise refuse(parts.contraction, "a second product whose A is not that of the first", ACCEPTED)
    names = (
        "m",
        "n",
        "k",
        "a_type",
        "b_type",
        "acc_type",
        "a_layout",
        "b_layout",
        "batch",
        "a_broadcast",
        "b_broadcast",
    )
    for name in names:
        left, right = getattr(first.problem, name), getattr(second.problem, name)
        if left != right:
            raise refuse(
                parts.contraction, f"a second product whose {name} is {right}, and {left} of the first", ACCEPTED
            )
    if second.problem.accumulate:
        raise refuse(
            parts.contraction, "a second product with C as its initial value", "accepted: an initial value of zero"
        )
    if any(first.problem.window(role) is not None for role in "ab") or second.problem.has_windows:
        raise refuse(parts.contraction, "a pair of products whose A or B is a part of a buffer", ACCEPTED)
    if second.problem.results:
        raise refuse(parts.contraction, "a second product with several uses", ACCEPTED)
    _check_reads(parts)
    return Found(*_joined(parts, first, second, b["b"]), location=first.location)


def _check_reads(parts: Parts) -> None:
    """Refuses elementwise ops of the first part that read what crosses in another order than they write."""
    pending: list[ir.Value] = [walk(parts.first, "func.func")[0].regions[0].blocks[0].arguments[parts.crossing]]
    while pending:
        for use in pending.pop().uses:
            op = use.owner.operation
            if op.name in _VIEWS:
                pending.append(op.results[0])
            elif consumers.is_consumer(op):
                maps = indexing_maps(op)
                if maps[use.operand_number] != maps[-1]:
                    raise refuse(
                        op, f"{op.name} reads a product with the indexing map {maps[use.operand_number]}", ACCEPTED
                    )
                pending += list(op.results)


def _joined(parts: Parts, first: Found, second: Found, second_b: int) -> tuple[Problem, dict[int, str]]:
    """Returns the problem of a pair, and the roles of the function's arguments."""
    shapes = {second_b: EpilogueOperand(second.problem.b_type, second.problem.b_shape)}
    roles: dict[int, str] = {}
    for product in (second, first):
        for number, role in product.roles.items():
            if role in product.problem.epilogue_roles and number != parts.crossing:
                operand = product.problem.operand(role)
                shapes[number] = EpilogueOperand(operand.element_type, operand.shape, operand.by_value)
            elif product is first and number != parts.crossing:
                roles[number - (number > parts.crossing)] = role
    numbers = sorted(shapes)
    shared = [number for number in numbers if number in roles]
    if shared:
        role = roles[shared[0]].upper()
        raise refuse(
            parts.contraction, f"argument {shared[0]} is {role} of one product, and an operand of both", ACCEPTED
        )
    if len(numbers) > consumers.MAX_OPERANDS:
        text = f"{len(numbers)} arguments beside A, B and C; accepted: at most {consumers.MAX_OPERANDS}"
        raise refuse(parts.contraction, text)
    roles |= {number: epilogue_role(place) for place, number in enumerate(numbers)}
    problem = replace(
        first.problem,
        consumers=(*second.problem.consumers, *first.problem.consumers),
        epilogue_operands=tuple(shapes[number] for number in numbers),
        second_b=numbers.index(second_b),
    )
    return problem, roles
