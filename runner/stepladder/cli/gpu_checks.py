"""Checks of a bundle's results on the GPU, for several commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepladder.runtime.bundle import Bundle, FunctionBundle
    from stepladder.verify.report import CheckReport

Checked = tuple[list["CheckReport"], dict[str, Any]]


def _unannounced(_: str) -> None:
    """Says nothing of the GPU."""


def check_kernel(bundle: Bundle, seed: int, begun: Callable[[str], None] = _unannounced) -> Checked:
    """Compares the results of a kernel with its reference program.

    Args:
        bundle: of a matmul.
        seed: of the random inputs.
        begun: called with the name of the GPU, once the kernel is loaded.

    Returns:
        The reports, and how the checks ran, as JSON data.

    Raises:
        StepladderError: no GPU that the bundle is for (status NOT_EXECUTED), or a launch that fails.
    """
    from stepladder.runtime.device import Device
    from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
    from stepladder.verify.check import check_matmul

    problem = bundle.manifest.problem
    with Device() as device:
        kernel = device.load(bundle)
        begun(device.name)
        with MatmulBuffers(device, problem) as buffers:
            executor = DeviceExecutor(buffers, buffers.launcher(kernel, bundle))
            reports = check_matmul(problem, bundle.expected(), executor, seed, device.ordinal, bundle.constants())
        return reports, {"backend": "gpu", "card": device.describe(), "image": kernel.source}


def check_function_bundle(bundle: FunctionBundle, seed: int, begun: Callable[[str], None] = _unannounced) -> Checked:
    """Compares the results of a function with its reference program.

    Args:
        bundle: of the function.
        seed: of the random inputs.
        begun: called with the name of the GPU, once the kernels are loaded.

    Returns:
        As `check_kernel`.

    Raises:
        StepladderError: as `check_kernel`.
    """
    from stepladder.runtime.device import Device
    from stepladder.runtime.function_launch import DeviceFunction
    from stepladder.verify.function_check import check_function

    with Device() as device, DeviceFunction(device, bundle) as function:
        begun(device.name)
        return check_function(bundle, function, seed, device.ordinal), {"backend": "gpu", "card": device.describe()}
