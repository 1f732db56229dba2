"""Functions with several kernels on a GPU: launches prepared once for a set of addresses, and CUDA graphs of them."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Container
from dataclasses import dataclass

from stepladder.api.gpu import KEPT, OpenGpu, in_order, keep_for_graphs, uses_global_memory
from stepladder.runtime.bundle import FunctionBundle
from stepladder.runtime.function_launch import LoadedFunction, Replay

# Calls on one set of addresses before a graph of them is made, and graphs that a function keeps.
_BEFORE_GRAPH = 8
_GRAPHS = 128


@dataclass
class _Launches:
    """The launches of a function for one set of addresses and one stream: its kernels or, after some calls, a graph.

    Attributes:
        loaded: the kernels.
        enqueue: enqueues them, or the graph.
        count: calls before there is a graph.
        graph: that is made, if any.
    """

    loaded: LoadedFunction
    enqueue: Callable[[], None]
    count: int = 0
    graph: Replay | None = None


class PreparedFunction:
    """A function with several kernels on a GPU: its launches, prepared once for a set of addresses and a stream.

    A workspace belongs to one stream, or to one capture of it, so that launches at one time do not share it. A function
    whose kernels keep nothing in global memory is loaded once. Several kernels that are launched on the same addresses
    again and again become a CUDA graph, which costs the host one launch.

    Args:
        bundle: of the function.
        gpu: the GPU.
        kept: indices of the arguments that nothing writes which is enqueued before a call and may still run.

    Raises:
        StepladderError: the GPU cannot run a kernel; status NOT_EXECUTED.
        CudaError: the driver refuses one.
    """

    def __init__(self, bundle: FunctionBundle, gpu: OpenGpu, kept: Container[int] = ()) -> None:
        self.bundle = bundle
        self.gpu = gpu
        self._kept = kept
        self._lock = threading.RLock()
        self._is_one = len(bundle.manifest.launches) == 1
        self._has_workspace = bundle.manifest.workspace > 0 or any(
            uses_global_memory(kernel.ptx) for kernel in bundle.kernels.values()
        )
        self._has_memory = self._has_workspace or bool(bundle.manifest.of_kind("constant"))
        self._loaded: dict[object, LoadedFunction] = {}
        self._prepared: OrderedDict[tuple[object, ...], _Launches] = OrderedDict()
        self._graphs = 0
        self._places = [place for kind in ("argument", "result") for place, _ in bundle.manifest.of_kind(kind)]

    def launch(self, addresses: tuple[int, ...], stream: int) -> None:
        """Enqueues all kernels.

        Args:
            addresses: of the arguments, then of the results.
            stream: handle of the stream.

        Raises:
            CudaError: the driver refuses a launch.
        """
        self.launcher(addresses, stream)()

    def launcher(self, addresses: tuple[int, ...], stream: int) -> Callable[[], None]:
        """Returns a function that launches on these addresses and this stream, any number of times.

        Args:
            addresses, stream: as for `launch`.
        """
        if self._is_one and not self._has_memory:
            return self.gpu.on_stream(self._find(addresses, stream, None).enqueue, stream)
        # Whether the stream is captured decides on the workspace and on the graph.
        return self.gpu.on_stream(functools.partial(self._launch, addresses, stream), stream)

    def _launch(self, addresses: tuple[int, ...], stream: int) -> None:
        capture = self.gpu.capture_of(stream)
        launches = self._find(addresses, stream, capture)
        launches.enqueue()
        if launches.count < _BEFORE_GRAPH and capture is None and not self._is_one:
            launches.count += 1
            if launches.count == _BEFORE_GRAPH and self._graphs < _GRAPHS:
                self._make_graph(launches, addresses, stream)

    def _make_graph(self, launches: _Launches, addresses: tuple[int, ...], stream: int) -> None:
        with self._lock, self.gpu.current(), self.gpu.relaxed_capture():
            launches.graph = launches.loaded.graph(dict(zip(self._places, addresses)), stream)
            if launches.graph is not None:
                self._graphs += 1
                launches.enqueue = launches.graph

    def _find(self, addresses: tuple[int, ...], stream: int, capture: int | None) -> _Launches:
        """Returns what is launched on a set of addresses, which is prepared where there is none yet."""
        result = self._prepared.get((addresses, stream, capture))
        if result is not None:
            return result
        user = (stream, capture) if self._has_workspace else None
        with self._lock, self.gpu.current(), self.gpu.relaxed_capture():
            if user not in self._loaded:
                self._loaded[user] = LoadedFunction(self.gpu.device, self.bundle, self._kept)
            loaded = self._loaded[user]
            if capture is not None:
                keep_for_graphs(loaded)
            launches = loaded.launchers(dict(zip(self._places, addresses)), stream)
            result = _Launches(loaded, in_order(launches))
            self._prepared[addresses, stream, capture] = result
            while len(self._prepared) > KEPT:
                graph = self._prepared.popitem(last=False)[1].graph
                if graph is not None:
                    self._graphs -= 1
                    graph.free()
            return result
