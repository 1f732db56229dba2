"""Runs the bundle of a function on the emulator: the PTX of its kernels, in order, with the sanitizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stepladder.emulator.core.fibers import TooManySteps
from stepladder.emulator.core.launched import BoundKernel
from stepladder.emulator.core.launched import Launch as Grid
from stepladder.emulator.memory.findings import Finding
from stepladder.emulator.ptx.arguments import Argument, from_arguments
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse
from stepladder.runtime.bundle import FunctionBuffer, FunctionBundle, Launch
from stepladder.runtime.element_types import element_type


class EmulatedFunction:
    """A function whose kernels are executed one after the other (`verify.function_check.FunctionExecutor`).

    Args:
        bundle: of the function.
        options: of a run of a kernel (`BoundKernel.run`): `sanitize`, `max_steps`, `progress` and so on.

    Attributes:
        findings: of all launches so far.
        seconds, steps: of all launches so far.

    Raises:
        StepladderError: PTX that the emulator does not support.
    """

    def __init__(self, bundle: FunctionBundle, options: Mapping[str, object] | None = None) -> None:
        self.bundle = bundle
        self.options = {"count": False, **(options or {})}  # results do not show counters
        self.findings: list[Finding] = []
        self.seconds = 0.0
        self.steps = 0
        self._kernels: dict[str, list[tuple[BoundKernel, list[str]]]] = {}
        for launch in bundle.manifest.launches:
            if launch.folder not in self._kernels:
                self._kernels[launch.folder] = self._bound(launch)

    def _bound(self, launch: Launch) -> list[tuple[BoundKernel, list[str]]]:
        """Returns the kernels of a launch, with the roles of their arguments."""
        place = f"{launch.folder}/kernel.ptx"
        if launch.kernel is not None:
            plain = launch.kernel
            kernel = Kernel(parse(self.bundle.plain(launch).ptx, place), plain.kernel_name, place)
            arguments = from_arguments(plain.arguments, plain.tma_descriptors)
            grid = Grid.of_manifest(plain)
            return [(kernel.bound(arguments, grid), [item.role for item in plain.arguments])]
        matmul = self.bundle.matmul(launch)
        manifest = matmul.manifest
        kernels = []
        for item, (_, ptx) in zip(manifest.front, matmul.front):
            kernel = Kernel(parse(ptx, place), item.kernel_name, place)
            bound_kernel = kernel.bound(from_arguments(item.arguments), Grid(item.grid, item.block))
            kernels.append((bound_kernel, [argument.role for argument in item.arguments]))
        kernel = Kernel(parse(matmul.ptx, place), manifest.kernel_name, place)
        grid = Grid.of_manifest(manifest)
        arguments = from_arguments(manifest.arguments, manifest.tma_descriptors)
        kernels.append((kernel.bound(arguments, grid), [item.role for item in manifest.arguments]))
        return kernels

    def run(self, inputs: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        """Runs the function once.

        Args:
            inputs: arrays by argument number; constants need not be among them.

        Returns:
            The results, in order.
        """
        manifest = self.bundle.manifest
        # All ones is NaN, and an integer that no right result is.
        workspace = np.full(manifest.workspace, 0xFF, np.uint8)
        arrays = [self._array(buffer, inputs, workspace) for buffer in manifest.buffers]
        for result, argument in manifest.aliases.items():
            arrays[result] = arrays[argument] = arrays[argument].copy()
        for part, home in manifest.homes.items():
            arrays[part] = _part(arrays[home], manifest.buffers[part])
        for launch in manifest.launches:
            for kernel, roles in self._kernels[launch.folder]:
                self._launch(kernel, roles, {role: arrays[number] for role, number in launch.operands.items()})
        return [arrays[place].copy() for place, _ in manifest.of_kind("result")]

    def _array(self, buffer: FunctionBuffer, inputs: Mapping[int, np.ndarray], workspace: np.ndarray) -> np.ndarray:
        dtype = element_type(buffer.element_type).dtype
        if buffer.kind == "constant" and buffer.number not in inputs:
            return self.bundle.constant(buffer)
        if buffer.kind in ("argument", "constant"):
            return np.ascontiguousarray(inputs[buffer.number]).reshape(buffer.shape)
        if buffer.kind == "workspace":
            return workspace[buffer.offset : buffer.offset + buffer.bytes].view(dtype).reshape(buffer.extents)
        return np.full(buffer.bytes, 0xFF, np.uint8).view(dtype).reshape(buffer.extents)

    def _launch(self, kernel: BoundKernel, roles: Sequence[str], arrays: Mapping[str, np.ndarray]) -> None:
        """Runs a kernel on arrays, and copies what it wrote back into them."""
        step_limit = self.options.get("max_steps")
        if isinstance(step_limit, int) and self.steps > step_limit:
            raise TooManySteps(f"stopped after {self.steps} steps of several kernels", str(self.bundle.path))
        inputs = [_shaped(arrays[role], argument) for role, argument in zip(roles, kernel.arguments)]
        outcome = kernel.run(inputs, **self.options)  # pyright: ignore[reportArgumentType]
        self.findings += outcome.findings
        self.seconds += outcome.seconds
        self.steps += outcome.steps
        writes = []
        for before, output, role in zip(inputs, outcome.arguments, roles):
            if output is not None and before.tobytes() != output.tobytes():
                after = np.asarray(output)  # of rank 0, a scalar
                # Between the columns that it is, there may be those that another argument is.
                bits = np.dtype(f"u{after.itemsize}")
                writes.append((_shaped(arrays[role], after), after, before.view(bits) != after.view(bits)))
        for target, after, differs in writes:
            np.copyto(target, after, where=differs)


def _part(array: np.ndarray, buffer: FunctionBuffer) -> np.ndarray:
    """Returns a part of an array."""
    dtype = element_type(buffer.element_type).dtype
    first = buffer.offset // dtype.itemsize
    return array.reshape(-1)[first : first + buffer.bytes // dtype.itemsize].reshape(buffer.extents)


def _shaped(array: np.ndarray, like: Argument | np.ndarray) -> np.ndarray:
    """Returns an array of a buffer's elements as a kernel sees them: a matrix in a workspace has less than its rows."""
    shape = like.shape if isinstance(like, np.ndarray) else like.type.static_shape
    if array.size == int(np.prod(shape, dtype=int)):
        return array.reshape(shape)
    return array[tuple(slice(0, extent) for extent in shape)]
