"""tensor: NumPy arrays that are never modified. Tensors belong to the host, and are uniform."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from stepladder.emulator.core.elements import plain
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.ub import poison_of
from stepladder.mlir.bindings import ir
from stepladder.mlir.slices import kept_axes
from stepladder.runtime.errors import FAILED, StepladderError

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def mixed(static: Sequence[int], dynamic: Iterator[Value]) -> list[int]:
    """Returns sizes or offsets of which some are static.

    Args:
        static: the integers; those that are dynamic have the marker of MLIR.
        dynamic: yields the others in order.
    """
    return [next(dynamic) if number == _DYNAMIC else number for number in static]


def _outside(op: Instruction, text: str) -> StepladderError:
    return StepladderError(f"{op.name} {text}", location=op.location, status=FAILED)


def _sizes(op: Instruction, dynamic: Sequence[Value]) -> list[int]:
    """Returns the sizes of the result, given the dynamic ones."""
    remaining = iter(dynamic)
    return [next(remaining) if size is None else size for size in op.result_types[0].shape]


@executes("tensor.empty")
def empty(fiber: Fiber, op: Instruction, *dynamic: Value) -> Value:
    """A tensor with undefined elements, which are NaN or have all bits set."""
    sizes = op.attributes.get("operandSegmentSizes", [len(dynamic), 0])
    if sizes[1]:
        return dynamic[sizes[0]]
    return poison_of(op.result_types[0].element, _sizes(op, dynamic))


@executes("tensor.dim")
def dim(fiber: Fiber, op: Instruction, tensor: np.ndarray, axis: Value) -> Value:
    """A size."""
    if not 0 <= axis < tensor.ndim:
        raise _outside(op, f"asks for dimension {axis} of {tensor.ndim}")
    return tensor.shape[axis]


@executes("tensor.rank")
def rank(fiber: Fiber, op: Instruction, tensor: np.ndarray) -> Value:
    """The number of dimensions."""
    return tensor.ndim


@executes("tensor.cast")
def cast(fiber: Fiber, op: Instruction, tensor: np.ndarray) -> Value:
    """The same tensor, with more or less known of its sizes."""
    shape = op.result_types[0].shape
    if len(shape) != tensor.ndim and shape:
        raise _outside(op, f"makes {len(shape)} dimensions of {tensor.ndim}")
    if any(size not in (None, actual) for size, actual in zip(shape, tensor.shape)):
        raise _outside(op, f"makes a {list(shape)} of a {list(tensor.shape)}")
    return tensor


@executes("tensor.extract")
def extract(fiber: Fiber, op: Instruction, tensor: np.ndarray, *coordinates: Value) -> Value:
    """An element, or one for each lane."""
    return plain(tensor[_inside(op, tensor, coordinates)])


@executes("tensor.insert")
def insert(fiber: Fiber, op: Instruction, value: Value, tensor: np.ndarray, *coordinates: Value) -> Value:
    """The tensor with another element."""
    result = tensor.copy()
    result[_inside(op, tensor, coordinates)] = value
    return result


def _inside(op: Instruction, tensor: np.ndarray, coordinates: Sequence[Value]) -> Sequence[Value]:
    for axis, (coordinate, size) in enumerate(zip(coordinates, tensor.shape)):
        if np.any((np.asarray(coordinate) < 0) | (np.asarray(coordinate) >= size)):
            raise _outside(op, f"goes beyond the {size} elements of dimension {axis}")
    return coordinates


# Slices.


def _slice(
    op: Instruction, tensor: np.ndarray, dynamic: Sequence[Value], shape: Sequence[int]
) -> tuple[tuple, list[int]]:
    """Returns where a slice is, and its sizes with the dimensions that `shape`, the type's, leaves out."""
    remaining = iter(dynamic)
    offsets, sizes, strides = (
        mixed(op.attributes[f"static_{name}"], remaining) for name in ("offsets", "sizes", "strides")
    )
    for axis, (offset, size, stride, of) in enumerate(zip(offsets, sizes, strides, tensor.shape)):
        if stride < 1:
            raise Unsupported(op, f"with a stride of {stride}: expected 1 or more")
        if size < 0 or (size and not 0 <= offset <= offset + (size - 1) * stride < of):
            raise _outside(
                op, f"goes beyond the {of} elements of dimension {axis}: {size} from {offset}, {stride} apart"
            )
    index = tuple(
        slice(offset, offset + size * stride, stride) for offset, size, stride in zip(offsets, sizes, strides)
    )
    return index, [sizes[axis] for axis in kept_axes(op.attributes["static_sizes"], shape)]


