"""Writes a bundle, without a compiler: make_bundle.py BUNDLE. Its cubin is no machine code."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "runner"))

from stepladder.runtime.bundle import Argument, Manifest, Problem, write_bundle

PROBLEM = Problem(128, 128, 64, "f16", "f16", acc_type="f32", c_type="f32", accumulate=True)
ARGUMENTS = (
    Argument("C", "c", "f32", (128, 128), "readwrite"),
    Argument("A", "a", "f16", (128, 64), "read"),
    Argument("B", "b", "f16", (64, 128), "read"),
)

write_bundle(
    sys.argv[1],
    Manifest(
        "matmul",
        "sm_80",
        ARGUMENTS,
        PROBLEM,
        grid=(1, 1, 1),
        block=(128, 1, 1),
        static_shared_memory=0,
        dynamic_shared_memory=0,
        registers=64,
        spills={"stores": 0, "loads": 0},
        pipeline="wmma",
        steps=("tile_to_blocks",),
    ),
    b"no machine code",
    ".version 8.0\n",
    {"00-input.mlir": "module {}\n"},
)
