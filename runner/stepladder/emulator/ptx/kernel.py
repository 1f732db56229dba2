"""A kernel in PTX as a program that can be run again and again, each time from fresh memory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator import MAX_STEPS
from stepladder.emulator.core import types as core_types
from stepladder.emulator.core.emulation import Outcome
from stepladder.emulator.core.machine import Machine
from stepladder.emulator.core.program import Builder, Function, Program, all_of
from stepladder.emulator.hardware import registers
from stepladder.emulator.hardware.counters import Counters
from stepladder.emulator.ptx import instructions, syntax, types
from stepladder.emulator.ptx.arguments import Argument
from stepladder.emulator.ptx.flow import Flow
from stepladder.emulator.ptx.scopes import Scope, Slots
from stepladder.emulator.ptx.variables import PARAMETERS, Variables
from stepladder.runtime import host_memory, targets
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group

assert instructions.__name__  # imported for the instructions that it registers

_GRANULE = 4  # bytes that the sanitizer looks at as one, where no access is of fewer
_ACCESSES = ("ld", "st", "atom", "red")
_UNSEEN = ("param", "local", "const")


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched: blocks, threads, blocks of a cluster, and bytes of dynamic shared memory."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    dynamic: int = 0


class Kernel:
    """A kernel of a module.

    Args:
        module: as `parser.parse` returns it.
        name: of the kernel; the only one unless told.
        file: that it is in, for messages.

    Attributes:
        name: of the kernel.
        parameters: the variables that it takes.

    Raises:
        StepladderError: no such kernel; instructions or variables that the emulator does not know, all of them.
    """

    def __init__(self, module: syntax.Module, name: str | None, file: str) -> None:
        self.file = file
        self.module = module
        self.function = _entry(module, name, file)
        self.name = self.function.name
        self.location = f"{file}:{self.function.line}:{self.function.column}"
        self.variables = Variables()
        builder = Builder()
        slots = Slots(builder)
        scope = Scope(slots)
        for variable in (*module.variables, *self.function.parameters):
            builder.location = f"{file}:{variable.line}:{variable.column}"
            self._declare(scope, variable)
        flow = Flow(builder, slots, self._declare, self._locate, lambda statement: statement.mnemonic)
        assert self.function.body is not None
        flow.add(self.function.body, Scope(slots, scope))
        flow.emit(None)
        if builder.errors:
            raise all_of(builder.errors)
        code = builder.code
        self.program = Program(
            {self.name: Function(self.name, (), (), code)}, builder.slot_types, builder.globals, builder.instructions
        )
        self.granule = _granule(self.function.body)

    @property
    def parameters(self) -> list[syntax.Variable]:
        """The parameters, in order."""
        return [variable for variable, _, _ in self.variables.parameters]

    def _locate(self, statement: syntax.Statement) -> str:
        if not statement.line:
            return self.location
        return f"{self.file}:{statement.line}:{statement.column}"

    def _declare(self, scope: Scope, variable: syntax.Variable) -> None:
        try:
            self.variables.declare(scope, variable)
        except StepladderError as error:
            raise StepladderError(error.message, location=f"{self.file}:{variable.line}:{variable.column}") from None

    def check(self, launch: Launch) -> None:
        """Checks a launch against what the kernel says and its target has.

        Raises:
            StepladderError: what does not fit, with what would.
        """
        directives = self.function.directives
        threads = math.prod(launch.block)
        if "maxntid" in directives and threads > math.prod(directives["maxntid"]):
            raise self._refused(f"has at most {math.prod(directives['maxntid'])} threads a block, got {threads}")
        if "reqntid" in directives and threads != math.prod(directives["reqntid"]):
            raise self._refused(f"has {math.prod(directives['reqntid'])} threads a block, got {threads}")
        if threads > targets.THREADS:
            raise self._refused(f"has at most {targets.THREADS} threads a block, as all kernels, got {threads}")
        cluster = (*directives.get("reqnctapercluster", ()), 1, 1, 1)[:3]
        if "reqnctapercluster" in directives and cluster != tuple(launch.cluster):
            raise self._refused(f"is compiled for clusters of {_extents(cluster)}, got {_extents(launch.cluster)}")
        if any(size % of for size, of in zip(launch.grid, launch.cluster)):
            raise self._refused(
                f"has a grid of {_extents(launch.grid)}, which clusters of {_extents(launch.cluster)} do not divide"
            )
        target = targets.TARGETS.get(self.module.target)
        window = self.window(launch)
        if target is not None and window > target.shared_memory:
            raise self._refused(
                f"takes {window} bytes of shared memory a block, and {target.name} has {target.shared_memory}"
            )

    def _refused(self, text: str) -> StepladderError:
        return StepladderError(f"kernel {self.name} {text}", location=self.location)

    def window(self, launch: Launch) -> int:
        """Returns the bytes of shared memory that a block has."""
        return self.variables.shared.dynamic_start + launch.dynamic

    def check_arguments(self, arguments: Sequence[Argument]) -> None:
        """Checks that arguments fit the parameters.

        Raises:
            StepladderError: another number of them, or one of another size; says what would be accepted.
        """
        wanted = self.variables.parameters
        if len(arguments) != len(wanted):
            raise self._refused(
                f"takes {len(wanted)} arguments, and {len(arguments)} were given: {self.describe_parameters()}"
            )
        for number, (argument, (variable, _, size)) in enumerate(zip(arguments, wanted)):
            if argument.bytes != size:
                raise self._refused(
                    f"takes {size} bytes as argument {number} ({variable.declaration()}), and {argument.describe()} "
                    f"is {argument.bytes}"
                )

    def describe_parameters(self) -> str:
        """Returns the parameters' declarations."""
        return ", ".join(variable.declaration() for variable in self.parameters) or "none"

    def bound(self, arguments: Sequence[Argument], launch: Launch) -> BoundKernel:
        """Returns the kernel with arguments and a launch that fit it; raises as `check` and `check_arguments` do."""
        self.check(launch)
        self.check_arguments(arguments)
        return BoundKernel(self, arguments, launch)


