"""Vectors: transfers from and to memory, contractions, reductions, and their shapes.

A vector is an array of its own shape, or one with T lanes in front. Functions here work on both by way of `_front`,
the dimensions in front of a vector's own: () or (T,).
"""

from __future__ import annotations

import functools
import re

import numpy as np

from stepladder.emulator.core.elements import (
    factor,
    plain,
    reinterpreted,
    rounded,
    unsigned,
    wrapped,
)
from stepladder.emulator.core.machine import Unsupported
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import MemRef, is_uniform, lanes
from stepladder.emulator.dialects import math
from stepladder.emulator.dialects.ub import poison_of
from stepladder.emulator.hardware.warps import once_a_warp, varying
from stepladder.emulator.memory import memory
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import FAILED, StepladderError

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_POISON = -1  # in place of a position: the element is poison

executes("vector.fma")(math.fma)


def _front(value, rank: int) -> tuple[int, ...]:
    shape = np.shape(value)
    return shape[: len(shape) - rank]


def _with_rank(value, rank: int, to: int) -> np.ndarray:
    """Returns a vector with dimensions of one in front of its own, such that there are `to` of them."""
    value = np.asarray(value)
    front = _front(value, rank)
    return value.reshape((*front, *(1,) * (to - rank), *value.shape[len(front) :]))


def _in_lanes(values, ranks, count: int) -> list[np.ndarray]:
    """Returns vectors as arrays that all have lanes in front, or none of which has."""
    if all(is_uniform(value, rank) for value, rank in zip(values, ranks)):
        return [np.asarray(value) for value in values]
    return [lanes(value, count, rank) for value, rank in zip(values, ranks)]


# Memory. Coordinates of what a vector shows: one array a dimension of the memory, in the vector's shape.


def _offset_by(start, along, rank: int):
    """Returns coordinates `along` a dimension of a vector, from a start that is a number for all lanes or for each."""
    if isinstance(start, np.ndarray):
        start = start.reshape(-1, *(1,) * rank)
    return start + along


def _along(shape, axis: int) -> np.ndarray:
    return np.arange(shape[axis]).reshape([-1 if other == axis else 1 for other in range(len(shape))])


def _read(fiber, op, source, coordinates, shape, valid=None, fill=None):
    """Returns elements of memory or of a tensor; those that are not valid are `fill`."""
    if isinstance(source, MemRef):
        return memory.read(fiber, op, source, coordinates, shape, valid, fill)
    coordinates, valid = _in_tensor(op, source, coordinates, shape, valid)
    return np.where(valid, source[coordinates], fill).astype(source.dtype)


def _write(fiber, op, target, coordinates, value, shape, valid=None):
    """Writes elements of memory, or returns a tensor with other elements."""
    if isinstance(target, MemRef):
        return memory.write(fiber, op, target, coordinates, value, shape, valid)
    coordinates, valid = _in_tensor(op, target, coordinates, shape, valid)
    result = target.copy()
    result[tuple(coordinate[valid] for coordinate in coordinates)] = value[valid]
    return result


def _in_tensor(op, tensor, coordinates, shape, valid) -> tuple[tuple, np.ndarray]:
    """Returns coordinates that can be used everywhere, and where they should be."""
    coordinates = [np.broadcast_to(coordinate, shape) for coordinate in coordinates]
    valid = np.broadcast_to(True if valid is None else valid, shape)
    inside = np.ones(shape, bool)
    for coordinate, size in zip(coordinates, tensor.shape):
        inside &= (coordinate >= 0) & (coordinate < size)
    if (valid & ~inside).any():
        raise StepladderError(
            f"{op.name} goes beyond the {list(tensor.shape)} of a tensor", location=op.location, status=FAILED
        )
    return tuple(np.where(inside, coordinate, 0) for coordinate in coordinates), valid


def _shape_of(source):
    return source.sizes if isinstance(source, MemRef) else source.shape


