"""TMA descriptors: what the driver is asked to encode, and what is refused before."""

import dataclasses

import pytest

from conftest import make_descriptor
from fake_cuda import FakeDriver, FakeGpu
from stepladder.runtime.buffers import Buffer
from stepladder.runtime.driver import CudaError
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError
from stepladder.runtime.session import Session
from stepladder.runtime.tensor_map import encode


def buffer_of(gpu: FakeGpu, size: int) -> Buffer:
    return Buffer(Session(0, gpu.cuda), size)


@pytest.mark.parametrize(
    "element, kind", [("f16", 6), ("bf16", 9), ("f32", 7), ("i32", 3), ("i8", 0), ("f8E4M3FN", 0), ("f8E5M2", 0)]
)
def test_encoded_parameters(element: str, kind: int) -> None:
    """All lists innermost first, strides in bytes, modes by the driver's numbers (those of cuda.h)."""
    gpu = FakeGpu()
    size = 4 if element.endswith("32") else 2 if element.endswith("16") else 1
    descriptor = make_descriptor(
        "a",
        (3, 5, 64),
        element,
        box=(1, 4, 32 // size),
        interleave="16b",
        swizzle="64b",
        l2_promotion="128b",
        oob_fill="nan",
    )
    made = encode(descriptor, buffer_of(gpu, 3 * 5 * 64 * size))
    assert made.address % 128 == 0 and made.getPtr() == made.address
    assert gpu.driver.encoded == [
        {
            "kind": kind,
            "address": 4096,
            "shape": [64, 5, 3],
            "strides": [64 * size, 5 * 64 * size],
            "box": [32 // size, 4, 1],
            "steps": [1, 1, 1],
            "modes": [1, 2, 2, 1],
            "map": made.address,
        }
    ]


def test_numbers_of_the_driver() -> None:
    """The fake driver's enumerations are those of the bindings."""
    real = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    for name in (
        "CUtensorMapDataType",
        "CUtensorMapInterleave",
        "CUtensorMapSwizzle",
        "CUtensorMapL2promotion",
        "CUtensorMapFloatOOBfill",
    ):
        for member, number in vars(getattr(FakeDriver, name)).items():
            assert number == int(getattr(getattr(real, name), member))


@pytest.mark.parametrize(
    "fields, address, message",
    [
        (
            {"element_type": "f64"},
            4096,
            "element type 'f64' is none of TMA's: i8, f8E4M3FN, f8E5M2, i32, f16, f32, bf16",
        ),
        ({}, 4104, "the buffer's address 0x1008 is not a multiple of 16"),
        ({"shape": (64, 2**32 + 1)}, 4096, "shape [64, 4294967297] has an extent above 2^32"),
        ({"strides": (136,)}, 4096, "strides [136] must be multiples of 16 bytes below 2^40"),
        ({"strides": (2**40,)}, 4096, "strides [1099511627776] must be multiples of 16 bytes below 2^40"),
        ({"box": (257, 64)}, 4096, "box [257, 64] has an extent above 256"),
        ({"box": (64, 4)}, 4096, "the innermost extent of box [64, 4] is 8 bytes, which is not a multiple of 16"),
        (
            {"swizzle": "64b", "box": (64, 40)},
            4096,
            "the innermost extent of box [64, 40] is 80 bytes, more than the 64 of swizzle 64b",
        ),
        ({"shape": (65, 64)}, 4096, "its tensor ends at byte 8320, and the buffer has 8192"),
        ({"strides": (144,)}, 4096, "its tensor ends at byte 9200, and the buffer has 8192"),
    ],
)
def test_descriptors_that_cannot_be_encoded(
    fields: dict[str, str | tuple[int, ...]], address: int, message: str
) -> None:
    gpu = FakeGpu(addresses=[address])
    descriptor = dataclasses.replace(make_descriptor("b", (64, 64)), **fields)
    with pytest.raises(StepladderError) as caught:
        encode(descriptor, buffer_of(gpu, 64 * 64 * 2))
    assert caught.value.message == f"the TMA descriptor of B cannot be encoded: {message}; no kernel was launched"
    assert gpu.driver.encoded == []


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": (1, 64), "strides": (128,)},
        {"box": (256, 64)},
        {"box": (64, 256)},
        {"swizzle": "128b", "box": (64, 64)},
        {"shape": (32, 32)},
    ],
)
def test_descriptors_at_the_limits(fields: dict[str, str | tuple[int, ...]]) -> None:
    gpu = FakeGpu()
    encode(dataclasses.replace(make_descriptor("b", (64, 64)), **fields), buffer_of(gpu, 64 * 64 * 2))
    assert len(gpu.driver.encoded) == 1


def test_the_last_byte_is_in_the_buffer() -> None:
    whole = make_descriptor("b", (64, 64))
    encode(whole, buffer_of(FakeGpu(), 8192))
    with pytest.raises(StepladderError, match="ends at byte 8192, and the buffer has 8191"):
        encode(whole, buffer_of(FakeGpu(), 8191))


def test_a_part_of_a_buffer_begins_behind_its_address() -> None:
    gpu = FakeGpu()
    part = dataclasses.replace(make_descriptor("b", (60, 32)), strides=(128,), offset=4 * 128 + 64)
    encode(part, buffer_of(gpu, 64 * 64 * 2))
    assert gpu.driver.encoded[0]["address"] == 4096 + 4 * 128 + 64
    for offset, message in (
        (4 * 128 + 8, "not a multiple of 16"),
        (5 * 128, "ends at byte 7616, and the buffer has 7552"),
    ):
        with pytest.raises(StepladderError, match=message):
            encode(dataclasses.replace(part, offset=offset), buffer_of(gpu, 64 * 64 * 2))


def test_descriptor_that_the_driver_refuses() -> None:
    gpu = FakeGpu({"cuTensorMapEncodeTiled": [1]})
    with pytest.raises(CudaError, match=r"cuTensorMapEncodeTiled for .*box=.64, 64.*failed: 1 .it went wrong."):
        encode(make_descriptor("a", (64, 64)), buffer_of(gpu, 8192))


def test_driver_without_descriptors() -> None:
    gpu = FakeGpu()
    gpu.driver.results["cuGetProcAddress"] = lambda *arguments: 0
    with pytest.raises(StepladderError, match="the driver has no TMA descriptors") as caught:
        encode(make_descriptor("a", (64, 64)), buffer_of(gpu, 8192))
    assert caught.value.status == NOT_EXECUTED
