"""Which thread holds which element, and where elements lie in shared memory: what the emulator says, asked of a GPU.

Each kernel is one instruction (`layout_kernels`); data are small integers, compared element by element. MLIR is not
needed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import layout_kernels
from layout_kernels import B_PLACE, NAME, SHARED_BYTES, WARPGROUP
from small_integers import DTYPES, bits_of, integers
from stepladder.emulator.hardware import fragments
from stepladder.emulator.hardware.shared_memory_layouts import (
    MatrixDescriptor,
    box_addresses,
)
from stepladder.runtime import tensor_map
from stepladder.runtime.buffers import Buffer
from stepladder.runtime.bundle import TmaDescriptor
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.tensor_map import TensorMap

WARP = fragments.WARP


class Runner:
    """Runs kernels on arrays."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __call__(
        self, ptx: str, threads: int, *arguments: object, blocks: int = 1, shared: int = SHARED_BYTES
    ) -> list[np.ndarray]:
        """Launches a kernel with arrays, integers and TMA descriptors; returns what the arrays hold afterwards."""
        kernel = self.device.load_ptx(ptx, NAME, shared)
        buffers, given = {}, []
        for number, argument in enumerate(arguments):
            if isinstance(argument, np.ndarray):
                buffers[number] = self.device.allocate(argument.nbytes)
                buffers[number].upload(np.ascontiguousarray(argument))
                given.append(buffers[number].address)
            else:
                given.append(argument & (1 << 64) - 1 if isinstance(argument, int) else argument)
        kernel.launcher((blocks, 1, 1), (threads, 1, 1), given)()
        self.device.synchronize()
        found = [
            buffer.download(arguments[number].shape, arguments[number].dtype) for number, buffer in buffers.items()
        ]
        for buffer in buffers.values():
            buffer.free()
        return found


@pytest.fixture(scope="module")
def run() -> Iterator[Runner]:
    with Device() as device:
        if device.capability != (9, 0):
            pytest.skip("wgmma and TMA's forms here need compute capability 9.0")
        yield Runner(device)


# ldmatrix and stmatrix.

MATRICES = [(count, transposed) for count in (1, 2, 4) for transposed in (False, True)]
# Which row each thread gives the address of: none is its own.
ORDER = (5 * np.arange(WARP) + 3) % WARP


@pytest.mark.gpu
@pytest.mark.parametrize("count,transposed", MATRICES)
def test_ldmatrix(run: Runner, count: int, transposed: bool) -> None:
    rows = np.arange(WARP * 8, dtype=np.uint16).reshape(WARP, 8)
    out = np.zeros((WARP, count, 2), np.uint16)
    found = run(layout_kernels.ldmatrix(count, transposed), WARP, rows, ORDER.astype(np.uint32), out)[-1]
    matrices = rows[ORDER][: 8 * count].reshape(count, 8, 8)
    expected = np.swapaxes(fragments.matrix(transposed=transposed).divide(matrices), 0, 1)
    np.testing.assert_array_equal(found, expected)
    if not transposed:  # elements of other widths are the same bytes
        for bits in (8, 32):
            wide = np.ascontiguousarray(matrices).view(f"u{bits // 8}")
            np.testing.assert_array_equal(
                found.view(wide.dtype), np.swapaxes(fragments.matrix(bits).divide(wide), 0, 1)
            )


@pytest.mark.gpu
@pytest.mark.parametrize("count,transposed", MATRICES)
def test_stmatrix(run: Runner, count: int, transposed: bool) -> None:
    held = np.arange(1, WARP * count * 2 + 1, dtype=np.uint16).reshape(WARP, count, 2)
    out = np.zeros((WARP, 8), np.uint16)
    found = run(layout_kernels.stmatrix(count, transposed), WARP, held, ORDER.astype(np.uint32), out)[-1]
    expected = np.zeros_like(out)
    expected[ORDER[: 8 * count]] = fragments.matrix(transposed=transposed).join(np.swapaxes(held, 0, 1)).reshape(-1, 8)
    np.testing.assert_array_equal(found, expected)


# mma.sync.

# Rows, columns, k, and types of D, A, B and C.
PRODUCTS = [
    (16, 8, 8, ("f32", "f16", "f16", "f32")),
    (16, 8, 16, ("f32", "f16", "f16", "f32")),
    (16, 8, 16, ("f16", "f16", "f16", "f16")),
    (16, 8, 8, ("f32", "bf16", "bf16", "f32")),
    (16, 8, 16, ("f32", "bf16", "bf16", "f32")),
    (16, 8, 4, ("f32", "tf32", "tf32", "f32")),
    (16, 8, 8, ("f32", "tf32", "tf32", "f32")),
    (16, 8, 16, ("s32", "s8", "s8", "s32")),
    (16, 8, 32, ("s32", "s8", "s8", "s32")),
    (8, 8, 4, ("f64", "f64", "f64", "f64")),
]


