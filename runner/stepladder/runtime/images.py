"""Selects the image of a bundle (cubin or PTX) that runs on a GPU."""

from __future__ import annotations

import re

from stepladder.runtime.errors import NOT_EXECUTED, StepladderError


def parse_target(target: str) -> tuple[int, int, bool]:
    """Splits the name of a target.

    Args:
        target: for example `sm_90a`.

    Returns:
        Major and minor compute capability, and whether the target is architecture-specific (suffix `a`).

    Raises:
        StepladderError: the name is of another form.
    """
    match = re.fullmatch(r"sm_(\d+)(\d)(a?)", target)
    if not match:
        raise StepladderError(f"target '{target}' is not of the form sm_80 or sm_90a")
    return int(match[1]), int(match[2]), bool(match[3])


def image_for(target: str, capability: tuple[int, int], device_name: str) -> str:
    """Chooses the image of a bundle that runs on a GPU.

    Machine code runs on its own compute capability and on later minor versions of the same major one; the PTX of a
    target without suffix runs on anything later; code for a target with suffix `a` runs on exactly that capability.

    Args:
        target: the bundle's target.
        capability: (major, minor) of the GPU.
        device_name: the GPU's name, for the message.

    Returns:
        `cubin` or `ptx`.

    Raises:
        StepladderError: neither runs there; status NOT_EXECUTED.
    """
    major, minor, specific = parse_target(target)
    if capability == (major, minor) or (not specific and capability[0] == major and capability[1] > minor):
        return "cubin"
    if not specific and capability > (major, minor):
        return "ptx"
    needed = f"exactly {major}.{minor}" if specific else f"{major}.{minor} or later"
    raise StepladderError(
        f"the bundle is for {target} (compute capability {needed}), and this GPU is {device_name} (compute "
        f"capability {capability[0]}.{capability[1]}); no kernel was launched",
        notes=["compile the bundle again with --target for this GPU"],
        status=NOT_EXECUTED,
    )
