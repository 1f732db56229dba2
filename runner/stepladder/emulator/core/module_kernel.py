"""A kernel of a module (`gpu.func`, `llvm.func`) that is run alone, as `launched.BoundKernel`.

A parameter that is a memref, a pointer to global memory or a TMA descriptor takes an array, an integer, an index or a
floating-point number takes a number. The parameters that a memref was expanded to (two pointers, the offset, sizes and
strides) take one array together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import elements, types
from stepladder.emulator.core.blocks import Blocks
from stepladder.emulator.core.emulation import is_kernel
from stepladder.emulator.core.granularity import granularity_of
from stepladder.emulator.core.launched import BoundKernel, Launch
from stepladder.emulator.core.program import Function, Instruction, build
from stepladder.emulator.dialects.gpu import asked_of, lay_out
from stepladder.emulator.hardware import register_operands
from stepladder.emulator.hardware.launch_limits import check_launch, cluster_of, divides
from stepladder.emulator.memory import pointers
from stepladder.emulator.memory.memory import contiguous
from stepladder.emulator.ptx.arguments import Argument
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import tensor_map_box, tensor_map_fills_nan, tensor_map_swizzle
from stepladder.runtime.errors import StepladderError, suggest

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.machine import Machine
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.memory.memory import Allocation

_POINTERS = ("!llvm.ptr", "!llvm.ptr<1>")
_TENSOR_MAP = "!nvgpu.tensormap.descriptor"
_DESCRIPTOR = 3  # fields of an expanded memref before the sizes: two pointers and the offset


class ModuleKernel:
    """A kernel of a module.

    Args:
        module: of MLIR, in the current context.
        name: of the kernel, with or without the names of the modules that it is in; default: the only one.
        file: that it is in, for messages.

    Attributes:
        name: of the kernel; `location` where it is.

    Raises:
        StepladderError: no such kernel; ops that the emulator does not support, all of them.
    """

    def __init__(self, module: ir.Module, name: str | None, file: str) -> None:
        types.forget()
        self.program = build(module)
        register_operands.watch(self.program.instructions)
        self.function = _kernel(self.program.functions, name, file)
        self.name = self.function.name
        self.location = self.function.location
        self.maps = _tensor_maps(module, self.name)

    def describe_parameters(self) -> str:
        """Returns the types of the parameters."""
        return ", ".join(_text(type_) for type_ in self.function.argument_types) or "none"

    def default_arguments(self) -> list[Argument] | None:
        """Returns arguments for memrefs of static shape, None where a parameter is something else."""
        arguments = []
        for type_ in self.function.argument_types:
            if not isinstance(type_, types.Buffer) or not type_.shape or None in type_.shape:
                return None
            arguments.append(Argument("", types.Buffer(type_.shape, type_.element, (), 0, "global")))
        return arguments

    def bound(self, arguments: Sequence[Argument], launch: Launch) -> BoundKernel:
        """Returns the kernel with arguments and a launch.

        Args:
            arguments: in order; a memref that is expanded to several parameters is one.
            launch: a cluster of one block is replaced by the one that the kernel is compiled for.

        Raises:
            StepladderError: arguments that do not fit the parameters; the message names what is accepted.
        """
        if launch.cluster == (1, 1, 1):
            launch = replace(launch, cluster=cluster_of(self.function.attributes) or launch.cluster)
        if not divides(launch.grid, launch.cluster):
            raise self.refused(
                f"has a grid of {list(launch.grid)}, which clusters of {list(launch.cluster)} do not divide"
            )
        parameters = self.function.argument_types
        counts = _assign(parameters, list(arguments))
        if counts is None:
            raise self.refused(
                f"takes {len(parameters)} arguments, and {len(arguments)} were given: {self.describe_parameters()}"
            )
        bound_arguments, place = [], 0
        for number, (argument, count) in enumerate(zip(arguments, counts)):
            type_ = parameters[place]
            if place in self.maps:
                type_ = types.Opaque(self.maps[place])
            converted = self._expanded(argument) if count > 1 else self._fitted(number, argument, type_)
            bound_arguments.append(converted)
            place += count
        return BoundModuleKernel(self, bound_arguments, counts, launch)

    def refused(self, text: str) -> StepladderError:
        """Returns the error for an argument that the kernel does not accept.

        Args:
            text: the message after the name of the kernel.
        """
        return StepladderError(f"kernel @{self.name} {text}", location=self.location)

    def _expanded(self, argument: Argument) -> Argument:
        return replace(argument, type=_row_major(argument))

    def _fitted(self, number: int, argument: Argument, type_: types.Type) -> Argument:
        """Returns an argument in the layout of a parameter.

        Raises:
            StepladderError: it does not fit; the message names what would.
        """
        accepted_form = None
        if isinstance(type_, types.Buffer) and type_.space in ("global", ""):
            if argument.is_memory and not argument.box and _fits(argument, type_):
                return replace(argument, type=_laid_out(argument, type_))
            sizes = type_.shape or (1,)
            accepted_form = f"an array such as {'x'.join(str(size or 16) for size in sizes)}x{type_.element.name}"
        elif isinstance(type_, types.Scalar):
            if not argument.is_memory and _same_number(argument.type.element, type_):
                return replace(argument, type=type_)
            accepted_form = f"a scalar such as 7:{type_.name}"
        elif isinstance(type_, types.Opaque) and type_.text in _POINTERS:
            if argument.is_memory:
                return replace(argument, type=_row_major(argument))
            accepted_form = "an array such as 64x64xf32, or with a box, such as 64x64xf16[64x64,128b], a TMA descriptor"
        elif isinstance(type_, types.Opaque) and type_.text.startswith(_TENSOR_MAP):
            if argument.is_memory:
                return self._with_box(number, argument, type_.text)
            accepted_form = "an array such as 64x64xf16, for whose TMA descriptor the type has the box"
        if accepted_form is None:
            raise self.refused(f"has the parameter {number} of type {_text(type_)}, which no argument can be given for")
        raise self.refused(
            f"takes {_text(type_)} as argument {number}, and {_given(argument)} was given: give {accepted_form}"
        )

    def _with_box(self, number: int, argument: Argument, text: str) -> Argument:
        box, swizzle = tensor_map_box(text), tensor_map_swizzle(text)
        if len(argument.type.shape) < len(box):
            raise self.refused(f"takes {text} as argument {number}, and an array of fewer dimensions was given")
        box = (1,) * (len(argument.type.shape) - len(box)) + box
        if argument.box and (argument.box, argument.swizzle) != (box, swizzle):
            raise self.refused(
                f"takes {text} as argument {number}, whose box is {'x'.join(map(str, box))} with a swizzle of "
                f"{swizzle} bytes, and {'x'.join(map(str, argument.box))} with {argument.swizzle} was given: the box "
                "can be left out"
            )
        return replace(
            argument, type=_row_major(argument), box=box, swizzle=swizzle, fills_nan=tensor_map_fills_nan(text)
        )


class BoundModuleKernel(BoundKernel):
    """A kernel of a module with its arguments and its launch.

    Args:
        kernel: the kernel.
        arguments: in the layouts of the parameters.
        counts: how many parameters each takes: more than one where it is an expanded memref.
        launch: how it is launched.
    """

    def __init__(
        self, kernel: ModuleKernel, arguments: Sequence[Argument], counts: Sequence[int], launch: Launch
    ) -> None:
        program = kernel.program
        super().__init__(kernel.name, kernel.location, program, granularity_of(program), arguments, launch)
        self.kernel = kernel
        self.counts = list(counts)

    def begin(self, machine: Machine, inputs: Sequence[np.ndarray]) -> list[Allocation | None]:
        """Launches the kernel, unless the launch exceeds what its target can run.

        Args:
            machine: that executes it.
            inputs: an array for each argument, as `check_inputs` returns them.

        Returns:
            The memory of each argument, None for scalars.
        """
        function, launch = self.kernel.function, self.launch
        window, layout = lay_out(function.code, launch.dynamic)
        op = Instruction("launch", _nothing, location=function.location)
        requirements = asked_of(
            function.code, launch.grid, launch.block, launch.cluster, launch.dynamic, function.attributes
        )
        findings = machine.findings if machine.sanitize else None
        is_possible = check_launch(findings, op, requirements, function.attributes, function.chips)
        allocations: list[Allocation | None] = []
        argument_values: list = []
        for number, (argument, array, count) in enumerate(zip(self.arguments, inputs, self.counts)):
            memory = argument.placed(machine, array, f"argument {number}", allocations)
            argument_values += self._passed(number, argument, memory, array, count)
            allocations.append(memory)

        def env_of(group: Group) -> list:
            env: list = [None] * len(group.machine.program.slot_types)
            for slot, value in zip(function.arguments, argument_values):
                env[slot] = value
            return env

        if is_possible:
            machine.launch(function.code, env_of, Blocks(launch.block, launch.grid, launch.cluster, window, layout))
        return allocations

    def _passed(
        self, number: int, argument: Argument, memory: Allocation | None, array: np.ndarray, count: int
    ) -> list[Value]:
        """Returns what the parameters of an argument hold."""
        type_ = argument.type
        if memory is None:
            return [elements.number(array.item() if type_.element.is_integer else array, type_.element)]
        if argument.box:
            descriptor = argument.tensor_map(memory)
            problems = descriptor.problems()
            if problems:
                raise self.kernel.refused(f"is given a TMA descriptor as argument {number} that is none: {problems[0]}")
            return [descriptor]
        assert isinstance(type_, types.Buffer)
        view = contiguous(memory, type_.element, type_.static_shape).view(
            type_.offset or 0, type_.static_shape, [stride or 0 for stride in type_.strides]
        )
        if count > 1:
            return pointers.descriptor(view)
        parameter = self.kernel.function.argument_types[sum(self.counts[:number])]
        if isinstance(parameter, types.Opaque):
            return [pointers.first_element(view)]
        return [view if parameter.shape else view.view(view.offset, (), ())]


def _tensor_maps(module: ir.Module, name: str) -> dict[int, str]:
    """Returns the TMA descriptors that a kernel casts pointers to: their types by index of the parameter."""
    descriptors = {}
    for op in walk(module, "builtin.unrealized_conversion_cast"):
        owner = op.operands[0].owner if len(op.operands) else None
        if isinstance(owner, ir.Block) and str(op.results[0].type).startswith(_TENSOR_MAP):
            names, scope = [], owner.owner
            while scope is not None:
                if "sym_name" in scope.attributes:
                    names.insert(0, ir.StringAttr(scope.attributes["sym_name"]).value)
                scope = scope.parent
            if "::".join(names) == name:
                descriptors[ir.BlockArgument(op.operands[0]).arg_number] = str(op.results[0].type)
    return descriptors


def _nothing(*args: Value) -> None:
    return None


@dataclass(frozen=True)
class _Place:
    """An argument and a parameter that are still to be assigned."""

    argument: int
    parameter: int


def _assign(parameters: Sequence[types.Type], arguments: list[Argument]) -> list[int] | None:
    """Returns how many parameters each argument takes, such that all are taken; None where that is impossible."""
    if len(parameters) == len(arguments):
        return [1] * len(arguments)
    failed_places: set[_Place] = set()

    def rest(place: _Place) -> list[int] | None:
        if place.argument == len(arguments):
            return [] if place.parameter == len(parameters) else None
        if place in failed_places:
            return None
        sizes = [1]
        argument = arguments[place.argument]
        if argument.is_memory and not argument.box:
            fields = _DESCRIPTOR + 2 * len(argument.type.shape)
            if _is_expanded(parameters[place.parameter : place.parameter + fields], fields):
                sizes.insert(0, fields)
        for size in sizes:
            if place.parameter + size <= len(parameters):
                remaining_counts = rest(_Place(place.argument + 1, place.parameter + size))
                if remaining_counts is not None:
                    return [size, *remaining_counts]
        failed_places.add(place)
        return None

    return rest(_Place(0, 0))


def _is_expanded(parameters: Sequence[types.Type], fields: int) -> bool:
    return (
        len(parameters) == fields
        and all(isinstance(type_, types.Opaque) and type_.text in _POINTERS for type_ in parameters[:2])
        and all(isinstance(type_, types.Scalar) and type_.is_integer for type_ in parameters[2:])
    )


def _fits(argument: Argument, type_: types.Buffer) -> bool:
    argument_type = argument.type
    if not type_.shape:  # one element
        return argument_type.element == type_.element and argument_type.shape == (1,)
    return (
        argument_type.element == type_.element
        and len(argument_type.shape) == len(type_.shape)
        and all(size in (None, own) for size, own in zip(type_.shape, argument_type.shape))
    )


def _same_number(actual: types.Scalar, expected: types.Scalar) -> bool:
    return actual == expected or (expected == types.INDEX and actual.is_integer)


def _row_major(argument: Argument) -> types.Buffer:
    shape = argument.type.static_shape
    strides = tuple(int(np.prod(shape[axis + 1 :], dtype=int)) for axis in range(len(shape)))
    return types.Buffer(shape, argument.type.element, strides, 0, "global")


def _laid_out(argument: Argument, type_: types.Buffer) -> types.Buffer:
    """Returns the layout of an array that a memref shows: that of its type, and row-major where that is dynamic."""
    plain = _row_major(argument)
    if not type_.shape:
        return plain
    strides = list(plain.strides)
    if None not in type_.strides:
        strides = list(type_.strides)
    elif any(stride not in (None, own) for stride, own in zip(type_.strides, strides)):
        raise StepladderError(
            f"an array does not fit a memref of strides {[stride or '?' for stride in type_.strides]}: all or none "
            "are to be dynamic"
        )
    return types.Buffer(plain.shape, type_.element, tuple(strides), type_.offset or 0, "global")


def _given(argument: Argument) -> str:
    if not argument.is_memory:
        return f"a number of type {argument.type.element.name}"
    kind = "a TMA descriptor of" if argument.box else "an array"
    return f"{kind} {'x'.join(map(str, argument.type.shape))}x{argument.type.element.name}"


def _text(type_: types.Type) -> str:
    if isinstance(type_, types.Buffer):
        sizes = "".join(f"{'?' if size is None else size}x" for size in type_.shape)
        return f"memref<{sizes}{type_.element.name}{', workgroup' if type_.space == 'shared' else ''}>"
    return types.text_of(type_)


def _kernel(functions: dict[str, Function], name: str | None, file: str) -> Function:
    kernels = {key: it for key, it in functions.items() if is_kernel(it)}
    if not kernels:
        raise StepladderError(
            "there is no kernel: a gpu.func with `kernel`, or an llvm.func with gpu.kernel or nvvm.kernel; a "
            "gpu.launch runs with the function that it is in (--function)",
            location=file,
        )
    notes = [f"kernels: {', '.join(kernels)}"]
    if name is None:
        if len(kernels) > 1:
            raise StepladderError("there are several kernels: select one by --kernel", location=file, notes=notes)
        return next(iter(kernels.values()))
    kernel_name = name.lstrip("@").replace("::@", "::")
    matches = [key for key in kernels if key == kernel_name or key.rsplit("::", 1)[-1] == kernel_name]
    if not matches:
        names = [key.rsplit("::", 1)[-1] for key in kernels]
        raise StepladderError(
            f"there is no kernel @{kernel_name}{suggest(kernel_name, names)}", location=file, notes=notes
        )
    if len(matches) > 1 and kernel_name not in matches:
        raise StepladderError(f"there are several kernels @{kernel_name}: name its module", location=file, notes=notes)
    return kernels[kernel_name if kernel_name in matches else matches[0]]
