"""Tolerances of floating-point results: the allowed distance from the float64 product."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stepladder.runtime.element_types import FP8_TYPES, element_type
from stepladder.runtime.problem import Problem
from stepladder.verify.arrays import Array, NumPyArrays

# Bits that Hopper's tensor cores keep below the leading one of the largest term when they sum products of fp8.
FP8_BITS = 13


@dataclass(frozen=True)
class Tolerance:
    """The largest error of a correct kernel on normally distributed inputs.

    Let s2 = sum over k of (a_ik b_kj)^2, plus c_ij^2: for independent zero-mean inputs the partial sums of an element
    are a random walk of final variance s2. Bounds relative to |A||B| ignore that and are vacuous here: at K = 16384
    with f16 accumulators, lambda sqrt(K) u |A||B| (Higham and Mary 2019) is dozens of times a typical result. Sharper
    bounds for zero-mean data exist (Higham and Mary, SIAM J. Sci. Comput. 42(5), 2020); what follows is in their
    manner.

    f32 accumulators on tensor cores. Products are aligned to the largest exponent of the step and cut off, not rounded
    (Fasi, Higham, Mikaitis, Pranesh 2021), so errors have a bias and grow linearly. A step of 8 products loses at most
    5 units of u = 2^-23 of the largest partial sum (9 terms cut, a normalisation), there are K/8 steps, and a partial
    sum stays below 8 sqrt(s2) for every element of a matrix that fits in memory: |error| <= 5 K u sqrt(s2). The mean is
    far lower, as a partial sum is sqrt(s2)/2 on average and a cut half a unit: norm(error) <= K u norm(reference).

    The same holds for wgmma, which cuts terms off like mma.sync: its steps of 16 products of f16 or bf16 are fewer, and
    keep no fewer bits of each term.

    f16 accumulators. Each step of n = K/4 (4 products on sm_75, 8 and 16 later: the worst is taken) rounds the partial
    sum to nearest, u = 2^-11, with independent errors of zero mean: given the walk W, the error is normal with variance
    u^2/3 sum(W_i^2), of which the mean is u^2/3 n s2/2. Its tail is exponential: exp(-pi t/2) at t times u/sqrt(3)
    sqrt(n s2); t = 25 leaves 1e-17 an element: |error| <= 15 u sqrt(n s2). Over the matrix the expected
    norm(error)/norm(reference) is at most u sqrt(n/6); u sqrt(n/2) is allowed.

    Sums with a mean. Operands that elementwise ops make, such as weights of 0 to 15 or the positive part of a matrix,
    may have a mean far from 0, and the walk then has a drift: given the sum S, W_i is i/n S plus a bridge, for products
    in a random order. The error is normal with the variance u^2/3 sum(W_i^2), whose root is at most that of the bridge,
    bounded above, plus u |S| sqrt(n)/3 (Minkowski). 8.5 deviations of the latter leave 1e-17 an element, as above:
    8.5/3 u sqrt(n) |S|, below 3 u sqrt(n) |S|. The bound above has room for |S| up to 4 sqrt(s2), which a walk without
    a drift does not leave either but in 6e-5 of elements: at 4, the drift takes 11.3 of its 15, and the bridge, whose
    deviation is sqrt(1/6), 8.5 sqrt(1/6), 3.5. Behind, 3 u sqrt(n) for each sqrt(s2) is added, which is more than the
    drift takes: |error| <= u sqrt(n) (15 sqrt(s2) + 3 max(0, |S| - 4 sqrt(s2))). Where sums are cut off, the largest
    partial sum decides: beyond 8 sqrt(s2), it is |S|, and each of K/8 steps loses 5 units of it.

    tf32 products. The tensor core reads 10 of the 23 stored bits of an f32 significand, after rounding to nearest
    (cvt.rna) or by cutting the others off. So a product is off by e_k = d_a + d_b of itself, 0 <= d < 2^-10 at worst,
    the sum by sum of (a_ik b_kj) e_k. Signs of the a_ik b_kj are independent, so that this is a random walk again, of
    variance at most (2^-9)^2 s2, which passes 8 deviations in 2.5e-14 of elements (Hoeffding): 2^-6 sqrt(s2) is
    allowed. Over the matrix norm(error)/norm(reference) is the root mean square of e_k: 0.8 x 2^-10 for normal
    operands that are cut off, 0.3 x 2^-10 for rounded ones; 1.5 x 2^-10 is allowed, and operands rounded to bf16 have
    2.4 x 2^-10. A step adds 4 or 8 products: at 4, K/4 steps of 3 units give 6 K u sqrt(s2) in place of 5.

    f32 products: one fused or rounded product each, or three of tf32 whose small terms are cut (3xTF32). Operands are
    split to 11 bits, to nearest, and a rest of up to 2^-11, of which the tensor core cuts off 2^-23 at worst; the
    product of two rests, up to 2^-22, is left out: a product is off by 2^-21 of itself at worst. The three products of
    a step are summed by the tensor core from zero, which cuts 3 x 5 or 3 x 6 units of 2^-23 of the step's partial sum,
    2^-19 at most, of signs that are independent between steps. Both are random walks: 8 deviations of 2^-20, 2^-17
    sqrt(s2), are allowed; over the matrix their root mean square is below 2^-22, and 2^-21 is allowed. The sums of the
    steps are added to the accumulator in f32, rounded to nearest, u = 2^-24, at most n = K of them, which is as for f16
    accumulators: 15 u sqrt(n s2) and u sqrt(n/2). Sums that a tensor core cuts off over all of K are not within it.

    f64. Each product is rounded once as it is added, u = 2^-53, and the reference, in f64 too, is as far off: twice
    what f16 accumulators get, with n = K.

    fp8 products, f32 accumulators. Hopper's tensor core aligns the 32 products of a step and the partial sum to the
    largest exponent among them, keeps 13 bits below its leading one, cuts the others off (towards zero), and hands on a
    sum of as many bits (DeepSeek-V3 report 2024, 3.5.2, and SageAttention2, 2024, found this by experiment; 13 is the
    lower of the figures given). u = 2^-13, so that errors bounded as above, 33 units a step, would accept anything. But
    the partial sum, once it is larger than a product, has no bits to lose but where it passes a power of two: what is
    cut are products, K times, each by less than u of the walk W, with the sign of the product and thus with zero mean.
    So as for f16 accumulators, but with a cut for every product, of second moment 1/3 unit^2 as it is not to nearest:
    given the walk, the error has variance u^2/3 sum(W_i^2), and |error| <= 15 u sqrt(K s2), which at K = 32 is also
    twice the bound of 33 cuts and a normalisation. Over the matrix the expected norm(error)/norm(reference) is at most
    u sqrt(K/6); u sqrt(K/2) is allowed. Kernels that move partial sums to f32 registers now and then are closer.

    On top, storing C rounds the result once: u of C's type, times the reference. Sums may so be in f32 and C of f16 or
    bf16; a kernel that rounds partial sums to C's type again and again is off by more.

    Attributes:
        element: factor of sqrt(s2) in the bound of an element's error.
        norm: bound of norm(error)/norm(reference), Frobenius.
        stored: unit roundoff of C's type.
        drift: factor of what |S| exceeds `free` times sqrt(s2) by, in the bound of an element's error.
        free: see `drift`.
    """

    element: float
    norm: float
    stored: float
    drift: float = 0.0
    free: float = 4.0

    def of_sum(self, root: Array, total: Array, backend: NumPyArrays) -> Array:
        """Returns the bounds of the errors of elements whose products have a mean, without that of C's type.

        Args:
            root: sqrt(s2) of each element.
            total: the element.
            backend: of the arrays.
        """
        xp = backend.xp
        beyond = xp.abs(total) - root * self.free
        return root * self.element + xp.where(beyond > 0, beyond, xp.zeros_like(beyond)) * self.drift

    @classmethod
    def of(cls, problem: Problem) -> Tolerance:
        """Returns the tolerance of a problem with floating-point accumulators.

        Args:
            problem: whose types of products, accumulators and C, and whose k, decide.
        """
        result_rounding = element_type(problem.c_type).unit_roundoff
        if problem.compute_type == "tf32":
            truncation, fp8_rounding = 2.0**-23, 2.0**-10
            return cls(
                16 * fp8_rounding + 6 * problem.k * truncation,
                1.5 * fp8_rounding + problem.k * truncation + result_rounding,
                result_rounding,
            )
        if problem.acc_type == "f64":
            rounding = 2.0**-52 * math.sqrt(problem.k)
            return cls(15 * rounding, rounding, result_rounding, 3 * rounding)
        if problem.compute_type == "f32" and not problem.fits_tf32:
            rounding = 2.0**-24 * math.sqrt(problem.k)
            return cls(
                2.0**-17 + 15 * rounding,
                2.0**-21 + rounding / math.sqrt(2) + result_rounding,
                result_rounding,
                3 * rounding,
            )
        if problem.compute_type in FP8_TYPES and problem.acc_type == "f32":
            fp8_rounding = 2.0**-FP8_BITS
            return cls(
                15 * fp8_rounding * math.sqrt(problem.k),
                fp8_rounding * math.sqrt(problem.k / 2) + result_rounding,
                result_rounding,
            )
        if problem.acc_type == "f32":
            truncation = 2.0**-23
            drift = 5 * problem.k / 8 * truncation
            return cls(
                5 * problem.k * truncation, problem.k * truncation + result_rounding, result_rounding, drift, free=8.0
            )
        rounding = element_type(problem.acc_type).unit_roundoff
        group_rounding = rounding * math.sqrt(math.ceil(problem.k / 4))
        return cls(
            15 * group_rounding, group_rounding / math.sqrt(2) + result_rounding, result_rounding, 3 * group_rounding
        )
