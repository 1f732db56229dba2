"""Modules of PyTorch as linalg on tensors, by `torch.export` and torch-mlir, and how the compiled ones are called.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

from stepladder.api.errors import ArgumentError
from stepladder.api.results import stream_of
from stepladder.api.signature import Parameter
from stepladder.api.torch_aliases import Traced, written_constants
from stepladder.api.torch_lowering import functional, linalg, traced
from stepladder.api.torch_objects import Objects
from stepladder.api.torch_structure import Form, Structure, TensorLeaf, inputs_of, real
from stepladder.api.views import is_array
from stepladder.runtime.errors import StepladderError

_NORMS = (
    *(torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.SyncBatchNorm),
    *(torch.nn.InstanceNorm1d, torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d),
)


class Module:
    """The interface of a compiled module: its inputs, the inputs that it writes, and its results.

    Args:
        state: parameters and buffers, by name; they are read where they are.
        inputs: structure of the inputs.
        examples: the tensors in it.
        results: structure of the results.
        written: indices of the parameters, buffers and inputs that the module writes; what it writes to them is in
            front of the results of the kernels.
        returned: for each tensor that the module returns, the number of the written one that it is, or None.
        parameters: how many of `state`, the first, are parameters.
        types: the element type of each result after those that are written.
        device: of the results of a module without inputs.

    Attributes:
        device: as given.
    """

    def __init__(
        self,
        state: dict[str, torch.Tensor],
        inputs: Structure,
        examples: Sequence[torch.Tensor],
        results: Structure,
        written: Sequence[int] = (),
        returned: Sequence[int | None] = (),
        parameters: int = 0,
        types: Sequence[torch.dtype] = (),
        device: torch.device | None = None,
    ) -> None:
        self.device = device
        self._inputs = inputs
        self._results = results
        # Elements of uint8 are i8 in linalg, whose ops say that they have no sign.
        self._forms = [Form.of(tensor) for tensor in examples]
        self._original = tuple(state.values())
        self._state = tuple(Form.of(tensor).taken(tensor.detach()) for tensor in state.values())
        self._types = tuple(types) if any(_is_viewed(item) for item in types) else ()
        self._names = [*state, *(f"input {number}" for number in range(len(examples)))]
        passed_parameters = [number for number, tensor in enumerate(examples) if isinstance(tensor, torch.nn.Parameter)]
        # The module's own writes happen between two of its calls.
        weights = {*range(parameters), *(len(state) + number for number in passed_parameters)} - {*written}
        self._weights = tuple(sorted(weights))
        is_plain = all(form.is_plain for form in self._forms)
        self._is_plain = is_plain and inputs == Structure.of(tuple(examples))[0]
        self._is_one = (
            not self._types and results.spec == pytree.tree_flatten(examples[0] if examples else torch.empty(0))[1]
        )
        self._written, self._returned = tuple(written), tuple(returned)

    def named(self, parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
        """Returns the arguments of a kernel with the names that the module has for them.

        Args:
            parameters: the kernel's, in order.
        """
        if len(parameters) != len(self._names):
            return tuple(parameters)
        return tuple(dataclasses.replace(item, name=name) for item, name in zip(parameters, self._names))

    def weights(self, arguments: Sequence[object]) -> tuple[int, ...]:
        """Returns the positions of parameters among the arguments of a kernel: the module's, and inputs whose examples
        are parameters.

        Args:
            arguments: the kernel's, in order.
        """
        return self._weights if len(arguments) == len(self._names) else ()

    def arrays(self, inputs: Sequence[object], keywords: Mapping[str, object] | None = None) -> Sequence[object]:
        """Returns the arrays that the kernels take.

        Args:
            inputs: the inputs of a call by position.
            keywords: those by keyword.

        Raises:
            ArgumentError: inputs of another structure than that of the example inputs, or with other constants.
        """
        if self._is_plain and not keywords:
            if len(inputs) != len(self._forms):
                raise ArgumentError(f"{len(inputs)} inputs were passed, and the module takes {len(self._forms)}")
            return (*self._state, *inputs)
        tensors = self._inputs.tensors_of(inputs, keywords)
        for number, (tensor, form) in enumerate(zip(tensors, self._forms)):
            form.check(f"input {number}", tensor)
        return (*self._state, *(form.taken(tensor) for tensor, form in zip(tensors, self._forms)))

    def called(
        self,
        run: Callable[..., Any],
        inputs: Sequence[object],
        out: object,
        stream: object,
        keywords: Mapping[str, object] | None = None,
    ) -> Any:  # noqa: ANN401
        """Calls the kernels, writes the mutated inputs, and returns the results of the module.

        Args:
            run: calls the kernels on arrays.
            inputs: the inputs of a call by position.
            out, stream: of the call.
            keywords: the inputs by keyword.

        Raises:
            ArgumentError: as `arrays` and `run`; an `out` for a module that writes its inputs.
        """
        arrays = self.arrays(inputs, keywords)
        if out is not None and self._types:
            raise ArgumentError("argument 'out' is for modules without results of complex numbers or of uint8")
        if not self._written:
            results = run(*arrays, out=out, stream=stream)
            if self._is_one:
                return results
            return self._results.filled(self._shown(results if isinstance(results, tuple) else (results,)))
        if out is not None:
            raise ArgumentError("argument 'out' is for modules that write none of their inputs and buffers")
        values = run(*arrays, out=None, stream=stream)
        values = values if isinstance(values, tuple) else (values,)
        targets: list[Any] = [arrays[number] for number in self._written]
        with torch.no_grad(), _on(stream, targets[0]):
            for target, value in zip(targets, values):
                target.copy_(value)
        is_plain = self._is_plain and not keywords
        given_tensors = (*self._original, *(inputs if is_plain else self._inputs.tensors_of(inputs, keywords)))
        rest = iter(self._shown(values[len(targets) :]))
        return self._results.filled(
            [next(rest) if place is None else given_tensors[self._written[place]] for place in self._returned]
        )

    def _shown(self, results: Sequence[Any]) -> Sequence[Any]:
        """Returns results of kernels as the module has them."""
        if not self._types:
            return results
        return [
            torch.view_as_complex(tensor) if type_.is_complex else tensor.view(type_) if _is_viewed(type_) else tensor
            for tensor, type_ in zip(results, self._types)
        ]


def _is_viewed(type_: torch.dtype) -> bool:
    """Returns whether kernels write results of a type as those of another one: pairs of values, and i8."""
    return type_.is_complex or type_ is torch.uint8


def _on(stream: object, like: torch.Tensor) -> contextlib.AbstractContextManager[object]:
    """Returns what makes PyTorch work on the stream of a call."""
    if stream is None or like.device.type != "cuda":
        return contextlib.nullcontext()
    return torch.cuda.stream(torch.cuda.ExternalStream(stream_of(stream), device=like.device))


@dataclasses.dataclass
class _Trace:
    """Observations of a module while it is traced.

    Attributes:
        results: structure of the results.
        assigned: indices of the parameters and buffers that it replaces by other tensors.
        returned: for each tensor of the results, the position in the written ones of the one that it is, or None.
        new: the tensors of the results that are none of the written ones.
        mode: has its ops take traced tensors.
    """

    results: Structure | None = None
    assigned: Sequence[int] = ()
    returned: Sequence[int | None] = ()
    new: Sequence[torch.Tensor] = ()
    mode: Traced | None = None


class _Functional(torch.nn.Module):
    """A module as a function of its parameters, its buffers and the tensors in its inputs, which writes none of them.

    Args:
        module: the module.
        names: of its parameters and buffers.
        inputs: structure of the inputs.
        tensors: the parameters and buffers, the tensors that objects hold, and those in the inputs.
        forms: theirs.
        has_named: whether inputs are by keyword.
        written: indices of the tensors that it would write: what it writes there is returned first.
        trace: is filled when the module is called; `torch.export` restores the attributes of modules that it traces.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        names: Sequence[str],
        inputs: Structure,
        tensors: Sequence[torch.Tensor],
        forms: Sequence[Form],
        has_named: bool,
        written: Sequence[int],
        trace: _Trace,
    ) -> None:
        super().__init__()
        self._call = functools.partial(torch.func.functional_call, module)
        self._names, self._inputs, self._written, self._trace = names, inputs, written, trace
        self._forms, self._has_named = forms, has_named
        # No attributes that are tensors: those are constants of the graph.
        self._tensors = lambda: tensors

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        arguments = [form.given(value) for form, value in zip(self._forms, values, strict=True)]
        arguments = [value.clone() if number in self._written else value for number, value in enumerate(arguments)]
        state = dict(zip(self._names, arguments))
        inputs = self._inputs.filled(arguments[len(arguments) - self._inputs.leaves.count(TensorLeaf) :])
        trace = self._trace
        trace.mode = mode = Traced(self._tensors(), arguments)
        with mode:
            result = self._call(state, *inputs) if self._has_named else self._call(state, inputs)
        final_values = [*state.values(), *arguments[len(self._names) :]]
        trace.assigned = [
            number for number, (initial, final) in enumerate(zip(arguments, final_values)) if initial is not final
        ]
        for number in trace.assigned:
            if (
                final_values[number].shape != arguments[number].shape
                or final_values[number].dtype != arguments[number].dtype
            ):
                raise StepladderError(f"the module replaces '{self._names[number]}' by one of another shape or type")
        written = [final_values[number] for number in self._written]
        trace.results, tensors = Structure.of(result)
        tensors = [mode.of(tensor) for tensor in tensors]
        trace.returned = [
            next((place for place, value in enumerate(written) if value is tensor), None) for tensor in tensors
        ]
        trace.new = [tensor for tensor, place in zip(tensors, trace.returned) if place is None]
        written = [self._forms[number].traced(value) for number, value in zip(self._written, written)]
        return (*written, *(real(tensor.resolve_conj()) for tensor in trace.new))


