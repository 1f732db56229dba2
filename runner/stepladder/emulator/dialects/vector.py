"""vector: transfers from and to memory, contractions and reductions.

A vector is an array of its own shape, or one with a first dimension of T lanes. Functions here handle both through
`leading`, the dimensions before those of the vector: () or (T,).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core.elements import factor, multiplied, plain, rounded, wrapped
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects import math
from stepladder.emulator.dialects.vector_memory import mask_of
from stepladder.emulator.hardware.reductions import combined
from stepladder.mlir.bindings import ir
from stepladder.mlir.printed import keyword

_DYNAMIC = ir.ShapedType.get_dynamic_size()

executes("vector.fma")(math.fma)

# AccumulatorRegisters and the like.


def kind_of(op: Instruction) -> str:
    """Returns the combining kind of a reduction, such as `add`.

    Args:
        op: with the attribute `kind`.
    """
    if "kind" not in op.cache:
        op.cache["kind"] = keyword(op.attributes["kind"])
    return op.cache["kind"]


def _reduced(kind: str, element: Scalar, array: np.ndarray, axes: Sequence[int], rank: int, initial: Value) -> Value:
    """Returns a vector with these of its dimensions combined, one element after the other, in row-major order."""
    axes = sorted(axes)
    front = array.ndim - rank
    kept_axes = [axis for axis in range(rank) if axis not in axes]
    array = array.transpose(*(front + axis for axis in axes), *range(front), *(front + axis for axis in kept_axes))
    array = array.reshape(-1, *array.shape[len(axes) :])
    parts = list(array) if initial is None else [initial, *array]
    return plain(np.asarray(functools.reduce(lambda left, right: combined(kind, element, left, right), parts)))


def _neutral(kind: str, element: Scalar) -> np.ndarray:
    """Returns what does not change the result of a reduction."""
    half = np.inf if element.is_float else 1 << (element.width - 1)
    smallest, largest = -half, half if element.is_float else half - 1
    return np.asarray(
        {
            "add": 0,
            "mul": 1,
            "and": -1,
            "or": 0,
            "xor": 0,
            "minsi": largest,
            "minui": -1,
            "minimumf": largest,
            "minnumf": largest,
            "maxsi": smallest,
            "maxui": 0,
            "maximumf": smallest,
            "maxnumf": smallest,
        }[kind]
    ).astype(element.dtype)


def _unmasked(op: Instruction, value: Value, rank: int) -> Value:
    """Returns a vector with a neutral element where the `vector.mask` around an op has nothing."""
    mask, _ = mask_of(op, None, None)
    if mask is None:
        return np.asarray(value)
    return np.where(mask, value, _neutral(kind_of(op), op.operand_types[0].element))


@executes("vector.reduction")
def reduction(fiber: Fiber, op: Instruction, value: Value, initial: Value = None) -> Value:
    """The elements of a vector of one dimension combined, from the first to the last."""
    type_ = op.operand_types[0]
    value = _unmasked(op, value, type_.rank)
    if not type_.rank:  # the one element
        return plain(value if initial is None else combined(kind_of(op), type_.element, initial, value))
    return _reduced(kind_of(op), type_.element, value, [0], 1, initial)


@executes("vector.multi_reduction")
def multi_reduction(fiber: Fiber, op: Instruction, value: Value, initial: Value) -> Value:
    """Dimensions of a vector combined, in order."""
    rank = op.operand_types[0].rank
    value = _unmasked(op, value, rank)
    return _reduced(kind_of(op), op.operand_types[0].element, value, op.attributes["reduction_dims"], rank, initial)


@executes("vector.mask")
def mask(fiber: Fiber, op: Instruction, mask: Value, passthru: Value = None) -> Value:
    """An op that is executed where a mask is set: a transfer or a reduction."""
    body = op.regions[0]
    if not body.code:
        return passthru
    (inner,) = body.code
    if (
        inner.name
        not in ("vector.transfer_read", "vector.transfer_write", "vector.reduction", "vector.multi_reduction")
        or passthru is not None
    ):
        raise Unsupported(op, f"around {inner.name}{' with a passthru' if passthru is not None else ''}")
    inner.cache["mask"] = mask, op.operand_types[0].rank
    results = fiber.evaluate(body, [])
    return results[0] if len(results) == 1 else tuple(results)


# Contractions.


class _Contraction:
    """How a product's dimensions are multiplied: as a batch of matrices.

    Attributes:
        left, right, total: the loops of each operand's dimensions.
        batch, rows, columns, inner: loops by where they are: in all three, in the left one and the sums, in the right
            one and the sums, in both factors.
        is_matmul: whether there are no others.
    """

    def __init__(self, op: Instruction) -> None:
        maps = op.attributes["indexing_maps"]
        self.left, self.right, self.total = ([expression.position for expression in map_.results] for map_ in maps)
        self.count = maps[0].n_dims
        left, right, total = map(set, (self.left, self.right, self.total))
        self.batch = sorted(left & right & total)
        self.rows = sorted((left & total) - right)
        self.columns = sorted((right & total) - left)
        self.inner = sorted((left & right) - total)
        self.is_matmul = len(self.batch + self.rows + self.columns + self.inner) == self.count


def _grouped(array: np.ndarray, rank: int, loops: list[int], groups: Value) -> np.ndarray:
    """Returns a vector with a dimension a group of loops, given the loop of each of its dimensions."""
    front = array.ndim - rank
    array = array.transpose(*range(front), *(front + loops.index(loop) for group in groups for loop in group))
    sizes, place = [], front
    for group in groups:
        sizes.append(int(np.prod(array.shape[place : place + len(group)], dtype=int)))
        place += len(group)
    return array.reshape((*array.shape[:front], *sizes))


@executes("vector.contract")
def contract(fiber: Fiber, op: Instruction, left: Value, right: Value, initial: Value) -> Value:
    """A product of vectors, added to (or otherwise combined with) another.

    The order of a sum is not specified. Here, sums of types narrower than float32 are taken in float32 and rounded
    once, with what they are added to.
    """
    if "contraction" not in op.cache:
        op.cache["contraction"] = _Contraction(op)
    contraction: _Contraction = op.cache["contraction"]
    left_type, right_type, type_ = op.operand_types
    element = type_.element
    dtype = element.dtype if not element.is_float or element.name == "f64" else np.dtype(np.float32)
    left, right = (
        factor(multiplied(side, op.attributes), type_.element, dtype)
        for side, type_ in ((left, left_type), (right, right_type))
    )
    kind = kind_of(op)
    if kind != "add" or not contraction.is_matmul or element.width == 1:
        return _contract_in_order(contraction, kind, element, left, right, initial)
    product = np.matmul(
        _grouped(left, left_type.rank, contraction.left, (contraction.batch, contraction.rows, contraction.inner)),
        _grouped(
            right, right_type.rank, contraction.right, (contraction.batch, contraction.inner, contraction.columns)
        ),
    )
    loops = contraction.batch + contraction.rows + contraction.columns
    sizes = dict(zip(contraction.total, type_.shape))
    front = product.shape[: product.ndim - 3]
    product = product.reshape((*front, *(sizes[loop] for loop in loops)))
    product = product.transpose(*range(len(front)), *(len(front) + loops.index(loop) for loop in contraction.total))
    initial = np.asarray(initial)
    if not element.is_float:
        return plain(wrapped(np.asarray(product + initial), element))
    return rounded(product + initial.astype(dtype), element)


def _contract_in_order(
    contraction: _Contraction, kind: str, element: Scalar, left: Value, right: Value, initial: Value
) -> Value:
    """A contraction by its definition: all products, then combined one after the other."""

    def aligned(array: Value, loops: Value) -> Value:
        front = array.ndim - len(loops)
        array = array.transpose(*range(front), *(front + axis for axis in np.argsort(loops)))
        shape = iter(array.shape[front:])
        sizes = [next(shape) if loop in loops else 1 for loop in range(contraction.count)]
        return array.reshape((*array.shape[:front], *sizes))

    left, right = aligned(left, contraction.left), aligned(right, contraction.right)
    product = left & right if element.width == 1 else left * right
    initial = np.asarray(initial)
    front = max(product.ndim - contraction.count, initial.ndim - len(contraction.total))
    product = product.reshape((*(1,) * (front - (product.ndim - contraction.count)), *product.shape))
    initial = initial.reshape((*(1,) * (front - (initial.ndim - len(contraction.total))), *initial.shape))
    reduced_loops = [loop for loop in range(contraction.count) if loop not in contraction.total]
    # The sums' dimensions in the order of loops, and back.
    order = np.argsort(contraction.total)
    initial = initial.transpose(*range(front), *(front + axis for axis in order))
    result = np.asarray(
        _reduced(kind, element, product.astype(element.dtype), reduced_loops, contraction.count, initial)
    )
    return plain(result.transpose(*range(front), *(front + axis for axis in np.argsort(order))))


# Shapes.
