"""Measures what bounds decode-sized products: kernels that only read, and blocks that prefetch while others end.

Needs PyTorch, MLIR and ptxas on the machine with the GPU:

    python benchmarks/decode_limits.py [RESULT.json]

Launches go through copies of the operands of 400 MB together, as in `decode.py`. The kernels that only read take as
many bytes as the weights: alone, with dependent launch, and with dependent launch and without waiting for the kernel
before them, which a product must not do: that one may still write what it reads.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from choice_plan import TYPES, payload
from choice_timing import ROUNDS, SECONDS, Gpu
from common import result_parser, run, write_result
from draw import Drawn

if TYPE_CHECKING:
    from stepladder.runtime.device import Device

Knobs = dict[str, int | str]
ROTATED_BYTES = 400e6
# n x k of the weights.
WEIGHTS = ((4096, 4096), (5120, 5120), (28672, 4096), (8192, 28672))
ELEMENT_BYTES = 2
THREADS, VECTORS, VECTOR_BYTES = 512, 8, 16
BLOCKS = (132, 264, 528)
# By name: whether the next kernel may begin at once, and where the kernel waits for the one before.
READS: dict[str, tuple[bool, str]] = {
    "alone": (False, ""),
    "waits": (True, "before"),
    "does not wait": (True, "after"),
}
_ALLOW, _WAIT = "  griddepcontrol.launch_dependents;", "  griddepcontrol.wait;"
_COMMON: Knobs = {
    "block_m": 64,
    "block_k": 128,
    "consumer_warpgroups": 1,
    "schedule": "cooperative",
    "raster_group": 32,
    "dependent_launch": True,
    "swap_operands": True,
}
_ALONE: Knobs = {"min_blocks_per_sm": 1, "stages": 11}
_TWO: Knobs = {"min_blocks_per_sm": 2, "stages": 5}
_SPLIT: Knobs = {"persistent_blocks": 0, "split_k": 2, "epilogue": "registers"}
_WHOLE: Knobs = {"persistent_blocks": 0, "split_k": 1, "epilogue": "tma"}
_PERSISTENT: Knobs = {**_WHOLE, "persistent_blocks": 132}
# Products, the knobs that all their kernels have, and those that differ.
SETTINGS: tuple[tuple[tuple[int, int, int], Knobs, tuple[Knobs, ...]], ...] = (
    ((1, 4096, 4096), {**_SPLIT, "block_n": 8}, ({**_ALONE, "stages": 12}, _TWO)),
    ((16, 4096, 4096), {**_SPLIT, "block_n": 16}, (_ALONE, _TWO)),
    ((16, 8192, 28672), {**_WHOLE, "block_n": 16}, (_ALONE, _TWO)),
    ((16, 28672, 4096), {**_PERSISTENT, "block_n": 16}, (_ALONE,)),
)
PREFETCHES = (0, 4, 8, 16)


@dataclass(frozen=True)
class Setting:
    """A kernel that was built: its bundle, and the knobs that differ."""

    path: Path
    title: str
    knobs: Knobs


def reading_ptx(mode: str) -> str:
    """Returns the PTX of a kernel that reads an array of `n` bytes and writes nothing.

    Args:
        mode: of READS.
    """
    allows, waits = READS[mode]
    step = THREADS * VECTOR_BYTES
    registers = [f"%v{number}" for number in range(4 * VECTORS)]
    loads = [
        f"  ld.global.nc.L1::no_allocate.v4.b32 {{{', '.join(registers[4 * place : 4 * place + 4])}}}, "
        f"[%rd6+{place * step}];"
        for place in range(VECTORS)
    ]
    lines = [
        ".version 8.0",
        ".target sm_90a",
        ".address_size 64",
        ".visible .entry read(.param .u64 data, .param .u64 result, .param .u64 n)",
        "{",
        f"  .reg .b64 %rd<8>; .reg .b32 %r<3>, %x, %v<{len(registers)}>; .reg .pred %p;",
        "  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [result]; ld.param.u64 %rd2, [n];",
        "  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mov.u32 %r2, %nctaid.x; mov.b32 %x, 0;",
        f"  mul.wide.u32 %rd3, %r1, {VECTOR_BYTES}; add.s64 %rd0, %rd0, %rd3;",
        f"  mul.wide.u32 %rd4, %r0, {step * VECTORS}; mul.wide.u32 %rd5, %r2, {step * VECTORS};",
        *([_ALLOW] if allows else []),
        *([_WAIT] if waits == "before" else []),
        "loop:",
        "  setp.ge.u64 %p, %rd4, %rd2;",
        "  @%p bra end;",
        "  add.s64 %rd6, %rd0, %rd4;",
        *loads,
        *(f"  xor.b32 %x, %x, {register};" for register in registers),
        "  add.s64 %rd4, %rd4, %rd5;",
        "  bra loop;",
        "end:",
        *([_WAIT] if waits == "after" else []),
        # What is read is used under a condition that random numbers do not satisfy.
        "  setp.ne.b32 %p, %x, 0x12345678;",
        "  @!%p st.global.b32 [%rd1], %x;",
        "  ret;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _microseconds(device: Device, calls: Sequence[Callable[[], None]]) -> float:
    """Returns the median time of a launch, of functions that enqueue launches in turn."""
    from stepladder.measure.rotation import in_turn
    from stepladder.measure.timing import Contestant, Mode, Runner

    runner = Runner(device, Contestant("read", 0, in_turn(calls), cycle=len(calls)))
    samples = [runner.measure(Mode(SECONDS, 0.0), lambda seconds: None) for _ in range(ROUNDS)]
    runner.free()
    return statistics.median(sample["milliseconds"] / sample["launches"] * 1e3 for sample in samples[1:])


def reads(gpu: Gpu) -> Iterator[dict[str, Any]]:
    """Yields the times of the kernels that only read.

    Args:
        gpu: on which they run.
    """
    device, torch = gpu.device, gpu.torch
    result = device.allocate(4)
    kernels = {mode: device.load_ptx(reading_ptx(mode), "read") for mode in READS}
    for n, k in WEIGHTS:
        size = n * k * ELEMENT_BYTES
        count = math.ceil(ROTATED_BYTES / size)
        arrays = [torch.randn(n * k, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
        for mode, (allows, _) in READS.items():
            for blocks in BLOCKS:
                calls = [
                    kernels[mode].launcher(
                        (blocks, 1, 1), (THREADS, 1, 1), (array.data_ptr(), result, size), dependent=allows
                    )
                    for array in arrays
                ]
                yield {"n": n, "k": k, "read": mode, "blocks": blocks, "microseconds": _microseconds(device, calls)}
        del arrays


def settings(gpu: Gpu, folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the times of products with and without prefetches, which it builds, and of cuBLAS in turn with them.

    Args:
        gpu: on which they run.
        folder: of the bundles.
    """
    from fused_epilogues import build_bundle

    for size, common, kinds in SETTINGS:
        problem = Drawn("decode", *size, False)
        text = payload(problem, TYPES["bf16-bf16"])
        candidates = []
        for number, knobs in enumerate({**kind, "prefetch_steps": steps} for kind in kinds for steps in PREFETCHES):
            path = folder / f"{problem.name}_{number}"
            build_bundle(text, path, {**_COMMON, **common, **knobs})
            candidates.append(Setting(path, f"{problem.name}, {knobs}", knobs))
        for candidate, microseconds, library in gpu.measure(candidates):
            m, n, k = size
            yield {
                "m": m,
                "n": n,
                "k": k,
                **candidate.knobs,
                "microseconds": microseconds,
                "cublas_microseconds": library,
            }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return result_parser(__doc__, "decode_limits")


def main(argv: Sequence[str] | None = None) -> None:
    """Measures, and writes the result.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    from duel import header

    gpu = Gpu(ROTATED_BYTES)
    measured = header(gpu.device) | {"reads": list(reads(gpu))}
    with tempfile.TemporaryDirectory(prefix="stepladder-") as folder:
        measured["settings"] = list(settings(gpu, Path(folder)))
    write_result(args.result, measured)


if __name__ == "__main__":
    run(main)
