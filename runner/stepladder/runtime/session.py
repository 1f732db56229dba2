"""An open GPU: its primary context and the one stream on which the runtime enqueues its work.

The primary context is also that of the CUDA runtime, so that PyTorch and cuBLAS work on the same buffers in the same
process.
"""

from __future__ import annotations

from stepladder.runtime.driver import CoreEvent, Cuda, error_code, import_cuda, not_executed


class Session:
    """The primary context of a GPU, current in this thread, and a stream.

    Args:
        ordinal: which GPU.
        cuda: the CUDA packages; the installed ones if None.

    Attributes:
        ordinal: as given.
        cuda: the CUDA packages.
        gpu: the GPU as cuda.core sees it.
        stream: the stream. It does not synchronize with the legacy default stream, so that work of libraries there
            does not enter a capture.

    Raises:
        StepladderError: cuda.core, the driver or the GPU is missing; status NOT_EXECUTED.
    """

    def __init__(self, ordinal: int, cuda: Cuda | None = None) -> None:
        self.ordinal = ordinal
        self.cuda = import_cuda() if cuda is None else cuda
        try:
            self.gpu = self.cuda.core.Device(ordinal)
            self.gpu.set_current()
            self.stream = self.gpu.create_stream(options=self.cuda.core.StreamOptions(nonblocking=True))
        except ValueError as failure:  # the ordinal is out of range
            count = self.cuda.query("cuDeviceGetCount")
            raise not_executed(f"there is no GPU {ordinal}: the driver shows {count}") from failure
        except Exception as failure:  # the bindings raise errors of their own where there is no driver library
            if code := error_code(failure):
                raise not_executed(f"no usable NVIDIA GPU: {code[0]} ({code[1]})") from failure
            text = str(failure).splitlines() or [type(failure).__name__]
            raise not_executed(f"no NVIDIA driver: {text[0]}") from failure

    def close(self) -> None:
        """Destroys the stream. After a kernel's failure this fails too; the first error is the one to show."""
        try:
            self.stream.close()
        except Exception as failure:
            if error_code(failure) is None:
                raise

    def synchronize(self) -> None:
        """Waits for all work enqueued in the context.

        Raises:
            CudaError: a kernel failed.
        """
        with self.cuda.checked("a kernel or copy"):
            self.gpu.sync()

    def record_event(self) -> CoreEvent:
        """Enqueues a timing event on the stream and returns it."""
        with self.cuda.checked("recording an event"):
            return self.stream.record(options=self.cuda.core.EventOptions(timing_enabled=True))

    def elapsed_ms(self, start: CoreEvent, end: CoreEvent) -> float:
        """Returns the milliseconds between two events that have completed.

        Args:
            start: recorded first (`record_event`).
            end: recorded later, on the same stream.

        Raises:
            CudaError: an event has not completed.
        """
        with self.cuda.checked("timing events"):
            return end - start
