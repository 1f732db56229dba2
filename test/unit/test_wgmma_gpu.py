"""Numbers of the Hopper pipelines on a GPU: small problems through each of them, in the forms that differ most.

MLIR may be missing where the GPU is. Then the bundles are built beforehand, where it is, and found by a variable:

    python test/unit/test_wgmma_gpu.py build/wgmma_bundles
    STEPLADDER_WGMMA_BUNDLES=build/wgmma_bundles pytest test/unit/test_wgmma_gpu.py
"""

import os
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runner"))

from combinations import sample
from stepladder.pipeline.build import Build
from stepladder.runtime.bundle import read_bundle, write_bundle
from stepladder.runtime.bundle.manifest import Bundle
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.verify.check import check_matmul

COLUMNS = {"a_layout": "column", "b_layout": "column"}
ROUNDED = {"accumulate": False}
ODD = ROUNDED | {"c_type": "f16"}
TF32 = {"block_k": 32, "allow_tf32": True}
IN_REGISTERS = {"block_k": 32, "block_n": 64, "split_f32": "registers"}
F32 = {"a_type": "f32", "b_type": "f32"}
IN_SHARED = {**IN_REGISTERS, "split_f32": "shared"}
EXCHANGED = {"swap_operands": True, "block_m": 64, "consumer_warpgroups": 1}
SPLIT_IN_MEMORY = {"split_k_workspace": "memory", "persistent_blocks": 0, "epilogue": "registers", "block_n": 128}


def fp8(kind: str) -> dict[str, str]:
    return {"a_type": kind, "b_type": kind, "b_layout": "column"}