class BoundKernel:
    """A kernel, what its parameters are, and how it is launched: what a run needs but for the numbers in its arrays.

    Attributes:
        function: its name and the types of its arrays, as `core.emulation.Emulation` has them.
    """

    def __init__(self, kernel: Kernel, arguments: Sequence[Argument], launch: Launch) -> None:
        self.kernel = kernel
        self.arguments = list(arguments)
        self.launch = launch
        self.function = Function(
            kernel.name,
            (),
            tuple(argument.type for argument in arguments),
            attributes={},
            location=kernel.location,
        )

    def random_inputs(self, seed: int) -> list[np.ndarray]:
        """Returns an array for each parameter: normal numbers, or integers of -8 to 8; its value for a number.

        Raises:
            StepladderError: more than there is memory for.
        """
        generator = np.random.default_rng(seed)
        host_memory.require(2 * sum(_held(argument.type) for argument in self.arguments), "the kernel's arguments")
        found = []
        for argument in self.arguments:
            type_ = argument.type
            if isinstance(type_, core_types.Scalar):
                found.append(np.array(argument.value).astype(type_.dtype))
            elif type_.element.is_float:
                found.append(generator.standard_normal(type_.static_shape, np.float32).astype(type_.element.dtype))
            else:
                found.append(generator.integers(-8, 9, type_.static_shape).astype(type_.element.dtype))
        return found

    def check_inputs(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns what each parameter begins with: the inputs for arrays, in order, and values of numbers.

        Raises:
            StepladderError: another number of them, or one of another shape or type; says what would be accepted.
        """
        memory = [number for number, argument in enumerate(self.arguments) if argument.is_memory]
        if len(inputs) != len(memory):
            raise StepladderError(
                f"kernel {self.kernel.name} takes {len(memory)} arrays, and {len(inputs)} inputs were given",
                location=self.kernel.location,
            )
        found = [np.array(argument.value).astype(argument.type.element.dtype) for argument in self.arguments]
        for number, array in zip(memory, inputs):
            type_ = self.arguments[number].type
            dtype = type_.element.dtype
            if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
                array = array.view(dtype)  # files of NumPy know the types of ml_dtypes as bytes only
            if tuple(array.shape) != tuple(type_.shape) or array.dtype != dtype:
                raise StepladderError(
                    f"input {memory.index(number)} is {'x'.join(map(str, array.shape))} of {array.dtype}, and argument "
                    f"{number} of kernel {self.kernel.name} is {'x'.join(map(str, type_.shape))} of {dtype}",
                    location=self.kernel.location,
                )
            found[number] = array
        return found

    def run(
        self,
        inputs: Sequence[np.ndarray],
        *,
        sanitize: bool = True,
        count: bool = True,
        max_steps: int = MAX_STEPS,
        progress: Callable[[int, int], None] | None = None,
    ) -> Outcome:
        """Runs the kernel.

        Args:
            inputs: for each parameter its array, or its number.
            sanitize: look for races, deadlocks and stray accesses.
            count: count traffic and products.
            max_steps: end with an error after so many instructions.
            progress: called with the number of blocks (or clusters) that have ended, and of all.

        Raises:
            StepladderError: a form of an instruction that the emulator does not know; more than `max_steps`.
        """
        began = time.perf_counter()
        kernel, launch = self.kernel, self.launch
        machine = Machine(
            kernel.program,
            sanitize=sanitize,
            counters=Counters() if count else None,
            max_steps=max_steps,
            granule=kernel.granule,
            progress=progress,
        )
        allocations = self._pass(machine, inputs)
        code = kernel.program.functions[kernel.name].code
        directives = kernel.function.directives
        most, blocks = (directives.get(name, (None,))[0] for name in ("maxnreg", "minnctapersm"))
        layout = {
            "dynamic bytes": launch.dynamic,
            registers.LAUNCHED: registers.at_launch(math.prod(launch.block), most=most, blocks=blocks),
        }

        def env_of(group: Group) -> list:
            return [None] * len(group.machine.program.slot_types)

        with np.errstate(all="ignore"):
            machine.launch(code, env_of, launch.grid, launch.block, launch.cluster, kernel.window(launch), layout)
        return Outcome(
            [
                None if allocation is None else allocation.data[: array.nbytes].view(array.dtype).reshape(array.shape)
                for allocation, array in zip(allocations, inputs)
            ],
            [],
            list(machine.findings),
            machine.findings.left_out,
            machine.counters,
            machine.steps,
            time.perf_counter() - began,
            "".join(machine.output),
        )

    def _pass(self, machine: Machine, inputs: Sequence[np.ndarray]) -> list:
        """Puts arrays to global memory, and what the kernel is given of them to its parameters."""
        variables = self.kernel.variables
        place = machine.heap.allocate(max(1, variables.parameter_bytes), PARAMETERS)
        machine.globals[PARAMETERS] = place
        place.is_array = False
        allocations = []
        for argument, array, (variable, start, size) in zip(self.arguments, inputs, variables.parameters):
            allocation = machine.heap.array(array, argument.name or variable.name) if argument.is_memory else None
            passed = argument.passed(machine, allocation, array, place.address + start)
            place.data[start : start + size] = np.frombuffer(passed, np.uint8)
            allocations.append(allocation)
        return allocations


def _held(type_: core_types.Buffer | core_types.Scalar) -> int:
    return math.prod(type_.static_shape) * type_.element.bytes


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
        text = "there is no kernel (.entry) to run" if not kernels else "there are several kernels: say which"
        raise StepladderError(text, location=file, notes=notes)
    return next(iter(kernels.values()))


def _granule(block: syntax.Block) -> int:
    """Returns the bytes of the smallest access to memory that threads share."""
    smallest = _GRANULE
    for item in block.body:
        if isinstance(item, syntax.Block):
            smallest = min(smallest, _granule(item))
        elif isinstance(item, syntax.Statement) and item.opcode[0] in _ACCESSES:
            found = [types.find(part) for part in item.opcode[1:]]
            if not any(part in _UNSEEN for part in item.opcode):
                smallest = min([smallest, *(type_.bytes for type_ in found if type_ is not None and type_.bits > 1)])
    return smallest


def _extents(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))
