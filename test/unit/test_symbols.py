"""A payload's function may have any name, those of the globals that the steps make too."""

import pytest

from stepladder.mlir.traverse import walk
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline

SPLIT = {"split_k": 2, "persistent_blocks": 0, "epilogue": "registers", "split_k_workspace": "memory", "stages": 2}
NAMES = {
    "shared_memory": ("mma_sync", {}),
    "split_k_workspace": ("wgmma", SPLIT),
    "split_k_semaphores": ("wgmma", SPLIT),
    "stream_k_semaphores": ("wgmma", {"persistent_blocks": 3, "tile_scheduler": "stream_k"}),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_global(name: str) -> None:
    pipeline, settings = NAMES[name]
    plain = matmul_text(512, 512, 256, accumulate=False)
    with mlir_context():
        run = run_pipeline(plain, "matmul.mlir", Request(pipeline, settings))
        assert name in [op.attributes["sym_name"].value for op in walk(run.module, "memref.global", "llvm.mlir.global")]
    with mlir_context():
        run = run_pipeline(plain.replace("@matmul", f"@{name}"), "matmul.mlir", Request(pipeline, settings))
        assert walk(run.module, "gpu.launch_func")
