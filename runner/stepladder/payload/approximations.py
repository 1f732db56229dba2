"""Tells whether the functions of an epilogue may be approximated: where all its results are rounded to 16 bits."""

from __future__ import annotations

from collections.abc import Iterable

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.runtime.problem import Problem

_FUNCTIONS = ("math.erf", "math.tanh", "math.exp", "math.exp2")
_TYPES = ("f16", "bf16")
_FLAGS = ("fastmath", "fastmathFlags")


def _may_approximate(names: Iterable[str], results: Iterable[str]) -> bool:
    return any(name in _FUNCTIONS for name in names) and all(result in _TYPES for result in results)


def approximates(problem: Problem) -> bool:
    """Tells whether a problem has functions that may be approximated.

    Args:
        problem: whose consumers, C type and further results decide.
    """
    results = [problem.c_type, *(result.element_type for result in problem.results)]
    return _may_approximate(problem.consumers, results)


def rounds_results_to_16_bits(generic: ir.Operation) -> bool:
    """Tells whether all results of a `linalg.generic` are of f16 or bf16.

    Args:
        generic: the op.
    """
    inputs = list(ir.DenseI32ArrayAttr(generic.attributes["operandSegmentSizes"]))[0]
    results = [str(ir.ShapedType(output.type).element_type) for output in list(generic.operands)[inputs:]]
    return all(result in _TYPES for result in results)


def module_approximates(module: ir.Module) -> bool:
    """Tells whether a dump has functions that may be approximated, or are already.

    Args:
        module: the IR after any step.
    """
    for op in walk(module):
        body = op.regions[0].blocks[0].operations if op.name == "linalg.generic" else ()
        if any(inner.operation.name in _FUNCTIONS for inner in body) and rounds_results_to_16_bits(op):
            return True
        if any(name in op.attributes and "afn" in str(op.attributes[name]) for name in _FLAGS):
            return True
    return False
