"""The kernels that ask a GPU which thread holds which element (`test_layouts_gpu`), on the emulator of PTX.

Their expectations are what an H200 answers.
"""

from collections.abc import Callable

import numpy as np
import pytest

import layout_kernels
import test_layouts_gpu as on_gpu
from layout_kernels import B_PLACE, NAME, SHARED_BYTES, WARPGROUP
from stepladder.emulator.core import types as core_types
from stepladder.emulator.core.launched import Launch
from stepladder.emulator.hardware import fragments
from stepladder.emulator.ptx.arguments import Argument
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse

_FLOATS = {np.dtype(np.float16): "f16", np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}


class Buffer:
    """Memory of the GPU, as far as the tests use it."""

    def __init__(self) -> None:
        self.data = np.zeros(0)

    def upload(self, data: np.ndarray) -> None:
        self.data = data

    def download(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return self.data.view(dtype).reshape(shape)

    def free(self) -> None:
        pass


class Device:
    """A GPU, as far as the tests use it."""

    def allocate(self, size: int) -> Buffer:
        return Buffer()


def scalar(dtype: np.dtype) -> core_types.Scalar:
    return core_types.Scalar(_FLOATS.get(dtype, f"i{8 * dtype.itemsize}"), dtype, 8 * dtype.itemsize)


def array(data: np.ndarray, **options: int | tuple[object, int]) -> Argument:
    strides = tuple(stride // data.itemsize for stride in data.strides)
    return Argument("", core_types.Buffer(data.shape, scalar(data.dtype), strides, 0, "global"), **options)


class Runner:
    """Runs kernels on arrays.

    Attributes:
        expected: findings: the kernels copy all of shared memory out, also what nothing has written.
    """

    device = Device()
    expected = frozenset({"uninitialized"})

    def __call__(
        self, ptx: str, threads: int, *arguments: object, blocks: int = 1, shared: int = SHARED_BYTES
    ) -> list[np.ndarray]:
        """As `test_layouts_gpu.Runner`."""
        kernel = Kernel(parse(ptx, "layout.ptx"), NAME, "layout.ptx")
        given, inputs = [], []
        for argument, (_, _, size) in zip(arguments, kernel.variables.parameters):
            if isinstance(argument, tuple):
                seen, buffer = argument
                swizzle = 0 if seen.swizzle == "none" else int(seen.swizzle[:-1])
                strides = (seen.strides[0] // buffer.data.itemsize, 1)
                given.append(array(buffer.data, box=seen.box, swizzle=swizzle, sizes=seen.shape, strides=strides))
                inputs.append(buffer.data)
            elif isinstance(argument, np.ndarray):
                given.append(array(np.ascontiguousarray(argument)))
                inputs.append(np.ascontiguousarray(argument))
            else:
                value = np.array(argument & (1 << 8 * size) - 1, f"u{size}").view(f"i{size}")
                given.append(Argument("", scalar(value.dtype)))
                inputs.append(value)
        launch = Launch((blocks, 1, 1), (threads, 1, 1), (blocks, 1, 1), shared)
        outcome = kernel.bound(given, launch).run(inputs)
        unexpected = [finding for finding in outcome.findings if finding.kind not in self.expected]
        assert not unexpected, unexpected[0].render()
        for argument, held in zip(arguments, outcome.arguments):
            if isinstance(argument, tuple):
                argument[1].data = held
        return [held for argument, held in zip(arguments, outcome.arguments) if isinstance(argument, np.ndarray)]


@pytest.fixture(autouse=True)
def descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpu.tensor_map, "encode", lambda descriptor, buffer: (descriptor, buffer))


def forms(test: Callable[..., None]) -> pytest.MarkDecorator:
    """The parameters of a test of the GPU."""
    marks = [mark for mark in test.pytestmark if mark.name == "parametrize"]
    names = ",".join(mark.args[0] for mark in marks)
    rows: list[tuple] = [()]
    for mark in marks:
        several = "," in mark.args[0]
        rows = [(*row, *(value if several else (value,))) for row in rows for value in mark.args[1]]
    return pytest.mark.parametrize(names, rows)


@forms(on_gpu.test_ldmatrix)
def test_ldmatrix(count: int, transposed: bool) -> None:
    on_gpu.test_ldmatrix(Runner(), count, transposed)


@forms(on_gpu.test_stmatrix)
def test_stmatrix(count: int, transposed: bool) -> None:
    on_gpu.test_stmatrix(Runner(), count, transposed)


@forms(on_gpu.test_mma_sync)
def test_mma_sync(rows: int, columns: int, k: int, types: tuple[str, str, str, str]) -> None:
    on_gpu.test_mma_sync(Runner(), rows, columns, k, types)


def test_tf32_drops_bits() -> None:
    on_gpu.test_tf32_drops_bits(Runner())


@forms(on_gpu.test_wgmma)
def test_wgmma(columns: int, types: tuple[str, str, str], along_k: tuple[bool, bool], swizzle: int, way: int) -> None:
    on_gpu.test_wgmma(Runner(), columns, types, along_k, swizzle, way)


@forms(on_gpu.test_tma_load)
def test_tma_load(kind: str, swizzle: int, shift: int, origin: tuple[int, int]) -> None:
    on_gpu.test_tma_load(Runner(), kind, swizzle, shift, origin)


@pytest.mark.parametrize("swizzle", (128, 64))
def test_tma_load_of_narrow_rows(swizzle: int) -> None:
    on_gpu.test_tma_load_of_narrow_rows(Runner(), swizzle)


def test_tma_load_to_two_blocks() -> None:
    on_gpu.test_tma_load_to_two_blocks(Runner())


@forms(on_gpu.test_tma_store)
def test_tma_store(kind: str, swizzle: int, shift: int, origin: tuple[int, int], add: bool) -> None:
    on_gpu.test_tma_store(Runner(), kind, swizzle, shift, origin, add)


@pytest.mark.parametrize(
    "types", [("f32", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32"), ("s32", "s8", "s8")]
)
def test_wgmma_with_a_in_registers(types: tuple[str, str, str]) -> None:
    """Each warp holds 16 rows of A as mma.sync has them."""
    columns, item = 64, on_gpu.bits_of(np.zeros(1), types[1]).itemsize
    k = on_gpu.STEP // item
    a, b = on_gpu.integers(1, 64, k), on_gpu.integers(2, columns, k)
    image = np.zeros(SHARED_BYTES, np.uint8)
    held = fragments.mma_a(16, k, 8 * item).divide(on_gpu.bits_of(a, types[1]).reshape(4, 16, k))
    image[: held.nbytes] = np.frombuffer(np.ascontiguousarray(held).tobytes(), np.uint8)
    descriptor = on_gpu.operand(B_PLACE, columns, 128, True, 0)
    bits = on_gpu.bits_of(b, types[2])
    image.view(bits.dtype)[descriptor.addresses(columns, k, item, along_k=True) // item] = bits
    text = layout_kernels.wgmma(columns, k, types, (True, True))
    text = text.replace(", x2, x3, p", ", {r0, r1, r2, r3}, x3, p").replace(", 1, 1, 0, 0;", ", 1, 1, 0;")
    load = "mad.lo.u32 r7, t, 16, s;\nld.shared.v4.b32 {r0, r1, r2, r3}, [r7];\nsetp.ne.b32 p, 0, 0;"
    text = text.replace("setp.ne.b32 p, 0, 0;", load)
    out = np.zeros((WARPGROUP, columns // 2), np.int32 if types[0] == "s32" else np.float32)
    found = Runner()(text, WARPGROUP, image, 0, descriptor.encode(), out)[-1]
    np.testing.assert_array_equal(found, fragments.accumulator(columns).divide((a @ b.T).astype(out.dtype)))
