"""Errors that correct kernels of a function have, as parts of the root mean square of the values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.runtime.bundle import FunctionBundle, PlainKernel
from stepladder.runtime.element_types import element_type
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import Generic, Program
from stepladder.runtime.reference_operations import is_float
from stepladder.verify.tolerance import Tolerance

# The step that makes one kernel of an attention, and that which rounds weights.
_ATTENTION, _ROUND_WEIGHTS = "distribute_attention", "round_weights"


def problems_of(bundle: FunctionBundle) -> list[Problem]:
    """Returns what the matmuls of a function compute, with those of groups.

    Args:
        bundle: of the function.
    """
    problems: list[Problem] = []
    for launch in bundle.manifest.launches:
        problems += [bundle.matmul(launch).manifest.problem] if launch.kernel is None else launch.grouped
    return problems


def error_of_matmuls(problems: Sequence[Problem]) -> float:
    """Returns the error that the orders of summation and the matrix units of matmuls add, and the rounding of their
    results, as a part of the root mean square of the values.

    Args:
        problems: of the matmuls; those of integers are exact.
    """
    return sum(Tolerance.of(problem).norm for problem in problems if not element_type(problem.acc_type).is_integer)


def norm_tolerance(bundle: FunctionBundle) -> float:
    """Returns how far the results of a function may be from exact ones: the norm of the error over that of the values.

    For functions whose ops keep relative errors as they are: matmuls by weights that do not depend on the errors, which
    turn an error of a part of the norm into one of the same part, products, sums of independent values, norms, and
    activations of slope 1. The errors of kernels add (triangle inequality): those of matmuls (`Tolerance.norm`), half a
    unit in the last place for each rounded result of another kernel, and each rounding of scores and weights of an
    attention in one kernel, and those of sums in f32.

    Args:
        bundle: of the function.
    """
    problems = problems_of(bundle)
    by_matmuls = {launch.operands["c"] for launch in bundle.manifest.launches if launch.kernel is None}
    for launch in bundle.manifest.launches:
        if launch.kernel is not None and launch.grouped:
            written = [item.role for item in launch.kernel.arguments if item.access != "read"]
            by_matmuls |= {launch.operands[role] for role in written}
    written = {number for launch in bundle.manifest.launches for number in launch.written} - by_matmuls
    rounding = sum(element_type(bundle.manifest.buffers[place].element_type).unit_roundoff for place in written)
    rounding += _error_of_scores(bundle) + error_of_rounded_weights(bundle)
    return error_of_matmuls(problems) + rounding + error_of_sums(bundle.reference, in_f32=True)


def _error_of_scores(bundle: FunctionBundle) -> float:
    """Returns the error of what attentions in one kernel round in registers: weights, and scores where the program
    rounds them."""
    # Two products, of a multiplication and an addition each, for every score and element of a head.
    scores = {kernel.flops // (4 * kernel.arguments[0].shape[-1]) for kernel in _attentions(bundle)}
    return sum(
        element_type(operation.type).unit_roundoff
        for item in bundle.reference.instructions
        if isinstance(item, Generic) and math.prod(item.sizes) in scores
        for operation in item.body
        if operation.name == "arith.truncf"
    )


def error_of_rounded_weights(bundle: FunctionBundle) -> float:
    """Returns the error of weights of attentions that are rounded though the program does not say so, as a part of the
    root mean square of the values.

    Args:
        bundle: of the function.
    """
    if _ROUND_WEIGHTS not in bundle.manifest.steps:
        return 0.0
    return sum(element_type(kernel.arguments[0].element_type).unit_roundoff for kernel in _attentions(bundle))


def _attentions(bundle: FunctionBundle) -> list[PlainKernel]:
    """Returns the kernels of attentions."""
    kernels = [launch.kernel for launch in bundle.manifest.launches]
    return [kernel for kernel in kernels if kernel is not None and _ATTENTION in kernel.steps]


def error_of_sums(program: Program, *, in_f32: bool) -> float:
    """Returns the error of sums that are rounded term by term, as a part of the root mean square of the values.

    Additions to nearest have independent errors of at most u of the partial sum. Of n terms of zero mean the expected
    error is at most u sqrt(n/6) of the sums' mean square root, as `Tolerance` derives for f16 accumulators; of positive
    terms, whose partial sums grow evenly, u sqrt(n)/3. As there, u sqrt(n/2) is allowed.

    Args:
        program: the reference.
        in_f32: whether sums of 16 bits are f32, as those of kernels without matrix units, and not in the type that the
            program says.
    """
    error = 0.0
    for item in program.instructions:
        if not isinstance(item, Generic) or not is_float(item.types[0]):
            continue
        terms = math.prod(size for loop, size in enumerate(item.sizes) if loop not in item.maps[-1])
        if terms > 1:
            type_ = "f32" if in_f32 and item.types[0] != "f64" else item.types[0]
            error += element_type(type_).unit_roundoff * math.sqrt(terms / 2)
    return error
