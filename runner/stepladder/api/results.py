"""Streams and new arrays of the libraries that arrays come from."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from stepladder.api.errors import ArgumentError
from stepladder.api.views import View, torch_module, view_of
from stepladder.runtime.element_types import element_type

if TYPE_CHECKING:
    from stepladder.api.gpu import OpenGpu


def stream_of(stream: object, device: int | None = None, array: object = None) -> int:
    """Returns the handle of a stream.

    Args:
        stream: a handle, a stream of PyTorch, CuPy or cuda.core, or None for the one that a library uses now.
        device: ordinal of the GPU, for a stream of None.
        array: whose library is asked, for a stream of None.

    Raises:
        ArgumentError: no stream.
    """
    if isinstance(stream, int) and not isinstance(stream, bool):
        if stream < 0:
            raise ArgumentError(f"argument 'stream' is {stream}; accepted: handles, which are not negative")
        return stream
    if stream is None:
        torch = torch_module()
        if torch is not None and isinstance(array, torch.Tensor):
            if device is not None:  # without the object of a stream, which takes microseconds to make
                return torch._C._cuda_getCurrentRawStream(device)
            return torch.cuda.current_stream().cuda_stream
        if type(array).__module__.partition(".")[0] == "cupy":
            return importlib.import_module("cupy").cuda.get_current_stream().ptr
        return 0
    for name in ("cuda_stream", "ptr"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    protocol: Any = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version_and_handle: Any = protocol() if callable(protocol) else protocol
        return int(version_and_handle[1])
    raise ArgumentError(
        f"argument 'stream' is a {type(stream).__name__}; accepted: a handle (int), and streams of PyTorch, CuPy and "
        "cuda.core"
    )


def empty_like(view: View, type_: str, shape: tuple[int, ...], stream: object) -> View:
    """Returns the view of a new array, of the library of another one, on its device.

    Args:
        view: the other one.
        type_, shape: element type and extents of the new one.
        stream: the caller's, on which it is used; None for the current one.

    Raises:
        ArgumentError: a library whose arrays this package does not make.
    """
    torch = torch_module()
    dtype = element_type(type_).dtype
    if torch is not None and isinstance(view.array, torch.Tensor):
        tensor = torch.empty(shape, dtype=getattr(torch, dtype.name), device=view.array.device)
        if stream is not None and view.device is not None:
            # The memory belongs to the current stream: it is not given to others before the kernel's stream is done.
            tensor.record_stream(torch.cuda.ExternalStream(stream_of(stream), device=view.array.device))
        return view_of("out", tensor)
    if view.device is None:
        return view_of("out", np.empty(shape, dtype))
    if type(view.array).__module__.partition(".")[0] == "cupy":
        cupy: Any = importlib.import_module("cupy")
        with cupy.cuda.Device(view.device):
            return view_of("out", cupy.empty(shape, dtype))
    raise ArgumentError(
        f"argument 'out' is missing; it is made for NumPy, PyTorch and CuPy, and argument '{view.name}' is a "
        f"{type(view.array).__name__}"
    )


def place_number(gpu: OpenGpu, number: View, like: View, stream: object, handle: int) -> View:
    """Returns a scalar in the memory of a GPU, from where kernels of a function read it.

    Args:
        gpu: where.
        number: in host memory.
        like: an array on the GPU, in whose library's memory the scalar is.
        stream: the caller's; None for the current one.
        handle: of the stream.

    Raises:
        ArgumentError: an array that is no tensor of PyTorch, whose memory is not reused while kernels may read it.
    """
    torch = torch_module()
    if torch is None or not isinstance(like.array, torch.Tensor):
        raise ArgumentError(
            f"argument '{number.name}' is a number, and argument '{like.name}' a {type(like.array).__name__}; accepted "
            "with it: an array of one element"
        )
    array = empty_like(like, number.type, (), stream)
    content = number.array.tobytes()
    width = min(len(content), 4)
    on = gpu.cuda.driver.CUstream(handle)
    with gpu.current():  # the words are part of the enqueued work, and of a graph that captures it
        for place in range(0, len(content), width):
            word = int.from_bytes(content[place : place + width], "little")
            gpu.cuda.call(f"cuMemsetD{8 * width}Async", array.address + place, word, 1, on)
    return array


def copy_onto(gpu: OpenGpu, target: View, source: View, size: int, stream: int) -> None:
    """Enqueues a copy of an array's memory on a GPU.

    Args:
        gpu: that both are on.
        target, source: dense arrays.
        size: bytes.
        stream: handle of the stream.
    """
    with gpu.current():
        gpu.cuda.call("cuMemcpyDtoDAsync", target.address, source.address, size, gpu.cuda.driver.CUstream(stream))
