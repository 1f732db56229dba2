"""Measures what bounds large matmuls with a fused consumer or producer: ReLU, and the contraction of `figures.py`.

At 8192 the matmul takes nearly all time of a library's sequence of kernels, and the GPU is at its power limit. Timed in
turn: cuBLAS' matmul, alone and with PyTorch's ReLU, `einsum` and the copy that it makes first, and our kernels of the
matmul, of the matmul with a ReLU, and of the contraction. Clock and power are read while some of them run for a second.

On any machine with MLIR and ptxas, and then on the machine with the GPU, with PyTorch:

    python benchmarks/power_limited.py build FOLDER
    python benchmarks/power_limited.py measure FOLDER RESULT.json
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import drawn_forms
import duel
import stepladder
from common import run, write_result
from drawn_forms import LARGEST_DIFFERENCE
from figures import FIGURES
from form_libraries import libraries
from fused_epilogues import CASES, PIPELINE, TARGET, build_bundle, payload
from halves import halves_parser, main_of_halves
from stepladder.measure.power import find_monitor
from stepladder.measure.timing import Contestant, Mode
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

FORM = FIGURES["contraction"][-1]
SIZE = FORM.sizes["m"]
RUN = Mode(0.03, 0.05)
ROUNDS = 3
# Seconds for which clock and power are read, and launches between two looks at the time.
WATCHED, LAUNCHES = 0.9, 20
_MATMUL, _EINSUM, _RELU = "matmul of cuBLAS", "torch.einsum", "matmul of cuBLAS, ReLU of PyTorch"
_OWN = {"contraction": "contraction, fused", "plain": "matmul", "relu": "matmul, fused ReLU"}


def build(folder: Path) -> None:
    """Builds our kernels, with the knobs that `compile` takes.

    Args:
        folder: of the bundles.
    """
    from stepladder.pipeline.any_payload import build_any
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    with mlir_context():
        request = Request(PIPELINE, {"target": TARGET}, tuned=True)
        build_any(drawn_forms.payload(FORM), "form.mlir", request).write(folder / "contraction")
    build_bundle(payload(None, SIZE), folder / "plain", {})
    build_bundle(payload(CASES["relu"], SIZE), folder / "relu", {})


def kernels(device: Device, folder: Path) -> dict[str, Callable[[], Any]]:
    """Returns what is timed, by name, after a check of our kernels.

    Args:
        device: the GPU.
        folder: of the bundles.

    Raises:
        StepladderError: the numbers are wrong.
    """
    import torch  # pyright: ignore[reportMissingImports]

    operands = drawn_forms.operands_of(FORM)
    a, b, c = operands
    stream = torch.cuda.ExternalStream(device.stream, device=c.device)
    contract = functools.partial(stepladder.load(folder / "contraction"), a, b, out=c, stream=stream)
    torch.cuda.synchronize()
    contract()
    device.synchronize()
    difference = drawn_forms.difference_of(FORM, operands)
    for operand in (a, b):
        operand.normal_()
    left, right, product = a.view(SIZE, SIZE), torch.randn_like(c), torch.empty_like(c)
    own_calls = {
        name: functools.partial(stepladder.load(folder / name), left, right, out=product, stream=stream)
        for name in ("plain", "relu")
    }
    expected = left @ right
    for name, enqueue in own_calls.items():
        torch.cuda.synchronize()
        enqueue()
        device.synchronize()
        reference = expected.relu() if name == "relu" else expected
        difference = max(difference, float((product - reference).abs().max() / reference.abs().max()))
    if difference > LARGEST_DIFFERENCE:
        raise StepladderError(f"wrong: an element differs by {difference} of the largest")

    def on_stream(call: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        def enqueue() -> torch.Tensor:
            with torch.cuda.stream(stream):
                return call()

        return enqueue

    return {
        _MATMUL: on_stream(lambda: torch.mm(left, right, out=product)),
        _RELU: on_stream(lambda: torch.mm(left, right).relu()),
        _EINSUM: libraries(FORM, operands, stream)["einsum"],
        "copy of torch.einsum": on_stream(lambda: b.permute(1, 0, 2).contiguous()),
        _OWN["contraction"]: contract,
        **{_OWN[name]: enqueue for name, enqueue in own_calls.items()},
    }


def watch(device: Device, enqueue: Callable[[], Any]) -> dict[str, float]:
    """Returns clock and power while a kernel runs again and again, and its time; empty where nothing reads them.

    Args:
        device: the GPU.
        enqueue: enqueues it.
    """
    monitor = find_monitor(device.bus_id)
    if monitor is None:
        return {}
    count, began = 0, time.monotonic()
    with monitor.watch() as readings:
        start = device.record_event()
        while time.monotonic() - began < WATCHED:
            for _ in range(LAUNCHES):
                enqueue()
            count += LAUNCHES
            device.synchronize()
        end = device.record_event()
        device.synchronize()
    return {**readings.settled(), "sustained_microseconds": device.elapsed_ms(start, end) * 1e3 / count}


def measure_all(device: Device, folder: Path) -> list[dict[str, Any]]:
    """Times everything and reads clock and power.

    Args:
        device: the GPU.
        folder: of the bundles, which `build` wrote.

    Returns:
        An entry for each contestant: name, ratio to cuBLAS' matmul, and what `watch` returns.
    """
    calls = kernels(device, folder)
    first, *rivals = (Contestant(name, FORM.flops, enqueue) for name, enqueue in calls.items())
    contest = duel.Duel(device, first, rivals)
    try:
        measured = contest.run(RUN, ROUNDS)
    finally:
        contest.free()
    ratios = {_MATMUL: 1.0} | {name: entry["ratio_spread"]["median"] for name, entry in measured["kernels"].items()}
    return [{"name": name, "ratio": ratios[name], **watch(device, enqueue)} for name, enqueue in calls.items()]


def measure(folder: Path, out: Path) -> None:
    """Measures everything, and writes the result.

    Args:
        folder: of the bundles.
        out: file of the result.
    """
    with Device() as device:
        write_result(out, {**duel.header(device), "size": SIZE, "settings": measure_all(device, folder)})


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return halves_parser(__doc__)


main = main_of_halves(make_parser, build, measure)


if __name__ == "__main__":
    run(main)
