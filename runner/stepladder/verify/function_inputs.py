"""Random inputs of a function with several kernels, scaled so that products stay near 1."""

from __future__ import annotations

import numpy as np

from stepladder.runtime.bundle import FunctionBundle, Launch
from stepladder.runtime.element_types import element_type
from stepladder.verify.integer_arguments import IntegerArguments
from stepladder.verify.positive_arguments import positive_arguments

_UNSIGNED = 256.0


def random_inputs(bundle: FunctionBundle, seed: int) -> dict[int, np.ndarray]:
    """Returns an array for each argument of a function; constants have their own content.

    Normally distributed values of a standard deviation of 1, or of less for operands of matmuls, so that sums of
    products have 1; integers as `IntegerArguments` draws them. Numbers whose roots the function takes are positive.

    Args:
        bundle: of the function.
        seed: of the numbers.

    Returns:
        Arrays by argument number, of the arguments' shapes and types.
    """
    scales: dict[int, float] = {}
    for launch in bundle.manifest.launches:
        if launch.kernel is None:
            _scale(bundle, launch, scales)
    integers, positive = IntegerArguments(bundle.reference), positive_arguments(bundle.reference)
    arrays = {}
    for place, buffer in bundle.manifest.of_kind("argument"):
        generator = np.random.default_rng([seed, buffer.number])
        element = element_type(buffer.element_type)
        if element.is_integer:
            arrays[buffer.number] = integers.draw(buffer.number, element, buffer.shape, generator)
        else:
            numbers = generator.standard_normal(buffer.shape, np.float32) * np.float32(scales.get(place, 1.0))
            arrays[buffer.number] = (abs(numbers) if buffer.number in positive else numbers).astype(element.dtype)
    return arrays | {buffer.number: bundle.constant(buffer) for _, buffer in bundle.manifest.of_kind("constant")}


def _scale(bundle: FunctionBundle, launch: Launch, scales: dict[int, float]) -> None:
    """Notes the factors of a matmul's operands that are arguments: the smaller buffer, a weight, has that of both."""
    buffers, homes = bundle.manifest.buffers, bundle.manifest.homes
    operands = [homes.get(launch.operands[role], launch.operands[role]) for role in "ab"]
    places = [place for place in operands if buffers[place].kind == "argument"]
    integers = [place for place in places if element_type(buffers[place].element_type).is_integer]
    places = [place for place in places if place not in integers]
    if not places:
        return
    # Integers that a kernel makes an operand of may be read without their sign: those of 8 bits up to 255.
    factor = bundle.matmul(launch).manifest.problem.k ** -0.5 / (_UNSIGNED if integers else 1.0)
    weight = max(places)  # front ends have inputs before weights, or weights alone
    scales[weight] = min(scales.get(weight, 1.0), factor)