class _Transfer:
    """How a transfer's vector lies in memory.

    Attributes:
        shape: of the vector.
        axes: for each of its dimensions, that of the memory, or None where it is broadcast.
        in_bounds: for each of its dimensions, whether all elements are known to be in the memory.
    """

    def __init__(self, op, shape):
        self.shape = shape
        self.axes = []
        for expression in op.attributes["permutation_map"].results:
            if not isinstance(expression, (ir.AffineDimExpr, ir.AffineConstantExpr)):
                raise Unsupported(op, "with this map")
            self.axes.append(expression.position if isinstance(expression, ir.AffineDimExpr) else None)
        self.in_bounds = op.attributes.get("in_bounds") or [False] * len(shape)

    @staticmethod
    def of(op, shape) -> _Transfer:
        if "transfer" not in op.cache:
            op.cache["transfer"] = _Transfer(op, shape)
        return op.cache["transfer"]

    def coordinates(self, starts) -> list:
        """Returns the elements' coordinates, given those of the first."""
        rank = len(self.shape)
        along = {axis: _along(self.shape, number) for number, axis in enumerate(self.axes) if axis is not None}
        return [_offset_by(start, along.get(axis, 0), rank) for axis, start in enumerate(starts)]

    def valid(self, sizes, coordinates, mask, mask_rank: int):
        """Returns which elements are to be transferred: those in bounds and in the mask; None for all."""
        rank = len(self.shape)
        valid = None if mask is None else self._spread(mask, mask_rank)
        for number, axis in enumerate(self.axes):
            if axis is None or self.in_bounds[number]:
                continue
            size = _offset_by(sizes[axis], 0, rank)
            inside = (coordinates[axis] >= 0) & (coordinates[axis] < size)
            valid = inside if valid is None else valid & inside
        return valid

    def _spread(self, mask, mask_rank: int) -> np.ndarray:
        """Returns a mask in the vector's shape: its dimensions are in the memory's order, without broadcast ones."""
        mask = np.asarray(mask)
        front = len(_front(mask, mask_rank))
        taken = sorted(axis for axis in self.axes if axis is not None)
        order = [front + taken.index(axis) for axis in self.axes if axis is not None]
        mask = mask.transpose(*range(front), *order)
        for number, axis in enumerate(self.axes):
            if axis is None:
                mask = np.expand_dims(mask, front + number)
        return mask


def _mask(op, mask, type_):
    """Returns an op's mask, its own or that of the `vector.mask` around it, and the mask's rank."""
    return op.cache.get("mask", (mask, 0 if type_ is None else type_.rank))


@executes("vector.transfer_read")
def transfer_read(fiber, op, source, *operands):
    """A vector from memory or a tensor. One of several dimensions is what a warp reads together."""
    shape = op.result_types[0].shape
    rank = len(shape)
    count = op.attributes["operandSegmentSizes"][1]
    starts, fill, *masks = operands[:count], *operands[count:]
    transfer = _Transfer.of(op, shape)
    mask, mask_rank = _mask(op, *(masks or [None]), op.operand_types[-1] if masks else None)
    leader = None
    if rank > 1 and isinstance(source, MemRef):
        fiber, leader = once_a_warp(fiber, varying(fiber, [source], [*starts, fill, mask]))
    coordinates = transfer.coordinates(starts)
    valid = transfer.valid(_shape_of(source), coordinates, mask, mask_rank)
    value = _read(fiber, op, source, coordinates, shape, valid, fill)
    return value if leader is None or is_uniform(value, rank) else value[leader]


@executes("vector.transfer_write")
def transfer_write(fiber, op, value, target, *operands):
    """A vector to memory, or into a tensor. One of several dimensions is what a warp writes together."""
    shape = op.operand_types[0].shape
    count = op.attributes["operandSegmentSizes"][2]
    starts, masks = operands[:count], operands[count:]
    transfer = _Transfer.of(op, shape)
    mask, mask_rank = _mask(op, *(masks or [None]), op.operand_types[-1] if masks else None)
    if len(shape) > 1 and isinstance(target, MemRef):
        numbers = [*starts, mask] if is_uniform(value, len(shape)) else [*starts, mask, value]
        fiber, _ = once_a_warp(fiber, varying(fiber, [target], numbers))
    coordinates = transfer.coordinates(starts)
    valid = transfer.valid(_shape_of(target), coordinates, mask, mask_rank)
    return _write(fiber, op, target, coordinates, value, shape, valid)


def _contiguous(shape, starts) -> list:
    """Returns the coordinates of a vector that lies along the last dimensions."""
    rank, outer = len(shape), len(starts) - len(shape)
    return [
        _offset_by(start, _along(shape, axis - outer) if axis >= outer else 0, rank)
        for axis, start in enumerate(starts)
    ]


