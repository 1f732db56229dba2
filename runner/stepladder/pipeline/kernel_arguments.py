"""Arguments of kernels as manifests describe them, and the files with those that are constants of the payload."""

from __future__ import annotations

from stepladder.pipeline.run import Run
from stepladder.runtime import bundle
from stepladder.runtime.problem import Problem


def data_of(run: Run) -> dict[str, bytes]:
    """Returns the content of the files of a bundle with the constants of a payload, by their names.

    Args:
        run: of a pipeline on the payload.
    """
    constants = run.selection.constants if run.selection is not None else {}
    return {_data_file(number): constant.data for number, constant in constants.items()}


def argument_of(run: Run, role: str, problem: Problem, number: int) -> bundle.Argument:
    """Returns the description of a kernel's parameter that is a pointer.

    Args:
        run: of the pipeline.
        role: of the operand.
        problem: that has the operand.
        number: of the function's argument.
    """
    return argument(role, problem, None, constant_file(run, number))


def _data_file(number: int) -> str:
    """Returns the file of a bundle with the data of argument `number` of the function, a constant of the payload."""
    return f"constants/argument{number}.bin"


def constant_file(run: Run, number: int) -> str | None:
    """Returns the file of a bundle with the data of an argument of the function; None where it is no constant.

    Args:
        run: of a pipeline on the payload.
        number: of the argument.
    """
    is_constant = run.selection is not None and number in run.selection.constants
    return _data_file(number) if is_constant else None


def argument(role: str, problem: Problem, descriptor: int | None, data: str | None = None) -> bundle.Argument:
    """Returns the description of an operand of a problem.

    Args:
        role: of the operand.
        problem: that has it.
        descriptor: number of the TMA descriptor that it is read through; None for a pointer.
        data: name of the file with its data; None where it is no constant.
    """
    operand = problem.operand(role)
    return bundle.Argument(
        role.upper(), role, operand.element_type, operand.shape, operand.access, descriptor, data, operand.by_value
    )
