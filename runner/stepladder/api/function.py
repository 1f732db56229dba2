"""Compiled functions with several kernels, which are called on arrays."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from stepladder.api import building
from stepladder.api.building import EMULATOR, BuiltFunction, exclusive
from stepladder.api.errors import ArgumentError, not_copied
from stepladder.api.kernel import Device, current_stream, device_of
from stepladder.api.known_tensors import KnownTensors
from stepladder.api.results import copy_onto, empty_like, place_number, stream_of
from stepladder.api.scalars import is_number, view_of_number
from stepladder.api.signature import Parameter, Signature, bytes_of
from stepladder.api.views import View, check_on_host, row_major, view_of
from stepladder.runtime.bundle import FunctionBuffer, FunctionBundle, FunctionManifest
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.reference_signs import without_sign

if TYPE_CHECKING:
    from stepladder.api.gpu_functions import PreparedFunction


class Function:
    """A compiled function with several matmuls, which is called on arrays as a `Kernel` is.

    Made by `stepladder.compile` and `stepladder.load`.

    Args:
        built: the function, in memory.
        device: where it runs on NumPy arrays: `auto` for a GPU, its ordinal, or `emulator`.
        constant_weights: whether no kernel that may still run at a call writes the weights.
        weights: positions in `inputs` of the arguments that may be weights; None for all.

    Attributes:
        inputs, outputs: names, element types, shapes and strides of its arguments and results.
        device, constant_weights: as given.
        kept: indices of the arguments that no kernel that may still run at a call writes.
        in_place: positions in `inputs` of the arguments whose memory results take, by those in `outputs`: a call
            changes these arrays, and returns them.
        updated: positions in `inputs` of the buffers of a payload that it reads and writes, by those of what they hold
            afterwards in `outputs`.
    """

    def __init__(
        self,
        built: BuiltFunction,
        device: Device = "auto",
        *,
        constant_weights: bool = False,
        weights: Collection[int] | None = None,
    ) -> None:
        if isinstance(device, str) and device not in ("auto", EMULATOR):
            raise ArgumentError(f"device = '{device}': accepted are 'auto', '{EMULATOR}', and the ordinal of a GPU")
        self._built = built
        self._bundle = bundle = built.bundle
        self.device = device
        unsigned = without_sign(bundle.reference)
        self.inputs = tuple(
            replace(_parameter(item), has_sign=item.number not in unsigned)
            for _, item in bundle.manifest.of_kind("argument")
        )
        results = [item for _, item in bundle.manifest.of_kind("result")]
        self.outputs = tuple(
            _parameter(item, "out" if len(results) == 1 else f"out[{number}]") for number, item in enumerate(results)
        )
        places = [place for place, _ in bundle.manifest.of_kind("argument")]
        self.in_place = {
            number: places.index(bundle.manifest.aliases[place])
            for number, (place, _) in enumerate(bundle.manifest.of_kind("result"))
            if place in bundle.manifest.aliases
        }
        self.updated = _updated(bundle)
        self.constant_weights = constant_weights
        numbers = [item.number for _, item in bundle.manifest.of_kind("argument")]
        constant_places = range(len(numbers)) if weights is None else weights
        self.kept = frozenset(numbers[place] for place in constant_places if constant_weights)
        self._prepared: dict[int, PreparedFunction] = {}
        self._tensors = KnownTensors()
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<stepladder.Function {self.manifest.describe()}, for {self.manifest.target}>"

    @property
    def bundle(self) -> FunctionBundle:
        """The function in memory, with its reference program."""
        return self._bundle

    @property
    def manifest(self) -> FunctionManifest:
        """Its buffers and launches, the workspace, and the versions of the tools."""
        return self._bundle.manifest

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the steps that divided the function, in order."""
        return self.manifest.steps

    def ir(self, step: str | None = None) -> str:
        """Returns the function's IR after a step.

        Args:
            step: its name; `input` for the payload; None for the last one.

        Raises:
            ArgumentError: no such step.
        """
        self._built = building.with_dumps(self._built)
        dumps = self._built.dumps
        if dumps is None:
            dumps = {file.name: file.read_text() for file in sorted((self._bundle.path / "ir").glob("*.mlir"))}
        return building.after_step(dumps, step)

    def __reduce__(self) -> NoReturn:
        not_copied(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the function as a bundle, for `stepladder run`, `stepladder bench` and `stepladder.load`.

        Args:
            path: the bundle's folder.

        Raises:
            StepladderError: the path cannot be written, or holds something else; or the function was loaded from a
                bundle, which is the one to copy.
        """
        from stepladder.runtime.bundle import write_function

        self._built = building.with_dumps(self._built)
        if self._built.dumps is None or self._built.stages is None:
            raise StepladderError(f"the function was loaded from '{self._bundle.path}'; copy this folder")
        write_function(path, self._built.bundle, self._built.dumps, self._built.stages)

    def bench(self, *, rounds: int = 7, modes: Sequence[str] = ("burst",)) -> dict[str, Any]:
        """Measures the function on random data, on the GPU, after the check of its results.

        Args:
            rounds: how many.
            modes: `burst`, `sustained`.

        Returns:
            The result, as `stepladder bench --json` writes it.

        Raises:
            StepladderError: no GPU, or the function fails the check.
        """
        from stepladder.measure.functions import bench_function

        return bench_function(self._bundle, rounds=rounds, modes=modes)

    def __call__(self, *arrays: object, out: object = None, stream: object = None) -> Any:  # noqa: ANN401
        """Runs the function.

        Args:
            arrays: of `inputs`, in order; for one without axes, such as a number of a payload, also a number. Arrays
                of `updated`, which the call changes, may be among them or in `out`, and results that are no such
                arrays may follow as the last ones.
            out: the result, or a sequence of the results; new arrays of the same library if None.
            stream: handle or object of the stream to launch on; the one that the arrays' library uses now if None.

        Returns:
            The result, or a tuple of the results.

        Raises:
            ArgumentError: an argument that is not accepted; the message names it.
            CudaError: the driver refuses a launch, or, for NumPy arrays, a kernel fails.
        """
        arrays, out = self._with_buffers(arrays, out)
        buffers = None if out is None else (out,) if len(self.outputs) == 1 else out
        if not self.updated and (
            buffers is None or (isinstance(buffers, (list, tuple)) and len(buffers) == len(self.outputs))
        ):
            fast_results = self._tensors.launch(arrays, None if buffers is None else tuple(buffers), stream)
            if fast_results is not None:
                return fast_results[0] if len(fast_results) == 1 else tuple(fast_results)
        if len(arrays) != len(self.inputs):
            raise ArgumentError(f"{len(arrays)} arrays were passed, and the function takes {len(self.inputs)}")
        handle = None if stream is None else stream_of(stream)
        numbers = {
            place
            for place, (item, array) in enumerate(zip(self.inputs, arrays))
            if not item.shape and is_number(array) and place not in self.in_place.values()
        }
        views = [
            view_of_number(item.name, array, item.type)
            if place in numbers
            else view_of(item.name, item.accepted(array), handle)
            for place, (item, array) in enumerate(zip(self.inputs, arrays))
        ]
        for item, view in zip(self.inputs, views):
            item.check(view)
        in_memory = [view for place, view in enumerate(views) if place not in numbers]
        outs = self._outs(views, in_memory or views, out, handle, stream)
        device = device_of([*in_memory, *outs])
        self._check_overlaps(views, outs)
        if device is None:
            if self.device != EMULATOR:
                check_on_host([*views, *outs])
            self._run_on_host(views, outs)
        elif self.device == EMULATOR:
            raise ArgumentError(f"argument '{views[0].name}' is on a GPU, and the function runs on the emulator")
        else:
            on = stream_of(stream, device) if stream is not None else current_stream(in_memory, outs[0])
            prepared = self._on_gpu(device)
            for place in numbers:
                views[place] = place_number(prepared.gpu, views[place], outs[0], stream, on)
            addresses = self._launch(prepared, views, outs, stream, on)
            if not numbers and not self.updated and (out is not None or not self.in_place):
                self._tensors.remember(arrays, [view.array for view in outs], out is None, prepared, addresses, on)
        results = tuple(view.array for view in outs)
        return results[0] if len(results) == 1 else results

    def _check_overlaps(self, views: Sequence[View], outs: Sequence[View]) -> None:
        """Raises ArgumentError where a result overlaps another array in memory, other than the one that it replaces."""
        for number, (item, view) in enumerate(zip(self.outputs, outs)):
            replaced, updated = self.in_place.get(number), self.updated.get(number)
            if replaced is not None and views[replaced].address != view.address:
                if updated != replaced:
                    raise ArgumentError(
                        f"argument '{item.name}' must be '{self.inputs[replaced].name}', whose memory it takes"
                    )
                replaced = None  # a copy of the array takes its place
            if updated is not None and views[updated].address == view.address:
                replaced = updated
            apart = [place for place in range(len(views)) if place != replaced]
            others = Signature(tuple(self.inputs[place] for place in apart), item)
            others.check_overlap([views[place] for place in apart], view)
            for other in outs[:number]:
                if view.address < other.address + other.size and other.address < view.address + view.size:
                    raise ArgumentError(f"argument '{item.name}' overlaps another result in memory")

    def _launch(
        self, prepared: PreparedFunction, views: Sequence[View], outs: Sequence[View], stream: object, on: int
    ) -> tuple[int, ...]:
        """Launches the function on a stream, and returns the addresses that it was launched on.

        Kernels read the memory of an array that the call changes while they write the result, which is therefore
        written to a new array and copied afterwards, unless it takes the memory of the array. Then another array for
        the result is given the content of that one, and takes its place.
        """
        inputs = list(views)
        for number, place in self.in_place.items():
            if outs[number].address != views[place].address:
                copy_onto(prepared.gpu, outs[number], views[place], bytes_of(self.outputs[number]), on)
                inputs[place] = outs[number]
        updated = {view.address for place, view in enumerate(views) if place in self.updated.values()}
        buffers = [
            empty_like(view, item.type, item.shape, stream)
            if view.address in updated and number not in self.in_place
            else view
            for number, (item, view) in enumerate(zip(self.outputs, outs))
        ]
        addresses = tuple(view.address for view in (*inputs, *buffers))
        prepared.launch(addresses, on)
        for item, view, new in zip(self.outputs, outs, buffers):
            if new is not view:
                copy_onto(prepared.gpu, view, new, bytes_of(item), on)
        return addresses

    def _with_buffers(self, arrays: tuple[object, ...], out: object) -> tuple[tuple[object, ...], object]:
        """Returns the arrays of all inputs, and those of the results: a buffer that the payload reads and writes is
        both, and results may follow the inputs."""
        count, updated, inputs = len(self.outputs), self.updated, len(self.inputs)
        if out is None and len(arrays) in (inputs, inputs + count - len(updated)) and (updated or len(arrays) > inputs):
            rest = iter(arrays[inputs:])
            outs = [arrays[updated[place]] if place in updated else next(rest, None) for place in range(count)]
            return arrays[:inputs], outs[0] if count == 1 else outs
        if not updated or len(arrays) != inputs - len(updated):
            return arrays, out
        if out is None:
            raise ArgumentError(f"argument '{self.outputs[min(updated)].name}' is missing: the function reads it")
        buffers = [out] if count == 1 else out
        if not isinstance(buffers, (list, tuple)) or len(buffers) != count:
            return arrays, out
        all_inputs = list(arrays)
        for number, place in sorted((number, place) for place, number in updated.items()):
            all_inputs.insert(number, buffers[place])
        return tuple(all_inputs), out

    def _outs(
        self, views: Sequence[View], in_memory: Sequence[View], out: object, handle: int | None, stream: object
    ) -> list[View]:
        """Returns views of the results: given ones, checked, or new ones of the library of the first array."""
        if out is None:
            if not views:
                raise ArgumentError("argument 'out' is missing, and there is no argument to tell its library from")
            return [
                views[self.in_place[number]]
                if number in self.in_place
                else empty_like(in_memory[0], item.type, item.shape, stream)
                for number, item in enumerate(self.outputs)
            ]
        buffers: Sequence[object] = [out]
        if len(self.outputs) > 1:
            if not isinstance(out, (list, tuple)) or len(out) != len(self.outputs):
                raise ArgumentError(f"argument 'out' must be a sequence of {len(self.outputs)} arrays")
            buffers = out
        outs = [
            empty_like(in_memory[0], item.type, item.shape, stream)
            if array is None
            else view_of(item.name, array, handle)
            for item, array in zip(self.outputs, buffers)
        ]
        for item, view in zip(self.outputs, outs):
            item.check(view)
        return outs

    def _on_gpu(self, device: int) -> PreparedFunction:
        from stepladder.api.gpu import open_gpu
        from stepladder.api.gpu_functions import PreparedFunction

        with self._lock:
            if device not in self._prepared:
                self._prepared[device] = PreparedFunction(self._bundle, open_gpu(device), self.kept)
            return self._prepared[device]

    def _run_on_host(self, views: Sequence[View], outs: Sequence[View]) -> None:
        """Runs the function on arrays in host memory: on copies on the GPU, or on the emulator."""
        numbers = [item.number for _, item in self.manifest.of_kind("argument")]
        arrays = {number: np.ascontiguousarray(view.host()) for number, view in zip(numbers, views)}
        if self.device == EMULATOR:
            results = self._emulate(arrays)
        else:
            from stepladder.api.gpu import open_gpu
            from stepladder.runtime.function_launch import DeviceFunction

            gpu = open_gpu(self.device if isinstance(self.device, int) else None)
            with gpu.current(), DeviceFunction(gpu.device, self._bundle) as function:
                results = function.run(arrays)
        for view, result in zip(outs, results):
            view.host()[...] = result

    def _emulate(self, arrays: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        from stepladder.emulator.functions import EmulatedFunction

        with exclusive:
            function = EmulatedFunction(self._bundle)
            results = function.run(arrays)
        if function.findings:
            raise StepladderError(
                f"the emulator found {len(function.findings)} faults of the kernels",
                notes=[finding.render() for finding in function.findings[:4]],
                status=FAILED,
            )
        return results


def _updated(bundle: FunctionBundle) -> dict[int, int]:
    """Returns which of the inputs holds which of the results afterwards, by the places of the results."""
    final_values = [bundle.reference.arguments[item.number].after for _, item in bundle.manifest.of_kind("argument")]
    rest = list(enumerate(item.value for item in bundle.reference.results))
    places: dict[int, int] = {}
    for place, value in enumerate(final_values):
        number = next((number for number, result in rest if result == value and number not in places), None)
        if value is not None and number is not None:
            places[number] = place
    return places


def _parameter(buffer: FunctionBuffer, name: str | None = None) -> Parameter:
    return Parameter(
        name or f"argument {buffer.number}", None, buffer.element_type, buffer.shape, row_major(buffer.shape)
    )
