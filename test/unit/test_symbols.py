"""A payload's function may have any name, those of the globals that the steps make too."""

import pytest

from stepladder.mlir.traverse import walk
from stepladder.payload import problem
from stepladder.pipeline import engine

SPLIT = {"split_k": 2, "persistent_blocks": 0, "epilogue": "registers", "split_k_workspace": "memory", "stages": 2}
NAMES = {
    "shared_memory": ("mma_sync", {}),
    "partial_sums": ("wgmma", SPLIT),
    "arrivals": ("wgmma", SPLIT),
    "turns": ("wgmma", {"persistent_blocks": 3, "tile_scheduler": "stream_k"}),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_global(name):
    pipeline, settings = NAMES[name]
    plain = problem.matmul_text(512, 512, 256, accumulate=False)
    with engine.mlir_context():
        run = engine.run(plain, "matmul.mlir", engine.Request(pipeline, settings))
        assert name in [op.attributes["sym_name"].value for op in walk(run.module, "memref.global", "llvm.mlir.global")]
    with engine.mlir_context():
        run = engine.run(plain.replace("@matmul", f"@{name}"), "matmul.mlir", engine.Request(pipeline, settings))
        assert walk(run.module, "gpu.launch_func")
