"""The limits of a launch: the threads, blocks, memory and registers of a GPU.

The limits are those of the target that the kernel's module names, else of the target that has most. What the kernel
states about its launches (`promises`) must hold too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepladder.emulator.core.program import Instruction
from stepladder.emulator.memory.findings import Findings
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.targets import BLOCK, GRID, REGISTER_FILE, REGISTER_UNIT, TARGETS, THREADS, Target

KIND = "launch"

_SHARED_MEMORY = max(target.shared_memory for target in TARGETS.values())
_MULTIPROCESSORS = 144  # of the largest of the targets
_BLOCKS_PER_SM = 32
_RESERVED = 1024  # bytes of shared memory that the system takes for each block
_WARP = 32
_CLUSTER = max(target.cluster for target in TARGETS.values())
_ONE = (1, 1, 1)


@dataclass(frozen=True)
class Asked:
    """The resources that a launch requests.

    Attributes:
        grid, block, cluster: blocks, threads of a block, and blocks of a cluster, along x, y, z.
        shared_memory: bytes a block, static and dynamic; `static` those that are not dynamic.
        registers: of a thread, that the kernel may be compiled for (`maxnreg`); None where none is stated.
    """

    grid: Sequence[int]
    block: Sequence[int]
    cluster: Sequence[int] = _ONE
    shared_memory: int = 0
    static: int = 0
    registers: int | None = None


def target_of(chips: Sequence[str]) -> Target | None:
    """Returns the largest of the targets that a module names.

    Args:
        chips: their names, such as "sm_90".

    Returns:
        The target with the most shared memory; None where no chip is named, or one is unknown.
    """
    if not chips or any(chip not in TARGETS for chip in chips):
        return None
    return max((TARGETS[chip] for chip in chips), key=lambda target: target.shared_memory)


def problems(launch: Asked, target: Target | None = None) -> list[str]:
    """Returns the requirements of a launch that exceed the limits of a target.

    Args:
        launch: what the launch requires.
        target: the GPU; None applies limits of no particular GPU.

    Returns:
        A text for each requirement that is not met.
    """
    texts = []
    for name, extents, limits, unit in (
        ("grid", launch.grid, GRID, "blocks"),
        ("block", launch.block, BLOCK, "threads"),
    ):
        for axis, extent, limit in zip("xyz", extents, limits):
            if not 0 < extent <= limit:
                texts.append(f"a {name} of {extents_text(extents)}; accepted: 1 to {limit} {unit} along {axis}")
                break
    on = "" if target is None else f" on {target.name}"
    threads = math.prod(launch.block)
    if threads > THREADS:
        texts.append(f"a block of {threads} threads; at most {THREADS}{on}")
    blocks, maximum = math.prod(launch.cluster), _CLUSTER if target is None else target.cluster
    if blocks > maximum:
        texts.append(f"a cluster of {blocks} blocks; at most {maximum}{on}")
    if not divides(launch.grid, launch.cluster):
        texts.append(
            f"a grid of {extents_text(launch.grid)}, which clusters of {extents_text(launch.cluster)} do not divide"
        )
    bytes_, maximum = launch.shared_memory, _SHARED_MEMORY if target is None else target.shared_memory
    if bytes_ > maximum:
        texts.append(f"{bytes_} bytes of shared memory per block; at most {maximum}{on}")
    elif target is not None and launch.static > target.static_shared_memory:
        texts.append(
            f"{launch.static} bytes of static shared memory per block; at most {target.static_shared_memory}{on}: "
            "more must be dynamic"
        )
    if launch.registers is not None and threads <= THREADS:
        per_thread = -(-launch.registers // REGISTER_UNIT) * REGISTER_UNIT
        thread_count = -(-threads // _WARP) * _WARP
        if per_thread * thread_count > REGISTER_FILE:
            texts.append(
                f"a block of {threads} threads with up to {launch.registers} registers each (maxnreg), "
                f"{per_thread * thread_count} in all; at most {REGISTER_FILE}{on}"
            )
    return texts


def divides(grid: Sequence[int], cluster: Sequence[int]) -> bool:
    """Whether a grid consists of whole clusters.

    Args:
        grid: blocks along x, y and z.
        cluster: blocks of a cluster along x, y and z.
    """
    return not any(size % of for size, of in zip(grid, cluster))


def cluster_of(attributes: Mapping[str, object]) -> tuple[int, int, int] | None:
    """Returns the size of the clusters that a kernel is compiled for.

    Args:
        attributes: of the kernel, by name.

    Returns:
        Blocks along x, y and z; None where no attribute states them.
    """
    for name in ("known_cluster_size", "gpu.known_cluster_size", "nvvm.cluster_dim"):
        extents = attributes.get(name)
        if isinstance(extents, Sequence):
            x, y, z = (*map(int, extents), 1, 1, 1)[:3]
            return x, y, z
    return None


def broken_promises(launch: Asked, attributes: Mapping[str, object]) -> list[str]:
    """Returns the assertions of a kernel's attributes about launches that do not hold for a launch.

    Args:
        launch: what the launch requires.
        attributes: of the kernel, by name.

    Returns:
        A text for each attribute that the launch contradicts.
    """
    texts = []
    for name, extents in (("block", launch.block), ("grid", launch.grid), ("cluster", launch.cluster)):
        known_size = attributes.get(f"known_{name}_size", attributes.get(f"gpu.known_{name}_size"))
        if isinstance(known_size, Sequence) and [int(size) for size in known_size] != [int(size) for size in extents]:
            texts.append(
                f"a {name} of {extents_text(extents)}, and the kernel's known_{name}_size is "
                f"{extents_text(list(known_size))}"
            )
    for name, extents in (("reqntid", launch.block), ("cluster_dim", launch.cluster)):
        required_size = attributes.get(f"nvvm.{name}")
        if isinstance(required_size, Sequence) and [*required_size, 1, 1][: len(extents)] != list(extents):
            unit = "block" if name == "reqntid" else "cluster"
            texts.append(
                f"a {unit} of {extents_text(extents)}, and the kernel's nvvm.{name} is "
                f"{extents_text(list(required_size))}"
            )
    max_size = attributes.get("nvvm.maxntid")
    if isinstance(max_size, Sequence) and math.prod(launch.block) > math.prod(max_size):
        texts.append(
            f"a block of {extents_text(launch.block)}, and the kernel's nvvm.maxntid is {extents_text(list(max_size))}"
        )
    blocks = attributes.get("nvvm.cluster_max_blocks")
    if isinstance(blocks, int) and math.prod(launch.cluster) > blocks:
        texts.append(
            f"a cluster of {extents_text(launch.cluster)}, and the kernel's nvvm.cluster_max_blocks is {blocks}"
        )
    return texts


def check_launch(
    findings: Findings | None,
    op: Instruction,
    launch: Asked,
    attributes: Mapping[str, object],
    chips: Sequence[str] = (),
) -> bool:
    """Checks a launch against the limits of the targets and the target that the kernel is compiled for.

    Args:
        findings: of the run; None without the sanitizer.
        op: the launch.
        launch: what it requires.
        attributes: of the kernel, by name.
        chips: targets that the kernel's module names.

    Returns:
        Whether a target takes the launch; where none does, the kernel does not run.

    Raises:
        StepladderError: none takes it, and there are no findings.
    """
    wrong = problems(launch, target_of(chips))
    if findings is None:
        if wrong:
            raise StepladderError(f"{op.name} cannot be executed: {wrong[0]}", location=op.location)
        return True
    texts = [*wrong, *broken_promises(launch, attributes)]
    if texts:
        findings.add(KIND, "; ".join(texts), op)
    return not wrong


def resident(threads: int, shared_memory: int) -> int:
    """Returns a number of blocks that no supported GPU holds more of at a time.

    Args:
        threads: of a block.
        shared_memory: bytes a block, static and dynamic.
    """
    thread_count = -(-threads // _WARP) * _WARP
    by_memory = (_SHARED_MEMORY + _RESERVED) // (shared_memory + _RESERVED)
    by_threads = max(target.threads_per_sm for target in TARGETS.values()) // thread_count
    return _MULTIPROCESSORS * max(1, min(_BLOCKS_PER_SM, by_memory, by_threads))


def extents_text(extents: Sequence[int]) -> str:
    """Returns extents as text, such as "128 x 1 x 1".

    Args:
        extents: integers.
    """
    return " x ".join(str(int(extent)) for extent in extents)
