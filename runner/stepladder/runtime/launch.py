"""Launching kernels through the CUDA driver (cuda-python's `cuda.bindings.driver`).

Everything here lives in the device's primary context, the one that the CUDA runtime uses too, so that PyTorch and
cuBLAS work on the same buffers in the same process. Every driver call is checked.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from stepladder.runtime import tensor_map
from stepladder.runtime.bundle import Argument, Bundle, Manifest, Problem
from stepladder.runtime.element_types import ElementType, element_type
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, StepladderError
from stepladder.runtime.targets import HOPPER

DEVICE_VARIABLE = "STEPLADDER_DEVICE"
DRIVER_FILE = Path("/proc/driver/nvidia/version")

# A block may use this much without asking; above it the kernel must opt in.
DEFAULT_SHARED_MEMORY = 48 * 1024

# A cluster of up to this many blocks runs on every GPU that has clusters; above it the kernel must opt in.
PORTABLE_CLUSTER = 8
NO_CLUSTER = (1, 1, 1)

# What the driver answers to a cubin that it is too old for, or that is for another GPU.
CUBIN_REFUSALS = (
    "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "CUDA_ERROR_NOT_SUPPORTED",
)


class CudaError(StepladderError):
    """A driver call that failed after the GPU was opened.

    Attributes:
        name: the driver's name of the error, for example `CUDA_ERROR_ILLEGAL_ADDRESS`.
    """

    def __init__(self, call: str, name: str, description: str):
        super().__init__(f"{call} failed: {name} ({description})", status=FAILED)
        self.name = name


def _driver_version() -> str:
    """Returns the version of the kernel's driver, such as 580.159.04; the driver API only knows its CUDA version."""
    try:
        found = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", DRIVER_FILE.read_text())
    except OSError:
        found = None
    return found[1] if found else "unknown"


def device_ordinal() -> int:
    """Returns the ordinal of the GPU to use: `STEPLADDER_DEVICE`, or 0. Raises StepladderError if it is no ordinal."""
    text = os.environ.get(DEVICE_VARIABLE, "0")
    if not text.isdecimal():
        raise StepladderError(f"{DEVICE_VARIABLE} must be the ordinal of a GPU (0, 1, ...), got '{text}'")
    return int(text)


def parse_target(target: str) -> tuple[int, int, bool]:
    """Returns (major, minor, architecture-specific) of a target such as `sm_90a`. Raises StepladderError."""
    match = re.fullmatch(r"sm_(\d+)(\d)(a?)", target)
    if not match:
        raise StepladderError(f"target '{target}' is not of the form sm_80 or sm_90a")
    return int(match[1]), int(match[2]), bool(match[3])


def image_for(target: str, capability: tuple[int, int], device_name: str) -> str:
    """Says which image of a bundle runs on a GPU.

    Machine code runs on its own compute capability and on later minor versions of the same major one; the PTX of a
    target without suffix runs on anything later; code for a target with suffix `a` runs on exactly that capability.

    Args:
        target: the bundle's target.
        capability: (major, minor) of the GPU.
        device_name: the GPU's name, for the message.

    Returns:
        `cubin` or `ptx`.

    Raises:
        StepladderError: neither runs there; nothing was executed.
    """
    major, minor, specific = parse_target(target)
    if capability == (major, minor) or (not specific and capability[0] == major and capability[1] > minor):
        return "cubin"
    if not specific and capability > (major, minor):
        return "ptx"
    needed = f"exactly {major}.{minor}" if specific else f"{major}.{minor} or later"
    raise StepladderError(
        f"the bundle is for {target} (compute capability {needed}), and this GPU is {device_name} "
        f"(compute capability {capability[0]}.{capability[1]}); nothing was executed",
        notes=["compile the bundle again with --target for this GPU"],
        status=NOT_EXECUTED,
    )


