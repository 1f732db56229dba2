"""The registry of the functions that decode instructions of PTX.

A module in `instructions` registers a function for each family of instructions, by the first parts of the opcode:

    @instruction("add", "sub")
    def add(site: Site) -> None:
        type_ = site.type()
        site.emit(..., [site.read(1, type_), site.read(2, type_)], [site.write(0)])

The longest name that an opcode begins with is taken. The function takes its modifiers from the site, and
emits what executes the instruction; modifiers that it has not taken are refused (`site`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.emulator.ptx.site import Site
    from stepladder.emulator.ptx.syntax import Statement


@dataclass(frozen=True)
class Family:
    """Instructions that one function decodes.

    Attributes:
        name: the first parts of their opcodes.
        decode: the function.
        is_pure: whether it changes nothing but registers, however often it is executed.
        asks: whether an instruction polls a value that others change: a loop of pure ones around it waits for a change.
        waits: whether a thread may wait in it, or end: a guard becomes a branch around it.
    """

    name: str
    decode: Callable[[Site], None]
    is_pure: bool
    asks: Callable[[Statement], bool]
    waits: bool


FAMILIES: dict[str, Family] = {}


def _never(statement: Statement) -> bool:
    return False


def instruction(
    *names: str, is_pure: bool = False, asks: Callable[[Statement], bool] = _never, waits: bool = False
) -> Callable:
    """Registers a function that decodes instructions.

    Args:
        names: the first parts of their opcodes.
        is_pure: whether repeated execution changes only registers.
        asks: whether a statement polls a value that other threads change: a loop of pure ones around it waits for that.
        waits: whether a thread may wait in it, or end: a guard becomes a branch around it.

    Returns:
        A decorator of a function of the `site.Site`, which returns the function.
    """

    def decorator(function: Callable[[Site], None]) -> Callable[[Site], None]:
        for name in names:
            assert name not in FAMILIES, f"{name} is registered twice"
            FAMILIES[name] = Family(name, function, is_pure, asks, waits)
        return function

    return decorator


def find(opcode: tuple[str, ...]) -> Family | None:
    """Returns the family of an opcode, None where none is registered.

    Args:
        opcode: its parts; the longest registered prefix is taken.
    """
    for length in range(len(opcode), 0, -1):
        family = FAMILIES.get(".".join(opcode[:length]))
        if family is not None:
            return family
    return None
