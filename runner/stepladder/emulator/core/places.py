"""The notes of findings: the buffer and the element of a byte, and the iterations of the loops around an op.

A byte of shared memory is an element of a memref that the fiber holds (`%tile[1, 4, 0]`: of a buffer with several
stages, the first number is the stage), an mbarrier of a group, or a byte of a symbol. Names are read from the source
file, since MLIR does not keep them.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.emulator.core.groups import DYNAMIC, LAUNCHED
from stepladder.emulator.core.types import Opaque
from stepladder.emulator.core.values import MemRef

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.machine import Machine
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value

_BYTE = re.compile(r"byte (0x[0-9a-f]+)(?: of (shared memory|argument \d+))?")
_LOCATION = re.compile(r"(.+):(\d+):(\d+)")
_DEFINED = re.compile(r"%([\w$.-]+)(?::\d+)?\s*=\s*$")
_ARGUMENT = re.compile(r"%([\w$.-]+)")
_ALIASES = ("memref.subview", "memref.cast", "memref.reinterpret_cast", "memref.collapse_shape", "memref.expand_shape")
_MBARRIER_BYTES = 8
_MAX = 4  # bytes of a message that are explained


@dataclass(frozen=True)
class Loop:
    """A loop around instructions: its op, and the slots of its induction variable, its lower bound and its step."""

    name: str
    location: str
    number: int
    first: int
    step: int


class Places:
    """Explains messages about what a machine executes."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._makers: dict[int, Instruction] = {}

    def notes(self, message: str, op: Instruction | None) -> list[str]:
        """Returns notes on a message: what its bytes are of, and the iterations of the loops around an op.

        Args:
            message: of a finding.
            op: that it is about.
        """
        fiber = self.machine.current
        if fiber is None or fiber.group.is_host:
            return []
        notes = []
        for address, memory in list(dict.fromkeys(_BYTE.findall(message)))[:_MAX]:
            text = self._text(fiber, int(address, 16), memory)
            if text:
                notes.append(f"byte {address} of {memory or 'shared memory'} is {text}")
        if op is not None and fiber.place and fiber.code[fiber.place - 1] is op:
            notes += _iterations(fiber, op)
        return notes

    def _text(self, fiber: Fiber, byte: int, memory: str) -> str:
        """Returns the text that describes a byte; empty where it is not known."""
        views, is_argument = [], memory.startswith("argument")
        for slot, value in enumerate(fiber.env):
            if not isinstance(value, MemRef):
                continue
            is_it = value.memory.name == memory if is_argument else value.memory is fiber.group.window
            index = _index(value, byte) if is_it else None
            if index is not None:
                maker = self._maker(slot)
                rank = (maker is not None and maker.name in _ALIASES, value.element.bytes == 1, -value.rank, slot)
                views.append((rank, index, maker))
        if views:
            _, index, maker = min(views, key=lambda view: view[0])
            return f"element [{', '.join(map(str, index))}] of {memory if maker is None else _name(maker)}"
        return "" if is_argument else self._symbol(fiber, byte)

    def _symbol(self, fiber: Fiber, byte: int) -> str:
        """Returns the mbarrier or the symbol that a byte of shared memory is of."""
        layout = fiber.group.layout.items()
        starts = [(start, key) for key, start in layout if key not in (DYNAMIC, LAUNCHED) and start <= byte]
        if not starts:
            return ""
        start, key = max(starts, key=lambda pair: pair[0])
        if isinstance(key, str):
            return f"byte {byte - start:#x} of {key if key.startswith('gpu.') else '@' + key}"
        maker = self.machine.program.instructions[key]
        if maker.result_types and isinstance(maker.result_types[0], Opaque):
            return f"mbarrier {(byte - start) // _MBARRIER_BYTES} of {_name(maker)}"
        return f"byte {byte - start:#x} of {_name(maker)}"

    def _maker(self, slot: int) -> Instruction | None:
        """Returns the instruction that defines a slot."""
        if not self._makers:
            for op in self.machine.program.instructions:
                for result in op.results:
                    self._makers.setdefault(result, op)
        return self._makers.get(slot)


def _index(view: MemRef, byte: int) -> list[int] | None:
    """Returns the element of a view that a byte of its memory is in; None where it is in none."""
    numbers = (view.offset, *view.sizes, *view.strides)
    if not all(isinstance(number, int) for number in numbers):
        return None
    place = (byte - view.start) // view.element.bytes - view.offset
    index = [0] * view.rank
    for axis in sorted(range(view.rank), key=lambda axis: -view.strides[axis]):
        if place < 0 or not view.strides[axis]:
            return None
        index[axis], place = divmod(place, view.strides[axis])
        if index[axis] >= view.sizes[axis]:
            return None
    return index if place == 0 else None


def _name(op: Instruction) -> str:
    """Returns the name of what an op defines, with its location, or the op and its location."""
    match = _LOCATION.fullmatch(op.location)
    if match is not None:
        line, column = linecache.getline(match[1], int(match[2])), int(match[3]) - 1
        name = _DEFINED.search(line[:column]) or _ARGUMENT.match(line[column:])
        if name is not None:
            return f"%{name[1]} ({op.location})"
    return op.describe()


def _iterations(fiber: Fiber, op: Instruction) -> Iterator[str]:
    loops: tuple[Loop, ...] = op.loops
    for loop in loops:
        number, first, step = (_of(fiber, slot) for slot in (loop.number, loop.first, loop.step))
        if number is not None and first is not None and step:
            location = f" at {loop.location}" if loop.location else ""
            iteration = (number - first) // step
            yield f"in iteration {iteration} of {loop.name}{location}, where its induction variable is {number}"


def _of(fiber: Fiber, slot: int) -> int | None:
    """Returns a number of the fiber's first thread; None where it has none yet."""
    value: Value = fiber.env[slot]
    return None if value is None else int(fiber.first(value))
