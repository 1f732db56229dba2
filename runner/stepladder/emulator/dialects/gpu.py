"""Kernels, the numbers of threads and blocks, barriers, shuffles, and matrices that a warp holds (WMMA)."""

from __future__ import annotations

import re

import numpy as np

from stepladder.emulator.core import control_flow, values
from stepladder.emulator.core.fibers import Left, Unsupported
from stepladder.emulator.core.program import decode_attributes
from stepladder.emulator.core.registry import SHARED, executes, lowers
from stepladder.emulator.core.types import Opaque, decode
from stepladder.emulator.dialects.func import define
from stepladder.emulator.dialects.memref import alloc
from stepladder.emulator.hardware import synchronization
from stepladder.emulator.memory import memory, pointers
from stepladder.emulator.memory.sanitizer import WARP
from stepladder.mlir.bindings import ir

_AXES = "xyz"


def _axis(op) -> int:
    return _AXES.index(re.search(r"([xyz])>?$", op.attributes["dimension"]).group(1))


# Numbers.


_NUMBERS = {
    "gpu.thread_id": lambda group, axis: group.thread_id[axis],  # in the block
    "gpu.block_id": lambda group, axis: group.block_id[axis],  # in the grid
    "gpu.block_dim": lambda group, axis: group.block_dims[axis],  # threads of a block
    "gpu.grid_dim": lambda group, axis: group.grid_dims[axis],  # blocks of the grid
    "gpu.global_id": lambda group, axis: group.block_id[axis] * group.block_dims[axis] + group.thread_id[axis],
    "gpu.cluster_dim_blocks": lambda group, axis: group.cluster_dims[axis],  # blocks of a cluster
    "gpu.cluster_dim": lambda group, axis: group.grid_dims[axis] // group.cluster_dims[axis],  # clusters of the grid
    "gpu.cluster_id": lambda group, axis: int(group.block_ids[0, axis]) // group.cluster_dims[axis],
    "gpu.cluster_block_id": lambda group, axis: group.block_id[axis] % group.cluster_dims[axis],
}


@executes(*_NUMBERS)
def number(fiber, op):
    """A number of a thread, block or cluster along a dimension, or how many there are."""
    return _NUMBERS[op.name](fiber.group, _axis(op))


@executes("gpu.lane_id")
def lane_id(fiber, op):
    """The thread's number in its warp."""
    return fiber.group.thread_of_lane % WARP


@executes("gpu.subgroup_id")
def subgroup_id(fiber, op):
    """The warp's number in its block."""
    return fiber.group.thread_of_lane // WARP


@executes("gpu.subgroup_size")
def subgroup_size(fiber, op):
    """Threads of a warp."""
    return WARP


@executes("gpu.num_subgroups")
def num_subgroups(fiber, op):
    """Warps of a block."""
    return fiber.group.warps_per_block


# Threads among each other.


@executes("gpu.barrier")
def barrier(fiber, op) -> None:
    """All threads of the block meet."""
    synchronization.meet(fiber, op, at_one_op=True)


@executes("gpu.shuffle")
def shuffle(fiber, op, value, offset, width):
    """The value of another thread of the warp, and whether there is one."""
    group = fiber.group
    lane = group.thread_of_lane % WARP
    size = int(fiber.first(width))
    mode = re.search(r"(xor|up|down|idx)", op.attributes["mode"]).group(1)
    within = lane % size
    other = {
        "xor": lambda: within ^ offset,
        "up": lambda: within - offset,
        "down": lambda: within + offset,
        "idx": lambda: offset + np.zeros_like(lane),
    }[mode]()
    valid = (other >= 0) & (other < size)
    source = np.arange(fiber.count) - within + np.where(valid, other, within)
    missing = valid[fiber.lanes] & ~fiber.active[np.clip(source[fiber.lanes], 0, fiber.count - 1)]
    if missing.any():
        group.sanitizer.report(
            "divergent-barrier",
            f"{group.thread_name(fiber.lanes[missing.argmax()])} takes the value of a thread that does not come here",
            op,
        )
    if values.is_uniform(value):
        return value, valid
    return value[np.clip(source, 0, fiber.count - 1)], valid


# Matrices that a warp holds, in an order that only the hardware knows: here one matrix a warp.


class WarpMatrix:
    """A matrix in each warp: `array` (warps, rows, columns)."""

    __slots__ = ("array", "group")

    def __init__(self, array: np.ndarray, group):
        self.array = array
        self.group = group

    @staticmethod
    def merged(parts: list, masks: list, count: int) -> WarpMatrix:
        """Returns the matrices that those warps have in each part that its mask is of."""
        group = parts[0].group
        array = parts[0].array.copy()
        for part, mask in zip(parts[1:], masks[1:]):
            warps = np.unique(group.warp_of_lane[mask])
            array[warps] = part.array[warps]
        return WarpMatrix(array, group)


def _matrix(op, type_) -> tuple[int, int, str, str]:
    """Returns rows, columns, element type and operand of a `!gpu.mma_matrix` type."""
    found = re.fullmatch(r'!gpu\.mma_matrix<(\d+)x(\d+)x(\w+), "(\w+)">', type_.text)
    if not found:
        raise Unsupported(op, f"of {type_.text}")
    return int(found[1]), int(found[2]), found[3], found[4]


