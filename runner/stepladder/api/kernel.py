"""Compiled kernels that are called on arrays."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from stepladder.api import building, signature
from stepladder.api.building import EMULATOR, Built
from stepladder.api.errors import ArgumentError, not_copied
from stepladder.api.known_tensors import KnownTensors
from stepladder.api.results import copy_onto, empty_like, stream_of
from stepladder.api.scalars import word_of
from stepladder.api.signature import Signature
from stepladder.api.views import View, check_on_host, view_of
from stepladder.runtime.bundle import Manifest
from stepladder.runtime.errors import FAILED, StepladderError

if TYPE_CHECKING:
    from stepladder.api.gpu import LoadedKernel

Device = str | int


class Kernel:
    """A compiled matmul, with its fused elementwise ops, which is called on arrays.

    Made by `stepladder.compile` and `stepladder.load`.

    Args:
        built: the kernel.
        arguments: what it is called with; those of the payload's function if None.
        device: where it runs on NumPy arrays: `auto` for a GPU, its ordinal, or `emulator`.
        constant_weights: whether no kernel that may still run at a call writes the weights.

    Attributes:
        signature: names, element types, shapes and strides of its arguments.
        device, constant_weights: as given.
    """

    def __init__(
        self,
        built: Built,
        arguments: Signature | None = None,
        device: Device = "auto",
        *,
        constant_weights: bool = False,
    ) -> None:
        if isinstance(device, str) and device not in ("auto", EMULATOR):
            raise ArgumentError(f"device = '{device}': accepted are 'auto', '{EMULATOR}', and the ordinal of a GPU")
        self._built = built
        self.signature = arguments or signature.of_bundle(built.bundle)
        self.device = device
        self.constant_weights = constant_weights
        self._loaded: dict[int, LoadedKernel] = {}
        self._tensors = KnownTensors()
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        manifest = self.manifest
        return f"<stepladder.Kernel {manifest.problem.describe()}, {manifest.pipeline} for {manifest.target}>"

    @property
    def built(self) -> Built:
        """The kernel in memory, with the request that it was compiled by."""
        return self._built

    @property
    def manifest(self) -> Manifest:
        """The launch of the kernel, its problem, pipeline, steps, knobs and tool versions."""
        return self._built.bundle.manifest

    @property
    def ptx(self) -> str:
        """The kernel's PTX."""
        return self._built.bundle.ptx

    @property
    def cubin(self) -> bytes:
        """The kernel's machine code."""
        return self._built.bundle.cubin

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the steps that ran, in order."""
        return self.manifest.steps

    def dumps(self) -> Mapping[str, str]:
        """Returns the IR after each step by file name, `00-input.mlir` first; a kernel from the cache runs its pipeline
        again."""
        if self._built.dumps is None:
            dumps = building.dumps_of(self._built)
            self._built = Built(self._built.bundle, self._built.job, dumps)
        return building.dumps_of(self._built)

    def ir(self, step: str | None = None) -> str:
        """Returns the IR after a step.

        Args:
            step: its name; `input` for the payload; None for the last one.

        Raises:
            ArgumentError: no such step.
        """
        return building.after_step(self.dumps(), step)

    def __reduce__(self) -> NoReturn:
        not_copied(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the kernel as a bundle, for `stepladder run`, `stepladder bench` and `stepladder.load`.

        Args:
            path: the bundle's folder.

        Raises:
            StepladderError: the path cannot be written, or holds something else.
        """
        from stepladder.runtime.bundle import write_bundle

        bundle = self._built.bundle
        write_bundle(
            path,
            bundle.manifest,
            bundle.cubin,
            bundle.ptx,
            self.dumps(),
            reference=bundle.reference,
            data=dict(bundle.data),
        )

    def bench(self, *, baseline: str = "none", rounds: int = 7, modes: Sequence[str] = ("burst",)) -> dict[str, Any]:
        """Measures the kernel on random data, on the GPU, after the exact check of its results.

        Args:
            baseline: `cublas`, or `none`.
            rounds: how many.
            modes: `burst`, `sustained`.

        Returns:
            The result, as `stepladder bench --json` writes it.

        Raises:
            StepladderError: no GPU, or the kernel fails the check.
        """
        from stepladder.measure.bench import bench_bundles

        return bench_bundles([self._built.bundle], baseline=baseline, rounds=rounds, modes=modes)

    def __call__(self, *arrays: object, out: object = None, stream: object = None) -> Any:  # noqa: ANN401
        """Runs the kernel.

        Args:
            arrays: of `signature.inputs`, in order; C of a payload that writes it may follow as the last one.
            out: C; a new array of the same library if None. Of a function with several results: a sequence of them.
            stream: handle or object of the stream to launch on; the one that the arrays' library uses now if None.

        Returns:
            C: `out`, or the new array; a tuple of all results where the function has several.

        Raises:
            ArgumentError: an argument that is not accepted; the message names it.
            CudaError: the driver refuses the launch, or, for NumPy arrays, the kernel fails.
        """
        result = self.launch_tensors(arrays, out, stream)
        if result is not None:
            return result
        if self.signature.further:
            return self._call_several(arrays, out, stream)
        inputs = self.signature.inputs
        if out is None and len(arrays) == len(inputs) + 1 and self.signature.initial is None:
            arrays, out = arrays[:-1], arrays[-1]
        handle = None if stream is None else stream_of(stream)
        views = self._input_views(arrays, handle)
        view = None if out is None else view_of("out", out, handle)
        if view is not None:
            self.signature.out.check(view)
        return self.run(views, view, stream, arrays=arrays)

    def _input_views(self, arrays: Sequence[object], handle: int | None) -> list[View]:
        """Returns the views of the inputs, checked."""
        inputs = self.signature.inputs
        if len(arrays) != len(inputs):
            names = ", ".join(item.name for item in inputs)
            kind = "arguments" if self.signature.has_numbers else "arrays"
            raise ArgumentError(f"{len(arrays)} {kind} were passed, and the kernel takes {len(inputs)}: {names}")
        return [item.view(array, handle) for item, array in zip(inputs, arrays)]

    def _call_several(self, arrays: Sequence[object], out: object, stream: object) -> tuple[Any, ...]:
        """Runs a kernel with several results; see `__call__`."""
        results = self.signature.results
        if out is not None and (not isinstance(out, (tuple, list)) or len(out) != len(results)):
            raise ArgumentError(f"argument 'out' must be a sequence of {len(results)} arrays, one for each result")
        buffers = [None] * len(results) if out is None else list(out)
        handle = None if stream is None else stream_of(stream)
        views = self._input_views(arrays, handle)
        outs = []
        memory = self.signature.memory(views)
        for item, array in zip(results, buffers):
            if array is None and item.role == "c" and self.signature.reads_out and self.signature.initial is None:
                raise ArgumentError(f"argument '{item.name}' is missing: the kernel reads it")
            outs.append(
                empty_like(_like(memory), item.type, item.shape, stream)
                if array is None
                else view_of(item.name, array, handle)
            )
            item.check(outs[-1])
        place = self.signature.c_place
        self.run(views, outs[place], stream, further=[*outs[:place], *outs[place + 1 :]])
        return tuple(view.array for view in outs)

    def run(
        self,
        views: Sequence[View],
        out: View | None,
        stream: object = None,
        shape: tuple[int, ...] | None = None,
        arrays: Sequence[object] = (),
        further: Sequence[View] = (),
    ) -> Any:  # noqa: ANN401
        """Runs the kernel on views whose types, sizes and strides were checked; see `__call__`.

        Args:
            views: of the inputs.
            out: of C; None for a new array.
            stream: as for `__call__`.
            shape: of the new array; that of C if None.
            arrays: what the caller passed; a later call on the same tensors of PyTorch is not checked again.
            further: of the results beside C.

        Returns:
            The array of `out`, or the new one.

        Raises:
            ArgumentError: arrays on several devices, an `out` that is missing or overlaps another array, or arrays on a
                GPU for a kernel of the emulator.
        """
        memory = self.signature.memory(views)
        device = device_of([*memory, *further, _like(memory) if out is None else out])
        result = self.signature.out
        is_new = out is None
        if out is None:
            if self.signature.reads_out and self.signature.initial is None:
                raise ArgumentError("argument 'out' is missing: the kernel accumulates into it")
            out = empty_like(_like(memory), result.type, result.shape if shape is None else shape, stream)
        self.signature.check_overlap(views, out, further)
        if device is None:
            if self.device != EMULATOR:
                check_on_host([*memory, out])
            self._run_on_host(views, out, further)
            return out.array
        if self.device == EMULATOR:
            raise ArgumentError(f"argument '{out.name}' is on a GPU, and the kernel runs on the emulator")
        loaded = self._loaded.get(device) or self._load(device)
        handle = stream_of(stream, device) if stream is not None else current_stream(memory, out)
        if self.signature.initial is not None and views[self.signature.initial].address != out.address:
            copy_onto(loaded.gpu, out, views[self.signature.initial], signature.bytes_of(result), handle)
        addresses = self._addresses(views, out, further)
        loaded.launch(addresses, handle)
        if self.signature.initial is None and not further and not self.signature.has_numbers:
            self._tensors.remember(arrays, [out.array], is_new, loaded, addresses, handle)
        return out.array

    def launch_tensors(self, arrays: tuple[object, ...], out: object, stream: object) -> object | None:
        """Launches the kernel on tensors that it was launched on before; returns None, and does nothing, for others.

        Args:
            arrays, out, stream: as for `__call__`.
        """
        results = self._tensors.launch(arrays, None if out is None else (out,), stream)
        return None if results is None else results[0]

    def _addresses(self, views: Sequence[View], out: View, further: Sequence[View]) -> tuple[int, ...]:
        by_role = {"c": out.address}
        by_role |= {item.role: view.address for item, view in zip(self.signature.further, further) if item.role}
        for item, view in zip(self.signature.inputs, views):
            if item.role == "ab":
                by_role["a"] = by_role["b"] = view.address
            elif item.role is not None and item.role != "c":
                by_role[item.role] = word_of(view) if item.by_value else view.address
        return tuple(by_role.get(item.role, 0) for item in self.manifest.operands)

    def _load(self, device: int) -> LoadedKernel:
        from stepladder.api.gpu import LoadedKernel, open_gpu

        with self._lock:
            if device not in self._loaded:
                self._loaded[device] = LoadedKernel(
                    self._built.bundle, open_gpu(device), keeps_early=self.constant_weights
                )
            return self._loaded[device]

    def _run_on_host(self, views: Sequence[View], out: View, further: Sequence[View]) -> None:
        """Runs the kernel on arrays in host memory: on copies on the GPU, or on the emulator."""
        operand = self.manifest.operand
        arrays: dict[str, np.ndarray] = {}
        for item, view in zip(self.signature.inputs, views):
            role = "a" if item.role == "ab" else item.role
            if role is not None:
                arrays[role] = _buffer(view, operand(role).shape)
        initial = arrays.get("c") if self.signature.initial is not None else _buffer(out, operand("c").shape)
        assert initial is not None  # the input that C's first content comes from has C's role
        arrays["c"] = initial
        outputs = {"c": out} | {item.role: view for item, view in zip(self.signature.further, further) if item.role}
        if self.device == EMULATOR:
            results = self._emulate(arrays)
        else:
            from stepladder.api.gpu import open_gpu

            ordinal = self.device if isinstance(self.device, int) else open_gpu().device.ordinal
            loaded = self._loaded.get(ordinal) or self._load(ordinal)
            copies = {role: np.empty(operand(role).shape, view.host().dtype) for role, view in outputs.items()}
            arrays = copies | arrays
            results = loaded.run_on_host_arrays(arrays, list(outputs))
        for view, result in zip(outputs.values(), results):
            view.host()[...] = _elements(result, view)

    def _emulate(self, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
        from stepladder.api.emulated import run

        arrays = {**self._built.bundle.constants(), **arrays}
        results, findings = run(self.dumps(), self._built.bundle, arrays)
        if findings:
            raise StepladderError(
                f"the emulator found {len(findings)} faults of the kernel", notes=findings[:4], status=FAILED
            )
        return results


def _elements(result: np.ndarray, view: View) -> np.ndarray:
    """Returns the elements of a row-major array of a buffer that are those of a view of it."""
    if math.prod(view.shape) == result.size:
        return result.reshape(view.shape)
    return np.lib.stride_tricks.as_strided(result, view.shape, [stride * result.itemsize for stride in view.strides])


def _buffer(view: View, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the elements of an array in the order of its memory, as a row-major array of a buffer's shape; those of
    an array with gaps with what is in them."""
    array = view.host()
    if math.prod(view.shape) < math.prod(shape):
        return np.lib.stride_tricks.as_strided(array, shape, [array.itemsize])
    # An axis that is broadcast has one element in memory.
    array = array[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in view.strides)]
    order = sorted(range(array.ndim), key=lambda axis: -view.strides[axis] if array.shape[axis] > 1 else 0)
    return array.transpose(order).reshape(shape)


def _like(views: Sequence[View]) -> View:
    """Returns the array that a new one is of the library of."""
    if not views:
        raise ArgumentError("argument 'out' is missing, and there is no argument to tell its library from")
    return views[0]


def device_of(views: Sequence[View]) -> int | None:
    """Returns the GPU that all arrays are on; None where all are in host memory.

    Args:
        views: of all arrays, one at least.

    Raises:
        ArgumentError: arrays on several devices.
    """
    device = views[0].device
    for view in views[1:]:
        if view.device != device:
            places = [
                f"'{item.name}' is {'in host memory' if item.device is None else f'on GPU {item.device}'}"
                for item in (views[0], view)
            ]
            raise ArgumentError(f"argument {' and '.join(places)}; accepted: all arrays on one device")
    return device


def current_stream(views: Sequence[View], out: View) -> int:
    """Returns the stream that the library of the arrays uses now.

    Args:
        views: of the inputs.
        out: of C, on a GPU.
    """
    for view in (out, *views):
        if view.stream is not None:
            return view.stream
    return stream_of(None, out.device, out.array)
