"""Calls on arrays of CuPy and JAX that are known, without a GPU: what is asked of the libraries and of the driver."""

import contextlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import stepladder
from conftest import make_manifest, make_problem
from fake_cuda import FakeGpu
from stepladder.api.building import Built
from stepladder.api.kernel import Kernel
from stepladder.api.views import View, view_of
from stepladder.runtime.bundle import Bundle, read_bundle
from stepladder.runtime.reference import matmul_program
from test_api_launch import fake, launches  # noqa: F401

SIZE = 64


class CupyArray:
    """What the package asks of `cupy.ndarray`."""

    addresses = itertools.count(0x100000, 0x10000)

    def __init__(self, shape: tuple[int, ...], dtype: str, address: int | None = None) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.strides = tuple(stride * self.dtype.itemsize for stride in (shape[1], 1))
        self.data = SimpleNamespace(ptr=next(self.addresses) if address is None else address)
        self.device = SimpleNamespace(id=0)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {"stream": 1}


CupyArray.__module__ = "cupy"


class JaxArray:
    """What the package asks of `jax.Array`."""

    addresses = itertools.count(0x4000000, 0x10000)

    def __init__(self, shape: tuple[int, ...], dtype: str, platform: str = "gpu") -> None:
        self.shape, self.dtype, self.platform = shape, np.dtype(dtype), platform
        self.address, self.waits, self.deleted = next(self.addresses), 0, False

    def devices(self) -> set[SimpleNamespace]:
        return {_Device(platform=self.platform, local_hardware_id=0)}

    def block_until_ready(self) -> None:
        if self.deleted:
            raise RuntimeError("Array has been deleted.\nmore")
        self.waits += 1

    def unsafe_buffer_pointer(self) -> int:
        return self.address

    def is_deleted(self) -> bool:
        return self.deleted


class _Device(SimpleNamespace):
    __hash__ = object.__hash__


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """CuPy, JAX, and cuda.core's views with a count of them."""
    seen = SimpleNamespace(views=0, stream=0)

    def view(array: CupyArray, stream: int) -> SimpleNamespace:
        seen.views += 1
        strides = [stride // array.dtype.itemsize for stride in array.strides]
        return SimpleNamespace(
            ptr=array.data.ptr,
            shape=array.shape,
            strides=strides,
            dtype=array.dtype,
            device_id=0,
            is_device_accessible=True,
            readonly=False,
        )

    current = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=seen.stream))
    current.Device = lambda ordinal: contextlib.nullcontext()
    current.runtime = SimpleNamespace(getDevice=lambda: 0)
    modules = {
        "cupy": {"ndarray": CupyArray, "cuda": current, "empty": lambda shape, dtype: CupyArray(shape, dtype)},
        "jax": {"Array": JaxArray},
        "cuda.core.utils": {"StridedMemoryView": SimpleNamespace(from_any_interface=view)},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return seen


def arrays(kernel: Kernel, make: Callable[[tuple[int, ...], str], object]) -> list[object]:
    return [make(item.shape, {"f16": "float16", "f32": "float32"}[item.type]) for item in kernel.signature.inputs]


@pytest.fixture
def kernel(fake: FakeGpu, bundle: Path) -> Kernel:  # noqa: F811
    problem, read = make_problem(accumulate=False), read_bundle(bundle)
    whole = Bundle(bundle, make_manifest(problem), read.cubin, "", matmul_program(problem))
    return Kernel(Built(whole, None, None))


def test_arrays_of_cupy_are_seen_once(fake: FakeGpu, kernel: Kernel, libraries: SimpleNamespace) -> None:  # noqa: F811
    given, out = arrays(kernel, CupyArray), CupyArray((SIZE, SIZE), "float32")
    for number in range(4):
        assert kernel(*given, out=out) is out
        assert libraries.views == 3 and len(launches(fake)) == number + 1
    assert {config.hStream for config, *_ in launches(fake)} == {1}
    # Another stream, other memory, and another form of the same memory are seen again.
    libraries.stream = 5
    kernel(*given, out=out)
    assert libraries.views == 6
    other = CupyArray((SIZE, SIZE), "float32")
    kernel(*given, out=other, stream=7)
    assert libraries.views == 9 and launches(fake)[-1][0].hStream == 7
    kernel(*given, out=other, stream=7)
    assert libraries.views == 9
    with pytest.raises(stepladder.ArgumentError, match="'argument 0' has elements of f32; accepted: f16"):
        wrong = CupyArray((SIZE, SIZE), "float32", given[0].data.ptr)  # pyright: ignore
        kernel(wrong, given[1], out=out)


def test_results_of_cupy_are_made(fake: FakeGpu, kernel: Kernel, libraries: SimpleNamespace) -> None:  # noqa: F811
    given = arrays(kernel, CupyArray)
    first = kernel(*given)
    views = libraries.views
    assert isinstance(first, CupyArray) and first.shape == (SIZE, SIZE)
    # CuPy's pool hands out the memory of an array that is gone.
    memory, CupyArray.addresses = CupyArray.addresses, iter([first.data.ptr])
    again = kernel(*given)
    CupyArray.addresses = memory
    assert again is not first and libraries.views == views and len(launches(fake)) == 2


def test_arrays_of_jax_are_known_themselves(fake: FakeGpu, kernel: Kernel, libraries: SimpleNamespace) -> None:  # noqa: F811
    given, out = arrays(kernel, JaxArray), CupyArray((SIZE, SIZE), "float32")
    for _ in range(3):
        assert kernel(*given, out=out) is out
    assert [item.waits for item in given] == [1, 1]  # pyright: ignore
    assert libraries.views == 1 and len(launches(fake)) == 3
    others = arrays(kernel, JaxArray)
    kernel(*others, out=out)
    assert [item.waits for item in others] == [1, 1]  # pyright: ignore
    given[0].deleted = True  # pyright: ignore
    with pytest.raises(
        stepladder.ArgumentError, match="'argument 0' cannot be read as an array of JAX: Array has been"
    ):
        kernel(*given, out=out)
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' is read-only"):
        kernel(*others, out=JaxArray((SIZE, SIZE), "float32"))
    with pytest.raises(stepladder.ArgumentError, match="'argument 0' is an array of JAX in host memory"):
        kernel(JaxArray((SIZE, SIZE), "float16", "cpu"), others[1], out=out)


def test_a_new_array_of_jax_at_a_known_place_is_another_one(
    fake: FakeGpu,  # noqa: F811
    kernel: Kernel,
    libraries: SimpleNamespace,
) -> None:
    out = CupyArray((SIZE, SIZE), "float32")
    for _ in range(20):  # objects that are gone, and others with their `id`
        given = arrays(kernel, JaxArray)
        kernel(*given, out=out)
        kernel(*given, out=out)
        assert [item.waits for item in given] == [1, 1]  # pyright: ignore
        del given


def test_strides_of_jax(libraries: SimpleNamespace) -> None:
    array = JaxArray((3, 4), "float16")
    array.format = SimpleNamespace(layout=SimpleNamespace(major_to_minor=(1, 0)))  # pyright: ignore
    seen: View = view_of("a", array)
    assert seen.strides == (1, 3) and seen.device == 0 and not seen.is_writable
