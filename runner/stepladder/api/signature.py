"""The signature of a kernel: its arguments in the order of its callers, and the checks of the arguments of a call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.api.errors import ArgumentError, shape_text
from stepladder.api.scalars import is_number, view_of_number
from stepladder.api.spec import MatmulSpec
from stepladder.api.views import View, as_signed, is_array, row_major, same_strides, view_of
from stepladder.runtime.bundle import Bundle
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem, epilogue_role
from stepladder.runtime.reference import Argument
from stepladder.runtime.reference_signs import without_sign

# Kernels read and write 16 bytes at once, and TMA wants as much.
ALIGNMENT = 16


def check_alignment(view: View) -> None:
    """Checks the address of an array on a GPU.

    Args:
        view: of an array; one in host memory may begin anywhere.

    Raises:
        ArgumentError: it is no multiple of what kernels read at once.
    """
    if view.address % ALIGNMENT and view.device is not None:
        raise ArgumentError(
            f"argument '{view.name}' begins at address {view.address:#x}; accepted: multiples of {ALIGNMENT} bytes"
        )


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: an array or a scalar.

    Attributes:
        name: for messages, and of the keyword of `out`.
        role: which operand it is: `a`, `b`, `ab` for both, `c`, `d0` and so on; None where the kernel does not take it.
        type: MLIR's name of the element type.
        shape: extents.
        strides: in elements.
        by_value: whether it is a scalar, which a launch passes.
        has_sign: whether an op may read the sign of integers; of others, unsigned arrays of NumPy are accepted too.
    """

    name: str
    role: str | None
    type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    by_value: bool = False
    has_sign: bool = True

    def accepted(self, value: object) -> object:
        """Returns what the caller passed, as a signed array where it is an unsigned one whose sign no op reads.

        Args:
            value: what the caller passed.
        """
        return value if self.has_sign else as_signed(value)

    def view(self, value: object, stream: int | None) -> View:
        """Returns the view of an argument, checked.

        Args:
            value: what the caller passed.
            stream: handle of the stream that will read it; None for the one that its library uses now.

        Raises:
            ArgumentError: as `view_of_number`, `view_of` and `check`.
        """
        if self.by_value:
            try:
                return view_of_number(self.name, value, self.type)
            except ArgumentError:
                if self.role is not None or not is_array(value):
                    raise
        if not self.shape and is_number(value):  # in host memory, beside arrays there
            return view_of_number(self.name, value, self.type)
        view = view_of(self.name, self.accepted(value), stream)
        self.check(view)
        return view

    def check(self, view: View) -> None:
        """Checks an argument.

        Args:
            view: of what the caller passed.

        Raises:
            ArgumentError: another type, shape, strides or alignment; says what is accepted.
        """
        if view.type != self.type:
            raise ArgumentError(f"argument '{self.name}' has elements of {view.type}; accepted: {self.type}")
        if view.shape != self.shape:
            raise ArgumentError(
                f"argument '{self.name}' is {shape_text(view.shape)}; accepted: {shape_text(self.shape)}"
            )
        if not same_strides(self.shape, view.strides, self.strides):
            layout = "contiguous, row-major" if self.strides == row_major(self.shape) else f"strides {self.strides}"
            raise ArgumentError(
                f"argument '{self.name}' has strides {view.strides} in elements; accepted: {layout}",
                notes=["a copy with these strides is made by the caller, for example by np.ascontiguousarray(x)"],
            )
        check_alignment(view)


@dataclass(frozen=True)
class Signature:
    """The arguments that a kernel is called with.

    Attributes:
        inputs: in the order of the call; also C, where the sums start from it.
        out: C, which the kernel writes.
        reads_out: whether C matters before: the kernel reads what it held, or leaves a part of its buffer as it is.
        initial: index of the input that C's first content comes from; None where it is `out` itself.
        further: the results beside C, in the order of their roles.
        c_place: number of C among all results, as the function has them.
    """

    inputs: tuple[Parameter, ...]
    out: Parameter
    reads_out: bool = False
    initial: int | None = None
    further: tuple[Parameter, ...] = ()
    c_place: int = 0

    @property
    def has_numbers(self) -> bool:
        """Whether a launch passes scalars."""
        return any(item.by_value for item in self.inputs)

    def memory(self, views: Sequence[View]) -> list[View]:
        """Returns the views of arrays, without scalars.

        Args:
            views: of the inputs.
        """
        return [view for item, view in zip(self.inputs, views) if not item.by_value]

    @property
    def results(self) -> tuple[Parameter, ...]:
        """C and the results beside it, in the function's order."""
        return (*self.further[: self.c_place], self.out, *self.further[self.c_place :])

    def check_overlap(self, views: Sequence[View], out: View, further: Sequence[View] = ()) -> None:
        """Refuses an `out`, or a result beside it, that shares memory with an input or another result.

        Args:
            views: of the inputs.
            out: of C.
            further: of the results beside C.

        Raises:
            ArgumentError: names the two arguments.
        """
        for number, view in enumerate(further):
            Signature((), self.out).check_overlap([*views, out, *further[:number]], view)
        if not out.is_writable:
            raise ArgumentError("argument 'out' is read-only; accepted: an array that can be written")
        end = out.address + out.size
        for number, view in enumerate(views):
            if view.address >= end or out.address >= view.address + view.size or view.device != out.device:
                continue
            if number == self.initial and view.address == out.address:
                continue
            raise ArgumentError(
                f"argument 'out' overlaps argument '{view.name}' in memory; accepted: memory that does not overlap"
            )


