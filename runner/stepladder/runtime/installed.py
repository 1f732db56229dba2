"""The GPUs of this machine by name, as NVIDIA's kernel driver lists them: neither CUDA nor a context is needed."""

from __future__ import annotations

import re
from pathlib import Path

GPUS_FOLDER = Path("/proc/driver/nvidia/gpus")  # on Linux: a folder a GPU, whose file `information` names the model


def installed_gpu(folder: Path = GPUS_FOLDER) -> str | None:
    """Returns the name that the driver gives the GPUs of this machine; None without one, or where they differ.

    Args:
        folder: what the driver describes its GPUs in.
    """
    names = set()
    for path in folder.glob("*/information"):
        try:
            match = re.search(r"^Model:\s*(.+?)\s*$", path.read_text(), re.MULTILINE)
        except OSError:
            continue
        names.add(match[1] if match else None)
    return names.pop() if len(names) == 1 else None
