"""Whether the functions of an epilogue may be approximated: where all its results have 16 bits or fewer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import users_of, walk
from stepladder.runtime.element_types import FP8_TYPES
from stepladder.runtime.problem import Problem

_FUNCTIONS = ("math.erf", "math.tanh", "math.exp", "math.exp2")
_TYPES = ("f16", "bf16", *FP8_TYPES)
_FLAGS = ("fastmath", "fastmathFlags")


def _may_approximate(names: Iterable[str], results: Iterable[str]) -> bool:
    return any(name in _FUNCTIONS for name in names) and all(result in _TYPES for result in results)


def approximates(problem: Problem) -> bool:
    """Returns whether a problem has functions that may be approximated.

    Args:
        problem: whose consumers, C type and further results decide.
    """
    results = [problem.c_type, *(result.element_type for result in problem.results)]
    return _may_approximate(problem.consumers, results)


def rounds_results_to_few_bits(generic: ir.Operation) -> bool:
    """Returns whether all results of a `linalg.generic` are of f16, bf16 or fp8.

    Args:
        generic: the op.
    """
    return all(result in _TYPES for result in map(_element, _outputs(generic)))


def module_approximates(module: ir.Module, consumers: Sequence[ir.Operation]) -> bool:
    """Returns whether a dump has functions that may be approximated, or are already.

    Args:
        module: the IR after any step.
        consumers: the elementwise ops on the product, which may not be one op yet.
    """
    if any(name in op.attributes and "afn" in str(op.attributes[name]) for op in walk(module) for name in _FLAGS):
        return True
    functions = [set(walk(function)) for function in walk(module, "func.func")]
    return any(_are_approximated([op for op in consumers if op in function]) for function in functions)


def _are_approximated(consumers: Sequence[ir.Operation]) -> bool:
    """Returns whether the elementwise ops of a function have functions that may be approximated."""
    names = [inner.operation.name for op in consumers for inner in op.regions[0].blocks[0].operations]
    outputs = [value for op in consumers for value in _outputs(op) if not _is_between(value, consumers)]
    return _may_approximate(names, map(_element, outputs))


def _outputs(op: ir.Operation) -> list[ir.Value]:
    """Returns what a linalg op makes: tensors, or what it writes to buffers."""
    if len(op.results):
        return list(op.results)
    return list(op.operands)[list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[0] :]


def _element(value: ir.Value) -> str:
    return str(ir.ShapedType(value.type).element_type)


def _is_between(value: ir.Value, consumers: Sequence[ir.Operation]) -> bool:
    """Returns whether only elementwise ops read a value."""
    users = users_of(value)
    return bool(users) and all(user in consumers for user in users)
