"""Selects the function of a payload that is compiled, from a module with others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.arguments import check_ranks
from stepladder.payload.constants import ConstantData, constants_of, lift
from stepladder.payload.inlining import entries, inlined
from stepladder.payload.refusal import refuse
from stepladder.payload.rewrites import (
    dead_code,
    expansions,
    identities,
    packed_i4,
    position_operands,
    shared_inputs,
    shift_distances,
)
from stepladder.payload.windows import pitched_arguments, settle, spread
from stepladder.runtime.errors import StepladderError

# Names that PTX takes for an entry point, to which "_kernel" is added.
_ENTRY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_PRODUCT = re.compile(
    r"linalg\.(\w*matmul\w*|\w*matvec|\w*vecmat|contract|\w*mmt4d|dot|conv_\w+)|tosa\.(matmul|\w*conv2d)"
)


@dataclass(frozen=True)
class Selection:
    """The function that is compiled, in a module of its own.

    Attributes:
        module: with the function alone; the payload itself where it holds nothing else.
        function: its name in the payload; None where the payload has no function with a body.
        others: names of the other functions, which stay in the payload as they are.
        constants: the data of constants that are arguments of the function in the new module, by index.
    """

    module: ir.Module
    function: str | None = None
    others: tuple[str, ...] = ()
    constants: Mapping[int, ConstantData] = field(default_factory=dict)


def select(module: ir.Module, name: str | None = None) -> Selection:
    """Returns the function of a payload that is compiled.

    Its name in the new module is one that PTX takes; characters that PTX does not take become underscores. The
    functions that it calls are part of it (`payload.inlining`). It is rewritten to ops that pipelines take, without
    ops that no result depends on (`payload.rewrites`). Buffers with gaps become windows of buffers without
    (`payload.windows`), and constants of several elements become arguments after its own.

    Args:
        module: the payload, which stays as it is but for powers, i4, shifts, identities and unread parts, unless it
            holds the function alone.
        name: of the function; None for the only one with a body that no other one calls, or with a contraction in it.

    Raises:
        StepladderError: no function of that name, several with a contraction and no name, a buffer of unknown rank, a
            constant without data, or as `packed_i4.unpack`.
    """
    functions = walk(module, "func.func")
    bodies = _candidates(functions, name)
    if not bodies:
        return Selection(module)
    copy = inlined(module, bodies)  # it owns the function from here on
    if copy is not None:
        wanted = [_name_of(function) for function in bodies]
        bodies = [function for function in walk(copy, "func.func") if _name_of(function) in wanted]
    function = _only_one(bodies)
    if walk(function, "gpu.launch_func"):  # with the kernels that it launches
        return Selection(module, _name_of(function))
    check_ranks(function)
    _rewrite(function)
    name = _name_of(function)
    others = tuple(_name_of(other) for other in functions if _name_of(other) != name)
    entry = name if _ENTRY.fullmatch(name) else _entry(name)
    is_alone = not others and function.parent == module.operation and _holds_nothing_else(module)
    if is_alone and entry == name and not constants_of(function) and not pitched_arguments(function):
        return Selection(module, name)
    with function.location:
        alone = ir.Module.create()
        clone = function.clone()
        alone.body.append(clone)
    clone.attributes["sym_name"] = ir.StringAttr.get(entry)
    spread(clone.operation)
    return Selection(alone, name, others, lift(clone.operation))


def _candidates(functions: Sequence[ir.Operation], name: str | None) -> list[ir.Operation]:
    """Returns the function of a name, or those with a body that no other one calls; none where none has a body."""
    bodies = [function for function in functions if len(function.regions[0].blocks)]
    if name is None:
        return entries(bodies) if bodies else []
    named = [function for function in bodies if _name_of(function) == name]
    if not named:
        known = ", ".join(f"@{_name_of(function)}" for function in functions)
        raise StepladderError(
            f"the payload has no function @{name} with a body", notes=[f"its functions: {known or 'none'}"]
        )
    return named


def _only_one(bodies: list[ir.Operation]) -> ir.Operation:
    """Returns the one function, or the one of several that may have a contraction."""
    if len(bodies) > 1:
        bodies = [function for function in bodies if _has_product(function)] or bodies
    if len(bodies) > 1:
        names = ", ".join(f"@{_name_of(function)}" for function in bodies)
        raise refuse(
            bodies[1],
            f"{len(bodies)} functions in the payload; a pipeline accepts one: {names}",
            "--function NAME chooses one",
        )
    return bodies[0]


def _rewrite(function: ir.Operation) -> None:
    """Rewrites a function to ops that pipelines take, without ops that no result depends on."""
    dead_code.eliminate(function, _may_multiply)
    settle(function)
    expansions.expand(function)
    packed_i4.unpack(function)
    shift_distances.compute(function)
    shared_inputs.unify(function)
    dead_code.fold(function)
    identities.forward(function)
    position_operands.replace(function)
    dead_code.eliminate(function, _may_multiply)


def _name_of(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _entry(name: str) -> str:
    """Returns a name that PTX takes, for one that it does not."""
    letters = re.sub(r"[^A-Za-z0-9_$]", "_", name)
    return letters if _ENTRY.fullmatch(letters) else f"f_{letters}"


def _has_product(function: ir.Operation) -> bool:
    """Returns whether a function has an op that may be a contraction: one by its name, or a reduction."""
    return any(map(_may_multiply, walk(function)))


def _may_multiply(op: ir.Operation) -> bool:
    """Returns whether an op may be a contraction, by its name, or as a reduction."""
    is_reduction = "linalg.iterator_type<reduction>" in str(op.attributes.get("iterator_types", ""))
    return _PRODUCT.fullmatch(op.name) is not None or is_reduction


def _holds_nothing_else(module: ir.Module) -> bool:
    """Returns whether a module has one op; state of PyTorch's random numbers, which nothing uses, does not count."""
    ops = [op.operation for op in module.body.operations]
    return sum(op.name != "ml_program.global" for op in ops) == 1
