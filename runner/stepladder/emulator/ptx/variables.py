"""Variables of PTX in memory: their addresses and their initial values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.ptx import syntax, types
from stepladder.emulator.ptx.scopes import Scope
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber

PARAMETERS = "parameters of the kernel"


def size_of(variable: syntax.Variable) -> tuple[int, int]:
    """Returns the bytes and the alignment of a variable.

    Args:
        variable: its declaration.

    Raises:
        StepladderError: a type that variables do not have here.
    """
    name = variable.type
    vector = 1
    if name.startswith("v") and "." in name:
        vector, name = int(name[1]), name.split(".")[1]
    type_ = types.find(name)
    if type_ is None or type_.kind == "pred":
        raise StepladderError(f"variable {variable.name} has the type .{variable.type}, which is not supported")
    item = type_.bytes * vector
    return item * (1 if variable.count is None else variable.count), variable.alignment or item


@dataclass
class SharedMemory:
    """The layout of a block's shared memory.

    Attributes:
        bytes: of variables whose size is known.
        dynamic: alignments of those whose size the launch gives, by name: all begin after the others.
        places: offset of each other variable, by name.
    """

    bytes: int = 0
    dynamic: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)

    def add(self, variable: syntax.Variable) -> int | Callable[[Fiber], int]:
        """Returns the address of a variable that is added to shared memory.

        Args:
            variable: its declaration.

        Returns:
            The address, or, for one of dynamic size, a function that returns it once all variables are known.
        """
        size, alignment = size_of(variable)
        if variable.is_external or variable.count == 0:
            self.dynamic[variable.name] = alignment
            return lambda fiber: self.dynamic_start
        self.bytes = -(-self.bytes // alignment) * alignment + size
        self.places[variable.name] = self.bytes - size
        return self.bytes - size

    @property
    def dynamic_start(self) -> int:
        """Where the memory begins whose size the launch gives."""
        alignment = max(self.dynamic.values(), default=1)
        return -(-self.bytes // alignment) * alignment


class Variables:
    """The variables of a module and of the kernel that runs.

    Attributes:
        shared: where shared memory's are.
        parameters: bytes of each parameter, and where it begins.
        parameter_bytes: of all parameters.

    Args:
        functions: addresses of the module's functions, by name.
    """

    def __init__(self, functions: Mapping[str, int]) -> None:
        self.functions = functions
        self.shared = SharedMemory()
        self.parameters: list[tuple[syntax.Variable, int, int]] = []
        self.parameter_bytes = 0

    def declare(self, scope: Scope, variable: syntax.Variable) -> None:
        """Declares a variable in a scope.

        Args:
            scope: that takes the name.
            variable: its declaration.

        Raises:
            StepladderError: a space or a type that is not supported.
        """
        name = variable.name
        scope.spaces[name] = variable.space if variable.space != "param" else "param::entry"
        if variable.space == "shared":
            scope.variables[name] = self.shared.add(variable)
        elif variable.space in ("global", "const"):
            if variable.is_external:
                raise StepladderError(f"variable {name} is defined in another file, and one file is run")
            size_of(variable)
            numbers = [self._initial(scope, variable, value) for value in variable.values]
            scope.variables[name] = lambda fiber: _global(fiber, variable, numbers)
        elif variable.space == "local":
            size, _ = size_of(variable)
            # Calls declare variables of one name again and again, of other sizes.
            key = object()
            scope.variables[name] = lambda fiber: _local(fiber, key, size)
        elif variable.space == "param":
            size, alignment = size_of(variable)
            start = -(-self.parameter_bytes // alignment) * alignment
            self.parameter_bytes = start + size
            self.parameters.append((variable, start, size))
            scope.variables[name] = lambda fiber: fiber.group.machine.globals[PARAMETERS].address + start
        else:
            raise StepladderError(f"variable {name} is in .{variable.space}, which is not supported")

    def _initial(self, scope: Scope, variable: syntax.Variable, value: int | syntax.Place) -> Callable[[Fiber], int]:
        """Returns what gives an initial value of a variable in global memory."""
        if isinstance(value, int):
            return lambda fiber: value
        if value.name in self.functions:
            return lambda fiber: self.functions[value.name] + value.offset
        address = scope.variables.get(value.name)
        if not callable(address) or scope.spaces[value.name] not in ("global", "const"):
            raise StepladderError(
                f"variable {variable.name} begins with the address of {value.name}: expected a function with a body, "
                "or a variable of .global or .const before it"
            )
        return lambda fiber: address(fiber) + value.offset


def _global(fiber: Fiber, variable: syntax.Variable, initial: Sequence[Callable[[Fiber], int]]) -> int:
    """Returns the address of a variable in global memory, which it is given when it is first asked for."""
    machine = fiber.group.machine
    key = "ptx", variable.name
    if key not in machine.globals:
        size, _ = size_of(variable)
        allocation = machine.heap.allocate(size, variable.name)
        allocation.data[:] = 0
        type_ = types.find(variable.type.split(".")[-1])
        assert type_ is not None
        numbers = np.array([value(fiber) & ((1 << type_.bits) - 1) for value in initial], f"u{type_.bits // 8}")
        allocation.data[: numbers.nbytes] = np.frombuffer(numbers.tobytes(), np.uint8)
        machine.globals[key] = allocation
    return machine.globals[key].address


def _local(fiber: Fiber, key: object, size: int) -> int:
    """Returns the address of memory that each thread has for itself."""
    private = fiber.group.private
    if key not in private:
        private[key] = fiber.group.own_memory(size)
    return private[key].address
