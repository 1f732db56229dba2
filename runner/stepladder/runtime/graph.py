"""CUDA graphs of launches."""

from __future__ import annotations

from collections.abc import Callable

from stepladder.runtime.session import Session


class Graph:
    """A captured sequence of launches, instantiated and uploaded.

    Args:
        session: the open GPU, whose stream is captured.
        enqueue: enqueues work on that stream.
        launches: how many times `enqueue` is called.

    Attributes:
        launches: as given.

    Raises:
        CudaError: the capture fails.
    """

    def __init__(self, session: Session, enqueue: Callable[[], object], launches: int) -> None:
        self.session = session
        self.launches = launches
        core = session.cuda.core
        with session.cuda.checked("capturing a graph"):
            builder = session.stream.create_graph_builder()
            try:
                # Relaxed: a library may allocate its workspace inside its first call.
                builder.begin_building("relaxed")
                for _ in range(launches):
                    enqueue()
                builder.end_building()
                options = core.graph.GraphCompleteOptions(upload_stream=session.stream)
                self._graph = builder.complete(options)
            finally:
                # Ends the capture where `enqueue` raises.
                builder.close()

    def replay(self) -> None:
        """Enqueues all launches of the graph."""
        with self.session.cuda.checked("launching a graph"):
            self._graph.launch(self.session.stream)

    def free(self) -> None:
        """Destroys the graph."""
        self._graph.close()
