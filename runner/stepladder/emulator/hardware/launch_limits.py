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
        registers: of a thread, that the kernel may be compiled for (`maxnreg`); None where it does not say.
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


def problems(asked: Asked, target: Target | None = None) -> list[str]:
    """Returns the requirements of a launch that exceed the limits of a target.

    Args:
        asked: what the launch requires.
        target: the GPU; None applies limits of no particular GPU.

    Returns:
        A text for each requirement that is not met.
    """
    found = []
    for name, extents, limits, unit in (
        ("grid", asked.grid, GRID, "blocks"),
        ("block", asked.block, BLOCK, "threads"),
    ):
        for axis, extent, limit in zip("xyz", extents, limits):
            if not 0 < extent <= limit:
                found.append(f"a {name} of {extents_text(extents)}; accepted: 1 to {limit} {unit} along {axis}")
                break
    on = "" if target is None else f" on {target.name}"
    threads = math.prod(asked.block)
    if threads > THREADS:
        found.append(f"a block of {threads} threads; at most {THREADS}{on}")
    blocks, most = math.prod(asked.cluster), _CLUSTER if target is None else target.cluster
    if blocks > most:
        found.append(f"a cluster of {blocks} blocks; at most {most}{on}")
    if not divides(asked.grid, asked.cluster):
        found.append(
            f"a grid of {extents_text(asked.grid)}, which clusters of {extents_text(asked.cluster)} do not divide"
        )
    bytes_, most = asked.shared_memory, _SHARED_MEMORY if target is None else target.shared_memory
    if bytes_ > most:
        found.append(f"{bytes_} bytes of shared memory per block; at most {most}{on}")
    elif target is not None and asked.static > target.static_shared_memory:
        found.append(
            f"{asked.static} bytes of static shared memory per block; at most {target.static_shared_memory}{on}: "
            "more must be dynamic"
        )
    if asked.registers is not None and threads <= THREADS:
        each = -(-asked.registers // REGISTER_UNIT) * REGISTER_UNIT
        whole = -(-threads // _WARP) * _WARP
        if each * whole > REGISTER_FILE:
            found.append(
                f"a block of {threads} threads with up to {asked.registers} registers each (maxnreg), {each * whole} "
                f"in all; at most {REGISTER_FILE}{on}"
            )
    return found


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
        given = attributes.get(name)
        if isinstance(given, Sequence):
            x, y, z = (*map(int, given), 1, 1, 1)[:3]
            return x, y, z
    return None


def broken_promises(asked: Asked, attributes: Mapping[str, object]) -> list[str]:
    """Returns the assertions of a kernel's attributes about launches that do not hold for a launch.

    Args:
        asked: what the launch requires.
        attributes: of the kernel, by name.

    Returns:
        A text for each attribute that the launch contradicts.
    """
    found = []
    for name, given in (("block", asked.block), ("grid", asked.grid), ("cluster", asked.cluster)):
        known = attributes.get(f"known_{name}_size", attributes.get(f"gpu.known_{name}_size"))
        if isinstance(known, Sequence) and [int(size) for size in known] != [int(size) for size in given]:
            found.append(
                f"a {name} of {extents_text(given)}, and the kernel's known_{name}_size is {extents_text(list(known))}"
            )
    for name, given in (("reqntid", asked.block), ("cluster_dim", asked.cluster)):
        required = attributes.get(f"nvvm.{name}")
        if isinstance(required, Sequence) and [*required, 1, 1][: len(given)] != list(given):
            unit = "block" if name == "reqntid" else "cluster"
            found.append(
                f"a {unit} of {extents_text(given)}, and the kernel's nvvm.{name} is {extents_text(list(required))}"
            )
    most = attributes.get("nvvm.maxntid")
    if isinstance(most, Sequence) and math.prod(asked.block) > math.prod(most):
        found.append(
            f"a block of {extents_text(asked.block)}, and the kernel's nvvm.maxntid is {extents_text(list(most))}"
        )
    blocks = attributes.get("nvvm.cluster_max_blocks")
    if isinstance(blocks, int) and math.prod(asked.cluster) > blocks:
        found.append(
            f"a cluster of {extents_text(asked.cluster)}, and the kernel's nvvm.cluster_max_blocks is {blocks}"
        )
    return found


def check_launch(
    findings: Findings | None,
    op: Instruction,
    asked: Asked,
    attributes: Mapping[str, object],
    chips: Sequence[str] = (),
) -> bool:
    """Checks a launch against the limits of the targets and the target that the kernel is compiled for.

    Args:
        findings: of the run; None without the sanitizer.
        op: the launch.
        asked: what it asks for.
        attributes: of the kernel, by name.
        chips: targets that the kernel's module names.

    Returns:
        Whether a target takes the launch; where none does, the kernel does not run.

    Raises:
        StepladderError: none takes it, and there are no findings.
    """
    wrong = problems(asked, target_of(chips))
    if findings is None:
        if wrong:
            raise StepladderError(f"{op.name} cannot be executed: {wrong[0]}", location=op.location)
        return True
    found = [*wrong, *broken_promises(asked, attributes)]
    if found:
        findings.add(KIND, "; ".join(found), op)
    return not wrong


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


def extents_text(extents: Sequence[int]) -> str:
    """Returns extents as text, such as "128 x 1 x 1".

    Args:
        extents: integers.
    """
    return " x ".join(str(int(extent)) for extent in extents)
