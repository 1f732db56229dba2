"""Modules of PyTorch whose inputs have dynamic dimensions: exported once, and lowered for each set of shapes.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api.by_shape import Argument
from stepladder.api.errors import ArgumentError
from stepladder.api.torch_aliases import Traced
from stepladder.api.torch_export import Module, check_examples, export
from stepladder.api.torch_lowering import first_line
from stepladder.api.torch_objects import Objects
from stepladder.api.torch_structure import Form, Structure
from stepladder.api.views import view_of
from stepladder.runtime.errors import StepladderError


class DynamicModule:
    """A module as `torch.export` exports it with dynamic dimensions; each set of shapes is exported of this graph.

    Args:
        program: the `torch.export.ExportedProgram`.
        inputs: structure of the inputs.
        examples: the tensors in it.

    Attributes:
        arguments: the inputs, of which some dimensions may differ.
    """

    def __init__(self, program: Any, inputs: Structure, examples: Sequence[torch.Tensor]) -> None:  # noqa: ANN401
        self._graph = program.module()
        self._inputs = inputs
        self._like = [(tensor.dtype, tensor.device) for tensor in examples]
        names = program.graph_signature.user_inputs
        values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
        symbolic = [values[name] for name in names if isinstance(values.get(name), torch.Tensor)]
        self.arguments = [
            Argument(
                f"input {number}",
                view_of(f"input {number}", _signless(tensor.detach()), None).type,
                tuple(extent if isinstance(extent, int) else None for extent in value.shape),
            )
            for number, (tensor, value) in enumerate(zip(examples, symbolic))
        ]

    def tensors(self, inputs: Sequence[object]) -> list[torch.Tensor]:
        """Returns the tensors in the inputs of a call.

        Args:
            inputs: the inputs.

        Raises:
            ArgumentError: as `Structure.tensors_of`.
        """
        return [_signless(tensor) for tensor in self._inputs.tensors_of(inputs)]

    def of(self, shapes: Sequence[tuple[int, ...]]) -> tuple[str, Module]:
        """Returns the module for inputs of some shapes; result as of `export`.

        Args:
            shapes: of the tensors in the inputs.

        Raises:
            StepladderError: as `export`; shapes that the exported graph excludes.
        """
        examples = (torch.empty(shape, dtype=type_, device=on) for shape, (type_, on) in zip(shapes, self._like))
        return export(self._graph, self._inputs.filled(list(examples)))


def _signless(tensor: torch.Tensor) -> torch.Tensor:
    return Form(tensor.dtype, None).taken(tensor)


def dynamic(module: torch.nn.Module, example_inputs: Sequence[object], dynamic_shapes: object) -> DynamicModule:
    """Returns a module that is exported with dynamic dimensions.

    Args:
        module: computes tensors; what it becomes later does not matter, but for the scalars in its parameters.
        example_inputs: what it is called with.
        dynamic_shapes: as of `torch.export`.

    Raises:
        StepladderError: as `torch.export`, for shapes that do not fit the inputs or that the module fixes.
    """
    check_examples(example_inputs)
    if not isinstance(dynamic_shapes, (dict, tuple, list)):
        raise ArgumentError(
            f"argument 'dynamic_shapes' is a {type(dynamic_shapes).__name__}; accepted: for each input a dictionary of "
            "its dynamic dimensions, or None, as torch.export takes them"
        )
    inputs, examples = Structure.of(tuple(example_inputs))
    values = inputs.filled([item.detach() for item in examples])
    objects, mode = Objects(module, inputs.leaves), Traced((), ())
    try:
        with mode:
            program = torch.export.export(module, values, dynamic_shapes=dynamic_shapes, strict=False)
        objects.check()
    except StepladderError:
        raise
    except Exception as error:  # of torch.export, of many kinds
        raise StepladderError(
            f"the module is not exported with these dynamic_shapes: {first_line(error)}",
            notes=[line.strip() for line in str(error).splitlines()[1:] if line.strip().startswith("-")][:4],
        ) from error
    finally:
        objects.restore()
        mode.restore()
    return DynamicModule(program, inputs, examples)
