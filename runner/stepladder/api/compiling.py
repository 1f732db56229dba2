"""`stepladder.compile` and `stepladder.load`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stepladder.api import building, signature
from stepladder.api.building import AUTO, Built, Job
from stepladder.api.kernel import Device, Kernel
from stepladder.api.spec import MatmulSpec
from stepladder.runtime.bundle import read_bundle


def compile(
    source: object,
    *,
    pipeline: str | os.PathLike[str] = AUTO,
    target: str = AUTO,
    device: Device = "auto",
    function: str | None = None,
    without: Sequence[str] = (),
    plugins: Sequence[str | os.PathLike[str]] = (),
    **knobs: str | int,
) -> Kernel:
    """Compiles a matmul to a kernel that is called on arrays.

    Args:
        source: the path of a payload, MLIR as text, a module of MLIR's Python bindings, or a `MatmulSpec`.
        pipeline: name or file of a pipeline; `auto` for the first of wgmma (on sm_90a), mma_sync and wmma that accepts
            the payload.
        target: GPU architecture, such as `sm_90a`; `auto` for that of the GPU, or sm_90a where there is none.
        device: where the kernel runs on NumPy arrays: `auto` for a GPU, its ordinal, or `emulator`, which needs none.
        function: the function to compile, of a payload with several.
        without: optimizations to leave out.
        plugins: files of transform ops.
        knobs: values of knobs of the pipeline; the others are chosen as by `stepladder compile`.

    Returns:
        The kernel. The package's pipelines are compiled once: the kernel is kept in memory, and on disk in the cache.

    Raises:
        StepladderError: the payload, the pipeline, a knob or the target is not acceptable, or a step fails; `render()`
            is the message of the command line.
    """
    text, name = (source.text(), "matmul") if isinstance(source, MatmulSpec) else building.source_text(source)
    job = Job(
        text,
        name,
        os.fspath(pipeline),
        building.target_of(target, device),
        tuple(sorted(knobs.items())),
        tuple(without),
        function,
        tuple(os.fspath(path) for path in plugins),
    )
    return Kernel(building.build(job), signature.of_spec(source) if isinstance(source, MatmulSpec) else None, device)


def load(path: str | os.PathLike[str], *, device: Device = "auto") -> Kernel:
    """Returns the kernel of a bundle, which `stepladder compile` or `Kernel.save` wrote. On a GPU it needs no MLIR.

    Args:
        path: the folder.
        device: as for `compile`.

    Raises:
        StepladderError: no bundle, or a damaged one.
    """
    return Kernel(Built(read_bundle(path), None, None), None, device)