class Device:
    """A GPU with its primary context and one stream, as a context manager.

    Args:
        ordinal: which GPU; `device_ordinal()` unless told.
        driver: the driver module; cuda-python's unless told.

    Raises:
        StepladderError: there is no cuda-python, driver or such GPU; status NOT_EXECUTED.

    Attributes:
        name: the GPU's name.
        capability: (major, minor) compute capability.
        ordinal: which GPU.
        stream: handle of the stream on which everything is enqueued.
    """

    def __init__(self, ordinal: int | None = None, driver: ModuleType | None = None):
        self.ordinal = device_ordinal() if ordinal is None else ordinal
        self.cuda = driver if driver is not None else _import_driver()
        self._open()

    def _open(self) -> None:
        try:
            error = self.cuda.cuInit(0)[0]
        except Exception as failure:  # cuda-python raises errors of its own where there is no driver library
            raise _not_executed(f"no NVIDIA driver: {str(failure).splitlines()[0]}") from failure
        if error != self.cuda.CUresult.CUDA_SUCCESS:
            raise _not_executed(f"no usable NVIDIA GPU: cuInit says {self._error_text(error)}")
        count = self._call("cuDeviceGetCount")
        if self.ordinal >= count:
            raise _not_executed(f"there is no GPU {self.ordinal}: the driver shows {count}")
        self._device = self._call("cuDeviceGet", self.ordinal)
        self.name = self._call("cuDeviceGetName", 256, self._device).split(b"\0")[0].decode()
        self.capability = (self._attribute("COMPUTE_CAPABILITY_MAJOR"), self._attribute("COMPUTE_CAPABILITY_MINOR"))
        self._context = self._call("cuDevicePrimaryCtxRetain", self._device)
        self._call("cuCtxSetCurrent", self._context)
        # Not ordered after the legacy default stream: work of libraries there must not enter a capture.
        self._stream = self._call("cuStreamCreate", self.cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)
        self.stream = int(self._stream)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exception: object) -> None:
        # The driver frees what is left in the context. Unchecked: after a kernel's failure these calls fail again, and
        # the first error is the one to show.
        self.cuda.cuStreamDestroy(self._stream)
        self.cuda.cuDevicePrimaryCtxRelease(self._device)

    @property
    def multiprocessors(self) -> int:
        """Number of streaming multiprocessors."""
        return self._attribute("MULTIPROCESSOR_COUNT")

    @property
    def shared_memory_limit(self) -> int:
        """Most bytes of shared memory that a block can have when it opts in."""
        return self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")

    def describe(self) -> dict[str, Any]:
        """Returns what a result must say about the GPU: name, capability, driver, multiprocessors, clocks, caches."""
        version = self._call("cuDriverGetVersion")
        return {
            "name": self.name,
            "compute_capability": f"{self.capability[0]}.{self.capability[1]}",
            "driver_version": _driver_version(),
            "driver_cuda_version": f"{version // 1000}.{version % 1000 // 10}",
            "multiprocessors": self.multiprocessors,
            "max_sm_clock_khz": self._attribute("CLOCK_RATE"),
            "max_memory_clock_khz": self._attribute("MEMORY_CLOCK_RATE"),
            "l2_bytes": self._attribute("L2_CACHE_SIZE"),
            "memory_bytes": self._call("cuDeviceTotalMem", self._device),
            "max_shared_memory_per_block_bytes": self.shared_memory_limit,
        }

    def load(self, bundle: Bundle) -> Kernel:
        """Loads a bundle's kernel: its cubin, or its PTX where the cubin does not run here (which stderr then says).

        Raises:
            StepladderError: wrong GPU, more shared memory than it has, or a cluster that it cannot run.
        """
        image = image_for(bundle.manifest.target, self.capability, self.name)
        self._check_launchable(bundle)
        kernel = self._load_image(bundle, image)
        if bundle.manifest.cluster != NO_CLUSTER:
            kernel.prepare_clusters(bundle.manifest)
        return kernel

    def _load_image(self, bundle: Bundle, image: str) -> Kernel:
        manifest = bundle.manifest
        if image == "cubin":
            try:
                return Kernel(self, bundle.cubin, manifest.kernel_name, "cubin", manifest.dynamic_shared_memory)
            except CudaError as error:
                if error.name not in CUBIN_REFUSALS:
                    raise
                reason = f"the driver does not take the cubin ({error.name})"
        else:
            reason = f"the cubin is for {manifest.target}, and {self.name} is {self.capability[0]}.{self.capability[1]}"
        print(f"note: {bundle.path}: {reason}; the driver compiles the bundle's PTX instead", file=sys.stderr)
        try:
            return self.load_ptx(bundle.ptx, manifest.kernel_name, manifest.dynamic_shared_memory)
        except CudaError as error:
            raise StepladderError(
                f"'{bundle.path}' does not load: {reason}, and it refuses the PTX too "
                f"({error.name}); nothing was executed",
                status=NOT_EXECUTED,
                notes=["a newer driver, or an older ptxas at compile time, helps"],
            ) from error

    def load_ptx(self, ptx: str, name: str, dynamic_shared_memory: int = 0) -> Kernel:
        """Has the driver compile `ptx` and returns its kernel called `name`. Raises CudaError."""
        return Kernel(self, ptx.encode() + b"\0", name, "ptx", dynamic_shared_memory)

    def _check_launchable(self, bundle: Bundle) -> None:
        manifest = bundle.manifest
        needed = manifest.static_shared_memory + manifest.dynamic_shared_memory
        if needed > self.shared_memory_limit:
            raise StepladderError(
                f"the bundle needs {needed} bytes of shared memory a block, and {self.name} has at "
                f"most {self.shared_memory_limit}; nothing was executed",
                status=NOT_EXECUTED,
            )
        wanted = {
            "TMA descriptors": manifest.tma_descriptors,
            "dependent launches": manifest.dependent_launch,
            "thread-block clusters": manifest.cluster != NO_CLUSTER,
        }
        for feature, is_wanted in wanted.items():
            if is_wanted and self.capability < HOPPER:
                raise StepladderError(
                    f"'{bundle.path}' needs {feature}, which GPUs of compute capability 9.0 and "
                    f"later have, and {self.name} is {self.capability[0]}.{self.capability[1]}; "
                    "nothing was executed",
                    status=NOT_EXECUTED,
                )
        if any(blocks % size for blocks, size in zip(manifest.grid, manifest.cluster)):
            raise StepladderError(
                f"'{bundle.path}' has a grid of {_extents(manifest.grid)} blocks, which is not a "
                f"multiple of its cluster of {_extents(manifest.cluster)}; nothing was executed",
                status=NOT_EXECUTED,
            )

    def allocate(self, size: int) -> Buffer:
        """Returns a buffer of `size` bytes of device memory, aligned to at least 256 bytes. Raises CudaError."""
        return Buffer(self, size)

    def synchronize(self) -> None:
        """Waits for everything enqueued in the context; raises CudaError for a kernel that failed."""
        self._call("cuCtxSynchronize")

    def record_event(self) -> Any:
        """Enqueues an event and returns it, for `elapsed_ms`."""
        event = self._call("cuEventCreate", 0)
        self._call("cuEventRecord", event, self._stream)
        return event

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """Returns the milliseconds between two events that have passed, and destroys both."""
        elapsed = self._call("cuEventElapsedTime", start, end)
        for event in (start, end):
            self._call("cuEventDestroy", event)
        return elapsed

    def capture(self, enqueue: Callable[[], None], launches: int) -> Graph:
        """Returns a graph of `launches` calls of `enqueue`, which enqueues on this device's stream."""
        return Graph(self, enqueue, launches)

    def _attribute(self, name: str) -> int:
        return self._call(
            "cuDeviceGetAttribute", getattr(self.cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), self._device
        )

    def _error_text(self, error: Any) -> str:
        return f"{self._error_string('cuGetErrorName', error)} ({self._error_string('cuGetErrorString', error)})"

    def _error_string(self, function: str, error: Any) -> str:
        status, text = getattr(self.cuda, function)(error)
        return text.decode() if status == self.cuda.CUresult.CUDA_SUCCESS else str(error)

    def _call(self, function: str, *arguments: Any) -> Any:
        """Calls the driver; returns its first result, or None. Raises CudaError."""
        error, *results = getattr(self.cuda, function)(*arguments)
        self.check_result(function, error)
        return results[0] if results else None

    def check_result(self, call: str, error: Any) -> None:
        """Raises CudaError, with `call` for its name, unless the driver's answer `error` is success."""
        if error != self.cuda.CUresult.CUDA_SUCCESS:
            raise CudaError(
                call, self._error_string("cuGetErrorName", error), self._error_string("cuGetErrorString", error)
            )


