"""Mbarriers.

A loop of pure instructions around a `try_wait` or a `test_wait` waits for the phase. Elsewhere each returns whether the
phase has ended, and may return false; copies arrive at a wait.
Source: PTX ISA, "mbarrier".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.dialects import nvgpu, nvvm_mbarrier
from stepladder.emulator.hardware import asynchronous, mbarriers, synchronization
from stepladder.emulator.memory import pointers
from stepladder.emulator.ptx.instructions import addresses
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_B32 = PtxType("b32", "b", 32)
_B64 = PtxType("b64", "b", 64)
_SPACES = ("shared", "shared::cta", "shared::cluster")
_BYTES = 8
_PATIENCE = 16  # negative results that a thread receives before it waits


def _form(site: Site) -> str:
    """Takes order, scope and space; returns the order."""
    order = site.choice(("release", "relaxed", "acquire"), "")
    site.choice(("cta", "cluster"), "cta")
    site.choice(_SPACES, "")
    return order


@instruction("mbarrier.init")
def init(site: Site) -> None:
    """Initializes an mbarrier with the number of its arrivals."""
    site.choice(("shared", "shared::cta"), "")
    site.type("b", (64,))
    site.count(2)
    base, offset = site.address(0)

    def execute(fiber: Fiber, op: Instruction, address: Value, count: Value) -> None:
        address = addresses.at(address, offset)
        pointers.check_alignment(fiber, op, address, _BYTES)
        own = values.lanes(np.asarray(address), fiber.count)[fiber.lanes]
        size = fiber.group.shared.size
        if ((own < 0) | (own + _BYTES > size)).any():
            fiber.group.sanitizer.report(
                "out-of-bounds",
                f"its mbarrier at byte {int(own.max()):#x} of shared memory is beyond the {size} bytes of a block",
                op,
            )
        mbarriers.initialize(fiber, op, address, count)

    site.emit(execute, [base, site.read(1, _B32)], ())


@instruction("mbarrier.inval")
def inval(site: Site) -> None:
    """Ends what an mbarrier is."""
    site.choice(("shared", "shared::cta"), "")
    site.type("b", (64,))
    site.count(1)
    base, offset = site.address(0)
    site.emit(lambda fiber, op, address: nvvm_mbarrier.inval(fiber, op, addresses.at(address, offset)), [base], ())


def _arrive(
    fiber: Fiber,
    op: Instruction,
    address: Value,
    *,
    arrivals: Value,
    byte_count: Value,
    releases: bool,
    drops: bool = False,
) -> None:
    """Arrives at mbarriers of the own block or of others."""
    if addresses.is_own(address):
        mbarriers.arrive_at(fiber, op, address, expected=byte_count, arrivals=arrivals, releases=releases, drops=drops)
        return
    block = addresses.block_of(fiber, address)
    if (block[fiber.lanes] >= fiber.group.blocks).any():
        fiber.group.sanitizer.report("out-of-bounds", "arrives at an mbarrier of a block that the cluster lacks", op)
        return
    if fiber.group.sanitizer.enabled:
        synchronization.note_remote(fiber, op, block, "arrives at an mbarrier")
    place = addresses.inside_block(address)
    mbarriers.arrive_at(
        fiber, op, place, expected=byte_count, arrivals=arrivals, block=block, releases=releases, drops=drops
    )


@instruction("mbarrier.arrive", "mbarrier.arrive_drop")
def arrive(site: Site) -> None:
    """Arrives, with bytes announced or several times where the instruction states it; the token is the phase."""
    drops = site.family.endswith("drop")
    kind = site.choice(("expect_tx", "noComplete"), "")
    releases = _form(site) != "relaxed"
    site.type("b", (64,))
    count = site.count(1, 2, 3)
    gives = count > 1 and not str(site.operands[0]).startswith("[")
    base, offset = site.address(1 if gives else 0)
    numbers = [site.read(number, _B32) for number in range(1 + gives, count)]
    if kind and not numbers:
        raise site.error(f"without a number, that of .{kind}, as last operand")
    token = gives and str(site.operands[0]) != "_"
    if token and "shared::cluster" in site.statement.opcode:
        raise site.error("with a token: an arrival at another block has none, and _ in its place")

    def execute(fiber: Fiber, op: Instruction, address: Value, *number: Value) -> Value:
        address = addresses.at(address, offset)
        phase = nvgpu.phases(fiber, op, address) if token else None
        byte_count = number[0] if kind == "expect_tx" else 0
        arrivals = number[0] if number and kind != "expect_tx" else 1
        _arrive(fiber, op, address, arrivals=arrivals, byte_count=byte_count, releases=releases, drops=drops)
        return phase

    site.emit(execute, [base, *numbers], [site.write(0, 64)] if token else ())


@instruction("mbarrier.expect_tx", "mbarrier.complete_tx")
def transactions(site: Site) -> None:
    """Announces bytes, or counts them as received, without arriving."""
    _form(site)
    site.type("b", (64,))
    site.count(2)
    base, offset = site.address(0)
    comes = site.family.endswith("complete_tx")

    def execute(fiber: Fiber, op: Instruction, address: Value, count: Value) -> None:
        address = addresses.at(address, offset)
        if comes:
            nvvm_mbarrier.complete_tx(fiber, op, address, count)
        else:
            _arrive(fiber, op, address, arrivals=0, byte_count=count, releases=True)

    site.emit(execute, [base, site.read(1, _B32)], ())


@instruction("mbarrier.test_wait", "mbarrier.try_wait", is_pure=True, asks=lambda statement: True)
def wait(site: Site) -> None:
    """Whether the phase of a token, or with a parity, has ended."""
    parity = site.flag("parity")
    # A thread that does not read the result continues in either case.
    acquires = _form(site) != "relaxed" and not site.is_ignored
    site.type("b", (64,))
    site.count(3, *([4] if site.family.endswith("try_wait") else []))
    base, offset = site.address(1)
    state = site.read(2, _B32 if parity else _B64)
    spin = site.spin

    def execute(fiber: Fiber, op: Instruction, address: Value, phase: Value) -> Value:
        address = addresses.at(address, offset)
        phase = phase & 1
        if spin is not None:
            mbarriers.wait_at(fiber, op, address, phase, acquires=acquires)
            return True
        has_ended = mbarriers.ended_at(fiber, op, address, phase, acquires=acquires)
        own = has_ended[fiber.lanes]
        key = "asked", op.number, int(fiber.lanes[0])
        times = 0 if own.all() else fiber.group.state.get(key, 0) + 1
        fiber.group.state[key] = times
        if times > _PATIENCE:
            mbarriers.wait_at(fiber, op, address, phase, acquires=acquires)
            return True
        return bool(own[0]) if (own == own[0]).all() else has_ended

    site.emit(execute, [base, state], [site.write(0, 1)])


@instruction("cp.async.mbarrier.arrive")
def cp_async_arrive(site: Site) -> None:
    """Lets the copies of each thread arrive at an mbarrier when they have landed: here at once."""
    is_counted = site.flag("noinc")
    site.choice(("shared", "shared::cta"), "")
    site.type("b", (64,))
    site.count(1)
    base, offset = site.address(0)

    def execute(fiber: Fiber, op: Instruction, address: Value) -> None:
        asynchronous.wait_for_copies(fiber, None)
        # Without `noinc` the arrival is one more than the mbarrier was initialized for.
        if is_counted:
            mbarriers.arrive_at(fiber, op, addresses.at(address, offset))

    site.emit(execute, [base], ())
