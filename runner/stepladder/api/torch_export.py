"""Modules of PyTorch as linalg on tensors, by `torch.export` and torch-mlir, and how the compiled ones are called.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export.passes import move_to_device_pass  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

from stepladder.api.by_shape import Argument
from stepladder.api.errors import ArgumentError
from stepladder.api.signature import Parameter
from stepladder.api.torch_decompositions import TABLE
from stepladder.api.views import view_of
from stepladder.runtime.errors import StepladderError

_DIAGNOSTIC = re.compile(r"^.*?\berror: (?P<message>.+)$", re.MULTILINE)
_AHEAD = " with the following diagnostics:"
# What torch-mlir writes of ops that linalg does not have, and why no kernel computes them.
_FOREIGN = {
    "tm_tensor": "an op that is neither elementwise nor a reduction",
    "ml_program": "random numbers, which kernels do not draw; accepted: a module in eval mode, without dropout",
}
# Parts of the names of such ops in PyTorch.
_ORDERING = ("sort", "topk", "scatter", "index_put", "index_add", "index_copy", "cum", "nonzero", "unique", "kthvalue")
_INSTEAD = (
    "accepted: elementwise ops, reductions, argmax, views, slices, concatenations, gathers (embedding, gather, "
    "index_select), where, cumsum; the caller computes the others before or after the compiled module"
)


class _Tensor:
    """Stands for a tensor in a structure."""


@dataclasses.dataclass(frozen=True)
class Structure:
    """The structure of a module's inputs or results, as containers around leaves.

    Attributes:
        spec: PyTorch's description of it.
        leaves: the class `_Tensor` for a tensor; what is no tensor as it is.
    """

    spec: Any
    leaves: tuple[object, ...]

    @classmethod
    def of(cls, value: object) -> tuple[Structure, list[torch.Tensor]]:
        """Returns the structure of a value, and its tensors, in order.

        Args:
            value: tensors and others in lists, tuples and dictionaries.
        """
        leaves, spec = pytree.tree_flatten(value)
        kept = tuple(_Tensor if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)
        return cls(spec, kept), [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def tensors_of(self, given: Sequence[object]) -> list[torch.Tensor]:
        """Returns the tensors in the inputs of a call.

        Args:
            given: the inputs.

        Raises:
            ArgumentError: inputs of another structure than that of the example inputs, or with other constants.
        """
        structure, tensors = Structure.of(tuple(given))
        if structure.spec != self.spec:
            raise ArgumentError("the inputs are in other containers than the example inputs that were compiled for")
        for number, (leaf, kept) in enumerate(zip(structure.leaves, self.leaves)):
            if type(leaf) is not type(kept) or leaf != kept:
                found, wanted = ("a tensor" if item is _Tensor else repr(item) for item in (leaf, kept))
                raise ArgumentError(f"input {number} is {found}, and the module is compiled for {wanted}")
        return tensors

    def filled(self, tensors: Sequence[object]) -> Any:  # noqa: ANN401
        """Returns a value of this structure.

        Args:
            tensors: in order.
        """
        rest = iter(tensors)
        return pytree.tree_unflatten([next(rest) if leaf is _Tensor else leaf for leaf in self.leaves], self.spec)


class Module:
    """What a compiled module is called with, and what it returns.

    Args:
        state: parameters and buffers, by name; they are read where they are.
        inputs: structure of the inputs.
        examples: the tensors in it.
        results: structure of the results.
        parameters: how many of `state`, the first, are parameters.
    """

    def __init__(
        self,
        state: dict[str, torch.Tensor],
        inputs: Structure,
        examples: Sequence[torch.Tensor],
        results: Structure,
        parameters: int,
    ) -> None:
        self._inputs = inputs
        self._results = results
        # Elements of uint8 are i8 in linalg, whose ops say that they have no sign.
        self._unsigned = [tensor.dtype is torch.uint8 for tensor in examples]
        self._state = tuple(_signless(tensor) for tensor in state.values())
        self._names = [*state, *(f"input {number}" for number in range(len(examples)))]
        given = [number for number, tensor in enumerate(examples) if isinstance(tensor, torch.nn.Parameter)]
        self._weights = (*range(parameters), *(len(state) + number for number in given))
        self._is_plain = not any(self._unsigned) and inputs == Structure.of(tuple(examples))[0]
        self._is_one = results.spec == pytree.tree_flatten(examples[0] if examples else torch.empty(0))[1]

    def named(self, parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
        """Returns the arguments of a kernel with the names that the module has for them.

        Args:
            parameters: the kernel's, in order.
        """
        if len(parameters) != len(self._names):
            return tuple(parameters)
        return tuple(dataclasses.replace(item, name=name) for item, name in zip(parameters, self._names))

    def weights(self, arguments: Sequence[object]) -> tuple[int, ...]:
        """Returns the places of parameters among the arguments of a kernel: the module's, and inputs whose examples are
        parameters.

        Args:
            arguments: the kernel's, in order.
        """
        return self._weights if len(arguments) == len(self._names) else ()

    def arrays(self, given: Sequence[object]) -> Sequence[object]:
        """Returns the arrays that the kernels take.

        Args:
            given: the inputs of a call.

        Raises:
            ArgumentError: inputs of another structure than that of the example inputs, or with other constants.
        """
        if self._is_plain:
            return (*self._state, *given)
        tensors = self._inputs.tensors_of(given)
        for number, (tensor, is_unsigned) in enumerate(zip(tensors, self._unsigned)):
            if is_unsigned != (tensor.dtype is torch.uint8):
                wanted = "uint8" if is_unsigned else "the type of the example input"
                raise ArgumentError(f"argument 'input {number}' has elements of {tensor.dtype}; accepted: {wanted}")
        return (*self._state, *map(_signless, tensors))

    def returned(self, results: Any) -> Any:  # noqa: ANN401
        """Returns the results in the structure that the module returns.

        Args:
            results: of the kernels: a tensor, or a tuple of several.
        """
        if self._is_one:
            return results
        return self._results.filled(results if isinstance(results, tuple) else (results,))


def _signless(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(torch.int8) if tensor.dtype is torch.uint8 else tensor


def export(module: torch.nn.Module, example_inputs: Sequence[object]) -> tuple[str, Module]:
    """Returns a module as linalg on tensors, a function whose first arguments are its parameters and buffers.

    Args:
        module: computes tensors.
        example_inputs: what it is called with: tensors, also in containers; others are constants.

    Returns:
        The text, and how it is called.

    Raises:
        StepladderError: torch-mlir is missing, or does not lower the module; the module writes its inputs or buffers.
    """
    _check_examples(example_inputs)
    parameters = dict(module.named_parameters())
    state = {**parameters, **dict(module.named_buffers())}
    names = list(state)
    inputs, examples = Structure.of(tuple(example_inputs))
    found: list[Structure] = []

    class Functional(torch.nn.Module):
        def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
            own = dict(zip(names, values[: len(names)]))
            result = torch.func.functional_call(module, own, inputs.filled(values[len(names) :]))
            structure, tensors = Structure.of(result)
            found.append(structure)
            return tuple(tensors)

    try:
        fx = importlib.import_module("torch_mlir.fx")
    except ImportError as error:
        raise StepladderError(f"a torch.nn.Module is compiled by torch-mlir, which is missing ({error})") from error
    try:
        # Of their own each: of one tensor for two inputs, `torch.export` makes one input.
        values = [item.detach() for item in (*state.values(), *examples)]
        program = torch.export.export(Functional(), tuple(values), strict=False)
        # Ops name the GPU that they are traced on, and PyTorch has kernels of its own for it; torch-mlir knows neither.
        program = move_to_device_pass(program, "cpu")
        table = {**fx.get_decomposition_table(), **TABLE}
        program = program.run_decompositions(table)
        _check(program, [*names, *(f"input {number}" for number in range(len(examples)))])
        # An empty table: what is decomposed is not decomposed again.
        lowered = fx.export_and_import(program, output_type="linalg-on-tensors", decomposition_table={})
    except StepladderError:
        raise
    except AssertionError as error:
        excluded = _first(error).removeprefix("Guard failed: ")
        if excluded == _first(error):
            raise
        raise ArgumentError(f"the inputs have shapes that the module was exported without: not {excluded}") from error
    except Exception as error:  # of torch.export and torch-mlir, of many kinds
        raise StepladderError(f"the module is not lowered by torch.export and torch-mlir: {_first(error)}") from error
    text = str(lowered)
    for dialect, what in _FOREIGN.items():
        if re.search(rf"\b{dialect}\.\w", text):
            names = dict.fromkeys(str(node.target) for node in program.graph.nodes if node.op == "call_function")
            named = [f"'{name}'" for name in names if any(part in name for part in _ORDERING)]
            if dialect == "tm_tensor" and named:
                what = f"{', '.join(named)}, {what}"
            raise StepladderError(f"the module has {what}", notes=[_INSTEAD] if dialect == "tm_tensor" else [])
    own = {name: tensor.detach() for name, tensor in state.items()}
    return text, Module(own, inputs, examples, found[-1], len(parameters))


def _check_examples(example_inputs: Sequence[object]) -> None:
    if not isinstance(example_inputs, (tuple, list)):
        raise ArgumentError(
            f"argument 'example_inputs' is a {type(example_inputs).__name__}; accepted: a sequence of what the module "
            "is called with"
        )


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

    def tensors(self, given: Sequence[object]) -> list[torch.Tensor]:
        """Returns the tensors in the inputs of a call.

        Args:
            given: the inputs.

        Raises:
            ArgumentError: as `Structure.tensors_of`.
        """
        return [_signless(tensor) for tensor in self._inputs.tensors_of(given)]

    def of(self, shapes: Sequence[tuple[int, ...]]) -> tuple[str, Module]:
        """Returns the module for inputs of some shapes; result as of `export`.

        Args:
            shapes: of the tensors in the inputs.

        Raises:
            StepladderError: as `export`; shapes that the exported graph excludes.
        """
        made = (torch.empty(shape, dtype=type_, device=on) for shape, (type_, on) in zip(shapes, self._like))
        return export(self._graph, self._inputs.filled(list(made)))


def dynamic(module: torch.nn.Module, example_inputs: Sequence[object], dynamic_shapes: object) -> DynamicModule:
    """Returns a module that is exported with dynamic dimensions.

    Args:
        module: computes tensors; what it becomes later does not matter, but for the numbers in its parameters.
        example_inputs: what it is called with.
        dynamic_shapes: as of `torch.export`.

    Raises:
        StepladderError: as `torch.export`, for shapes that do not fit the inputs or that the module fixes.
    """
    _check_examples(example_inputs)
    if not isinstance(dynamic_shapes, (dict, tuple, list)):
        raise ArgumentError(
            f"argument 'dynamic_shapes' is a {type(dynamic_shapes).__name__}; accepted: for each input a dictionary of "
            "its dynamic dimensions, or None, as torch.export takes them"
        )
    inputs, examples = Structure.of(tuple(example_inputs))
    values = inputs.filled([item.detach() for item in examples])
    try:
        program = torch.export.export(module, values, dynamic_shapes=dynamic_shapes, strict=False)
    except Exception as error:  # of torch.export, of many kinds
        raise StepladderError(
            f"the module is not exported with these dynamic_shapes: {_first(error)}",
            notes=[line.strip() for line in str(error).splitlines()[1:] if line.strip().startswith("-")][:4],
        ) from error
    return DynamicModule(program, inputs, examples)


def _check(program: Any, names: Sequence[str]) -> None:  # noqa: ANN401
    """Refuses a program that writes what it is given, and one that returns nothing.

    Args:
        program: a `torch.export.ExportedProgram`, of functional ops.
        names: of its inputs.

    Raises:
        StepladderError: names what it writes.
    """
    signature = program.graph_signature
    written = [*signature.user_inputs_to_mutate.values(), *signature.buffers_to_mutate.values()]
    if written:
        inputs = list(signature.user_inputs)
        named = [f"'{names[inputs.index(item)]}'" if item in inputs else f"'{item}'" for item in written]
        raise StepladderError(
            f"the module writes {', '.join(named)} in place",
            notes=["accepted: a module that returns what it computes; batch norms in eval mode"],
        )
    if not signature.user_outputs:
        raise StepladderError("the module returns no tensor")


def _first(error: Exception) -> str:
    """Returns the first error of a message of many lines."""
    text = str(error).strip()
    found = _DIAGNOSTIC.search(text)
    if found:
        return found["message"]
    first = (text.splitlines() or [type(error).__name__])[0]
    return first.replace(_AHEAD, "; torch-mlir wrote its diagnostics to the standard error")