def export(
    module: torch.nn.Module, example_inputs: Sequence[object], keywords: Mapping[str, object] | None = None
) -> tuple[str, Module]:
    """Returns a module as linalg on tensors, a function whose first arguments are its parameters and buffers.

    Args:
        module: computes tensors.
        example_inputs: what it is called with: tensors, also in containers; others are constants.
        keywords: what it is called with by keyword.

    Returns:
        The text, and how it is called.

    Raises:
        StepladderError: torch-mlir is missing, or does not lower the module; the module writes tensors that are no
            inputs and no buffers.
    """
    keywords = keywords or {}
    check_examples(example_inputs)
    check_examples(tuple(keywords.values()))
    _check_mode(module)
    parameters = dict(module.named_parameters())
    state = {**parameters, **dict(module.named_buffers())}
    inputs, examples = Structure.of(inputs_of(example_inputs, keywords))
    held: list[torch.Tensor] = []  # by objects that are no modules
    written: list[int] = []
    objects = Objects(module, inputs.leaves)
    while True:  # what it writes is known when it is traced
        tensors = {**state, **_numbered("tensor", held), **_numbered("input", examples)}
        _check_tensors(tensors)
        # Of their own each: of one tensor for two inputs, `torch.export` makes one input.
        forms = [Form.of(item) for item in tensors.values()]
        values = [form.traced(item.detach()) for form, item in zip(forms, tensors.values())]
        trace = _Trace()
        called = _Functional(module, list(state), inputs, [*tensors.values()], forms, bool(keywords), written, trace)
        try:
            program = traced(called, values)
            objects.check()
        finally:
            objects.restore()
            if trace.mode is not None:
                trace.mode.restore()
        assert trace.mode is not None
        new_held = written_constants(program, values, trace.mode.others)
        if new_held:
            written = [number + len(new_held) * (number >= len(state) + len(held)) for number in written]
            held += new_held
            continue
        program = functional(program, values)
        new_numbers = sorted({*trace.assigned, *_written(program)} - {*written})
        if not new_numbers:
            break
        written += new_numbers
    assert trace.results is not None
    if not program.graph_signature.user_outputs:
        raise StepladderError("the module returns no tensor")
    exported_module = Module(
        {**state, **_numbered("tensor", held)},
        inputs,
        examples,
        trace.results,
        written,
        trace.returned,
        len(parameters),
        [tensor.dtype for tensor in trace.new],
        trace.new[0].device if trace.new else None,
    )
    return linalg(program), exported_module


