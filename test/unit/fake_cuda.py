"""A GPU that is not there: `cuda.core` and `cuda.bindings.driver`, as far as the runtime uses them, with a record."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from stepladder.runtime import tensor_map
from stepladder.runtime.driver import Cuda

STREAM = 77
KERNEL = 6


class Names:
    """An enumeration of the driver's: every attribute is its own name."""

    def __getattr__(self, name: str) -> str:
        return name


class Result(int):
    """A CUresult; the fake driver's failures are text instead."""

    CUDA_SUCCESS = 0


class Numbers:
    """One of the enumerations of TMA descriptors: values in the order of cuda.h."""

    def __init__(self, prefix: str, *names: str) -> None:
        for number, name in enumerate(names):
            setattr(self, f"CU_TENSOR_MAP_{prefix}_{name}", number)


class FakeCudaError(Exception):
    """cuda.core's own exception."""


@dataclass
class LaunchConfig:
    grid: tuple
    block: tuple
    shmem_size: int
    programmatic_stream_serialization: bool = False


class FakeDriver:
    """`cuda.bindings.driver`: functions return an error code and a result."""

    CUresult = Result
    CUfunction_attribute = CUlaunchAttributeID = Names()
    CUlaunchConfig = SimpleNamespace
    CUfunction = CUkernel = int
    CUtensorMapDataType = Numbers(
        "DATA_TYPE",
        *("UINT8", "UINT16", "UINT32", "INT32", "UINT64", "INT64", "FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16"),
    )
    CUtensorMapInterleave = Numbers("INTERLEAVE", "NONE", "16B", "32B")
    CUtensorMapSwizzle = Numbers("SWIZZLE", "NONE", "32B", "64B", "128B")
    CUtensorMapL2promotion = Numbers("L2_PROMOTION", "NONE", "L2_64B", "L2_128B", "L2_256B")
    CUtensorMapFloatOOBfill = Numbers("FLOAT_OOB_FILL", "NONE", "NAN_REQUEST_ZERO_FMA")

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu
        self._encode_tiled = tensor_map.ENCODE_TILED(self.encode_tiled)
        self.encoded = []
        self.results = {
            "cuDeviceGetCount": lambda: 1,
            "cuDriverGetVersion": lambda: 13020,
            "cuKernelGetFunction": lambda kernel: kernel,
            "cuDeviceTotalMem": lambda ordinal: 1 << 37,
            "cuGetProcAddress": lambda name, version, flags: ctypes.cast(self._encode_tiled, ctypes.c_void_p).value,
            "cuGetErrorName": lambda error: str(error).encode(),
            "cuGetErrorString": lambda error: b"it went wrong",
        }

    def CUlaunchAttribute(self) -> SimpleNamespace:
        return SimpleNamespace(value=SimpleNamespace())

    def encode_tiled(
        self,
        address: int,
        kind: int,
        rank: int,
        base: int,
        shape: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
        steps: Sequence[int],
        *modes: int,
    ) -> int:
        """cuTensorMapEncodeTiled as C calls it; marks the 128 bytes that it writes."""
        self.encoded.append(
            {
                "kind": kind,
                "address": base,
                "shape": shape[:rank],
                "strides": strides[: rank - 1],
                "box": box[:rank],
                "steps": steps[:rank],
                "modes": list(modes),
                "map": address,
            }
        )
        ctypes.memset(address, len(self.encoded), 128)
        return next(iter(self.gpu.errors.get("cuTensorMapEncodeTiled", [])), 0)

    def __getattr__(self, function: str) -> Callable[..., tuple[object, ...]]:
        if not function.startswith("cu"):
            raise AttributeError(function)

        def call(*arguments: object) -> tuple[object, ...]:
            self.gpu.record(function, *arguments)
            if error := self.gpu.next_error(function):
                return (error,)
            return (0, *([self.results[function](*arguments)] if function in self.results else []))

        return call


class FakeBuffer:
    def __init__(self, gpu: FakeGpu, address: int) -> None:
        self.gpu, self.handle = gpu, address

    def copy_from(self, source: FakeBuffer, *, stream: FakeStream) -> None:
        self.gpu.record("copy", source.handle, self.handle, stream.handle)

    def close(self) -> None:
        self.gpu.record("free", self.handle)


class FakeEvent:
    def __init__(self, time: float) -> None:
        self.time = time

    def __sub__(self, other: FakeEvent) -> float:
        return self.time - other.time


class FakeBuilder:
    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu

    def begin_building(self, mode: str) -> None:
        self.gpu.record("begin_building", mode)

    def end_building(self) -> None:
        self.gpu.record("end_building")

    def complete(self, options: SimpleNamespace) -> FakeGraph:
        self.gpu.record("complete", options.upload_stream.handle)
        return FakeGraph(self.gpu)

    def close(self) -> None:
        self.gpu.record("close_builder")


