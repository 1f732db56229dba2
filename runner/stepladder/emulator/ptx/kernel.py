"""A kernel in PTX as a program that can be run again and again, each time from fresh memory."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.blocks import Blocks
from stepladder.emulator.core.granularity import Granularity
from stepladder.emulator.core.groups import DYNAMIC, LAUNCHED
from stepladder.emulator.core.launched import BoundKernel, Launch
from stepladder.emulator.core.program import Builder, Function, Program, all_of
from stepladder.emulator.hardware import register_operands, registers
from stepladder.emulator.hardware.launch_limits import Asked, extents_text, problems
from stepladder.emulator.ptx import calls, instructions, syntax, types
from stepladder.emulator.ptx.arguments import Argument
from stepladder.emulator.ptx.flow import Flow
from stepladder.emulator.ptx.scopes import Scope, Slots
from stepladder.emulator.ptx.variables import PARAMETERS, Variables
from stepladder.runtime import targets
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.machine import Machine
    from stepladder.emulator.memory.memory import Allocation

assert instructions.__name__  # imported for the instructions that it registers

_GRANULE = 4  # granularity of the sanitizer in bytes, where no access is smaller
_SHARED_GRANULE = 8  # of an mbarrier
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_ACCESSES = ("ld", "st", "atom", "red")
_UNSEEN = ("param", "local", "const")


class Kernel:
    """A kernel of a module.

    Args:
        module: as `parser.parse` returns it.
        name: of the kernel; default: the only one.
        file: that it is in, for messages.

    Attributes:
        name: of the kernel.
        parameters: the variables that it takes.

    Raises:
        StepladderError: no such kernel; instructions or variables that the emulator does not support, all of them.
    """

    def __init__(self, module: syntax.Module, name: str | None, file: str) -> None:
        self.file = file
        self.module = module
        self.function = _entry(module, name, file)
        self.name = self.function.name
        self.location = f"{file}:{self.function.line}:{self.function.column}"
        callees = {function.name: function for function in module.functions if not function.is_kernel and function.body}
        self.variables = Variables(calls.addresses(module))
        builder = Builder()
        slots = Slots(builder)
        scope = Scope(slots)
        scope.variables |= self.variables.functions
        for variable in (*module.variables, *self.function.parameters):
            builder.location = f"{file}:{variable.line}:{variable.column}"
            self._declare(scope, variable)
        flow = Flow(
            builder,
            slots,
            self._declare,
            self._locate,
            lambda statement: statement.mnemonic,
            (callees, scope),
            module.target,
        )
        assert self.function.body is not None
        flow.add(self.function.body, Scope(slots, scope))
        flow.emit(None)
        if builder.errors:
            raise all_of(builder.errors)
        code = builder.code
        register_operands.watch(code)
        self.program = Program(
            {self.name: Function(self.name, (), (), code)}, builder.slot_types, builder.globals, builder.instructions
        )
        bodies = (self.function.body, *(function.body for function in callees.values() if function.body is not None))
        self.granularity = _granularity(syntax.Block(bodies))

    @property
    def parameters(self) -> list[syntax.Variable]:
        """The parameters, in order."""
        return [variable for variable, _, _ in self.variables.parameters]

    def _locate(self, statement: syntax.Statement | syntax.Registers) -> str:
        if not statement.line:
            return self.location
        return f"{self.file}:{statement.line}:{statement.column}"

    def _declare(self, scope: Scope, variable: syntax.Variable) -> None:
        try:
            self.variables.declare(scope, variable)
        except StepladderError as error:
            raise StepladderError(error.message, location=f"{self.file}:{variable.line}:{variable.column}") from None

    def check(self, launch: Launch) -> None:
        """Checks a launch against the directives of the kernel and the limits of its target.

        Args:
            launch: grid, block, cluster and dynamic shared memory.

        Raises:
            StepladderError: what does not fit, with what would.
        """
        directives = self.function.directives
        threads = math.prod(launch.block)
        if "maxntid" in directives and threads > math.prod(directives["maxntid"]):
            raise self._refused(f"has at most {math.prod(directives['maxntid'])} threads per block, got {threads}")
        if "reqntid" in directives and threads != math.prod(directives["reqntid"]):
            raise self._refused(f"has {math.prod(directives['reqntid'])} threads per block, got {threads}")
        cluster = (*directives.get("reqnctapercluster", ()), 1, 1, 1)[:3]
        if "reqnctapercluster" in directives and cluster != tuple(launch.cluster):
            raise self._refused(
                f"is compiled for clusters of {extents_text(cluster)}, got {extents_text(launch.cluster)}"
            )
        (rank,) = directives.get("maxclusterrank", (None,))
        if rank is not None and math.prod(launch.cluster) > rank:
            raise self._refused(f"has clusters of at most {rank} blocks, got {extents_text(launch.cluster)}")
        wrong = problems(self._asked(launch), targets.TARGETS.get(self.module.target))
        if wrong:
            raise self._refused(f"cannot be launched: {wrong[0]}")

    def _asked(self, launch: Launch) -> Asked:
        (register_limit,) = self.function.directives.get("maxnreg", (None,))
        window = self.window(launch)
        return Asked(
            launch.grid, launch.block, launch.cluster, window, window - launch.dynamic, registers=register_limit
        )

    def _refused(self, text: str) -> StepladderError:
        return StepladderError(f"kernel {self.name} {text}", location=self.location)

    def window(self, launch: Launch) -> int:
        """Returns the bytes of shared memory of a block.

        Args:
            launch: whose dynamic shared memory is included.
        """
        return self.variables.shared.dynamic_start + launch.dynamic

    def check_arguments(self, arguments: Sequence[Argument]) -> None:
        """Checks that arguments fit the parameters.

        Args:
            arguments: in order, one for each parameter.

        Raises:
            StepladderError: another number of them, or one of another size; the message names what is accepted.
        """
        parameters = self.variables.parameters
        if self.places(arguments) is not None:
            return
        if len(arguments) != len(parameters):
            raise self._refused(
                f"takes {len(parameters)} arguments, and {len(arguments)} were given: {self.describe_parameters()}"
            )
        for number, (argument, (variable, _, size)) in enumerate(zip(arguments, parameters)):
            if argument.bytes != size:
                raise self._refused(
                    f"takes {size} bytes as argument {number} ({variable.declaration()}), and {argument.describe()} "
                    f"is {argument.bytes}"
                )

    def places(self, arguments: Sequence[Argument]) -> list[tuple[syntax.Variable, int]] | None:
        """Returns the parameter that each argument is in, and the byte of all parameters where it is.

        A parameter that is a struct takes the arguments of its fields, each aligned to its own size.

        Args:
            arguments: in order.

        Returns:
            None where they do not fit the parameters.
        """
        return _places(self.variables.parameters, arguments)

    def describe_parameters(self) -> str:
        """Returns the parameters' declarations."""
        return ", ".join(variable.declaration() for variable in self.parameters) or "none"

    def bound(self, arguments: Sequence[Argument], launch: Launch) -> BoundKernel:
        """Returns the kernel with its arguments and its launch.

        Args:
            arguments: in order, one for each parameter.
            launch: grid, block, cluster and dynamic shared memory.

        Raises:
            StepladderError: a launch or arguments that the kernel does not accept; the message names what is accepted.
        """
        self.check(launch)
        self.check_arguments(arguments)
        return BoundPtx(self, arguments, launch)


