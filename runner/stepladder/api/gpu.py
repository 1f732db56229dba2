"""Launches on arrays of other libraries: kernels loaded on each GPU, and launches prepared once per set of addresses.

A prepared launch holds the parameters and the TMA descriptors, so that a call with known addresses only looks it up and
enqueues it: nothing is allocated, copied or synchronized.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stepladder.runtime.buffers import Borrowed, Buffer
from stepladder.runtime.bundle import WORKSPACE_ROLES, Argument, Bundle
from stepladder.runtime.device import Device, device_ordinal
from stepladder.runtime.driver import Cuda, import_cuda, not_executed
from stepladder.runtime.element_types import element_type
from stepladder.runtime.host_number import HostNumber, bits_of
from stepladder.runtime.kernel import Kernel
from stepladder.runtime.tensor_map import TensorMap, encode

# Prepared launches that a kernel keeps: sets of addresses, and streams.
KEPT = 1024
# Handles of the driver's own streams, which belong to the context that is current: 0, legacy and per-thread.
_DEFAULT_STREAMS = (0, 1, 2)
# A variable of a kernel's module in global memory: a workspace, or counters, that launches at one time would share.
_WORKSPACE = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)?\.global\b", re.MULTILINE)


@dataclass(frozen=True)
class OpenGpu:
    """A GPU that stays open: the device, and the handle of its primary context."""

    device: Device
    context: int

    @property
    def cuda(self) -> Cuda:
        """The CUDA packages."""
        return self.device.session.cuda

    def is_current(self) -> bool:
        """Returns whether the context is the calling thread's."""
        return int(self.cuda.driver.cuCtxGetCurrent()[1]) == self.context

    def on_stream(self, launch: Callable[[], None], stream: int) -> Callable[[], None]:
        """Returns a function that launches on a stream from any thread.

        Args:
            launch: enqueues on the stream; for one of the driver's own, the context must be current.
            stream: its handle.
        """
        if stream not in _DEFAULT_STREAMS:
            return launch
        current, context = self.cuda.driver.cuCtxGetCurrent, self.context

        def enqueue() -> None:
            if int(current()[1]) == context:
                launch()
                return
            with self.current():
                launch()

        return enqueue

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Makes the context current in this thread while the block runs; the one before it is current afterwards."""
        if self.is_current():
            yield
            return
        self.cuda.call("cuCtxPushCurrent", self.cuda.driver.CUcontext(self.context))
        try:
            yield
        finally:
            self.cuda.query("cuCtxPopCurrent")

    @contextlib.contextmanager
    def relaxed_capture(self) -> Iterator[None]:
        """Lets this thread load code and allocate memory while a stream of it is captured."""
        mode = self.cuda.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        previous = self.cuda.query("cuThreadExchangeStreamCaptureMode", mode)
        try:
            yield
        finally:
            self.cuda.query("cuThreadExchangeStreamCaptureMode", previous)

    def capture_of(self, stream: int) -> int | None:
        """Returns the number of the capture that a stream is in, or None.

        Args:
            stream: its handle; for one of the driver's own, the context must be current.

        Raises:
            CudaError: the driver does not know the stream.
        """
        cuda = self.cuda
        active = cuda.driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
        error, status = cuda.driver.cuStreamIsCapturing(stream)  # of the two, the cheap one
        if error == cuda.driver.CUresult.CUDA_SUCCESS and status != active:
            return None
        error, status, number, *_ = cuda.driver.cuStreamGetCaptureInfo(cuda.driver.CUstream(stream))
        cuda.check("cuStreamGetCaptureInfo", error)
        return int(number) if status == active else None


_gpus: dict[int, OpenGpu] = {}
_lock = threading.RLock()

# Objects that launches in graphs of callers use, by identity.
_in_graphs: dict[int, object] = {}


def keep_for_graphs(item: object) -> None:
    """Keeps the buffers of a captured launch, such as a workspace, until the process ends.

    A graph does not hold the memory that its kernels access, and nothing tells when it ends: it may be launched after
    the caller has dropped the kernel.

    Args:
        item: with memory or code on a GPU.
    """
    _in_graphs[id(item)] = item


def _current_context(cuda: Cuda) -> int:
    return int(cuda.query("cuCtxGetCurrent"))


def open_gpu(ordinal: int | None = None, cuda: Cuda | None = None) -> OpenGpu:
    """Returns an open GPU, the same in every call; the context of the calling thread stays as it is.

    Args:
        ordinal: which GPU; the one of STEPLADDER_DEVICE, or 0, if None.
        cuda: the CUDA packages; the installed ones if None.

    Raises:
        StepladderError: cuda.core, the driver or the GPU is missing; status NOT_EXECUTED.
    """
    number = device_ordinal() if ordinal is None else ordinal
    gpu = _gpus.get(number)
    if gpu is not None:
        return gpu
    with _lock:
        if number not in _gpus:
            packages = import_cuda() if cuda is None else cuda
            try:
                packages.call("cuInit", 0)
            except Exception as failure:  # without a driver library, the bindings raise errors of their own
                raise not_executed(f"no usable NVIDIA GPU: {(str(failure).splitlines() or [''])[0]}") from failure
            context = _current_context(packages)
            try:
                device = Device(number, packages)
                _gpus[number] = OpenGpu(device, _current_context(packages))
            finally:
                if _current_context(packages) != context:
                    packages.call("cuCtxSetCurrent", packages.driver.CUcontext(context))
        return _gpus[number]


@dataclass(frozen=True)
class _Copy:
    """A loaded kernel, those before it, and their workspaces by role."""

    kernel: Kernel
    workspaces: dict[str, Buffer]


class LoadedKernel:
    """A kernel on a GPU.

    Args:
        bundle: the kernel.
        gpu: the GPU.
        keeps_early: whether no kernel that may still run at a launch writes what the kernel reads before it waits
            (`Manifest.read_early`).

    Raises:
        StepladderError: the GPU cannot run the kernel; status NOT_EXECUTED.
        CudaError: the driver refuses it.
    """

    def __init__(self, bundle: Bundle, gpu: OpenGpu, *, keeps_early: bool = False) -> None:
        self.bundle = bundle
        self.gpu = gpu
        self._overlaps = bundle.manifest.overlaps(keeps_early=keeps_early)
        self._lock = threading.RLock()
        self._prepared: OrderedDict[tuple[object, ...], Callable[[], None]] = OrderedDict()
        # A kernel with a workspace has one copy for each stream, and for each stream of each capture.
        self._has_workspace = bool(bundle.manifest.workspaces) or uses_global_memory(bundle.ptx)
        self._copies: dict[object, _Copy] = {}
        self._constants = self._upload_constants()
        self._has_memory = self._has_workspace or bool(self._constants)
        self._copy(None)

    def launch(self, addresses: tuple[int, ...], stream: int) -> None:
        """Enqueues a launch.

        Args:
            addresses: of `manifest.operands`, in order; those of constants are not looked at, and of scalars it is
                their bits.
            stream: handle of the stream.

        Raises:
            CudaError: the driver refuses the launch.
        """
        self.launcher(addresses, stream)()

    def launcher(self, addresses: tuple[int, ...], stream: int) -> Callable[[], None]:
        """Returns a function that launches on these addresses and this stream, any number of times.

        Args:
            addresses, stream: as for `launch`.
        """
        if self._has_memory:  # which workspace, and how long memory is kept, depends on whether the stream is captured
            return self.gpu.on_stream(functools.partial(self._launch, addresses, stream), stream)
        return self.gpu.on_stream(self._find(addresses, stream, None), stream)

    def _launch(self, addresses: tuple[int, ...], stream: int) -> None:
        """Enqueues a launch of a kernel with a workspace or constants."""
        self._find(addresses, stream, self.gpu.capture_of(stream))()

    def _find(self, addresses: tuple[int, ...], stream: int, capture: int | None) -> Callable[[], None]:
        """Returns the prepared launch for a set of addresses, which is made where there is none yet."""
        key = addresses, stream, capture
        launches = self._prepared.get(key)
        if launches is not None:
            return launches
        with self._lock, self.gpu.current():
            launches = self._prepared.get(key)
            if launches is None:
                copy = self._copy((stream, capture) if self._has_workspace else None)
                if capture is not None:
                    keep_for_graphs(copy)
                    keep_for_graphs(self._kept)
                launches = self._prepared[key] = self._launches(copy, addresses, stream)
                while len(self._prepared) > KEPT:
                    self._prepared.popitem(last=False)
            return launches

    def _launches(self, copy: _Copy, addresses: tuple[int, ...], stream: int) -> Callable[[], None]:
        """Returns a function that enqueues the preceding kernels, in order, and that of the matmul."""
        manifest = self.bundle.manifest
        memory = dict(zip((item.role for item in manifest.operands), addresses))
        memory |= {role: buffer.address for role, buffer in copy.workspaces.items()}

        def parameters(arguments: Sequence[Argument]) -> list[int | TensorMap | HostNumber]:
            return [self._parameter(item, memory[item.role]) for item in arguments]

        last = copy.kernel.prepared(
            manifest.grid, manifest.block, parameters(manifest.arguments), stream, self._overlaps
        )
        first = [
            kernel.prepared(item.grid, item.block, parameters(item.arguments), stream)
            for kernel, item in zip(copy.kernel.front, manifest.front, strict=True)
        ]
        return in_order([*first, last])

    def _copy(self, user: object) -> _Copy:
        """Returns the copy of the kernel for a stream: its own, because two streams may not share a workspace."""
        if user not in self._copies:
            spare = self._copies.pop(None, None) if user is not None else None
            self._copies[user] = spare or self._load()
        return self._copies[user]

    def _load(self) -> _Copy:
        """Loads the kernel and allocates its workspaces, also while a stream of this thread is captured."""
        with self.gpu.current(), self.gpu.relaxed_capture():
            workspaces = {
                role: self.gpu.device.allocate(math.prod(item.shape) * element_type(item.element_type).bytes)
                for role, item in zip(WORKSPACE_ROLES, self.bundle.manifest.workspaces)
            }
            return _Copy(self.gpu.device.load(self.bundle), workspaces)

    def _parameter(self, argument: Argument, address: int) -> int | TensorMap | HostNumber:
        if argument.by_value:
            return HostNumber(address)
        address = self._constants.get(argument.role, address)
        if argument.descriptor is None:
            return address
        size = math.prod(argument.shape) * element_type(argument.element_type).bytes
        session = self.gpu.device.session
        return encode(self.bundle.manifest.tma_descriptors[argument.descriptor], Borrowed(session, address, size))

    def _upload_constants(self) -> dict[str, int]:
        """Copies the payload's constants to the GPU; returns their addresses by role."""
        self._kept = {}
        with self.gpu.current():
            for role, array in self.bundle.constants().items():
                buffer = self.gpu.device.allocate(array.nbytes)
                buffer.upload(np.ascontiguousarray(array))
                self._kept[role] = buffer
        return {role: buffer.address for role, buffer in self._kept.items()}

    def run_on_host_arrays(self, arrays: dict[str, np.ndarray], outputs: Sequence[str]) -> list[np.ndarray]:
        """Copies arrays to the GPU, launches the kernel, and waits.

        Args:
            arrays: of the shapes of the kernel's buffers, row-major, by role; also those of results.
            outputs: the roles that are copied back.

        Returns:
            What their buffers hold afterwards.
        """
        with self.gpu.current():
            device = self.gpu.device
            buffers = {}
            try:
                arguments = self.bundle.manifest.operands
                addresses = {item.role: bits_of(arrays[item.role]) for item in arguments if item.by_value}
                for role, array in arrays.items():
                    if role not in addresses:
                        buffers[role] = device.allocate(array.nbytes)
                        buffers[role].upload(np.ascontiguousarray(array))
                addresses |= {role: buffer.address for role, buffer in buffers.items()}
                self.launch(
                    tuple(addresses[item.role] if item.data is None else 0 for item in arguments), device.stream
                )
                results = [buffers[role].download(arrays[role].shape, arrays[role].dtype) for role in outputs]
            finally:
                for buffer in buffers.values():
                    buffer.free()
            return results


def uses_global_memory(ptx: str) -> bool:
    """Returns whether a kernel has variables in global memory, which launches at one time would share.

    Args:
        ptx: of the kernel.
    """
    return _WORKSPACE.search(ptx) is not None


def in_order(launches: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Returns a function that enqueues launches one after the other.

    Args:
        launches: one at least.
    """
    if len(launches) == 1:
        return launches[0]

    def enqueue() -> None:
        for launch in launches:
            launch()

    return enqueue