def _elements(fiber, op, view, indices, type_) -> tuple:
    """Returns a fiber of one thread a warp, and the elements of its matrix in memory."""
    if "matrix" not in op.cache:
        op.cache["matrix"] = _matrix(op, type_)
    rows, columns, *_ = op.cache["matrix"]
    one = fiber.representatives()
    shape = (rows, columns)
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    if op.attributes.get("transpose"):
        row, column = column.T, row.T

    def wide(index):
        return index.reshape(-1, 1, 1) if isinstance(index, np.ndarray) else index

    *outer, first, last = (wide(index) for index in indices)
    lead = op.attributes["leadDimension"]
    if not all(isinstance(stride, int) for stride in view.strides) or view.strides[-2] != lead:
        raise Unsupported(op, f"whose leading dimension ({lead}) is not that of the memref")
    return one, memory.locate(one, op, view, [*outer, first + row, last + column], shape)


@executes("gpu.subgroup_mma_load_matrix")
def load_matrix(fiber, op, view, *indices):
    """A matrix from memory."""
    group = fiber.group
    one, access = _elements(fiber, op, view, indices, op.result_types[0])
    found = memory.take(one, op, access, is_matrix=True)
    array = np.zeros((group.warps, *found.shape[-2:]), found.dtype)
    array[fiber.warps] = found
    return WarpMatrix(array, group)


@executes("gpu.subgroup_mma_store_matrix")
def store_matrix(fiber, op, matrix, view, *indices) -> None:
    """A matrix to memory."""
    one, access = _elements(fiber, op, view, indices, op.operand_types[0])
    mine = matrix.array[fiber.warps].astype(view.element.dtype)
    if not access.per_lane:
        access = memory.with_lanes(access, len(one.lanes))
    memory.put(one, op, access, mine, is_matrix=True)


@executes("gpu.subgroup_mma_compute")
def compute(fiber, op, a, b, c):
    """A product added to a matrix: each element's products are summed in the type of the sums."""
    group = fiber.group
    left = np.swapaxes(a.array, 1, 2) if op.attributes.get("a_transpose") else a.array
    right = np.swapaxes(b.array, 1, 2) if op.attributes.get("b_transpose") else b.array
    # The order within one instruction is not specified; products are exact in float32, and are summed in it.
    exact = np.int32 if left.dtype == np.int8 else np.float64 if left.dtype == np.float64 else np.float32
    product = np.matmul(left.astype(exact), right.astype(exact))
    if group.counters is not None:
        group.counters.products(fiber, op, left.shape[1] * left.shape[2] * right.shape[2])
    return WarpMatrix((product + c.array.astype(product.dtype)).astype(c.array.dtype), group)


@executes("gpu.subgroup_mma_constant_matrix")
def constant_matrix(fiber, op, value):
    """A matrix with the same number everywhere."""
    rows, columns, *_ = _matrix(op, op.result_types[0])
    group = fiber.group
    array = np.empty((group.warps, rows, columns), op.operand_types[0].dtype)
    array[:] = (
        value
        if values.is_uniform(value)
        else value[np.searchsorted(group.warp_of_lane, np.arange(group.warps))].reshape(-1, 1, 1)
    )
    return WarpMatrix(array, group)


_ELEMENTWISE = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "maxf": np.maximum,
    "minf": np.minimum,
    "negatef": np.negative,
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
}


@executes("gpu.subgroup_mma_elementwise")
def elementwise(fiber, op, *matrices):
    """The same operation on all elements."""
    name = re.search(r"(\w+)>?$", op.attributes["opType"]).group(1).lower()
    arrays = [matrix.array for matrix in matrices]
    if name in ("extf", "truncf"):
        element = _matrix(op, op.result_types[0])[2]
        return WarpMatrix(arrays[0].astype({"f16": np.float16, "f32": np.float32}[element]), fiber.group)
    if name not in _ELEMENTWISE:
        raise Unsupported(op, name)
    return WarpMatrix(_ELEMENTWISE[name](*arrays).astype(arrays[0].dtype), fiber.group)


# Kernels.


@lowers("gpu.func")
def lower_gpu_func(builder, op) -> None:
    """`gpu.func`: a kernel, by its module's name and its own, or a function that kernels call."""
    if "gpu.kernel" not in op.attributes and "kernel" not in op.attributes:
        return
    outer, builder.in_kernel = builder.in_kernel, True
    arguments = list(op.regions[0].blocks[0].arguments)
    count = len(ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).inputs)
    define(
        builder,
        op,
        "::".join([*builder.modules, op.attributes["sym_name"].value]),
        arguments[:count],
        lambda: _emit_attributions(builder, arguments[count:]),
    )
    builder.in_kernel = outer


def _emit_attributions(builder, arguments) -> None:
    """Emits the memory that a kernel has as arguments: a block's, or a thread's own."""
    for argument in arguments:
        name = "memref.alloc" if decode(argument.type).space == "shared" else "memref.alloca"
        builder.emit(name, alloc, (), builder.defined([argument]))


