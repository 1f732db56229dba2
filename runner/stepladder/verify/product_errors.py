"""How far the sums of a kernel's products can be off where elementwise ops make their factors, or follow them."""

from __future__ import annotations

import functools
import math

import numpy as np

from stepladder.runtime.element_types import element_type
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import (
    Generic,
    Program,
)
from stepladder.verify.arrays import Array, NumPyArrays
from stepladder.verify.error_propagation import BoundedEvaluation
from stepladder.verify.reference_evaluation import Evaluation
from stepladder.verify.reference_products import factors_are_exact, product_of, products_of
from stepladder.verify.structured_evaluation import Region
from stepladder.verify.tolerance import Tolerance


class SquaredProduct(Evaluation):
    """A program on given inputs, of which a product has the squares of its factors and starts from zeros: the sums
    that bounds of its errors follow from. Arguments as for `Evaluation`, and the product."""

    def __init__(self, program: Program, inputs: dict[int, np.ndarray], arrays: NumPyArrays, product: Generic) -> None:
        super().__init__(program, inputs, arrays, "float32")
        self._plain = Evaluation(program, inputs, arrays, "float32")
        self._factors, self._starts = set(product.inputs), set(product.outputs)

    def _computed(self, value: int, region: Region) -> Array:
        if value in self._starts:
            return self.filled(0.0, "f32", region)
        if value in self._factors:
            return self._plain.part(value, region, keep=False) ** 2
        return super()._computed(value, region)


class Magnitudes(Evaluation):
    """The product of the factors' magnitudes, which starts from zeros; with the bounds of their errors added to them,
    how far sums can be off is the difference. Two kernels may round values that differ by an error to two that differ
    by a unit in the last place besides: the bounds count twice.

    Args:
        bounded: has values and bounds of the factors.
        program, inputs: as for it.
        with_errors: add the bounds.
    """

    def __init__(
        self, bounded: BoundedEvaluation, program: Program, inputs: dict[int, np.ndarray], *, with_errors: bool
    ) -> None:
        super().__init__(program, inputs, bounded.arrays, "float64")
        self._bounded = bounded
        self._with_errors = with_errors
        product = product_of(program)
        self._factors, self._starts = set(product.inputs), set(product.outputs)

    def _computed(self, value: int, region: Region) -> Array:
        if value in self._starts:
            return self.filled(0.0, "f32", region)
        if value in self._factors:
            magnitude = abs(self._bounded.part(value, region, keep=False))
            return magnitude + self._bounded.error(value, region) * 2 if self._with_errors else magnitude
        return super()._computed(value, region)


class ProductErrors:
    """The errors of the products of a kernel, carried on through the ops after them.

    Args:
        problem: what the kernel computes.
        reference: the same as a program.
        inputs: of the program, by argument number.
        backend: computes the reference.
        is_exact: whether the factors are such that every order of summation gives the same sums.

    Attributes:
        bounded: the program, with the largest errors that a correct kernel can have.
        usual: the same with errors of the products' mean square root, which most elements have.
    """

    def __init__(
        self,
        problem: Problem,
        reference: Program,
        inputs: dict[int, np.ndarray],
        backend: NumPyArrays,
        *,
        is_exact: bool,
    ) -> None:
        self._problem, self._reference, self._inputs, self._arrays = problem, reference, inputs, backend
        self._is_exact = is_exact
        self._tolerance = Tolerance.of(problem)
        products = {item.results[0]: item for item in products_of(reference, problem)}
        self._once = {value: self._rounding(item.types[0]) for value, item in products.items()}
        self._squares = {value: SquaredProduct(reference, inputs, backend, item) for value, item in products.items()}
        self.bounded = BoundedEvaluation(
            reference, inputs, backend, {value: functools.partial(self._largest, value) for value in products}
        )
        self.usual = BoundedEvaluation(
            reference, inputs, backend, {value: functools.partial(self._typical, value) for value in products}
        )

    def _rounding(self, type_: str) -> float:
        """Returns the unit roundoff of a product: of the type that the payload sums in, such as bf16, which kernels
        round their sums to once; exact sums fit in it if C has it."""
        once = element_type(self._problem.acc_type).unit_roundoff
        if self._is_exact and type_ == self._problem.c_type:
            return once
        return max(once, element_type(type_).unit_roundoff)

    def _largest(self, product: int, region: Region) -> Array:
        """Returns the largest errors of sums."""
        sums = self.bounded.part(product, region, keep=False)
        rounding = abs(sums) * self._once[product] + self._of_factors(product, region)
        if self._is_exact:
            return rounding
        squares = self._squares[product].part(product, region, keep=False)
        root = self._arrays.cast(self._arrays.xp.sqrt(squares), "float64")
        if self._problem.is_prepared:
            return rounding + self._tolerance.of_sum(root, sums, self._arrays)
        return rounding + root * self._tolerance.element

    def _typical(self, product: int, region: Region) -> Array:
        """Returns the errors that most sums have."""
        # As float64 also where they are integers, whose squares could wrap.
        sums = self._arrays.cast(self.bounded.part(product, region, keep=False), "float64")
        mean = math.sqrt(float((sums**2).sum()) / math.prod(sums.shape))
        of_sums = 0.0 if self._is_exact else self._tolerance.norm * mean
        return abs(sums) * self._once[product] + of_sums + self._of_factors(product, region)

    def _of_factors(self, product: int, region: Region) -> Array | float:
        """Returns how far sums can be off as functions that make A or B are approximated."""
        if factors_are_exact(self._reference):
            return 0.0
        largest, plain = (
            Magnitudes(self.bounded, self._reference, self._inputs, with_errors=wrong).part(product, region)
            for wrong in (True, False)
        )
        return largest - plain
