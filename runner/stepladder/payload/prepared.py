"""The problem and the roles of a payload whose A or B elementwise ops prepare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.consumers import MAX_OPERANDS
from stepladder.payload.producers import Producer
from stepladder.payload.refusal import refuse
from stepladder.runtime.problem import EpilogueOperand, epilogue_role

if TYPE_CHECKING:
    from stepladder.payload.matmul import PayloadMatmul


def with_producers(
    matmul: PayloadMatmul, producers: Sequence[Producer], module: ir.Operation | ir.OpView
) -> PayloadMatmul:
    """Returns the matmul of a payload, given that of the function which `producers.separate` has left.

    The largest argument that a producer reads has the role of the operand that it makes, and the others are operands of
    elementwise ops. Sums of A and B, which the epilogue reads, are made of the same arguments.

    Args:
        matmul: with roles of the arguments that represent results of producers.
        producers: what was separated.
        module: of the function that was left.

    Raises:
        StepladderError: a result that something else reads too, or a producer that reads another operand of the matmul
            alone, or makes a B of a pair of products, or more operands than a manifest has roles for.
    """
    numbers = [item.number for item in producers]
    # Arguments for results of producers are after the payload's own; those for results of the function are behind.
    first, last = min(numbers), max(numbers)
    roles = {
        number - (len(numbers) if number > last else 0): role
        for number, role in matmul.roles.items()
        if not first <= number <= last
    }
    arguments = walk(module, "func.func")[0].regions[0].blocks[0].arguments
    # Operands of the epilogue that producers make come last, as their arguments do.
    sums = [item for item in producers if _is_epilogue_operand(matmul, item)]
    count = len(matmul.problem.epilogue_operands) - len(sums)
    operands = list(matmul.problem.epilogue_operands)[:count]
    sources: dict[str, EpilogueOperand] = {}
    for item in (item for item in producers if item not in sums):
        role = matmul.roles.get(item.number, "")
        free = [number for number in item.arguments if number not in roles]
        _check_producer(matmul, item, role, roles, has_own_argument=bool(free))
        source = max(free, key=lambda number: math.prod(ir.ShapedType(arguments[number].type).shape))
        roles[source] = role
        sources[role[0]] = _operand(arguments[source])
        for number in (candidate for candidate in free if candidate != source):
            if len(operands) == MAX_OPERANDS:
                raise refuse(item, f"elementwise ops read more than {MAX_OPERANDS} arguments beside A, B and C")
            roles[number] = epilogue_role(len(operands))
            operands.append(_operand(arguments[number]))
    problem = replace(
        matmul.problem,
        epilogue_operands=tuple(operands),
        producers=tuple(name for item in producers for name in item.operations),
        a_source=sources.get("a"),
        b_source=sources.get("b") or (sources.get("a") if matmul.problem.b_is_a else None),
    )
    return replace(matmul, problem=problem, roles=roles, form="prepared")


def _check_producer(
    matmul: PayloadMatmul, item: Producer, role: str, roles: Mapping[int, str], *, has_own_argument: bool
) -> None:
    """Refuses a producer of what is no A or B, or one that reads what another op has written or takes as an operand."""
    if matmul.problem.products > 1 and role in ("b", epilogue_role(matmul.problem.second_b or 0)):
        raise refuse(
            item,
            "elementwise ops compute a B operand of a pair of products",
            "accepted: elementwise ops that compute A; each B is an argument, as it is or through views",
        )
    if role not in ("a", "b", "ab"):
        raise refuse(
            item, "a producer of A or B is read by an op other than the product", "accepted: A and B are read once"
        )
    results = [roles[number] for number in item.arguments if roles.get(number, "").startswith(("c", "r"))]
    if results:
        raise refuse(
            item, f"a producer of A or B reads {results[0].upper()}, which the function writes", "accepted: another"
        )
    if not has_own_argument:
        raise refuse(
            item,
            "the producer of A or B reads only arguments that are operands of the product or of other ops",
            "accepted: a buffer of its own",
        )


def _is_epilogue_operand(matmul: PayloadMatmul, item: Producer) -> bool:
    """Returns whether elementwise ops on the product read what a producer makes."""
    return matmul.problem.products == 1 and matmul.roles.get(item.number, "").startswith("d")


def _operand(argument: ir.BlockArgument) -> EpilogueOperand:
    type_ = ir.ShapedType(argument.type)
    return EpilogueOperand(str(type_.element_type), tuple(type_.shape))
