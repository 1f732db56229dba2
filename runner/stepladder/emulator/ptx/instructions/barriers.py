"""Barriers of a block, of a warp and of a cluster.

Source: PTX ISA, "Parallel Synchronization and Communication Instructions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.emulator.dialects import nvvm
from stepladder.emulator.hardware import barrier_votes, mbarriers, synchronization
from stepladder.emulator.ptx import syntax
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_U32 = PtxType("u32", "u", 32)
_BARRIERS = 16
_WARP = 32
_PRED = PtxType("pred", "pred", 1)


@instruction("bar.warp.sync", waits=True)
def warp_sync(site: Site) -> None:
    """Lets the threads of a warp wait for each other: they run in step, so that only what they touch is in order."""
    site.count(1)
    site.emit(nvvm.warp_sync, [site.read(0, PtxType("b32", "b", 32))], ())


@instruction("bar", "barrier", waits=True)
def barrier(site: Site) -> None:
    """Threads of the block meet at a numbered barrier, or arrive there and go on."""
    site.flag("cta")
    kind = site.choice(("sync", "arrive", "red"))
    site.flag("aligned")
    if kind == "red":
        _reduce(site)
        return
    count = site.count(1, 2) if kind == "sync" else site.count(2)
    _check(site, site.operands)
    reads = [site.read(number, _U32) for number in range(count)]
    if kind == "sync":
        site.emit(lambda fiber, op, *numbers: synchronization.synchronize(fiber, op, *numbers), reads, ())
    else:
        site.emit(lambda fiber, op, *numbers: synchronization.arrive(fiber, op, *numbers), reads, ())


def _check(site: Site, numbers: tuple[syntax.Operand, ...]) -> None:
    """Refuses the number of a barrier that a block lacks, and a number of threads that is not one of warps."""
    if isinstance(numbers[0], syntax.Number) and not 0 <= numbers[0].value < _BARRIERS:
        raise site.error(f"of barrier {numbers[0]}: expected 0 to {_BARRIERS - 1}")
    for threads in numbers[1:]:
        if isinstance(threads, syntax.Number) and threads.value % _WARP:
            raise site.error(f"of {threads} threads: expected a multiple of {_WARP}")


def _reduce(site: Site) -> None:
    """Emits a barrier that combines a predicate of the threads that meet."""
    combine = site.choice(("popc", "and", "or"))
    site.types()
    count = site.count(3, 4)
    _check(site, site.operands[1:-1])
    numbers = [site.read(number, _U32) for number in range(1, count - 1)]
    predicate = site.read(count - 1, _PRED)
    result = site.write(0, 32 if combine == "popc" else 1)

    def execute(fiber: Fiber, op: Instruction, vote_of_threads: Value, *barrier_numbers: Value) -> Value:
        return barrier_votes.vote(fiber, op, combine, vote_of_threads, *barrier_numbers)

    site.emit(execute, [predicate, *numbers], [result])


@instruction("barrier.cluster", waits=True)
def cluster(site: Site) -> None:
    """The threads of a cluster arrive at its barrier, or wait there."""
    kind = site.choice(("arrive", "wait"))
    order = site.choice(("release", "relaxed", "acquire"), "")
    site.flag("aligned")
    site.count(0)
    if kind == "wait":
        site.emit(synchronization.wait_for_cluster, (), ())
        return

    def execute(fiber: Fiber, op: Instruction) -> None:
        mbarriers.arrive_at_cluster(fiber, op, releases=order != "relaxed")

    site.emit(execute, (), ())