@executes("gpu.return", "gpu.terminator")
def end(fiber, op, *operands) -> None:
    """The thread ends."""
    synchronization.leave(fiber)
    raise Left


def _lay_out(code, dynamic_bytes: int) -> tuple[int, dict]:
    """Returns the shared memory that a block needs, and where in it what stands (`registry.shared`)."""
    layout: dict = {}
    place = 0
    dynamic: dict = {}  # all of it begins at one place
    for op in code:
        wanted = SHARED[op.name](op) if op.name in SHARED else None
        if wanted is None:
            continue
        size, alignment, symbol = wanted
        key = op.number if symbol is None else symbol
        if size is None:
            dynamic[key] = alignment
        elif key not in layout:
            place = -(-place // alignment) * alignment
            layout[key] = place
            place += size
    if dynamic:
        alignment = max(dynamic.values())
        place = -(-place // alignment) * alignment
        layout.update(dict.fromkeys(dynamic, place))
        place += dynamic_bytes
    return place, layout


def _segments(op, operands) -> list[list]:
    rest = list(operands)
    parts = []
    for size in op.attributes["operandSegmentSizes"]:
        parts.append(rest[:size])
        rest = rest[size:]
    return parts


def _start(fiber, op, code, env_of, parts) -> None:
    """Runs a grid: `parts` are the segments of a launch's operands."""
    numbers = [int(part[0]) if part else 1 for part in parts[1:10]]
    dynamic = int(parts[10][0]) if parts[10] else 0
    window, layout = _lay_out(code, dynamic)
    grid, block, cluster = numbers[:3], numbers[3:6], numbers[6:9]
    machine = fiber.group.machine
    if not fiber.group.is_host:
        raise Unsupported(op, "inside of a kernel")
    if any(size % of for size, of in zip(grid, cluster)):
        raise Unsupported(op, f"of {grid} blocks, which clusters of {cluster} do not divide")
    machine.launch(code, env_of, grid, block, cluster, window, layout, asynchronously=bool(op.result_types))


@lowers("gpu.launch")
def lower_launch(builder, op) -> None:
    """`gpu.launch`: its region, as a kernel that sees the values around it."""
    block = op.regions[0].blocks[0]
    numbers = list(block.arguments)
    attributes = decode_attributes(op)
    # Three numbers of each: blocks' and threads' places, then how many there are; of clusters likewise.
    count = 18 if attributes["operandSegmentSizes"][7] else 12
    arguments = builder.defined(numbers[:count])
    launch = builder.emit(op.name, _launch, builder.used(op.operands), builder.defined(op.results), attributes)
    outer, builder.in_kernel = builder.in_kernel, True
    launch.cache["code"] = control_flow.separate(
        builder, op.regions[0], lambda: _emit_attributions(builder, numbers[count:])
    )
    builder.in_kernel = outer
    launch.cache["arguments"] = arguments


def _launch(fiber, op, *operands) -> None:
    """Runs the region of a launch."""

    def env_of(group) -> list:
        env = list(fiber.env)
        clusters = []
        if len(op.cache["arguments"]) > 12:
            clusters = [
                *(int(group.block_ids[0, axis]) // group.cluster_dims[axis] for axis in range(3)),
                *(group.grid_dims[axis] // group.cluster_dims[axis] for axis in range(3)),
            ]
        numbers = [*group.block_id, *group.thread_id, *group.grid_dims, *group.block_dims, *clusters]
        for slot, value in zip(op.cache["arguments"], numbers):
            env[slot] = value
        return env

    _start(fiber, op, op.cache["code"], env_of, _segments(op, operands))


def _arguments(op, kernel, given) -> list:
    """Returns what a kernel gets of the arguments of a launch.

    Of a memref, where it takes pointers: the address of the first element (the convention of bare pointers), or, where
    it takes as many as there are in descriptors: two addresses, the offset, the sizes and the strides.
    """
    if len(kernel.arguments) == len(given):
        return [
            pointers.first_element(value) if isinstance(value, values.MemRef) and isinstance(type_, Opaque) else value
            for value, type_ in zip(given, kernel.argument_types)
        ]
    found = []
    for value in given:
        found += pointers.descriptor(value) if isinstance(value, values.MemRef) else [value]
    if len(found) != len(kernel.arguments):
        raise Unsupported(op, f"of @{kernel.name} with {len(given)} arguments: it takes {len(kernel.arguments)}")
    return found


@executes("gpu.launch_func")
def launch_func(fiber, op, *operands) -> None:
    """A kernel on a grid."""
    parts = _segments(op, operands)
    kernel = fiber.group.machine.program.functions.get(op.attributes["kernel"])
    if kernel is None:
        raise Unsupported(op, f"of @{op.attributes['kernel']}: there is no such kernel with a body")
    arguments = _arguments(op, kernel, parts[11])

    def env_of(group) -> list:
        env: list = [None] * len(group.machine.program.slot_types)
        for slot, value in zip(kernel.arguments, arguments):
            env[slot] = value
        return env

    _start(fiber, op, kernel.code, env_of, parts)
