"""linalg: structured ops, named and generic, on tensors and on memory.

A structured op is a loop nest around a scalar body. Parallel loops execute at once: the body receives arrays with one
dimension for each loop, and NumPy broadcasts. Reduction loops execute one iteration after the other, in order, so that
each addition is rounded as in the body.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.core.types import Scalar, Type
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.dialects.bufferization import everywhere
from stepladder.emulator.dialects.linalg_loops import Loops, Operand
from stepladder.emulator.hardware.warps import (
    alike,
    is_of_block,
    meet_in_blocks,
    narrowed,
    once_a_block,
    once_a_warp,
    varying,
)
from stepladder.emulator.memory import memory
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps

# Elements that are read at once for all iterations of reductions; more would take too much memory.
_GATHERED = 1 << 22
_ELEMENTWISE = (
    "abs",
    "add",
    "ceil",
    "copy",
    "div",
    "div_unsigned",
    "elementwise",
    "erf",
    "exp",
    "fill",
    "floor",
    "log",
    "map",
    "max",
    "min",
    "mul",
    "negf",
    "powf",
    "reciprocal",
    "round",
    "rsqrt",
    "select",
    "sqrt",
    "square",
    "sub",
    "tanh",
)
_MOVING = ("broadcast", "transpose")
_REDUCING = (
    "batch_matmul",
    "batch_matvec",
    "batch_mmt4d",
    "batch_reduce_matmul",
    "batch_vecmat",
    "contract",
    "conv_1d",
    "conv_1d_ncw_fcw",
    "conv_1d_nwc_wcf",
    "conv_2d",
    "conv_2d_nchw_fchw",
    "conv_2d_nchw_fchw_q",
    "conv_2d_ngchw_fgchw",
    "conv_2d_ngchw_gfchw",
    "conv_2d_ngchw_gfchw_q",
    "conv_2d_nhwc_fhwc",
    "conv_2d_nhwc_fhwc_q",
    "conv_2d_nhwc_hwcf",
    "conv_2d_nhwc_hwcf_q",
    "conv_2d_nhwgc_gfhwc",
    "conv_2d_nhwgc_gfhwc_q",
    "conv_3d",
    "conv_3d_ncdhw_fcdhw",
    "conv_3d_ndhwc_dhwcf",
    "conv_3d_ndhwc_dhwcf_q",
    "depthwise_conv_1d_ncw_cw",
    "depthwise_conv_1d_nwc_wc",
    "depthwise_conv_1d_nwc_wcm",
    "depthwise_conv_2d_nchw_chw",
    "depthwise_conv_2d_nhwc_hwc",
    "depthwise_conv_2d_nhwc_hwc_q",
    "depthwise_conv_2d_nhwc_hwcm",
    "depthwise_conv_2d_nhwc_hwcm_q",
    "depthwise_conv_3d_ncdhw_cdhw",
    "depthwise_conv_3d_ndhwc_dhwc",
    "depthwise_conv_3d_ndhwc_dhwcm",
    "dot",
    "generic",
    "matmul",
    "matvec",
    "mmt4d",
    "pooling_nchw_max",
    "pooling_nchw_sum",
    "pooling_ncw_max",
    "pooling_ncw_sum",
    "pooling_ndhwc_max",
    "pooling_ndhwc_min",
    "pooling_ndhwc_sum",
    "pooling_nhwc_max",
    "pooling_nhwc_max_unsigned",
    "pooling_nhwc_min",
    "pooling_nhwc_min_unsigned",
    "pooling_nhwc_sum",
    "pooling_nwc_max",
    "pooling_nwc_max_unsigned",
    "pooling_nwc_min",
    "pooling_nwc_min_unsigned",
    "pooling_nwc_sum",
    "quantized_batch_matmul",
    "quantized_matmul",
    "reduce",
    "vecmat",
)


@lowers(*(f"linalg.{name}" for name in (*_ELEMENTWISE, *_MOVING, *_REDUCING)))
def lower(builder: Builder, op: ir.Operation) -> None:
    """A structured op: its maps are attributes, or follow from its name."""
    attributes = decode_attributes(op)
    attributes["maps"] = indexing_maps(op)
    body = builder.body(op.regions[0])
    builder.emit(op.name, structured, builder.used(op.operands), builder.defined(op.results), attributes, [body])


def structured(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """Runs an op: once a warp where its threads execute the same, and once a block where all threads do.

    An op that does not depend on the thread is not mapped to threads yet. It is the block's, as if barriers stood
    before and after it.
    """
    if "loops" not in op.cache:
        op.cache["loops"] = Loops(op)
    loops: Loops = op.cache["loops"]
    for slot in loops.captured:
        if isinstance(fiber.group.machine.program.slot_types[slot], Scalar) and isinstance(fiber.env[slot], np.ndarray):
            raise Unsupported(op, "whose body captures a value that differs between threads")
    views = [operand for operand in operands if isinstance(operand, MemRef)]
    numbers = varying(
        fiber, views, [operand for operand, type_ in zip(operands, op.operand_types) if isinstance(type_, Scalar)]
    )
    # An op that no step has mapped to threads yet executes once a block: all threads arrive, one executes it.
    of_block = is_of_block(fiber, numbers)
    if of_block:
        meet_in_blocks(fiber)
        doing = once_a_block(fiber)
    else:
        doing, _ = once_a_warp(fiber, numbers)
    for part in alike(doing, [size for view in views for size in view.sizes]):
        results = _run(part, op, loops, operands)
    if of_block:
        meet_in_blocks(fiber)
    return results[0] if len(results) == 1 else results


def _run(fiber: Fiber, op: Instruction, loops: Loops, operands: Sequence[Value]) -> tuple:
    """Runs an op for lanes whose views have the same sizes; returns the tensors that it makes.

    In here, every array has L leading lanes, or one where all lanes have the same.
    """
    shapes = [
        tuple(map(fiber.first, operand.sizes)) if isinstance(operand, MemRef) else np.shape(operand)
        for operand in operands
    ]
    sizes = loops.sizes(op, shapes)
    # An output that the loops do not cover keeps what it has elsewhere.
    read_outputs = {
        operand.number
        for operand in loops.outputs
        if operand.is_used or len({loop for _, loop in operand.sizes}) < len(shapes[operand.number])
    }
    inputs = {operand.number for operand in loops.operands if operand.is_used}
    arrays: list = [None] * len(operands)
    for number in read_outputs | inputs:
        arrays[number] = _content(fiber, op, operands[number], op.operand_types[number], shapes[number])
    lanes = max((len(array) for array in arrays if isinstance(array, np.ndarray)), default=1)
    for operand in loops.outputs:
        number = operand.number
        initial = arrays[number]
        shape = (lanes, *shapes[number])
        dtype = op.operand_types[number].element.dtype
        # Where nothing is kept, every element is written below, if the loops run at all.
        arrays[number] = np.array(np.broadcast_to(initial, shape)) if initial is not None else np.zeros(shape, dtype)
    _iterate(fiber, op, loops, sizes, arrays)
    results = []
    for operand in loops.outputs:
        target, array = operands[operand.number], arrays[operand.number]
        if not isinstance(target, MemRef):
            results.append(array[0])
            continue
        if len(array) > 1:
            full_array = np.zeros((fiber.count, *array.shape[1:]), array.dtype)
            full_array[fiber.lanes] = array
        else:
            full_array = array[0]
        memory.write(fiber, op, target, everywhere(array.shape[1:]), full_array, array.shape[1:])
    return tuple(results) or (None,)


def _content(fiber: Fiber, op: Instruction, operand: Value, type_: Type, shape: tuple[int, ...]) -> Value:
    """Returns a scalar that is the same for all lanes as it is, and any other operand as an array (L, *shape)."""
    if isinstance(operand, MemRef):
        value = memory.read(fiber, op, operand, everywhere(shape), shape)
        return value[fiber.lanes] if value.ndim > len(shape) else value[None]
    if isinstance(type_, Scalar):
        return operand[fiber.lanes] if isinstance(operand, np.ndarray) else operand
    return operand[None]


def _iterate(fiber: Fiber, op: Instruction, loops: Loops, sizes: list[int], arrays: list) -> None:
    """Runs the loops, and writes the outputs' elements."""
    rank = loops.count
    body = op.regions[0]
    if fiber.mask is not None:
        fiber = narrowed(fiber, np.ones(fiber.count, bool))  # the body's lanes are those that are active
    coordinates: list = list(np.ogrid[tuple(slice(size) for size in sizes)]) if rank else []

    def places(operand: Operand) -> tuple:
        return (
            slice(None),
            *(np.asarray(place).reshape(np.shape(place) or (1,) * rank) for place in operand.of_loops(*coordinates)),
        )

    def elements(operand: Operand) -> Value:
        array = arrays[operand.number]
        if not isinstance(array, np.ndarray):
            return array
        if operand.is_permuted and operand.loops.isdisjoint(loops.reductions):
            return operand.by_loops(array, rank)
        element_index = places(operand)
        return array[element_index] if len(element_index) > 1 else array.reshape(-1, *(1,) * rank)

    reduced_coordinates = list(coordinates)
    for loop in loops.reductions:
        coordinates[loop] = 0
    # Copies: the body may yield them, for outputs in another order too.
    sums = [np.array(elements(operand)) for operand in loops.outputs]
    inputs = loops.operands[: len(loops.operands) - len(sums)]
    fixed_elements, permuted, rows = {}, {}, {}
    for operand in inputs:
        if operand.is_used and operand.loops.isdisjoint(loops.reductions):
            fixed_elements[operand.number] = elements(operand)
        elif operand.is_used and operand.is_permuted:
            permuted[operand.number] = operand.by_loops(arrays[operand.number], rank)
        elif operand.is_used and math.prod(sizes[loop] for loop in operand.loops) <= _GATHERED:
            rows[operand.number] = _along(operand, arrays[operand.number], reduced_coordinates, loops.reductions)

    def read(operand: Operand, point: tuple[int, ...]) -> Value:
        if operand.number in permuted:
            index: list = [slice(None)] * (1 + rank)
            for loop, at in zip(loops.reductions, point):
                if loop in operand.loops:
                    index[1 + loop] = slice(at, at + 1)
            return permuted[operand.number][tuple(index)]
        if operand.number in rows:
            array = rows[operand.number]
            return array[(slice(None), *(at if size > 1 else 0 for at, size in zip(point, array.shape[1:])))]
        return (
            fixed_elements.get(operand.number)
            if operand.number in fixed_elements or not operand.is_used
            else elements(operand)
        )

    for point in itertools.product(*(range(sizes[loop]) for loop in loops.reductions)):
        for loop, coordinate in zip(loops.reductions, point):
            coordinates[loop] = coordinate
        for index in loops.indices:
            index.cache["coordinate"] = coordinates[index.attributes["dim"]]
        sums = fiber.evaluate(body, [read(operand, point) for operand in inputs] + sums)
    for operand, value in zip(loops.outputs, sums):
        array = arrays[operand.number]
        if operand.is_permuted:
            operand.by_loops(array, rank)[...] = value
            continue
        element_index = places(operand)
        array[element_index if len(element_index) > 1 else ...] = (
            value if len(element_index) > 1 else np.reshape(value, (-1,))
        )


def _along(operand: Operand, array: np.ndarray, coordinates: list, reductions: Sequence[int]) -> np.ndarray:
    """Returns the elements that all iterations of reductions read, which takes less time than to read those of each.

    Args:
        operand: that depends on a loop of a reduction.
        array: its content, (L, ...).
        coordinates: of all loops, as `np.ogrid` returns them.
        reductions: indices of the loops of reductions.

    Returns:
        (L, iterations of each reduction, elements of one iteration), 1 for a loop that the operand does not depend on.
    """
    count, rank = len(reductions), len(coordinates)
    wide = []
    for loop, coordinate in enumerate(coordinates):
        if loop in reductions:
            shape = [1] * (count + rank)
            shape[reductions.index(loop)] = coordinate.size
        else:
            shape = [*(1,) * count, *coordinate.shape]
        wide.append(coordinate.reshape(shape))
    places = (np.asarray(place) for place in operand.of_loops(*wide))
    return array[(slice(None), *(place.reshape(place.shape or (1,) * (count + rank)) for place in places))]


@executes("linalg.index")
def index(fiber: Fiber, op: Instruction) -> Value:
    """The coordinate of a loop, which the op around it has stored."""
    return op.cache["coordinate"]
