"""Semaphores in global memory, by which blocks of a launch wait for each other."""

from __future__ import annotations

from stepladder.extension.lib.arithmetic import integer, times
from stepladder.extension.lib.memory import create_global
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, memref, nvvm

_BYTES = 4


class Semaphores:
    """An array of 32-bit semaphores, zero when the module is loaded.

    All launches of a loaded module share the array, so that each launch must leave it in a state that the next one can
    start from.

    Args:
        launch: the `gpu.launch`.
        name: of the `memref.global`.
        count: number of semaphores.
    """

    def __init__(self, launch: ir.Operation, name: str, count: int) -> None:
        i32 = ir.IntegerType.get_signless(32)
        self.type = ir.MemRefType.get([count], i32, memory_space=types.address_space(types.GLOBAL))
        self.symbol = create_global(launch, name, self.type, 0)

    def address(self, number: ir.Value) -> ir.Value:
        """Returns the address of a semaphore as an i64, at the current insertion point.

        Args:
            number: of the semaphore, an index.
        """
        start = memref.extract_aligned_pointer_as_index(memref.get_global(self.type, self.symbol))
        return arith.index_cast(ir.IntegerType.get_signless(64), arith.addi(start, times(number, _BYTES)))


def acquire(address: ir.Value, value: ir.Value) -> None:
    """Waits until a semaphore has a value; TMA operations after the wait see what was written before its release.

    Args:
        address: of the semaphore in global memory, i64.
        value: i32.
    """
    nvvm.inline_ptx(
        [],
        [address, value],
        [],
        "{.reg .pred p; .reg .b32 now; WAIT: "
        "ld.acquire.gpu.global.b32 now, [{$r0}]; setp.ne.b32 p, now, {$r1}; @p bra WAIT;}",
        memory_clobber=True,
    )
    fence_proxy_async()


def release(address: ir.Value, value: ir.Value) -> None:
    """Sets a semaphore; a thread that acquires it sees what was written before.

    Args:
        address: of the semaphore in global memory, i64.
        value: i32.
    """
    nvvm.inline_ptx([], [address, value], [], "st.release.gpu.global.b32 [{$r0}], {$r1};", memory_clobber=True)


def fence_proxy_async() -> None:
    """Orders the accesses of a thread before those of TMA, in all memory, and the other way around."""
    nvvm.inline_ptx([], [], [], "fence.proxy.async;", memory_clobber=True)


def arrive_and_wait(address: ir.Value, participants: int) -> None:
    """Increments a semaphore and waits until all participants have.

    The semaphore counts up to twice the number of participants and wraps to zero: a launch finds it at zero or at half
    of that, and waits until it is in the other half.

    Args:
        address: of the semaphore in global memory, i64.
        participants: how many threads arrive at it.
    """
    i32 = ir.IntegerType.get_signless(32)
    before = nvvm.inline_ptx(
        [i32],
        [address, integer(2 * participants - 1, 32)],
        [],
        "atom.release.gpu.global.inc.u32 {$w0}, [{$r0}], {$r1};",
        memory_clobber=True,
    )
    nvvm.inline_ptx(
        [],
        [address, before, integer(participants, 32)],
        [],
        "{.reg .pred p, q; .reg .b32 now; setp.ge.u32 q, {$r1}, {$r2}; "
        "WAIT: ld.acquire.gpu.global.b32 now, [{$r0}]; setp.ge.xor.u32 p, now, {$r2}, q; "
        "@!p bra WAIT;}",
        memory_clobber=True,
    )
