"""TMA descriptors: the 128 bytes that describe a buffer to the TMA unit, which a kernel takes by value.

cuTensorMapEncodeTiled writes to memory that is aligned to 64 bytes. Neither `cuda.bindings` nor `cuda.core` gives it
such memory (both embed the descriptor in a Python object, which is aligned to 16), so the driver's function is called
by its address.
"""

from __future__ import annotations

import ctypes
import math

import numpy as np

from stepladder.runtime.buffers import Borrowed, Buffer
from stepladder.runtime.bundle import TmaDescriptor
from stepladder.runtime.driver import not_executed
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError

TENSOR_MAP_BYTES = 128
# As declared in cuda.h since CUDA 13; 64 in earlier versions.
TENSOR_MAP_ALIGNMENT = 128

# The CUDA version in which the driver's function appeared.
ENCODE_VERSION = 12000

# The driver's enumerations, by the manifest's names. 8-bit floating-point numbers are moved as bytes.
DATA_TYPES = {
    "i8": "UINT8",
    "f8E4M3FN": "UINT8",
    "f8E5M2": "UINT8",
    "i32": "INT32",
    "f16": "FLOAT16",
    "f32": "FLOAT32",
    "bf16": "BFLOAT16",
}
L2_PROMOTIONS = {"none": "NONE", "64b": "L2_64B", "128b": "L2_128B", "256b": "L2_256B"}
OOB_FILLS = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}

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
    *2 * [ctypes.POINTER(ctypes.c_uint64)],
    *2 * [ctypes.POINTER(ctypes.c_uint32)],
    *4 * [ctypes.c_int],
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

    def getPtr(self) -> int:
        """Returns `address`."""
        return self.address


def encode(descriptor: TmaDescriptor, buffer: Buffer | Borrowed) -> TensorMap:
    """Encodes a TMA descriptor of a buffer.

    Args:
        descriptor: how the buffer is seen.
        buffer: what begins at the base address.

    Returns:
        The descriptor, which a launch passes by value.

    Raises:
        StepladderError: TMA does not have the element type, the tensor is larger than the buffer, or a limit of the
            hardware is exceeded; the message names the parameter. Or the driver has no TMA descriptors; status
            NOT_EXECUTED.
        CudaError: the driver refuses the parameters.
    """
    address = buffer.address + descriptor.offset
    check(descriptor, address, buffer.size - descriptor.offset)
    cuda = buffer.session.cuda
    function = cuda.query("cuGetProcAddress", b"cuTensorMapEncodeTiled", ENCODE_VERSION, 0)
    if not function:
        raise not_executed(
            "the driver has no TMA descriptors (cuTensorMapEncodeTiled), which drivers for CUDA 12 and later have"
        )

    def number(enumeration: str, prefix: str, name: str) -> int:
        return int(getattr(getattr(cuda.driver, enumeration), f"CU_TENSOR_MAP_{prefix}_{name}"))

    def innermost_first(values: tuple[int, ...], kind: type[ctypes.c_uint64] | type[ctypes.c_uint32]) -> ctypes.Array:
        return (kind * len(values))(*reversed(values))

    tensor_map = TensorMap()
    error = ENCODE_TILED(function)(
        tensor_map.address,
        number("CUtensorMapDataType", "DATA_TYPE", DATA_TYPES[descriptor.element_type]),
        len(descriptor.shape),
        address,
        innermost_first(descriptor.shape, ctypes.c_uint64),
        innermost_first(descriptor.strides, ctypes.c_uint64),
        innermost_first(descriptor.box, ctypes.c_uint32),
        innermost_first(descriptor.element_strides, ctypes.c_uint32),
        number("CUtensorMapInterleave", "INTERLEAVE", descriptor.interleave.upper()),
        number("CUtensorMapSwizzle", "SWIZZLE", descriptor.swizzle.upper()),
        number("CUtensorMapL2promotion", "L2_PROMOTION", L2_PROMOTIONS[descriptor.l2_promotion]),
        number("CUtensorMapFloatOOBfill", "FLOAT_OOB_FILL", OOB_FILLS[descriptor.oob_fill]),
    )
    cuda.check(f"cuTensorMapEncodeTiled for {descriptor}", cuda.driver.CUresult(error))
    return tensor_map


def check(descriptor: TmaDescriptor, address: int, size: int) -> None:
    """Checks a descriptor against the limits of the hardware and of its buffer.

    Args:
        descriptor: how a buffer is seen.
        address: the buffer's device address.
        size: the buffer's bytes.

    Raises:
        StepladderError: as `encode`; the driver is not asked.
    """

    def refuse(problem: str) -> StepladderError:
        return StepladderError(
            f"the TMA descriptor of {descriptor.role.upper()} cannot be encoded: {problem}; no kernel was launched"
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
    end = descriptor.end - descriptor.offset
    if end > size:
        raise refuse(f"its tensor ends at byte {end}, and the buffer has {size}")
