"""vector.print: scalars and vectors, as MLIR's runner prints them."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.host import say
from stepladder.emulator.core.printing import number_text, vector_text
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value, lanes
from stepladder.mlir.printed import keyword

_PUNCTUATION = {"newline": "\n", "comma": ", ", "open": "( ", "close": " )", "no_punctuation": ""}


@executes("vector.print")
def print_(fiber: Fiber, op: Instruction, *values: Value) -> None:
    """Prints a scalar, a vector, a text or punctuation, for each thread."""
    text = ""
    if "stringLiteral" in op.attributes:
        say(fiber, op.attributes["stringLiteral"])
        return
    end = _PUNCTUATION[keyword(op.attributes.get("punctuation", "newline"))]
    for lane in fiber.lanes:
        if values:
            type_ = op.operand_types[0]
            value = lanes(np.asarray(values[0]), fiber.count, type_.rank)[lane]
            text = number_text(value, type_) if isinstance(type_, Scalar) else vector_text(value, type_.element)
        say(fiber, text + end)
