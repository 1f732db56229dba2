"""Products as tensor cores compute them, on the CPU: what the checks have to accept."""

import dataclasses
from collections.abc import Callable

import numpy as np

from conftest import make_problem
from stepladder.runtime.element_types import element_type
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import matmul_program
from stepladder.verify.check import check_matmul

LAYOUTS = [("row", "row"), ("row", "column"), ("column", "row"), ("column", "column")]


class NumPyGpu:
    """Computes C = AB (+ C) in float64, rounded once on storing; `damage(c, initial_c, launch)` spoils the result.

    The problem is what it computes: operands are read in its layouts.
    """

    def __init__(self, problem: Problem, damage: Callable[..., None] = lambda c, initial, launch: None) -> None:
        self.problem = problem
        self.damage = damage
        self.launches = 0

    def load(self, a: np.ndarray, b: np.ndarray) -> None:
        m, n, k = self.problem.m, self.problem.n, self.problem.k
        for array, name in ((a, self.problem.a_type), (b, self.problem.b_type)):
            assert array.flags.c_contiguous and array.dtype == element_type(name).dtype
        self.a = a.reshape(m, k) if self.problem.a_layout == "row" else a.reshape(k, m).T
        self.b = b.reshape(k, n) if self.problem.b_layout == "row" else b.reshape(n, k).T

    def product(self, c: np.ndarray) -> np.ndarray:
        product = self.a.astype(np.float64) @ self.b.astype(np.float64)
        return product + c.astype(np.float64) if self.problem.accumulate else product

    def launch(self, c: np.ndarray) -> np.ndarray:
        result = self.product(c).astype(element_type(self.problem.c_type).dtype)
        self.damage(result, c, self.launches)
        self.launches += 1
        return result


class TensorCore(NumPyGpu):
    """Sums as tensor cores do: 8 products a step, cut off at the largest exponent for f32, rounded for f16."""

    step = 8
    bits = 23

    @staticmethod
    def multiplied(operand: np.ndarray) -> np.ndarray:
        """Returns what the tensor core makes of an operand."""
        return operand

    def product(self, c: np.ndarray) -> np.ndarray:
        total = c.astype(np.float64) if self.problem.accumulate else np.zeros(c.shape)
        a, b = (self.multiplied(operand).astype(np.float64) for operand in (self.a, self.b))
        for start in range(0, self.problem.k, self.step):
            terms = [a[:, i, None] * b[i] for i in range(start, start + self.step)]
            if self.problem.acc_type == "f16":
                total = (total + sum(terms)).astype(np.float16).astype(np.float64)
            else:
                total = self.cut([*terms, total])
        return total

    def cut(self, terms: list[np.ndarray]) -> np.ndarray:
        """Adds with so many bits behind the leading one of the largest term, the rest of every term cut off."""
        unit = self.unit(np.max(np.abs(terms), axis=0))
        total = sum(np.trunc(term / unit) * unit for term in terms)
        unit = self.unit(np.abs(total))
        return np.trunc(total / unit) * unit

    def unit(self, magnitude: np.ndarray) -> np.ndarray:
        return np.exp2(np.floor(np.log2(np.where(magnitude > 0, magnitude, 1))) - self.bits)


class Fp8(TensorCore):
    """Hopper's tensor core on fp8: 32 products a step, 13 bits behind the leading one."""

    step = 32
    bits = 13


class Tf32(TensorCore):
    """Reads 10 bits of a stored significand, the others cut off; 4 products a step."""

    step = 4
    rounding = 0

    def multiplied(self, operand: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(operand).view(np.uint32).astype(np.uint64) + self.rounding
        return (bits & 0xFFFFE000).astype(np.uint32).view(np.float32)


class RoundedTf32(Tf32):
    """The same after cvt.rna: to nearest, ties away from zero."""

    rounding = 1 << 12


def tf32_problem(m: int = 24, n: int = 40, k: int = 64, **fields: object) -> Problem:
    return make_problem(m, n, k, inputs="f32", compute_type="tf32", **fields)


def fp8_problem(m: int = 24, n: int = 40, k: int = 64, inputs: str = "f8E4M3FN", **fields: object) -> Problem:
    return make_problem(m, n, k, inputs=inputs, **fields)


def i8_problem(m: int = 24, n: int = 40, k: int = 64, **fields: str | bool) -> Problem:
    return make_problem(m, n, k, "i32", "i32", inputs="i8", **fields)


PROBLEMS = [
    make_problem(24, 40, 64),
    make_problem(24, 40, 64, inputs="bf16"),
    tf32_problem(),
    i8_problem(),
    fp8_problem(),
    fp8_problem(inputs="f8E5M2"),
]
GPUS = {"f16": TensorCore, "bf16": TensorCore, "tf32": Tf32, "i8": NumPyGpu, "f8E4M3FN": Fp8, "f8E5M2": Fp8}


def with_layouts(problem: Problem, layouts: tuple[str, str]) -> Problem:
    return dataclasses.replace(problem, a_layout=layouts[0], b_layout=layouts[1])


def verdicts(problem: Problem, executor: NumPyGpu, seed: int = 0) -> dict:
    return {report.check: report for report in check_matmul(problem, matmul_program(problem), executor, seed)}
