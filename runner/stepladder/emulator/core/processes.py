"""Executes the blocks of a launch in several processes, where the outcome is that of one process.

Each process executes a part of the blocks, writes global memory that all share, and reports which granules its blocks
wrote and read. Where a block touches what a block of another process wrote, has a finding, waits for another block, or
does anything else that others could see, the memory is set back, and the blocks run one after the other.
"""

from __future__ import annotations

import mmap
import os
import pickle
import re
import selectors
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory.shadow import GlobalShadow
from stepladder.runtime.processes import end_with

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.machine import Machine
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.hardware.counters import Counters
    from stepladder.emulator.memory.memory import Allocation

WORTH = 0.5  # seconds that the blocks must take one after the other, at least
_COMMUNICATES = re.compile(r"atom|cmpxchg|\bred\b|printf")
_CHUNK = 1 << 20
_PROGRESS_INTERVAL = 1.0  # seconds between two progress reports


@dataclass
class Touched:
    """The accesses of blocks to an allocation: bits of its granules, and a bool array of its bytes if recorded."""

    wrote: np.ndarray
    read: np.ndarray
    initialized: np.ndarray | None
    count: int


@dataclass
class Part:
    """The work of one process: instructions, costs, and its accesses to each allocation of the heap."""

    steps: int
    counters: Counters | None
    touched: dict[int, Touched]


class _Shared(Exception):
    """Blocks did what others could see."""


def can_part(machine: Machine, code: Sequence[Instruction]) -> bool:
    """Whether the blocks of a launch may run in several processes, as far as that is known before they run.

    Args:
        machine: its number of processes, its options and what it has recorded so far.
        code: the instructions of the kernel; atomics and prints rule several processes out.
    """
    return (
        machine.processes > 1
        and hasattr(os, "fork")
        and machine.sanitize
        and machine.timeline is None
        and not machine.findings.by_key
        and not machine.published
        and not any(_COMMUNICATES.search(op.name) for op in code)
    )


def run_parts(machine: Machine, numbers: Sequence[int], start: Callable[[int], Group]) -> bool:
    """Runs blocks in several processes; returns whether that is done, and nothing is changed otherwise.

    Args:
        machine: that has run the blocks before these.
        numbers: the indices of the blocks, or clusters.
        start: begins with one of them.
    """
    allocations = list(machine.heap.allocations)
    before = {number: _touched(allocation) for number, allocation in enumerate(allocations)}
    data = [allocation.data for allocation in allocations]
    count = min(machine.processes, len(numbers))
    try:
        for allocation, old in zip(allocations, data):
            allocation.data = np.frombuffer(mmap.mmap(-1, len(old)), np.uint8)
            allocation.data[:] = old
        parts = _forked(machine, [numbers[place::count] for place in range(count)], start)
    except OSError:  # no further process, or no memory for the copies
        parts = None
    if parts is not None and machine.steps + sum(part.steps for part in parts) > machine.max_steps:
        parts = None
    if parts is None or not _are_apart([before, *(part.touched for part in parts)]):
        for allocation, old in zip(allocations, data):
            allocation.data = old
        return False
    for part in parts:
        machine.steps += part.steps
        if machine.counters is not None and part.counters is not None:
            machine.counters.add(part.counters)
        for number, accesses in part.touched.items():
            allocation = allocations[number]
            wrote = np.unpackbits(accesses.wrote, count=accesses.count).astype(bool)
            earlier_writes = allocation.ever_written
            allocation.ever_written = wrote if earlier_writes is None else earlier_writes | wrote
            if accesses.initialized is not None and allocation.written is not None:
                allocation.written |= accesses.initialized
    return True


def _touched(allocation: Allocation) -> Touched | None:
    shadow = allocation.shadow
    if not isinstance(shadow, GlobalShadow):
        return None
    return Touched(
        np.packbits(shadow.write.owner > 0),
        np.packbits(shadow.read.owner > 0),
        allocation.written,
        len(shadow.atomically),
    )


