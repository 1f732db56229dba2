"""gpu: kernels, launches, ids of threads and blocks, barriers and shuffles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import control_flow, values
from stepladder.emulator.core.blocks import Blocks
from stepladder.emulator.core.fibers import Fiber, Left, Unsupported
from stepladder.emulator.core.program import Builder, Function, Instruction, decode_attributes
from stepladder.emulator.core.registry import SHARED, executes, lowers
from stepladder.emulator.core.types import Buffer, Opaque, decode
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.func import define
from stepladder.emulator.dialects.memref import alloc
from stepladder.emulator.hardware import registers, synchronization
from stepladder.emulator.hardware.launch_limits import Asked, check_launch, cluster_of
from stepladder.emulator.memory import pointers
from stepladder.emulator.memory.sanitizer import WARP
from stepladder.mlir.bindings import ir
from stepladder.mlir.diagnostics import location_text
from stepladder.mlir.printed import keyword
from stepladder.runtime.targets import XE_SUBGROUPS

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group

_AXES = "xyz"
# The attribute of `llvm.func` with the number of threads of a subgroup; launches and `gpu.func` take it too.
_SUBGROUP_SIZE = "intel_reqd_sub_group_size"
_XE_DIALECTS, _XE_SUBGROUP = ("xegpu.", "xevm."), 16  # whose kernels have 16 threads a subgroup


def _axis(op: Instruction) -> int:
    return _AXES.index(keyword(op.attributes["dimension"]))


# Ids and sizes.


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
def number(fiber: Fiber, op: Instruction) -> Value:
    """A number of a thread, block or cluster along a dimension, or how many there are."""
    return _NUMBERS[op.name](fiber.group, _axis(op))


@executes("gpu.lane_id")
def lane_id(fiber: Fiber, op: Instruction) -> Value:
    """The thread's index in its warp."""
    return fiber.group.thread_of_lane % fiber.group.warp


@executes("gpu.subgroup_id")
def subgroup_id(fiber: Fiber, op: Instruction) -> Value:
    """The warp's index in its block."""
    return fiber.group.thread_of_lane // fiber.group.warp


@executes("gpu.subgroup_size")
def subgroup_size(fiber: Fiber, op: Instruction) -> Value:
    """Threads of a warp."""
    return fiber.group.warp


@executes("gpu.num_subgroups")
def num_subgroups(fiber: Fiber, op: Instruction) -> Value:
    """Warps of a block."""
    return fiber.group.warps_per_block


# Threads among each other.


@executes("gpu.barrier")
def barrier(fiber: Fiber, op: Instruction) -> None:
    """A barrier of all threads of the block."""
    synchronization.synchronize(fiber, op, at_one_op=True)


@executes("gpu.shuffle")
def shuffle(fiber: Fiber, op: Instruction, value: Value, offset: Value, width: Value) -> tuple[Value, ...]:
    """The value of another one of the first lanes of the warp, and whether there is one."""
    return shuffled(fiber, op, value, offset, _width_of_shuffle(fiber, op, width), keyword(op.attributes["mode"]))


def _width_of_shuffle(fiber: Fiber, op: Instruction, width: Value) -> Value:
    """Returns how many lanes of a warp exchange values; what a warp does not have is a finding."""
    group = fiber.group
    if values.is_uniform(width) and 1 <= width <= group.warp:
        return int(width)
    widths = values.lanes(np.asarray(width), fiber.count)
    warps, places = np.unique(group.warp_of_lane[fiber.lanes], return_index=True)
    of_warps = np.zeros(int(group.warp_of_lane[-1]) + 1, widths.dtype)
    of_warps[warps] = widths[fiber.lanes[places]]
    first = of_warps[group.warp_of_lane]
    wrong = ((widths != first) | (widths < 1) | (widths > group.warp)) & fiber.active
    if wrong.any():
        lane = int(wrong.argmax())
        group.sanitizer.report(
            "assumption",
            f"{group.thread_name(lane)} has a width of {int(widths[lane])}, and the first of its warp one of "
            f"{int(first[lane])}: it is one for all lanes, from 1 to {group.warp}",
            op,
        )
    return np.clip(first, 1, group.warp)


