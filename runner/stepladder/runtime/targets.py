"""Limits of the supported GPUs on a kernel, by target name.

Sources: the CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"; for Intel's GPUs, what
their OpenCL devices report (CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE).
"""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.runtime.errors import StepladderError, suggest

REGISTER_FILE = 64 * 1024  # registers a block
REGISTERS = 255  # registers a thread
REGISTER_UNIT = 8  # registers of a thread are allocated in multiples of this

# Extents x, y, z of a block, in threads, of all threads of a block, and of a grid, in blocks.
BLOCK = (1024, 1024, 64)
THREADS = 1024
GRID = (2**31 - 1, 65535, 65535)

# The first compute capability with TMA, clusters and programmatic dependent launch.
HOPPER = (9, 0)
# The first one whose matrix units multiply bf16, and which the pipeline `mma_sync` compiles for.
FIRST_BF16 = FIRST_MMA_SYNC = (8, 0)
# The first one whose matrix units multiply fp8.
FIRST_FP8 = (8, 9)


@dataclass(frozen=True)
class Target:
    """A GPU target.

    Attributes:
        name: as ptxas names it.
        shared_memory: most bytes of shared memory a block, after opting in to dynamic shared memory.
        threads_per_sm: most threads that are resident on a multiprocessor.
        cluster: most blocks of a cluster, after opting in to more than 8; 1 on targets without clusters.
        static_shared_memory: most bytes of these that a kernel declares with a size, as ptxas 13.0 takes them.
    """

    name: str
    shared_memory: int
    threads_per_sm: int
    cluster: int = 1
    static_shared_memory: int = 48 * 1024

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Returns (major, minor)."""
        digits = self.name.removeprefix("sm_").rstrip("a")
        return int(digits[:-1]), int(digits[-1])


TARGETS = {
    target.name: target
    for target in (
        Target("sm_75", 64 * 1024, 1024),
        Target("sm_80", 163 * 1024, 2048),
        Target("sm_86", 99 * 1024, 1536),
        Target("sm_89", 99 * 1024, 1536),
        Target("sm_90", 227 * 1024, 2048, cluster=16),
        Target("sm_90a", 227 * 1024, 2048, cluster=16, static_shared_memory=227 * 1024),
    )
}


@dataclass(frozen=True)
class XeTarget:
    """An Intel GPU, whose kernels are SPIR-V.

    Attributes:
        name: as `#xevm.target` names it.
        shared_memory: most bytes of shared local memory a work-group.
        threads_per_sm: threads of an Xe core, with sub-groups of 16: 8 vector engines of 8 hardware threads.
    """

    name: str
    shared_memory: int
    threads_per_sm: int


XE_TARGETS = {
    target.name: target
    for target in (
        XeTarget("pvc", 128 * 1024, 1024),
        XeTarget("bmg", 64 * 1024, 1024),
    )
}
XE_WORK_GROUP = 1024  # most threads of a work-group
XE_SUBGROUPS = (8, 16, 32)  # threads of a sub-group


def find_limits(name: str) -> Target | XeTarget:
    """Returns the target called `name`, of either vendor.

    Args:
        name: such as "sm_90a" or "bmg".

    Raises:
        StepladderError: the target is unknown; the message lists the known ones.
    """
    return XE_TARGETS[name] if name in XE_TARGETS else _find(name, (*TARGETS, *XE_TARGETS))


def registers_of_thread(threads: int) -> int:
    """Returns the most registers that a thread may have in a block of `threads` threads.

    Args:
        threads: of a block, at most 1024.
    """
    return min(REGISTERS, REGISTER_FILE // threads // REGISTER_UNIT * REGISTER_UNIT)


def find(name: str) -> Target:
    """Returns the target called `name`.

    Args:
        name: of an NVIDIA target, such as "sm_90a".

    Raises:
        StepladderError: the target is unknown; the message lists the known ones.
    """
    return _find(name, tuple(TARGETS))


def _find(name: str, accepted: tuple[str, ...]) -> Target:
    """Returns the target called `name`. Raises StepladderError for an unknown one, with the accepted names."""
    if name in TARGETS:
        return TARGETS[name]
    digits = name.removeprefix("sm_")
    if len(digits) == 2 and digits.isdigit() and int(digits) < 75:
        reason = "has no tensor cores" if int(digits) < 70 else "is one that ptxas 13 no longer assembles for"
        raise StepladderError(f"target '{name}' {reason}", notes=[f"targets: {', '.join(accepted)}"])
    raise StepladderError(
        f"unknown target '{name}'{suggest(name, list(accepted))}", notes=[f"targets: {', '.join(accepted)}"]
    )