def _check_alignment(fiber, op, view, starts) -> None:
    """Reports a first element whose address is not what the op says of it."""
    alignment = op.attributes.get("alignment")
    if alignment is None:
        return
    place = view.offset
    for start, stride in zip(starts, view.strides):
        place = place + start * stride
    address = view.memory.address + view.start + place * view.element.bytes
    own = address[fiber.lanes] if isinstance(address, np.ndarray) else np.array([address])
    wrong = own[own % alignment != 0]
    if wrong.size:
        fiber.group.sanitizer.misaligned(fiber, op, int(wrong[0]), alignment)


@executes("vector.load")
def load(fiber, op, view, *starts):
    """A vector from consecutive elements."""
    shape = op.result_types[0].shape
    _check_alignment(fiber, op, view, starts)
    return memory.read(fiber, op, view, _contiguous(shape, starts), shape)


@executes("vector.store")
def store(fiber, op, value, view, *starts) -> None:
    """A vector to consecutive elements."""
    shape = op.operand_types[0].shape
    _check_alignment(fiber, op, view, starts)
    memory.write(fiber, op, view, _contiguous(shape, starts), value, shape)


def _selected(fiber, op, mask, read, otherwise):
    """Returns what is read where a mask says so, and else what another vector has."""
    rank = op.result_types[0].rank
    mask, read, otherwise = _in_lanes([mask, read, otherwise], [rank] * 3, fiber.count)
    return np.where(mask, read, otherwise).astype(read.dtype)


@executes("vector.maskedload")
def maskedload(fiber, op, view, *operands):
    """A vector from consecutive elements where a mask says so."""
    *starts, mask, otherwise = operands
    shape = op.result_types[0].shape
    read = memory.read(fiber, op, view, _contiguous(shape, starts), shape, mask)
    return _selected(fiber, op, mask, read, otherwise)


@executes("vector.maskedstore")
def maskedstore(fiber, op, view, *operands) -> None:
    """A vector to consecutive elements where a mask says so."""
    *starts, mask, value = operands
    shape = op.operand_types[-1].shape
    memory.write(fiber, op, view, _contiguous(shape, starts), value, shape, mask)


def _scattered(starts, indices, rank: int) -> list:
    return [_offset_by(start, indices if axis == len(starts) - 1 else 0, rank) for axis, start in enumerate(starts)]


@executes("vector.gather")
def gather(fiber, op, source, *operands):
    """A vector from elements along the last dimension, each with an index."""
    *starts, indices, mask, otherwise = operands
    shape = op.result_types[0].shape
    read = _read(fiber, op, source, _scattered(starts, indices, len(shape)), shape, mask, 0)
    return _selected(fiber, op, mask, read, otherwise)


@executes("vector.scatter")
def scatter(fiber, op, target, *operands):
    """A vector to elements along the last dimension, each with an index."""
    *starts, indices, mask, value = operands
    shape = op.operand_types[-1].shape
    return _write(fiber, op, target, _scattered(starts, indices, len(shape)), value, shape, mask)


# Sums and the like.

_COMBINE = {
    "add": np.add,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "minsi": np.minimum,
    "minui": np.minimum,
    "minimumf": np.minimum,
    "minnumf": np.fmin,
    "maxsi": np.maximum,
    "maxui": np.maximum,
    "maximumf": np.maximum,
    "maxnumf": np.fmax,
}


def _kind(op) -> str:
    if "kind" not in op.cache:
        op.cache["kind"] = re.search(r"kind<(\w+)>", op.attributes["kind"])[1]
    return op.cache["kind"]


def _combined(kind: str, element: Scalar, left, right):
    """Returns two numbers or vectors combined, as numbers of a type."""
    if element.is_float:
        return _COMBINE[kind](left, right)
    if element.width == 1:
        return {"add": np.bitwise_xor, "mul": np.bitwise_and}.get(kind, _COMBINE[kind])(left, right)
    if kind in ("minui", "maxui"):
        left, right = unsigned(left, element.width), unsigned(right, element.width)
    return wrapped(_COMBINE[kind](left, right), element)


def _reduced(kind: str, element: Scalar, array: np.ndarray, axes, rank: int, initial):
    """Returns a vector with these of its dimensions combined, one element after the other, in row-major order."""
    axes = sorted(axes)
    front = array.ndim - rank
    kept = [axis for axis in range(rank) if axis not in axes]
    array = array.transpose(*(front + axis for axis in axes), *range(front), *(front + axis for axis in kept))
    array = array.reshape(-1, *array.shape[len(axes) :])
    parts = list(array) if initial is None else [initial, *array]
    return plain(np.asarray(functools.reduce(lambda left, right: _combined(kind, element, left, right), parts)))