def mma_kernel(rows: int, columns: int, k: int, types: tuple[str, str, str, str]) -> str:
    width = max(32, 8 * bits_of(np.zeros(1), types[1]).itemsize)
    held = {"f16": 32, "f32": 32, "s32": 32, "f64": 64}[types[0]]
    bits = 8 * bits_of(np.zeros(1), types[1]).itemsize
    sums = 8 * bits_of(np.zeros(1), types[3]).itemsize
    return layout_kernels.mma_sync(
        f"m{rows}n{columns}k{k}",
        types,
        (rows * k * bits // WARP // width, columns * k * bits // WARP // width, rows * columns * sums // WARP // held),
    )


@pytest.mark.gpu
@pytest.mark.parametrize("rows,columns,k,types", PRODUCTS)
def test_mma_sync(run: Runner, rows: int, columns: int, k: int, types: tuple[str, str, str, str]) -> None:
    a, b, c = integers(1, rows, k), integers(2, k, columns), integers(3, rows, columns)
    a_bits, b_bits = bits_of(a, types[1]), bits_of(b, types[2])
    sums = fragments.mma_c(rows, columns)
    held = sums.divide(c.astype(DTYPES[types[3]]))
    found = run(
        mma_kernel(rows, columns, k, types),
        WARP,
        fragments.mma_a(rows, k, 8 * a_bits.itemsize).divide(a_bits),
        fragments.mma_b(k, columns, 8 * b_bits.itemsize).divide(b_bits),
        held,
        np.zeros_like(held),
    )[-1]
    np.testing.assert_array_equal(found, sums.divide((a @ b + c).astype(held.dtype)))


@pytest.mark.gpu
def test_tf32_drops_bits(run: Runner) -> None:
    """What a float32 has more than tf32 is dropped, not rounded."""
    a = np.float32(1) + np.random.default_rng(5).integers(0, 1 << 23, (16, 8)).astype(np.float32) * np.float32(2.0**-23)
    b = np.eye(8, dtype=np.float32)
    sums = fragments.mma_c(16, 8)
    zeros = np.zeros((WARP, 2, 2), np.float32)
    found = run(
        mma_kernel(*PRODUCTS[6]),
        WARP,
        fragments.mma_a(16, 8, 32).divide(a),
        fragments.mma_b(8, 8, 32).divide(b),
        zeros,
        zeros,
    )[-1]
    np.testing.assert_array_equal(found, sums.divide(fragments.as_tf32(a)))


# wgmma.

SWIZZLES = (128, 64, 32, 0)
# Columns, types of D, A and B, whether A and B run along k, the swizzle, and which of two ways the tiles are laid out.
WGMMA = [
    *(
        (64, ("f32", "f16", "f16"), (a, b), swizzle, way)
        for a in (True, False)
        for b in (True, False)
        for swizzle in SWIZZLES
        for way in (0, 1)
    ),
    *((columns, ("f32", "f16", "f16"), (True, False), 128, 0) for columns in (8, 24, 128, 256)),
    (64, ("f16", "f16", "f16"), (True, False), 128, 0),
    (64, ("f32", "bf16", "bf16"), (True, False), 64, 0),
    *(
        (64, types, (True, True), swizzle, 0)
        for swizzle in SWIZZLES
        for types in (("f32", "tf32", "tf32"), ("f32", "e4m3", "e5m2"), ("s32", "s8", "s8"))
    ),
]
STEP = 32  # bytes of an instruction along k


def operand(place: int, rows: int, swizzle: int, along_k: bool, way: int) -> MatrixDescriptor:
    """The descriptor of an operand of 16-bit elements or of one along k: in one of two ways, which differ in every
    stride."""
    width = swizzle or 16
    if along_k:
        inside = STEP if way and swizzle > STEP else 0  # the second step of k in a row of the swizzle
        stride = 8 * width * (1 + way)
        if swizzle:  # the other stride is not used
            return MatrixDescriptor(place + inside, 16, stride, swizzle)
        return MatrixDescriptor(place, *((rows // 8 * 128, 128) if not way else (128, 256)), 0)
    pieces = rows * 2 // width
    near, far = 8 * width, 8 * width * 2
    if swizzle:  # between pieces of a row, and between groups of eight rows of k
        leading, stride = (far, near) if not way else (near, near * pieces)
    else:  # between groups of eight rows of k, and between pieces
        leading, stride = (near * pieces, near) if not way else (near, far)
    return MatrixDescriptor(place, leading, stride, swizzle)


@pytest.mark.gpu
@pytest.mark.parametrize("columns,types,along_k,swizzle,way", WGMMA)
def test_wgmma(
    run: Runner, columns: int, types: tuple[str, str, str], along_k: tuple[bool, bool], swizzle: int, way: int
) -> None:
    item = bits_of(np.zeros(1), types[1]).itemsize
    k = STEP // item
    image = np.zeros(SHARED_BYTES, np.uint8)
    matrices, descriptors = [], []
    for place, rows, kind, along in ((0, 64, types[1], along_k[0]), (B_PLACE, columns, types[2], along_k[1])):
        matrix = integers(place, rows, k)
        bits = bits_of(matrix, kind)
        descriptor = operand(place, rows, swizzle, along, way)
        addresses = descriptor.addresses(rows, k, item, along_k=along)
        assert addresses.max() < place + B_PLACE and len(np.unique(addresses)) == addresses.size
        image.view(bits.dtype)[addresses // item] = bits
        matrices.append(matrix)
        descriptors.append(descriptor.encode())
    fragment = fragments.accumulator(columns)
    out = np.zeros((WARPGROUP, columns // 2), DTYPES[types[0]])
    found = run(layout_kernels.wgmma(columns, k, types, along_k), WARPGROUP, image, *descriptors, out)[-1]
    np.testing.assert_array_equal(found, fragment.divide((matrices[0] @ matrices[1].T).astype(out.dtype)))


# TMA.

WORDS = 4096  # of the image of shared memory
TENSOR = (100, 72)
# Rows, and 16 bytes along a row: a box that begins between two such units is an illegal instruction.
ORIGINS = [(0, 0), (16, 1), (80, 4), (-5, -1), (99, 4), (120, 0), (40, 20)]
UNIT = 16
# No pipeline stores at a negative origin, and what a GPU does then was not settled.
STORED_ORIGINS = [origin for origin in ORIGINS if min(origin) >= 0]
KINDS = {"f16": np.uint16, "f32": np.uint32, "i8": np.uint8}
BOXES = [("f16", swizzle, 0) for swizzle in SWIZZLES] + [
    ("f32", 128, 0),
    ("i8", 64, 0),
    ("f16", 128, 256),
    ("f16", 64, 128),
]


def tensor_and_box(kind: str, swizzle: int, narrow: int = 1) -> tuple[np.ndarray, tuple[int, int]]:
    dtype = np.dtype(KINDS[kind])
    rows, columns = TENSOR[0], TENSOR[1] if dtype.itemsize > 1 else 80
    tensor = np.arange(1, rows * columns + 1).astype(dtype).reshape(rows, columns)
    return tensor, (24, (swizzle or 64) // dtype.itemsize // narrow)


def encoded(
    device: Device, tensor: np.ndarray, kind: str, box: tuple[int, int], swizzle: int
) -> tuple[TensorMap, Buffer]:
    """The descriptor of a tensor, and the buffer that it is of."""
    buffer = device.allocate(tensor.nbytes)
    buffer.upload(tensor)
    name = f"{swizzle}b" if swizzle else "none"
    descriptor = TmaDescriptor("a", kind, tensor.shape, (tensor.strides[0],), box, (1, 1), swizzle=name)
    return tensor_map.encode(descriptor, buffer), buffer


def part_of(tensor: np.ndarray, origin: tuple[int, int], box: tuple[int, int]) -> np.ndarray:
    """A box of a tensor, zeros where there is none of it."""
    part = np.zeros(box, tensor.dtype)
    rows, columns = (np.arange(size) + first for size, first in zip(box, origin))
    inside = (rows >= 0) & (rows < tensor.shape[0]), (columns >= 0) & (columns < tensor.shape[1])
    part[np.ix_(*inside)] = tensor[np.ix_(rows[inside[0]], columns[inside[1]])]
    return part


def loaded(
    run: Runner,
    kind: str,
    swizzle: int,
    shift: int,
    origin: tuple[int, int],
    *,
    narrow: int = 1,
    multicast: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What shared memory holds behind a load, what it should, and whether the mbarrier's phase ended; of each block."""
    tensor, box = tensor_and_box(kind, swizzle, narrow)
    item = tensor.itemsize
    origin = origin[0], origin[1] * UNIT // item
    place = 2048 + shift
    blocks = 2 if multicast else 1
    image = np.full(4 * WORDS, 0xAB, np.uint8)
    descriptor, buffer = encoded(run.device, tensor, kind, box, swizzle)
    ptx = layout_kernels.tma_load(box[0] * box[1] * item, place, WORDS, multicast=multicast)
    out = run(
        ptx,
        WARPGROUP,
        descriptor,
        origin[1],
        origin[0],
        image,
        np.zeros((blocks, 4 * WORDS + 4), np.uint8),
        blocks=blocks,
    )[-1]
    buffer.free()
    expected = image.copy()
    expected.view(tensor.dtype)[box_addresses(place, box, item, swizzle) // item] = part_of(tensor, origin, box)
    return out[:, :-4], np.broadcast_to(expected, (blocks, 4 * WORDS)), out[:, -4:].view(np.uint32)


@pytest.mark.gpu
@pytest.mark.parametrize("kind,swizzle,shift", BOXES)
@pytest.mark.parametrize("origin", ORIGINS)
def test_tma_load(run: Runner, kind: str, swizzle: int, shift: int, origin: tuple[int, int]) -> None:
    """The bytes of the whole box are counted, wherever it lies: else the phase would not end."""
    found, expected, ended = loaded(run, kind, swizzle, shift, origin)
    assert ended.all()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("swizzle", (128, 64))
def test_tma_load_of_narrow_rows(run: Runner, swizzle: int) -> None:
    """Rows narrower than what they are swizzled over."""
    found, expected, ended = loaded(run, "f16", swizzle, 0, (8, 1), narrow=2)
    assert ended.all()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.gpu
def test_tma_load_to_two_blocks(run: Runner) -> None:
    found, expected, ended = loaded(run, "f16", 128, 0, (80, 5), multicast=True)
    assert ended.all()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("kind,swizzle,shift", BOXES)
@pytest.mark.parametrize("origin", STORED_ORIGINS)
@pytest.mark.parametrize("add", (False, True))
def test_tma_store(run: Runner, kind: str, swizzle: int, shift: int, origin: tuple[int, int], add: bool) -> None:
    if add and kind == "i8":
        pytest.skip("TMA does not add bytes")
    tensor, box = tensor_and_box(kind, swizzle)
    origin = origin[0], origin[1] * UNIT // tensor.itemsize
    values = {"f16": np.float16, "f32": np.float32, "i8": np.uint8}[kind]
    tensor = (tensor % 16).astype(values)
    place = 2048 + shift
    image = np.zeros(4 * WORDS, np.uint8)
    stored = (np.arange(box[0] * box[1]) % 32).astype(values).reshape(box)
    image.view(values)[box_addresses(place, box, tensor.itemsize, swizzle) // tensor.itemsize] = stored
    descriptor, buffer = encoded(run.device, tensor, kind, box, swizzle)
    run(layout_kernels.tma_store(place, WORDS, add=add), WARPGROUP, descriptor, origin[1], origin[0], image)
    found = buffer.download(tensor.shape, tensor.dtype)
    buffer.free()
    expected = tensor.copy()
    rows, columns = (np.arange(size) + first for size, first in zip(box, origin))
    inside = (rows >= 0) & (rows < tensor.shape[0]), (columns >= 0) & (columns < tensor.shape[1])
    target = np.ix_(rows[inside[0]], columns[inside[1]])
    kept = stored[np.ix_(*inside)]
    expected[target] = expected[target] + kept if add else kept
    np.testing.assert_array_equal(found, expected)


# Without a GPU: that the kernels are what an assembler takes.


def all_kernels() -> Iterator[str]:
    yield from (kernel(*form) for kernel in (layout_kernels.ldmatrix, layout_kernels.stmatrix) for form in MATRICES)
    yield from (mma_kernel(*form) for form in PRODUCTS)
    forms = {(columns, types, along_k) for columns, types, along_k, *_ in WGMMA}
    yield from (
        layout_kernels.wgmma(columns, STEP // bits_of(np.zeros(1), types[1]).itemsize, types, along_k)
        for columns, types, along_k in sorted(forms)
    )
    yield from (layout_kernels.tma_load(1024, 2048, WORDS, multicast=multicast) for multicast in (False, True))
    yield from (layout_kernels.tma_store(2048, WORDS, add=add) for add in (False, True))


def test_kernels_assemble() -> None:
    try:
        from stepladder.pipeline.codegen.ptx import assemble
        from stepladder.pipeline.codegen.toolchain import find_tool

        find_tool("ptxas")
    except (StepladderError, ImportError) as error:
        pytest.skip(str(error))
    for ptx in all_kernels():
        assemble(ptx, "sm_90a")
