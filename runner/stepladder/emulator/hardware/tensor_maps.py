"""TMA descriptors as 128 bytes of memory, which kernels make and change (`tensormap.replace`).

The hardware does not say where the fields are. Here they are at the offsets in `FIELDS`, innermost dimensions first,
and as PTX gives them: the rank less one, strides in bytes.
Source: PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy", "Tensor-map".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from stepladder.emulator.core.types import Scalar
from stepladder.emulator.hardware.tma import Descriptor

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.memory.memory import Allocation

BYTES = 128
_MOST = 5  # dimensions


@dataclass(frozen=True)
class Field:
    """A field: its first byte, the bits of a value, and how many values there are."""

    start: int
    bits: int
    count: int = 1


FIELDS = {
    "global_address": Field(0, 64),
    "rank": Field(8, 8),
    "elemtype": Field(9, 8),
    "swizzle_mode": Field(10, 8),
    "interleave_layout": Field(11, 8),
    "fill_mode": Field(12, 8),
    "box_dim": Field(16, 16, _MOST),
    "element_stride": Field(28, 8, _MOST),
    "global_dim": Field(36, 32, _MOST),
    "global_stride": Field(56, 64, _MOST - 1),
}
_ELEMENTS: dict[int, tuple[str, type]] = {
    0: ("i8", np.int8),
    1: ("i16", np.int16),
    2: ("i32", np.uint32),
    3: ("i32", np.int32),
    4: ("i64", np.uint64),
    5: ("i64", np.int64),
    6: ("f16", np.float16),
    7: ("f32", np.float32),
    9: ("f64", np.float64),
    10: ("bf16", ml_dtypes.bfloat16),
    11: ("f32", np.float32),
}
_SWIZZLES = (0, 32, 64, 128)


def encoded(descriptor: Descriptor) -> bytes:
    """Returns the bytes of a descriptor.

    Args:
        descriptor: that the host made.
    """
    item = descriptor.element.bytes
    dtype = descriptor.element.dtype
    kinds = [number for number, (_, numpy_type) in _ELEMENTS.items() if np.dtype(numpy_type) == dtype]
    rank = len(descriptor.box)
    numbers = {
        "global_address": [descriptor.memory.address + descriptor.start],
        "rank": [rank - 1],
        "elemtype": kinds[:1] or [0],  # of 8 bits, those of fp8 too
        "swizzle_mode": [_SWIZZLES.index(descriptor.swizzle)],
        "fill_mode": [descriptor.fills_nan],
        "box_dim": descriptor.box[::-1],
        "element_stride": [1] * rank,
        "global_dim": descriptor.sizes[::-1],
        "global_stride": [stride * item for stride in descriptor.strides[-2::-1]],
    }
    data = bytearray(BYTES)
    for name, numbers_of_field in numbers.items():
        field = FIELDS[name]
        field_bytes = np.array(numbers_of_field, np.int64).astype(f"i{field.bits // 8}").tobytes()
        data[field.start : field.start + len(field_bytes)] = field_bytes
    return bytes(data)


def decoded(data: np.ndarray, find: Callable[[int], Allocation | None]) -> Descriptor | str:
    """Returns the descriptor encoded in bytes, or the reason why they are not one.

    Args:
        data: `BYTES` of them.
        find: returns the allocation that an address of global memory is in.
    """

    def numbers(name: str) -> list[int]:
        field = FIELDS[name]
        kind = np.dtype(f"u{field.bits // 8}")
        part = data[field.start : field.start + field.count * kind.itemsize].tobytes()
        return [int(number) for number in np.frombuffer(part, kind)]

    rank = numbers("rank")[0] + 1
    kind, swizzle = numbers("elemtype")[0], numbers("swizzle_mode")[0]
    if rank > _MOST or kind not in _ELEMENTS or swizzle >= len(_SWIZZLES):
        return f"a rank of {rank}, an element type of {kind} or a swizzle mode of {swizzle} is not known"
    if numbers("interleave_layout")[0] or set(numbers("element_stride")[:rank]) != {1}:
        return "interleaved layouts and strides of elements are not supported: expected 0 for the one, 1 for the other"
    fill = numbers("fill_mode")[0]
    if fill > 1:
        return f"a fill mode of {fill} is not known: expected 0 for zeros, or 1 for NaN"
    address = numbers("global_address")[0]
    memory = find(address)
    box, sizes = (tuple(numbers(name)[:rank][::-1]) for name in ("box_dim", "global_dim"))
    if memory is None or not all(box) or not all(sizes):
        return f"its address {address:#x} is not in global memory, or a size is 0"
    element = Scalar(_ELEMENTS[kind][0], np.dtype(_ELEMENTS[kind][1]), 8 * np.dtype(_ELEMENTS[kind][1]).itemsize)
    strides = numbers("global_stride")[: rank - 1]
    if any(stride % element.bytes for stride in strides):
        return f"strides of {strides} bytes are no multiples of an element"
    outer = tuple(stride // element.bytes for stride in strides[::-1])
    descriptor = Descriptor(
        memory,
        address - memory.address,
        element,
        sizes,
        (*outer, 1),
        box,
        _SWIZZLES[swizzle],
        fills_nan=bool(fill),
    )
    return next(iter(descriptor.problems()), descriptor)


# Descriptors that kernels have written to global memory: which version is there, and which a block has fenced.


def note_written(group: Group, address: int) -> None:
    """Notes that a descriptor has been written to global memory.

    Args:
        group: whose thread did.
        address: of the descriptor.
    """
    globals_ = group.machine.globals
    globals_["written map", address] = globals_.get(("written map", address), 0) + 1


def note_fenced(group: Group, address: int) -> None:
    """Notes that a block has fenced what the generic proxy wrote to a descriptor.

    Args:
        group: whose thread did.
        address: of the descriptor.
    """
    group.state["fenced map", address] = group.machine.globals.get(("written map", address), 0)


def check_fenced(group: Group, op: Instruction, address: int) -> None:
    """Reports the use of a descriptor that a kernel has written, without a fence of its block after that.

    Args:
        group: whose thread uses it.
        op: the instruction.
        address: of the descriptor.
    """
    version = group.machine.globals.get(("written map", address), 0)
    if group.state.get(("fenced map", address), 0) < version:
        group.sanitizer.report(
            "proxy",
            f"uses the TMA descriptor at {address:#x}, and no fence.proxy.tensormap (acquire) follows the write to it",
            op,
        )