def shuffled(fiber: Fiber, op: Instruction, value: Value, offset: Value, size: Value, mode: str) -> tuple[Value, ...]:
    """Returns what each thread receives from another, and whether that is one of the first `size` lanes of its warp.

    A lane beyond these receives a value that is not specified: here it has all bits set.

    Args:
        fiber: of the threads.
        op: for findings.
        value: what they hold.
        offset: of the other thread, interpreted by `mode`.
        size: lanes among which values are exchanged.
        mode: "xor", "up", "down" or "idx".
    """
    group = fiber.group
    group.sanitizer.converge(fiber.warps)
    lane = group.thread_of_lane % group.warp
    other = {
        "xor": lambda: lane ^ offset,
        "up": lambda: lane - offset,
        "down": lambda: lane + offset,
        "idx": lambda: offset + np.zeros_like(lane),
    }[mode]()
    takes_part = lane < size
    valid = (other >= 0) & (other < size) & takes_part
    source = np.arange(fiber.count) + np.where(valid, other - lane, 0)
    of_block = group.thread_of_lane + source - np.arange(fiber.count) < group.threads
    missing = valid & ~(of_block & fiber.active[np.clip(source, 0, fiber.count - 1)]) & fiber.active
    if missing.any():
        taker = int(missing.argmax())
        group.sanitizer.report(
            "divergent-barrier",
            f"{group.thread_name(taker)} reads the value of a thread that does not execute the shuffle",
            op,
        )
    if takes_part.all() and values.is_uniform(value, op.operand_types[0].rank):
        return value, valid
    result = values.lanes(value, fiber.count, op.operand_types[0].rank)[np.clip(source, 0, fiber.count - 1)]
    if not takes_part.all():
        result.view(np.uint8).reshape(fiber.count, -1)[~takes_part] = 0xFF
    return result, valid


# Kernels.


@lowers("gpu.func")
def lower_gpu_func(builder: Builder, op: ir.Operation) -> None:
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


def _emit_attributions(builder: Builder, arguments: Sequence[ir.Value]) -> None:
    """Emits the memory that a kernel has as arguments: a block's, or a thread's own."""
    for argument in arguments:
        type_ = decode(argument.type)
        name = "memref.alloc" if isinstance(type_, Buffer) and type_.space == "shared" else "memref.alloca"
        allocation = builder.emit(name, alloc, (), builder.defined([argument]))
        allocation.location = location_text(argument.location) or allocation.location


