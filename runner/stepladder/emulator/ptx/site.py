"""One instruction while it is decoded: its modifiers, its operands as slots, and the emitted instructions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.dialects.llvm import Held
from stepladder.emulator.ptx import special, syntax, types
from stepladder.emulator.ptx.guards import Guarded
from stepladder.emulator.ptx.types import PtxType
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Builder, Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.scopes import Register, Scope

_B64 = PtxType("b64", "b", 64)
_PRED = PtxType("pred", "pred", 1)


class Site:
    """An instruction that is decoded.

    Attributes:
        builder: takes what it emits.
        statement: the instruction.
        scope: the names around it.
        spin: the key of the loop that waits for its result; None where there is none (`flow`).
        is_ignored: whether no instruction reads what it writes first.
        rest: modifiers that no function has taken yet.
        name: of what it emits, for messages.
    """

    def __init__(
        self,
        builder: Builder,
        statement: syntax.Statement,
        scope: Scope,
        family: str,
        *,
        name: str = "",
        spin: object = None,
    ) -> None:
        self.builder = builder
        if "b128" in statement.opcode:
            statement = replace(statement, operands=tuple(map(scope.halves, statement.operands)))
        self.statement = statement
        self.scope = scope
        self.family = family
        self.spin = spin
        self.is_ignored = False
        self.name = name or statement.mnemonic
        self.rest = list(statement.opcode[family.count(".") + 1 :])

    def error(self, text: str) -> StepladderError:
        """Returns the error that the emulator does not support this form of the instruction.

        Args:
            text: the message after the opcode.
        """
        return StepladderError(
            f"the emulator does not support {self.statement.mnemonic} {text}", location=self.builder.location
        )

    # Modifiers.

    def flag(self, *names: str) -> bool:
        """Consumes modifiers with these names; returns whether there are any.

        Args:
            names: without dots.
        """
        flags = [modifier for modifier in self.rest if modifier in names]
        for modifier in flags:
            self.rest.remove(modifier)
        return bool(flags)

    def choice(self, names: Sequence[str], default: str | None = None) -> str:
        """Consumes and returns the first modifier that has one of these names.

        Args:
            names: without dots.
            default: returned where there is no such modifier.

        Raises:
            StepladderError: none of them is there, and there is no default.
        """
        for modifier in self.rest:
            if modifier in names:
                self.rest.remove(modifier)
                return modifier
        if default is None:
            raise self.error(f"without one of .{', .'.join(names)}")
        return default

    def match(self, pattern: str) -> re.Match | None:
        """Consumes the first modifier that matches a pattern; returns the match, None where there is none.

        Args:
            pattern: a regular expression for the whole modifier.
        """
        for modifier in self.rest:
            match = re.fullmatch(pattern, modifier)
            if match:
                self.rest.remove(modifier)
                return match
        return None

    def types(self, *counts: int) -> list[PtxType]:
        """Consumes and returns all modifiers that are types.

        Args:
            counts: accepted numbers of them; none for all.

        Raises:
            StepladderError: another number of types.
        """
        candidates = [(modifier, types.find(modifier)) for modifier in self.rest]
        self.rest = [modifier for modifier, type_ in candidates if type_ is None]
        type_list = [type_ for _, type_ in candidates if type_ is not None]
        if counts and len(type_list) not in counts:
            raise self.error(f"{_stated(type_list)}: expected {' or '.join(map(str, counts))}")
        return type_list

    def type(self, kinds: str = "", bits: Sequence[int] = ()) -> PtxType:
        """Consumes and returns the one modifier that is a type.

        Args:
            kinds: accepted kinds, such as "sub" or "f"; empty for all.
            bits: accepted widths; empty for all.

        Raises:
            StepladderError: no type, several, or one of another kind or width.
        """
        candidates = self.types()
        fits = [(not kinds or item.kind in kinds) and (not bits or item.bits in bits) for item in candidates]
        if fits != [True]:
            names = [f".{kind}{width}" for kind in kinds or "bsuf" for width in bits or ("N",)]
            raise self.error(f"{_stated(candidates)}: expected {'one of ' * (len(names) > 1)}{', '.join(names)}")
        return candidates[0]

    def hints(self) -> None:
        """Takes modifiers that only concern caches."""
        while self.match(r"(L1|L2|level)::[\w:]+|nc|c[agsv]|w[bt]|lu"):
            pass

    # Operands.

    @property
    def operands(self) -> tuple[syntax.Operand, ...]:
        """The operands."""
        return self.statement.operands

    def count(self, *counts: int) -> int:
        """Returns the number of operands.

        Args:
            counts: accepted numbers.

        Raises:
            StepladderError: another number of operands.
        """
        if len(self.operands) not in counts:
            expectation = " or ".join(map(str, counts))
            raise self.error(f"with {len(self.operands)} operands: expected {expectation}")
        return len(self.operands)

    def read(self, operand: int | syntax.Operand, type_: PtxType, *, wider: bool = False) -> int:
        """Returns the slot of a source operand.

        Args:
            operand: its index, or the operand.
            type_: that the instruction reads it as.
            wider: whether a register may be wider than the type.

        Raises:
            StepladderError: an operand that cannot be read as the type.
        """
        if isinstance(operand, int):
            operand = self.operands[operand]
        if isinstance(operand, syntax.Negated):
            return self._negated(operand)
        if isinstance(operand, syntax.Number):
            return self.scope.slots.number(self._literal(operand, type_), type_.width)
        if isinstance(operand, syntax.Name):
            register = self.scope.register(operand.text) if not operand.member else None
            if register is not None:
                self._check_width(operand, register, type_, wider=wider)
                return register.slot
            special_register = special.register(str(operand))
            if special_register is not None:
                if special_register.changes:
                    slot = self.builder.new_slot(types.register(type_.width))
                    self.emit(lambda fiber, op: special_register.get(fiber, type_.width), (), [slot], unguarded=True)
                    return slot
                return self.scope.slots.constant(
                    (str(operand), type_.width), type_.width, lambda fiber: special_register.get(fiber, type_.width)
                )
        return self._symbol(operand, type_)

    def _check_width(self, operand: syntax.Operand, register: Register, type_: PtxType, *, wider: bool) -> None:
        width = register.type.width
        if width != type_.width and not (wider and width > type_.width):
            raise self.error(f"of {operand}, which has {width} bits, as .{type_}")

    def _symbol(self, operand: syntax.Operand, type_: PtxType) -> int:
        """Returns the slot of the address of a variable, plus bytes."""
        base, offset = (operand.base, operand.offset) if isinstance(operand, syntax.Offset) else (operand, 0)
        place = self.scope.variable(str(base)) if isinstance(base, syntax.Name) else None
        if place is None:
            raise self.error(f"of {operand}: there is no such register or variable")
        if callable(place):
            return self.scope.slots.constant(
                (place, offset, type_.width),
                type_.width,
                lambda fiber: types.stored(place(fiber) + offset, type_.width),
            )
        return self.scope.slots.number(place + offset, type_.width)

    def _literal(self, operand: syntax.Number, type_: PtxType) -> int:
        if operand.width == 64 and type_.kind == "f" and type_.bits == 32:
            number = np.array([operand.value], np.uint64).view(np.float64)[0]
            return int(np.array([number], np.float32).view(np.int32)[0])
        return operand.value

    def _negated(self, operand: syntax.Negated) -> int:
        slot = self.builder.new_slot(types.register(1))
        self.emit(_not, [self.read(operand.operand, _PRED)], [slot], unguarded=True)
        return slot

    def number(self, operand: int | syntax.Operand) -> int:
        """Returns the value of an operand that is an integer literal.

        Args:
            operand: its index, or the operand.

        Raises:
            StepladderError: another kind of operand.
        """
        if isinstance(operand, int):
            operand = self.operands[operand]
        if not isinstance(operand, syntax.Number) or operand.width:
            raise self.error(f"of {operand}: expected a number")
        return operand.value

    def write(self, operand: int | syntax.Operand, width: int | None = None, *, wider: bool = False) -> int:
        """Returns the slot of a destination register.

        Args:
            operand: its index, or the operand.
            width: bits of the result; None accepts all registers.
            wider: whether the register may be wider than that.

        Raises:
            StepladderError: no register, or one of another width.
        """
        if isinstance(operand, int):
            operand = self.operands[operand]
        if isinstance(operand, syntax.Sink):
            return self.builder.new_slot(types.register(width or 64))
        register = self.scope.register(str(operand))
        if register is None:
            raise self.error(f"of {operand}: there is no such register")
        if width is not None and register.type.width != width and not (wider and register.type.width > width):
            raise self.error(f"to {operand}, which has {register.type.width} bits and not {width}")
        return register.slot

    def width(self, operand: int | syntax.Operand) -> int:
        """Returns the width of a destination register in bits; 64 for a result that is discarded (`_`).

        Args:
            operand: its index, or the operand.
        """
        if isinstance(operand, int):
            operand = self.operands[operand]
        register = self.scope.register(str(operand))
        return 64 if register is None else register.type.width

    def elements(self, operand: int | syntax.Operand) -> tuple[syntax.Operand, ...]:
        """Returns the operands in braces, or the operand itself.

        Args:
            operand: its index, or the operand.
        """
        if isinstance(operand, int):
            operand = self.operands[operand]
        return operand.elements if isinstance(operand, syntax.Vector) else (operand,)

    def address(self, operand: int | syntax.Operand) -> tuple[int, int]:
        """Returns the slot of the address in brackets, and the bytes that are added to it.

        Args:
            operand: its index, or the operand.

        Raises:
            StepladderError: another kind of operand, or several addresses.
        """
        if isinstance(operand, int):
            operand = self.operands[operand]
        if not isinstance(operand, syntax.Address):
            raise self.error(f"of {operand}: expected an address in brackets")
        if len(operand.parts) != 1:
            raise self.error(f"of {operand}: expected one address")
        return self.place(operand.parts[0])

    def place(self, part: syntax.Operand) -> tuple[int, int]:
        """Returns the slot of an address without its brackets, and the bytes that are added to it.

        Args:
            part: a register, a variable or an immediate, with or without an offset.
        """
        if isinstance(part, syntax.Offset) and isinstance(part.base, syntax.Name):
            register = self.scope.register(part.base.text)
            if register is not None:
                return register.slot, part.offset
        if isinstance(part, syntax.Name):
            register = self.scope.register(part.text)
            if register is not None:
                return register.slot, 0
        return self.read(part, _B64), 0

    # The emitted instructions.

    def emit(
        self,
        execute: Callable,
        operands: Sequence[int],
        results: Sequence[int],
        attributes: dict | None = None,
        *,
        holds: bool = False,
        unguarded: bool = False,
    ) -> Instruction:
        """Returns the instruction of the program that is emitted for this one, under its guard.

        Args:
            execute: as in `core.registry`.
            operands, results: slots.
            attributes: of what is emitted.
            holds: whether it takes sums of wgmma that may be in flight as they are; else they are read.
            unguarded: whether to leave the guard out: for what only computes an operand.

        Raises:
            StepladderError: the guard is no predicate that is declared.
        """
        if not holds:
            execute = _reading(execute)
        guard = None if unguarded else self.statement.guard
        if guard is not None:
            register = self.scope.register(guard.name.text)
            if register is None:
                raise self.error(f"under {guard.name}: there is no such predicate")
            execute = Guarded(execute, guard.negated, len(results))
            operands = [register.slot, *results, *operands]
        return self.builder.emit(self.name, execute, operands, results, attributes)


def _not(fiber: Fiber, op: Instruction, value: Value) -> Value:
    return ~value if isinstance(value, np.ndarray) else not value


def _reading(execute: Callable) -> Callable:
    """Returns what reads sums of wgmma before it executes."""

    def run(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        for value in operands:
            if type(value) is Held:
                operands = tuple(bits_of(fiber, op, operand) for operand in operands)
                break
        return execute(fiber, op, *operands)

    return run


def bits_of(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """Returns the bits of a register; an accumulator of wgmma in flight is a finding.

    Args:
        fiber: the threads that read it.
        op: the instruction.
        value: of the register.
    """
    if type(value) is not Held:
        return value
    column = np.ascontiguousarray(value.sums.read(fiber, op)[:, value.place])
    return column.view(f"i{column.dtype.itemsize}")


def _stated(type_list: Sequence[PtxType]) -> str:
    """Returns the types that a form has, for a message."""
    return f"with the types {', '.join(f'.{type_.name}' for type_ in type_list)}" if type_list else "without a type"