def of_spec(spec: MatmulSpec) -> Signature:
    """Returns the signature of a matmul: A (m x k), B (k x n), operands of the epilogue, and C as `out`.

    Args:
        spec: of sizes, types and layouts, and the epilogue.
    """

    def operand(name: str, rows: int, columns: int, layout: str, role: str) -> Parameter:
        shape, strides = (rows, columns), (columns, 1) if layout == "row" else (1, rows)
        if spec.batch is not None:
            shape = (spec.batch, *shape)
            strides = (0 if role in spec.broadcast else rows * columns, *strides)
        return Parameter(name, role, spec.a_type, shape, strides)

    inputs = [
        operand("a", spec.m, spec.k, spec.a_layout, "a"),
        operand("b", spec.k, spec.n, spec.b_layout, "b"),
    ]
    for number, item in enumerate(spec.epilogue.operands if spec.epilogue is not None else ()):
        role = epilogue_role(number)
        inputs.append(Parameter(role, role, item.type, item.shape, row_major(item.shape)))
    shape = (spec.m, spec.n) if spec.batch is None else (spec.batch, spec.m, spec.n)
    out = Parameter("out", "c", spec.stored, shape, row_major(shape))
    return Signature(tuple(inputs), out, spec.accumulate)


def of_bundle(bundle: Bundle) -> Signature:
    """Returns the signature of a payload's function: its arguments in order, and C as `out`.

    A buffer that the function writes and does not read is no input: it is `out`.

    Args:
        bundle: of a payload.

    Raises:
        StepladderError: a bundle without reference program, which has the function's arguments.
    """
    program = bundle.reference
    if program is None:
        raise StepladderError(f"'{bundle.path}' has no reference program, which describes its arguments")
    problem = bundle.manifest.problem
    numbers = {role for role in problem.epilogue_roles if problem.operand(role).by_value}
    constants = {item.role for item in bundle.manifest.all_arguments if item.data is not None}
    if problem.b_is_a and "a" in constants:
        constants.add("ab")
    accumulates = bundle.manifest.problem.accumulate
    roles = bundle.manifest.problem.result_roles
    inputs: list[Parameter] = []
    out: Parameter | None = None
    results: list[str] = []
    further: dict[str, Parameter] = {}
    initial = None
    unsigned = without_sign(program)
    for number, item in enumerate(program.arguments):
        if item.role in constants:
            continue
        shape, strides = _layout_of(item, bundle.manifest.problem)
        # Of what the kernel does not take, the bundle does not say whether it is a scalar or an array of one element.
        by_value = item.role in numbers or (item.role is None and not shape)
        parameter = Parameter(
            f"argument {number}", item.role, item.type, shape, strides, by_value, number not in unsigned
        )
        if item.role is not None and item.after is not None:
            results.append(item.role)
        if item.role in roles:
            further[item.role] = Parameter(
                f"out[{len(results) - 1}]", item.role, item.type, item.shape, parameter.strides
            )
            continue
        if item.role == "c":
            if item.after is not None:
                out = Parameter("out", "c", item.type, shape, strides)
                continue
            initial = len(inputs) if accumulates else None
        inputs.append(parameter)
    for result in program.results:
        if result.role is not None:
            results.append(result.role)
        if result.role in roles:
            name = f"out[{len(results) - 1}]"
            further[result.role] = Parameter(name, result.role, result.type, result.shape, row_major(result.shape))
        if result.role == "c":
            out = Parameter("out", "c", result.type, result.shape, row_major(result.shape))
    if out is None:
        raise StepladderError("the function of the payload has no result")
    # Elements outside of a C that is a part of a larger buffer are unchanged.
    keeps = accumulates or bundle.manifest.problem.is_in_larger
    return Signature(tuple(inputs), out, keeps, initial, tuple(further[role] for role in roles), results.index("c"))


def _layout_of(argument: Argument, problem: Problem) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the extents and strides of an argument in a call: those of a buffer with gaps, of which the reference
    program has the memory from the first element to the last, or of a whole buffer."""
    window = problem.window(argument.role or "")
    if window is None or window.offset or len(window.shape) != 1 or argument.shape != window.shape:
        return argument.shape, row_major(argument.shape)
    return window.extents(getattr(problem, f"{argument.role}_shape")), window.strides


def bytes_of(parameter: Parameter) -> int:
    """Returns the bytes of an array.

    Args:
        parameter: which has the array's type and shape.
    """
    return math.prod(parameter.shape) * element_type(parameter.type).bytes
