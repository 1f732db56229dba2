"""Which bytes of a function's buffers kernels have written: buffers that are parts of others, also columns of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepladder.runtime.bundle.function import FunctionBuffer, FunctionManifest
from stepladder.runtime.element_types import element_type

if TYPE_CHECKING:
    import numpy as np


def is_written(manifest: FunctionManifest, number: int, written: set[int]) -> bool:
    """Returns whether kernels have written all bytes of a buffer, at once or by parts.

    Args:
        manifest: of the function.
        number: of the buffer.
        written: indices of the buffers that kernels have written.
    """
    buffer = manifest.buffers[number]
    buffers = [manifest.buffers[index] for index in written if manifest.buffers[index].memory == buffer.memory]
    if number in written:
        return True
    end = buffer.offset + buffer.bytes
    place = buffer.offset
    for first, last in _ranges(buffers).tolist():
        if first > place or place >= end:
            break
        place = max(place, last)
    return place >= end


def note_written(manifest: FunctionManifest, number: int, written: set[int]) -> None:
    """Notes that a kernel writes a buffer: others that share bytes with it in the workspace are gone.

    Args:
        manifest: of the function.
        number: of the buffer.
        written: indices of the buffers that kernels have written; it is changed.
    """
    buffer = manifest.buffers[number]
    if buffer.kind == "workspace":
        for place in list(written):
            if manifest.buffers[place].kind == "workspace" and _share_bytes(manifest.buffers[place], buffer):
                written.discard(place)
    written.add(number)


def _share_bytes(left: FunctionBuffer, right: FunctionBuffer) -> bool:
    """Returns whether two buffers of one memory have a byte in common."""
    if left.offset >= right.offset + right.bytes or right.offset >= left.offset + left.bytes:
        return False
    if left.strides is None and right.strides is None:
        return True
    ranges = _ranges([left, right])  # those of one buffer are apart
    return bool((ranges[1:, 0] < ranges[:-1, 1]).any())


def _ranges(buffers: Sequence[FunctionBuffer]) -> np.ndarray:
    """Returns the first byte and the one after the last of each row of some buffers, sorted; a buffer without a pitch
    is one row."""
    import numpy as np  # reading a manifest alone does without

    rows = []
    for buffer in buffers:
        size = element_type(buffer.element_type).bytes
        begins = np.array([buffer.offset], np.int64)
        if buffer.strides is not None:
            for count, stride in zip(buffer.shape[:-1], buffer.strides):
                begins = np.add.outer(begins, np.arange(count, dtype=np.int64) * (stride * size)).reshape(-1)
        length = buffer.bytes if buffer.strides is None else buffer.shape[-1] * size
        rows.append(np.stack([begins, begins + length], axis=1))
    ranges = np.concatenate(rows) if rows else np.zeros((0, 2), np.int64)
    return ranges[np.argsort(ranges[:, 0], kind="stable")]
