"""Built-ins of OpenCL C that lowered XeVM calls, by their mangled names: indices of work-items, barriers, 2D blocks,
matrix products, and elementary functions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import EXECUTED
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.gpu import shuffled
from stepladder.emulator.dialects.xevm import lane_product
from stepladder.emulator.hardware import blocks2d, synchronization
from stepladder.emulator.hardware.blocks2d import ELEMENTS, Block
from stepladder.emulator.memory import pointers

Execute = Callable[..., Value]

_MANGLED = re.compile(r"_Z(\d+)(\w+)")
_BLOCK = re.compile(
    r"intel_sub_group_2d_block_(read|write|prefetch)(?:_(transform|transpose))?_(\d+)b_(\d+)r(\d+)x(\d+)c"
)
_MAD = re.compile(r"intel_sub_group_(f16|bf16|i8|u8)_(f16|bf16|i8|u8)_matrix_mad_k(\d+)")
_KINDS = {"i8": "s8"}
_ORDERS = {"": "plain", "transform": "packed", "transpose": "transposed"}

# Ids of a work-item along a dimension.
_NUMBERS = {
    "get_local_id": lambda group, axis: group.thread_id[axis],
    "get_group_id": lambda group, axis: group.block_id[axis],
    "get_local_size": lambda group, axis: group.block_dims[axis],
    "get_num_groups": lambda group, axis: group.grid_dims[axis],
    "get_global_id": lambda group, axis: group.block_id[axis] * group.block_dims[axis] + group.thread_id[axis],
}
_OF_SUBGROUPS = {
    "get_sub_group_id": "gpu.subgroup_id",
    "get_sub_group_size": "gpu.subgroup_size",
    "get_num_sub_groups": "gpu.num_subgroups",
    "get_sub_group_local_id": "gpu.lane_id",
}
_FUNCTIONS = {
    "exp": "math.exp",
    "exp2": "math.exp2",
    "log": "math.log",
    "log2": "math.log2",
    "sqrt": "math.sqrt",
    "rsqrt": "math.rsqrt",
    "sin": "math.sin",
    "cos": "math.cos",
    "tanh": "math.tanh",
}


def find(symbol: str) -> Execute | None:
    """Returns what executes a call of a built-in, None where the emulator does not know it.

    Args:
        symbol: the mangled name, such as `_Z12get_group_idj`.
    """
    match = _MANGLED.fullmatch(symbol)
    if match is None:
        return None
    name = match[2][: int(match[1])]
    if name in _NUMBERS:
        return functools.partial(_number, name)
    if name in _OF_SUBGROUPS:
        return EXECUTED[_OF_SUBGROUPS[name]]
    if name == "barrier":
        return _barrier
    if name in _SHUFFLES:
        return functools.partial(_shuffle, _SHUFFLES[name])
    block = _BLOCK.fullmatch(name)
    if block is not None:
        kind, order, bits, rows, columns, blocks = block.groups()
        form = Block(int(bits) // 8, int(rows), int(columns), int(blocks), _ORDERS[order or ""])
        return functools.partial(_BLOCK_OPERATIONS[kind], form)
    mad = _MAD.fullmatch(name)
    if mad is not None:
        kinds = (_KINDS.get(mad[1], mad[1]), _KINDS.get(mad[2], mad[2]))
        return functools.partial(_matrix_mad, kinds, int(mad[3]))
    function = _FUNCTIONS.get(name.removeprefix("__spirv_ocl_").removeprefix("native_"))
    return EXECUTED[function] if function is not None else None


def _number(name: str, fiber: Fiber, op: Instruction, axis: Value) -> Value:
    """A number of a work-item along a dimension."""
    return _NUMBERS[name](fiber.group, int(fiber.first(axis)))


def _barrier(fiber: Fiber, op: Instruction, flags: Value) -> None:
    """A barrier of all work-items of the work-group."""
    synchronization.synchronize(fiber, op, at_one_op=True)


_SHUFFLES = {"sub_group_shuffle": "idx", "sub_group_shuffle_xor": "xor"}


def _shuffle(mode: str, fiber: Fiber, op: Instruction, value: Value, number: Value) -> Value:
    """The value of another lane: with that index, or with one that differs by its bits."""
    return shuffled(fiber, op, value, number, blocks2d.LANES, mode)[0]


def _numbers(operands: tuple[Value, ...]) -> list[Value]:
    """Returns the scalar operands of a block operation; x and y are a vector."""
    *numbers, place = operands
    x, y = np.moveaxis(np.asarray(place), -1, 0)
    return [*numbers, *(part if part.ndim else part.item() for part in (x, y))]


def _read(block: Block, fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Loads a block to memory of a work-item."""
    elements = blocks2d.load(fiber, op, block, _numbers(operands[:-1]))
    pointers.write(fiber, op, operands[-1], elements, ELEMENTS[block.bytes], elements.shape[1:])


def _write(block: Block, fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Stores a block from memory of a work-item."""
    count = block.rows * block.columns * block.blocks // blocks2d.LANES
    elements = pointers.read(fiber, op, operands[-1], ELEMENTS[block.bytes], (count,))
    blocks2d.store(fiber, op, block, _numbers(operands[:-1]), values.lanes(np.asarray(elements), fiber.count, 1))


def _prefetch(block: Block, fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing but checks: caches are not modelled."""
    blocks2d.prefetch(fiber, op, block, _numbers(operands))


_BLOCK_OPERATIONS = {"read": _read, "write": _write, "prefetch": _prefetch}


def _matrix_mad(kinds: tuple[str, str], depth: int, fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """A product of one matrix instruction, added to C."""
    (rows,) = op.result_types[0].static_shape
    return lane_product(fiber, op, operands, kinds, (rows, depth))