def _neutral(kind: str, element: Scalar) -> np.ndarray:
    """Returns what does not change the result of a reduction."""
    half = np.inf if element.is_float else 1 << (element.width - 1)
    least, most = -half, half if element.is_float else half - 1
    return np.asarray(
        {
            "add": 0,
            "mul": 1,
            "and": -1,
            "or": 0,
            "xor": 0,
            "minsi": most,
            "minui": -1,
            "minimumf": most,
            "minnumf": most,
            "maxsi": least,
            "maxui": 0,
            "maximumf": least,
            "maxnumf": least,
        }[kind]
    ).astype(element.dtype)


def _unmasked(op, value, rank: int):
    """Returns a vector with a neutral element where the `vector.mask` around an op has nothing."""
    mask, _ = _mask(op, None, None)
    if mask is None:
        return np.asarray(value)
    return np.where(mask, value, _neutral(_kind(op), op.operand_types[0].element))


@executes("vector.reduction")
def reduction(fiber, op, value, initial=None):
    """The elements of a vector of one dimension combined, from the first to the last."""
    element = op.operand_types[0].element
    return _reduced(_kind(op), element, _unmasked(op, value, 1), [0], 1, initial)


@executes("vector.multi_reduction")
def multi_reduction(fiber, op, value, initial):
    """Dimensions of a vector combined, in order."""
    rank = op.operand_types[0].rank
    value = _unmasked(op, value, rank)
    return _reduced(_kind(op), op.operand_types[0].element, value, op.attributes["reduction_dims"], rank, initial)


@executes("vector.mask")
def mask(fiber, op, mask, passthru=None):
    """An op that is done where a mask says so: a transfer or a reduction."""
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

    def __init__(self, op):
        maps = op.attributes["indexing_maps"]
        for map_ in maps:
            if not all(isinstance(expression, ir.AffineDimExpr) for expression in map_.results):
                raise Unsupported(op, "with this map")
        self.left, self.right, self.total = ([expression.position for expression in map_.results] for map_ in maps)
        self.count = maps[0].n_dims
        left, right, total = map(set, (self.left, self.right, self.total))
        self.batch = sorted(left & right & total)
        self.rows = sorted((left & total) - right)
        self.columns = sorted((right & total) - left)
        self.inner = sorted((left & right) - total)
        self.is_matmul = len(self.batch + self.rows + self.columns + self.inner) == self.count


def _grouped(array: np.ndarray, rank: int, loops: list[int], groups) -> np.ndarray:
    """Returns a vector with a dimension a group of loops, given the loop of each of its dimensions."""
    front = array.ndim - rank
    array = array.transpose(*range(front), *(front + loops.index(loop) for group in groups for loop in group))
    sizes, place = [], front
    for group in groups:
        sizes.append(int(np.prod(array.shape[place : place + len(group)], dtype=int)))
        place += len(group)
    return array.reshape((*array.shape[:front], *sizes))


@executes("vector.contract")
def contract(fiber, op, left, right, initial):
    """A product of vectors, added to (or otherwise combined with) another.

    The order of a sum is not specified. Here, sums of types narrower than float32 are taken in float32 and rounded
    once, with what they are added to.
    """
    if "contraction" not in op.cache:
        op.cache["contraction"] = _Contraction(op)
    how: _Contraction = op.cache["contraction"]
    left_type, right_type, type_ = op.operand_types
    element = type_.element
    dtype = element.dtype if not element.is_float or element.name == "f64" else np.dtype(np.float32)
    left, right = factor(left, left_type.element, dtype), factor(right, right_type.element, dtype)
    kind = _kind(op)
    if kind != "add" or not how.is_matmul or element.width == 1:
        return _contract_in_order(how, kind, element, left, right, initial)
    product = np.matmul(
        _grouped(left, left_type.rank, how.left, (how.batch, how.rows, how.inner)),
        _grouped(right, right_type.rank, how.right, (how.batch, how.inner, how.columns)),
    )
    loops = how.batch + how.rows + how.columns
    sizes = dict(zip(how.total, type_.shape))
    front = product.shape[: product.ndim - 3]
    product = product.reshape((*front, *(sizes[loop] for loop in loops)))
    product = product.transpose(*range(len(front)), *(len(front) + loops.index(loop) for loop in how.total))
    initial = np.asarray(initial)
    if not element.is_float:
        return plain(wrapped(np.asarray(product + initial), element))
    return rounded(product + initial.astype(dtype), element)


