"""Launches of a bundle's kernel on the operands of its matmul."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stepladder.runtime.buffers import Buffer
from stepladder.runtime.bundle import WORKSPACE_ROLES, Argument, Bundle, Problem, Workspace
from stepladder.runtime.device import Device
from stepladder.runtime.element_types import ElementType, element_type
from stepladder.runtime.host_number import HostNumber
from stepladder.runtime.kernel import Kernel
from stepladder.runtime.tensor_map import TensorMap, encode


class MatmulBuffers:
    """Device buffers for the operands of a matmul, shared by all kernels that compute it; a context manager.

    Args:
        device: the GPU.
        problem: shapes, layouts and element types.

    Attributes:
        device, problem: as given.
        a, b, c: the buffers, row-major, of `problem.operand`'s shapes.
        a_type, b_type, c_type: their element types.
        further: the buffers of what elementwise ops read, of `problem.epilogue_operands`; scalars stay on the host.
        results: the buffers of results beside C, of `problem.results`.
    """

    def __init__(self, device: Device, problem: Problem) -> None:
        self.device = device
        self.problem = problem
        a, b, c = (problem.operand(role) for role in "abc")
        self.a_type, self.b_type, self.c_type = (element_type(operand.element_type) for operand in (a, b, c))
        self.a = self._allocate(a.shape, self.a_type)
        self.b = self.a if problem.b_is_a else self._allocate(b.shape, self.b_type)
        self.c = self._allocate(c.shape, self.c_type)
        self.further = tuple(
            HostNumber() if operand.by_value else self._allocate(operand.shape, element_type(operand.element_type))
            for operand in problem.epilogue_operands
        )
        self.results = tuple(
            self._allocate(result.shape, element_type(result.element_type)) for result in problem.results
        )
        self._workspaces: dict[tuple[int, Workspace], Buffer] = {}

    def _allocate(self, shape: tuple[int, ...], element: ElementType) -> Buffer:
        return self.device.allocate(math.prod(shape) * element.bytes)

    def __enter__(self) -> MatmulBuffers:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        # After an error the context may be broken, and freeing would hide the first error.
        if kind is None:
            buffers = (self.a, self.b, self.c, *self.further, *self.results, *self._workspaces.values())
            for buffer in {id(buffer): buffer for buffer in buffers if isinstance(buffer, Buffer)}.values():
                buffer.free()

    def _workspace(self, number: int, workspace: Workspace) -> Buffer:
        """Returns the buffer of a workspace, allocated once: kernels that are launched one after the other share it."""
        if (number, workspace) not in self._workspaces:
            self._workspaces[number, workspace] = self._allocate(workspace.shape, element_type(workspace.element_type))
        return self._workspaces[number, workspace]

    def launcher(self, kernel: Kernel, bundle: Bundle, *, keeps_early: bool = True) -> Callable[[], None]:
        """Returns a function that enqueues one launch of each of the bundle's kernels on these buffers.

        Those before that of the matmul start when what was enqueued before them has ended; that of the matmul may begin
        its prologue before the last of them ends, and waits for it itself. So may that of a kernel that reads operands
        before it waits: kernels on these buffers write C, results and workspaces.

        Args:
            kernel: the bundle's kernel, loaded.
            bundle: its bundle.
            keeps_early: whether no kernel enqueued before writes what the kernel reads early (`Manifest.read_early`).

        Raises:
            StepladderError: a TMA descriptor cannot be encoded.
        """
        manifest = bundle.manifest
        buffers = dict(zip(self.problem.roles, (self.a, self.b, self.c, *self.further, *self.results)))
        buffers |= {
            role: self._workspace(number, workspace)
            for number, (role, workspace) in enumerate(zip(WORKSPACE_ROLES, manifest.workspaces))
        }

        def parameter(argument: Argument) -> Buffer | TensorMap | HostNumber:
            buffer = buffers[argument.role]
            if argument.descriptor is None or isinstance(buffer, HostNumber):
                return buffer
            return encode(manifest.tma_descriptors[argument.descriptor], buffer)

        last = kernel.launcher(
            manifest.grid,
            manifest.block,
            [parameter(item) for item in manifest.arguments],
            manifest.overlaps(keeps_early=keeps_early),
        )
        if not manifest.front:
            return last
        first = [
            front_kernel.launcher(item.grid, item.block, [parameter(argument) for argument in item.arguments])
            for front_kernel, item in zip(kernel.front, manifest.front, strict=True)
        ]

        def enqueue() -> None:
            for launch in (*first, last):
                launch()

        return enqueue


class DeviceExecutor:
    """Runs a matmul on device buffers for `verify.check`.

    Args:
        buffers: the operands.
        enqueue: enqueues one launch that reads A and B (and C) and writes C.
    """

    def __init__(self, buffers: MatmulBuffers, enqueue: Callable[[], object]) -> None:
        self.buffers = buffers
        self.enqueue = enqueue

    def load(self, a: np.ndarray, b: np.ndarray, *further: np.ndarray) -> None:
        """Copies A, B and the operands of elementwise ops to the device.

        Args:
            a: array of the shape `problem.a_shape`, or of what A is prepared from.
            b: array of the shape `problem.b_shape`, or of what B is prepared from.
            further: arrays of `problem.epilogue_operands`.
        """
        self.buffers.a.upload(a)
        self.buffers.b.upload(b)
        for buffer, array in zip(self.buffers.further, further):
            buffer.upload(array)

    def launch(self, c: np.ndarray) -> np.ndarray:
        """Launches the kernel once.

        Args:
            c: of the shape `problem.c_shape`: what C holds before the launch.

        Returns:
            Of the same shape: what C holds after it.
        """
        self.buffers.c.upload(c)
        for buffer, result in zip(self.buffers.results, self.buffers.problem.results):
            buffer.upload(element_type(result.element_type).poison(result.shape))
        self.enqueue()
        return self.buffers.c.download(c.shape, c.dtype)

    def results(self) -> list[np.ndarray]:
        """Returns what the results beside C hold after the last launch."""
        return [
            buffer.download(result.shape, element_type(result.element_type).dtype)
            for buffer, result in zip(self.buffers.results, self.buffers.problem.results)
        ]