@executes("tensor.extract_slice")
def extract_slice(fiber: Fiber, op: Instruction, tensor: np.ndarray, *dynamic: Value) -> Value:
    """A slice of a tensor."""
    index, sizes = _slice(op, tensor, dynamic, op.result_types[0].shape)
    return tensor[index].reshape(sizes).copy()


@executes("tensor.insert_slice")
def insert_slice(fiber: Fiber, op: Instruction, part: Value, tensor: np.ndarray, *dynamic: Value) -> Value:
    """A tensor with a slice replaced."""
    result = tensor.copy()
    _put(op, part, result, dynamic)
    return result


@executes("tensor.parallel_insert_slice")
def parallel_insert_slice(fiber: Fiber, op: Instruction, part: Value, tensor: np.ndarray, *dynamic: Value) -> None:
    """Puts a part into a tensor of the forall around it, which is the forall's own: in place."""
    _put(op, part, tensor, dynamic)


def _put(op: Instruction, part: Value, tensor: np.ndarray, dynamic: Sequence[Value]) -> None:
    index, sizes = _slice(op, tensor, dynamic, op.operand_types[0].shape)
    if list(part.shape) != sizes:
        raise _outside(op, f"puts a {list(part.shape)} where a {sizes} goes")
    tensor[index] = part.reshape(tensor[index].shape)


@executes("tensor.concat")
def concat(fiber: Fiber, op: Instruction, *tensors: np.ndarray) -> Value:
    """Tensors one after the other."""
    return np.concatenate(tensors, axis=op.attributes["dim"])


@executes("tensor.pad")
def pad(fiber: Fiber, op: Instruction, tensor: np.ndarray, *dynamic: Value) -> Value:
    """A tensor with more elements around it: what the region yields for their coordinates."""
    remaining = iter(dynamic)
    low, high = (mixed(op.attributes[f"static_{name}"], remaining) for name in ("low", "high"))
    if min(*low, *high, 0) < 0:
        raise _outside(op, f"adds {list(low)} elements before and {list(high)} after its source: expected none below 0")
    sizes = [before + size + after for before, size, after in zip(low, tensor.shape, high)]
    result = _generated(fiber, op, sizes)
    result[tuple(slice(before, before + size) for before, size in zip(low, tensor.shape))] = tensor
    return result


# Slices at indices.


def _picked(
    op: Instruction, name: str, tensor: np.ndarray, indices: np.ndarray
) -> tuple[list[int], tuple[np.ndarray, ...]]:
    """Returns the dimensions that indices are of, and the indices of each."""
    axes = list(op.attributes[name])
    return axes, tuple(_inside_axes(op, tensor, axes, np.moveaxis(np.asarray(indices), -1, 0)))


def _inside_axes(op: Instruction, tensor: np.ndarray, axes: Sequence[int], indices: np.ndarray) -> Iterator[np.ndarray]:
    for axis, along in zip(axes, indices):
        if np.any((along < 0) | (along >= tensor.shape[axis])):
            raise _outside(op, f"goes beyond the {tensor.shape[axis]} elements of dimension {axis}")
        yield along


