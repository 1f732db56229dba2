"""The definitions in transform scripts: pipelines, their steps, and the knobs that tune them.

A pipeline is a named sequence, named after its file, that includes steps; a step is a named sequence, named after its
file under `steps/`. `library` reads them from the scripts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.pipeline.expressions import equation
from stepladder.runtime.errors import StepladderError, suggest

if TYPE_CHECKING:  # descriptions of pipelines are kept in a cache, which is read without MLIR
    from stepladder.mlir.bindings import ir

KnobValue = int | str
LARGEST = 2**31 - 1  # value of a knob that lists no options: steps compute with it in indices of 64 bits
Knobs = dict[str, KnobValue]


@dataclass(frozen=True)
class Knob:
    """A tunable parameter of a pipeline.

    Attributes:
        name: in the script and on the command line.
        default: its value where a request gives none.
        options: the values that it accepts; empty where `multiple_of` gives them.
        multiple_of: it accepts the multiples of this number from 0 to `LARGEST`; None where `options` lists the values.
        location: of its op in the script, as `file:line:column`.
        description: one line for `stepladder list knobs`.
    """

    name: str
    default: KnobValue
    options: tuple[KnobValue, ...]
    multiple_of: int | None
    location: str
    description: str = ""

    @property
    def is_boolean(self) -> bool:
        """Whether the knob is true or false."""
        return isinstance(self.default, bool)

    def accepts(self, value: KnobValue) -> bool:
        """Returns whether `value` is among the options.

        Args:
            value: of any type of a knob; a bool is no integer here.
        """
        if self.multiple_of is not None:
            return isinstance(value, int) and 0 <= value <= LARGEST and value % self.multiple_of == 0
        return isinstance(value, bool) == self.is_boolean and value in self.options

    def options_text(self) -> str:
        """Returns the options as a message shows them."""
        if self.multiple_of == 1:
            return f"any number from 0 to {LARGEST}"
        if self.multiple_of is not None:
            return f"any multiple of {self.multiple_of} up to {LARGEST}"
        return ", ".join(value_text(option) for option in self.options)


class KnobError(StepladderError):
    """A knob is set that a pipeline does not have, or to a value that it cannot have.

    Args:
        message: with the name of the pipeline.
        common: the message without it, for several pipelines that refuse the setting.
        knob: its name.
        location, notes: as of other errors.
    """

    def __init__(
        self,
        message: str,
        common: str,
        knob: str,
        *,
        location: str | None = None,
        notes: tuple[str, ...] | list[str] = (),
    ) -> None:
        super().__init__(message, location=location, notes=notes)
        self.common = common
        self.knob = knob


class UnknownKnobError(KnobError):
    """A pipeline does not have a knob that is set."""


class RequirementError(StepladderError):
    """A requirement of a step does not hold, or none of several pipelines has steps whose requirements do."""


def value_text(value: KnobValue) -> str:
    """Returns a knob's value as a user writes it: booleans as `true` and `false`.

    Args:
        value: of a knob.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Condition:
    """When a step in a `transform.tune.alternatives` runs.

    Attributes:
        expression: selects a region.
        region: the number of the step's region: the step runs where `expression` evaluates to it.
        regions: how many regions the op has.
        location: of the op in the script, as `file:line:column`.
    """

    expression: str
    region: int
    regions: int
    location: str = field(compare=False)  # copies of a pipeline have equal conditions

    def describe(self) -> str:
        """Returns the condition as a table shows it: an expression that is true where the step runs."""
        if self.regions > 2:
            return equation(self.expression, self.region)
        return self.expression if self.region == 1 else f"not ({self.expression})"


@dataclass(frozen=True)
class Requirement:
    """A requirement of a step on knobs, payload and target: `condition` is an expression, `message` its text."""

    condition: str
    message: str


@dataclass(frozen=True)
class Step:
    """A step of a pipeline.

    Attributes:
        name: of its named sequence.
        path: the file that defines it.
        optimization: whether it may be left out; a step that is not an optimization is a lowering.
        requires: what must hold where it runs.
        needs: names of the steps without which it cannot run.
        left_out: knob values that hold where it is left out.
        facts: fact of the payload -> expression of its value, in expressions of all steps, where this step runs.
        dialects: the Python-defined dialects that its ops belong to; empty for a step that a stock mlir-opt runs.
        condition: when it runs; None for always.
    """

    name: str
    path: Path
    optimization: bool
    requires: tuple[Requirement, ...]
    needs: tuple[str, ...]
    left_out: Knobs
    facts: Mapping[str, str]
    dialects: tuple[str, ...]
    condition: Condition | None

    def summary(self) -> str:
        """Returns the first sentence of the script's head comment."""
        return head_comment(self.path)


@dataclass
class Pipeline:
    """A pipeline, its steps merged into one transform module.

    Attributes:
        name: of its named sequence and of its file.
        path: the file that defines it.
        parse: returns the transform module and the pipeline's own sequence in it; called when one is first asked for.
        knobs: by name.
        derived: name -> expression, for names that expressions may use beside the knobs.
        steps: in order.
        whole_function: whether a payload is any function on tensors, instead of one matmul.
        program_step: the step that a XeTile program enters at; None for a pipeline that takes none.
        program_knobs: knob -> expression of its value for a XeTile program, unless it is set.
    """

    name: str
    path: Path
    parse: Callable[[], tuple[ir.Module, ir.Operation]] = field(repr=False, compare=False)
    knobs: dict[str, Knob]
    derived: dict[str, str]
    steps: list[Step] = field(default_factory=list)
    whole_function: bool = False
    program_step: str | None = None
    program_knobs: dict[str, str] = field(default_factory=dict)

    @functools.cached_property
    def _parsed(self) -> tuple[ir.Module, ir.Operation]:
        return self.parse()

    @property
    def module(self) -> ir.Module:
        """The transform module, which belongs to the MLIR context that the pipeline was loaded in."""
        return self._parsed[0]

    @property
    def sequence(self) -> ir.Operation:
        """The pipeline's own named sequence in `module`."""
        return self._parsed[1]

    def step(self, name: str) -> Step:
        """Returns the step called `name`.

        Args:
            name: of a step, as `stepladder list steps` prints it.

        Raises:
            StepladderError: no such step; lists the steps of the pipeline.
        """
        for step in self.steps:
            if step.name == name:
                return step
        step_names = [step.name for step in self.steps]
        raise StepladderError(
            f"pipeline '{self.name}' has no step '{name}'{suggest(name, step_names)}",
            notes=[f"its steps are: {', '.join(step_names)}"],
        )

    def summary(self) -> str:
        """Returns the first sentence of the pipeline's head comment."""
        return head_comment(self.path)


def head_comment(path: Path) -> str:
    """Returns the first sentence of the comment that a script begins with.

    Args:
        path: of the script.
    """
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("//"):
            break
        text = line.lstrip("/").strip()
        if not text and lines:
            break
        lines.append(text)
    return re.split(r"(?<=\.)\s", " ".join(lines).strip(), maxsplit=1)[0]
