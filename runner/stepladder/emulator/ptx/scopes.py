"""Names in a function of PTX: registers, variables, labels, and constants of a thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.emulator.ptx import syntax, types
from stepladder.emulator.ptx.types import PtxType
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Builder
    from stepladder.emulator.core.values import Value


@dataclass(frozen=True)
class Register:
    """A register: the slot of its bits, and its type."""

    slot: int
    type: PtxType


class Slots:
    """The slots of a function: of registers, and of what does not change.

    Attributes:
        undefined: slots of registers, which hold anything at first: all bits set.
        names: of the registers, by slot.
        constants: by what is constant, its slot and its value, or what gives it for a group of blocks.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.undefined: list[int] = []
        self.names: dict[int, str] = {}
        self.constants: dict[object, tuple[int, int | bool | Callable[[Fiber], Value]]] = {}

    def register(self, type_: PtxType, name: str) -> Register:
        """Returns a new register.

        Args:
            type_: that it is declared with.
            name: as it is written.
        """
        slot = self.builder.new_slot(types.register(type_.width))
        self.undefined.append(slot)
        self.names[slot] = name
        return Register(slot, type_)

    def constant(self, key: object, width: int, value: int | bool | Callable[[Fiber], Value]) -> int:
        """Returns the slot of a constant; equal keys share one slot.

        Args:
            key: that identifies the constant in the function.
            width: bits.
            value: the constant, or a function that returns it for a fiber of all threads.
        """
        if key not in self.constants:
            self.constants[key] = self.builder.new_slot(types.register(width)), value
        return self.constants[key][0]

    def number(self, value: int, width: int) -> int:
        """Returns the slot of a constant.

        Args:
            value: an integer, wrapped to the width.
            width: bits.
        """
        value = types.stored(value, width)
        return self.constant((value, width), width, value)


_HALVES = ("lower half of ", "upper half of ")  # in front of the name of a register of 128 bits


class Scope:
    """Names that are declared in braces, and those around them.

    Attributes:
        slots: of the function.
        parent: the scope around it.
        variables: in memory, by name: the width of their addresses, and what gives them.
        spaces: of these variables, as they are declared; those of a function's parameters are not known.
        labels: by name, ids that are unique in the function.
    """

    def __init__(self, slots: Slots, parent: Scope | None = None) -> None:
        self.slots = slots
        self.parent = parent
        self.variables: dict[str, int | Callable[[Fiber], Value]] = {}
        self.spaces: dict[str, str] = {}
        self.labels: dict[str, object] = {}
        self._registers: dict[str, Register] = {}
        self._ranges: dict[str, tuple[int, PtxType]] = {}

    def bind(self, name: str, register: Register) -> None:
        """Binds a name to a register.

        Args:
            name: in this scope.
            register: of the function.
        """
        self._registers[name] = register

    def declare(self, registers: syntax.Registers) -> None:
        """Declares registers.

        Args:
            registers: the declaration.

        Raises:
            StepladderError: a type that registers do not have here.
        """
        if registers.type == "b128":  # two registers of b64 each (`halves`)
            for half in _HALVES:
                half_names = tuple((half + name, count) for name, count in registers.names)
                self.declare(syntax.Registers("b64", half_names, registers.line, registers.column))
            return
        type_ = types.find(registers.type)
        if type_ is None or (type_.count > 1 and registers.type not in ("f16x2", "bf16x2")):
            raise StepladderError(f"registers of type .{registers.type} are not supported")
        for name, count in registers.names:
            if count:
                self._ranges[name] = count, type_
            else:
                self._registers[name] = self.slots.register(type_, name)

    def register(self, name: str) -> Register | None:
        """Returns the register with a name in this scope or one around it, None where there is none.

        Args:
            name: as it is written.
        """
        register = self._registers.get(name)
        if register is not None:
            return register
        stem = name.rstrip("0123456789")
        digits = name[len(stem) :]
        if digits and stem in self._ranges and int(digits) < self._ranges[stem][0]:
            self._registers[name] = self.slots.register(self._ranges[stem][1], name)
            return self._registers[name]
        return self.parent.register(name) if self.parent is not None else None

    def halves(self, operand: syntax.Operand) -> syntax.Operand:
        """Returns the lower and the upper half of a register of 128 bits, as a vector; other operands as they are.

        Args:
            operand: of an instruction of the type b128.
        """
        halves = tuple(syntax.Name(f"{half}{operand}") for half in _HALVES)
        is_wide = isinstance(operand, syntax.Name) and self.register(halves[0].text) is not None
        return syntax.Vector(halves) if is_wide else operand

    def variable(self, name: str) -> int | Callable[[Fiber], Value] | None:
        """Returns the address of a variable in this scope or one around it.

        Args:
            name: as it is written.

        Returns:
            The address, or a function that returns it for a fiber; None where there is no such variable.
        """
        if name in self.variables:
            return self.variables[name]
        return self.parent.variable(name) if self.parent is not None else None

    def space(self, name: str) -> str | None:
        """Returns the space of a variable in this scope or one around it, None where it is not known.

        Args:
            name: as it is written.
        """
        if name in self.variables or self.parent is None:
            return self.spaces.get(name)
        return self.parent.space(name)

    def label(self, name: str) -> object | None:
        """Returns the object that represents a label of this scope or one around it, None where there is none.

        Args:
            name: as it is written.
        """
        if name in self.labels:
            return self.labels[name]
        return self.parent.label(name) if self.parent is not None else None
