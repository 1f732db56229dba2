"""Instructions that end threads, and instructions without an effect here.

Source: PTX ISA, "Control Flow Instructions", "Miscellaneous Instructions", "griddepcontrol".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import printing, values
from stepladder.emulator.core.fibers import Left
from stepladder.emulator.core.host import say
from stepladder.emulator.dialects import cf
from stepladder.emulator.hardware import dependent_launch, registers, synchronization
from stepladder.emulator.hardware.warps import narrowed
from stepladder.emulator.memory import pointers
from stepladder.emulator.ptx import calls, syntax
from stepladder.emulator.ptx.instructions import memory_access
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_INDEX = PtxType("u32", "u", 32)
_PARTS = 5  # message, file, line, function, bytes of a character
_B32, _B64 = PtxType("b32", "b", 32), PtxType("b64", "b", 64)


@instruction("bra")
def bra(site: Site) -> None:
    """A branch: blocks of instructions end in it (`flow`)."""


@instruction("brx.idx", is_pure=True)
def brx(site: Site) -> None:
    """A branch by a table (`branch_tables`), of which only the check of its index, the second operand, is left."""
    site.flag("uni")
    size = site.operands[0]
    if not isinstance(size, syntax.Number):
        raise site.error("without a table of its targets: expected a label of .branchtargets as second operand")
    site.emit(_check_index, [site.read(1, _INDEX)], (), {"size": size.value})


def _check_index(fiber: Fiber, op: Instruction, index: Value) -> None:
    indices = np.broadcast_to(index, fiber.count)[fiber.lanes]
    beyond = fiber.lanes[(indices < 0) | (indices >= op.attributes["size"])]
    if len(beyond):
        thread = fiber.group.thread_name(int(beyond[0]))
        fiber.group.sanitizer.report("assumption", f"{thread} has an index beyond the branch targets", op)


@instruction("ret", "exit", waits=True)
def ret(site: Site) -> None:
    """The thread ends."""
    site.flag("uni")
    site.count(0)
    site.emit(_end, (), ())


def _end(fiber: Fiber, op: Instruction) -> None:
    synchronization.leave(fiber)
    raise Left


@instruction("trap", waits=True)
def trap(site: Site) -> None:
    """The kernel ends with an error."""
    site.count(0)
    site.emit(_trap, (), ())


def _trap(fiber: Fiber, op: Instruction) -> None:
    group = fiber.group
    group.sanitizer.report("assertion", f"{group.thread_name(int(fiber.lanes[0]))} executes a trap", op)
    _end(fiber, op)


@instruction("call", waits=True)
def call(site: Site) -> None:
    """A call of a function of CUDA: of `vprintf`, or of `__assertfail`, after which the threads end.

    Functions with a body replace their calls (`calls`).
    """
    site.flag("uni")
    name, arguments = calls.callee_of(site.statement), site.elements(-1)
    parts, execute = _KNOWN.get(name, (-1, None))
    if execute is None or len(arguments) != parts:
        raise site.error(f"of {name}: of functions without a body it knows {' and '.join(_KNOWN)}")
    site.emit(execute, [site.read(part, _B64) for part in arguments], ())


def _assertfail(fiber: Fiber, op: Instruction, *parameters: Value) -> None:
    """Says that an assertion does not hold, of which the parameters of a call hold message, file, line and function."""
    numbers = [
        int(fiber.first(memory_access.read(fiber, op, "local", place, type_)))
        for place, type_ in zip(parameters, (_B64, _B64, _B32, _B64))
    ]
    message, file, function = (pointers.text_at(fiber, op, number) for number in (*numbers[:2], numbers[3]))
    cf.fail(fiber, op, message, (file, function, numbers[2]), fiber.active)


def _vprintf(fiber: Fiber, op: Instruction, text: Value, arguments: Value) -> None:
    """Prints, one thread after the other, the arguments at an address by the format at another one."""
    texts, places = (
        values.lanes(np.asarray(memory_access.read(fiber, op, "local", place, _B64)), fiber.count)
        for place in (text, arguments)
    )
    for address in np.unique(texts[fiber.lanes]):
        part = narrowed(fiber, fiber.active & (texts == address))
        form = pointers.text_at(part, op, int(address))
        columns = []
        for offset, bits, letter in printing.variadic(form):
            type_ = PtxType(f"b{bits}", "b", bits)
            numbers = values.lanes(np.asarray(memory_access.read(part, op, "", places + offset, type_)), fiber.count)
            if letter in "eEfFgGaA":
                numbers = numbers.view(np.float64)
            columns.append((numbers, bits, letter))
        for lane in part.lanes:
            format_arguments = [
                (pointers.text_at(part, op, int(numbers[lane])) if letter == "s" else numbers[lane], bits)
                for numbers, bits, letter in columns
            ]
            say(part, printing.formatted(form, format_arguments))


# Functions without a body: how many parameters they take, and what executes them.
_KNOWN: dict[str, tuple[int, Callable]] = {calls.ASSERTFAIL: (_PARTS, _assertfail), "vprintf": (2, _vprintf)}


@instruction("nanosleep", "pmevent", "brkpt", is_pure=True)
def nothing(site: Site) -> None:
    """Nothing: there is no time."""
    site.rest.clear()


@instruction("griddepcontrol")
def griddepcontrol(site: Site) -> None:
    """Makes what the previous launch has done visible to threads that wait for it; launches run one after the other."""
    kind = site.choice(("launch_dependents", "wait"))
    site.count(0)
    site.emit(dependent_launch.control, (), (), {dependent_launch.CONTROL: kind})


@instruction("setmaxnreg", waits=True)
def setmaxnreg(site: Site) -> None:
    """Sets the registers of a warpgroup's threads: an increase blocks until enough registers are released."""
    grows = site.choice(("inc", "dec")) == "inc"
    site.flag("sync")
    site.flag("aligned")
    site.type("u", (32,))
    site.count(1)
    number = site.number(0)
    site.emit(lambda fiber, op: registers.change(fiber, op, number, grows=grows), (), ())
