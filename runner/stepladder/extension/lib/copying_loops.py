"""Loops in which threads copy tiles to shared memory by `cp.async`."""

from __future__ import annotations

from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk

COPY, COMMIT, BARRIER = "nvgpu.device_async_copy", "nvvm.cp.async.commit.group", "gpu.barrier"


def find(launch: ir.Operation) -> ir.Operation:
    """Returns the one loop of a kernel that copies tiles.

    Args:
        launch: a `gpu.launch`.

    Raises:
        Refusal: there is none, or there are several.
    """
    loops = [loop for loop in walk(launch, "scf.for") if walk(loop, COPY)]
    if len(loops) != 1:
        raise Refusal(launch, f"expected one loop that copies tiles, found {len(loops)}")
    return loops[0]
