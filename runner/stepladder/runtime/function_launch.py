"""Launches of a function's kernels, in order, on buffers of arguments, results and one workspace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stepladder.runtime.buffers import Borrowed, Buffer
from stepladder.runtime.bundle import Argument, FunctionBundle, Launch, Manifest, TmaDescriptor
from stepladder.runtime.bundle.manifest import NO_CLUSTER
from stepladder.runtime.device import Device
from stepladder.runtime.driver import Cuda, CudaError
from stepladder.runtime.element_types import element_type
from stepladder.runtime.kernel import Kernel
from stepladder.runtime.overlap import Access, overlapping, triggers_late
from stepladder.runtime.tensor_map import TensorMap, encode


class Replay:
    """A CUDA graph and the stream that it is launched on: a call enqueues it.

    Args:
        cuda: the CUDA packages.
        graph: an instantiated graph.
        stream: handle of the stream.
    """

    def __init__(self, cuda: Cuda, graph: object, stream: int) -> None:
        self._cuda = cuda
        self._graph = graph
        self._stream = cuda.driver.CUstream(stream)
        self._lock = threading.Lock()  # two threads may not launch a graph at one time

    def __call__(self) -> None:
        """Enqueues the graph. Raises CudaError where the driver refuses it."""
        driver = self._cuda.driver
        with self._lock:
            (error,) = driver.cuGraphLaunch(self._graph, self._stream)
        if error != driver.CUresult.CUDA_SUCCESS:
            self._cuda.check("cuGraphLaunch", error)

    def free(self) -> None:
        """Destroys the graph; a launch that is under way ends first."""
        self._cuda.call("cuGraphExecDestroy", self._graph)


class LoadedFunction:
    """The kernels of a function on a GPU, with a workspace and the content of constants of their own.

    Launches on one stream follow each other; launches that may run at one time need a `LoadedFunction` each.

    Args:
        device: the GPU.
        bundle: of the function.
        kept_arguments: indices of the arguments that nothing writes which is enqueued before a call and may still run.

    Raises:
        StepladderError: the GPU cannot run a kernel; status NOT_EXECUTED.
        CudaError: the driver refuses a kernel, or there is too little memory.
    """

    def __init__(self, device: Device, bundle: FunctionBundle, kept_arguments: Container[int] = ()) -> None:
        self.device = device
        self.bundle = bundle
        self._kept = kept_arguments
        self._kernels: dict[str, Kernel] = {}
        for launch in bundle.manifest.launches:
            if launch.folder not in self._kernels:
                self._kernels[launch.folder] = self._load(launch)
        size = bundle.manifest.workspace
        self._workspace = device.allocate(size) if size else None
        self._constants: dict[int, Buffer] = {}
        for place, buffer in bundle.manifest.of_kind("constant"):
            self._constants[place] = device.allocate(buffer.bytes)
            self._constants[place].upload(np.ascontiguousarray(bundle.constant(buffer)))

    def _load(self, launch: Launch) -> Kernel:
        if launch.kernel is None:
            return self.device.load(self.bundle.matmul(launch))
        code, plain = self.bundle.plain(launch), launch.kernel
        kernel = self.device.load_code(
            str(self.bundle.path),
            self.bundle.manifest.target,
            code.cubin,
            code.ptx,
            plain.kernel_name,
            plain.dynamic_shared_memory,
        )
        if plain.cluster != NO_CLUSTER:
            kernel.prepare_clusters(plain)
        return kernel

    def launchers(self, addresses: Mapping[int, int], stream: int) -> list[Callable[[], None]]:
        """Returns functions that enqueue a kernel each, in order; they neither allocate nor copy.

        A kernel that waits for the one before it itself may start while that one ends (programmatic dependent launch);
        one that reads operands before it waits, where `overlap` finds that none writes them.

        Args:
            addresses: of the buffers of arguments and results, by their positions in the manifest's `buffers`.
            stream: handle of the stream.
        """
        places = dict(addresses)
        for place, buffer in enumerate(self.bundle.manifest.buffers):
            if buffer.kind == "workspace" and self._workspace is not None:
                places[place] = self._workspace.address + buffer.offset
        places |= {place: buffer.address for place, buffer in self._constants.items()}
        for part, home in self.bundle.manifest.homes.items():
            places[part] = places[home] + self.bundle.manifest.buffers[part].offset
        launchers = []
        overlaps = iter(overlapping(list(self._accesses(places))))
        for launch in self.bundle.manifest.launches:
            by_role = {role: places[number] for role, number in launch.operands.items()}
            kernel = self._kernels[launch.folder]
            if launch.kernel is not None:
                plain = launch.kernel
                words = self._parameters(plain.tma_descriptors, plain.arguments, by_role)
                launchers.append(kernel.prepared(plain.grid, plain.block, words, stream, next(overlaps)))
                continue
            manifest = self.bundle.matmul(launch).manifest
            for front_kernel, item in zip(kernel.front, manifest.front, strict=True):
                words = self._parameters(manifest.tma_descriptors, item.arguments, by_role)
                launchers.append(front_kernel.prepared(item.grid, item.block, words, stream, next(overlaps)))
            words = self._parameters(manifest.tma_descriptors, manifest.arguments, by_role)
            launchers.append(kernel.prepared(manifest.grid, manifest.block, words, stream, next(overlaps)))
        return launchers

    def _accesses(self, places: Mapping[int, int]) -> Iterator[Access]:
        """Yields what each kernel accesses, in order.

        Args:
            places: addresses of all buffers, by their positions in the manifest's `buffers`.
        """
        buffers, homes = self.bundle.manifest.buffers, self.bundle.manifest.homes

        def ranges(numbers: Iterable[int]) -> tuple[range, ...]:
            return tuple(range(places[number], places[number] + buffers[number].bytes) for number in numbers)

        for launch in self.bundle.manifest.launches:
            operands = launch.operands

            def written(arguments: Sequence[Argument], operands: Mapping[str, int] = operands) -> tuple[range, ...]:
                return ranges(operands[item.role] for item in arguments if item.access != "read")

            manifest = launch.kernel or self.bundle.matmul(launch).manifest
            for item in manifest.front if isinstance(manifest, Manifest) else ():
                yield Access(written(item.arguments))
            early = [operands[role] for role in manifest.read_early]
            variable = [number for number in early if homes.get(number, number) not in self._constants]
            owners = [buffers[homes.get(number, number)] for number in variable]
            yield Access(
                written(manifest.arguments),
                ranges(variable),
                bool(early),
                manifest.dependent_launch,
                manifest.dependent_launch and triggers_late(self.bundle.kernels[launch.folder].ptx),
                all(buffer.kind == "argument" and buffer.number in self._kept for buffer in owners),
            )

    def graph(self, addresses: Mapping[int, int], stream: int) -> Replay | None:
        """Returns all kernels as one CUDA graph; None where the driver makes none.

        The context must be current, and the calling thread must allow captures.

        Args:
            addresses, stream: as for `launchers`.
        """
        cuda = self.device.session.cuda
        driver = cuda.driver
        capture_stream = driver.CUstream(
            int(cuda.query("cuStreamCreate", driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        )
        try:
            launches = self.launchers(addresses, int(capture_stream))
            cuda.call("cuStreamBeginCapture", capture_stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
            try:
                for launch in launches:
                    launch()
            finally:
                error, graph = driver.cuStreamEndCapture(capture_stream)
                cuda.check("cuStreamEndCapture", error)
            executable: Any = cuda.query("cuGraphInstantiate", graph, 0)
            cuda.call("cuGraphDestroy", graph)
        except CudaError:
            return None
        finally:
            cuda.call("cuStreamDestroy", capture_stream)
        return Replay(cuda, executable, stream)

    def _parameters(
        self, descriptors: Sequence[TmaDescriptor], arguments: Sequence[Argument], by_role: Mapping[str, int]
    ) -> list[int | TensorMap]:
        words: list[int | TensorMap] = []
        for item in arguments:
            address = by_role[item.role]
            if item.descriptor is None:
                words.append(address)
                continue
            size = int(np.prod(item.shape, dtype=np.int64)) * element_type(item.element_type).bytes
            view = Borrowed(self.device.session, address, size)
            words.append(encode(descriptors[item.descriptor], view))
        return words

    def free(self) -> None:
        """Waits for all enqueued work and gives the memory back."""
        for buffer in (*self._constants.values(), *([] if self._workspace is None else [self._workspace])):
            buffer.free()


class DeviceFunction:
    """Runs a function on device buffers (`verify.function_check.FunctionExecutor`); a context manager.

    Args:
        device: the GPU.
        bundle: of the function.
        kept_arguments: as for `LoadedFunction`.

    Attributes:
        loaded: its kernels.
    """

    def __init__(self, device: Device, bundle: FunctionBundle, kept_arguments: Container[int] = ()) -> None:
        self.bundle = bundle
        self.loaded = LoadedFunction(device, bundle, kept_arguments)
        manifest = bundle.manifest
        self._aliases = manifest.aliases
        self._buffers = {
            place: device.allocate(buffer.bytes)
            for kind in ("argument", "result")
            for place, buffer in manifest.of_kind(kind)
            if place not in self._aliases
        }
        self._buffers |= {result: self._buffers[argument] for result, argument in self._aliases.items()}
        addresses = {place: buffer.address for place, buffer in self._buffers.items()}
        self._launchers = self.loaded.launchers(addresses, int(device.session.stream.handle))

    def __enter__(self) -> DeviceFunction:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        # After an error the context may be broken, and freeing would hide the first error.
        if kind is None:
            for place, buffer in self._buffers.items():
                if place not in self._aliases:
                    buffer.free()
            self.loaded.free()

    def enqueue(self) -> None:
        """Enqueues all kernels once."""
        for launch in self._launchers:
            launch()

    def load(self, inputs: Mapping[int, np.ndarray]) -> None:
        """Copies arrays to the device, by argument number.

        Args:
            inputs: arrays of the arguments' types and shapes, by index; an array that is not contiguous is copied
                first.

        Raises:
            CudaError: a copy, or an earlier kernel, failed.
        """
        for place, buffer in self.bundle.manifest.of_kind("argument"):
            self._buffers[place].upload(np.ascontiguousarray(inputs[buffer.number]))

    def run(self, inputs: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        """Runs the function once on arrays by argument number; returns its results, in order.

        Args:
            inputs: arrays of the arguments' types and shapes.

        Raises:
            CudaError: a kernel or a copy failed.
        """
        self.load(inputs)
        results = self.bundle.manifest.of_kind("result")
        for place, buffer in results:  # all ones is NaN, and an integer that no right result is
            if place in self._aliases:
                continue
            dtype = element_type(buffer.element_type).dtype
            self._buffers[place].upload(np.full(buffer.bytes, 0xFF, np.uint8).view(dtype).reshape(buffer.shape))
        self.enqueue()
        return [
            self._buffers[place].download(buffer.shape, element_type(buffer.element_type).dtype)
            for place, buffer in results
        ]
