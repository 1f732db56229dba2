"""What each thread holds, and where tiles lie in shared memory: each element once, and no two in one place."""

import numpy as np
import pytest

from stepladder.emulator.hardware import fragments, shared_memory_layouts
from stepladder.emulator.hardware.shared_memory_layouts import MatrixDescriptor

FRAGMENTS = {
    **{
        f"mma_a_{rows}x{k}_{bits}": fragments.mma_a(rows, k, bits)
        for rows, k, bits in ((16, 8, 16), (16, 16, 16), (16, 4, 32), (16, 8, 32), (16, 16, 8), (16, 32, 8), (8, 4, 64))
    },
    **{
        f"mma_b_{k}_{bits}": fragments.mma_b(k, 8, bits)
        for k, bits in ((8, 16), (16, 16), (4, 32), (8, 32), (16, 8), (32, 8), (4, 64))
    },
    "mma_c_16": fragments.mma_c(16, 8),
    "mma_c_8": fragments.mma_c(8, 8),
    **{
        f"matrix_{bits}_{transposed}": fragments.matrix(bits, transposed=transposed)
        for bits, transposed in ((8, False), (16, False), (32, False), (16, True))
    },
    **{f"accumulator_{columns}": fragments.accumulator(columns) for columns in (8, 24, 64, 256)},
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_each_element_is_held_once(name: str) -> None:
    fragment = FRAGMENTS[name]
    matrix = np.arange(np.prod(fragment.shape)).reshape(fragment.shape)
    held = fragment.divide(matrix)
    assert held.shape == fragment.rows.shape
    np.testing.assert_array_equal(np.sort(held.reshape(-1)), matrix.reshape(-1))
    np.testing.assert_array_equal(held, matrix[fragment.rows, fragment.columns])
    np.testing.assert_array_equal(fragment.join(held), matrix)


def test_many_matrices_at_once() -> None:
    matrices = np.arange(3 * 2 * 64).reshape(3, 2, 8, 8)
    fragment = fragments.matrix()
    held = fragment.divide(matrices)
    assert held.shape == (3, 2, 32, 2)
    np.testing.assert_array_equal(held[1, 1], fragment.divide(matrices[1, 1]))
    np.testing.assert_array_equal(fragment.join(held), matrices)


def test_threads_hold_what_the_isa_says() -> None:
    """Elements of figures of the PTX ISA, by hand."""
    a = fragments.mma_a(16, 16, 16)
    assert [(a.rows[5, register, 1], a.columns[5, register, 1]) for register in range(4)] == [
        (1, 3),
        (9, 3),
        (1, 11),
        (9, 11),
    ]
    b = fragments.mma_b(32, 8, 8)
    assert (b.rows[6, 1, 3], b.columns[6, 1, 3]) == (27, 1)
    c = fragments.mma_c(16, 8)
    assert (c.rows[31, 1, 0], c.columns[31, 1, 0]) == (15, 6)
    sums = fragments.accumulator(64)
    assert (sums.rows[127, 31], sums.columns[127, 31]) == (63, 63)
    assert (sums.rows[33, 2], sums.columns[33, 2]) == (24, 2)
    assert (fragments.matrix(transposed=True).rows[6, 1], fragments.matrix(transposed=True).columns[6, 1]) == (5, 1)


@pytest.mark.parametrize("swizzle", (128, 64, 32, 0))
def test_a_swizzle_is_its_own_inverse(swizzle: int) -> None:
    addresses = np.arange(4096)
    moved = shared_memory_layouts.swizzled(addresses, swizzle)
    np.testing.assert_array_equal(shared_memory_layouts.swizzled(moved, swizzle), addresses)
    np.testing.assert_array_equal(np.sort(moved), addresses)
    # Units of 16 bytes are whole, and in their row.
    assert (moved % 16 == addresses % 16).all()
    assert (moved // max(swizzle, 16) == addresses // max(swizzle, 16)).all()


def test_a_column_of_units_lies_in_different_banks() -> None:
    """Eight rows of 128 bytes: what stands below each other is in eight different places of 16 bytes."""
    addresses = shared_memory_layouts.box_addresses(1024, (8, 64), 2, 128)
    for column in range(0, 64, 8):
        assert len(np.unique(addresses[:, column] % 128)) == 8


def test_a_box_without_a_swizzle_is_an_array() -> None:
    addresses = shared_memory_layouts.box_addresses(256, (2, 3, 8), 4, 0)
    np.testing.assert_array_equal(addresses, 256 + 4 * np.arange(48).reshape(2, 3, 8))


@pytest.mark.parametrize("swizzle,item", [(128, 2), (64, 2), (32, 4), (128, 1)])
@pytest.mark.parametrize("steps", (0, 1))
def test_wgmma_reads_what_tma_wrote(swizzle: int, item: int, steps: int) -> None:
    """A step of 32 bytes along k of a box whose rows run along k, and one of a box whose rows run along n."""
    columns = swizzle // item
    box = shared_memory_layouts.box_addresses(2048, (64, columns), item, swizzle)
    if steps * 32 < swizzle:
        k = 32 // item
        operand = MatrixDescriptor(2048 + 32 * steps, 0, 8 * swizzle, swizzle)
        np.testing.assert_array_equal(operand.addresses(64, k, item, along_k=True), box[:, steps * k : (steps + 1) * k])
    if item == 2:
        operand = MatrixDescriptor(2048 + 16 * swizzle * steps, 64 * swizzle, 8 * swizzle, swizzle)
        np.testing.assert_array_equal(
            operand.addresses(columns, 16, item, along_k=False), box[16 * steps : 16 * (steps + 1)].T
        )


def test_matrix_descriptors_are_64_bits() -> None:
    for swizzle in (128, 64, 32, 0):
        descriptor = MatrixDescriptor(0x2400, 0x800, 0x400, swizzle)
        bits = descriptor.encode()
        assert MatrixDescriptor.decode(bits) == descriptor
        assert MatrixDescriptor.decode(bits - (1 << 64)) == descriptor  # as a signed number has them


@pytest.mark.parametrize(
    "start,swizzle,is_aligned",
    [
        (1024, 128, True),
        (1024 + 96, 128, True),
        (1024 + 128, 128, False),
        (512, 64, True),
        (512 + 64, 64, False),
        (256 + 16, 32, True),
        (16, 0, True),
    ],
)
def test_operands_begin_where_a_swizzle_does(start: int, swizzle: int, is_aligned: bool) -> None:
    assert MatrixDescriptor(start, 0, 0, swizzle).is_aligned == is_aligned


def test_tf32_drops_bits() -> None:
    values = np.array([1 + 2.0**-10, 1 + 2.0**-11, -1 - 2.0**-10 - 2.0**-23, 0, np.inf], np.float32)
    np.testing.assert_array_equal(
        fragments.as_tf32(values), np.array([1 + 2.0**-10, 1, -1 - 2.0**-10, 0, np.inf], np.float32)
    )


ORIGINS = [(0, 0), (3, 8), (-2, -4), (9, 14), (40, 3)]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_box_of_a_descriptor_is_a_slice(origin: tuple[int, int]) -> None:
    """Elements of a box that are beyond the tensor are marked, and the others are those of a slice."""
    from stepladder.emulator.core import types
    from stepladder.emulator.hardware.tma import Descriptor
    from stepladder.emulator.memory.heap import Heap

    tensor = np.arange(10 * 16, dtype=np.float32).reshape(10, 16)
    allocation = Heap().array(tensor)
    element = types.Scalar("f32", np.dtype(np.float32), 32)
    descriptor = Descriptor(allocation, 0, element, (10, 16), (16, 1), (4, 8), 32)
    positions, inside = descriptor.elements(origin)
    padded = np.full((100, 100), -1, np.float32)
    padded[50:60, 50:66] = tensor
    expected = padded[50 + origin[0] : 54 + origin[0], 50 + origin[1] : 58 + origin[1]]
    found = np.where(inside, tensor.reshape(-1)[np.where(inside, positions, 0)], -1)
    np.testing.assert_array_equal(found, expected)
    assert descriptor.bytes == 4 * 8 * 4 and not descriptor.problems()


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"strides": (18, 1)}, "strides"),
        ({"strides": (32, 2)}, "apart"),
        ({"box": (300, 8)}, "256"),
        ({"box": (4, 6)}, "not a multiple"),
        ({"box": (4, 16)}, "swizzle"),
        ({"start": 8}, "address"),
    ],
)
def test_what_no_descriptor_can_be(changes: dict[str, int | tuple[int, int]], problem: str) -> None:
    from stepladder.emulator.core import types
    from stepladder.emulator.hardware.tma import Descriptor
    from stepladder.emulator.memory.heap import Heap

    fields = {
        "memory": Heap().allocate(4096),
        "start": 0,
        "element": types.Scalar("f32", np.dtype(np.float32), 32),
        "sizes": (10, 16),
        "strides": (16, 1),
        "box": (4, 8),
        "swizzle": 32,
    }
    found = Descriptor(**fields | changes).problems()
    assert len(found) == 1 and problem in found[0]