def _contract_in_order(how: _Contraction, kind: str, element: Scalar, left, right, initial):
    """A contraction by its definition: all products, then combined one after the other."""

    def aligned(array, loops):
        front = array.ndim - len(loops)
        array = array.transpose(*range(front), *(front + axis for axis in np.argsort(loops)))
        shape = iter(array.shape[front:])
        sizes = [next(shape) if loop in loops else 1 for loop in range(how.count)]
        return array.reshape((*array.shape[:front], *sizes))

    left, right = aligned(left, how.left), aligned(right, how.right)
    product = left & right if element.width == 1 else left * right
    initial = np.asarray(initial)
    front = max(product.ndim - how.count, initial.ndim - len(how.total))
    product = product.reshape((*(1,) * (front - (product.ndim - how.count)), *product.shape))
    initial = initial.reshape((*(1,) * (front - (initial.ndim - len(how.total))), *initial.shape))
    reduced = [loop for loop in range(how.count) if loop not in how.total]
    # The sums' dimensions in the order of loops, and back.
    order = np.argsort(how.total)
    initial = initial.transpose(*range(front), *(front + axis for axis in order))
    result = np.asarray(_reduced(kind, element, product.astype(element.dtype), reduced, how.count, initial))
    return plain(result.transpose(*range(front), *(front + axis for axis in np.argsort(order))))


# Shapes.


@executes("vector.broadcast", "vector.splat")
def broadcast(fiber, op, value):
    """A number or a vector repeated in front of, and along, its dimensions of one."""
    type_ = op.result_types[0]
    value = _with_rank(value, op.operand_types[0].rank, type_.rank)
    value = np.broadcast_to(value, (*_front(value, type_.rank), *type_.shape))
    return value.astype(type_.element.dtype, copy=False)


@executes("vector.shape_cast")
def shape_cast(fiber, op, value):
    """The same elements, in the same order, in another shape."""
    type_ = op.result_types[0]
    return np.reshape(value, (*_front(value, op.operand_types[0].rank), *type_.shape))


@executes("vector.transpose")
def transpose(fiber, op, value):
    """The dimensions in another order."""
    order = op.attributes["permutation"]
    front = value.ndim - len(order)
    return value.transpose(*range(front), *(front + axis for axis in order))


@executes("vector.bitcast")
def bitcast(fiber, op, value):
    """The same bits as elements of another type."""
    source, target = op.operand_types[0].element, op.result_types[0].element
    if 1 in (source.width, target.width) and source.width != target.width:
        raise Unsupported(op, "of single bits")
    return reinterpreted(value, source, target)


def _positions(op, dynamic) -> list:
    dynamic = iter(dynamic)
    return [next(dynamic) if position == _DYNAMIC else position for position in op.attributes["static_position"]]


@executes("vector.extract")
def extract(fiber, op, value, *dynamic):
    """An element, or a vector of them."""
    rank = op.operand_types[0].rank
    positions = _positions(op, dynamic)
    if _POISON in op.attributes["static_position"]:
        return plain(poison_of(op.result_types[0].element, op.result_types[0].shape))
    front = len(_front(value, rank))
    if not any(isinstance(position, np.ndarray) for position in positions):
        return plain(np.asarray(value)[(slice(None),) * front + tuple(positions)])
    # Lanes that are not active may ask for anything.
    positions = [np.clip(position, 0, size - 1) for position, size in zip(positions, op.operand_types[0].shape)]
    return value[((np.arange(fiber.count),) if front else ()) + tuple(positions)]


@executes("vector.insert")
def insert(fiber, op, part, value, *dynamic):
    """A vector with another element, or another vector of them."""
    rank, part_rank = op.operand_types[1].rank, op.operand_types[0].rank
    positions = _positions(op, dynamic)
    if _POISON in op.attributes["static_position"]:
        return poison_of(op.result_types[0].element, op.result_types[0].shape)
    if (
        is_uniform(part, part_rank)
        and is_uniform(value, rank)
        and not any(isinstance(position, np.ndarray) for position in positions)
    ):
        result = np.array(value)
        result[tuple(positions)] = part
        return plain(result)
    result = np.array(lanes(value, fiber.count, rank))
    positions = [np.clip(position, 0, size - 1) for position, size in zip(positions, op.operand_types[1].shape)]
    result[(np.arange(fiber.count), *positions)] = part
    return result