class BoundPtx(BoundKernel):
    """A kernel in PTX with its arguments and its launch."""

    def __init__(self, kernel: Kernel, arguments: Sequence[Argument], launch: Launch) -> None:
        super().__init__(kernel.name, kernel.location, kernel.program, kernel.granularity, arguments, launch)
        self.kernel = kernel

    def begin(self, machine: Machine, inputs: Sequence[np.ndarray]) -> list[Allocation | None]:
        """Launches the kernel.

        Args:
            machine: that executes it.
            inputs: an array for each argument, as `check_inputs` returns them.

        Returns:
            The memory of each argument, None for scalars.
        """
        kernel, launch = self.kernel, self.launch
        allocations = self._pass(machine, inputs)
        code = kernel.program.functions[kernel.name].code
        directives = kernel.function.directives
        register_limit, blocks = (directives.get(name, (None,))[0] for name in ("maxnreg", "minnctapersm"))
        shared_memory = kernel.variables.shared
        dynamic = dict.fromkeys(shared_memory.dynamic, shared_memory.dynamic_start)
        layout = {
            **shared_memory.places,
            **dynamic,
            DYNAMIC: launch.dynamic,
            LAUNCHED: registers.at_launch(math.prod(launch.block), limit=register_limit, blocks=blocks),
        }

        def env_of(group: Group) -> list:
            return [None] * len(group.machine.program.slot_types)

        machine.launch(
            code,
            env_of,
            Blocks(launch.block, launch.grid, launch.cluster, kernel.window(launch), layout),
            dependent=launch.dependent,
            triggers_late=launch.triggers_late,
        )
        return allocations

    def _pass(self, machine: Machine, inputs: Sequence[np.ndarray]) -> list[Allocation | None]:
        """Puts arrays to global memory, and what the kernel is given of them to its parameters."""
        variables = self.kernel.variables
        place = machine.heap.allocate(max(1, variables.parameter_bytes), PARAMETERS)
        machine.globals[PARAMETERS] = place
        place.is_array = False
        allocations: list[Allocation | None] = []
        places = self.kernel.places(self.arguments)
        assert places is not None  # `check_arguments`
        for argument, array, (variable, start) in zip(self.arguments, inputs, places):
            name = argument.name or variable.name
            allocation = argument.placed(machine, array, name, allocations)
            argument_bytes = argument.passed(machine, allocation, array, place.address + start)
            place.data[start : start + len(argument_bytes)] = np.frombuffer(argument_bytes, np.uint8)
            allocations.append(allocation)
        for number in self.launch.early:
            own_allocation = allocations[number]
            assert own_allocation is not None  # scalars are read from parameters
            own_allocation.is_kept = True
        return allocations