def _are_apart(parts: Sequence[dict]) -> bool:
    """Whether no part touches granules that another part wrote, by the index of the allocation."""
    wrote: dict[int, np.ndarray] = {}
    touched_granules: dict[int, np.ndarray] = {}
    for part in parts:
        for number, accesses in part.items():
            if accesses is None:
                continue
            if number in wrote and (
                (accesses.wrote & touched_granules[number]).any() or (accesses.read & wrote[number]).any()
            ):
                return False
            is_known = number in wrote
            touched_granules[number] = (
                (touched_granules[number] | accesses.wrote | accesses.read)
                if is_known
                else accesses.wrote | accesses.read
            )
            wrote[number] = wrote[number] | accesses.wrote if is_known else accesses.wrote
    return True


def _forked(machine: Machine, shares: Sequence[Sequence[int]], start: Callable[[int], Group]) -> list[Part] | None:
    """Returns what a process for each share of the blocks has done; None where one of them has done anything else."""
    pieces: dict[int, bytes] = {}
    ended_counts = np.frombuffer(mmap.mmap(-1, 8 * len(shares)), np.int64)
    total = sum(map(len, shares)) + 1
    children: dict[int, int] = {}
    selector = selectors.DefaultSelector()
    parent = os.getpid()
    try:
        for place, share in enumerate(shares):
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                end_with(parent)
                os.close(reading)
                _child(machine, share, start, writing, ended_counts[place : place + 1])
            os.close(writing)
            children[reading] = child
            pieces[reading] = b""
            selector.register(reading, selectors.EVENT_READ)
        running = set(children)
        while running:
            for key, _ in selector.select(_PROGRESS_INTERVAL):
                piece = os.read(key.fd, _CHUNK)
                pieces[key.fd] += piece
                if not piece:
                    selector.unregister(key.fd)
                    running.remove(key.fd)
                    if not pieces[key.fd]:
                        raise _Shared
            if machine.progress is not None:
                machine.progress(int(ended_counts.sum()) + 1, total)
    except BaseException as error:
        for child in children.values():
            os.kill(child, signal.SIGKILL)
        if not isinstance(error, _Shared):
            raise
    finally:
        statuses = []
        for reading, child in children.items():
            os.close(reading)
            statuses.append(os.waitpid(child, 0)[1])
        selector.close()
    return None if any(statuses) else [pickle.loads(text) for text in pieces.values()]


def _child(
    machine: Machine, share: Sequence[int], start: Callable[[int], Group], writing: int, ended_count: np.ndarray
) -> None:
    """Runs blocks, reports their accesses, and ends the process; reports nothing where other blocks could see them."""
    try:
        part = _run(machine, share, start, ended_count)
        with os.fdopen(writing, "wb") as out:
            pickle.dump(part, out, pickle.HIGHEST_PROTOCOL)
    except BaseException:
        os._exit(1)
    os._exit(0)


def _sizes(machine: Machine) -> list[int]:
    """Returns how much there is of what later launches, or the host, could see."""
    return [len(items) for items in (machine.heap.allocations, machine.output, machine.views, machine.unfinished)]


def _run(machine: Machine, share: Sequence[int], start: Callable[[int], Group], ended_count: np.ndarray) -> Part:
    heap = machine.heap.allocations
    for allocation in heap:
        allocation.shadow = None
    if machine.counters is not None:
        machine.counters = type(machine.counters)()
    steps, before = machine.steps, _sizes(machine)
    for number in share:
        group = start(number)
        group.run()
        if not group.is_done or machine.findings.by_key or machine.published or machine.blocks_meet or machine.stopped:
            raise _Shared
        ended_count += 1
    if _sizes(machine) != before:
        raise _Shared
    accesses_by_number = {number: _touched(allocation) for number, allocation in enumerate(heap)}
    if machine.counters is not None:
        machine.counters.forget()
    return Part(
        machine.steps - steps,
        machine.counters,
        {number: accesses for number, accesses in accesses_by_number.items() if accesses is not None},
    )
