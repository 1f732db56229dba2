"""Buffers of a function that are columns of others, which kernels write with a row pitch: what holds of them."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.runtime.bundle.fields import Fields
from stepladder.runtime.bundle.function import (
    SCHEMA_VERSION_PITCHED,
    FunctionBuffer,
    FunctionBundle,
    FunctionManifest,
    Launch,
)


def check_pitch(manifest: FunctionManifest, buffer: FunctionBuffer, fields: Fields) -> None:
    """Checks that columns of a buffer that kernels write are dense rows, apart from each other.

    Args:
        manifest: of the function.
        buffer: with strides; `fields`: what it was read from.

    Raises:
        StepladderError: the field that does not hold.
    """
    strides, span = buffer.strides or (), 1
    if manifest.schema_version < SCHEMA_VERSION_PITCHED:
        raise fields.error("strides", f"requires schema_version {SCHEMA_VERSION_PITCHED}")
    is_part = buffer.kind in ("workspace", "result_part")
    is_apart = is_part and len(strides) == len(buffer.shape) and strides[-1:] == (1,)
    for size, stride in zip(reversed(buffer.shape), reversed(strides)):
        is_apart = is_apart and (stride >= span or size == 1)
        span += (size - 1) * stride
    if not is_apart:
        raise fields.error("strides", f"must be of dense rows that are apart, of a part that is written, got {strides}")


def is_pitched(buffer: FunctionBuffer, bundle: FunctionBundle, launch: Launch) -> bool:
    """Returns whether a kernel writes C, or one of a group, with the strides of a buffer, maybe in another shape.

    Args:
        buffer: columns of another one.
        bundle: of the function.
        launch: of a matmul or a group.
    """
    problems = launch.grouped if launch.kernel is not None else (bundle.matmul(launch).manifest.problem,)
    windows = [(problem.c_window, problem.c_shape) for problem in problems if problem.c_window is not None]
    row_layouts = [_rows(window.extents(shape), window.strides) for window, shape in windows]
    return _rows(buffer.shape, buffer.strides or ()) in row_layouts


def _rows(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the extents and strides of as few axes as have the same elements."""
    merged: list[tuple[int, int]] = []
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size > 1 and merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = merged[-1][0] * size, merged[-1][1]
        elif size > 1:
            merged.append((size, stride))
    return merged
