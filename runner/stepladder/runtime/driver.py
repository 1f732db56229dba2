"""The CUDA driver as the runtime uses it: `cuda.core`, and `cuda.bindings.driver` where cuda.core has no interface.

Both packages report failures in ways of their own. Here every failure of the driver becomes a `CudaError` that names
the driver's error code.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol, SupportsInt, cast

from stepladder.runtime.errors import FAILED, NOT_EXECUTED, StepladderError

# The text of cuda.core's exceptions begins with the driver's name of the error; their class is not public.
_CODE = re.compile(r"(CUDA_ERROR_\w+)(?:: (.*))?", re.DOTALL)


class CudaError(StepladderError):
    """A driver call that fails after the GPU is open; status FAILED.

    Args:
        action: the driver function, or what was attempted, for example `cuMemcpyHtoD` or `loading a kernel`.
        name: the driver's name of the error, for example `CUDA_ERROR_ILLEGAL_ADDRESS`.
        description: what the driver says about the error.

    Attributes:
        name: as given.
    """

    def __init__(self, action: str, name: str, description: str) -> None:
        super().__init__(f"{action} failed: {name} ({description})", status=FAILED)
        self.name = name


class CoreEvent(Protocol):
    """The part of `cuda.core.Event` in use: the difference of two events is the milliseconds between them."""

    def __sub__(self, other: CoreEvent, /) -> float: ...


class CoreGraph(Protocol):
    """The part of `cuda.core.graph.Graph` in use."""

    def launch(self, stream: CoreStream, /) -> None: ...

    def close(self) -> None: ...


class CoreGraphBuilder(Protocol):
    """The part of `cuda.core.graph.GraphBuilder` in use."""

    def begin_building(self, mode: str, /) -> object: ...

    def end_building(self) -> object: ...

    def complete(self, options: object, /) -> CoreGraph: ...

    def close(self) -> None: ...


class CoreGraphs(Protocol):
    """The part of the module `cuda.core.graph` in use."""

    def GraphCompleteOptions(self, *, upload_stream: CoreStream) -> object: ...


class CoreStream(Protocol):
    """The part of `cuda.core.Stream` in use."""

    @property
    def handle(self) -> SupportsInt: ...

    def record(self, *, options: object) -> CoreEvent: ...

    def create_graph_builder(self) -> CoreGraphBuilder: ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


class CoreBuffer(Protocol):
    """The part of `cuda.core.Buffer` in use."""

    @property
    def handle(self) -> SupportsInt: ...

    def copy_from(self, source: CoreBuffer, /, *, stream: CoreStream) -> None: ...

    def close(self) -> None: ...


class CoreKernelAttributes(Protocol):
    """The part of `cuda.core.KernelAttributes` in use: registers, bytes of memory, extents of the cluster."""

    @property
    def num_regs(self) -> int: ...

    @property
    def local_size_bytes(self) -> int: ...

    @property
    def shared_size_bytes(self) -> int: ...

    @property
    def required_cluster_width(self) -> int: ...

    @property
    def required_cluster_height(self) -> int: ...

    @property
    def required_cluster_depth(self) -> int: ...


class CoreOccupancy(Protocol):
    """The part of `cuda.core.KernelOccupancy` in use."""

    def max_active_clusters(self, config: object, /, *, stream: CoreStream) -> int: ...


class CoreKernel(Protocol):
    """The part of `cuda.core.Kernel` in use."""

    @property
    def handle(self) -> SupportsInt: ...

    @property
    def attributes(self) -> CoreKernelAttributes: ...

    @property
    def occupancy(self) -> CoreOccupancy: ...


class CoreImage(Protocol):
    """The part of an instance of `cuda.core.ObjectCode` in use."""

    def get_kernel(self, name: str, /) -> CoreKernel: ...


class CoreObjectCode(Protocol):
    """The part of the class `cuda.core.ObjectCode` in use."""

    def from_cubin(self, image: bytes, /) -> CoreImage: ...

    def from_ptx(self, image: bytes, /) -> CoreImage: ...


class CoreProperties(Protocol):
    """The part of `cuda.core.DeviceProperties` in use: clocks in kHz, sizes in bytes."""

    @property
    def multiprocessor_count(self) -> int: ...

    @property
    def max_shared_memory_per_block_optin(self) -> int: ...

    @property
    def clock_rate(self) -> int: ...

    @property
    def memory_clock_rate(self) -> int: ...

    @property
    def l2_cache_size(self) -> int: ...


class CoreDevice(Protocol):
    """The part of `cuda.core.Device` in use."""

    @property
    def name(self) -> str: ...

    @property
    def compute_capability(self) -> Sequence[int]: ...

    @property
    def pci_bus_id(self) -> str: ...

    @property
    def properties(self) -> CoreProperties: ...

    def set_current(self) -> object: ...

    def create_stream(self, *, options: object) -> CoreStream: ...

    def allocate(self, size: int, /, *, stream: CoreStream) -> CoreBuffer: ...

    def sync(self) -> None: ...


class Core(Protocol):
    """The part of the package `cuda.core` in use."""

    @property
    def graph(self) -> CoreGraphs: ...

    @property
    def ObjectCode(self) -> CoreObjectCode: ...

    def Device(self, ordinal: int, /) -> CoreDevice: ...

    def EventOptions(self, *, timing_enabled: bool) -> object: ...

    def StreamOptions(self, *, nonblocking: bool) -> object: ...

    def LaunchConfig(
        self,
        *,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        shmem_size: int,
        programmatic_stream_serialization: bool = False,
    ) -> object: ...

    def launch(self, stream: CoreStream, config: object, kernel: CoreKernel, /, *arguments: SupportsInt) -> None: ...


@dataclass(frozen=True)
class Cuda:
    """The two packages through which the driver is reached.

    Attributes:
        core: `cuda.core`.
        driver: `cuda.bindings.driver`, whose functions return an error code and then their results.
    """

    core: Core
    driver: ModuleType

    def call(self, function: str, *arguments: object) -> None:
        """Calls a function of the driver that has no result.

        Args:
            function: the name, for example `cuMemcpyHtoD`.
            arguments: what `cuda.bindings.driver` takes.

        Raises:
            CudaError: the function fails.
        """
        error, *_ = getattr(self.driver, function)(*arguments)
        self.check(function, error)

    def query(self, function: str, *arguments: object) -> int:
        """Returns the first result, a scalar, of a function of the driver.

        Args:
            function: the name, for example `cuDeviceGetCount`.
            arguments: what `cuda.bindings.driver` takes.

        Raises:
            CudaError: the function fails.
        """
        error, *results = getattr(self.driver, function)(*arguments)
        self.check(function, error)
        return results[0]

    def check(self, action: str, error: object) -> None:
        """Checks an error code of the driver.

        Args:
            action: what was called or attempted, for the message.
            error: a `CUresult`.

        Raises:
            CudaError: the code is not CUDA_SUCCESS.
        """
        if error != self.driver.CUresult.CUDA_SUCCESS:
            raise CudaError(
                action, self._error_text("cuGetErrorName", error), self._error_text("cuGetErrorString", error)
            )

    def _error_text(self, function: str, error: object) -> str:
        status, text = getattr(self.driver, function)(error)
        return text.decode() if status == self.driver.CUresult.CUDA_SUCCESS else str(error)

    @contextmanager
    def checked(self, action: str) -> Iterator[None]:
        """Turns the driver's failures inside cuda.core into `CudaError`; other exceptions pass.

        Args:
            action: what is attempted, for the message.

        Returns:
            A context, which is entered with nothing.

        Raises:
            CudaError: cuda.core reports an error code of the driver.
        """
        try:
            yield
        except StepladderError:
            raise
        except Exception as failure:
            if code := error_code(failure):
                raise CudaError(action, *code) from failure
            raise


def error_code(failure: Exception) -> tuple[str, str] | None:
    """Returns the driver's name and description of the error after an exception of cuda.core, or None.

    Args:
        failure: of any type; one whose text does not begin with a code of the driver gives None.
    """
    match = _CODE.match(str(failure))
    if match is None:
        return None
    description = " ".join((match[2] or "no description").split())
    return match[1], description.split(". ")[0].rstrip(".")


def import_cuda() -> Cuda:
    """Imports cuda.core and cuda.bindings.

    Returns:
        The two packages.

    Raises:
        StepladderError: one of them is not installed; status NOT_EXECUTED.
    """
    try:
        core = importlib.import_module("cuda.core")
        driver = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise not_executed(
            f"cuda.core is not installed ({error}); `pip install cuda-core cuda-bindings` installs it"
        ) from error
    return Cuda(cast(Core, core), driver)


def not_executed(reason: str) -> StepladderError:
    """Returns the error for a GPU that cannot be used; status NOT_EXECUTED.

    Args:
        reason: why, as a sentence without a full stop.
    """
    return StepladderError(f"{reason.rstrip('.')}; no kernel was launched", status=NOT_EXECUTED)