@executes("gpu.return", "gpu.terminator")
def end(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """The thread ends."""
    synchronization.leave(fiber)
    raise Left


def lay_out(code: Sequence[Instruction], dynamic_bytes: int) -> tuple[int, dict]:
    """Returns the bytes of shared memory of a block, and the offsets of its contents (`registry.shared`).

    Args:
        code: the instructions of the kernel.
        dynamic_bytes: of dynamic shared memory.
    """
    layout: dict = {}
    place = 0
    dynamic: dict = {}  # all of it begins at one offset
    for op in code:
        requirement = SHARED[op.name](op) if op.name in SHARED else None
        if requirement is None:
            continue
        size, alignment, symbol = requirement
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


def _unplaced_bytes(code: Sequence[Instruction]) -> int:
    """Returns the bytes of shared memory that no step has placed yet: steps may place several of its parts at once."""
    allocations = (op for op in code if op.name == "memref.alloc" and "operandSegmentSizes" in op.attributes)
    return sum(
        op.result_types[0].extent * op.result_types[0].element.bytes for op in allocations if SHARED[op.name](op)
    )


def asked_of(
    code: Sequence[Instruction],
    grid: Sequence[int],
    block: Sequence[int],
    cluster: Sequence[int],
    dynamic: int,
    attributes: Mapping[str, object],
) -> Asked:
    """Returns what a launch of a kernel requires.

    Args:
        code: the instructions of the kernel.
        grid: blocks along x, y and z.
        block: threads along x, y and z.
        cluster: blocks of a cluster along x, y and z.
        dynamic: bytes of dynamic shared memory.
        attributes: of the kernel, by name.
    """
    static = lay_out(code, 0)[0] - _unplaced_bytes(code)
    with_dynamic = lay_out(code, dynamic)[0] - _unplaced_bytes(code)
    register_limit = attributes.get("nvvm.maxnreg")
    return Asked(
        grid,
        block,
        cluster,
        max(with_dynamic, dynamic),
        static,
        registers=register_limit if isinstance(register_limit, int) else None,
    )


def _segments(op: Instruction, operands: Sequence[Value]) -> list[list]:
    remaining = list(operands)
    parts = []
    for size in op.attributes["operandSegmentSizes"]:
        parts.append(remaining[:size])
        remaining = remaining[size:]
    return parts


def _start(
    fiber: Fiber,
    op: Instruction,
    code: list[Instruction],
    env_of: Callable[[Group], list],
    parts: Value,
    attributes: Mapping[str, object],
    chips: Sequence[str] = (),
) -> None:
    """Runs a grid: `parts` are the segments of a launch's operands, `attributes` and `chips` those of the kernel."""
    numbers = [int(part[0]) if part else 1 for part in parts[1:10]]
    dynamic = int(parts[10][0]) if parts[10] else 0
    window, layout = lay_out(code, dynamic)
    grid, block, cluster = numbers[:3], numbers[3:6], numbers[6:9]
    if not parts[7]:
        cluster = list(cluster_of(attributes) or cluster)
    machine = fiber.group.machine
    if not fiber.group.is_host:
        raise Unsupported(op, "inside of a kernel: expected a launch of the host")
    requirements = asked_of(code, grid, block, cluster, dynamic, attributes)
    if not check_launch(machine.findings if machine.sanitize else None, op, requirements, attributes, chips):
        return
    layout |= registers.of_kernel(math.prod(block), attributes)
    blocks = Blocks(block, grid, cluster, window, layout, _subgroup_size(op, code, attributes))
    # A token, or the stream of a lowered host.
    machine.launch(code, env_of, blocks, asynchronously=bool(op.result_types or any(parts[12:])))


def _subgroup_size(op: Instruction, code: Sequence[Instruction], attributes: Mapping[str, object]) -> int:
    """Returns the threads of a warp: those of a subgroup where the launch, its kernel or its ops state them."""
    is_xe = any(other.name.startswith(_XE_DIALECTS) for other in code)
    default = _XE_SUBGROUP if is_xe else WARP
    size = op.attributes.get(_SUBGROUP_SIZE, attributes.get(_SUBGROUP_SIZE, default))
    if size not in XE_SUBGROUPS:
        raise Unsupported(op, f"with {_SUBGROUP_SIZE} = {size}: {', '.join(map(str, XE_SUBGROUPS))} are known")
    return int(size)


@lowers("gpu.launch")
def lower_launch(builder: Builder, op: ir.Operation) -> None:
    """`gpu.launch`: its region, as a kernel that sees the values around it."""
    block = op.regions[0].blocks[0]
    numbers = list(block.arguments)
    attributes = decode_attributes(op)
    # Three values of each: ids of blocks and threads, then their counts; of clusters likewise.
    count = 18 if attributes["operandSegmentSizes"][7] else 12
    arguments = builder.defined(numbers[:count])
    launch = builder.emit(op.name, _launch, builder.used(op.operands), builder.defined(op.results), attributes)
    outer, builder.in_kernel = builder.in_kernel, True
    launch.cache["code"] = control_flow.separate(
        builder, op.regions[0], lambda: _emit_attributions(builder, numbers[count:])
    )
    builder.in_kernel = outer
    launch.cache["arguments"] = arguments


def _launch(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Runs the region of a launch."""

    def env_of(group: Group) -> list:
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

    _start(fiber, op, op.cache["code"], env_of, _segments(op, operands), {})


def _arguments(op: Instruction, kernel: Function, operands: Value) -> list:
    """Returns what a kernel gets of the arguments of a launch.

    Of a memref, where it takes pointers: the address that the offset counts from, which the kernel adds as its type has
    it (the convention of bare pointers), or, where it takes as many as there are in descriptors: two addresses, the
    offset, the sizes and the strides.
    """
    if len(kernel.arguments) == len(operands):
        return [
            pointers.aligned(value) if isinstance(value, values.MemRef) and isinstance(type_, Opaque) else value
            for value, type_ in zip(operands, kernel.argument_types)
        ]
    arguments = []
    for value in operands:
        arguments += pointers.descriptor(value) if isinstance(value, values.MemRef) else [value]
    if len(arguments) != len(kernel.arguments):
        raise Unsupported(op, f"of @{kernel.name} with {len(operands)} arguments: expected {len(kernel.arguments)}")
    return arguments


@executes("gpu.launch_func")
def launch_func(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """A kernel on a grid."""
    parts = _segments(op, operands)
    kernel = fiber.group.machine.program.functions.get(op.attributes["kernel"])
    if kernel is None:
        raise Unsupported(op, f"of @{op.attributes['kernel']}: there is no such kernel with a body")
    arguments = _arguments(op, kernel, parts[11])

    def env_of(group: Group) -> list:
        env: list = [None] * len(group.machine.program.slot_types)
        for slot, value in zip(kernel.arguments, arguments):
            env[slot] = value
        return env

    _start(fiber, op, kernel.code, env_of, parts, kernel.attributes, kernel.chips)