def _numbered(name: str, tensors: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns tensors by names with their numbers."""
    return {f"{name} {number}": tensor for number, tensor in enumerate(tensors)}


def _check_mode(module: torch.nn.Module) -> None:
    """Refuses batch norms in training mode, which update their statistics."""
    if any(isinstance(item, _NORMS) and item.training and item.track_running_stats for item in module.modules()):
        raise StepladderError(
            "the module has batch norms in training mode, which update their statistics",
            notes=["accepted: a module in eval mode"],
        )


def _written(program: Any) -> list[int]:  # noqa: ANN401
    """Returns the indices of the inputs that a program writes.

    Args:
        program: a `torch.export.ExportedProgram`, of functional ops.

    Raises:
        StepladderError: it writes other tensors.
    """
    signature = program.graph_signature
    if signature.buffers_to_mutate:
        buffers = ", ".join(f"'{name}'" for name in signature.buffers_to_mutate.values())
        raise StepladderError(
            f"the module writes {buffers} in place", notes=["accepted: writes to inputs, and to buffers of the module"]
        )
    inputs = list(signature.user_inputs)
    return [inputs.index(name) for name in signature.user_inputs_to_mutate.values()]


def check_examples(example_inputs: Sequence[object]) -> None:
    """Refuses example inputs that are no sequence, and arrays of other libraries in them.

    Args:
        example_inputs: of `stepladder.compile`.

    Raises:
        ArgumentError: names what is accepted.
    """
    if not isinstance(example_inputs, (tuple, list)):
        raise ArgumentError(
            f"argument 'example_inputs' is a {type(example_inputs).__name__}; accepted: a sequence of what the module "
            "is called with"
        )
    for number, item in enumerate(pytree.tree_leaves(tuple(example_inputs))):
        if is_array(item) and not isinstance(item, torch.Tensor):
            raise ArgumentError(f"argument 'input {number}' is a {type(item).__name__}; accepted: tensors of PyTorch")


def _check_tensors(tensors: Mapping[str, torch.Tensor]) -> None:
    """Refuses tensors that no kernel reads.

    Args:
        tensors: parameters, buffers and example inputs by name.
    """
    for name, tensor in tensors.items():
        if tensor.is_conj():
            raise ArgumentError(f"argument '{name}' is a conjugated view; accepted: x.resolve_conj(), which is a copy")
        if tensor.layout is not torch.strided or tensor.is_meta:
            kind = "on the device 'meta'" if tensor.is_meta else f"a tensor of the layout {tensor.layout}"
            raise ArgumentError(f"argument '{name}' is {kind}; accepted: dense tensors")
