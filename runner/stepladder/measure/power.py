"""Clock and power of a GPU while kernels run: read by NVML, or by nvidia-smi where its Python package is missing."""

from __future__ import annotations

import contextlib
import importlib
import shutil
import statistics
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

# Milliseconds between two readings.
INTERVAL_MS = 50
NOTE = (
    "clock and power are not in the result: neither the package nvidia-ml-py nor nvidia-smi is there, or neither knows "
    "this GPU"
)
_QUERY = "clocks.sm,power.draw"

# A reading: the clock of the multiprocessors in MHz, and the power in watts.
Reading = tuple[float, float]


@dataclass
class Readings:
    """The readings during one run, in order."""

    taken: list[Reading] = field(default_factory=list)

    def settled(self) -> dict[str, float]:
        """Returns the medians of the second half, where clock and power have settled; empty without readings."""
        late = self.taken[len(self.taken) // 2 :]
        if not late:
            return {}
        clocks, powers = zip(*late)
        return {"clock_mhz": statistics.median(clocks), "power_w": statistics.median(powers)}


class Monitor:
    """Reads clock and power of a GPU in the background.

    Args:
        source: `nvml` or `nvidia-smi`, for results.
        watch: returns a context manager; readings go to its value until it ends.
    """

    def __init__(self, source: str, watch: Callable[[], contextlib.AbstractContextManager[Readings]]) -> None:
        self.source = source
        self.watch = watch


def find_monitor(bus_id: str) -> Monitor | None:
    """Returns what reads clock and power of a GPU; None where nothing on this machine does.

    Args:
        bus_id: PCI bus id of the GPU.
    """
    return _nvml(bus_id) or _nvidia_smi(bus_id)


def _nvml(bus_id: str) -> Monitor | None:
    try:
        nvml: Any = importlib.import_module("pynvml")
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())

        def read() -> Reading:
            clock = nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)
            return float(clock), nvml.nvmlDeviceGetPowerUsage(handle) / 1e3

        read()
    except Exception:  # the package is missing, or it finds no library, no GPU or no sensor
        return None

    @contextlib.contextmanager
    def watch() -> Iterator[Readings]:
        readings, stop = Readings(), threading.Event()

        def poll() -> None:
            while not stop.wait(INTERVAL_MS / 1e3):
                with contextlib.suppress(Exception):  # one reading that fails is left out
                    readings.taken.append(read())

        thread = threading.Thread(target=poll, daemon=True)
        thread.start()
        try:
            yield readings
        finally:
            stop.set()
            thread.join()

    return Monitor("nvml", watch)


def _nvidia_smi(bus_id: str) -> Monitor | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, f"--id={bus_id}", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"]
    try:
        once = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    if not parse_readings(once.stdout):
        return None

    @contextlib.contextmanager
    def watch() -> Iterator[Readings]:
        readings = Readings()
        with subprocess.Popen([*command, f"--loop-ms={INTERVAL_MS}"], stdout=subprocess.PIPE, text=True) as process:
            try:
                yield readings
            finally:
                process.terminate()
                text, _ = process.communicate()
                readings.taken += parse_readings(text)

    return Monitor("nvidia-smi", watch)


def parse_readings(text: str) -> list[Reading]:
    """Returns the readings in lines of nvidia-smi such as `1395, 692.41`; lines without two values are left out.

    Args:
        text: lines of a clock in MHz and a power in watts.
    """
    readings = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            clock, power = map(float, line.split(","))
            readings.append((clock, power))
    return readings
