"""Loading, launching and capturing on a GPU, by kernels that are written in PTX."""

import dataclasses
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from conftest import make_problem
from stepladder.runtime.bundle import Bundle, read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.verify.check import check_matmul
from stepladder.verify.inputs import exact_inputs


@pytest.mark.gpu
@pytest.mark.parametrize("accumulate", [False, True])
def test_on_a_gpu(tmp_path: Path, accumulate: bool) -> None:
    from naive_matmul import write_naive_bundle

    problem = make_problem(96, 128, 80, accumulate=accumulate)
    for products, right in ((80, True), (79, False)):
        write_naive_bundle(tmp_path / "naive", problem, products)
        read = read_bundle(tmp_path / "naive")
        with Device() as device, MatmulBuffers(device, problem) as buffers:
            kernel = device.load(read)
            assert kernel.source == "ptx"
            reports = check_matmul(
                problem, read.expected(), DeviceExecutor(buffers, buffers.launcher(kernel, read)), seed=1
            )
        assert [report.passed for report in reports] == [right, right, True], [r.describe() for r in reports]


@pytest.mark.gpu
def test_a_cubin_that_the_driver_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Machine code for another architecture in a bundle for this GPU: the driver compiles the PTX instead."""
    from naive_matmul import write_naive_bundle

    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("ptxas, which makes the machine code, is not on the path")
    problem = make_problem(96, 128, 80)
    write_naive_bundle(tmp_path / "naive", problem)
    read = read_bundle(tmp_path / "naive")
    with Device() as device, MatmulBuffers(device, problem) as buffers:
        other = "sm_75" if device.capability[0] != 7 else "sm_80"
        (tmp_path / "naive.ptx").write_text(read.ptx.replace("sm_75", other))
        command = [ptxas, f"-arch={other}", tmp_path / "naive.ptx", "-o", tmp_path / "naive.cubin"]
        subprocess.run(command, check=True)
        manifest = dataclasses.replace(read.manifest, target="sm_{}{}".format(*device.capability))
        same = Bundle(read.path, manifest, (tmp_path / "naive.cubin").read_bytes(), read.ptx)
        kernel = device.load(same)
        assert kernel.source == "ptx"
        assert "the driver does not take the cubin (CUDA_ERROR_" in capsys.readouterr().err
        for report in check_matmul(
            problem, same.expected(), DeviceExecutor(buffers, buffers.launcher(kernel, same)), seed=1
        ):
            assert report.passed, report.describe()
        with pytest.raises(StepladderError, match=r"refuses the PTX too .CUDA_ERROR_"):
            device.load(Bundle(read.path, manifest, same.cubin, "no PTX"))


@pytest.mark.gpu
def test_a_device_is_opened_again() -> None:
    """Buffers of an earlier session do not stand in the way of the next one."""
    numbers = np.arange(1000, dtype=np.float32)
    for _ in range(2):
        with Device() as device:
            first, second = device.allocate(numbers.nbytes), device.allocate(numbers.nbytes)
            assert first.address % 256 == second.address % 256 == 0
            first.upload(numbers)
            start = device.record_event()
            second.copy_from(first)
            end = device.record_event()
            assert np.array_equal(second.download(numbers.shape, numbers.dtype), numbers)
            assert 0 <= device.elapsed_ms(start, end) < 1000
            first.free()
            described = device.describe()
            assert described["multiprocessors"] > 0 and described["memory_bytes"] > 1 << 30


@pytest.mark.gpu
def test_hopper_features_on_a_gpu(tmp_path: Path) -> None:
    """A descriptor among pointers, clusters, programmatic dependent launch; then launches that wait for one another."""
    from naive_matmul import hopper_bundle

    problem = make_problem(96, 128, 80)
    read = hopper_bundle(tmp_path, problem)
    with Device() as device, MatmulBuffers(device, problem) as buffers:
        if device.capability < (9, 0):
            pytest.skip("TMA needs compute capability 9.0")
        with pytest.raises(StepladderError, match="for clusters of 2 x 1 x 1 blocks, and the manifest has 1 x 2 x 1"):
            device.load(hopper_bundle(tmp_path, problem, cluster=(1, 2, 1)))
        enqueue = buffers.launcher(device.load(read), read)
        for report in check_matmul(problem, read.expected(), DeviceExecutor(buffers, enqueue), seed=1):
            assert report.passed, report.describe()
        a, b, c = exact_inputs(problem, 1)
        buffers.a.upload(a)
        buffers.b.upload(b)
        buffers.c.upload(c)
        graph = device.capture(enqueue, 20)
        graph.replay()
        graph.replay()
        got = buffers.c.download(c.shape, c.dtype)
        graph.free()
    assert np.array_equal(got, c + 40 * (a.astype(np.float32) @ b.astype(np.float32)))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "acc_type, compute_type", [("f32", "f16"), ("f16", "f16"), ("f32", "bf16"), ("f32", "tf32"), ("i32", "i8")]
)
def test_ceiling_on_a_gpu(acc_type: str, compute_type: str) -> None:
    from stepladder.measure.ceiling import measure_ceiling

    with Device() as device:
        if device.capability < (8, 0):
            pytest.skip("mma.sync.m16n8k16 needs compute capability 8.0")
        ceiling = measure_ceiling(device, acc_type, compute_type)
    assert sorted(ceiling.tflops_by_warps) == [4, 8, 16]
    assert ceiling.tflops == max(ceiling.tflops_by_warps.values()) > 10
