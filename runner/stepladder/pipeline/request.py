"""Requests: which part of a pipeline to run, and with which knobs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stepladder.extension import plugins
from stepladder.pipeline.definition import KnobValue, value_text
from stepladder.runtime.errors import StepladderError

# The knob of kernels that load weights before the preceding kernel has ended.
EARLY_WEIGHTS = "early_weights"
# The knob of when blocks of a kernel let the next one begin.
LAUNCH_TRIGGER = "launch_trigger"


@dataclass(frozen=True)
class Request:
    """A request: which part of a pipeline to run, and with which knobs.

    Attributes:
        pipeline: name of a pipeline of the package, or path of a pipeline file.
        settings: knob -> value as text or number; the other knobs keep their defaults.
        through: name of the last step to run; None for the pipeline's last.
        start: name of the first step to run, where the payload is the IR after the step before it; None for the
            pipeline's first.
        without: names of optimizations to leave out.
        tuned: choose the knobs that `settings` does not give for the payload's problem (`knob_choice`), instead of the
            script's defaults.
        database: a tuning database to choose from first; None for none.
        function: name of the function of the payload to compile; None for the only one, or the only one with a
            contraction.
        gpu: key of the GPU in the cost model to choose for; None for the one that `cost_model.gpu.find` finds.
        constant_weights: whether the kernel is launched behind kernels that do not write its weights, so that it may be
            chosen to load them early (knob `early_weights`).
        in_function: whether other kernels are launched between two launches of the kernel: it may not be chosen to keep
            its operands in the cache from one to the other (knob `launch_trigger`).
        passed_over: how many of the best choices of knobs are not taken, since ptxas makes slow code of them.
    """

    pipeline: str
    settings: Mapping[str, KnobValue] = field(default_factory=dict)
    through: str | None = None
    start: str | None = None
    without: tuple[str, ...] = ()
    tuned: bool = False
    database: Path | None = None
    gpu: str | None = None
    function: str | None = None
    constant_weights: bool = False
    in_function: bool = False
    passed_over: int = 0

    def check_build(self) -> None:
        """Checks that a build can make the request.

        Raises:
            StepladderError: it begins with a step; a build runs a whole pipeline.
        """
        if self.start is not None:
            raise StepladderError(f"a build runs a whole pipeline, and the request begins with step '{self.start}'")

    def command_line(self, payload: str) -> str:
        """Returns the `stepladder-opt` command that makes this request.

        Args:
            payload: path of the payload's file.
        """
        words = ["stepladder-opt", payload, "--pipeline", self.pipeline]
        for option, step in (("--from", self.start), ("--through", self.through)):
            if step:
                words += [option, step]
        if self.function:
            words += ["--function", self.function]
        if self.without:
            words += ["--without", ",".join(self.without)]
        for name, value in self.settings.items():
            words += ["--set", f"{name}={value_text(value)}"]
        for path in plugins.files():
            words += ["--plugin", path]
        return shlex.join(words)
