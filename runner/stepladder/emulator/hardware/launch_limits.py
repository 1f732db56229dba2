"""What a launch must not ask of a GPU: more threads, blocks or shared memory than there are, or another block size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stepladder.emulator.core.program import Instruction
from stepladder.emulator.memory.findings import Findings
from stepladder.runtime.targets import BLOCK, GRID, TARGETS, THREADS

KIND = "launch"

# Of the target that has most: a module need not say which one it is for.
_SHARED_MEMORY = max(target.shared_memory for target in TARGETS.values())
_MULTIPROCESSORS = 144  # of the largest of them
_BLOCKS_PER_SM = 32
_RESERVED = 1024  # bytes of shared memory that the system takes for each block
_WARP = 32
_CLUSTER = max(target.cluster for target in TARGETS.values())


def check_launch(
    findings: Findings,
    op: Instruction,
    grid: Sequence[int],
    block: Sequence[int],
    cluster: Sequence[int],
    shared_memory: int,
    attributes: Mapping[str, object],
) -> None:
    """Adds findings about a launch that no GPU takes, or that the kernel is not compiled for.

    Args:
        findings: of the run.
        op: the launch.
        grid, block, cluster: blocks, threads of a block, and blocks of a cluster, along x, y, z.
        shared_memory: bytes a block, static and dynamic.
        attributes: of the kernel, by name.
    """
    for name, extents, limits, unit in (("grid", grid, GRID, "blocks"), ("block", block, BLOCK, "threads")):
        for axis, extent, limit in zip("xyz", extents, limits):
            if not 0 < extent <= limit:
                findings.add(KIND, f"a {name} of {_text(extents)}: 1 to {limit} {unit} are possible along {axis}", op)
                break
    if math.prod(block) > THREADS:
        findings.add(KIND, f"a block of {math.prod(block)} threads, of which {THREADS} are possible", op)
    if math.prod(cluster) > _CLUSTER:
        findings.add(KIND, f"a cluster of {math.prod(cluster)} blocks, of which {_CLUSTER} are possible", op)
    if shared_memory > _SHARED_MEMORY:
        findings.add(
            KIND, f"{shared_memory} bytes of shared memory a block, of which {_SHARED_MEMORY} are possible", op
        )
    for name, given in (("block", block), ("grid", grid)):
        known = attributes.get(f"known_{name}_size")
        if isinstance(known, Sequence) and [int(size) for size in known] != [int(size) for size in given]:
            findings.add(
                KIND, f"a {name} of {_text(given)}, and the kernel's known_{name}_size is {_text(list(known))}", op
            )
    required, most = attributes.get("nvvm.reqntid"), attributes.get("nvvm.maxntid")
    if isinstance(required, Sequence) and [*required, 1, 1][: len(block)] != list(block):
        findings.add(KIND, f"a block of {_text(block)}, and the kernel's nvvm.reqntid is {_text(list(required))}", op)
    if isinstance(most, Sequence) and math.prod(block) > math.prod(most):
        findings.add(KIND, f"a block of {_text(block)}, and the kernel's nvvm.maxntid is {_text(list(most))}", op)


def resident(threads: int, shared_memory: int) -> int:
    """Returns a number of blocks that no supported GPU holds more of at a time.

    Args:
        threads: of a block.
        shared_memory: bytes a block, static and dynamic.
    """
    whole = -(-threads // _WARP) * _WARP
    by_memory = (_SHARED_MEMORY + _RESERVED) // (shared_memory + _RESERVED)
    by_threads = max(target.threads_per_sm for target in TARGETS.values()) // whole
    return _MULTIPROCESSORS * max(1, min(_BLOCKS_PER_SM, by_memory, by_threads))


def _text(extents: Sequence[int]) -> str:
    return " x ".join(str(int(extent)) for extent in extents)
