"""A GPU: its properties, buffers, kernels and graphs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepladder.runtime.buffers import Buffer
from stepladder.runtime.bundle import Bundle
from stepladder.runtime.bundle.manifest import NO_CLUSTER
from stepladder.runtime.driver import CoreEvent, Cuda, CudaError
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError
from stepladder.runtime.graph import Graph
from stepladder.runtime.images import image_for
from stepladder.runtime.kernel import Kernel, extents_text
from stepladder.runtime.session import Session
from stepladder.runtime.targets import HOPPER

DEVICE_VARIABLE = "STEPLADDER_DEVICE"
DRIVER_FILE = Path("/proc/driver/nvidia/version")

# The driver's errors for a cubin that is too new for it, or for another GPU.
CUBIN_REFUSALS = (
    "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "CUDA_ERROR_NOT_SUPPORTED",
)


def _driver_version() -> str:
    """Returns the version of the kernel-mode driver, such as 580.159.04; the driver API knows its CUDA version only."""
    try:
        match = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", DRIVER_FILE.read_text())
    except OSError:
        match = None
    return match[1] if match else "unknown"


def device_ordinal() -> int:
    """Returns the ordinal of the GPU to use: the variable `STEPLADDER_DEVICE`, or 0.

    Raises:
        StepladderError: the variable is not an ordinal.
    """
    text = os.environ.get(DEVICE_VARIABLE, "0")
    if not text.isdecimal():
        raise StepladderError(f"{DEVICE_VARIABLE} must be the ordinal of a GPU (0, 1, ...), got '{text}'")
    return int(text)


class Device:
    """A GPU with its primary context and one stream, as a context manager.

    Args:
        ordinal: which GPU; `device_ordinal()` if None.
        cuda: the CUDA packages; the installed ones if None.

    Attributes:
        session: the open GPU.
        name: the GPU's name.
        capability: (major, minor) compute capability.
        ordinal: which GPU.
        stream: handle of the stream on which all work is enqueued.

    Raises:
        StepladderError: cuda.core, the driver or the GPU is missing; status NOT_EXECUTED.
    """

    def __init__(self, ordinal: int | None = None, cuda: Cuda | None = None) -> None:
        self.ordinal = device_ordinal() if ordinal is None else ordinal
        self.session = Session(self.ordinal, cuda)
        self.name = self.session.gpu.name
        major, minor = self.session.gpu.compute_capability
        self.capability = (major, minor)
        self.stream = int(self.session.stream.handle)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exception: object) -> None:
        self.session.close()

    @property
    def multiprocessors(self) -> int:
        """Number of streaming multiprocessors."""
        return self.session.gpu.properties.multiprocessor_count

    @property
    def bus_id(self) -> str:
        """PCI bus id of the GPU, which other tools know it by."""
        return str(self.session.gpu.pci_bus_id)

    @property
    def shared_memory_limit(self) -> int:
        """Most bytes of shared memory that a block can have when it opts in."""
        return self.session.gpu.properties.max_shared_memory_per_block_optin

    def describe(self) -> dict[str, Any]:
        """Returns what identifies the GPU in a result: name, capability, driver, multiprocessors, clocks, caches."""
        version = self.session.cuda.query("cuDriverGetVersion")
        properties = self.session.gpu.properties
        return {
            "name": self.name,
            "compute_capability": f"{self.capability[0]}.{self.capability[1]}",
            "driver_version": _driver_version(),
            "driver_cuda_version": f"{version // 1000}.{version % 1000 // 10}",
            "multiprocessors": self.multiprocessors,
            "max_sm_clock_khz": properties.clock_rate,
            "max_memory_clock_khz": properties.memory_clock_rate,
            "l2_bytes": properties.l2_cache_size,
            "memory_bytes": self.session.cuda.query("cuDeviceTotalMem", self.ordinal),
            "max_shared_memory_per_block_bytes": self.shared_memory_limit,
        }

    def load(self, bundle: Bundle) -> Kernel:
        """Loads a bundle's kernels: their cubins, or their PTX, with a note on stderr, where a cubin does not run here.

        Args:
            bundle: of a matmul, as `read_bundle` returns it.

        Returns:
            That of the matmul, with those that are launched before it as its `front`.

        Raises:
            StepladderError: the GPU is of another architecture, has too little shared memory, or cannot run the
                kernel's clusters; status NOT_EXECUTED.
            CudaError: the driver fails for another reason.
        """
        manifest, path = bundle.manifest, str(bundle.path)
        image_for(manifest.target, self.capability, self.name)  # a GPU that the target is not for is said first
        self._check_launchable(bundle)
        kernel = self.load_code(
            path, manifest.target, bundle.cubin, bundle.ptx, manifest.kernel_name, manifest.dynamic_shared_memory
        )
        kernel.front = tuple(
            self.load_code(path, manifest.target, cubin, ptx, item.kernel_name)
            for item, (cubin, ptx) in zip(manifest.front, bundle.front, strict=True)
        )
        if bundle.manifest.cluster != NO_CLUSTER:
            kernel.prepare_clusters(bundle.manifest)
        return kernel

    def load_code(self, path: str, target: str, cubin: bytes, ptx: str, name: str, dynamic: int = 0) -> Kernel:
        """Loads a kernel: its cubin, or its PTX, with a note on stderr, where the cubin does not run here.

        Args:
            path: of the bundle, for messages.
            target: GPU architecture of the cubin.
            cubin: machine code; `ptx`: the text that it was assembled from.
            name: the kernel's entry point.
            dynamic: bytes of dynamic shared memory a block.

        Returns:
            The loaded kernel.

        Raises:
            StepladderError: as `load`.
            CudaError: as `load`.
        """
        image = image_for(target, self.capability, self.name)
        if image == "cubin":
            try:
                return Kernel(self.session, cubin, name, "cubin", dynamic)
            except CudaError as error:
                if error.name not in CUBIN_REFUSALS:
                    raise
                reason = f"the driver does not take the cubin ({error.name})"
        else:
            capability = f"{self.capability[0]}.{self.capability[1]}"
            reason = f"the cubin is for {target}, and {self.name} is {capability}"
        print(f"note: {path}: {reason}; the driver compiles the bundle's PTX instead", file=sys.stderr)
        try:
            return self.load_ptx(ptx, name, dynamic)
        except CudaError as error:
            raise StepladderError(
                f"'{path}' does not load: {reason}, and it refuses the PTX too ({error.name}); no kernel was launched",
                status=NOT_EXECUTED,
                notes=["a newer driver, or an older ptxas at compile time, helps"],
            ) from error

    def load_ptx(self, ptx: str, name: str, dynamic_shared_memory: int = 0) -> Kernel:
        """Has the driver compile PTX.

        Args:
            ptx: the text of a module.
            name: the kernel's entry point.
            dynamic_shared_memory: bytes a block at launch.

        Returns:
            The loaded kernel.

        Raises:
            CudaError: the driver refuses the PTX.
        """
        return Kernel(self.session, ptx.encode() + b"\0", name, "ptx", dynamic_shared_memory)

    def _check_launchable(self, bundle: Bundle) -> None:
        manifest = bundle.manifest
        shared_memory = manifest.static_shared_memory + manifest.dynamic_shared_memory
        if shared_memory > self.shared_memory_limit:
            raise StepladderError(
                f"the bundle needs {shared_memory} bytes of shared memory per block, and {self.name} has at most "
                f"{self.shared_memory_limit}; no kernel was launched",
                status=NOT_EXECUTED,
            )
        features = {
            "TMA descriptors": manifest.tma_descriptors,
            "programmatic dependent launch": manifest.dependent_launch,
            "thread-block clusters": manifest.cluster != NO_CLUSTER,
        }
        for feature, is_wanted in features.items():
            if is_wanted and self.capability < HOPPER:
                raise StepladderError(
                    f"'{bundle.path}' needs {feature}, which GPUs of compute capability 9.0 and later have, and "
                    f"{self.name} is {self.capability[0]}.{self.capability[1]}; no kernel was launched",
                    status=NOT_EXECUTED,
                )
        if any(blocks % size for blocks, size in zip(manifest.grid, manifest.cluster, strict=True)):
            raise StepladderError(
                f"'{bundle.path}' has a grid of {extents_text(manifest.grid)} blocks, which is not a multiple of its "
                f"cluster of {extents_text(manifest.cluster)}; no kernel was launched",
                status=NOT_EXECUTED,
            )

    def allocate(self, size: int) -> Buffer:
        """Returns a buffer of device memory.

        Args:
            size: in bytes.

        Raises:
            CudaError: the driver allocates none.
        """
        return Buffer(self.session, size)

    def synchronize(self) -> None:
        """Waits for all work enqueued in the context; raises CudaError for a kernel that failed."""
        self.session.synchronize()

    def record_event(self) -> CoreEvent:
        """Enqueues a timing event and returns it, for `elapsed_ms`."""
        return self.session.record_event()

    def elapsed_ms(self, start: CoreEvent, end: CoreEvent) -> float:
        """Returns the milliseconds between two events that have completed.

        Args:
            start: recorded first.
            end: recorded later, on the same stream.

        Raises:
            CudaError: an event has not completed.
        """
        return self.session.elapsed_ms(start, end)

    def capture(self, enqueue: Callable[[], object], launches: int) -> Graph:
        """Returns a graph of `launches` calls of `enqueue`, which enqueues on this device's stream.

        Args:
            enqueue: is called `launches` times while the stream is captured.
            launches: of one replay.

        Raises:
            CudaError: the driver cannot capture what is enqueued.
        """
        return Graph(self.session, enqueue, launches)
