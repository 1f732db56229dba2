"""Executes a module, from its inputs to its outputs."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator import MAX_STEPS, dialects
from stepladder.emulator.core import elements, types
from stepladder.emulator.core.granularity import Granularity, granularity_of
from stepladder.emulator.core.machine import Machine
from stepladder.emulator.core.program import Function, Program, build
from stepladder.emulator.hardware import register_operands
from stepladder.emulator.hardware.counters import Counters
from stepladder.emulator.memory import memory
from stepladder.emulator.memory.findings import Finding
from stepladder.emulator.ptx import inline, nvvm_ops
from stepladder.runtime import host_memory
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.timeline import Timeline
    from stepladder.mlir.bindings import ir


# Attributes of functions that a launch runs.
KERNELS = ("gpu.kernel", "kernel", "nvvm.kernel")


@dataclass
class Outcome:
    """The outcome of a run.

    Attributes:
        arguments: what the function's arguments hold afterwards, in order; None for those that are no arrays.
        results: what it returned.
        findings: what it did wrong; none where the sanitizer was off. `left_out` more were found and not kept.
        counters: what it cost.
        steps: instructions that were executed; `seconds`: how long that took.
        output: what the program printed.
        blocks_meet: whether a block has waited for another one, or asked what it had done.
    """

    arguments: list[np.ndarray | None]
    results: list
    findings: list[Finding] = field(default_factory=list)
    left_out: int = 0
    counters: Counters | None = None
    steps: int = 0
    seconds: float = 0.0
    output: str = ""
    blocks_meet: bool = False


class Runnable(ABC):
    """A program that can be run again and again, each time from fresh memory.

    Attributes:
        program: what is executed.
        granularity: the size of what the sanitizer tracks as one.
    """

    program: Program
    granularity: Granularity

    @abstractmethod
    def execute(self, machine: Machine, inputs: Sequence) -> tuple[list[np.ndarray | None], list]:
        """Executes the program on a machine.

        Args:
            machine: with fresh memory.
            inputs: for each argument an array of its shape and type, or a scalar.

        Returns:
            The content of each argument after the run (None if it is no array), and the results of the program.
        """

    def run(
        self,
        inputs: Sequence[np.ndarray | int],
        *,
        sanitize: bool = True,
        count: bool = True,
        max_steps: int = MAX_STEPS,
        stops_at_assertions: bool = True,
        progress: Callable[[int, int], None] | None = None,
        timeline: Timeline | None = None,
        reverses_blocks: bool = False,
        processes: int = 1,
    ) -> Outcome:
        """Runs the program.

        Args:
            inputs: for each argument an array of its shape and type, or a scalar; they are not changed.
            sanitize: look for what a program must not do.
            count: count memory traffic and instructions.
            max_steps: stop after so many instructions.
            stops_at_assertions: whether an assertion of the host that does not hold ends the program.
            progress: called with the number of blocks (or clusters) that have ended, and of all.
            timeline: records what is executed and what is in flight.
            reverses_blocks: run the blocks of each launch from the last to the first.
            processes: that may run the blocks of a launch at once (`core.processes`).

        Returns:
            The results, the arguments after the run, the findings and the counters.

        Raises:
            StepladderError: a form of an op that the emulator does not support; more than `max_steps`.
        """
        began = time.perf_counter()
        machine = Machine(
            self.program,
            sanitize=sanitize,
            counters=Counters() if count else None,
            max_steps=max_steps,
            granularity=self.granularity,
            progress=progress,
            stops_at_assertions=stops_at_assertions,
            timeline=timeline,
            reverses_blocks=reverses_blocks,
            parts=processes,
        )
        arguments, results = self.execute(machine, inputs)
        return Outcome(
            arguments,
            results,
            list(machine.findings),
            machine.findings.left_out,
            machine.counters,
            machine.steps,
            time.perf_counter() - began,
            "".join(machine.output),
            machine.blocks_meet,
        )


class Emulation(Runnable):
    """A module that can be run again and again, each time from fresh memory.

    Args:
        module: of MLIR, in the current context.
        function: the name of the function to run; default: the only one with a body.

    Raises:
        StepladderError: an op that the emulator does not support, or no function to run.
    """

    def __init__(self, module: ir.Module, function: str | None = None, *, name: str = "") -> None:
        types.forget()
        self.program: Program = build(module)
        register_operands.watch(self.program.instructions)
        self.granularity = granularity_of(self.program)
        self.function = _entry(self.program, function, name)

    def random_inputs(self, seed: int) -> list[np.ndarray]:
        """Returns an array for each argument: normally distributed values, or integers of -8 to 8.

        Args:
            seed: of the generator of random numbers.

        Raises:
            StepladderError: an argument of a shape that is not static, or no array; more than there is memory for.
        """
        generator = np.random.default_rng(seed)
        arrays = []
        input_bytes = sum(
            type_.count * type_.element.bytes
            for type_ in self.function.argument_types
            if isinstance(type_, types.Shaped) and None not in type_.shape
        )
        host_memory.require(
            2 * input_bytes,
            f"the arguments of @{self.function.name}, and a copy of them,",
            location=self.function.location,
        )
        for number, type_ in enumerate(self.function.argument_types):
            if not isinstance(type_, types.Shaped) or None in type_.shape:
                raise StepladderError(
                    f"argument {number} of @{self.function.name} has no static shape: give the inputs",
                    location=self.function.location,
                )
            shape = type_.static_shape
            if type_.element.is_float:
                arrays.append(generator.standard_normal(shape, np.float32).astype(type_.element.dtype))
            else:
                arrays.append(generator.integers(-8, 9, shape).astype(type_.element.dtype))
        return arrays

    def check_inputs(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the inputs, in the types of the arguments.

        Args:
            inputs: for each argument an array.

        Raises:
            StepladderError: another number of them, or another shape or type; the message names what is accepted.
        """
        argument_types = self.function.argument_types
        if len(inputs) != len(argument_types):
            raise StepladderError(
                f"@{self.function.name} takes {len(argument_types)} inputs, and {len(inputs)} were given",
                location=self.function.location,
            )
        arrays = []
        for number, (array, type_) in enumerate(zip(inputs, argument_types)):
            if isinstance(type_, types.Opaque):
                raise StepladderError(
                    f"argument {number} of @{self.function.name} is of type {type_.text}, which no input can be given "
                    "for",
                    location=self.function.location,
                )
            shape = "x".join("?" if size is None else str(size) for size in type_.shape)
            fits = len(array.shape) == len(type_.shape) and all(
                size in (None, actual_size) for size, actual_size in zip(type_.shape, array.shape)
            )
            if not fits:
                raise StepladderError(
                    f"input {number} is {'x'.join(map(str, array.shape))}, and argument {number} of "
                    f"@{self.function.name} is {shape}",
                    location=self.function.location,
                )
            # Files of NumPy know the types of ml_dtypes as bytes only.
            if array.dtype.kind == "V" and array.dtype.itemsize == type_.element.dtype.itemsize:
                array = array.view(type_.element.dtype)
            if isinstance(type_, types.Scalar) and type_.is_integer and array.dtype.kind == "i":
                array = array.astype(type_.dtype)
            if array.dtype != type_.element.dtype:
                raise StepladderError(
                    f"input {number} is {array.dtype}, and argument {number} of "
                    f"@{self.function.name} is {type_.element.name}: give an array of "
                    f"{type_.element.dtype}",
                    location=self.function.location,
                )
            arrays.append(array)
        return arrays

    def execute(self, machine: Machine, inputs: Sequence) -> tuple[list[np.ndarray | None], list]:
        """Runs the function on a machine.

        Args:
            machine: with fresh memory.
            inputs: for each argument an array of its shape and type, or a scalar.

        Returns:
            The content of each argument after the run (None if it is no memref), and the results of the function.
        """
        arguments, views = [], []
        for number, (value, type_) in enumerate(zip(inputs, self.function.argument_types)):
            if isinstance(type_, types.Buffer):
                array = np.asarray(value)
                allocation = machine.heap.array(array, f"argument {number}")
                views.append(memory.contiguous(allocation, type_.element, array.shape))
                arguments.append(views[-1])
            else:
                views.append(None)
                if isinstance(type_, types.Scalar) and isinstance(value, np.ndarray):
                    value = elements.plain(value.astype(type_.dtype))
                arguments.append(value)
        results = machine.run(self.function, arguments)
        return [None if view is None else memory.content(view) for view in views], results


def _entry(program: Program, name: str | None, file: str) -> Function:
    kernels = [key for key, it in program.functions.items() if is_kernel(it)]
    functions = {key: it for key, it in program.functions.items() if "::" not in key and key not in kernels}
    notes = [f"functions: {', '.join(functions)}"] if functions else []
    if kernels and (not functions or name is not None):
        notes.append(f"kernels: {', '.join(kernels)}; --kernel, --grid and --block run one alone")
    if name is not None:
        if name not in functions:
            raise StepladderError(f"there is no function @{name} with a body", location=file or None, notes=notes)
        return functions[name]
    public = {key: it for key, it in functions.items() if it.attributes.get("sym_visibility") != "private"}
    functions = public or functions
    if len(functions) != 1:
        raise StepladderError(
            "there is no function with a body to run" if not functions else "there are several functions: name one",
            location=file or None,
            notes=notes,
        )
    return next(iter(functions.values()))


def is_kernel(function: Function) -> bool:
    """Whether a launch runs a function.

    Args:
        function: of a module.
    """
    return any(mark in function.attributes for mark in KERNELS)