class Kernel:
    """A loaded kernel.

    Args:
        device: where it is loaded.
        image: a cubin, or zero-terminated PTX.
        name: the entry point.
        source: `cubin` or `ptx`: what `image` is.
        dynamic_shared_memory: bytes a block at launch.

    Attributes:
        source: as given.
        registers: registers a thread, as loaded.
        local_memory: bytes a thread, as loaded: not zero where registers spill.
    """

    def __init__(self, device: Device, image: bytes, name: str, source: str, dynamic_shared_memory: int):
        self.device = device
        self.source = source
        self.dynamic_shared_memory = dynamic_shared_memory
        data = np.frombuffer(image, np.uint8)
        self._module = device._call("cuModuleLoadData", data.ctypes.data)
        self._function = device._call("cuModuleGetFunction", self._module, name.encode())
        self.registers = self._attribute("NUM_REGS")
        self.local_memory = self._attribute("LOCAL_SIZE_BYTES")
        if self._attribute("SHARED_SIZE_BYTES") + dynamic_shared_memory > DEFAULT_SHARED_MEMORY:
            attribute = device.cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            device._call("cuFuncSetAttribute", self._function, attribute, dynamic_shared_memory)

    def prepare_clusters(self, manifest: Manifest) -> None:
        """Opts in to a large cluster and sees to it that the kernel can run in clusters of the manifest's extents.

        Raises:
            StepladderError: the kernel is compiled for other extents, or not one cluster fits on the GPU.
        """
        compiled = tuple(self._attribute(f"REQUIRED_CLUSTER_{name}") for name in ("WIDTH", "HEIGHT", "DEPTH"))
        if compiled != manifest.cluster:
            raise StepladderError(
                f"kernel '{manifest.kernel_name}' is compiled for clusters of {_extents(compiled)} "
                f"blocks, and the manifest has {_extents(manifest.cluster)}; nothing was executed",
                status=NOT_EXECUTED,
            )
        cuda, device = self.device.cuda, self.device
        if math.prod(compiled) > PORTABLE_CLUSTER:
            attribute = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            device._call("cuFuncSetAttribute", self._function, attribute, 1)
        # The configuration leaves the cluster's extents out: those compiled in are taken.
        config = self._config(manifest.grid, manifest.block)
        if device._call("cuOccupancyMaxActiveClusters", self._function, config) < 1:
            raise StepladderError(
                f"not one cluster of {_extents(compiled)} blocks, with "
                f"{manifest.static_shared_memory + manifest.dynamic_shared_memory} bytes of shared "
                f"memory a block, fits on {device.name}; nothing was executed",
                status=NOT_EXECUTED,
            )

    def launcher(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[int | tensor_map.TensorMap],
        dependent: bool = False,
    ) -> Callable[[], None]:
        """Returns a function that enqueues one launch.

        Args:
            grid: extents x, y, z in blocks; a multiple of the cluster's, if the kernel has one.
            block: extents x, y, z in threads.
            arguments: the kernel's parameters, in order: pointers and 64-bit integers, and TMA descriptors.
            dependent: whether the kernel may start while the one before it ends; it then waits for that one itself.
        """
        values = np.array([0 if isinstance(item, tensor_map.TensorMap) else item for item in arguments], np.uint64)
        # The driver takes an array of pointers, one to each parameter's value, and knows the sizes from the kernel.
        addresses = values.ctypes.data + values.itemsize * np.arange(len(values), dtype=np.uint64)
        for number, item in enumerate(arguments):
            if isinstance(item, tensor_map.TensorMap):
                addresses[number] = item.address
        device, function = self.device, self._function
        alive = (values, addresses, tuple(arguments))
        if dependent:
            config = self._config(grid, block, dependent=True)

            def enqueue(keep_alive: tuple = alive) -> None:
                device._call("cuLaunchKernelEx", config, function, addresses.ctypes.data, 0)
        else:
            shared = self.dynamic_shared_memory

            def enqueue(keep_alive: tuple = alive) -> None:
                device._call(
                    "cuLaunchKernel", function, *grid, *block, shared, device._stream, addresses.ctypes.data, 0
                )

        return enqueue

    def _config(self, grid: Sequence[int], block: Sequence[int], dependent: bool = False) -> Any:
        """Returns a CUlaunchConfig on the device's stream."""
        cuda = self.device.cuda
        config = cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes = self.dynamic_shared_memory
        config.hStream = self.device._stream
        if dependent:
            attribute = cuda.CUlaunchAttribute()
            attribute.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            config.attrs = [attribute]
            config.numAttrs = 1
        return config

    def _attribute(self, name: str) -> int:
        attribute = getattr(self.device.cuda.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return self.device._call("cuFuncGetAttribute", attribute, self._function)


class Buffer:
    """Device memory.

    Attributes:
        address: device address.
        size: bytes.
    """

    def __init__(self, device: Device, size: int):
        self.device = device
        self.size = size
        self._pointer = device._call("cuMemAlloc", size)
        self.address = int(self._pointer)

    def free(self) -> None:
        """Gives the memory back."""
        self.device._call("cuMemFree", self._pointer)

    def upload(self, array: np.ndarray) -> None:
        """Copies a contiguous host array of exactly the buffer's size in; waits for it."""
        self._check(array)
        self.device.synchronize()
        self.device._call("cuMemcpyHtoD", self._pointer, array.ctypes.data, self.size)
        # A copy from pageable memory may return while its last bytes are still on their way.
        self.device.synchronize()

    def download(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Returns the content as a new host array, after everything enqueued has run."""
        array = np.empty(shape, dtype)
        self._check(array)
        self.device.synchronize()
        self.device._call("cuMemcpyDtoH", array.ctypes.data, self._pointer, self.size)
        return array

    def copy_from(self, source: Buffer) -> None:
        """Enqueues a copy of another buffer of the same size into this one."""
        self.device._call("cuMemcpyDtoDAsync", self._pointer, source._pointer, self.size, self.device._stream)

    def _check(self, array: np.ndarray) -> None:
        if array.nbytes != self.size or not array.flags.c_contiguous:
            raise ValueError(f"a contiguous array of {self.size} bytes is needed, got {array.nbytes}")


class Graph:
    """A captured sequence of launches.

    Attributes:
        launches: launches in one replay.
    """

    def __init__(self, device: Device, enqueue: Callable[[], None], launches: int):
        self.device = device
        self.launches = launches
        # Relaxed: a library may allocate its workspace inside its first call.
        mode = device.cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        device._call("cuStreamBeginCapture", device._stream, mode)
        try:
            for _ in range(launches):
                enqueue()
        finally:
            self._graph = device._call("cuStreamEndCapture", device._stream)
        self._executable = device._call("cuGraphInstantiate", self._graph, 0)
        device._call("cuGraphUpload", self._executable, device._stream)

    def replay(self) -> None:
        """Enqueues all launches of the graph."""
        self.device._call("cuGraphLaunch", self._executable, self.device._stream)

    def free(self) -> None:
        """Destroys the graph."""
        self.device._call("cuGraphExecDestroy", self._executable)
        self.device._call("cuGraphDestroy", self._graph)


class MatmulBuffers:
    """Device buffers for the operands of a matmul, shared by all kernels that compute it; a context manager.

    Args:
        device: where.
        problem: shapes, layouts and element types.

    Attributes:
        a, b, c: the buffers, row-major of the shapes `problem.a_shape`, `problem.b_shape` and (m, n).
    """

    def __init__(self, device: Device, problem: Problem):
        self.device = device
        self.problem = problem
        self.a_type, self.b_type, self.c_type = (
            element_type(name) for name in (problem.a_type, problem.b_type, problem.c_type)
        )
        self.a = self._allocate(problem.a_shape, self.a_type)
        self.b = self._allocate(problem.b_shape, self.b_type)
        self.c = self._allocate((problem.m, problem.n), self.c_type)

    def _allocate(self, shape: tuple[int, int], element: ElementType) -> Buffer:
        return self.device.allocate(shape[0] * shape[1] * element.bytes)

    def __enter__(self) -> MatmulBuffers:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        # After an error the context may be broken, and freeing would hide the first error; the process is about to end.
        if kind is None:
            for buffer in (self.a, self.b, self.c):
                buffer.free()

    def launcher(self, kernel: Kernel, bundle: Bundle) -> Callable[[], None]:
        """Returns a function that enqueues one launch of the bundle's kernel on these buffers.

        Raises:
            StepladderError: a TMA descriptor that cannot be encoded.
        """
        manifest = bundle.manifest
        buffers = {"a": self.a, "b": self.b, "c": self.c}

        def parameter(argument: Argument) -> int | tensor_map.TensorMap:
            buffer = buffers[argument.role]
            if argument.descriptor is None:
                return buffer.address
            return tensor_map.encode(self.device, manifest.tma_descriptors[argument.descriptor], buffer)

        return kernel.launcher(
            manifest.grid, manifest.block, [parameter(item) for item in manifest.arguments], manifest.dependent_launch
        )


class DeviceExecutor:
    """Runs a matmul on device buffers for `check`.

    Args:
        buffers: the operands.
        enqueue: enqueues one launch that reads A and B (and C) and writes C.
    """

    def __init__(self, buffers: MatmulBuffers, enqueue: Callable[[], None]):
        self.buffers = buffers
        self.enqueue = enqueue

    def load(self, a: np.ndarray, b: np.ndarray) -> None:
        """Puts A and B, in their layouts, on the device."""
        self.buffers.a.upload(a)
        self.buffers.b.upload(b)

    def launch(self, c: np.ndarray) -> np.ndarray:
        """Launches once with C holding `c` and returns what C holds afterwards."""
        self.buffers.c.upload(c)
        self.enqueue()
        return self.buffers.c.download(c.shape, c.dtype)


def _extents(values: Sequence[int]) -> str:
    return " x ".join(map(str, values))


def _import_driver() -> ModuleType:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise _not_executed(f"cuda-python is not installed ({error}); `pip install cuda-python` has it") from error
    return driver


def _not_executed(reason: str) -> StepladderError:
    return StepladderError(f"{reason.rstrip('.')}; nothing was executed", status=NOT_EXECUTED)
