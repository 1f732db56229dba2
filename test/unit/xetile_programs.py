"""The XeTile programs of test/inputs/xetile, with matrices of any size, and their runs on the emulator."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.mlir.bindings import ir

FOLDER = Path(__file__).parents[1] / "inputs" / "xetile"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.mlir"))
# The sizes that the files are written with.
M, N, K = 512, 768, 160
_SIZED = re.compile(r"(?:memref|tensor)<[^>]*>|output_shape \[[^]]*\]")


def program(name: str, m: int = M, n: int = N, k: int = K) -> str:
    """Returns the text of a program for matrices of other sizes; the sizes of tiles stay."""
    sizes = {str(M): str(m), str(N): str(n), str(K): str(k)}

    def resized(found: re.Match) -> str:
        return re.sub(r"(?<!\d)\d+(?!\d)", lambda number: sizes.get(number[0], number[0]), found[0])

    return _SIZED.sub(resized, (FOLDER / f"{name}.mlir").read_text(encoding="utf-8"))


def entry(name: str) -> str:
    """Returns the name of a program's function."""
    return "softmax" if name == "softmax" else "gemm"


def small_integers(emulation: Emulation, seed: int = 0) -> list[np.ndarray]:
    """Returns arguments of a program: integers from -4 to 4, whose sums are exact."""
    generator = np.random.default_rng(seed)
    return [generator.integers(-4, 5, array.shape).astype(array.dtype) for array in emulation.random_inputs(seed)]


def run_both(module: ir.Module, name: str, seed: int = 0) -> tuple[Outcome, np.ndarray, np.ndarray]:
    """Runs a program and its reference on small integers; returns the outcome, its last argument, the expected one."""
    emulation, golden = Emulation(module, entry(name)), Emulation(module, "golden")
    inputs = small_integers(emulation, seed)
    outcome = emulation.run(inputs, count=False)
    return outcome, outcome.arguments[-1], golden.run(inputs, count=False).results[0]
