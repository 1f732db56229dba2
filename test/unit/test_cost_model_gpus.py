"""The GPUs of the cost model: which one knobs are chosen for, and whose constants it has."""

from dataclasses import replace
from pathlib import Path

import pytest

from cost_model_settings import H200, TILE, columns, size
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.automatic import for_vendor
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.cost_model import early_weights, gpu
from stepladder.pipeline.cost_model.constants import WARP, WARPGROUP
from stepladder.pipeline.explanation import explain
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.installed import installed_gpu
from stepladder.runtime.targets import find_limits

INPUTS = Path(__file__).resolve().parents[1] / "inputs" / "functions"


def test_knobs_are_chosen_for_the_gpu_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that was measured counts where it has the target; --gpu and STEPLADDER_GPU come first."""

    def found(name: str | None, key: str | None = None, target: str = "sm_90a") -> str:
        monkeypatch.setattr(gpu, "installed_gpu", lambda: name)
        return gpu.find(key, target).gpu.key

    monkeypatch.delenv("STEPLADDER_GPU")
    assert found("NVIDIA H100 80GB HBM3") == "h100"
    assert found("NVIDIA H100 80GB HBM3", "h200") == "h200"
    assert found("NVIDIA H100 80GB HBM3", target="sm_80") == "a100"
    assert found(None) == found("NVIDIA H100 PCIe") == "h200"
    a100 = replace(gpu.load("a100"), name="NVIDIA A100")
    assert a100.source == gpu.DATA_SHEET and found(a100.name, target="sm_90a") == "h200"
    monkeypatch.setenv("STEPLADDER_GPU", "h200")
    assert found("NVIDIA H100 80GB HBM3") == "h200" and found(None, "h100") == "h100"
    assert found(None, target="sm_80") == "a100"
    monkeypatch.setenv("STEPLADDER_GPU", "h20")
    with pytest.raises(StepladderError, match=r"STEPLADDER_GPU is 'h20', .* no such GPU \(did you mean 'h200'"):
        found(None)


def test_the_driver_names_the_gpus_of_the_machine(tmp_path: Path) -> None:
    """GPUs of one name have it; without a driver, or with GPUs of several names, there is none."""

    def described(bus: str, text: str) -> str | None:
        folder = tmp_path / bus
        folder.mkdir()
        (folder / "information").write_text(text)
        return installed_gpu(tmp_path)

    assert installed_gpu(tmp_path / "none") is None
    assert described("0000:01:00.0", "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\n") == "NVIDIA H200"
    assert described("0000:02:00.0", "Model: \t\t NVIDIA H200\n") == "NVIDIA H200"
    assert described("0000:03:00.0", "IRQ: 41\n") is None


def test_a_gpu_may_take_some_constants_from_another() -> None:
    """The H100 has constants of `wgmma` of its own, and those of the H200 for kernels that load weights early."""
    h100 = gpu.load("h100")
    assert h100.source == gpu.MEASURED and h100.constants[WARP] == H200.constants[WARP]
    assert h100.constants[WARPGROUP] != H200.constants[WARPGROUP]
    assert h100.early_weights == H200.early_weights and h100.early_hbm_bytes_per_us == H200.hbm_bytes_per_us
    knobs = columns(TILE, early_weights=True, swap_operands=True, min_blocks_per_sm=1)
    few = size(4096, 16, 4096)
    times = [early_weights.predict(knobs, few, card)[0] for card in (H200, h100)]
    assert times[1] == times[0] and h100.hbm_bytes_per_us < H200.hbm_bytes_per_us


def test_an_unknown_gpu_takes_the_nearest_and_says_which() -> None:
    assert gpu.for_target("sm_90a").gpu.key == "h200" and not gpu.for_target("sm_90a").note
    assert gpu.for_target("sm_75").gpu.key == "a100" and "NVIDIA A100" in gpu.for_target("sm_75").note
    assert gpu.for_device("NVIDIA H200", "sm_90a").note == ""
    assert "'NVIDIA H20'" in gpu.for_device("NVIDIA H20", "sm_90a").note
    with pytest.raises(StepladderError, match=r"no GPU 'h20'.*h200"):
        gpu.load("h20")


def test_auto_explains_the_pipeline_that_compile_takes() -> None:
    """The first pipeline whose kernels run on the target and the GPU; of several matmuls, each has one."""

    with mlir_context():
        (found,) = explain(matmul_text(64, 64, 64), "payload.mlir", Request("auto", gpu="a100"), 1)
    assert found.pipeline == "mma_sync" and found.found.gpu.key == "a100"
    layers = (INPUTS / "low_rank_linear.mlir").read_text()
    with mlir_context(), pytest.raises(StepladderError, match="give --pipeline"):
        explain(layers, "layers.mlir", Request("auto", {"target": "sm_80", "padding": "16"}), 1)


def test_auto_is_the_pipeline_of_the_target_s_vendor() -> None:
    for target, pipeline in (("bmg", "xetile"), ("pvc", "xetile"), ("sm_80", "auto")):
        assert for_vendor(Request("auto", {"target": target})).pipeline == pipeline
    assert (
        for_vendor(Request("wmma", {"target": "bmg"})).pipeline == "wmma"
        and for_vendor(Request("auto")).pipeline == "auto"
    )
    with pytest.raises(StepladderError, match="did you mean 'bmg'") as raised:
        find_limits("bmgx")
    assert raised.value.notes[0].endswith("sm_90a, pvc, bmg")
