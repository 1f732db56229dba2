"""Counts the instructions of XeTile kernels for Intel's GPUs, for docs/xetile.md: nothing is executed or timed.

    python benchmarks/xetile_counts.py docs/results/xetile_counts.json

The programs of test/inputs/xetile that the pipeline lowers to XeVM, and the kernel of a `linalg.matmul`, all of 4096^3.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import ROOT, new_parser, origin, run, write_result
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import byte_width
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.codegen.kernel import find_kernel
from stepladder.pipeline.codegen.spirv import generate, tool_versions
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline

SIZE = 4096
TILE = 256  # rows and columns of C that a work-group computes, in the roofline
LANES = 16
# Registers of a hardware thread in the mode with most: 256 of 64 bytes, on both targets.
REGISTER_BYTES = 256 * 64
PROGRAMS = ("gemm", "cooperative_slm", "two_cache_levels", "appendix_1_column_major", "appendix_1_transpose")
# Of Intel's data sheets, for the roofline: the GPU, FLOP/s of f16 with matrix units, bytes/s of memory.
PEAKS = {"pvc": ("Data Center GPU Max 1550", 839e12, 3.2768e12), "bmg": ("Arc B580", 116.5e12, 456e9)}
COUNTED = {
    "dpas": "xevm.mma",
    "loads": "xevm.blockload2d",
    "prefetches": "xevm.blockprefetch2d",
    "stores": "xevm.blockstore2d",
}
# Of the GEMM of work-groups among LLVM's integration tests, XeGPU/WG/simple_gemm.mlir, 256 x 256 of C and 32 of k: the
# subgroups along rows and columns, the part of each, and what an instruction has of it.
UPSTREAM = {
    "a": ((8, 4), (32, 32), (8, 16)),
    "b": ((8, 4), (32, 64), (16, 16)),
    "c": ((8, 4), (32, 64), (8, 16)),
    "a_prefetch": ((32, 1), (8, 32), (8, 16)),
    "b_prefetch": ((4, 8), (8, 32), (8, 16)),
}
_SIZED = re.compile(r"(?:memref|tensor)<[^>]*>|output_shape \[[^]]*\]")
_WRITTEN = re.compile(r"(?<!\d)(512|768|160)(?!\d)")  # m, n and k of the files


def program(name: str, m: int = SIZE, n: int = SIZE, k: int = SIZE) -> str:
    """Returns the text of a program of test/inputs/xetile with matrices of other sizes.

    Args:
        name: of the file, without its suffix.
        m, n, k: sizes of the matrices.
    """
    text = (ROOT / "test" / "inputs" / "xetile" / f"{name}.mlir").read_text(encoding="utf-8")
    sizes = {"512": str(m), "768": str(n), "160": str(k)}
    return _SIZED.sub(lambda found: _WRITTEN.sub(lambda size: sizes[size[0]], found[0]), text)


def vector_bytes(value: ir.Value) -> int:
    """Returns the bytes of a vector of a lane; 0 for another value.

    Args:
        value: of a kernel.
    """
    if not isinstance(value.type, ir.VectorType):
        return 0
    type_ = ir.VectorType(value.type)
    count = 1
    for size in type_.shape:
        count *= size
    return count * byte_width(type_.element_type)


def counts(text: str, name: str, request: Request) -> dict:
    """Returns the counts of a kernel.

    Args:
        text: the payload, or a XeTile program.
        name: of it.
        request: the pipeline; the last step is that before the LLVM dialect.
    """
    last = run_pipeline(text, name, request)
    kernel = find_kernel(last.module)
    code = generate(kernel, use_cache=False)
    dumped = parse_payload(next(step.text for step in last.steps if step.name == "lower_to_xevm"), name)
    (loop,) = (op for op in walk(dumped.operation, "scf.for"))
    inside = {key: len(walk(loop, op)) for key, op in COUNTED.items()}
    whole = {key: len(walk(dumped.operation, op)) for key, op in COUNTED.items()}
    carried = sum(vector_bytes(result) for result in loop.results)
    loaded = sum(vector_bytes(load.results[0]) for load in walk(loop, COUNTED["loads"]))
    groups = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
    threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
    return {
        "target": kernel.target,
        "grid": kernel.grid,
        "subgroups": threads // LANES,
        "work_groups": groups,
        "step": inside,
        "outside": {key: whole[key] - inside[key] for key in whole},
        "shared_local_memory": code.shared_memory,
        "accumulator_bytes": carried * LANES,
        "operand_bytes": loaded * LANES,
        "register_bytes": REGISTER_BYTES,
        "spirv_bytes": len(code.spirv),
        "validated": code.validated,
    }


def upstream_counts() -> dict:
    """Returns the counts of LLVM's GEMM of work-groups, as its layouts give them: an instruction for each block of a
    subgroup's part. Nothing is lowered."""

    def blocks(name: str) -> int:
        _, part, block = UPSTREAM[name]
        return (part[0] // block[0]) * (part[1] // block[1])

    (rows, columns), c_part, _ = UPSTREAM["c"]
    (_, a_part, a_block), (_, b_part, _) = UPSTREAM["a"], UPSTREAM["b"]
    tile = rows * c_part[0] * columns * c_part[1]
    return {
        "subgroups": rows * columns,
        "work_groups": SIZE * SIZE // tile,
        "step": {
            "dpas": blocks("c") * (a_part[1] // a_block[1]),
            "loads": blocks("a") + blocks("b"),
            "prefetches": blocks("a_prefetch") + blocks("b_prefetch"),
            "stores": 0,
        },
        "outside": {"stores": blocks("c")},
        "shared_local_memory": 0,
        "accumulator_bytes": 4 * math.prod(c_part),
        "operand_bytes": 2 * (math.prod(a_part) + math.prod(b_part)),
        "register_bytes": REGISTER_BYTES,
    }


def roofline(target: str) -> dict:
    """Returns a roofline estimate of a product of SIZE^3, f16 with sums in f32; nothing is measured.

    Args:
        target: of PEAKS.
    """
    name, operations, bandwidth = PEAKS[target]
    read_once = 2 * SIZE * SIZE * 2
    read_by_groups = (SIZE // TILE) ** 2 * 2 * TILE * SIZE * 2
    written = SIZE * SIZE * 4
    return {
        "gpu": name,
        "peak_flops": operations,
        "peak_bytes_per_second": bandwidth,
        "flop": 2 * SIZE**3,
        "bytes_if_cached": read_once + written,
        "bytes_if_not_cached": read_by_groups + written,
        "compute_microseconds": 2 * SIZE**3 / operations * 1e6,
        "memory_microseconds_if_cached": (read_once + written) / bandwidth * 1e6,
        "memory_microseconds_if_not_cached": (read_by_groups + written) / bandwidth * 1e6,
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("json", type=Path, metavar="FILE.json", help="the file to write")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the counts.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    kernels = {}
    for target in ("pvc", "bmg"):
        for name in PROGRAMS:
            with mlir_context():
                request = Request("xetile", {"target": target}, start="distribute_to_subgroups", tuned=False)
                kernels[f"{name} {target}"] = counts(program(name), name, request)
        with mlir_context():
            request = Request("xetile", {"target": target}, tuned=False)
            kernels[f"linalg.matmul {target}"] = counts(matmul_text(SIZE, SIZE, SIZE), "matmul", request)
    write_result(
        args.json,
        {
            "schema_version": 1,
            **origin(),
            "tool_versions": tool_versions(),
            "size": SIZE,
            "kernels": kernels,
            "upstream": upstream_counts(),
            "roofline_estimate": {target: roofline(target) for target in PEAKS},
        },
    )


if __name__ == "__main__":
    run(main)
