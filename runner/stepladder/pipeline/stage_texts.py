"""The functions that become kernels, as separate payloads, and the roles in their names."""

from __future__ import annotations

from stepladder.extension.lib.stages import as_payload, is_private
from stepladder.mlir.bindings import ir
from stepladder.mlir.text import text_of
from stepladder.mlir.traverse import walk
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.run import Run

# The step after which each kernel is a function.
OUTLINED = "outline_elementwise"


def is_matmul(name: str) -> bool:
    """Tells whether a stage is a matmul, by the name of its function.

    Args:
        name: of the outlined function: its number is the last word.
    """
    return kind_named(name) == "matmul"


def is_attention(name: str) -> bool:
    """Tells whether a stage is an attention, by the name of its function.

    Args:
        name: of the outlined function: its number is the last word.
    """
    return kind_named(name) == "attention"


def kind_named(name: str) -> str:
    """Returns what the kernel of a stage computes, by the name of its function: the word before its number.

    Args:
        name: of the outlined function.
    """
    return name.split("_")[-2]


def stage_texts(run: Run) -> dict[str, str]:
    """Returns the functions that are kernels, each as a payload of its own, by name.

    Args:
        run: of the pipeline `functions`, with the IR after every step.
    """
    outlined = parse_payload(next(step.text for step in run.steps if step.name == OUTLINED), OUTLINED)
    texts = {}
    for function in walk(outlined, "func.func"):
        if not is_private(function):
            continue
        name = ir.StringAttr(function.attributes["sym_name"]).value
        alone = as_payload(function, keeps_marks=not is_matmul(name))
        # Equal kernels have one name, so that they are compiled once.
        walk(alone, "func.func")[0].attributes["sym_name"] = ir.StringAttr.get(name.rpartition("_")[0])
        texts[name] = text_of(alone)
    return texts
