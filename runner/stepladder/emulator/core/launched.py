"""A kernel that is run alone, without a host that launches it: its launch, its arguments, its inputs.

The kernel is PTX (`emulator.ptx.kernel`) or a function of a module (`core.module_kernel`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import types
from stepladder.emulator.core.emulation import Runnable
from stepladder.emulator.core.granularity import Granularity
from stepladder.emulator.core.program import Function, Program
from stepladder.runtime import host_memory
from stepladder.runtime.bundle import PlainKernel
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.machine import Machine
    from stepladder.emulator.memory.memory import Allocation
    from stepladder.emulator.ptx.arguments import Argument
    from stepladder.runtime.bundle import Manifest

UNWRITTEN = "unwritten-output"


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched: blocks, threads, blocks of a cluster, and bytes of dynamic shared memory.

    `dependent` is whether it may begin before the launch before it has ended (programmatic dependent launch). `early`
    are indices of arguments that it reads before it waits for that one, which does not write them. `triggers_late` is
    whether it lets the next launch begin only after it has waited.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    dynamic: int = 0
    dependent: bool = False
    early: tuple[int, ...] = ()
    triggers_late: bool = False

    @classmethod
    def of_manifest(cls, manifest: Manifest | PlainKernel) -> Launch:
        """Returns the launch that the manifest of a bundle states.

        Args:
            manifest: of a bundle, or what that of a function states of a kernel.
        """
        return cls(
            manifest.grid,
            manifest.block,
            manifest.cluster,
            manifest.dynamic_shared_memory,
            manifest.dependent_launch or bool(manifest.read_early),
            tuple(place for place, item in enumerate(manifest.arguments) if item.role in manifest.read_early),
            bool(manifest.read_early) or (isinstance(manifest, PlainKernel) and manifest.waits_at_start),
        )


class BoundKernel(Runnable):
    """A kernel, its parameters and its launch: all inputs of a run except the elements of arrays.

    Args:
        name: of the kernel, `location` where it is.
        program: that has it.
        granularity: the size of what the sanitizer tracks as one.
        arguments: what it is given, in order.
        launch: how it is launched.

    Attributes:
        function: its name and the types of its arrays, as `core.emulation.Emulation` has them.
    """

    def __init__(
        self,
        name: str,
        location: str,
        program: Program,
        granularity: Granularity,
        arguments: Sequence[Argument],
        launch: Launch,
    ) -> None:
        self.program = program
        self.granularity = granularity
        self.arguments = list(arguments)
        self.launch = launch
        self.function = Function(
            name, (), tuple(argument.type for argument in arguments), attributes={}, location=location
        )

    @abstractmethod
    def begin(self, machine: Machine, inputs: Sequence[np.ndarray]) -> list[Allocation | None]:
        """Launches the kernel.

        Args:
            machine: that executes it.
            inputs: an array for each argument, as `check_inputs` returns them.

        Returns:
            The memory of each argument, None for scalars.
        """

    def random_inputs(self, seed: int) -> list[np.ndarray]:
        """Returns an array for each argument: its stated contents, else normally distributed values or integers of -8
        to 8.

        Args:
            seed: of the generator of random numbers.

        Raises:
            StepladderError: more than there is memory for.
        """
        generator = np.random.default_rng(seed)
        host_memory.require(
            2 * sum(_held(argument.type) for argument in self.arguments),
            f"kernel {self.function.name} with these arguments",
            location=self.function.location,
        )
        inputs = []
        for argument in self.arguments:
            type_ = argument.type
            if isinstance(type_, types.Scalar):
                inputs.append(np.array(argument.value).astype(type_.dtype))
            elif argument.fill:
                inputs.append(argument.filled())
            elif type_.element.is_float:
                inputs.append(generator.standard_normal(type_.static_shape, np.float32).astype(type_.element.dtype))
            else:
                inputs.append(generator.integers(-8, 9, type_.static_shape).astype(type_.element.dtype))
        return inputs

    def check_inputs(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the initial content of each argument: the inputs for arrays, in order, and the values of scalars.

        Args:
            inputs: one for each argument that is memory, of its shape and type.

        Raises:
            StepladderError: another number of them, or another shape or type; the message names what is accepted.
        """
        name, location = self.function.name, self.function.location
        memory = [number for number, argument in enumerate(self.arguments) if argument.is_memory]
        if len(inputs) != len(memory):
            raise StepladderError(
                f"kernel {name} takes {len(memory)} arrays, and {len(inputs)} inputs were given", location=location
            )
        arrays = [np.array(argument.value).astype(argument.type.element.dtype) for argument in self.arguments]
        for number, array in zip(memory, inputs):
            type_ = self.arguments[number].type
            dtype = type_.element.dtype
            if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
                array = array.view(dtype)  # files of NumPy know the types of ml_dtypes as bytes only
            if tuple(array.shape) != tuple(type_.shape) or array.dtype != dtype:
                raise StepladderError(
                    f"input {memory.index(number)} is {'x'.join(map(str, array.shape))} of {array.dtype}, and argument "
                    f"{number} of kernel {name} is {'x'.join(map(str, type_.shape))} of {dtype}",
                    location=location,
                )
            arrays[number] = array
        return arrays

    def execute(self, machine: Machine, inputs: Sequence) -> tuple[list[np.ndarray | None], list]:
        """Launches the kernel and reads its arguments.

        Args:
            machine: that executes it.
            inputs: an array for each argument, as `check_inputs` returns them.

        Returns:
            The content of each argument after the run (None for scalars), and no results.
        """
        with np.errstate(all="ignore"):
            allocations = self.begin(machine, inputs)
        contents: list[np.ndarray | None] = []
        for number, (argument, allocation) in enumerate(zip(self.arguments, allocations)):
            contents.append(None if allocation is None else argument.held(allocation))
            if allocation is not None and argument.is_output and machine.sanitize:
                _check_written(machine, number, argument, allocation)
        return contents, []


def _check_written(machine: Machine, number: int, argument: Argument, allocation: Allocation) -> None:
    """Adds a finding where an output has elements that no thread and no copy has written."""
    granules = allocation.ever_written
    places = argument.positions()
    is_written = np.zeros(places.shape, bool)
    if granules is not None:
        is_written = granules[places * argument.type.element.bytes // machine.granularity.elsewhere]
    missing = np.argwhere(~is_written)
    if len(missing):
        machine.findings.add(
            UNWRITTEN,
            f"argument{number}: {len(missing)} of {is_written.size} elements are never written; the first is "
            f"[{', '.join(map(str, missing[0]))}]",
        )


def _held(type_: types.Buffer | types.Scalar) -> int:
    return math.prod(type_.static_shape) * type_.element.bytes