class FakeGraph:
    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu

    def launch(self, stream: FakeStream) -> None:
        self.gpu.record("launch_graph", stream.handle)

    def close(self) -> None:
        self.gpu.record("close_graph")


class FakeStream:
    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu, self.handle = gpu, STREAM

    def record(self, *, options: SimpleNamespace) -> FakeEvent:
        assert options.timing_enabled
        self.gpu.record("record_event")
        return FakeEvent(float(len(self.gpu.called("record_event"))))

    def create_graph_builder(self) -> FakeBuilder:
        return FakeBuilder(self.gpu)

    def sync(self) -> None:
        self.gpu.record("sync_stream")

    def close(self) -> None:
        self.gpu.record("close_stream")


class FakeKernel:
    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu, self.handle = gpu, KERNEL
        width, height, depth = gpu.cluster
        self.attributes = SimpleNamespace(
            num_regs=40,
            local_size_bytes=0,
            shared_size_bytes=gpu.static_shared_memory,
            required_cluster_width=width,
            required_cluster_height=height,
            required_cluster_depth=depth,
        )
        self.occupancy = self

    def max_active_clusters(self, config: LaunchConfig, *, stream: FakeStream) -> int:
        self.gpu.record("max_active_clusters", config, stream.handle)
        return self.gpu.active_clusters


class FakeCode:
    """`cuda.core.ObjectCode`."""

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu

    def from_cubin(self, image: bytes) -> FakeCode:
        self.source, self.image = "cubin", image
        return self

    def from_ptx(self, image: bytes) -> FakeCode:
        self.source, self.image = "ptx", image
        return self

    def get_kernel(self, name: str) -> FakeKernel:
        self.gpu.record("load", self.source, self.image, name)
        self.gpu.fail("load")
        return FakeKernel(self.gpu)


class FakeGpu:
    """A GPU and the packages that see it.

    Args:
        errors: names of errors by what fails, one for each time: `Device`, `load`, `sync`, or a driver function.
        capability: compute capability.
        cluster: extents that are compiled into every kernel.
        static_shared_memory: bytes of every kernel.
        addresses: of the buffers, in order; 4096 for all without it.

    Attributes:
        calls: what was asked of the packages, in order: a name, then arguments.
        cuda: the packages.
        active_clusters: how many clusters are said to fit.
    """

    name = "Fake H200"

    def __init__(
        self,
        errors: dict[str, list[int | str]] | None = None,
        capability: tuple[int, int] = (9, 0),
        cluster: tuple[int, int, int] = (0, 0, 0),
        static_shared_memory: int = 0,
        addresses: list[int] | None = None,
        count: int = 1,
    ) -> None:
        self.errors = errors or {}
        self.compute_capability = capability
        self.cluster = cluster
        self.static_shared_memory = static_shared_memory
        self.addresses = iter(addresses) if addresses else None
        self.count = count
        self.active_clusters = 66
        self.calls = []
        self.properties = SimpleNamespace(
            multiprocessor_count=132,
            max_shared_memory_per_block_optin=232448,
            clock_rate=1980000,
            memory_clock_rate=3201000,
            l2_cache_size=60 << 20,
        )
        self.driver = FakeDriver(self)
        core = SimpleNamespace(
            Device=self.device,
            StreamOptions=SimpleNamespace,
            EventOptions=SimpleNamespace,
            LaunchConfig=LaunchConfig,
            ObjectCode=FakeCode(self),
            launch=self.launch,
            graph=SimpleNamespace(GraphCompleteOptions=SimpleNamespace),
        )
        self.cuda = Cuda(core, self.driver)

    def record(self, name: str, *arguments: object) -> None:
        self.calls.append((name, *arguments))

    def called(self, name: str) -> list[list]:
        return [list(arguments) for what, *arguments in self.calls if what == name]

    def next_error(self, name: str) -> int | str | None:
        failures = self.errors.get(name, [])
        return failures.pop(0) if failures else None

    def fail(self, name: str) -> None:
        if error := self.next_error(name):
            raise FakeCudaError(f"{error}: it went wrong. And this is how to go on")

    def device(self, ordinal: int) -> FakeGpu:
        self.fail("Device")
        if ordinal >= self.count:
            raise ValueError(f"device_id must be within [0, {self.count}), got {ordinal}")
        return self

    def set_current(self) -> None:
        self.record("set_current")

    def create_stream(self, *, options: SimpleNamespace) -> FakeStream:
        assert options.nonblocking
        return FakeStream(self)

    def allocate(self, size: int, *, stream: FakeStream) -> FakeBuffer:
        assert stream.handle == STREAM
        self.record("allocate", size)
        return FakeBuffer(self, next(self.addresses) if self.addresses else 4096)

    def sync(self) -> None:
        self.record("sync")
        self.fail("sync")

    def launch(self, stream: FakeStream, config: LaunchConfig, kernel: FakeKernel, *arguments: object) -> None:
        self.record("launch", stream.handle, config, kernel.handle, *arguments)