# Name: pipeline, sizes, payload, knobs, what is left out.
CASES = {
    "single_whole": ("wgmma_single_stage", (256, 256, 192), {}, {}, ()),
    "single_ragged_columns": ("wgmma_single_stage", (200, 136, 72), COLUMNS, {}, ()),
    "single_step": ("wgmma_single_stage", (130, 264, 40), ROUNDED, {"block_n": 64}, ()),
    "multi_whole": ("wgmma_multistage", (512, 384, 1024), {}, {}, ()),
    "multi_ragged": ("wgmma_multistage", (300, 264, 520), ROUNDED | {"c_type": "f16"}, {"raster_group": 2}, ()),
    "multi_odd": ("wgmma_multistage", (130, 77, 144), {"b_layout": "column"}, {}, ()),
    "multi_odd_f16": (
        "wgmma_multistage",
        (130, 77, 144),
        {"b_layout": "column", "acc_type": "f16", "c_type": "f16"},
        {},
        (),
    ),
    "multi_few_steps": ("wgmma_multistage", (128, 128, 136), {}, {"stages": 6, "block_n": 64}, ()),
    "multi_not_ahead": ("wgmma_multistage", (256, 256, 512), {}, {}, ("multistage_loads",)),
    "cooperative": ("wgmma", (1024, 1024, 512), {}, {"persistent_blocks": 5}, ()),
    "cooperative_ragged": (
        "wgmma",
        (1000, 1000, 520),
        {},
        {"cluster_m": 2, "raster_group": 2, "persistent_blocks": 10},
        (),
    ),
    "cooperative_registers": ("wgmma", (1000, 1000, 520), ROUNDED, {"epilogue": "registers", "cluster_n": 2}, ()),
    "cooperative_rows": ("wgmma", (1000, 1003, 520), COLUMNS | ODD, {"epilogue": "rows", "cluster_n": 2}, ()),
    "cooperative_rows_added": ("wgmma", (300, 262, 520), COLUMNS, {"epilogue": "rows", "block_n": 128}, ()),
    "pingpong_rows": (
        "wgmma",
        (1000, 1001, 520),
        COLUMNS | ODD,
        {"schedule": "pingpong", "block_n": 128, "persistent_blocks": 3, "epilogue": "rows", "stages": 4},
        (),
    ),
    "cooperative_square_cluster": ("wgmma", (1024, 1024, 1024), {}, {"cluster_m": 2, "cluster_n": 2, "stages": 2}, ()),
    "cooperative_cluster_of_eight": ("wgmma", (1024, 1024, 512), COLUMNS, {"cluster_m": 2, "cluster_n": 4}, ()),
    "cooperative_cluster_one_slot": ("wgmma", (512, 512, 512), {}, {"cluster_m": 2, "stages": 1}, ()),
    "cooperative_step": ("wgmma", (300, 520, 40), {}, {"persistent_blocks": 3}, ()),
    "cooperative_row": ("wgmma", (1, 1024, 512), {}, {}, ()),
    "cooperative_three": ("wgmma", (400, 264, 512), {}, {"block_m": 192, "block_n": 128, "consumer_warpgroups": 3}, ()),
    "cooperative_tall": (
        "wgmma",
        (600, 520, 512),
        ROUNDED | {"c_type": "f16"},
        {"block_m": 256, "block_n": 128, "stages": 3},
        (),
    ),
    "batch": ("wgmma", (256, 384, 512), {"batch": 5}, {"persistent_blocks": 7}, ()),
    "batch_columns": ("wgmma", (256, 512, 320), COLUMNS | ROUNDED | {"batch": 3}, {"cluster_n": 2}, ()),
    "batch_ragged": (
        "wgmma",
        (200, 136, 264),
        ROUNDED | {"batch": 4, "c_type": "f16", "broadcast": "a"},
        {"cluster_m": 2, "persistent_blocks": 10},
        (),
    ),
    "batch_added_ragged": ("wgmma", (200, 136, 264), {"batch": 4, "broadcast": "b"}, {"raster_group": 2}, ()),
    "batch_registers": (
        "wgmma",
        (200, 136, 264),
        {"batch": 4, "b_layout": "column", "broadcast": "b"},
        {"epilogue": "registers", "persistent_blocks": 0},
        (),
    ),
    "batch_pingpong": (
        "wgmma",
        (512, 256, 128),
        ROUNDED | {"batch": 6, "c_type": "f16", "b_layout": "column"},
        {"schedule": "pingpong", "block_n": 128, "persistent_blocks": 5, "cluster_m": 2},
        (),
    ),
    "batch_small": ("wgmma", (16, 256, 128), {"batch": 3}, {}, ()),
    "batch_split": ("wgmma", (256, 256, 2048), {"batch": 3}, SPLIT_IN_MEMORY | {"split_k": 4, "cluster_m": 2}, ()),
    "batch_stream_k": (
        "wgmma",
        (384, 512, 1024),
        {"batch": 3},
        {"tile_scheduler": "stream_k", "persistent_blocks": 8},
        (),
    ),
    "batch_multi": ("wgmma_multistage", (200, 136, 264), {"batch": 3}, {}, ()),
    "batch_single": ("wgmma_single_stage", (200, 136, 264), {"batch": 3}, {}, ()),
    "waiting": ("wgmma", (512, 1024, 512), {}, {"persistent_blocks": 3}, ("pipeline_wgmma",)),
    "one_role_multicast": (
        "wgmma",
        (512, 512, 512),
        {},
        {"cluster_m": 2, "persistent_blocks": 4},
        ("specialize_warps",),
    ),
    "no_tricks": (
        "wgmma",
        (520, 512, 264),
        {},
        {},
        (
            "form_clusters",
            "rasterize_blocks",
            "make_persistent",
            "pipeline_wgmma",
            "specialize_warps",
            "multicast_tiles",
            "enable_dependent_launch",
            "stream_k_tail",
            "narrow_indices",
            "split_k",
        ),
    ),
    "pingpong": (
        "wgmma",
        (1024, 1024, 512),
        {},
        {"schedule": "pingpong", "block_m": 64, "persistent_blocks": 5},
        (),
    ),
    "pingpong_rounded": (
        "wgmma",
        (520, 512, 384),
        ROUNDED | {"c_type": "f16"},
        {"schedule": "pingpong", "block_n": 128, "persistent_blocks": 3, "epilogue_stages": 1},
        (),
    ),
    "pingpong_step": (
        "wgmma",
        (520, 512, 40),
        {},
        {"schedule": "pingpong", "block_n": 128, "persistent_blocks": 3},
        (),
    ),
    "pingpong_registers": (
        "wgmma",
        (520, 504, 448),
        {},
        {"schedule": "pingpong", "block_n": 128, "persistent_blocks": 4, "epilogue": "registers", "stages": 3},
        (),
    ),
    "pingpong_cluster": (
        "wgmma",
        (1024, 1024, 448),
        {},
        {"schedule": "pingpong", "block_n": 128, "persistent_blocks": 6, "cluster_m": 2},
        (),
    ),
    "stream_k": ("wgmma", (1024, 1280, 512), {}, {"tile_scheduler": "stream_k", "persistent_blocks": 32}, ()),
    "shared_from_zero": (
        "wgmma",
        (1000, 1288, 1032),
        ROUNDED,
        {"tile_scheduler": "stream_k", "persistent_blocks": 24},
        (),
    ),
    "shared_cluster": (
        "wgmma",
        (1024, 1280, 512),
        {},
        {"tile_scheduler": "stream_k", "persistent_blocks": 32, "cluster_m": 2},
        (),
    ),
    "shared_waiting": (
        "wgmma",
        (1024, 1280, 512),
        {},
        {"tile_scheduler": "stream_k", "persistent_blocks": 32},
        ("pipeline_wgmma",),
    ),
    "exchanged": ("wgmma", (136, 1000, 512), ROUNDED | {"c_type": "f16"}, EXCHANGED | {"block_n": 72}, ()),
    "exchanged_added": ("wgmma", (136, 1000, 512), {}, EXCHANGED | {"block_n": 136, "cluster_n": 1}, ()),
    "exchanged_pingpong": (
        "wgmma",
        (333, 1000, 512),
        ROUNDED | {"c_type": "f16", "b_layout": "column"},
        EXCHANGED | {"block_n": 112, "schedule": "pingpong", "persistent_blocks": 8, "cluster_n": 2},
        (),
    ),
    "exchanged_split": (
        "wgmma",
        (72, 1000, 2048),
        ROUNDED | {"c_type": "f16"},
        EXCHANGED | {"block_n": 24, "split_k": 4, "persistent_blocks": 0, "epilogue": "registers"},
        (),
    ),
    "split": (
        "wgmma",
        (512, 512, 4096),
        {},
        {"split_k": 4, "persistent_blocks": 0, "epilogue": "registers", "block_n": 128},
        (),
    ),
    "split_ragged": (
        "wgmma",
        (500, 504, 1992),
        ROUNDED | {"c_type": "f16"},
        {"split_k": 8, "persistent_blocks": 0, "epilogue": "registers", "block_n": 128},
        (),
    ),
    "split_in_seven": (
        "wgmma",
        (16, 520, 1992),
        {"acc_type": "f16", "c_type": "f16"},
        {
            "split_k": 7,
            "persistent_blocks": 0,
            "epilogue": "registers",
            "block_m": 64,
            "block_n": 160,
            "consumer_warpgroups": 1,
        },
        (),
    ),
    "split_one_role": (
        "wgmma",
        (512, 512, 2048),
        {},
        {"split_k": 4, "persistent_blocks": 0, "epilogue": "registers", "block_n": 128},
        ("specialize_warps",),
    ),
    "split_in_memory": ("wgmma", (512, 512, 4096), {}, SPLIT_IN_MEMORY | {"split_k": 7}, ()),
    "split_in_memory_clusters": (
        "wgmma",
        (500, 504, 1992),
        ROUNDED | {"c_type": "f16"},
        SPLIT_IN_MEMORY | {"split_k": 4, "cluster_m": 2, "cluster_n": 2},
        (),
    ),
    "split_in_memory_one_role": (
        "wgmma",
        (512, 512, 2048),
        {},
        SPLIT_IN_MEMORY | {"split_k": 4},
        ("specialize_warps",),
    ),
    "bf16": ("wgmma", (520, 512, 264), ROUNDED | {"a_type": "bf16", "b_type": "bf16", "c_type": "bf16"}, {}, ()),
    "f16_sums": ("wgmma", (520, 512, 264), {"acc_type": "f16", "c_type": "f16"}, {"block_n": 128}, ()),
    "tf32": ("wgmma", (520, 512, 264), {"a_type": "f32", "b_type": "f32", "b_layout": "column"}, TF32, ()),
    "tf32_narrow": (
        "wgmma_multistage",
        (200, 136, 68),
        {"a_type": "f32", "b_type": "f32", "b_layout": "column"},
        {**TF32, "block_k": 16},
        (),
    ),
    "split_a_into_tf32": ("wgmma", (520, 64, 264), {"a_type": "f32", "b_type": "f32"}, IN_REGISTERS, ()),
    "split_along_m": (
        "wgmma",
        (520, 64, 264),
        {"a_type": "f32", "b_type": "f32", "a_layout": "column"},
        {**IN_REGISTERS, "schedule": "pingpong", "block_m": 64, "consumer_warpgroups": 1},
        (),
    ),
    "split_b_in_shared_memory": ("wgmma", (24, 520, 264), F32, {**IN_SHARED, **EXCHANGED, "block_n": 24}, ()),
    "split_batch": (
        "wgmma",
        (130, 72, 264),
        {**F32, "b_layout": "column", "batch": 3},
        {**IN_SHARED, "block_n": 40},
        (),
    ),
    "transpose_b_in_shared_memory": (
        "wgmma",
        (264, 136, 264),
        F32,
        {**IN_SHARED, "block_m": 128, "block_n": 72, "consumer_warpgroups": 2},
        (),
    ),
    "transpose_batch": (
        "wgmma",
        (130, 72, 264),
        {**F32, "a_layout": "column", "batch": 3},
        {**IN_SHARED, "block_n": 40},
        (),
    ),
    "e4m3": ("wgmma", (520, 512, 528), fp8("f8E4M3FN"), {"block_k": 128}, ()),
    "e5m2": ("wgmma_multistage", (520, 512, 528), fp8("f8E5M2"), {"block_k": 32}, ()),
}


