"""Measures how far off sums of products of fp8 are, of own kernels and of cuBLASLt.

    python benchmarks/fp8_sums.py [RESULT.json]

A and B have random numbers of f8E4M3FN, standard normal ones and those with a mean of 0.5, and C is of f32. The error
is the norm of the difference from the product in f64, over the norm of the product. `promoted` kernels add the sums of
each k step in f32 (`promote_accumulators`), and `fast` ones leave all sums in the tensor core (`fast_accum`); those of
`mma_sync` are for sm_90. Needs MLIR, a GPU and PyTorch.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import origin, result_parser, run, write_result
from stepladder.measure.baselines import cublas
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import read_bundle, write_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.element_types import element_type
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers

M = N = 512
DEPTHS = (128, 512, 2048, 8192, 32768)
MEANS = (0.0, 0.5)
TYPE = "f8E4M3FN"
TARGETS = {"wgmma": "sm_90a", "mma_sync": "sm_90"}


def _errors(device: Device, pipeline: str, fast_accum: bool, k: int) -> list[dict[str, object]]:
    """Returns the errors of a kernel, and of cuBLASLt's product with the same kind of sums, for each mean."""
    text = matmul_text(M, N, k, a_type=TYPE, b_type=TYPE, c_type="f32", b_layout="column", accumulate=False)
    with mlir_context(), tempfile.TemporaryDirectory() as folder:
        request = Request(pipeline, {"target": TARGETS[pipeline], "fast_accum": fast_accum}, tuned=True)
        built = build(text, "matmul.mlir", request)
        write_bundle(Path(folder, "bundle"), built.manifest, built.code.cubin, built.code.ptx, {})
        bundle = read_bundle(Path(folder, "bundle"))
    dtype = element_type(TYPE).dtype
    rows: list[dict[str, object]] = []
    with MatmulBuffers(device, bundle.manifest.problem) as buffers:
        launch = buffers.launcher(device.load(bundle), bundle)
        library = cublas(buffers, fast_accum=fast_accum)
        for mean in MEANS:
            rng = np.random.default_rng(k)
            a, b = ((rng.standard_normal((extent, k), np.float32) + mean).astype(dtype) for extent in (M, N))
            expected = a.astype(np.float64) @ b.astype(np.float64).T

            def error(enqueue: Callable[[], object]) -> float:
                executor = DeviceExecutor(buffers, enqueue)
                executor.load(a, b)
                c = executor.launch(np.full((M, N), np.nan, np.float32))
                return float(np.linalg.norm(c - expected) / np.linalg.norm(expected))

            rows.append(
                {
                    "pipeline": pipeline,
                    "sums": "fast" if fast_accum else "promoted",
                    "k": k,
                    "mean": mean,
                    "error": error(launch),
                    "cublaslt_error": error(library.enqueue),
                    "split_k": built.manifest.knobs.get("split_k", 1),
                    "baseline": library.provider,
                }
            )
    return rows


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return result_parser(__doc__, "fp8/sums")


def main() -> None:
    """Measures and writes the result."""
    args = make_parser().parse_args()
    with Device() as device:
        rows = [
            row
            for pipeline in TARGETS
            for fast_accum in ((False, True) if pipeline == "wgmma" else (True,))
            for k in DEPTHS
            for row in _errors(device, pipeline, fast_accum, k)
        ]
        write_result(args.result, {"schema_version": 1, **origin(), "card": device.describe(), "rows": rows})


if __name__ == "__main__":
    run(main)