@executes("vector.extract_strided_slice")
def extract_strided_slice(fiber, op, value):
    """A part of a vector; the last dimensions may be whole."""
    front = value.ndim - op.operand_types[0].rank
    parts = zip(*(op.attributes[name] for name in ("offsets", "sizes", "strides")))
    return value[
        (slice(None),) * front + tuple(slice(offset, offset + size * stride, stride) for offset, size, stride in parts)
    ]


@executes("vector.insert_strided_slice")
def insert_strided_slice(fiber, op, part, value):
    """A vector with another part, along its last dimensions."""
    part_rank, rank = op.operand_types[0].rank, op.operand_types[1].rank
    part, value = _in_lanes([part, value], [part_rank, rank], fiber.count)
    offsets, strides = op.attributes["offsets"], op.attributes["strides"]
    front = value.ndim - rank
    inner = [
        slice(offset, offset + size * stride, stride)
        for offset, size, stride in zip(offsets[rank - part_rank :], part.shape[front:], strides)
    ]
    result = np.array(value)
    result[(slice(None),) * front + (*offsets[: rank - part_rank], *inner)] = part
    return result


@executes("vector.from_elements")
def from_elements(fiber, op, *elements):
    """A vector of numbers."""
    type_ = op.result_types[0]
    if all(map(is_uniform, elements)):
        return plain(np.array(elements, type_.element.dtype).reshape(type_.shape))
    value = np.empty((fiber.count, len(elements)), type_.element.dtype)
    for number, element in enumerate(elements):
        value[:, number] = element
    return value.reshape(-1, *type_.shape)


@executes("vector.to_elements")
def to_elements(fiber, op, value):
    """A vector's numbers."""
    value = np.reshape(value, (*_front(value, op.operand_types[0].rank), -1))
    results = tuple(plain(value[..., number]) for number in range(value.shape[-1]))
    return results if len(results) > 1 else results[0]


@executes("vector.shuffle")
def shuffle(fiber, op, left, right):
    """Elements of two vectors, by their number along the first dimension."""
    ranks = [max(type_.rank, 1) for type_ in op.operand_types]
    left, right = _in_lanes(
        [_with_rank(value, type_.rank, rank) for value, type_, rank in zip((left, right), op.operand_types, ranks)],
        ranks,
        fiber.count,
    )
    axis = left.ndim - ranks[0]
    order = np.array(op.attributes["mask"])
    result = np.concatenate([left, right], axis=axis).take(order, axis=axis, mode="clip")
    if (order == _POISON).any():
        result[(slice(None),) * axis + (order == _POISON,)] = poison_of(op.result_types[0].element)
    return result


@executes("vector.interleave")
def interleave(fiber, op, left, right):
    """Elements of two vectors in turn, along the last dimension."""
    rank = op.operand_types[0].rank
    left, right = _in_lanes([left, right], [rank] * 2, fiber.count)
    result = np.stack([left, right], axis=-1)
    return result.reshape((*_front(left, rank), *op.result_types[0].shape))


@executes("vector.deinterleave")
def deinterleave(fiber, op, value):
    """The elements with even and those with odd numbers along the last dimension."""
    return value[..., 0::2], value[..., 1::2]


@executes("vector.step")
def step(fiber, op):
    """0, 1, 2, ..."""
    return np.arange(op.result_types[0].shape[0])


def _mask_of(shape, sizes) -> np.ndarray:
    """Returns true for the elements with coordinates below sizes, which are numbers for all lanes or for each."""
    result = np.ones(shape, bool)
    for axis, size in enumerate(sizes):
        result = result & (_along(shape, axis) < _offset_by(size, 0, len(shape)))
    return result


@executes("vector.constant_mask")
def constant_mask(fiber, op):
    """A mask of a box at the origin."""
    return plain(_mask_of(op.result_types[0].shape, op.attributes["mask_dim_sizes"]))


@executes("vector.create_mask")
def create_mask(fiber, op, *sizes):
    """A mask of a box at the origin."""
    return plain(_mask_of(op.result_types[0].shape, sizes))


@executes("vector.print")
def print_(fiber, op, *operands) -> None:
    """Nothing."""
