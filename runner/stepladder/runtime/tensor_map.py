"""TMA descriptors: encoding one for a buffer, into the 128 bytes that a kernel takes by value.

The driver's own cuTensorMapEncodeTiled is called, by its address: it must be given memory that is aligned to 64 bytes
to write to, and cuda-python's function of that name has it write into a Python object, which is aligned to 16.
"""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING

import numpy as np

from stepladder.runtime.bundle import TmaDescriptor
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError

if TYPE_CHECKING:
    from stepladder.runtime.launch import Buffer, Device

TENSOR_MAP_BYTES = 128
# What cuda.h declares since CUDA 13; it was 64 before, and kernels and the driver want no more than that.
TENSOR_MAP_ALIGNMENT = 128

# The CUDA version that the driver's function came with.
ENCODE_VERSION = 12000

# Values of CUtensorMapDataType; 8-bit floating-point numbers are moved as bytes.
DATA_TYPES = {"i8": 0, "f8E4M3FN": 0, "f8E5M2": 0, "i32": 3, "f16": 6, "f32": 7, "bf16": 9}
# Values of CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion and CUtensorMapFloatOOBfill.
INTERLEAVES = {"none": 0, "16b": 1, "32b": 2}
SWIZZLES = {"none": 0, "32b": 1, "64b": 2, "128b": 3}
L2_PROMOTIONS = {"none": 0, "64b": 1, "128b": 2, "256b": 3}
OOB_FILLS = {"zero": 0, "nan": 1}

# The hardware's limits, in bytes but for those of extents.
ADDRESS_ALIGNMENT = 16
STRIDE_ALIGNMENT = 16
STRIDE_LIMIT = 1 << 40
EXTENT_LIMIT = 1 << 32
BOX_LIMIT = 256
BOX_ROW_ALIGNMENT = 16
SWIZZLE_BYTES = {"32b": 32, "64b": 64, "128b": 128}

# CUresult cuTensorMapEncodeTiled(map, type, rank, address, extents, strides, box, element strides, interleave, swizzle,
# L2 promotion, fill), all lists innermost dimension first.
ENCODE_TILED = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_uint32,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
)


class TensorMap:
    """The host copy of a TMA descriptor, which the driver reads at every launch.

    Attributes:
        address: address of its 128 bytes, a multiple of 128; valid as long as this object is.
    """

    def __init__(self) -> None:
        self._memory = np.zeros(TENSOR_MAP_BYTES + TENSOR_MAP_ALIGNMENT, np.uint8)
        start = self._memory.ctypes.data
        self.address = start + -start % TENSOR_MAP_ALIGNMENT


def encode(device: Device, descriptor: TmaDescriptor, buffer: Buffer) -> TensorMap:
    """Returns a descriptor of `buffer`.

    Args:
        device: the GPU that the buffer is on.
        descriptor: how the buffer is seen.
        buffer: what begins at the base address.

    Raises:
        StepladderError: an element type that TMA does not have, a tensor larger than the buffer, or a limit of the
            hardware that is passed; the message names the parameter.
        CudaError: the driver refuses the parameters all the same.
    """
    check(descriptor, buffer.address, buffer.size)
    address = device._call("cuGetProcAddress", b"cuTensorMapEncodeTiled", ENCODE_VERSION, 0)
    if not address:
        raise StepladderError(
            "the driver has no TMA descriptors (cuTensorMapEncodeTiled); nothing was executed",
            notes=["drivers for CUDA 12 and later have them"],
            status=NOT_EXECUTED,
        )

    def innermost_first(values: tuple[int, ...], kind: type) -> ctypes.Array:
        return (kind * len(values))(*reversed(values))

    tensor_map = TensorMap()
    error = ENCODE_TILED(address)(
        tensor_map.address,
        DATA_TYPES[descriptor.element_type],
        len(descriptor.shape),
        buffer.address,
        innermost_first(descriptor.shape, ctypes.c_uint64),
        innermost_first(descriptor.strides, ctypes.c_uint64),
        innermost_first(descriptor.box, ctypes.c_uint32),
        innermost_first(descriptor.element_strides, ctypes.c_uint32),
        INTERLEAVES[descriptor.interleave],
        SWIZZLES[descriptor.swizzle],
        L2_PROMOTIONS[descriptor.l2_promotion],
        OOB_FILLS[descriptor.oob_fill],
    )
    device.check_result(f"cuTensorMapEncodeTiled for {descriptor}", device.cuda.CUresult(error))
    return tensor_map


def check(descriptor: TmaDescriptor, address: int, size: int) -> None:
    """Refuses what no descriptor can be.

    Args:
        descriptor: how a buffer is seen.
        address: the buffer's device address.
        size: the buffer's bytes.

    Raises:
        StepladderError: as `encode`.
    """

    def refuse(problem: str) -> StepladderError:
        return StepladderError(
            f"the TMA descriptor of {descriptor.role.upper()} cannot be encoded: {problem}; nothing was executed"
        )

    if descriptor.element_type not in DATA_TYPES:
        raise refuse(f"element type '{descriptor.element_type}' is none of TMA's: {', '.join(DATA_TYPES)}")
    if address % ADDRESS_ALIGNMENT:
        raise refuse(f"the buffer's address {address:#x} is not a multiple of {ADDRESS_ALIGNMENT}")
    for extent in descriptor.shape:
        if extent > EXTENT_LIMIT:
            raise refuse(f"shape {list(descriptor.shape)} has an extent above 2^32")
    for stride in descriptor.strides:
        if stride % STRIDE_ALIGNMENT or stride >= STRIDE_LIMIT:
            raise refuse(f"strides {list(descriptor.strides)} must be multiples of {STRIDE_ALIGNMENT} bytes below 2^40")
    for extent in descriptor.box:
        if extent > BOX_LIMIT:
            raise refuse(f"box {list(descriptor.box)} has an extent above {BOX_LIMIT}")
    element_bytes = element_type(descriptor.element_type).bytes
    row = descriptor.box[-1] * element_bytes
    if descriptor.interleave == "none":
        if row % BOX_ROW_ALIGNMENT:
            raise refuse(
                f"the innermost extent of box {list(descriptor.box)} is {row} bytes, which is not a multiple "
                f"of {BOX_ROW_ALIGNMENT}"
            )
        if row > SWIZZLE_BYTES.get(descriptor.swizzle, math.inf):
            raise refuse(
                f"the innermost extent of box {list(descriptor.box)} is {row} bytes, more than the "
                f"{SWIZZLE_BYTES[descriptor.swizzle]} of swizzle {descriptor.swizzle}"
            )
    end = (
        sum((extent - 1) * stride for extent, stride in zip(descriptor.shape, (*descriptor.strides, element_bytes)))
        + element_bytes
    )
    if end > size:
        raise refuse(f"its tensor ends at byte {end}, and the buffer has {size}")
