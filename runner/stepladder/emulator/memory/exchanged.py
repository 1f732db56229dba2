"""Advice for plain loads of memory that a compare-and-exchange updates.

A loop that computes a new value from the old one begins with a load. A plain load is a data race there, although the
compare-and-exchange notices an outdated value: LLVM may load the value a second time where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.emulator.core.program import Instruction

_STRONG = {"relaxed", "acquire", "volatile", "mmio"}
_NOTE = (
    "a plain load races with a compare-and-exchange even where that alone uses its value; accepted: a strong load, "
    "ld.relaxed or ld.volatile in PTX, `atomic monotonic` on llvm.load"
)


def notes(op: Instruction, other: Instruction | None) -> list[str]:
    """Returns the notes on a race: one where a plain load and a compare-and-exchange are in no order.

    Args:
        op: one of the two accesses.
        other: the other one; None where it is not known.
    """
    names = (op.name, other.name) if other is not None else ()
    return [_NOTE] if any(map(_is_plain_load, names)) and any(map(_is_exchange, names)) else []


def _is_plain_load(name: str) -> bool:
    first, *forms = name.split(".")
    return name == "llvm.load" or (first == "ld" and _STRONG.isdisjoint(forms))


def _is_exchange(name: str) -> bool:
    first, *forms = name.split(".")
    return name == "llvm.cmpxchg" or (first == "atom" and "cas" in forms)
