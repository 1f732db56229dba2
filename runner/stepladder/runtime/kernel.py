"""Loaded kernels and their launches.

cuda.core loads and launches kernels. `cuda.bindings.driver` launches those with TMA descriptors, which cuda.core takes
by value only as descriptors of its own, and sets attributes of kernels, which cuda.core only reads.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepladder.runtime.buffers import Buffer
from stepladder.runtime.bundle import Manifest, PlainKernel
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError
from stepladder.runtime.host_number import HostNumber
from stepladder.runtime.session import Session
from stepladder.runtime.tensor_map import TensorMap

# A block may use this many bytes without opting in.
DEFAULT_SHARED_MEMORY = 48 * 1024

# A cluster of up to this many blocks runs on every GPU that has clusters; a larger one needs opting in.
PORTABLE_CLUSTER = 8

# Parameters that a kernel takes by value, from host memory at their address.
_BY_VALUE = (TensorMap, HostNumber)


class Kernel:
    """A loaded kernel.

    Args:
        session: the open GPU.
        image: a cubin, or zero-terminated PTX.
        name: the entry point.
        source: `cubin` or `ptx`: what `image` is.
        dynamic_shared_memory: bytes a block at launch.

    Attributes:
        session: as given.
        source: as given.
        dynamic_shared_memory: as given.
        registers: registers a thread, as loaded.
        local_memory: bytes a thread, as loaded: not zero where registers spill.
        front: the kernels that are launched before it, each time.

    Raises:
        CudaError: the driver does not load the image.
    """

    def __init__(self, session: Session, image: bytes, name: str, source: str, dynamic_shared_memory: int) -> None:
        self.session = session
        self.source = source
        self.dynamic_shared_memory = dynamic_shared_memory
        self.front: tuple[Kernel, ...] = ()
        code = session.cuda.core.ObjectCode
        # The image is loaded when the first attribute is read, if not before.
        with session.cuda.checked(f"loading kernel '{name}' from {source}"):
            self._kernel = (code.from_cubin if source == "cubin" else code.from_ptx)(image).get_kernel(name)
            self.registers: int = self._kernel.attributes.num_regs
            self.local_memory: int = self._kernel.attributes.local_size_bytes
            static_shared_memory: int = self._kernel.attributes.shared_size_bytes
        if static_shared_memory + dynamic_shared_memory > DEFAULT_SHARED_MEMORY:
            self._set_attribute("MAX_DYNAMIC_SHARED_SIZE_BYTES", dynamic_shared_memory)

    def prepare_clusters(self, manifest: Manifest | PlainKernel) -> None:
        """Opts in to a cluster beyond the portable size and checks that the kernel's clusters fit on the GPU.

        Args:
            manifest: what describes the kernel: its cluster, grid and block.

        Raises:
            StepladderError: the kernel is compiled for other clusters, or no cluster of them fits on the GPU;
                status NOT_EXECUTED.
        """
        with self.session.cuda.checked("reading the cluster of a kernel"):
            attributes = self._kernel.attributes
            cluster: tuple[int, int, int] = (
                attributes.required_cluster_width,
                attributes.required_cluster_height,
                attributes.required_cluster_depth,
            )
        if cluster != manifest.cluster:
            raise StepladderError(
                f"kernel '{manifest.kernel_name}' is compiled for clusters of {extents_text(cluster)} blocks, and "
                f"the manifest has {extents_text(manifest.cluster)}; no kernel was launched",
                status=NOT_EXECUTED,
            )
        if math.prod(cluster) > PORTABLE_CLUSTER:
            self._set_attribute("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)
        with self.session.cuda.checked("counting active clusters"):
            # The configuration has no cluster: the extents are compiled into the kernel.
            active_clusters = self._kernel.occupancy.max_active_clusters(
                self._config(manifest.grid, manifest.block, False), stream=self.session.stream
            )
        if active_clusters < 1:
            raise StepladderError(
                f"no cluster of {extents_text(cluster)} blocks, with "
                f"{manifest.static_shared_memory + manifest.dynamic_shared_memory} bytes of shared memory per block, "
                f"fits on {self.session.gpu.name}; no kernel was launched",
                status=NOT_EXECUTED,
            )

    def launcher(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[int | Buffer | TensorMap | HostNumber],
        dependent: bool = False,
    ) -> Callable[[], None]:
        """Returns a function that enqueues one launch.

        Args:
            grid: extents x, y, z in blocks; a multiple of the cluster's, if the kernel has one.
            block: extents x, y, z in threads.
            arguments: the kernel's parameters, in order: buffers or device addresses for pointers, unsigned
                64-bit integers, TMA descriptors, and scalars. They are kept alive by the function.
            dependent: programmatic dependent launch: whether the kernel may start while the one before it ends. The
                kernel then waits for that one itself (`griddepcontrol.wait`).
        """
        references = tuple(arguments)
        values = [item.address if isinstance(item, Buffer) else item for item in references]
        # cuda.core takes Python's integers as signed ones.
        words = [np.uint64(item) for item in values if not isinstance(item, _BY_VALUE)]
        if len(words) < len(values):
            return self._launcher_by_value(grid, block, tuple(values), dependent, references)
        cuda, stream, kernel = self.session.cuda, self.session.stream, self._kernel
        config = self._config(grid, block, dependent)

        def enqueue(keep_alive: tuple = references) -> None:
            with cuda.checked("launching a kernel"):
                cuda.core.launch(stream, config, kernel, *words)

        return enqueue

    def _launcher_by_value(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        values: tuple[int | TensorMap | HostNumber, ...],
        dependent: bool,
        references: tuple[object, ...],
    ) -> Callable[[], None]:
        """`launcher` for arguments with TMA descriptors or scalars."""
        cuda, driver = self.session.cuda, self.session.cuda.driver
        config = self._driver_config(grid, block, self.session.stream.handle, dependent)
        function = driver.CUfunction(int(self._kernel.handle))
        # A type of None represents a structure, which the bindings find by the value's `getPtr`.
        types = tuple(None if isinstance(item, _BY_VALUE) else ctypes.c_uint64 for item in values)

        def enqueue(keep_alive: tuple = references) -> None:
            cuda.call("cuLaunchKernelEx", config, function, (values, types), 0)

        return enqueue

    def prepared(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[int | TensorMap | HostNumber],
        stream: int,
        dependent: bool = False,
    ) -> Callable[[], None]:
        """Returns a function that enqueues one launch on any stream, and neither allocates nor copies.

        Args:
            grid, block, dependent: as for `launcher`.
            arguments: the kernel's parameters, in order: device addresses, TMA descriptors, and scalars.
            stream: handle of the stream; for a default stream, the context must be current when the function is called,
                as it is now.
        """
        driver = self.session.cuda.driver
        config = self._driver_config(grid, block, driver.CUstream(stream), dependent)
        # The kernel in the current context, which the driver would otherwise look up in each launch.
        kernel = driver.CUkernel(int(self._kernel.handle))
        function = driver.CUfunction(int(self.session.cuda.query("cuKernelGetFunction", kernel)))
        # The driver reads an array of the addresses of the parameters' values.
        words = [ctypes.c_uint64(0 if isinstance(item, _BY_VALUE) else item) for item in arguments]
        places = (ctypes.c_void_p * len(words))(
            *(
                item.address if isinstance(item, _BY_VALUE) else ctypes.addressof(word)
                for item, word in zip(arguments, words)
            )
        )
        start, launch, success = ctypes.addressof(places), driver.cuLaunchKernelEx, driver.CUresult.CUDA_SUCCESS
        check = self.session.cuda.check

        def enqueue(keep_alive: tuple = (tuple(arguments), words, places)) -> None:
            (error,) = launch(config, function, start, 0)
            if error != success:
                check("cuLaunchKernelEx", error)

        return enqueue

    def _driver_config(self, grid: Sequence[int], block: Sequence[int], stream: object, dependent: bool) -> object:
        """Returns the driver's configuration of a launch."""
        driver = self.session.cuda.driver
        config: Any = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes = self.dynamic_shared_memory
        config.hStream = stream
        if dependent:
            attribute = driver.CUlaunchAttribute()
            attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            config.attrs = [attribute]
            config.numAttrs = 1
        return config

    def _config(self, grid: Sequence[int], block: Sequence[int], dependent: bool) -> object:
        return self.session.cuda.core.LaunchConfig(
            grid=tuple(grid),
            block=tuple(block),
            shmem_size=self.dynamic_shared_memory,
            programmatic_stream_serialization=dependent,
        )

    def _set_attribute(self, name: str, value: int) -> None:
        attribute = getattr(self.session.cuda.driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        self.session.cuda.call("cuKernelSetAttribute", attribute, value, self._kernel.handle, self.session.ordinal)


def extents_text(values: Sequence[int]) -> str:
    """Returns extents as text, for example `2 x 1 x 1`.

    Args:
        values: extents, in the order of the text.
    """
    return " x ".join(map(str, values))