@executes("tensor.gather")
def gather(fiber: Fiber, op: Instruction, tensor: np.ndarray, indices: np.ndarray) -> Value:
    """The slices at indices of some dimensions; these have size 1 in the result, or are left out."""
    axes, index = _picked(op, "gather_dims", tensor, indices)
    slices = np.moveaxis(tensor, axes, range(len(axes)))[index]
    slice_shape = [1 if axis in axes else size for axis, size in enumerate(tensor.shape)]
    is_whole = len(op.result_types[0].shape) == indices.ndim - 1 + tensor.ndim
    return slices.reshape(*indices.shape[:-1], *slice_shape) if is_whole else slices


@executes("tensor.scatter")
def scatter(fiber: Fiber, op: Instruction, part: np.ndarray, tensor: np.ndarray, indices: np.ndarray) -> Value:
    """The tensor with other slices at indices of some dimensions."""
    axes, index = _picked(op, "scatter_dims", tensor, indices)
    result = tensor.copy()
    view = np.moveaxis(result, axes, range(len(axes)))
    view[index] = part.reshape(view[index].shape)
    return result


# Shapes.


@executes("tensor.collapse_shape")
def collapse_shape(fiber: Fiber, op: Instruction, tensor: np.ndarray) -> Value:
    """Dimensions as one."""
    return tensor.reshape([math.prod(tensor.shape[axis] for axis in group) for group in op.attributes["reassociation"]])


@executes("tensor.expand_shape")
def expand_shape(fiber: Fiber, op: Instruction, tensor: np.ndarray, *dynamic: Value) -> Value:
    """A dimension as several."""
    sizes = mixed(op.attributes["static_output_shape"], iter(dynamic))
    if math.prod(sizes) != tensor.size:
        raise _outside(op, f"makes a {sizes} of a {list(tensor.shape)}")
    return tensor.reshape(sizes)


@executes("tensor.reshape")
def reshape(fiber: Fiber, op: Instruction, tensor: np.ndarray, sizes: Value) -> Value:
    """The same elements in another shape."""
    if math.prod(sizes.tolist()) != tensor.size:
        raise _outside(op, f"makes a {sizes.tolist()} of a {list(tensor.shape)}")
    return tensor.reshape(sizes.tolist())


# New tensors.


@executes("tensor.splat")
def splat(fiber: Fiber, op: Instruction, value: Value, *dynamic: Value) -> Value:
    """A splat of one value."""
    return np.full(_sizes(op, dynamic), value, op.result_types[0].element.dtype)


@executes("tensor.from_elements")
def from_elements(fiber: Fiber, op: Instruction, *elements: Value) -> Value:
    """A tensor of scalars."""
    type_ = op.result_types[0]
    return np.array(elements, type_.element.dtype).reshape(type_.shape)


@executes("tensor.generate")
def generate(fiber: Fiber, op: Instruction, *dynamic: Value) -> Value:
    """A tensor of the values that the region yields for the coordinates of each element."""
    return _generated(fiber, op, _sizes(op, dynamic))


def _generated(fiber: Fiber, op: Instruction, sizes: Sequence[Value]) -> np.ndarray:
    dtype = op.result_types[0].element.dtype
    coordinates = [axis.reshape(-1) for axis in np.indices(sizes, np.int64)]
    if coordinates and not coordinates[0].size:
        return np.empty(sizes, dtype)
    (value,) = fiber.evaluate(op.regions[0], coordinates)
    result = np.empty(sizes, dtype)
    result[...] = np.asarray(value).reshape(sizes) if np.ndim(value) else value
    return result


@executes("tensor.bitcast")
def bitcast(fiber: Fiber, op: Instruction, tensor: np.ndarray) -> Value:
    """The same bits as another type."""
    if op.result_types[0].element.bytes != tensor.dtype.itemsize:
        raise Unsupported(op, "between types of different sizes")
    return np.ascontiguousarray(tensor).view(op.result_types[0].element.dtype)