def build_case(name: str, folder: Path) -> Build:
    """Builds a case and writes its bundle."""
    from stepladder.payload.writing import matmul_text
    from stepladder.pipeline import build
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    pipeline, sizes, payload, knobs, without = CASES[name]
    with mlir_context():
        made = build.build(matmul_text(*sizes, **payload), f"{name}.mlir", Request(pipeline, knobs, without=without))
        # Without the IR of every step: the bundles travel to where the GPU is.
        code = made.code
        write_bundle(folder, made.manifest, code.cubin, code.ptx, {}, reference=made.reference, data=made.data())
    return made


@pytest.mark.parametrize("name", sample(list(CASES), 4))
def test_builds_without_a_complaint(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No spills, and nothing that ptxas says of wgmma: that it puts products in sequence (C7510) or orders registers
    between them (C7517, C7519)."""
    from stepladder.pipeline.codegen import ptx

    logs: list[str] = []
    assemble = ptx.assemble

    def noted(text: str, chip: str) -> tuple[bytes, str]:
        cubin, log = assemble(text, chip)
        logs.append(log)
        return cubin, log

    monkeypatch.setattr(ptx, "assemble", noted)
    try:
        code = build_case(name, tmp_path / "bundle").code
    except StepladderError as error:
        if not is_not_installed(error):
            raise
        pytest.skip(error.message)
    assert (code.spill_stores, code.spill_loads) == (0, 0)
    log = logs[-1] if logs else assemble(code.ptx, "sm_90a")[1]  # a kernel from the cache has none
    assert "warning" not in log and "C75" not in log


def is_not_installed(error: StepladderError) -> bool:
    return "not installed" in error.message or "is missing" in error.message


@pytest.fixture
def bundle(request: pytest.FixtureRequest, tmp_path: Path) -> Bundle:
    beforehand = os.environ.get("STEPLADDER_WGMMA_BUNDLES")
    if beforehand:
        return read_bundle(Path(beforehand, request.param))
    try:
        build_case(request.param, tmp_path / "bundle")
    except StepladderError as error:
        if not is_not_installed(error):
            raise
        pytest.skip(f"{error.message}, and STEPLADDER_WGMMA_BUNDLES names no bundles built beforehand")
    return read_bundle(tmp_path / "bundle")


@pytest.mark.gpu
@pytest.mark.parametrize("bundle", CASES, indirect=True)
def test_numbers(bundle: Bundle) -> None:
    problem = bundle.manifest.problem
    with Device() as device, MatmulBuffers(device, problem) as buffers:
        if device.capability != (9, 0):
            pytest.skip("wgmma needs compute capability 9.0")
        enqueue = buffers.launcher(device.load(bundle), bundle)
        for seed in (1, 2):
            for report in check_matmul(problem, bundle.expected(), DeviceExecutor(buffers, enqueue), seed=seed):
                assert report.passed, report.describe()


if __name__ == "__main__":
    for case in CASES:
        build_case(case, Path(sys.argv[1], case))
        print(case)
