"""The forms of instructions: which modifiers and types go together.

`form_tables.FORMS` lists the forms that ptxas accepts, in rows of slots:

    [global|shared] min|max u32|s32|u64|s64

A slot takes one of its modifiers; one in brackets may be left out. ptxas takes modifiers in any order, but types,
spaces and layouts in theirs. A form that no row has is refused, with what the nearest row has instead: it would be
executed as another one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.emulator.ptx import form_tables
from stepladder.runtime.errors import StepladderError

_TYPES = re.compile(r"[sub]\d+(x\d)?|(b|t)?f\d+(x2)?|e\dm\d(x\d)?|pred")
_ROUNDINGS = ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna")
# Kinds of modifiers whose meaning depends on their order.
_ORDERED = {
    "type": _TYPES,
    "space": re.compile(r"global|local|const|(shared|param)(::\w+)?"),
    "layout": re.compile("row|col"),
}
_LATER = 100  # target of `FORMS_100`


@dataclass(frozen=True)
class Slot:
    """Modifiers of which a form has one, or none where the slot is optional."""

    names: tuple[str, ...]
    is_optional: bool
    kind: str


Row = tuple[Slot, ...]


@dataclass(frozen=True)
class _Fit:
    """How modifiers fit a row: those that have no slot, where the first of them is, and the slots that lack one.

    Of rows that are equally near, the one that the first modifiers fit is meant; types count more than a rounding.
    """

    extra: tuple[str, ...]
    first: int
    missing: tuple[Slot, ...]

    @property
    def distance(self) -> tuple[int, int, int]:
        is_rounding = bool(self.extra) and self.extra[0] in _ROUNDINGS
        return len(self.extra), len(self.missing), -len(_ROUNDINGS) if is_rounding else -self.first


def check(opcode: tuple[str, ...], family: str, target: str = "") -> None:
    """Checks that PTX has an instruction with these modifiers and types, where a table lists its forms.

    Args:
        opcode: its parts.
        family: the first parts that the function that decodes it is registered for.
        target: such as "sm_90a"; empty where it is not known.

    Raises:
        StepladderError: a form that PTX does not have; the message names what it has. Or a modifier that no form has.
    """
    wrong = _problem(opcode, family, target)
    if wrong is not None:
        raise StepladderError(wrong)


@functools.cache
def _problem(opcode: tuple[str, ...], family: str, target: str) -> str | None:
    rows = _rows(family, later=False)
    if not rows:
        return None
    name = ".".join(opcode)
    modifiers = opcode[family.count(".") + 1 :]
    fits = sorted((_fit(row, modifiers) for row in rows), key=lambda fit: fit.distance)
    if _is_whole(fits[0]):
        return None
    if any(_is_whole(_fit(row, modifiers)) for row in _rows(family, later=True)):
        number = re.fullmatch(r"sm_(\d+)[af]?", target)
        is_earlier = number is not None and int(number[1]) < _LATER
        return f"{target} has no {name}: it needs sm_{_LATER} or later" if is_earlier else None
    unknown = [modifier for modifier in fits[0].extra if modifier not in _known()]
    if unknown and not _kind(unknown[0]):
        return f"the emulator does not support {name} with .{unknown[0]}"
    return f"PTX has no {name}: {_text([fit for fit in fits if fit.distance == fits[0].distance])}"


@functools.cache
def _known() -> set[str]:
    """Returns the modifiers of all forms."""
    return {
        name
        for family in form_tables.FORMS
        for row in _rows(family, later=False)
        for slot in row
        for name in slot.names
    }


@functools.cache
def _rows(name: str, *, later: bool) -> tuple[Row, ...]:
    table = form_tables.FORMS_100 if later else form_tables.FORMS
    return tuple(tuple(map(_slot, row.split())) for row in table.get(name, ()))


def _kind(modifier: str) -> str:
    return next((kind for kind, pattern in _ORDERED.items() if pattern.fullmatch(modifier)), "")


def _slot(text: str) -> Slot:
    names = tuple(text.strip("[]").split("|"))
    return Slot(names, text.startswith("["), _kind(names[0]))


def _fit(row: Row, modifiers: tuple[str, ...]) -> _Fit:
    free = list(row)
    extra: list[str] = []
    first = len(modifiers)
    for place, modifier in enumerate(modifiers):
        kind = _kind(modifier)
        fitting = [slot for slot in free if slot.kind == kind]
        if kind:
            required_count = next((number for number, slot in enumerate(fitting) if not slot.is_optional), len(fitting))
            fitting = fitting[: required_count + 1]
        slot_of_modifier = next((slot for slot in fitting if modifier in slot.names), None)
        if slot_of_modifier is None:
            first = first if extra else place
            extra.append(modifier)
        else:
            free.remove(slot_of_modifier)
    return _Fit(tuple(extra), first, tuple(slot for slot in free if not slot.is_optional))


def _is_whole(fit: _Fit) -> bool:
    return not fit.extra and not fit.missing


def _text(fits: Sequence[_Fit]) -> str:
    """Returns what is wrong with a form, by the rows that are nearest."""
    names = dict.fromkeys(name for fit in fits for slot in fit.missing[:1] for name in slot.names)
    expectation = f"{'one of ' if len(names) > 1 else ''}.{', .'.join(names)}" if names else ""
    if not fits[0].extra:
        return f"without {expectation}"
    extra = fits[0].extra[0]
    if extra in names:
        return f"with .{extra} in this place"
    return f"with .{extra}" + (f": expected {expectation}" if expectation else "")