def _places(
    parameters: Sequence[tuple[syntax.Variable, int, int]], arguments: Sequence[Argument]
) -> list[tuple[syntax.Variable, int]] | None:
    if not parameters:
        return None if arguments else []
    (variable, start, size), *further = parameters
    if len(parameters) == len(arguments) and all(
        argument.bytes == room for argument, (_, _, room) in zip(arguments, parameters)
    ):
        return [(variable, start) for variable, start, _ in parameters]
    if variable.count is None:
        fits = bool(arguments) and arguments[0].bytes == size
        behind = _places(further, arguments[1:]) if fits else None
        return None if behind is None else [(variable, start), *behind]
    fields: list[tuple[syntax.Variable, int]] = []
    end = 0
    for count, argument in enumerate(arguments, 1):
        place = -(-end // argument.alignment) * argument.alignment
        end = place + argument.bytes
        if end > size:
            break
        fields.append((variable, start + place))
        if -(-end // (variable.alignment or 1)) * (variable.alignment or 1) == size:
            behind = _places(further, arguments[count:])
            if behind is not None:
                return [*fields, *behind]
    return None


def _entry(module: syntax.Module, name: str | None, file: str) -> syntax.Function:
    kernels = {
        function.name: function for function in module.functions if function.is_kernel and function.body is not None
    }
    notes = [f"kernels: {', '.join(kernels)}"] if kernels else []
    if name is not None:
        if name not in kernels:
            raise StepladderError(f"there is no kernel {name}", location=file, notes=notes)
        return kernels[name]
    if len(kernels) != 1:
        text = "there is no kernel (.entry) to run" if not kernels else "there are several kernels: name one"
        raise StepladderError(text, location=file, notes=notes)
    return next(iter(kernels.values()))


def _smallest(block: syntax.Block, spaces: Container[str], limit: int, *, is_whole: bool) -> int:
    """Returns the bytes of the smallest access to memory that threads share, `limit` where all are of more.

    Args:
        spaces: of memory, whose accesses do not count.
        is_whole: whether a vector is one access; else its elements are.
    """
    smallest = limit
    for item in block.body:
        if isinstance(item, syntax.Block):
            smallest = min(smallest, _smallest(item, spaces, limit, is_whole=is_whole))
        elif isinstance(item, syntax.Statement) and item.opcode[0] in _ACCESSES:
            types_ = [types.find(part) for part in item.opcode[1:]]
            several = next((number for name, number in _VECTORS.items() if is_whole and name in item.opcode), 1)
            if not any(part.split("::")[0] in spaces for part in item.opcode):
                sizes = [several * type_.bytes for type_ in types_ if type_ is not None and type_.bits > 1]
                smallest = min([smallest, *sizes])
    return smallest


def _granularity(block: syntax.Block) -> Granularity:
    """Returns the granularity of the sanitizer."""
    elsewhere = _smallest(block, _UNSEEN, _GRANULE, is_whole=False)
    return Granularity(elsewhere, _smallest(block, (*_UNSEEN, "global"), _SHARED_GRANULE, is_whole=True))
